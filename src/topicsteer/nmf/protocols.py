"""What the factorisation needs of others: rows of a matrix wherever they live, and somebody who works on their blocks.

`topicsteer.backends` has both for memory, disk and Dask. No code above it asks where the rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from topicsteer.nmf.blocks import Block, Sums
from topicsteer.nmf.rules import Step, squares
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from topicsteer.nmf.loop import Result
    from topicsteer.nmf.problem import Problem
    from topicsteer.system.files import Scratch

T = TypeVar("T")
G = TypeVar("G")


class Map(Protocol):
    """An ordered map, which may work on several items at once."""

    def __call__(self, function: Callable[[G], T], items: Iterable[G], /) -> Iterable[T]:
        """What the function makes of each item, in their order."""


class DenseStore(Protocol):
    """Collects one dense array per block. Workers on other machines may write to it."""

    def write(self, number: int, array: Array) -> None:
        """Keep the rows of the block of that number."""

    def close(self) -> Array:
        """All rows in their order: an array in memory, or a file that is mapped into memory."""


class SparseStore(Protocol):
    """Collects one sparse matrix per block. Workers on other machines may write to it."""

    def put(self, number: int, X: sp.csr_array) -> None:
        """Keep the rows of the block of that number."""

    def close(self) -> sp.csr_array | Rows:
        """All rows in their order: a CSR in memory, or blocks on disk."""


class Rows(Protocol):
    """The rows of a sparse matrix, in blocks: in memory, on disk, or with the workers of a cluster."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Type of the entries."""

    @property
    def starts(self) -> NDArray[np.int64]:
        """First row of each block, and behind them the number of rows."""

    @property
    def sizes(self) -> NDArray[np.int32]:
        """Number of entries of each row."""

    @property
    def matrix(self) -> sp.csr_array | None:
        """All of it, if it is in memory."""

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> sp.csr_array:
        """Some of the rows in memory, by their numbers, in that order, or by a mask."""

    def combine(self, weights: sp.sparray) -> NDArray[np.float64]:
        """Weighted sums of rows: ``weights`` (k, n_rows) times the matrix."""

    def each(self, function: Callable[[sp.csr_array, G], T], given: Sequence[G]) -> Iterable[T]:
        """Call a function with each block and with what is given for it; return the answers in their order."""

    def dense_store(self, folder: Path | None, name: str, width: int, dtype: DTypeLike) -> DenseStore:
        """A store for an array of ``width`` columns; what is not in memory goes to ``folder/name.npy``."""

    def sparse_store(self, folder: Path | None, name: str, width: int, dtype: DTypeLike) -> SparseStore:
        """A store for a sparse matrix of ``width`` columns; what is not in memory goes to ``folder/name``."""

    def backend(self, problem: Problem, scratch: Scratch | None) -> FitBackend:
        """Who works on these rows; W that is not in memory goes to the folder."""


class Backend(Protocol):
    """Who works on the blocks. ``run`` is an ordered parallel map in this process."""

    def total(self, update: Callable[..., Sums], step: Step, run: Map) -> Sums:
        """Let ``update(block, step=step)`` change the W of every block, and add up what it returns, in a tree."""

    def ask(self, question: Callable[[Block], T], run: Map) -> list[T]:
        """The answer of every block, in their order; W stays as it is."""

    def keep(self, result: Result) -> None:
        """Take note of where the loop stands after an iteration."""

    def squares(self, run: Map) -> float:
        """Σ e x² of all documents."""
        return sum(self.ask(squares, run))


class FitBackend(Backend, Protocol):
    """A backend that has a W to begin with, and gives it back; ``earlier`` is where an interrupted fit stood."""

    earlier: Result | None

    def weights(self) -> Any:
        """W as it is now: an array, or what reads its rows when they are asked for."""
