"""Rows in memory, and the backend for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from topicsteer.nmf.blocks import Block, Sums, mix_rows, split_into_blocks, tree_sum
from topicsteer.nmf.protocols import FitBackend, Problem
from topicsteer.nmf.solvers import Step
from topicsteer.system.files import Scratch
from topicsteer.system.memory import refuse_beyond_memory
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array

T = TypeVar("T")
G = TypeVar("G")


@dataclass
class MemoryStore:
    """A store for the one block of rows in memory."""

    rows: sp.csr_array = None

    def put(self, number: int, X: sp.csr_array) -> None:
        """Store the rows."""
        self.rows = X

    def close(self) -> sp.csr_array:
        """Return the stored rows."""
        return self.rows


@dataclass
class DenseMemoryStore:
    """A store for a dense array in memory."""

    array: Array

    def write(self, number: int, arrays: Iterable[Array]) -> None:
        """Store all rows, in consecutive arrays."""
        first = 0
        for rows in arrays:
            self.array[first : first + len(rows)] = rows
            first += len(rows)

    def close(self) -> Array:
        """Return the stored rows."""
        return self.array


class MemoryRows:
    """The rows of a CSR in memory, as one block (see `topicsteer.nmf.protocols.Rows`).

    Examples
    --------
    >>> rows = MemoryRows(sp.csr_array(np.eye(3)))
    >>> rows.combine(sp.csr_array([[1, 0, 2]]))
    array([[1., 0., 2.]])
    """

    def __init__(self, matrix: sp.csr_array) -> None:
        self.matrix = matrix
        self.shape: tuple[int, int] = matrix.shape
        self.dtype: np.dtype[np.floating] = matrix.dtype
        self.starts = np.array([0, self.shape[0]], dtype=np.int64)
        self.sizes: NDArray[np.int32] = np.diff(matrix.indptr).astype(np.int32)

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> sp.csr_array:
        """Return some of the rows: by their numbers, in that order, or by a mask."""
        return self.matrix[rows]

    def combine(self, weights: sp.sparray) -> NDArray[np.float64]:
        """Return weighted sums of rows: ``weights`` (k, n_rows) times the matrix."""
        return mix_rows(weights, [(0, self.matrix)], self.shape[1])

    def backend(self, problem: Problem, scratch: Scratch | None) -> MemoryBackend:
        """Return a backend that updates W with threads of this process."""
        n, d = self.shape[0], problem.n_topics
        refuse_beyond_memory(n * d * self.dtype.itemsize, f"The topic weights of {n} documents and {d} topics")
        W = problem.starting_weights(0)
        return MemoryBackend(
            split_into_blocks(Block.of(self.matrix, W, problem.constraints(0), problem.E), self.shape[1]), W
        )

    def each(self, function: Callable[[sp.csr_array, G], T], given: Sequence[G]) -> Iterator[T]:
        """As in `topicsteer.nmf.protocols.Rows`."""
        return (function(self.matrix, one) for one in given)

    def dense_store(self, folder: Path | None, name: str, width: int, dtype: DTypeLike) -> DenseMemoryStore:
        """Return a store in memory."""
        return DenseMemoryStore(np.empty((self.shape[0], width), dtype=dtype))

    def sparse_store(self, folder: Path | None, name: str, width: int, dtype: DTypeLike) -> MemoryStore:
        """Return a store in memory."""
        return MemoryStore()


@dataclass
class MemoryBackend(FitBackend):
    """A backend (see `topicsteer.nmf.protocols.Backend`) for blocks in memory."""

    blocks: list[Block]
    W: Array = field(default_factory=lambda: np.empty((0, 0)))

    def weights(self) -> Array:
        """As in `topicsteer.nmf.protocols.FitBackend`."""
        return self.W

    def total(self, update: Callable[..., Sums], step: Step, run: OrderedMap) -> Sums:
        """As in `topicsteer.nmf.protocols.Backend`."""
        return tree_sum(run(partial(update, step=step), self.blocks), Sums.__iadd__)

    def map(self, function: Callable[[Block], T], run: OrderedMap) -> list[T]:
        """As in `topicsteer.nmf.protocols.Backend`."""
        return list(run(function, self.blocks))
