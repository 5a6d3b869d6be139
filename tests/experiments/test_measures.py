from itertools import combinations, permutations

import numpy as np
import pytest
import scipy.sparse as sp

from experiments.shared.measures import (
    coherence,
    compare_topics,
    diversity,
    match_topics,
    scale_weights,
    stability,
    weighted_jaccard,
)


def weights(seed, n=50, d=6, share=0.4):
    rng = np.random.default_rng(seed)
    return rng.gamma(0.5, size=(n, d)) * (rng.random((n, d)) < share)


def slow_jaccard(A, B):
    pairs = [[(np.minimum(a, b).sum(), np.maximum(a, b).sum()) for b in B.T] for a in A.T]
    return np.array([[low / high if high else 0 for low, high in row] for row in pairs])


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_weighted_jaccard_is_the_equation(binary, form):
    A, B = weights(0), weights(1, d=4)
    A[:, 2] = B[:, 3] = 0
    B = (B > 0).astype(float) if binary else B
    A = A / A.max()
    np.testing.assert_allclose(weighted_jaccard(form(A), form(B)), slow_jaccard(A, B), atol=1e-12)
    for size in (1.5, 3, 1e-3):
        np.testing.assert_allclose(weighted_jaccard(form(size * A), form(B)), slow_jaccard(size * A, B), atol=1e-12)
    tiny = weighted_jaccard(form(1e-3 * A), form(1e-3 * B))
    np.testing.assert_allclose(tiny, slow_jaccard(1e-3 * A, 1e-3 * B), atol=1e-12)


def test_scaling_is_the_authors():
    W = weights(2)
    theirs = W / W.max()
    theirs[theirs < 0.001] = 0
    for size in (1e-5, 1, 1e5):
        np.testing.assert_allclose(scale_weights(size * W).toarray(), theirs)
    assert scale_weights([[1.0, 0.001, 0.0009]]).toarray().tolist() == [[1.0, 0.001, 0.0]]
    rows = scale_weights(np.vstack([W, np.zeros(6)]), "rows", cutoff=0).toarray()
    assert set(rows.sum(axis=1).round(9)) <= {0.0, 1.0}
    assert scale_weights(np.zeros((3, 2))).nnz == 0
    np.testing.assert_allclose(scale_weights(W, "none", cutoff=0).toarray(), W)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_matching_is_the_best_of_all(shape):
    similarity = np.random.default_rng(3).random(shape)
    matching = match_topics(similarity)
    few, many = sorted(shape)
    wide = similarity if shape[0] <= shape[1] else similarity.T
    best = max(sum(wide[i, p[i]] for i in range(few)) for p in permutations(range(many), few))
    assert matching.similarity.sum() == pytest.approx(best)
    assert matching.mean == pytest.approx(best / shape[1])
    assert matching.resolved() == (matching.similarity > 0.1).sum()
    used = matching.found[matching.found >= 0]
    assert len(set(used)) == len(used) == few
    assert (matching.found == -1).sum() == shape[1] - few


def test_resolved_is_more_similar_than_the_threshold():
    assert [match_topics([[similarity]]).resolved() for similarity in (0.1, 0.1001)] == [0, 1]


def test_topics_in_any_order_are_found_and_compared():
    truth = (weights(4) > 0).astype(float)
    order = np.random.default_rng(0).permutation(6)
    matching = compare_topics(truth[:, order], truth)
    np.testing.assert_array_equal(order[matching.found], np.arange(6))
    assert matching.mean == 1
    runs = [weights(seed, d=4) for seed in range(3)]
    scaled = [run / run.max() * (run / run.max() >= 0.001) for run in runs]
    pairs = [match_topics(slow_jaccard(a, b)).mean for a, b in combinations(scaled, 2)]
    assert stability(runs) == pytest.approx(np.mean(pairs))
    assert stability(runs[:2]) == pytest.approx(pairs[0])


def test_comparisons_scale_weights_as_they_are_told():
    W, V = weights(11), weights(12)
    for scale, cutoff in (("rows", 0.2), ("largest", 0.1), ("none", 0.0)):
        scaled = [scale_weights(some, scale, cutoff=cutoff).toarray() for some in (W, V)]
        expected = match_topics(slow_jaccard(scaled[0], V > 0)).similarity
        np.testing.assert_allclose(compare_topics(W, V > 0, scale, cutoff=cutoff).similarity, expected)
        assert stability([W, V], scale, cutoff=cutoff) == pytest.approx(match_topics(slow_jaccard(*scaled)).mean)


def slow_coherence(X, terms, measure):
    present, n = X > 0, len(X)
    values = []
    for topic in terms:
        pairs = []
        for i, a in enumerate(topic):
            for b in topic[:i]:
                both, one, other = (present[:, a] & present[:, b]).sum(), present[:, a].sum(), present[:, b].sum()
                if measure == "umass":
                    pairs.append(np.log((both + 1) / other))
                elif both == 0:
                    pairs.append(-1.0)
                else:
                    pairs.append(np.log((both / n) / (one / n * other / n)) / -np.log(both / n))
        values.append(np.mean(pairs))
    return values


@pytest.mark.parametrize("measure", ["npmi", "umass"])
def test_coherence_is_its_formula(measure):
    X = weights(7, n=80, d=12, share=0.3)
    X[:, 3] = X[:, 4] * 2  # always together
    terms = np.random.default_rng(8).permutation(12).reshape(3, 4)
    X[1:, 5], X[0, 5] = 0, 1  # once
    np.testing.assert_allclose(coherence(sp.csr_array(X), terms, measure), slow_coherence(X, terms, measure))


def test_a_term_of_every_document_or_of_none():
    X = np.array([[1, 1, 0], [1, 1, 0]])
    assert coherence(X, [[0, 1]]).tolist() == [1.0]
    assert coherence(X, [[0, 2]]).tolist() == [-1.0]


def test_diversity():
    assert diversity([[0, 1], [2, 3]]) == 1
    assert diversity([[0, 1], [0, 1]]) == 0.5


def test_wrong_input_is_explained():
    with pytest.raises(ValueError, match="expected 'largest', 'rows' or 'none'"):
        scale_weights([[1.0]], "columns")
    with pytest.raises(ValueError, match="A has 2 documents and B has 3: they need the same documents"):
        weighted_jaccard(np.ones((2, 1)), np.ones((3, 1)))
    with pytest.raises(ValueError, match="negative number or NaN"):
        scale_weights([[-1.0]])
    with pytest.raises(ValueError, match="at least two"):
        stability([np.ones((2, 1))])
    with pytest.raises(ValueError, match="expected 'npmi' or 'umass'"):
        coherence(np.ones((2, 2)), [[0, 1]], "c_v")
