"""The regressions against scikit-learn and refits; the likelihood against scipy, a slow twin and planted mixes."""

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import vector_of
from scipy.optimize import check_grad
from scipy.special import expit, log_softmax, logsumexp
from sklearn.linear_model import LogisticRegression, Ridge

from topicsteer.guidance.regression import (
    MAX_COUPLING,
    Examples,
    Mix,
    Rivalry,
    Span,
    balanced,
    learn_mix,
    left_out_loss,
    log_loss,
    log_sum,
    ridge,
    softmax_regression,
)
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
    return Examples(D, target, forbidden, rng.uniform(0.5, 2, n + names), n)


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


# --- the likelihood ---

# Topics 1 and 2 are below topic 0, topic 3 below topic 1; topic 4 stands alone.
TREE = Forest((-1, 0, 0, 1, -1))
FOREST = [FLAT, Forest((-1,) * 5), TREE]


def draw_scores(k=5, n=40, scores=3, seed=0, scale=2.0):
    rng = np.random.default_rng(seed)
    return [scale * rng.normal(size=(n, k)) for _ in range(scores)], rng.integers(0, 2, (n, k)).astype(float)


def rivalry_of(forest, k=5, more=0):
    return Rivalry.of(forest, np.arange(k), more)


@pytest.mark.parametrize("more", [0, 2])
def test_all_other_topics_of_a_flat_list_are_rivals(more):
    (S,), _ = draw_scores(5 + more, scores=1)
    S[0], S[1, 0], S[2] = 3.0, 80.0, -200.0
    found = rivalry_of(FLAT, 5, more).others(S)
    expected = [logsumexp(np.delete(S, k, axis=1), axis=1) for k in range(5 + more)]
    np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-6)
    np.testing.assert_allclose(log_sum(S)[:, 0], logsumexp(S, axis=1))
    np.testing.assert_allclose(rivalry_of(FLAT, 5, more).log_softmax(S), log_softmax(S, axis=1))


