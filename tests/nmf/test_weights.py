"""Topic weights without compiled kernels: against TSNMF.transform and scipy."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

from topicsteer import TSNMF
from topicsteer.nmf.blocks import Penalties
from topicsteer.nmf.solvers import Regularisation
from topicsteer.nmf.weights import few_weights, many_weights


def problem(seed=0, n=12, t=40, d=6):
    rng = np.random.default_rng(seed)
    X = sp.csr_array(sp.random_array((n, t), density=0.3, rng=rng, format="csr", dtype=np.float32))
    return X, (rng.random((d, t)) * (rng.random((d, t)) < 0.4)).astype(np.float32)


def fitted(H, **settings):
    estimator = TSNMF(n_components=len(H), **settings)
    estimator.components_, estimator.n_features_in_ = H, H.shape[1]
    estimator.topic_names_, estimator.n_known_ = np.arange(len(H)), 0
    return estimator


def test_equals_scipy():
    X, H = problem()
    slow = np.stack([nnls(H.T.astype(float), x)[0] for x in X.toarray().astype(float)])
    np.testing.assert_allclose(few_weights(X, H), slow, atol=1e-5)


@pytest.mark.parametrize(("alpha", "ratio"), [(0.0, 0.0), (0.002, 0.5)])
def test_equals_the_kernel(alpha, ratio):
    X, H = problem(1)
    kernel = fitted(H, alpha_W=alpha, l1_ratio=ratio).transform(X)
    strength = alpha * H.shape[1]
    np.testing.assert_allclose(few_weights(X, H, l1=strength * ratio, l2=strength * (1 - ratio)), kernel, atol=1e-4)


def test_penalties_equal_the_kernel():
    X, H = problem(2)
    rng = np.random.default_rng(3)
    penalties = sp.csr_array((rng.random((12, 6)) * 0.3) * (rng.random((12, 6)) < 0.5)).astype(np.float32)
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    found = few_weights(X, H, penalties)
    kernel = many_weights(X, H, Penalties.of(penalties, X.dtype), Regularisation(), None)
    np.testing.assert_allclose(found, kernel, atol=1e-4)
    restricted = np.diff(penalties.indptr) > 0
    assert not found[restricted][penalties.toarray()[restricted] == 0].any()


def test_no_documents_and_empty_topics():
    X, H = problem()
    assert few_weights(X[:0], H).shape == (0, 6)
    H[2] = 0
    assert not few_weights(X, H)[:, 2].any()
