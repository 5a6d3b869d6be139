"""Whatever holds rows, as `topicsteer.nmf.protocols.Rows`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import scipy.sparse as sp

from topicsteer.backends.block_folder import BlockFolder, in_blocks, write_blocks
from topicsteer.backends.dask import ClusterBlocks, is_distributed
from topicsteer.backends.memory import MemoryRows
from topicsteer.backends.weight_folder import StoredWeights
from topicsteer.nmf.protocols import Rows
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from distributed import Client


def as_rows(X: object) -> Rows:
    """Rows of a sparse matrix in memory, of a folder of blocks or its path, or of what is on Dask; rows as they are.

    Examples
    --------
    >>> as_rows(sp.csr_array((2, 3))).shape
    (2, 3)
    """
    if isinstance(X, MemoryRows | BlockFolder | ClusterBlocks):
        return X
    if isinstance(X, str | os.PathLike):
        return BlockFolder(X)
    if is_distributed(X):
        return ClusterBlocks(X)
    return MemoryRows(X if isinstance(X, sp.csr_array) else sp.csr_array(X))


def on_disk(rows: Rows, path: Path) -> Rows:
    """The rows in blocks on disk: written to a folder if they are in memory."""
    return rows if rows.matrix is None else write_blocks(path, in_blocks(rows.matrix))


def on_cluster(rows: Rows, client: Client) -> Rows:
    """Rows on disk as the workers of a cluster see them; all of them must see the folder."""
    if not isinstance(rows, BlockFolder):
        raise TypeError("only rows on disk can be given to a cluster.")
    return ClusterBlocks.of(rows, client)


def in_one_file(weights: Array | StoredWeights, path: Path) -> Array:
    """Weights of all documents as one array: as they are in memory, or mapped from a file."""
    return weights.mapped(path) if isinstance(weights, StoredWeights) else weights
