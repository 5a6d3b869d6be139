"""The study of topic trees: draws, labels, methods and page, on the made-up corpus."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.shared.corpora import REUTERS_TREE, TREES
from experiments.trees import __main__ as study
from experiments.trees import page, trials
from experiments.trees.trials import METHODS, Trial, draw, mixed_labels, parent_of, world_of
from topicsteer import TopicModel

FOLDER = Path(study.__file__).parent


@pytest.mark.parametrize("budget", trials.BUDGETS)
def test_half_of_the_labels_end_at_the_parent(budget):
    world = world_of("toy")
    chosen = draw(world, budget, 0)
    assert not (chosen.deep & chosen.shallow).any()
    labels = mixed_labels(world, chosen)
    states = labels.patterns[labels.pattern]
    assert np.array_equal(labels.labelled, chosen.labelled)
    assert np.array_equal(states[chosen.deep] == 1, world.truth[chosen.deep])
    tops = world.truth[chosen.shallow][:, world.roots]
    assert np.array_equal(states[chosen.shallow][:, world.roots] == 1, tops)
    assert not (states[chosen.shallow][:, world.leaves] == 1).any()
    under = world.truth[np.ix_(chosen.shallow, [world.forest.parents[k] for k in world.leaves])]
    assert np.array_equal(states[chosen.shallow][:, world.leaves] == -1, under)
    if budget == "3 per leaf":
        assert world.truth[chosen.deep][:, world.leaves].any(axis=0).all()
    else:
        assert abs(int(chosen.deep.sum()) - int(chosen.shallow.sum())) <= 1


@pytest.mark.parametrize("method", [name for name in METHODS if name != "hiclass"])
def test_every_method_is_better_than_chance(method):
    found = trials.perform(Trial("toy", method, "20 %", 0, "now"))
    assert found["leaves macro"] > 0.35  # 0.25 by chance
    assert found["parents macro"] > 0.65  # 0.6 by chance
    assert found["contradictions"] == 0 or method == "logistic regression"


def test_no_method_leaves_a_topic_without_scores():
    """A column of equal scores has the average precision of chance, and makes every comparison with it worthless."""
    world = world_of("toy")
    chosen = draw(world, "20 %", 0)
    for name, method in METHODS.items():
        if name in trials.available():
            assert (np.ptp(method(world, chosen), axis=0) > 0).all(), name


def test_hiclass_finds_the_topics_of_the_toy():
    pytest.importorskip("hiclass")
    found = trials.perform(Trial("toy", "hiclass", "20 %", 0, "now"))
    assert found["leaves macro"] > 0.4
    assert found["contradictions"] == 0


def test_the_tree_has_the_memberships_of_the_model():
    world = world_of("toy")
    chosen = draw(world, "20 %", 0)
    given = mixed_labels(world, chosen)
    deepest = world.forest.deepest(given.patterns[given.pattern] == 1)
    labels = [[world.topics[k] for k in np.flatnonzero(row)] or None for row in deepest]
    parents = {world.topics[k]: world.topics[above] for k, above in enumerate(world.forest.parents) if above >= 0}
    model = TopicModel(0, topics=world.topics, parents=parents, world="closed", embeddings=None, threads=1)
    model.fit(list(TREES["toy"]().texts), labels)
    rows = np.flatnonzero(~chosen.labelled)
    ours = trials.tree(world, chosen)
    np.testing.assert_allclose(model.state_.memberships[rows][:, :8], ours[rows], atol=1e-5)


def test_parents_of_leaves():
    assert parent_of("newsgroups-6000", "rec.sport.hockey") == "rec"
    assert parent_of("reuters-tree", "wheat") == "grain"
    assert parent_of("reuters-tree", "ship") is None
    leaves = [leaf for below in REUTERS_TREE.values() for leaf in below]
    assert len(set(leaves)) == len(leaves)
    assert not set(leaves) & set(REUTERS_TREE)


def test_the_committed_page_comes_from_the_committed_trials():
    lines = (FOLDER / "trees.jsonl").read_text(encoding="utf-8").splitlines()
    results = {Trial(**key): row for key, row, _ in map(json.loads, lines)}
    assert {trial.corpus for trial in results} == set(TREES) - {"toy"}
    assert page.text(results) == (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_tree_keeps_its_promises_on_the_committed_trials():
    """Ten draws: leaves +.005 over the flat model, no cell below it by a standard error; parents +.015."""
    lines = (FOLDER / "trees.jsonl").read_text(encoding="utf-8").splitlines()
    found = {}
    for key, row, _ in map(json.loads, lines):
        found.setdefault((key["corpus"], key["budget"]), {}).setdefault(key["method"], {})[key["seed"]] = row
    gains = {"leaves": [], "parents": []}
    for cell in found.values():
        assert set(cell["tree"]) == set(cell["flat"]) == set(range(10))
        for level, own in gains.items():
            gain = [cell["tree"][s][f"{level} macro"] - cell["flat"][s][f"{level} macro"] for s in range(10)]
            assert np.mean(gain) > -np.std(gain, ddof=1) / np.sqrt(10)
            own.append(np.mean(gain))
        ours, theirs = (
            np.mean([row["parents macro"] for row in cell[name].values()]) for name in ("tree", "logistic regression")
        )
        assert ours > theirs
    assert np.mean(gains["leaves"]) >= 0.005
    assert np.mean(gains["parents"]) >= 0.015
