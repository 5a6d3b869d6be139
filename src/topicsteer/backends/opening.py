"""Whatever holds rows, as `topicsteer.nmf.protocols.Rows`."""

from __future__ import annotations

import os

import scipy.sparse as sp

from topicsteer.backends.block_folder import BlockFolder
from topicsteer.backends.dask import ClusterBlocks, is_distributed
from topicsteer.backends.memory import MemoryRows
from topicsteer.nmf.protocols import Rows


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
