"""Directions of the latent semantics: against dense algebra and scikit-learn, on any storage, with any threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from reference import leading_vectors
from sklearn.utils.extmath import randomized_svd

from topicsteer.backends import as_rows
from topicsteer.backends.block_folder import write_blocks
from topicsteer.corpora import load_docstrings
from topicsteer.nmf import kernels
from topicsteer.nmf.latent import GramProduct, lanczos, latent_directions, leading_directions
from topicsteer.system.threads import workers
from topicsteer.text import TextVectorizer

pytestmark = pytest.mark.slow


def random_matrix(n, t, density=0.1, seed=0, dtype=np.float32):
    found = sp.random_array((n, t), density=density, rng=np.random.default_rng(seed), format="csr", dtype=dtype)
    return sp.csr_array(found)


def planted(n, t, strong, seed=0):
    """A matrix whose ``strong`` leading directions stand out."""
    rng = np.random.default_rng(seed)
    centres, of = rng.random((strong, t)) * (rng.random((strong, t)) < 0.1), rng.integers(0, strong, n)
    return sp.csr_array((centres[of] + 0.05 * (rng.random((n, t)) < 0.05)).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_product_equals_dense(dtype):
    X = random_matrix(500, 40, density=0.3).astype(dtype)
    B = np.random.default_rng(1).standard_normal((40, 2 * kernels.STRIP)).astype(np.float32)
    product = GramProduct(X)
    assert len(product.blocks) > 1
    kernels.prepare(np.float32)
    with workers(2) as run:
        np.testing.assert_allclose(product(B, run), X.toarray().T @ (X.toarray() @ B), rtol=2e-4, atol=2e-4)


def test_directions_equal_the_slow_twin():
    X = planted(600, 300, strong=20)
    found, slow = leading_directions(X, 16), leading_vectors(X.toarray(), 16)
    assert np.linalg.norm(X @ found) ** 2 == pytest.approx(np.linalg.norm(X @ slow) ** 2, rel=1e-5)
    np.testing.assert_allclose(np.linalg.svd(found.T @ slow)[1], 1, atol=1e-3)  # the same space
    np.testing.assert_allclose(found.T @ found, np.eye(16), atol=1e-5)
    energy = np.linalg.norm(X @ found, axis=0)
    assert (np.diff(energy) <= 1e-4 * energy[0]).all()  # strongest first
    assert (found[np.abs(found).argmax(axis=0), np.arange(16)] > 0).all()


@pytest.mark.parametrize("size", [48, 100])
def test_text_has_as_much_energy_as_in_scikit_learn(size):
    X = sp.csr_array(TextVectorizer(max_features=2_000).fit_transform(load_docstrings().texts))
    _, _, Vt = randomized_svd(X, size, n_iter=3, random_state=0)
    ours, theirs = (np.linalg.norm(X @ V) ** 2 for V in (leading_directions(X, size), Vt.T))
    assert ours >= 0.999 * theirs


def test_threads_do_not_matter():
    X = random_matrix(3_000, 200, density=0.2)
    one, two = (leading_directions(X, 40, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, leading_directions(X, 40, seed=1))


def test_disk_equals_memory(tmp_path):
    X = random_matrix(900, 120)
    folder = write_blocks(tmp_path / "blocks", [X[:100], X[100:650], X[650:]])
    np.testing.assert_array_equal(latent_directions(as_rows(X)), latent_directions(folder))
    np.testing.assert_array_equal(latent_directions(as_rows(X), most=300), latent_directions(folder, most=300))


def test_few_distinct_documents_have_few_directions():
    distinct = random_matrix(5, 100, density=0.4)
    X = sp.csr_array(sp.vstack([distinct] * 40))
    found = leading_directions(X, 20)
    assert found.shape == (100, 5)
    np.testing.assert_allclose(np.linalg.norm(X @ found), np.linalg.norm(X.data), rtol=1e-5)


def test_an_empty_matrix_has_no_direction():
    assert leading_directions(sp.csr_array((200, 100), dtype=np.float32), 20).shape == (100, 0)


def test_blocks_are_orthonormal_and_describe_the_matrix():
    X = sp.csr_array(TextVectorizer(max_features=1_000).fit_transform(load_docstrings().texts))
    with workers(2) as run:
        vectors, T = lanczos(X, 5, 0, run)
    Q, residual = vectors[:, : len(T)].astype(np.float64), vectors[:, len(T) :]
    product = (X.T @ (X @ Q)).astype(np.float64)
    scale = np.abs(T).max()
    np.testing.assert_allclose(Q.T @ Q, np.eye(len(T)), atol=1e-3)
    np.testing.assert_allclose(T, Q.T @ product, atol=1e-3 * scale)
    product[:, -kernels.STRIP :] -= residual  # AQ = QT + E
    np.testing.assert_allclose(product, Q @ T, atol=1e-3 * scale)


def test_a_flat_spectrum_and_a_steep_one_give_orthonormal_directions():
    rng = np.random.default_rng(0)
    flat = sp.csr_array(sp.identity(600, dtype=np.float32))
    steep = sp.csr_array(rng.random((600, 40)) @ np.diag(10.0 ** -np.arange(0, 8, 0.2)) @ rng.random((40, 300)))
    for X in (flat, steep.astype(np.float32)):
        found = leading_directions(X, 60)
        np.testing.assert_allclose(found.T @ found, np.eye(found.shape[1]), atol=1e-3)
    assert found.shape[1] < 40  # the rest is noise


@pytest.mark.parametrize(("n", "t", "size"), [(1, 5, 1), (2, 40, 2), (30, 12, 12), (40, 40, 16), (200, 150, 30)])
def test_small_corpora_have_directions(n, t, size):
    X = random_matrix(n, t, density=1.0)
    found = latent_directions(as_rows(X))
    assert found.shape == (t, size)
    np.testing.assert_allclose(found.T @ found, np.eye(size), atol=1e-4)


def test_documents_without_terms_have_no_directions():
    for shape in ((5, 3), (5, 0), (0, 3)):
        assert latent_directions(as_rows(sp.csr_array(shape, dtype=np.float32))).shape == (shape[1], 0)
