import numba
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize, nnls

from topicsteer.nmf import kernels as compiled

# Row starts and topics of empty penalties.
UNRESTRICTED = (np.zeros(100, np.int64), np.empty(0, np.int32))


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    compiled.prepare(request.param)
    assert compiled.compiled(request.param) or numba.config.DISABLE_JIT
    return request.param


def csr(seed, n, t, dtype, density=0.3):
    X = sp.random_array((n, t), density=density, rng=np.random.default_rng(seed), format="csr").astype(dtype)
    X.indices = X.indices.astype(np.int32)
    return X, X.indptr.astype(np.int64)


def close(dtype):
    return {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}


@pytest.mark.parametrize("d", [1, 3, 20, 40])
def test_cross_rows_is_x_times_h(dtype, d):
    X, indptr = csr(1, 30, 25, dtype)
    HT = np.random.default_rng(2).random((25, d)).astype(dtype)
    permitted = np.ones((2, d), dtype=bool)
    permitted[1] = np.arange(d) == d // 2  # one topic of many has its own branch
    pattern = (np.arange(30) % 2).astype(np.int32)
    out = np.full((30, d), np.nan, dtype=dtype)
    compiled.cross_rows(indptr, X.indices, X.data, HT, permitted, pattern, *UNRESTRICTED, out)
    expected = X.toarray() @ HT
    np.testing.assert_allclose(out[::2], expected[::2], **close(dtype))
    np.testing.assert_allclose(out[1::2, d // 2], expected[1::2, d // 2], **close(dtype))


def test_cross_rows_fills_in_the_topics_that_penalties_permit(dtype):
    X, indptr = csr(1, 30, 25, dtype)
    HT = np.random.default_rng(2).random((25, 40)).astype(dtype)
    penalties = np.concatenate([[0], np.cumsum(np.arange(30) % 3)])  # none, one or two topics
    topic = np.random.default_rng(3).integers(0, 40, penalties[-1]).astype(np.int32)
    out = np.empty((30, 40), dtype)
    everything, pattern = np.ones((1, 40), bool), np.zeros(30, np.int32)
    compiled.cross_rows(indptr, X.indices, X.data, HT, everything, pattern, penalties, topic, out)
    expected = X.toarray() @ HT
    for i in range(30):
        topics = topic[penalties[i] : penalties[i + 1]] if i % 3 else np.arange(40)
        np.testing.assert_allclose(out[i, topics], expected[i, topics], **close(dtype))


@pytest.mark.parametrize("density", [0.02, 0.5])
def test_cross_columns_is_weighted_transpose_product(dtype, density):
    X, indptr = csr(3, 40, 25, dtype)
    rng = np.random.default_rng(4)
    W = (rng.random((40, 24)) * (rng.random((40, 24)) < density)).astype(dtype)
    weight = rng.random(40).astype(dtype)
    out = np.zeros((25, 32), dtype=dtype)  # padded
    compiled.cross_columns(indptr, X.indices, X.data, W, weight, out)
    np.testing.assert_allclose(out[:, :24], X.toarray().T @ (weight[:, None] * W), **close(dtype))
    assert not out[:, 24:].any()


def test_descend_solves_non_negative_least_squares(dtype):
    rng = np.random.default_rng(5)
    HT = rng.random((30, 6)).astype(dtype)
    X = rng.random((20, 30)).astype(dtype)
    permitted = np.ones((2, 6), dtype=bool)
    permitted[1, [0, 3]] = False
    pattern = (np.arange(20) % 2).astype(np.int32)
    W = np.zeros((20, 6), dtype=dtype)
    compiled.descend(
        W, X @ HT, HT.T @ HT, permitted, pattern, *UNRESTRICTED, np.empty(0, dtype), dtype(0), 5000, dtype(1e-7)
    )
    for i in range(20):
        columns = np.flatnonzero(permitted[pattern[i]])
        expected = np.zeros(6)
        expected[columns] = nnls(HT[:, columns].astype(float), X[i].astype(float))[0]
        np.testing.assert_allclose(W[i], expected, atol=2e-3 if dtype == np.float32 else 1e-6)
        assert (W[i, ~permitted[pattern[i]]] == 0).all()


def test_descend_with_l1_is_least_squares_with_a_shifted_target(dtype):
    """L1 is equivalent to subtracting it from the cross product."""
    rng = np.random.default_rng(6)
    HT, X = rng.random((12, 4)).astype(dtype), rng.random((5, 12)).astype(dtype)
    pattern, permitted = np.zeros(5, np.int32), np.ones((1, 4), bool)
    start = rng.random((5, 4)).astype(dtype)
    one, two = start.copy(), start.copy()
    compiled.descend(
        one, X @ HT, HT.T @ HT, permitted, pattern, *UNRESTRICTED, np.empty(0, dtype), dtype(0.5), 50, dtype(0)
    )
    compiled.descend(
        two,
        X @ HT - dtype(0.5),
        HT.T @ HT,
        permitted,
        pattern,
        *UNRESTRICTED,
        np.empty(0, dtype),
        dtype(0),
        50,
        dtype(0),
    )
    np.testing.assert_allclose(one, two, **close(dtype))


def test_descend_under_penalties_is_the_minimum(dtype):
    """Compare with scipy's bounded minimisation: empty rows, rows with penalties, and rows with labels too."""
    rng = np.random.default_rng(10)
    HT, X = rng.random((30, 6)).astype(dtype), rng.random((12, 30)).astype(dtype)
    stored = rng.random((12, 6)) < 0.7
    stored[:4] = False
    penalties = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    topic, penalty = np.nonzero(stored)[1].astype(np.int32), rng.uniform(0, 2, stored.sum()).astype(dtype)
    permitted = np.ones((2, 6), dtype=bool)
    permitted[1, [0, 3]] = False
    pattern = (np.arange(12) % 2).astype(np.int32)
    W, out = np.zeros((12, 6), dtype=dtype), np.zeros(6)
    compiled.descend(W, X @ HT, HT.T @ HT, permitted, pattern, penalties, topic, penalty, dtype(0), 5000, dtype(1e-7))
    weight = rng.random(12).astype(dtype)
    compiled.add_penalties(W, weight, penalties, topic, penalty, out)
    cost = np.zeros((12, 6))
    cost[stored] = penalty
    np.testing.assert_allclose(out, (weight[:, None] * cost * W).sum(axis=0), rtol=1e-4)
    for i in range(12):
        allowed = permitted[pattern[i]] & (stored[i] | ~stored[i].any())
        bounds = [(0, None if yes else 0) for yes in allowed]

        def value(w, x=X[i], c=cost[i]):
            r = HT.astype(float) @ w - x.astype(float)
            return 0.5 * r @ r + c @ w, HT.T.astype(float) @ r + c

        expected = minimize(value, np.zeros(6), jac=True, bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10})
        np.testing.assert_allclose(W[i], expected.x, atol=3e-3 if dtype == np.float32 else 1e-5)
        assert (W[i, ~allowed] == 0).all()


def test_compiled_kernels_match_their_python_source(dtype):
    X, indptr = csr(7, 12, 15, dtype)
    rng = np.random.default_rng(8)
    HT = rng.random((15, 5)).astype(dtype)
    permitted = rng.random((3, 5)) < 0.6
    permitted[0] = True
    pattern = rng.integers(0, 3, 12).astype(np.int32)
    start = rng.random((12, 5)).astype(dtype) * permitted[pattern]
    results = []
    for kernels in ([compiled.cross_rows, compiled.descend, compiled.cross_columns], None):
        rows, descend, columns = kernels or (
            getattr(k, "py_func", k) for k in (compiled.cross_rows, compiled.descend, compiled.cross_columns)
        )
        W, cross, out = start.copy(), np.empty((12, 5), dtype), np.zeros((15, 5), dtype)
        rows(indptr, X.indices, X.data, HT, permitted, pattern, *UNRESTRICTED, cross)
        sweeps = descend(
            W, cross, HT.T @ HT, permitted, pattern, *UNRESTRICTED, np.empty(0, dtype), dtype(0.01), 3, dtype(0)
        )
        columns(indptr, X.indices, X.data, W, np.ones(12, dtype), out)
        results.append((W, out, sweeps))
    np.testing.assert_allclose(results[0][0], results[1][0], **close(dtype))
    np.testing.assert_allclose(results[0][1], results[1][1], **close(dtype))
    assert results[0][2] == results[1][2]


def test_read_only_arrays_are_accepted(dtype):
    X, indptr = csr(9, 6, 5, dtype)
    X.data.flags.writeable = X.indices.flags.writeable = indptr.flags.writeable = False
    HT = np.ones((5, 2), dtype)
    out = np.empty((6, 2), dtype)
    compiled.cross_rows(indptr, X.indices, X.data, HT, np.ones((1, 2), bool), np.zeros(6, np.int32), *UNRESTRICTED, out)
    np.testing.assert_allclose(out[:, 0], X.toarray().sum(axis=1), **close(dtype))


def test_a_row_without_terms_gets_no_weight(dtype):
    indptr = np.array([0, 0], np.int64)
    out = np.full((1, 3), np.nan, dtype)
    compiled.cross_rows(
        indptr,
        np.empty(0, np.int32),
        np.empty(0, dtype),
        np.ones((4, 3), dtype),
        np.ones((1, 3), bool),
        np.zeros(1, np.int32),
        *UNRESTRICTED,
        out,
    )
    assert (out == 0).all()


def test_products_with_a_prefetched_array(dtype):
    n, t, d = 300, 2 * compiled.FAR // (60 * np.dtype(dtype).itemsize), 60
    X, indptr = csr(3, n, t, dtype, density=0.002)
    rng = np.random.default_rng(0)
    HT, W = rng.random((t, d)).astype(dtype), rng.random((n, d)).astype(dtype)
    assert HT.nbytes > compiled.FAR
    out, sums = np.empty((n, d), dtype), np.zeros((t, d), dtype)
    everything = np.ones((1, d), bool), np.zeros(n, np.int32), np.zeros(n + 1, np.int64), np.empty(0, np.int32)
    compiled.cross_rows(indptr, X.indices, X.data, HT, *everything, out)
    compiled.cross_columns(indptr, X.indices, X.data, W, np.ones(n, dtype), sums)
    np.testing.assert_allclose(out, X @ HT, **close(dtype))
    np.testing.assert_allclose(sums, X.T @ W, **close(dtype))