@given(st.lists(st.integers(-1, 5), min_size=1, max_size=7), st.sets(st.integers(0, 6), min_size=1), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_rivals_are_the_topics_of_a_level_and_leaves_above(parents, covered, more):
    forest = Forest(tuple(parent if parent < k else -1 for k, parent in enumerate(parents)))
    topics = np.array(sorted(k for k in covered if k < len(parents)) or [0])
    (S,), _ = draw_scores(len(topics) + more, n=6, scores=1, seed=len(parents))
    found = Rivalry.of(forest, topics, more)
    judged = np.concatenate([members[places] for members, places in found.cuts])
    assert sorted(judged.tolist()) == list(range(len(topics) + more))  # each by one level
    expected = reference.rivals(forest.parents, topics.tolist(), more)
    for k, own in enumerate(expected):
        wanted = logsumexp(S[:, own], axis=1) if own else np.zeros(6)
        np.testing.assert_allclose(found.others(S)[:, k], wanted, rtol=1e-6, atol=1e-9)
        both = logsumexp(S[:, [k, *own]], axis=1)
        np.testing.assert_allclose(found.log_softmax(S)[:, k], S[:, k] - both, rtol=1e-6, atol=1e-9)


def test_a_topic_is_no_rival_of_topics_above_it():
    (S,), _ = draw_scores(scores=1)
    higher = S.copy()
    higher[:, 3] += 10
    before, after = rivalry_of(TREE).others(S), rivalry_of(TREE).others(higher)
    np.testing.assert_allclose(before[:, [0, 1, 3]], after[:, [0, 1, 3]])
    assert (before[:, 4] == after[:, 4]).all()  # a topic without a parent competes with such topics only
    alone = rivalry_of(Forest((-1, 0)), 2).others(S[:, :2])
    assert not alone.any()  # neither has a rival


def test_a_covered_topic_whose_subtopics_are_not_covered_is_a_leaf():
    found = Rivalry.of(Forest((-1, 0, -1, 2, 2)), np.array([0, 2, 3, 4]))
    assert [members.tolist() for members, _ in found.cuts] == [[0, 1], [0, 2, 3]]


@pytest.mark.parametrize("forest", FOREST, ids=["any", "flat", "tree"])
@pytest.mark.parametrize("more", [1, 3])
def test_further_classes_are_rivals_of_all(forest, more):
    (S,), _ = draw_scores(5 + more, scores=1)
    first, then = rivalry_of(forest, more=more), rivalry_of(forest).with_more(more, 5)
    np.testing.assert_array_equal(first.others(S), then.others(S))
    higher = S.copy()
    higher[:, -1] += 1
    assert (then.others(higher)[:, :-1] > then.others(S)[:, :-1]).all()
    grown = rivalry_of(forest, more=1).with_more(more - 1, 6)
    np.testing.assert_array_equal(grown.others(S), first.others(S))


def test_a_coupling_of_one_is_a_softmax_and_of_zero_independent_topics():
    scores, _ = draw_scores()
    weights = np.array([0.5, 2.0, 0.1])
    S = sum(weight * score for weight, score in zip(weights, scores, strict=True))
    rivalry = rivalry_of(FLAT)
    P = expit(Mix(weights, 1.0, 0.0).odds(scores, rivalry))
    np.testing.assert_allclose(P, np.exp(log_softmax(S, axis=1)), rtol=1e-5)
    np.testing.assert_allclose(Mix(weights, 0.0, -0.5).odds(scores, rivalry), S - 0.5, rtol=1e-5, atol=1e-6)
    between = Mix(weights, 0.5, 0.0).odds(scores, rivalry)
    np.testing.assert_allclose(between, S - rivalry.others(S) / 2, rtol=1e-5, atol=1e-5)
    mix = Mix(weights, 0.3, -2.0)
    again = Mix.of(vector_of(mix))
    np.testing.assert_array_equal(again.weights, weights)
    assert (again.coupling, again.intercept) == (0.3, -2.0)


def test_a_single_topic_has_no_rival():
    scores, _ = draw_scores(k=1)
    odds = Mix(np.ones(3), 1.0, 0.25).odds(scores, rivalry_of(FLAT, 1))
    np.testing.assert_allclose(odds, sum(scores) + 0.25, rtol=1e-5, atol=1e-6)


def test_scores_in_single_precision_stay_so():
    scores, _ = draw_scores()
    single = [score.astype(np.float32) for score in scores]
    before = [score.copy() for score in single]
    assert Mix(np.ones(3), 0.5, 1.0).odds(single, rivalry_of(TREE)).dtype == np.float32
    np.testing.assert_array_equal(single, before)  # not changed in place


@pytest.mark.parametrize("forest", FOREST, ids=["any", "flat", "tree"])
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_its_slow_twin_and_the_gradient_its_slope(forest, seed):
    scores, Y = draw_scores(7, n=12, seed=seed)
    rng = np.random.default_rng(seed)
    weight = rng.random(Y.shape) * (rng.random(Y.shape) < 0.8)
    rivalry, A = rivalry_of(forest, more=2), np.stack(scores, axis=-1)
    for vector in (np.array([1.0, 0.5, 0.2, 1.0, 0.0]), rng.random(5) * [3, 3, 3, 1.5, -2]):
        odds = Mix.of(vector).odds(scores, rivalry).astype(float)
        expected = -(weight * np.log(np.where(Y == 1, expit(odds), expit(-odds)))).sum()
        assert log_loss(vector, A, Y, weight, rivalry)[0] == pytest.approx(expected, rel=1e-5)
        error = check_grad(*(lambda v, k=k: log_loss(v, A, Y, weight, rivalry)[k] for k in (0, 1)), vector)
        assert error < 1e-4 * max(np.abs(log_loss(vector, A, Y, weight, rivalry)[1]).max(), 1)


@pytest.mark.parametrize("coupling", [0.0, 0.5, 1.0])
def test_a_planted_mix_is_learnt(coupling):
    scores, _ = draw_scores(n=4000, scores=2, seed=1)
    planted = Mix(np.array([1.5, 0.5]), coupling, -0.4)
    P = expit(planted.odds(scores, rivalry_of(FLAT)))
    Y = (np.random.default_rng(2).random(P.shape) < P).astype(float)
    found = learn_mix(scores, Y, np.ones(Y.shape), rivalry_of(FLAT), Mix(np.ones(2), 1.0, 0.0))
    np.testing.assert_allclose(vector_of(found), vector_of(planted), atol=0.1)


def test_useless_scores_get_no_weight_and_unknown_labels_do_not_count():
    scores, Y = draw_scores(n=500, scores=2)
    Y = (scores[0] > 0).astype(float)
    scores[1] = -scores[0]
    start = Mix(np.array([1.0, 1.0]), 0.5, 0.0)
    weight = np.ones(Y.shape)
    weight[:, 2] = 0
    found = learn_mix(scores, Y, weight, rivalry_of(FLAT), start)
    assert found.weights[1] == 0  # no score counts against its topic
    assert found.weights[0] > 1
    assert 0 <= found.coupling <= MAX_COUPLING
    Y[:, 2] = 1 - Y[:, 2]
    np.testing.assert_array_equal(vector_of(learn_mix(scores, Y, weight, rivalry_of(FLAT), start)), vector_of(found))


def test_without_labels_the_mix_stays_at_its_start():
    scores, Y = draw_scores()
    start = Mix(np.array([0.5, 8.0, 5.0]), 1.0, 0.0)
    found = learn_mix(scores, Y, np.zeros(Y.shape), rivalry_of(TREE), start)
    np.testing.assert_allclose(vector_of(found), vector_of(start))
