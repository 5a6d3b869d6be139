import subprocess
import sys

import numpy as np
import pytest
from problems import make_problem

from topicsteer.nmf.blocks import Block, Penalties, RowConstraints, slices, split_into_blocks


def test_blocks_cover_the_matrix_once():
    X, _, _ = make_problem(0, n=900, t=30)
    W, weight, pattern = np.random.default_rng(0).random((900, 3)), np.ones(900), np.zeros(900, np.int32)
    blocks = split_into_blocks(Block.of(X, W, RowConstraints(weight, pattern, Penalties.none(900, X.dtype))), 30)
    assert len(blocks) > 2
    assert sum(len(block.W) for block in blocks) == 900
    norms = np.concatenate([block.squared_norms() for block in blocks])
    np.testing.assert_allclose(norms, np.square(X.toarray()).sum(axis=1))
    blocks[0].W[:] = 7  # a view, not a copy
    assert (W[: len(blocks[0].W)] == 7).all()


def test_empty_documents_have_norm_zero():
    X, _, _ = make_problem(0, n=10, t=8)
    rows = X.toarray()
    rows[[0, 4, 9]] = 0
    X = type(X)(rows)
    constraints = RowConstraints(np.ones(10), np.zeros(10, np.int32), Penalties.none(10, X.dtype))
    (block,) = split_into_blocks(Block.of(X, np.zeros((10, 2)), constraints), 8)
    np.testing.assert_allclose(block.squared_norms(), np.square(rows).sum(axis=1))


def test_slices():
    assert slices(5, 2) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert slices(0, 2) == []


@pytest.mark.slow
def test_products_are_ready_for_both_precisions():
    """Single precision works after double precision; this needs a new process."""
    script = (
        "import numpy as np; from topicsteer.nmf import kernels; from topicsteer.nmf.blocks import times\n"
        "kernels.prepare(np.float64)\n"
        "print(times(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.float32), np.ones((1, 1), np.float32)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[[1.]]"
