"""The study of shares: draws, judgement and page, on the made-up corpus."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.prevalence import __main__ as study
from experiments.prevalence import page, trials
from experiments.prevalence.trials import DESIGNS, Trial, World, groups_of, prepared
from experiments.shared.draws import CORPORA
from experiments.shared.store import Store

FOLDER = Path(study.__file__).parent


@pytest.fixture
def toy():
    return prepared("toy")


@pytest.mark.parametrize("method", DESIGNS)
def test_every_design_runs_and_covers_most_topics(toy, method):
    found = trials.perform(Trial("toy", method, 60, 0, "now"))
    assert found["topics"] == (4 if method == "unnamed" else 6)
    if method not in ("few", "plain"):
        assert found["covered"] >= found["topics"] - 2
        assert found["4 differences"] == 6 * found["topics"]
        assert 0.2 < found["ratio"] < 2


def test_labels_are_those_of_the_truth(toy):
    world = World(toy.task, toy.truth, toy.topics, np.random.default_rng(0))
    for method in ("random", "doubt", "suggested"):
        rows, origin = world.draw(method, 60)
        assert len(np.unique(rows)) == len(rows) == len(origin.kind) == 60
        assert (np.diff(rows) > 0).all()
        names = {name for name in origin.names() if name}
        assert names == (set() if method == "random" else {"random", f"{method} 2"})
        supervision = world.supervision(rows)
        assert np.array_equal(supervision.indicator().toarray()[rows], toy.truth[rows])


def test_groups_differ_in_their_topics(toy):
    groups = groups_of(toy.truth, 4)
    shares = np.stack([toy.truth[groups.codes == g].mean(axis=0) for g in range(4)])
    assert (shares.max(axis=0) - shares.min(axis=0)).max() > 0.1


def test_a_result_is_judged_against_the_truth(toy):
    """Predictions that are the truth give narrow intervals; reversed ones must not narrow them."""
    rng = np.random.default_rng(0)
    world = World(toy.task, toy.truth, toy.topics, rng)
    rows, origin = world.draw("random", 60)
    truth = np.column_stack([toy.truth, ~toy.truth.any(axis=1)]).astype(float)
    sample = trials.design.Sample(rows, truth[rows], origin, np.arange(60))
    ratio = {}
    for name, values in (("right", truth), ("reversed", 1 - truth)):
        predictions = trials.estimates.Predictions(values, values[rows])
        ratio[name] = trials.judge(world, sample, predictions, toy.groups, "random")["ratio"]
    assert ratio["right"] < 0.5
    assert ratio["reversed"] > 0.95


@pytest.mark.slow
def test_the_command_writes_a_page(toy, tmp_path, monkeypatch):
    def in_this_process(runs, perform, store, *_):
        for run in runs:
            store.add(run.key, perform(run), 1)

    monkeypatch.setattr("experiments.shared.draws.carry_out", in_this_process)
    assert study.main(["--corpus", "toy", "--quick", "--method", "random", "--results", str(tmp_path)]) == 0
    text = (tmp_path / "quick-prevalence" / "README.md").read_text()
    assert "| Toy | 40 | 2 |" in text
    store = Store(tmp_path / "prevalence.sqlite")
    done = store.results(trials.plan(["toy"], 2))
    store.close()
    assert len(done) == 4


def test_the_committed_page_comes_from_the_committed_trials():
    lines = (FOLDER / "prevalence.jsonl").read_text(encoding="utf-8").splitlines()
    results = {Trial(**key): row for key, row, _ in map(json.loads, lines)}
    assert {trial.corpus for trial in results} == set(CORPORA)
    assert page.text(results) == (FOLDER / "README.md").read_text(encoding="utf-8")
