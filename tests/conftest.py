"""Small seeded problems for all tests."""

import signal

import numpy as np
import pytest
import scipy.sparse as sp

collect_ignore = ["data"]  # files of other versions, with the scripts that made them


@pytest.fixture(autouse=True)
def python_handles_ctrl_c():
    """A shell may start the tests in the background, with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def make_problem(seed=0, n=60, t=40, known=4, free=2, labelled=0.4, density=0.25, dtype=np.float64):
    """Random sparse X with planted topics and labels: (X csr, y list of lists, L dense mask)."""
    rng = np.random.default_rng(seed)
    d = known + free
    W = rng.gamma(0.4, size=(n, d)) * (rng.random((n, d)) < 0.4)
    H = rng.gamma(0.5, size=(d, t)) * (rng.random((d, t)) < 0.5)
    X = (W @ H + 0.05 * rng.random((n, t))) * (rng.random((n, t)) < 2 * density)
    y = []
    L = np.ones((n, d))
    for i in range(n):
        names = [k for k in range(known) if W[i, k] > 0]
        if rng.random() < labelled and names:
            y.append(names)
            L[i, :known] = 0
            L[i, names] = 1
        else:
            y.append([])
    for k in range(known):  # each topic labelled at least once
        i = int(np.argmax(W[:, k]))
        if k not in y[i]:
            y[i] = sorted({*y[i], k})
            L[i, :known] = 0
            L[i, y[i]] = 1
    return sp.csr_array(X.astype(dtype)), y, L


@pytest.fixture
def problem():
    return make_problem()
