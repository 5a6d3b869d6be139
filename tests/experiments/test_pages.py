"""The committed pages of the studies are the ones that their generators write."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("matplotlib")
from experiments.paper import page as paper
from experiments.paper import runs
from experiments.shared.terminal import RESULTS, page_folder

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def page(study):
    return (EXPERIMENTS / study / "README.md").read_text(encoding="utf-8")


def test_the_page_of_the_paper_comes_from_the_committed_runs():
    lines = (EXPERIMENTS / "paper" / "paper.jsonl").read_text(encoding="utf-8").splitlines()
    results = {runs.Run(**key): row for key, row, _ in map(json.loads, lines)}
    assert paper.text(results, len(runs.plan(["reuters", "pubmed"]))) == page("paper")
    figures = list((EXPERIMENTS / "paper" / "figures").iterdir())
    assert [f"figures/{figure.name}" in page("paper") for figure in figures] == [True]
    assert sum(figure.stat().st_size for figure in figures) < 200_000


@pytest.mark.parametrize(
    ("folder", "quick", "part", "place"),
    [
        (RESULTS, False, False, EXPERIMENTS / "paper"),
        (RESULTS, True, False, RESULTS / "quick-paper"),
        (RESULTS, False, True, RESULTS / "page-paper"),
        (Path("mine"), False, False, Path("mine/page-paper")),
    ],
)
def test_only_a_whole_study_writes_the_committed_page(folder, quick, part, place):
    options = SimpleNamespace(results=folder, quick=quick)
    assert page_folder(EXPERIMENTS / "paper", options, part=part) == place
