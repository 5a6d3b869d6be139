"""Rows in memory and on disk behave alike."""

import errno
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from topicsteer.backends import as_rows
from topicsteer.backends.block_folder import in_blocks, write_blocks
from topicsteer.backends.weight_folder import BlockError
from topicsteer.labels.forms import supervise
from topicsteer.nmf.protocols import Problem
from topicsteer.system.files import Scratch

X = sp.random_array((10, 6), density=0.4, format="csr", rng=np.random.default_rng(0))


@pytest.fixture(params=["memory", "disk"])
def rows(request, tmp_path):
    return as_rows(X if request.param == "memory" else write_blocks(tmp_path / "X", in_blocks(X, 4)).path)


def test_rows_match_the_matrix(rows):
    assert as_rows(rows) is rows
    assert (rows.shape, rows.dtype) == (X.shape, X.dtype)
    assert rows.starts[0] == 0
    assert rows.starts[-1] == 10
    np.testing.assert_array_equal(rows.sizes, np.diff(X.indptr))
    for chosen in (np.array([7, 0, 7, 3]), np.arange(10) % 3 == 0, np.zeros(0, dtype=np.int64)):
        np.testing.assert_array_equal(rows.take(chosen).toarray(), X[chosen].toarray())
    weights = sp.random_array((2, 10), density=0.5, rng=np.random.default_rng(1))
    np.testing.assert_allclose(rows.combine(weights), (weights @ X).toarray())


def doubled(block, number):
    return block * 2, number


def test_stores_collect_the_results_of_blocks(rows, tmp_path):
    dense = rows.dense_store(tmp_path, "weights", 6, X.dtype)
    sparse = rows.sparse_store(tmp_path, "penalties", 6, X.dtype)
    for store in (dense, sparse):
        pickle.dumps(store)
    for block, number in rows.each(doubled, list(range(len(rows.starts) - 1))):
        dense.write(number, [block.toarray()[:1], block.toarray()[1:]])
        sparse.put(number, block)
    np.testing.assert_array_equal(dense.close(), 2 * X.toarray())
    np.testing.assert_array_equal(as_rows(sparse.close()).take(np.arange(10)).toarray(), 2 * X.toarray())
    assert not list(tmp_path.glob("weights/*"))


def posed(rows, first=None):
    """A problem with three topics and two labels."""
    supervision = supervise({0: "a", 5: "b"}, rows.shape[0])
    return Problem(rows, supervision, ["free"], first=first)


def test_a_full_disk_is_an_error(tmp_path, monkeypatch):
    """Without a reservation, the system would kill the process at the first page that has no room."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    rows = write_blocks(tmp_path / "X", [X])
    backend = rows.backend(posed(rows), Scratch(tmp_path))
    with pytest.raises(BlockError, match=r"could not write document_topics.npy .*: No space left on device"):
        backend.weights()


def test_arrays_of_an_earlier_fit_in_the_same_folder_stay(tmp_path):
    def fitted(rows, value):
        W = rows.backend(posed(rows), Scratch(tmp_path)).weights()
        W[:] = value
        store = rows.dense_store(tmp_path, "memberships", 3, X.dtype)
        store.write(0, [W])
        return W, store.close()

    first = fitted(write_blocks(tmp_path / "X", [X]), 1)
    fitted(write_blocks(tmp_path / "X", [X[:6]]), 2)
    for values in first:
        np.testing.assert_array_equal(values, np.ones((10, 3)))


def test_blocks_on_disk_need_a_folder(tmp_path):
    rows = write_blocks(tmp_path / "X", [X])
    with pytest.raises(ValueError, match="folder"):
        rows.dense_store(None, "weights", 6, X.dtype)
