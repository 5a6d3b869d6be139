import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import entropy
from sklearn.metrics import adjusted_rand_score

from topicsteer.guidance import discover
from topicsteer.guidance.discover import GroupTree, MixtureInput, continue_groups, document_weights, find_groups


def corpus(n_topics=5, known=2, size=40, seed=0, threads=1):
    """Documents of topics with terms of their own; the first topics are known, with five labels each."""
    rng = np.random.default_rng(seed)
    which = np.repeat(np.arange(n_topics), size)
    X = rng.random((len(which), n_topics * 6)) * (rng.random((len(which), n_topics * 6)) < 0.1)
    X += 2 * rng.random(X.shape) * (which[:, None] == np.arange(X.shape[1]) // 6)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    U, S, _ = np.linalg.svd(X, full_matrices=False)
    Z = U[:, :6] * S[:6]
    topics = (which[:, None] == np.arange(known)) * 0.9 + 0.05
    fixed = (which < known) & (np.arange(len(which)) % size < 5)
    topics[fixed] = which[fixed][:, None] == np.arange(known)
    none = np.where(which < known, 0.1, 0.9)
    none[fixed] = 0
    Z = (Z / np.linalg.norm(Z, axis=1, keepdims=True)).astype(np.float32)
    return MixtureInput(sp.csr_array(X.astype(np.float32)), Z, topics, none, fixed, threads), which


def slow_mixture(given, groups, iterations):
    """Naive Bayes with expectation and maximisation, one document at a time."""
    X = given.X.toarray().astype(float)
    X *= discover.LENGTH / X.sum(axis=1, keepdims=True)
    weight = document_weights(given.positions).astype(float)
    none = np.clip(given.none, 0.02, 0.98)
    prior = np.array([(1 - q) * row / row.max() for q, row in zip(none, given.topics, strict=True)]).clip(1e-12)
    R = [np.append(p * max(1 - g.sum(), 0), g) for p, g in zip(prior, groups, strict=True)]
    R = np.array([row / row.sum() for row in R])
    R[given.fixed] = np.pad(given.topics[given.fixed], ((0, 0), (0, groups.shape[1])))
    for _ in range(iterations):
        terms = np.full((R.shape[1], X.shape[1]), 0.01)
        for w, r, x in zip(weight, R, X, strict=True):
            terms += w * np.outer(r, x)
        terms /= terms.sum(axis=1, keepdims=True)
        sizes = (weight[:, None] * R).sum(axis=0) / weight.sum()
        for i, x in enumerate(X):
            odds = np.log(terms) @ x + np.log(np.append(prior[i], [none[i]] * groups.shape[1])) + np.log(sizes)
            p = np.exp(odds - odds.max())
            R[i] = p / p.sum()
        R[given.fixed] = np.pad(given.topics[given.fixed], ((0, 0), (0, groups.shape[1])))
    return R


def test_the_mixture_matches_its_slow_twin():
    given, _ = corpus()
    groups = np.random.default_rng(1).random((len(given.none), 3)).astype(np.float32) * given.none[:, None] / 3
    found = discover.Mixture.of(given, map).fit(groups, 4)
    np.testing.assert_allclose(found, slow_mixture(given, groups, 4), atol=2e-4)
    np.testing.assert_allclose(continue_groups(given, groups), slow_mixture(given, groups, 8)[:, 2:], atol=2e-4)


def test_groups_are_the_planted_topics_and_merge_back_to_them():
    given, which = corpus()
    groups, tree = find_groups(given, 9)
    outside = which >= 2
    topics = tree.cut(3)
    assert len(topics) == 3
    label = np.stack([groups[:, list(topic)].sum(axis=1) for topic in topics]).argmax(axis=0)
    assert adjusted_rand_score(which[outside], label[outside]) > 0.95
    assert groups[which < 2].sum(axis=1).mean() < 0.05
    assert tree.sizes.sum() == pytest.approx(outside.sum(), rel=0.1)


@pytest.mark.parametrize("threads", [2, 3])
def test_groups_do_not_depend_on_threads(threads):
    one, tree = find_groups(corpus(size=discover.ROWS // 4)[0], 5)
    some, again = find_groups(corpus(size=discover.ROWS // 4, threads=threads)[0], 5)
    np.testing.assert_array_equal(one, some)
    np.testing.assert_array_equal(tree.merges, again.merges)


def test_each_merge_is_the_pair_that_differs_least():
    given, _ = corpus()
    mixture = discover.Mixture.of(given, map)
    memberships = np.random.default_rng(2).random((len(given.none), 6)).astype(np.float32) ** 4
    mass = (mixture.X.toarray().T.astype(float) @ (memberships * mixture.weight[:, None]).astype(float)).T
    tree = discover.merge_tree(mass, np.ones(6))
    alive = {k: mass[k] for k in range(6)}
    for (a, b), cost in zip(tree.merges.tolist(), tree.costs, strict=True):
        costs = {}
        for i, j in itertools.combinations(sorted(alive), 2):
            m, n = alive[i].sum(), alive[j].sum()
            lost = (m + n) * entropy(alive[i] + alive[j]) - m * entropy(alive[i]) - n * entropy(alive[j])
            costs[i, j] = lost / np.sqrt(m * n / (m + n))
        assert min(costs, key=costs.get) == (a, b)
        assert cost == pytest.approx(costs[a, b], rel=1e-4)
        alive[a] = alive[a] + alive.pop(b)


def test_a_cut_covers_most_of_the_importance_and_leaves_tiny_and_vague_groups_out():
    merges = np.array([[0, 1], [0, 2], [0, 3]])
    tree = GroupTree(merges, np.arange(3.0), np.array([64.0, 49, 16, 1]), np.ones(4))  # importance 8, 7, 4, 1
    assert tree.cut(4) == [(0,), (1,), (2,), (3,)]
    assert tree.cut(3) == [(0,), (1,), (2,)]
    assert tree.cut(2) == [(0, 1), (2,)]  # without the merge, the two most important would have 15 of 20
    assert tree.cut(1) == [(0, 1, 2, 3)]
    assert tree.cut(0) == []
    assert tree.size((1, 3)) == 50
    # A vague group does not make the others merge, however large it is. Topics are still ordered by size.
    vague = GroupTree(merges, np.arange(3.0), np.array([16.0, 36, 400, 25]), np.array([1, 0.9, 0.3, 1]))
    assert vague.cut(3) == [(1,), (3,), (0,)]
    assert vague.cut(4) == [(2,), (1,), (3,), (0,)]


def test_recurring_groups_are_those_that_most_runs_find():
    rng = np.random.default_rng(0)
    true = np.repeat(np.eye(3), 20, axis=0)
    runs = []
    for _ in range(4):  # each run has two of three groups in any order, and an accidental one
        accident = np.zeros((60, 1))
        accident[rng.choice(60, 8, replace=False)] = 0.5
        found = np.hstack([true[:, :2] + 0.05 * rng.random((60, 2)), accident])
        runs.append(found[:, rng.permutation(3)].astype(np.float32))
    runs.append(np.hstack([true[:, [2, 0, 1]]]).astype(np.float32))
    runs.append(np.hstack([true[:, [1, 2, 0]]]).astype(np.float32))
    found = discover.recurring_groups(np.hstack(runs), runs[0].shape[1], np.ones(60, dtype=np.float32))
    assert found.shape == (60, 3)
    assert found.sum(axis=1).max() <= 1 + 1e-6
    assert np.corrcoef(np.hstack([found, true]).T)[:3, 3:].max(axis=0).min() > 0.95
    np.testing.assert_array_equal(discover.recurring_groups(runs[0][:, :1], 1, np.ones(60)), runs[0][:, :1])


@pytest.mark.parametrize("seed", range(5))
def test_every_cut_is_a_partition_of_some_groups_largest_first(seed):
    rng = np.random.default_rng(seed)
    n = 12
    alive, merges = list(range(n)), []
    while len(alive) > 1:
        a, b = sorted(rng.choice(alive, 2, replace=False).tolist())
        merges.append((a, b))
        alive.remove(b)
    tree = GroupTree(np.array(merges), np.arange(n - 1.0), rng.exponential(size=n), rng.random(n))
    for wanted in range(1, n + 1):
        topics = tree.cut(wanted)
        flat = [k for topic in topics for k in topic]
        assert len(flat) == len(set(flat))
        assert len(topics) <= wanted
        assert tree.importance[flat].sum() >= 0.8 * tree.importance.sum()
        assert [tree.size(t) for t in topics] == sorted((tree.size(t) for t in topics), reverse=True)


def test_documents_in_dense_regions_weigh_less_and_empty_ones_nothing():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 8))
    Z[:40] = Z[0] + 0.01 * rng.normal(size=(40, 8))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    Z[-1] = 0
    weight = document_weights(Z.astype(np.float32))
    assert weight[:40].max() < weight[40:-1].min()
    assert weight[-1] == 0
    assert weight.max() <= 5
