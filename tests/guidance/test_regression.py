"""The regressions on labelled documents and names, against scikit-learn and explicit refits."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression, Ridge

from topicsteer.guidance.regression import Examples, Rivalry, Span, balanced, left_out_loss, ridge, softmax_regression
from topicsteer.labels.forest import FLAT, Forest

STEPS = 2_000  # until nothing changes


def draw(n=60, dimensions=8, k=3, seed=0):
    """Features with a weak trace of the topics, and the topics."""
    rng = np.random.default_rng(seed)
    which = np.arange(n) % k
    D = rng.normal(size=(n, dimensions)) + np.eye(k, dimensions)[which]
    return (D / np.linalg.norm(D, axis=1, keepdims=True)).astype(np.float32), which


def flat(k):
    return Rivalry.of(FLAT, np.arange(k))


def examples(n=40, names=3, unknown=0.0, seed=0):
    """Documents with some unknown topics, names, and uneven weights."""
    D, which = draw(n + names, seed=seed)
    rng = np.random.default_rng(seed)
    target = np.eye(3)[which]
    target[n:] = np.eye(3)[np.arange(names)]
    target[:4] = [0.5, 0.5, 0]  # documents with two topics
    forbidden = (target == 0) & (rng.random(target.shape) >= unknown)
    forbidden[n:] = False
    return Examples(D, target, forbidden, rng.uniform(0.5, 2, n + names), np.ones(n + names), n)


@pytest.mark.parametrize(("n", "dimensions"), [(60, 8), (30, 50)])
@pytest.mark.parametrize("strength", [0.3, 10.0])
def test_softmax_regression_is_that_of_scikit_learn(n, dimensions, strength):
    D, which = draw(n, dimensions)
    span = Span.of(D)
    F = (D @ span.directions).astype(np.float64)
    found = span.outward(softmax_regression(F, span.values, np.eye(3)[which], flat(3), strength, STEPS))
    theirs = LogisticRegression(C=strength, tol=1e-8, max_iter=5_000).fit(D.astype(np.float64), which)
    np.testing.assert_allclose(log_softmax(D @ found[:-1] + found[-1], axis=1), theirs.predict_log_proba(D), atol=2e-3)


def test_targets_are_shares_and_weights_of_a_document():
    """A target of 3/4 and 1/4 is the document with either topic and these weights; a target of 2 is two documents."""
    D, which = draw(40)
    target = np.eye(3)[which]
    target[0], target[1] = [0.75, 0.25, 0], 2 * target[1]
    span = Span.of(D)
    F = (D @ span.directions).astype(np.float64)
    found = span.outward(softmax_regression(F, span.values, target, flat(3), 2.0, STEPS))
    copies, y = np.vstack([D, D[:1], D[1:2]]), np.append(which, [1, which[1]])
    weight = np.ones(42)
    y[0], weight[[0, 40]] = 0, (0.75, 0.25)
    theirs = LogisticRegression(C=2.0, tol=1e-8, max_iter=5_000).fit(copies.astype(np.float64), y, weight)
    np.testing.assert_allclose(log_softmax(D @ found[:-1] + found[-1], axis=1), theirs.predict_log_proba(D), atol=2e-3)


def test_the_start_does_not_change_the_solution():
    D, which = draw()
    span = Span.of(D)
    F = (D @ span.directions).astype(np.float64)
    given = (F, span.values, np.eye(3)[which], flat(3), 10.0, STEPS)
    one = softmax_regression(*given)
    two = softmax_regression(*given, start=np.random.default_rng(1).normal(size=one.shape))
    np.testing.assert_allclose(*(log_softmax(F @ W[:-1] + W[-1], axis=1) for W in (one, two)), atol=2e-3)
    again = softmax_regression(*given[:-1], 1, start=one)  # the first step finds nothing better
    np.testing.assert_allclose(again, one, atol=1e-4)


def test_each_level_of_a_tree_is_a_softmax_of_its_own():
    D, which = draw(80, k=4)
    forest = Forest((-1, -1, 0, 0, 1, 1))
    target = np.hstack([np.eye(2)[which // 2], np.eye(4)[which]])
    span = Span.of(D)
    F = (D @ span.directions).astype(np.float64)
    rivalry = Rivalry.of(forest, np.arange(6))
    found = softmax_regression(F, span.values, target, rivalry, 10.0, STEPS)
    for members, labels in (([0, 1], which // 2), ([2, 3, 4, 5], which)):
        alone = softmax_regression(F, span.values, np.eye(len(members))[labels], flat(len(members)), 10.0, STEPS)
        ours, theirs = (F @ W[:-1] + W[-1] for W in (found[:, members], alone))
        np.testing.assert_allclose(log_softmax(ours, axis=1), log_softmax(theirs, axis=1), atol=3e-3)


@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_ridge_regression_is_that_of_scikit_learn(unknown):
    own = examples(unknown=unknown)
    model = Ridge(alpha=3.0, fit_intercept=False, solver="cholesky").fit(own.D, own.centred, own.weight)
    np.testing.assert_allclose(ridge(own.D, own, 3.0), model.coef_.T, rtol=1e-4, atol=1e-5)


def test_targets_of_the_ridge_are_centred_where_they_are_known():
    own = examples(unknown=0.3)
    for k in range(3):
        known = [i for i in range(40) if own.target[i, k] > 0 or own.forbidden[i, k]]
        mean = np.average(own.target[known, k], weights=own.weight[known])
        assert own.mean[k] == pytest.approx(mean)
        expected = [own.target[i, k] - mean if i in known else 0 for i in range(40)]
        expected += [(1 - mean) * own.target[i, k] for i in range(40, 43)]  # a name is no rival
        np.testing.assert_allclose(own.centred[:, k], expected)


@pytest.mark.parametrize("seed", range(2))
def test_leave_one_out_equals_refits_without_each_document(seed):
    own = examples(n=25, unknown=0.2, seed=seed)
    ridges, sharpnesses = (0.3, 3.0), (2.0, 16.0)
    found = left_out_loss(own, ridges, sharpnesses)
    assert [pair[1:] for pair in found] == [(a, t) for a in ridges for t in sharpnesses]
    weight = own.weight[:25, None] * own.target[:25]
    for loss, strength, sharpness in found:
        scores = []
        for i in range(25):
            rest = np.arange(28) != i
            model = Ridge(alpha=strength, fit_intercept=False, solver="cholesky")
            model.fit(own.D[rest].astype(float), own.centred[rest], own.weight[rest])
            scores.append(model.predict(own.D[i : i + 1].astype(float))[0])
        expected = -(weight * log_softmax(sharpness * np.array(scores), axis=1)).sum() / weight.sum()
        assert loss == pytest.approx(expected, rel=1e-3)


def test_balanced_weights_favour_rare_topics():
    target = np.array([[1, 0]] * 9 + [[0, 1]] + [[0.5, 0.5]] + [[0, 0]])
    found = balanced(target)
    assert found[:11].mean() == pytest.approx(1)
    sizes = np.array([9.5, 1.5])
    assert found[9] / found[0] == pytest.approx((sizes[0] / sizes[1]) ** 0.5)
    assert found[10] == pytest.approx((found[9] + found[0]) / 2)
    assert found[11] == 1  # labels that only forbid
    assert balanced(np.zeros((2, 3))).tolist() == [1, 1]
    assert balanced(np.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize(("n", "dimensions", "rank"), [(20, 8, 8), (5, 8, 5), (20, 8, 3), (0, 8, 0), (6, 0, 0)])
def test_a_span_has_the_coordinates_of_its_examples(n, dimensions, rank):
    rng = np.random.default_rng(0)
    D = rng.normal(size=(n, dimensions)).astype(np.float32)
    if 0 < rank < min(n, dimensions):
        D = D[:, :rank] @ rng.normal(size=(rank, dimensions)).astype(np.float32)
    span = Span.of(D)
    V = span.directions
    assert V.shape == (dimensions, rank)
    np.testing.assert_allclose(V.T @ V, np.eye(rank), atol=1e-4)
    np.testing.assert_allclose(D @ V @ V.T, D, atol=1e-4)
    np.testing.assert_allclose(span.values, np.square(D @ V).sum(axis=0), rtol=1e-3)


def test_weights_of_coordinates_are_weights_of_features():
    D, _ = draw()
    span = Span.of(D)
    F = D @ span.directions
    W = np.random.default_rng(0).normal(size=(F.shape[1] + 1, 4))
    out = span.outward(W)
    np.testing.assert_array_equal(out[-1], W[-1].astype(np.float32))
    np.testing.assert_allclose(D @ out[:-1], F @ W[:-1], atol=1e-5)
    assert span.outward(W[:-1]).shape == (D.shape[1], 4)
