"""Input and output of the factorisation (:class:`Problem`, :class:`Result`), and its two protocols.

:class:`Rows` is a matrix in blocks, and a :class:`Backend` updates these blocks. `topicsteer.backends` implements both
for memory, disk and Dask. No code above it checks where the rows are.
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
from topicsteer.nmf.blocks import Block, Penalties, RowConstraints, Sums, slices
from topicsteer.nmf.rules import Regularisation, Step, squares
from topicsteer.nmf.term_constraints import TermConstraints
from topicsteer.system.files import Scratch
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from topicsteer.nmf.statistics import History

T = TypeVar("T")
G = TypeVar("G")
# Documents whose starting W is restricted at once.
STARTING_ROWS = 1 << 14
# A function from a slice of the rows to their starting W.
FirstWeights = Callable[[slice], Array]


@dataclass(frozen=True, eq=False)
class Problem:
    """A factorisation to solve.

    Parameters
    ----------
    rows : Rows
        The documents.
    supervision : Supervision
        Labels of the documents.
    permitted : array of bool (n_patterns, n_topics)
        The topics that each pattern of labels permits.
    weight : array (n_documents,)
        Weight of each document, with its label weight.
    totals : (float, float, float)
        Sum of ``weight``; sum of the sample weights of all documents; and of the labelled documents.
    regularisation : Regularisation
        L1 and L2 penalties on W and H.
    history : History, optional
        Sufficient statistics of earlier documents.
    penalties : callable, optional
        From the number of a block to the penalties of its rows.
    term_constraints : TermConstraints, optional
        Pinned and banned terms of topics.
    E : array or CSR (n_documents, n_terms), optional
        The full error weight; only for rows in memory.
    HT : array (n_terms, n_topics)
        Starting value of the transpose of H.
    first : callable, optional
        From a slice of rows to their starting W. Default: zero.
    settings : mapping
        All other settings that distinguish this problem from others.
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
        """Weights, label patterns and penalties of the documents of a block."""
        rows, dtype = self._rows(number), self.rows.dtype
        own = Penalties.none(rows.stop - rows.start, dtype) if self.penalties is None else self.penalties(number)
        return RowConstraints(self.weight[rows].astype(dtype), self.supervision.pattern[rows], own)

    def starting_weights(self, number: int) -> Array:
        """The starting W of a block: zero where labels or penalties do not permit a topic."""
        rows = self._rows(number)
        if self.first is None:
            return np.zeros((rows.stop - rows.start, self.permitted.shape[1]), dtype=self.rows.dtype)
        constraints = self.constraints(number)
        W = np.ascontiguousarray(self.first(rows), dtype=self.rows.dtype)
        for part in slices(len(W), STARTING_ROWS):
            W[part] *= self.permitted[constraints.pattern[part]]
            constraints.penalties.rows(part).clear(W[part])
        return W

    def _rows(self, number: int) -> slice:
        return slice(*self.rows.starts[number : number + 2].tolist())

    @property
    def share(self) -> float:
        """Share of these documents in the total weight, which includes earlier documents."""
        own = self.totals[0]
        total = own if self.history is None else own + float(self.history.totals[1])
        return own / total if total else 1.0


@dataclass
class Result:
    """State of a factorisation, during the loop or at its end.

    Parameters
    ----------
    HT : array (n_terms, n_topics)
        Transpose of H.
    objectives : list of float
        The objective at the start and after each iteration.
    error : float
        The weighted squared error, without penalties.
    ended : str
        Why the loop ended: "tol", "max_iter", "callback" or "interrupted".
    n_iter : int
        Number of iterations.
    scale : array (n_topics,), optional
        Factor that W still has to be multiplied by.
    revivals_left : array (n_topics,), optional
        How often each topic may still be revived.
    lost : array of bool (n_topics,), optional
        The topics without any weight.
    """

    HT: Array
    objectives: list[float] = field(default_factory=list)
    error: float = 0.0
    ended: str = "max_iter"
    n_iter: int = 0
    scale: Array | None = None
    revivals_left: NDArray[np.int64] | None = None
    lost: NDArray[np.bool_] | None = None


class DenseStore(Protocol):
    """A store for one dense array per block. Workers on other machines may write to it."""

    def write(self, number: int, arrays: Iterable[Array]) -> None:
        """Store the rows of block ``number``, in consecutive arrays."""

    def close(self) -> Array:
        """All rows in order: an array in memory, or a memory-mapped file."""


class SparseStore(Protocol):
    """A store for one sparse matrix per block. Workers on other machines may write to it."""

    def put(self, number: int, X: sp.csr_array) -> None:
        """Store the rows of block ``number``."""

    def close(self) -> sp.csr_array | Rows:
        """All rows in order: a CSR in memory, or blocks on disk."""


class Rows(Protocol):
    """The rows of a sparse matrix, in blocks: in memory, on disk, or on the workers of a cluster.

    ``starts`` holds the first row of each block, and the number of rows at its end. ``matrix`` is the whole matrix if
    it is in memory.
    """

    shape: tuple[int, int]
    dtype: np.dtype[np.floating]
    starts: NDArray[np.int64]
    matrix: sp.csr_array | None

    @property
    def sizes(self) -> NDArray[np.int32]:
        """Number of stored entries of each row."""

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> sp.csr_array:
        """Load some rows into memory: by their numbers, in that order, or by a mask."""

    def combine(self, weights: sp.sparray) -> NDArray[np.float64]:
        """Weighted sums of rows: ``weights`` (k, n_rows) times the matrix."""

    def each(self, function: Callable[[sp.csr_array, G], T], given: Sequence[G]) -> Iterable[T]:
        """Call ``function(block, given[number])`` for each block; return the results in order."""

    def dense_store(self, folder: Path | None, name: str, width: int, dtype: DTypeLike) -> DenseStore:
        """A store for an array of ``width`` columns, in memory or in the file ``folder/name.npy``."""

    def sparse_store(self, folder: Path | None, name: str, width: int, dtype: DTypeLike) -> SparseStore:
        """A store for a sparse matrix of ``width`` columns, in memory or in the folder ``folder/name``."""

    def backend(self, problem: Problem, scratch: Scratch | None) -> FitBackend:
        """The backend that solves a problem on these rows; a W on disk is written to ``scratch``."""


class Backend(Protocol):
    """Updates the blocks of a matrix. ``run`` is an ordered parallel map in this process."""

    def total(self, update: Callable[..., Sums], step: Step, run: OrderedMap) -> Sums:
        """Call ``update(block, step=step)``, which may change W, for every block; return the sum of the results."""

    def map(self, function: Callable[[Block], T], run: OrderedMap) -> list[T]:
        """Call a function that does not change W for every block; return the results in order."""

    def keep(self, result: Result) -> None:
        """Save the state of the loop after an iteration, if the backend can resume."""

    def squares(self, run: OrderedMap) -> float:
        """Σ e x² of all documents."""
        return sum(self.map(squares, run))


class FitBackend(Backend, Protocol):
    """A backend that owns W. ``earlier`` is the state of an interrupted fit of the same problem, if there is one."""

    earlier: Result | None = None

    def weights(self) -> Any:
        """The current W: an array, or an object that reads rows from disk on demand."""
