"""Shares of a tree add up in every group, and labels that end above a topic do not bias the topics below."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicsteer.analysis.groups import Groups
from topicsteer.analysis.prevalence import Predictions, TreeColumns, prevalence, spread_out
from topicsteer.analysis.survey_design import Sample
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import Origin

N = 1500


def truth_of(forest, rng, several, n=N):
    """Topics of documents: random paths from a root, which may end above a leaf; some documents have two paths."""
    has = np.zeros((n, len(forest)), dtype=bool)
    for has_row in has:
        for _ in range(1 + (several and rng.random() < 0.3)):
            at = list(forest.roots)
            while at and rng.random() < 0.85:
                k = at[rng.integers(len(at))]
                has_row[k] = True
                at = list(forest.children[k])
    return has


def shares_of(forest, has, rng, labelled=300, depth=0.0, groups=None):
    """Shares from random labels; ``depth`` of the documents with a topic have labels that end at a root."""
    truth = np.column_stack([has, ~has.any(axis=1)]).astype(float)
    noisy = np.clip(0.15 + 0.7 * has + rng.normal(0, 0.15, has.shape), 0, 1)
    P = forest.raised(noisy)
    P = np.column_stack([P, np.prod(1 - P[:, list(forest.roots)], axis=1)])
    rows = np.sort(rng.choice(len(has), labelled, replace=False))
    labels = truth[rows]
    for k in forest.roots:
        short = (labels[:, k] == 1) & (rng.random(labelled) < depth)
        labels[np.ix_(short, list(forest.descendants(k)))] = np.nan
    sample = Sample(rows, labels, Origin.random(labelled), np.arange(labelled))
    names = [*(f"t{k}" for k in range(len(forest))), "(none)"]
    tree = TreeColumns(forest)
    return prevalence(names, len(forest), sample, [Predictions(P, P[rows])], len(P), groups, tree=tree)


def column(found, name):
    return found.share[:, found.topics.index(name)]


forests = st.lists(st.integers(-1, 6), min_size=2, max_size=7).map(
    lambda parents: Forest(tuple(min(parent, k - 1) for k, parent in enumerate(parents)))
)


@settings(max_examples=25, deadline=None)
@given(forests, st.integers(0, 99), st.booleans(), st.floats(0, 0.9))
def test_a_topic_is_its_rest_plus_the_topics_below(forest, seed, several, depth):
    rng = np.random.default_rng(seed)
    has = truth_of(forest, rng, several, 300)
    groups = Groups("g", ("a", "b", "c"), rng.integers(3, size=300))
    found = shares_of(forest, has, rng, 60, depth, groups)
    assert len(found.topics) == len(forest) + 1 + len(TreeColumns(forest).below)
    for k, children in enumerate(forest.children):
        if not children:
            continue
        below = sum(column(found, f"t{c}") for c in children)
        assert found.topics[found.topics.index(f"t{k}") + 1] == f"t{k}, nothing below"
        excess = below + column(found, f"t{k}, nothing below") - column(found, f"t{k}")
        excess = excess[~np.isnan(excess)]  # groups with few labels have no share
        if any(f"t{k}" in line for line in found.sentences if "several topics below" in line):
            assert (excess > -1e-9).all()
        else:
            np.testing.assert_allclose(excess, 0, atol=1e-9)
        for c in children:
            assert not (column(found, f"t{c}") > column(found, f"t{k}") + 1e-9).any()
    with np.errstate(invalid="ignore"):
        assert not ((found.share < -1e-12) | (found.share > 1 + 1e-12)).any()
        assert not ((found.low > found.share + 1e-9) | (found.high < found.share - 1e-9)).any()


@pytest.mark.parametrize("depth", [0.0, 0.6])
def test_shares_below_a_topic_cover_although_labels_end_above(depth):
    forest, inside, error = Forest((-1, 0, 0, -1)), [], []
    has = truth_of(forest, np.random.default_rng(7), several=False)
    truth = [*has.mean(axis=0)[:3], (has[:, 0] & ~has[:, 1:3].any(axis=1)).mean()]
    for seed in range(60):
        found = shares_of(forest, has, np.random.default_rng(seed), depth=depth)
        own = [found.topics.index(name) for name in ("t0", "t1", "t2", "t0, nothing below")]
        inside.append((found.low[0, own] <= truth) & (truth <= found.high[0, own]))
        error.append(found.share[0, own] - truth)
    assert 0.91 <= np.mean(inside) <= 0.995
    assert np.abs(np.mean(error, axis=0)).max() < 0.01


def test_a_rest_that_no_label_shows_has_no_interval():
    """Labels that end at a topic may mean its rest. Labels that deny all topics below it measure it."""
    forest, rng = Forest((-1, 0, 0)), np.random.default_rng(0)
    has = truth_of(forest, rng, several=False)
    assert np.isfinite(shares_of(forest, has, rng, depth=0.5).low).all()
    has[:, 0] = has[:, 1:].any(axis=1)  # no document is a rest
    found = shares_of(forest, has, rng, depth=0.5)
    assert np.isnan(found.low[0]).tolist() == [False, True, False, False, False]


def test_shares_without_an_interval_move_first_and_none_becomes_negative():
    found = spread_out(np.array([0.2, 0.1, 0.05]), np.array([0.1, 0.1, np.nan]), 0.25)
    np.testing.assert_allclose(found, [0.175, 0.075, 0.0], atol=1e-12)
    np.testing.assert_allclose(spread_out(np.array([0.3, 0.01]), np.array([0.1, 0.5]), 0.2), [0.2, 0.0], atol=1e-12)
    np.testing.assert_allclose(spread_out(np.zeros(3), np.zeros(3), 0.3), [0.1] * 3)
