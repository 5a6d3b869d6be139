import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import normalize

from topicsteer.backends import as_rows
from topicsteer.guidance.latent import latent_directions
from topicsteer.guidance.ridge import Choice, Ridge


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = sp.csr_array(normalize(sp.random_array((40, 30), density=0.3, rng=rng).tocsr()))
    D = rng.random((40, 6)) * 0.3
    document_weight = rng.choice([1.0, 0.3], 40)
    kernel = (X @ X.T).toarray() + D @ D.T
    nobody, plain = np.zeros(0, dtype=np.int64), Choice(0.0, 0.0, 1.0)
    return (
        Ridge(X, D, document_weight, nobody, plain, kernel),
        Ridge(X, D, document_weight, nobody, plain),
        rng.random((40, 5)) - 0.5,
    )


def test_leave_one_out_in_closed_form(problem):
    ridge, _, target = problem
    left_out = ridge.left_out(target)
    for i in range(40):
        rest = np.delete(np.arange(40), i)
        weights = ridge.solve(target, rest)
        np.testing.assert_allclose(left_out[i], ridge.kernel[i, rest] @ weights, atol=1e-9)


def test_solutions_match_scikit_learn(problem):
    ridge, iterative, target = problem
    theirs = KernelRidge(alpha=1.0, kernel="precomputed").fit(ridge.kernel, target, sample_weight=ridge.document_weight)
    np.testing.assert_allclose(ridge.solve(target), theirs.dual_coef_, atol=1e-9)
    np.testing.assert_allclose(iterative.solve(target), theirs.dual_coef_, atol=1e-4)
    with pytest.raises(ValueError, match="too many"):
        iterative.left_out(target)


def test_directions_match_scipy():
    X = sp.csr_array(sp.random_array((300, 100), density=0.2, rng=np.random.default_rng(0)).tocsr())
    found = latent_directions(as_rows(X))
    assert found.shape == (100, 20)
    _, _, Vt = sp.linalg.svds(X, 1)
    assert abs(Vt[0] @ found[:, 0]) == pytest.approx(1, abs=1e-6)
