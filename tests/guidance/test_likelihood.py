"""One likelihood for one and several topics: against scipy, a slow twin, and with planted mixes."""

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from scipy.special import expit, log_softmax, logsumexp

from topicsteer.guidance.regression import MAX_COUPLING, Mix, Rivalry, learn_mix, log_loss, log_sum
from topicsteer.labels.forest import FLAT, Forest

# Topics 1 and 2 are below topic 0, topic 3 below topic 1; topic 4 stands alone.
TREE = Forest((-1, 0, 0, 1, -1))
FOREST = [FLAT, Forest((-1,) * 5), TREE]


def draw(k=5, n=40, scores=3, seed=0, scale=2.0):
    rng = np.random.default_rng(seed)
    return [scale * rng.normal(size=(n, k)) for _ in range(scores)], rng.integers(0, 2, (n, k)).astype(float)


def rivalry_of(forest, k=5, more=0):
    return Rivalry.of(forest, np.arange(k), more)


@pytest.mark.parametrize("more", [0, 2])
def test_all_other_topics_of_a_flat_list_are_rivals(more):
    (S,), _ = draw(5 + more, scores=1)
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
    (S,), _ = draw(len(topics) + more, n=6, scores=1, seed=len(parents))
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
    (S,), _ = draw(scores=1)
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
    (S,), _ = draw(5 + more, scores=1)
    first, then = rivalry_of(forest, more=more), rivalry_of(forest).with_more(more, 5)
    np.testing.assert_array_equal(first.others(S), then.others(S))
    higher = S.copy()
    higher[:, -1] += 1
    assert (then.others(higher)[:, :-1] > then.others(S)[:, :-1]).all()
    grown = rivalry_of(forest, more=1).with_more(more - 1, 6)
    np.testing.assert_array_equal(grown.others(S), first.others(S))


def test_a_coupling_of_one_is_a_softmax_and_of_zero_independent_topics():
    scores, _ = draw()
    weights = np.array([0.5, 2.0, 0.1])
    S = sum(weight * score for weight, score in zip(weights, scores, strict=True))
    rivalry = rivalry_of(FLAT)
    P = expit(Mix(weights, 1.0, 0.0).odds(scores, rivalry))
    np.testing.assert_allclose(P, np.exp(log_softmax(S, axis=1)), rtol=1e-5)
    np.testing.assert_allclose(Mix(weights, 0.0, -0.5).odds(scores, rivalry), S - 0.5, rtol=1e-5, atol=1e-6)
    between = Mix(weights, 0.5, 0.0).odds(scores, rivalry)
    np.testing.assert_allclose(between, S - rivalry.others(S) / 2, rtol=1e-5, atol=1e-5)
    mix = Mix(weights, 0.3, -2.0)
    again = Mix.of(mix.vector)
    np.testing.assert_array_equal(again.weights, weights)
    assert (again.coupling, again.intercept) == (0.3, -2.0)


def test_a_single_topic_has_no_rival():
    scores, _ = draw(k=1)
    odds = Mix(np.ones(3), 1.0, 0.25).odds(scores, rivalry_of(FLAT, 1))
    np.testing.assert_allclose(odds, sum(scores) + 0.25, rtol=1e-5, atol=1e-6)


def test_scores_in_single_precision_stay_so():
    scores, _ = draw()
    single = [score.astype(np.float32) for score in scores]
    before = [score.copy() for score in single]
    assert Mix(np.ones(3), 0.5, 1.0).odds(single, rivalry_of(TREE)).dtype == np.float32
    np.testing.assert_array_equal(single, before)  # not changed in place


@pytest.mark.parametrize("forest", FOREST, ids=["any", "flat", "tree"])
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_its_slow_twin_and_the_gradient_its_slope(forest, seed):
    scores, Y = draw(7, n=12, seed=seed)
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
    scores, _ = draw(n=4000, scores=2, seed=1)
    planted = Mix(np.array([1.5, 0.5]), coupling, -0.4)
    P = expit(planted.odds(scores, rivalry_of(FLAT)))
    Y = (np.random.default_rng(2).random(P.shape) < P).astype(float)
    found = learn_mix(scores, Y, np.ones(Y.shape), rivalry_of(FLAT), Mix(np.ones(2), 1.0, 0.0))
    np.testing.assert_allclose(found.vector, planted.vector, atol=0.1)


def test_useless_scores_get_no_weight_and_unknown_labels_do_not_count():
    scores, Y = draw(n=500, scores=2)
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
    np.testing.assert_array_equal(learn_mix(scores, Y, weight, rivalry_of(FLAT), start).vector, found.vector)


def test_without_labels_the_mix_stays_at_its_start():
    scores, Y = draw()
    start = Mix(np.array([0.5, 8.0, 5.0]), 1.0, 0.0)
    found = learn_mix(scores, Y, np.zeros(Y.shape), rivalry_of(TREE), start)
    np.testing.assert_allclose(found.vector, start.vector)
