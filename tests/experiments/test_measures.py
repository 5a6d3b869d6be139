from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp

from experiments.shared.measures import compare_topics, match_topics, scale_weights, weighted_jaccard


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
    assert scale_weights(np.zeros((3, 2))).nnz == 0


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
    V = weights(5)
    expected = match_topics(slow_jaccard(V / V.max() * (V / V.max() >= 0.001), truth)).similarity
    np.testing.assert_allclose(compare_topics(V, truth).similarity, expected)


def test_wrong_input_is_explained():
    with pytest.raises(ValueError, match="A has 2 documents and B has 3: they need the same documents"):
        weighted_jaccard(np.ones((2, 1)), np.ones((3, 1)))
    with pytest.raises(ValueError, match="negative number or NaN"):
        scale_weights([[-1.0]])
