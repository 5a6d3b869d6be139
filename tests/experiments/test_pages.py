"""The committed pages of the studies are the ones that their generators write."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("matplotlib")
from experiments.paper import page as paper
from experiments.paper import runs
from experiments.peers import page as peers
from experiments.peers.trials import Trial
from experiments.shared.terminal import RESULTS, page_folder

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SIZES = re.compile(r"^\| ([^|]+) \| ([\d,]+) \| ([\d,]+) \| (\d+) \| (\d\.\d\d) \|", re.MULTILINE)


def page(study):
    return (EXPERIMENTS / study / "README.md").read_text(encoding="utf-8")


def corpora(text, titles):
    """Stand-ins for the corpora, with the sizes in the first table of a page."""
    names = {title: name for name, title in titles.items()}
    found = {}
    for title, n, terms, topics, labels in SIZES.findall(text):
        shape = int(n.replace(",", "")), int(terms.replace(",", ""))
        truth = SimpleNamespace(sum=lambda total=shape[0] * float(labels): total)
        found[names[title]] = SimpleNamespace(X=SimpleNamespace(shape=shape), topics=[None] * int(topics), truth=truth)
    return found


def test_the_page_of_peers_comes_from_the_committed_trials():
    text = page("peers")
    lines = (EXPERIMENTS / "peers" / "peers.jsonl").read_text(encoding="utf-8").splitlines()
    results = {Trial(**key): row for key, row, _ in map(json.loads, lines)}
    loaded = corpora(text, peers.TITLES)
    assert len(loaded) == 4
    planned = int(re.search(r"([\d,]+) trials are planned", text).group(1).replace(",", ""))
    assert peers.text(peers.Board(results), loaded, planned, planned - len(results)) == text


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
