"""Indices out of range are refused wherever a sparse matrix comes in: compiled code would follow them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from problems import make_problem

from topicsteer import TSNMF, metrics
from topicsteer.backends.block_folder import write_blocks
from topicsteer.system.arrays import checked_csr


def broken(kind, n=6, t=5, value=1 << 30):
    """A matrix of a format with one index out of range."""
    X = sp.csr_array(np.ones((n, t))).asformat(kind)
    if kind == "coo":
        X.coords[1][3] = value
    else:
        X.indices[2] = value
    return X


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("value", [-1, 5000, 1 << 30])
def test_every_format(kind, value):
    side, limit = ("row", 6) if kind == "csc" else ("column", 5)
    with pytest.raises(ValueError, match=rf"{side} index {value}, but {limit} {side}s"):
        checked_csr(broken(kind, value=value))


@pytest.mark.parametrize("limits", [[0, 5, 3, 30], [1, 5, 10, 15], [0, 5, 10, 99], [0, 5, -4, 15]])
def test_limits_of_rows(limits):
    X = sp.csr_array(np.ones((3, 5)))
    X.indptr[:] = limits
    with pytest.raises(ValueError, match="indptr"):
        checked_csr(X)


def test_every_entrance(tmp_path):
    X, y, _ = make_problem()
    fitted = TSNMF(6, max_iter=3, tol=0).fit(X, y)
    n, t = X.shape
    bad, topics, terms = broken("csr", n, t), broken("csr", n, 6), broken("csr", 6, t)
    for call in (
        lambda: TSNMF(3).fit(bad),
        lambda: TSNMF(3).fit(broken("csc", n, t)),
        lambda: fitted.transform(bad),
        lambda: fitted.partial_fit(bad),
        lambda: TSNMF(6).fit(X, y, penalties=topics),
        lambda: TSNMF(6, solver="mu").fit(X, y, error_weight=bad),
        lambda: TSNMF(6).fit(X, y, term_constraints=terms),
        lambda: TSNMF().fit(X, topics),
        lambda: TSNMF(3).fit([X, bad]),
        lambda: write_blocks(tmp_path / "blocks", [bad]),
        lambda: metrics.precision_recall(bad, bad),
    ):
        with pytest.raises(ValueError, match="index 1073741824, but"):
            call()


@given(st.lists(st.integers(-3, 12), min_size=6, max_size=6), st.lists(st.integers(-2, 9), min_size=4, max_size=4))
def test_whatever_passes_is_in_range(indices, indptr):
    X = sp.csr_array((3, 8))
    X.data, X.indices, X.indptr = np.ones(6), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    try:
        found = checked_csr(X)
    except ValueError:
        return
    used = indices[: indptr[-1]]
    assert indptr[0] == 0
    assert sorted(indptr) == indptr
    assert indptr[-1] <= 6
    assert all(0 <= j < 8 for j in used)
    assert found.toarray().sum() == len(used)
