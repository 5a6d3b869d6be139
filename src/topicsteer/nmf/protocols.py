"""What the factorisation is given and gives back, and what it needs of others: rows, and who works on their blocks.

`topicsteer.backends` has these two for memory, disk and Dask. No code above it asks where the rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from topicsteer.labels.supervision import Supervision
from topicsteer.nmf.blocks import Block, Penalties, RowConstraints, Sums
from topicsteer.nmf.rules import Regularisation, Step, squares
from topicsteer.nmf.term_constraints import TermConstraints
from topicsteer.system.files import Scratch
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from topicsteer.nmf.statistics import History

T = TypeVar("T")
G = TypeVar("G")
FirstWeights = Callable[[slice], Array]  # from a slice of the rows to the W that they start with


@dataclass(frozen=True, eq=False)
class Problem:
    """What a factorisation is given.

    Parameters
    ----------
    rows : Rows
        The documents.
    supervision : Supervision
        Their labels.
    permitted : array of bool (n_patterns, n_topics)
        The topics that each pattern of labels permits.
    weight : array (n_documents,)
        Weights of the documents.
    totals : (float, float, float)
        Their sum; and that of the weights before labels made some heavier, of all and of labelled documents.
    regularisation : Regularisation
        On W and H.
    history : History, optional
        Sums over earlier documents.
    penalties : callable, optional
        From the number of a block to the soft mask of its rows.
    term_constraints : TermConstraints, optional
        Terms that topics must have or must not have.
    E : array or CSR (n_documents, n_terms), optional
        The full error weight; only for rows in memory.
    HT : array (n_terms, n_topics)
        Where the transpose of H starts.
    first : callable, optional
        From a slice of rows to the W that they start with; None is zero.
    settings : mapping
        What else tells this problem from others.
    """

    rows: Rows
    supervision: Supervision
    permitted: NDArray[np.bool_]
    weight: NDArray[np.float64]
    totals: tuple[float, float, float]
    regularisation: Regularisation
    history: History | None = None
    penalties: Callable[[int], Penalties] | None = None
    term_constraints: TermConstraints | None = None
    E: sp.csr_array | Array | None = None
    HT: Array = field(default_factory=lambda: np.empty((0, 0)))
    first: FirstWeights | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    def constraints(self, number: int) -> RowConstraints:
        """What is known of the documents of a block."""
        rows, dtype = self._rows(number), self.rows.dtype
        mask = Penalties.none(rows.stop - rows.start, dtype) if self.penalties is None else self.penalties(number)
        return RowConstraints(self.weight[rows].astype(dtype), self.supervision.pattern[rows], mask)

    def begin(self, number: int) -> Array:
        """The W that a block starts with: zero where labels or the soft mask do not permit a topic."""
        rows = self._rows(number)
        if self.first is None:
            return np.zeros((rows.stop - rows.start, self.permitted.shape[1]), dtype=self.rows.dtype)
        constraints = self.constraints(number)
        W = np.ascontiguousarray(self.first(rows), dtype=self.rows.dtype)
        W *= self.permitted[constraints.pattern]
        constraints.penalties.clear(W)
        return W

    def _rows(self, number: int) -> slice:
        return slice(*self.rows.starts[number : number + 2].tolist())

    @property
    def share(self) -> float:
        """Part of the weight of all documents that is not of earlier ones."""
        own = self.totals[0]
        total = own if self.history is None else own + float(self.history.totals[1])
        return own / total if total else 1.0


@dataclass
class Result:
    """A factorisation, finished or not; ``HT`` is the transpose of H.

    ``scale`` is what W still has to be multiplied with, ``lives`` how often each topic may still be revived, and
    ``lost`` marks the topics that have no weight.
    """

    HT: Array
    objectives: list[float] = field(default_factory=list)
    error: float = 0.0
    ended: str = "max_iter"
    n_iter: int = 0
    scale: Array | None = None
    lives: NDArray[np.int64] | None = None
    lost: NDArray[np.bool_] | None = None


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

    shape: tuple[int, int]
    dtype: np.dtype[np.floating]
    starts: NDArray[np.int64]  # first row of each block, and behind them the number of rows
    matrix: sp.csr_array | None  # all of it, if it is in memory

    @property
    def sizes(self) -> NDArray[np.int32]:
        """Number of entries of each row."""

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

    def total(self, update: Callable[..., Sums], step: Step, run: OrderedMap) -> Sums:
        """Let ``update(block, step=step)`` change the W of every block, and add up what it returns, in a tree."""

    def ask(self, question: Callable[[Block], T], run: OrderedMap) -> list[T]:
        """The answer of every block, in their order; W stays as it is."""

    def keep(self, result: Result) -> None:
        """Take note of where the loop stands after an iteration."""

    def squares(self, run: OrderedMap) -> float:
        """Σ e x² of all documents."""
        return sum(self.ask(squares, run))


class FitBackend(Backend, Protocol):
    """A backend that has a W to begin with, and gives it back; ``earlier`` is where an interrupted fit stood."""

    earlier: Result | None = None

    def weights(self) -> Any:
        """W as it is now: an array, or what reads its rows when they are asked for."""
