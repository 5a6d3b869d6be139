import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import Ridge

from topicsteer.guidance.outside import (
    OPEN_SHARE,
    TAILS,
    Outside,
    ShareOutside,
    documents_per_label,
    few_labels,
    learn_outside,
)
from topicsteer.labels.supervision import assign_folds


def blobs(n_topics, labelled, size=60, outside=0, seed=0):
    """Features of documents around one corner per topic, labels of the first documents of the first topics."""
    rng = np.random.default_rng(seed)
    which = np.repeat(np.arange(n_topics + outside), size)
    D = np.eye(n_topics + outside, 20)[which] + 0.15 * rng.normal(size=(len(which), 20))
    first = np.concatenate([np.flatnonzero(which == k)[:labelled] for k in range(n_topics)])
    order = np.concatenate([first, np.setdiff1d(np.arange(len(which)), first)])
    states = (which[first][:, None] == np.arange(n_topics)).astype(np.int8)
    return (D / np.linalg.norm(D, axis=1, keepdims=True))[order].astype(np.float32), states, which[order]


NO_NAMES = np.zeros((0, 20)), np.zeros(0, dtype=np.int64)


def test_the_weights_are_those_of_a_weighted_ridge_regression():
    D, states, _ = blobs(3, 12, outside=2)
    names, named = np.random.default_rng(1).random((2, 20)), np.array([0, 2])
    found, _ = learn_outside(D, states, np.full((len(D), 3), 0.3), names, named)
    fold_of = assign_folds(sp.csr_array(states == 1), 3, seed=0)
    for fold in range(3):
        target, weight = np.zeros((len(D) + 2, 3)), np.ones(len(D) + 2)
        seen = np.flatnonzero(fold_of != fold)
        target[seen], weight[seen] = states[seen], 20
        target[len(D) :], weight[len(D) :] = np.eye(3)[named], 20
        model = Ridge(alpha=100, fit_intercept=False, solver="cholesky").fit(np.vstack([D, names]), target, weight)
        np.testing.assert_allclose(found.weights[fold], model.coef_.T, atol=1e-5)


def test_the_share_compares_tails_of_hidden_and_unlabelled_documents():
    D, states, which = blobs(3, 12, outside=2)
    guess = np.eye(3)[np.minimum(which, 2)]
    found, estimate = learn_outside(D, states, guess, *NO_NAMES)
    fold_of = assign_folds(sp.csr_array(states == 1), 3, seed=0)
    n, given = len(states), states == 1
    weight = given @ (np.maximum(guess.sum(axis=0), 1) / given.sum(axis=0))  # documents per label of the only topic
    shares = np.zeros((3, len(TAILS)))
    for fold in range(3):
        scores = np.maximum(D @ found.weights[fold], 0) / found.normal[fold]
        evidence = np.sqrt(np.sqrt((scores**2).sum(axis=1)))
        own = np.flatnonzero(fold_of == fold)
        for t, tail in enumerate(TAILS):
            order = own[np.argsort(evidence[own])]
            level = evidence[order][np.cumsum(weight[order]) / weight[order].sum() >= tail - 1e-12][0]
            reached = weight[own][evidence[own] >= level].sum() / weight[own].sum()
            shares[fold, t] = max(1 - (evidence[n:] >= level).mean() / reached, 0)
    assert estimate.share == pytest.approx(shares.mean(), abs=1e-6)
    error = [np.sqrt(tail / (1 - tail) * (weight**2).sum()) / weight.sum() for tail in TAILS]
    expected = shares.mean() * weight.sum() / np.sqrt((weight**2).sum()), (shares.mean(axis=0) / error).max()
    assert estimate.errors == pytest.approx(expected, rel=1e-4)
    assert found.probability.mean() == pytest.approx(estimate.share, abs=1e-6)
    assert (np.diff(found.probability) <= 0).all()


def test_an_open_world_needs_more_than_chance():
    assert ShareOutside(0.2, (1.0, 3.0)).is_open
    assert ShareOutside(0.2, (2.0, 2.0)).is_open
    assert not ShareOutside(0.2, (1.9, 2.9)).is_open
    assert not ShareOutside(0.9 * OPEN_SHARE, (9.0, 9.0)).is_open
    assert not ShareOutside(0.2, (4.9, 7.4), few=True).is_open
    assert ShareOutside(0.2, (4.9, 7.5), few=True).is_open
    few, many = (ShareOutside.of([np.full(len(TAILS), 0.3)], np.ones(n), False) for n in (10, 40))
    assert many.errors == pytest.approx(tuple(2 * error for error in few.errors))  # four times the labels
    assert ShareOutside.of([], np.ones(3), True) == ShareOutside(0.0, (0.0, 0.0), few=True)


def test_a_document_that_many_topics_could_have_drawn_stands_for_fewer():
    """Ten labels per topic and 30 documents: each label stands for three. A document of both topics had two chances."""
    given = np.zeros((15, 2), dtype=bool)
    given[:5, 0], given[5:10, 1], given[10:] = True, True, True
    expected = np.repeat([3.0, 3.0, 1.5], 5)
    np.testing.assert_allclose(documents_per_label(given, np.full((60, 2), 0.5)), expected)


@pytest.mark.parametrize(("outside", "is_open"), [(0, False), (3, True)])
def test_documents_of_unlabelled_topics_are_outside(outside, is_open):
    D, states, which = blobs(4, 10, outside=outside)
    guess = expit(8 * D[:, :4] - 4)
    found, estimate = learn_outside(D, states, guess, *NO_NAMES)
    assert estimate.is_open == is_open
    if is_open:
        none = found.none(D)
        assert none[which >= 4].min() > 0.7
        assert none[which < 4].mean() < 0.25
        assert estimate.share == pytest.approx((which[len(states) :] >= 4).mean(), abs=0.15)


def test_with_few_labels_the_probability_is_a_rank():
    D, states, _ = blobs(4, 3, outside=2)
    assert few_labels(states == 1)
    assert not few_labels(np.ones((8, 2), dtype=bool))
    assert few_labels(np.zeros((5, 2), dtype=bool))
    found, _ = learn_outside(D, states, np.full((len(D), 4), 0.25), *NO_NAMES)
    assert found.probability[0] == 0.75
    assert found.probability[-1] == 0.25
    none = found.none(D)[len(states) :]
    assert none.mean() == pytest.approx(0.5, abs=0.02)
    assert none.min() >= 0.25


def test_evidence_of_new_documents():
    outside = Outside(np.eye(2)[None], np.array([[0.5, 2.0]]), np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    # Scores relative to normal ones are (2, 0) and (0, 0.25); the evidence is the root of their length.
    np.testing.assert_allclose(outside.none(np.array([[1.0, -1], [0, 0.5], [0, 0]])), [0, 0.5, 1])
