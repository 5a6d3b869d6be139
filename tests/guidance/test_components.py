import numpy as np

from topicsteer.guidance.discover import find_components, learn_components, rotated, varimax


def sources(n=400, k=5, seed=0):
    """Sparse loadings of independent topics, and positions: an unknown rotation of them with a little noise."""
    rng = np.random.default_rng(seed)
    S = rng.random((n, k)) * (rng.random((n, k)) < 0.2)
    Q = np.linalg.qr(rng.normal(size=(k, k)))[0]
    return S, S @ Q + 0.01 * rng.normal(size=(n, k))


def test_varimax_is_a_rotation_that_makes_columns_concentrated():
    _, Z = sources()
    U = np.linalg.qr(Z)[0]
    R = varimax(U)
    np.testing.assert_allclose(R.T @ R, np.eye(5), atol=1e-10)

    def criterion(L):
        return (L**4).sum() - ((L**2).sum(axis=0) ** 2).sum() / len(L)

    assert criterion(U @ R) > criterion(U)
    rng = np.random.default_rng(1)
    others = [criterion(U @ np.linalg.qr(rng.normal(size=(5, 5)))[0]) for _ in range(50)]
    assert criterion(U @ R) > max(others)


def test_the_rotation_finds_sparse_sources():
    S, Z = sources()
    match = np.corrcoef(S.T, rotated(Z).T)[:5, 5:]
    assert sorted(match.argmax(axis=1)) == list(range(5))
    assert match.max(axis=1).min() > 0.95


def test_the_most_concentrated_components_are_kept_and_have_their_documents():
    S, Z = sources(k=6)
    S[:, 0] = np.random.default_rng(3).random(400)  # spread over all documents
    Z = S @ np.linalg.qr(np.random.default_rng(2).normal(size=(6, 6)))[0]
    found = find_components(Z, Z, np.zeros((400, 1)), 5)
    P = found.probabilities(Z)
    match = np.corrcoef(S.T, P.T)[:6, 6:]
    assert match[0].max() < 0.5
    assert match[1:].max(axis=1).min() > 0.6
    assert P.shape == (400, 5)
    assert ((P > 0.5).sum(axis=0) > 20).all()
    assert ((P > 0.5).sum(axis=0) < 120).all()


def test_continued_components_rank_documents_as_before():
    _, Z = sources()
    P = find_components(Z, Z, np.zeros((400, 2)), 3).probabilities(Z)
    turned = Z @ np.linalg.qr(np.random.default_rng(5).normal(size=(5, 5)))[0]
    Q = learn_components(turned, P).probabilities(turned)
    assert min(np.corrcoef(P[:, k], Q[:, k])[0, 1] for k in range(3)) > 0.9


def test_components_that_are_known_topics_are_no_free_topics():
    S, Z = sources()
    P = find_components(Z, Z, (S[:, :3] > 0.2).astype(float), 2).probabilities(Z)
    match = np.corrcoef(S.T, P.T)[:5, 5:]
    assert sorted(match.argmax(axis=0)) == [3, 4]


def test_too_few_directions_or_documents_have_no_components():
    _, Z = sources()
    assert find_components(Z, Z, np.zeros((400, 2)), 6) is None
    assert find_components(Z[:4], Z[:4], np.zeros((4, 2)), 3) is None
