"""Blocks of documents: what a solver works on, so that sums over documents can be made piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

ROWS = 512  # documents whose cross products are kept at once: they stay in the cache
MIN_TERMS = 32  # a block has this many entries a term, or adding up its sums would cost more than it gains


@dataclass
class Block:
    """Consecutive documents: rows of X, their weights W (changed in place), error weights and label patterns.

    ``indptr`` may be a slice of a larger matrix's; ``E`` is the full error weight of these rows, if there is one.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: Array
    W: Array
    weight: Array
    pattern: NDArray[np.int32]
    E: Any = None

    def rows(self, size: int = ROWS) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Slices of the block's documents with their part of ``indptr``."""
        for low in range(0, len(self.W), size):
            high = min(low + size, len(self.W))
            yield slice(low, high), self.indptr[low : high + 1]

    def squared_norms(self) -> NDArray[np.float64]:
        """Sum of x² of each document."""
        first, last = self.indptr[0], self.indptr[-1]
        total = np.concatenate([[0.0], np.cumsum(np.square(self.data[first:last], dtype=np.float64))])
        return np.asarray(np.diff(total[self.indptr - first]))


def cut(X: sp.csr_array, W: Array, weight: Array, pattern: NDArray[np.int32], E: Any = None) -> list[Block]:
    """Blocks of documents: a power of two of them, each with work enough to pay for adding up its sums."""
    n, t = X.shape
    indptr = X.indptr.astype(np.int64, copy=False)
    number = 1
    while number < 64 and X.nnz >= 2 * MIN_TERMS * t * number and n >= 2 * number:
        number *= 2
    return [
        Block(
            indptr[rows.start : rows.stop + 1],
            X.indices,
            X.data,
            W[rows],
            weight[rows],
            pattern[rows],
            None if E is None else E[rows],
        )
        for rows in slices(n, -(-n // number))
    ]


def slices(length: int, size: int) -> list[slice]:
    """0 to ``length`` in pieces of ``size``."""
    return [slice(low, min(low + size, length)) for low in range(0, length, max(size, 1))]
