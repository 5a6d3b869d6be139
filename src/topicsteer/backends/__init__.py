"""Storage of rows and topic weights: in memory, on disk, or on the workers of a Dask cluster.

The functions of this module convert the user's matrices and penalties to the protocols of `topicsteer.nmf.protocols`.
"""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from topicsteer.backends.block_folder import BlockFolder, as_blocks, in_blocks, write_blocks
from topicsteer.backends.dask import ClusterBlocks, shared_folder
from topicsteer.backends.in_memory import MemoryRows
from topicsteer.nmf.blocks import Penalties
from topicsteer.nmf.protocols import Rows
from topicsteer.system.arrays import checked_csr, unmasked
from topicsteer.system.files import Scratch


def as_rows(X: object) -> Rows:
    """The rows of a matrix, or of a folder of blocks or its path; rows are returned unchanged.

    Examples
    --------
    >>> as_rows(sp.csr_array((2, 3))).shape
    (2, 3)
    """
    if isinstance(X, MemoryRows | BlockFolder | ClusterBlocks):
        return X
    if isinstance(X, str | os.PathLike):
        return BlockFolder(X)
    return MemoryRows(X if isinstance(X, sp.csr_array) else sp.csr_array(X))


def on_disk(rows: Rows, path: Path) -> Rows:
    """Return the rows as blocks on disk; rows in memory are written to the folder ``path``."""
    return rows if rows.matrix is None else write_blocks(path, in_blocks(rows.matrix))


def on_cluster(rows: Rows, client: object) -> ClusterBlocks:
    """Return rows on disk, to be read by the workers of a cluster; all workers must have access to the folder."""
    if not isinstance(rows, BlockFolder):
        raise TypeError("a cluster needs rows on disk.")
    shared_folder(client, rows.path)
    return ClusterBlocks(rows, client)


def stored_rows(X: object, folder: str | os.PathLike[str] | None) -> tuple[Rows, Scratch] | None:
    """Return rows on disk or on a cluster, checked, with their scratch folder; None if X is a matrix in memory."""
    if isinstance(X, ClusterBlocks):
        return X, Scratch(folder).claim()
    blocks = as_blocks(X)
    if blocks is None:
        if folder is not None:
            raise ValueError("folder is only for blocks on disk, to store their weights; X is a matrix in memory.")
        return None
    scratch = Scratch(folder).claim()
    rows = blocks if isinstance(blocks, BlockFolder) else write_blocks(scratch.path / "blocks", blocks)
    rows.check()
    return rows, scratch


def block_penalties(penalties: object, rows: Rows, d: int) -> Callable[[int], Penalties] | None:
    """Return a function from the number of a block to its penalties, from a whole matrix or the same blocks on disk."""
    if penalties is None:
        return None
    if isinstance(penalties, BlockFolder):
        if np.array_equal(penalties.starts, rows.starts):
            stored = penalties
            return lambda number: Penalties.of(stored[number], rows.dtype)
        penalties = penalties.take(np.arange(penalties.shape[0]))
    mask, starts = Penalties.of(check_penalties(penalties, rows.shape[0], d), rows.dtype), rows.starts.tolist()
    return lambda number: mask.rows(slice(starts[number], starts[number + 1]))


def check_penalties(penalties: object, n: int, d: int) -> sp.csr_array:
    """The finite penalties as a CSR of n rows."""
    if sp.issparse(penalties):
        given = checked_csr(penalties, "penalties")
    else:  # every entry is stored, zeros included
        values = np.atleast_2d(np.asarray(unmasked(penalties, "penalties"), dtype=np.float64))
        rows, width = values.shape
        limits = np.arange(0, values.size + 1, max(width, 1))
        given = sp.csr_array((values.ravel(), np.tile(np.arange(width), rows), limits), shape=values.shape)
    if given.shape != (n, d):
        raise ValueError(
            f"penalties has shape {given.shape}; expected one row per document and one column per topic, {(n, d)}."
        )
    if not (given.data >= 0).all():
        raise ValueError("penalties has negative or NaN entries; use infinity to forbid a topic.")
    kept = np.isfinite(given.data)
    if kept.all():
        return given
    rows = np.repeat(np.arange(n), np.diff(given.indptr))
    shut = np.setdiff1d(rows[~kept], rows[kept])
    if shut.size:
        raise ValueError(
            f"penalties forbids every topic in row {shut[0]}: permit at least one topic, or leave the row empty."
        )
    return sp.csr_array((given.data[kept], (rows[kept], given.indices[kept])), shape=(n, d))
