"""Documents without a known topic: their share against a slow loop, groups and their importance, P(none)."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from problems import planted_rows
from scipy.special import logit
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import adjusted_rand_score

from topicsteer.guidance.classes import Task, log_ratios
from topicsteer.guidance.constants import CORE, FEW_LABELS, GROUP_SHARE, LEAST_CORE, OPEN_SHARE
from topicsteer.guidance.features import unit_rows
from topicsteer.guidance.guide import free_shares
from topicsteer.guidance.open_world import (
    TAILS,
    GroupInput,
    ShareOutside,
    calibrate_none,
    documents_per_label,
    find_groups,
    group_positions,
    merge_order,
    number_of_groups,
    share_outside,
    with_groups,
)
from topicsteer.guidance.regression import Rivalry
from topicsteer.labels.forest import FLAT
from topicsteer.labels.supervision import assign_folds
from topicsteer.system.threads import workers

# --- is the world open? ---


def blobs(n_topics, labelled, size=60, outside=0, seed=0):
    """Features of documents around one corner per topic, labels of the first documents of the first topics."""
    rng = np.random.default_rng(seed)
    which = np.repeat(np.arange(n_topics + outside), size)
    D = np.eye(n_topics + outside, 20)[which] + 0.15 * rng.normal(size=(len(which), 20))
    first = np.concatenate([np.flatnonzero(which == k)[:labelled] for k in range(n_topics)])
    order = np.concatenate([first, np.setdiff1d(np.arange(len(which)), first)])
    given = which[first][:, None] == np.arange(n_topics)
    return (D / np.linalg.norm(D, axis=1, keepdims=True))[order].astype(np.float32), given, which[order]


def test_the_share_compares_tails_of_hidden_and_unlabelled_documents():
    D, given, which = blobs(3, 12, outside=2)
    guess = np.eye(3)[np.minimum(which, 2)]
    n = len(given)
    estimate = share_outside(D, np.arange(n), given, guess)
    fold_of = assign_folds(sp.csr_array(given), 3, seed=0)
    weight = given @ (np.maximum(guess[n:].sum(axis=0), 1) / given.sum(axis=0))  # documents per label
    shares = np.zeros((3, len(TAILS)))
    for fold in range(3):
        target, strength = np.zeros((len(D), 3)), np.ones(len(D))
        seen = np.flatnonzero(fold_of != fold)
        target[seen], strength[seen] = given[seen], 20
        model = Ridge(alpha=100, fit_intercept=False, solver="cholesky").fit(D.astype(float), target, strength)
        scores = model.predict(D.astype(float))
        own = np.flatnonzero(fold_of == fold)
        total, count = (scores[own] * given[own]).sum(axis=0), given[own].sum(axis=0)
        normal = (total + 5 * total.sum() / count.sum()) / (count + 5)
        evidence = np.sqrt(np.linalg.norm(np.maximum(scores, 0) / normal, axis=1))
        for t, tail in enumerate(TAILS):
            order = own[np.argsort(evidence[own])]
            level = evidence[order][np.cumsum(weight[order]) / weight[order].sum() >= tail - 1e-12][0]
            reached = weight[own][evidence[own] >= level].sum() / weight[own].sum()
            shares[fold, t] = max(1 - (evidence[n:] >= level).mean() / reached, 0)
    assert estimate.share == pytest.approx(shares.mean(), abs=1e-5)
    expected = shares.mean() * weight.sum() / np.sqrt((weight**2).sum())
    assert estimate.errors == pytest.approx(expected, rel=1e-4)
    assert not estimate.few


@pytest.mark.parametrize(("outside", "is_open"), [(0, False), (1, True), (3, True)])
@pytest.mark.parametrize("seed", range(2))
def test_documents_of_unlabelled_topics_open_the_world(outside, is_open, seed):
    D, given, which = blobs(4, 40, size=160, outside=outside, seed=seed)
    guess = np.eye(4)[np.minimum(which, 3)]
    estimate = share_outside(D, np.arange(160), given, guess)
    assert estimate.is_open(False) == is_open
    assert estimate.share == pytest.approx((which[160:] >= 4).mean(), abs=0.1)


def test_documents_without_features_do_not_open_the_world():
    D, given, which = blobs(4, 20)
    guess = np.eye(4)[which]
    plain = share_outside(D, np.arange(80), given, guess)
    empty = np.zeros((200, 20), dtype=np.float32)
    found = share_outside(np.vstack([D, empty]), np.arange(80), given, np.vstack([guess, np.full((200, 4), 0.25)]))
    assert found.share == pytest.approx(plain.share)
    assert not found.is_open(False)


def test_threads_do_not_change_the_share():
    D, given, which = blobs(4, 10, outside=2)
    found = []
    for threads in (1, 2):
        with workers(threads) as run:
            found.append(share_outside(D, np.arange(40), given, np.eye(4)[np.minimum(which, 3)], run))
    assert found[0] == found[1]


def test_without_hidden_or_unlabelled_documents_nothing_is_known():
    D, given, _ = blobs(2, 5)
    assert share_outside(D[:10], np.arange(10), given, np.zeros((10, 2))) == ShareOutside()
    assert share_outside(D, np.array([0, 5]), given[[0, 5]], np.zeros((120, 2))) == ShareOutside()
    assert share_outside(D, np.arange(0), given[:0], np.zeros((120, 2))) == ShareOutside()


def test_an_open_world_needs_more_than_chance():
    assert ShareOutside(0.2, 2.0, few=False).is_open(False)
    assert not ShareOutside(0.2, 1.9, few=False).is_open(False)
    assert not ShareOutside(0.9 * OPEN_SHARE, 9.0, few=False).is_open(False)
    assert not ShareOutside(0.9, 99.0, few=True).is_open(False)  # few labels do not show the share
    assert ShareOutside(0.2).is_open(asked=True)


def test_a_document_that_many_topics_could_have_drawn_stands_for_fewer():
    """Ten labels per topic and 30 documents: each label stands for three. A document of both topics had two chances."""
    given = np.zeros((16, 2), dtype=bool)
    given[:5, 0], given[5:10, 1], given[10:15] = True, True, True
    expected = np.append(np.repeat([3.0, 3.0, 1.5], 5), 0)
    np.testing.assert_allclose(documents_per_label(given, np.full((60, 2), 0.5)), expected)


# --- groups ---


def planted_groups(n_topics=6, known=2, per_topic=5, size=30):
    """Input with labels of the first topics, and the topic of each document."""
    X, which = planted_rows(n_topics, size)
    D = unit_rows(X @ np.linalg.svd(X.toarray(), full_matrices=False)[2][: 2 * n_topics].T)
    rows = np.sort(np.concatenate([np.flatnonzero(which == k)[:per_topic] for k in range(known)]))
    return GroupInput(X, D, rows, np.eye(known)[which[rows]]), which


def test_groups_are_the_planted_topics():
    given, which = planted_groups()
    R = find_groups(given, 4)
    assert R.shape == (180, 6)
    np.testing.assert_allclose(R.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(R[given.rows], np.pad(given.target, ((0, 0), (0, 4))))
    assert adjusted_rand_score(which, R.argmax(axis=1)) > 0.9
    assert (R[which < 2].argmax(axis=1) == which[which < 2]).mean() > 0.95


def test_more_groups_than_topics_do_not_mix_topics():
    given, which = planted_groups()
    best = find_groups(given, 8).argmax(axis=1)
    pure = [np.bincount(which[best == k]).max() for k in np.unique(best)]
    assert sum(pure) / len(which) > 0.9


def test_groups_without_known_topics():
    given, which = planted_groups(4)
    alone = GroupInput(given.X, given.D, given.rows[:0], np.zeros((0, 0)))
    assert adjusted_rand_score(which, find_groups(alone, 4).argmax(axis=1)) > 0.9


def test_groups_do_not_depend_on_threads():
    given, _ = planted_groups()
    found = []
    for threads in (1, 3):
        with workers(threads) as run:
            found.append(find_groups(replace(given, run=run), 4))
    np.testing.assert_array_equal(*found)


def test_earlier_groups_are_kept():
    given, _ = planted_groups()
    before = find_groups(given, 4)[:, 2:][:, [3, 1, 0, 2]]  # in another order
    after = find_groups(given, 4, before)
    free = before.sum(axis=1) > 0.5
    assert (after[free, 2:].argmax(axis=1) == before[free].argmax(axis=1)).mean() > 0.95


def test_identical_documents_have_groups():
    X = sp.csr_array(np.tile([[0.6, 0.8]], (20, 1)).astype(np.float32))
    given = GroupInput(X, X.toarray(), np.array([0]), np.ones((1, 1)))
    R = find_groups(given, 3)
    assert np.isfinite(R).all()
    np.testing.assert_allclose(R.sum(axis=1), 1, rtol=1e-5)


def test_the_positions_of_groups_have_a_fixed_share_of_meaning():
    Z, M = unit_rows(np.eye(3, 4)), unit_rows(np.ones((3, 2)))
    D = group_positions(Z, M)
    np.testing.assert_allclose(np.square(D[:, 4:]).sum(axis=1), GROUP_SHARE, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(D, axis=1), 1, rtol=1e-5)
    assert group_positions(Z, M[:, :0]) is Z


@pytest.mark.parametrize("seed", range(3))
def test_groups_merge_where_k_means_loses_least(seed):
    sums = np.random.default_rng(seed).random((7, 4)) * np.arange(1, 8)[:, None]
    pairs = merge_order(sums)
    assert pairs.shape == (6, 2)
    clusters = {k: [k] for k in range(7)}
    for kept, joins in pairs.tolist():
        length = {
            pair: np.linalg.norm(sums[clusters[pair[0]] + clusters[pair[1]]].sum(axis=0))
            for pair in itertools.combinations(clusters, 2)
        }
        alone = {k: np.linalg.norm(sums[own].sum(axis=0)) for k, own in clusters.items()}
        cost = {(a, b): alone[a] + alone[b] - length[a, b] for a, b in length}
        assert cost[kept, joins] == pytest.approx(min(cost.values()))
        clusters[kept] += clusters.pop(joins)
    assert merge_order(sums[:1]).shape == (0, 2)


@pytest.mark.parametrize(
    ("known", "share", "wanted", "n", "expected"),
    [
        (10, 0.5, 0, 1000, 17),
        (10, 0.5, 0, 10_000, 20),
        (10, 0.25, 0, 1000, 7),
        (10, 0.5, 30, 1000, 30),
        (10, 0.0, 0, 1000, 3),
        (2, 0.4, 2, 1000, 3),
        (2, 0.3, 2, 1000, 2),
        (10, 0.99, 0, 10_000, 60),
        (10, 0.5, 0, 50, 3),
        (10, 0.5, 9, 50, 5),
        (2, 0.5, 4, 9, 0),
    ],
)
def test_the_number_of_groups(known, share, wanted, n, expected):
    assert number_of_groups(known, share, wanted, n) == expected


def task_of(X, rows, states, n_known, more=0):
    Z = unit_rows(X.toarray())
    nobody = np.zeros(0, dtype=np.int64)
    rivalry = Rivalry.of(FLAT, np.arange(n_known), more)
    given = np.asarray(states, dtype=np.int8)
    return Task(X, Z, Z[:, :0], np.asarray(rows), given, np.ones(len(rows), bool), nobody, n_known, rivalry)


def test_sure_documents_are_the_labels_of_a_group():
    X, _ = planted_rows(2, 20)
    R = np.zeros((40, 4))
    R[:, 0] = 1
    R[3:30] = np.column_stack([np.zeros(27), np.zeros(27), np.linspace(0.99, 0.3, 27), np.linspace(0.01, 0.7, 27)])
    states = [[1, 0, 0], [0, 1, 0], [0, -1, -1], [0, 0, 1]]  # a topic, a topic, a forbidden topic, none
    task = task_of(X, [0, 1, 2, 3], states, 2, more=1)
    found = with_groups(task, R)
    assert (found.n_classes, found.n_known) == (4, 2)
    assert found.states[:4].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, -1, -1, -1], [0, 0, 1, 0]]
    core = int(max(LEAST_CORE, CORE * 1))
    assert found.rows[4 : 4 + core].tolist() == list(range(4, 4 + core))  # not the labelled document 3
    assert found.rows[4 + core :].tolist() == list(range(29, 29 - core, -1))
    assert found.states[4:].tolist() == [[0, 0, 1, 0]] * core + [[0, 0, 0, 1]] * core
    assert found.hideable.tolist() == [True] * 4 + [False] * (2 * core)
    members, judged = found.rivalry.cuts[0]
    assert members.tolist() == judged.tolist() == [0, 1, 2, 3]
    vague = with_groups(task, np.full((40, 4), 0.25))
    assert len(vague.rows) == 4  # nobody is sure


# --- P(none) ---


def hidden_scores(n=80, seed=0):
    """A task of documents with a topic and without one, and hidden log odds of two topics and two groups."""
    rng = np.random.default_rng(seed)
    outside = rng.random(n) < 0.4
    states = np.where(outside[:, None], [0, 0, 1, 0], [1, 0, 0, 0])
    hidden = rng.normal(size=(n, 4)) + np.where(outside[:, None], [-0.5, -0.5, 1, 0.2], [0.5, 0, -1, -1])
    X = sp.csr_array(np.eye(n, 5, dtype=np.float32))
    return task_of(X, np.arange(n), states, 2, more=2), hidden.astype(np.float32), outside


class Learnt:
    def __init__(self, hidden):
        self.hidden = hidden


@pytest.mark.parametrize("seed", range(2))
def test_p_none_is_calibrated_like_a_logistic_regression(seed):
    task, hidden, outside = hidden_scores(seed=seed)
    hidden[5] = np.nan  # never hidden
    tops = np.array([True, True])
    found = calibrate_none(Learnt(hidden), task, tops, np.ones(len(task.rows), dtype=bool))
    rows = np.flatnonzero(np.isfinite(hidden).all(axis=1))
    P = 1 / (1 + np.exp(-hidden[rows].astype(float)))
    x = logit(P[:, 2:].sum(axis=1) / P.sum(axis=1))
    grid = [penalised(found + shift, x, outside[rows]) for shift in np.vstack([np.zeros((1, 2)), 0.01 * np.eye(2)])]
    assert grid[0] == min(grid)
    assert grid[0] <= min(penalised(found - shift, x, outside[rows]) for shift in 0.01 * np.eye(2))
    plain = LogisticRegression(C=1e9).fit(x[:, None], outside[rows])
    many = calibrate_none(
        Learnt(np.tile(hidden, (200, 1))), copies(task, 200), tops, np.ones(200 * len(task.rows), dtype=bool)
    )
    np.testing.assert_allclose(many, [plain.coef_[0, 0], plain.intercept_[0]], rtol=0.02)  # the pull fades


def penalised(v, x, y):
    z = v[0] * x + v[1]
    return np.logaddexp(0, np.where(y, -z, z)).sum() + ((v - [1, 0]) ** 2).sum()


def copies(task, times):
    return replace(task, rows=np.tile(task.rows, times), states=np.tile(task.states, (times, 1)))


def test_few_labelled_outsiders_leave_p_none_as_it_is():
    task, hidden, outside = hidden_scores()
    drawn = np.ones(len(task.rows), dtype=bool)
    for own in (outside, ~outside):
        states = task.states.copy()
        states[np.flatnonzero(own)[FEW_LABELS - 1 :]] = -1
        unchanged = calibrate_none(Learnt(hidden), replace(task, states=states), np.array([True, True]), drawn)
        assert unchanged.tolist() == [1, 0]
    hidden[:] = np.nan
    assert calibrate_none(Learnt(hidden), task, np.array([True, True]), drawn).tolist() == [1, 0]


def test_labels_that_were_not_drawn_at_random_leave_p_none_as_it_is():
    task, hidden, _ = hidden_scores()
    none = np.zeros(len(task.rows), dtype=bool)
    assert calibrate_none(Learnt(hidden), task, np.array([True, True]), none).tolist() == [1, 0]
    assert calibrate_none(Learnt(hidden), task, np.array([True, True]), ~none).tolist() != [1, 0]


def test_p_none_is_the_share_of_the_groups():
    P = np.array([[0.6, 0.2, 0.1, 0.1], [0.0, 0.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0]])
    free, none = free_shares(P, 2, np.array([True, True]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(none, [0.2, 1, 0])
    np.testing.assert_allclose(free, [[0.1, 0.1], [1, 0], [0, 0]])
    below, none = free_shares(P, 2, np.array([True, False]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(none[0], 0.2 / 0.8)  # topics below others do not count again
    np.testing.assert_allclose(below.sum(axis=1), none)
    free, none = free_shares(P, 2, np.array([True, True]), np.array([2.0, 1.0]))
    assert none[0] == pytest.approx(1 / (1 + np.exp(-(2 * logit(0.2) + 1))))
    np.testing.assert_allclose(free.sum(axis=1), none, atol=1e-5)


# --- the importance of groups ---


def test_the_ratios_of_an_empty_group_are_finite():
    X, _ = planted_rows(2)
    totals = np.asarray(X.sum(axis=0)).reshape(-1, 1)
    assert np.isfinite(log_ratios(np.full((16, 2), 0.03, dtype=np.float32), totals)).all()
