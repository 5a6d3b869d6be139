"""Guides of trees: expected labels, combined cuts, and the gain from labels above the leaves."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests import reference
from topicsteer.backends import as_rows
from topicsteer.guidance.guide import combine_cuts
from topicsteer.guidance.keywords import TopicTexts
from topicsteer.guidance.ridge import Choice, Ridge
from topicsteer.guidance.train import assumed_states, train_guide
from topicsteer.guidance.tree import ends, expected_labels, texts_of, train_cuts
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import Supervision
from topicsteer.metrics import average_precision


def random_tree(rng, n):
    """A tree of n topics in random order."""
    number = rng.permutation(n)
    parents = np.full(n, -1)
    for k in range(1, n):
        if rng.random() < 0.7:
            parents[number[k]] = number[rng.integers(k)]
    return Forest(tuple(parents.tolist()))


def random_states(rng, parents, n):
    """Label states that follow a tree; some labels end above the leaves, and some deny all topics below."""
    states = np.zeros((n, len(parents)), dtype=np.int8)
    for row in states:
        for k in rng.choice(len(parents), 2):
            while k >= 0:
                row[k], k = 1, parents[k]
        for k in sorted(range(len(parents)), key=lambda k: reference.depth(parents, k)):
            below = [j for j, parent in enumerate(parents) if parent == k]
            inside = row[k] == 1 and not (row[below] == 1).any() and rng.random() < 0.8
            row[below] = -1 if inside or row[k] == -1 else row[below]
    return states


@pytest.mark.parametrize("seed", range(8))
def test_combined_probabilities_equal_the_slow_twin_and_follow_the_tree(seed):
    rng = np.random.default_rng(seed)
    forest = random_tree(rng, int(rng.integers(2, 14)))
    parents, cuts = forest.parents, forest.cuts
    given = [rng.random((30, len(cut))).astype(np.float32) ** 3 for cut in cuts]
    given[0][0], given[-1][1] = 0, 1
    covered = [rng.random(len(cut)) < 0.8 for cut in cuts]
    found = combine_cuts(forest, given, covered)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, reference.combined(parents, cuts, given, covered), atol=2e-5)
    for k, parent in enumerate(parents):
        assert parent < 0 or (found[:, k] <= found[:, parent]).all()
    unknown = [
        k
        for k in range(len(parents))
        if not any(known[list(cut).index(k)] for cut, known in zip(cuts, covered, strict=True) if k in cut)
    ]
    leaves = [k for k in unknown if k not in parents]
    assert not found[:, leaves].any()


def test_flat_list_keeps_its_probabilities():
    given = np.random.default_rng(0).random((20, 5)).astype(np.float32)
    found = combine_cuts(Forest((-1,) * 5), [given], [np.ones(5, dtype=bool)])
    np.testing.assert_allclose(found, given, atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_expected_labels_equal_the_slow_twin(seed):
    rng = np.random.default_rng(seed)
    forest = random_tree(rng, int(rng.integers(3, 14)))
    parents, cuts = forest.parents, forest.cuts
    states = random_states(rng, parents, 40)
    patterns = np.vstack([np.full_like(states[:1], -1), states])
    labels = Supervision(tuple(range(len(parents))), np.arange(41, dtype=np.int32), patterns)
    for cut in cuts:
        rows = np.flatnonzero(ends(patterns, forest, cut).any(axis=1))
        probabilities = rng.random((len(rows), len(cut)))
        found = expected_labels(probabilities, labels, forest, cut, rows).toarray()
        assert found.shape == (41, len(cut))
        np.testing.assert_allclose(found[rows], reference.expected(probabilities, patterns, rows, parents, cut))
        assert not found[np.setdiff1d(np.arange(41), rows)].any()
        assert ((found > 0) <= (patterns[:, cut] == -1)).all()  # a known label is never overruled


def test_expected_labels_are_weighted_copies_of_a_document():
    """A target of 3/4 and 1/4 is the document twice, with each topic and these weights."""
    rng = np.random.default_rng(0)
    X, Z = sp.csr_array(rng.random((7, 9))), rng.random((7, 2))
    states = rng.integers(0, 2, (7, 3)).astype(np.int8)
    states[-1] = [-1, -1, 0]
    expected = np.full((7, 3), np.nan)
    expected[-1, :2] = 0.75, 0.25
    soft = ridge_of(X, Z, np.ones(7))
    target, mean = soft.target(states, np.arange(3), expected)
    np.testing.assert_allclose(mean, np.vstack([states[:-1], [0.75, 0.25, 0]]).mean(axis=0))
    twice = [*range(7), 6]
    copies = ridge_of(X[twice], Z[twice], np.array([1.0] * 6 + [0.75, 0.25]))
    hard = np.vstack([states[:-1], [1, 0, 0], [0, 1, 0]]) - mean
    weights = [X[rows].T @ one.solve(y) for one, y, rows in ((soft, target, range(7)), (copies, hard, twice))]
    np.testing.assert_allclose(*weights)


def ridge_of(X, Z, weight):
    kernel = (X @ X.T).toarray() + Z @ Z.T
    return Ridge(X, Z, weight, np.zeros(0, dtype=np.int64), Choice(0.0, 0.0, 1.0), kernel)


def test_topics_with_expected_labels_stay_unknown():
    states = np.array([[1, -1, -1, 0], [-1, -1, -1, -1]], dtype=np.int8)
    expected = np.array([[np.nan, 0.4, np.nan, np.nan], [0.2, np.nan, np.nan, np.nan]])
    assert assumed_states(states, expected).tolist() == [[1, -1, 0, 0], [-1, 0, 0, 0]]
    assert assumed_states(states).tolist() == [[1, 0, 0, 0], [-1, -1, -1, -1]]


def forest_corpus(rng, n=400):
    """Documents of 2 × 3 leaves; leaves of a parent share half of their terms. Truth of parents, then of leaves."""
    leaf = rng.integers(6, size=n)
    rates = np.full((6, 200), 0.05)
    for k in range(6):
        rates[k, 20 * k : 20 * k + 20] += 0.1
        rates[k, 120 + 40 * (k // 3) : 160 + 40 * (k // 3)] += 0.02
    X = rng.poisson(rates[leaf]).astype(np.float32)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    truth = np.hstack([np.eye(2, dtype=np.int8)[leaf // 3], np.eye(6, dtype=np.int8)[leaf]])
    return sp.csr_array(X), truth


def test_labels_above_the_leaves_help_leaves_and_parents():
    forest = Forest((-1, -1, 0, 0, 0, 1, 1, 1))
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, truth = forest_corpus(rng)
        states = np.full(truth.shape, -1, dtype=np.int8)
        states[:130] = truth[:130]
        states[24:130, 2:] = np.where(truth[24:130][:, [0, 0, 0, 1, 1, 1]] == 1, -1, 0)
        patterns, pattern = np.unique(np.vstack([np.full((1, 8), -1), states]), axis=0, return_inverse=True)
        assert (patterns[0] == -1).all()
        labels = Supervision(tuple("ABabcdef"), pattern.ravel()[1:].astype(np.int32), patterns.astype(np.int8))
        guides = train_cuts(as_rows(X), labels, forest, threads=1)
        given = [guide.probabilities(X, 1) for guide in guides]
        found = combine_cuts(forest, given, [guide.covers for guide in guides])
        deep = labels.pattern.copy()
        deep[24:] = 0
        flat = train_guide(as_rows(X), Supervision(labels.topics[2:], deep, labels.patterns[:, 2:]), threads=1)
        leaves = flat.probabilities(X, 1)
        either = np.stack([1 - np.prod(1 - leaves[:, :3], axis=1), 1 - np.prod(1 - leaves[:, 3:], axis=1)], axis=1)
        rest, alone = slice(130, None), np.hstack([either, leaves])
        gains.append(
            [
                average_precision(truth[rest, part], found[rest, part]).macro
                - average_precision(truth[rest, part], alone[rest, part]).macro
                for part in (slice(2), slice(2, 8))
            ]
        )
    assert (np.mean(gains, axis=0) > 0.01).all(), gains


def test_cut_without_labels_or_names_has_no_guide():
    patterns = np.array([[-1, -1, -1], [1, -1, -1], [0, 0, 0]], dtype=np.int8)
    labels = Supervision(("a", "b", "c"), np.array([1, 2, 0, 1], dtype=np.int32), patterns)
    X = sp.csr_array(np.eye(4, dtype=np.float32))
    guides = train_cuts(as_rows(X), labels, Forest((-1, 0, 0)), threads=1)
    assert guides[0] is not None
    assert guides[1] is None


def testtexts_of_a_cut_follow_its_positions():
    names = TopicTexts(sp.csr_array(np.diag([1.0, 2.0, 3.0])), np.array([0, 2, 1]), np.arange(6.0).reshape(3, 2))
    own = texts_of(names, (2, 1))
    assert own.topics.tolist() == [0, 1]
    assert own.terms.toarray().tolist() == [[0, 2, 0], [0, 0, 3]]
    assert own.embeddings.tolist() == [[2, 3], [4, 5]]
