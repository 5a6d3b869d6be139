"""Input, output and protocols of the factorisation: :class:`Problem`, :class:`Result`, :class:`Rows`, :class:`History`.

A history makes fits incremental. H needs only sums over documents (see `topicsteer.nmf.loop`). An earlier document
stays in these sums with its last W, and its row is no longer needed. H then minimises the objective of the current
documents plus an upper bound of the objective of the earlier documents. No step can raise this total. A factor below 1
on the sums makes earlier documents count less.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from topicsteer.labels.supervision import Supervision
from topicsteer.nmf.blocks import Block, Penalties, RowConstraints, Sums, check_scale, slices
from topicsteer.nmf.solvers import RULES, Regularisation, Step, squares, sums
from topicsteer.system.arrays import checked_csr, unmasked
from topicsteer.system.files import Scratch
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array

# A pinned term weighs at least as much as the topic's term of this rank.
RANK = 10


@dataclass(frozen=True, eq=False)
class TermConstraints:
    """Pinned and banned terms of topics.

    Parameters
    ----------
    pinned : CSR (n_topics, n_terms)
        1 where a term is pinned to a topic.
    banned : CSC (n_topics, n_terms)
        1 where a term is banned from a topic.
    """

    pinned: sp.csr_array
    banned: sp.csc_array

    @classmethod
    def read(cls, term_constraints: object, d: int, t: int) -> TermConstraints | None:
        """Read a matrix with one row per topic: positive entries pin a term, negative entries ban it.

        Return None if there is no such entry.
        """
        if term_constraints is None:
            return None
        read = checked_csr if sp.issparse(term_constraints) else unmasked
        given = sp.coo_array(read(term_constraints, "term_constraints"))
        if given.ndim != 2 or given.shape[0] > d or given.shape[1] != t:
            raise ValueError(
                f"term_constraints has shape {given.shape}; expected one row per topic, one column per term, {(d, t)}."
            )
        if not np.isfinite(given.data).all():
            raise ValueError(
                "term_constraints has NaN or infinite entries; use 1 for pinned, -1 for banned, 0 for the rest."
            )
        kinds = []
        for chosen in (given.data > 0, given.data < 0):
            where = (given.row[chosen], given.col[chosen])
            kinds.append(sp.csr_array((np.ones(chosen.sum()), where), shape=(d, t)))
        return cls(kinds[0], sp.csc_array(kinds[1])) if kinds[0].nnz + kinds[1].nnz else None

    def mask(self, dtype: DTypeLike) -> Penalties | None:
        """The banned terms as a mask of the rows of Hᵀ; None if there are none."""
        if not self.banned.nnz:
            return None
        d, t = self.banned.shape
        permitted = np.ones((d, t), dtype=np.bool_)
        permitted[self.banned.tocoo().coords] = False
        permitted[:, np.diff(self.banned.indptr) == 0] = False  # an unrestricted term stores no entry
        terms, topics = np.nonzero(permitted.T)
        return Penalties.of(sp.csr_array((np.zeros(len(terms)), (terms, topics)), shape=(t, d)), dtype)

    def seed(self, HT: Array, labelled: NDArray[np.bool_]) -> None:
        """Apply the constraints to a start of H; a topic without labels starts from its pinned terms alone."""
        for k in np.flatnonzero(np.diff(self.pinned.indptr)):
            if not labelled[k]:
                HT[:, k] = self.pinned[[k]].toarray()[0] * (HT[:, k].max() or 1)
        topics, terms = self.banned.tocoo().coords
        HT[terms, topics] = 0
        self.lift(HT)

    def lift(self, HT: Array) -> None:
        """Raise pinned terms to the weight of the topic's tenth term, where they are below it."""
        for k in np.flatnonzero(np.diff(self.pinned.indptr)):
            terms = self.pinned.indices[self.pinned.indptr[k] : self.pinned.indptr[k + 1]]
            others = np.delete(HT[:, k], terms)
            others = others[others > 0]
            rank = min(RANK, len(others))
            if rank:
                HT[terms, k] = np.maximum(HT[terms, k], np.partition(others, -rank)[-rank])


T = TypeVar("T")
G = TypeVar("G")
# Documents whose starting W is restricted at once.
STARTING_ROWS = 1 << 14
# A function from a slice of the rows to their starting W.
FirstWeights = Callable[[slice], Array]


@dataclass(eq=False, repr=False)
class Parameters:
    """How to factorise: the parameters of `topicsteer.TSNMF`, which explains them."""

    n_components: int | None = None
    _: KW_ONLY
    topics: Sequence[Hashable] | None = None
    complete: bool = True
    free_in_labelled: bool = True
    init: str | tuple[ArrayLike, ArrayLike] = "labels"
    solver: str = "hals"
    label_weight: str | float | None = "balanced"
    tol: float | str = "auto"
    max_iter: int = 200
    alpha_W: float = 0.0
    alpha_H: float = 0.0
    l1_ratio: float = 0.0
    threads: int | None = None
    random_state: int | np.random.RandomState | None = None


def regularisation_of(parameters: Parameters, n_terms: int, total_weight: float = 0.0) -> Regularisation:
    """Return the strengths of the penalties on W and H, for documents of this total weight."""
    strengths = {name: getattr(parameters, name) for name in ("alpha_W", "alpha_H", "l1_ratio")}
    return Regularisation.of(n_terms, total_weight, **strengths)


@dataclass(frozen=True, eq=False)
class Problem:
    """A factorisation to solve.

    Parameters
    ----------
    rows : Rows
        The documents.
    supervision : Supervision
        Labels of the documents.
    free : sequence of str
        Names of the free topics.
    parameters : Parameters
    sample_weight : array (n_documents,), optional
        Weight of each document, without its label weight. Default: 1.
    history : History, optional
        Sufficient statistics of earlier documents.
    old : int
        Number of known topics of the earlier documents.
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
    """

    rows: Rows
    supervision: Supervision
    free: Sequence[str] = ()
    parameters: Parameters = field(default_factory=Parameters)
    sample_weight: Array | None = None
    history: History | None = None
    old: int = 0
    penalties: Callable[[int], Penalties] | None = None
    term_constraints: TermConstraints | None = None
    E: sp.csr_array | Array | None = None
    HT: Array = field(default_factory=lambda: np.empty((0, 0)))
    first: FirstWeights | None = None

    def __post_init__(self) -> None:
        if self.penalties is not None and self.parameters.alpha_H:
            raise ValueError("penalties keep the rows of H at length 1, so alpha_H has no effect: leave it at 0.")

    @property
    def names(self) -> list[Hashable]:
        """Names of all topics."""
        return [*self.supervision.topics, *self.free]

    @property
    def n_topics(self) -> int:
        """Number of topics, known and free."""
        return len(self.supervision.topics) + len(self.free)

    @cached_property
    def permitted(self) -> NDArray[np.bool_]:
        """The topics that each pattern of labels permits."""
        return self.supervision.permitted(self.n_topics, self.parameters.free_in_labelled)

    @cached_property
    def sample(self) -> Array:
        """Weight of each document, without its label weight."""
        return np.ones(self.rows.shape[0]) if self.sample_weight is None else self.sample_weight

    @cached_property
    def weight(self) -> Array:
        """The weight e of each document: its sample weight times its label weight."""
        weight = self.sample.copy()
        labelled = self.supervision.labelled
        given = self.parameters.label_weight
        if isinstance(given, str):
            marked = weight[labelled].sum() + self._before[3]
            weight[labelled] *= (self._before[2] + weight.sum()) / marked if marked else 1.0
        elif given is not None:
            weight[labelled] *= given
            check_scale(float(weight.max(initial=0)), "sample_weight times label_weight")
        return weight

    @property
    def totals(self) -> tuple[float, float, float]:
        """Sum of ``weight``; sum of the sample weights of all documents; and of the labelled documents."""
        labelled = self.sample[self.supervision.labelled]
        return float(self.weight.sum()), float(self.sample.sum()), float(labelled.sum())

    @property
    def positive(self) -> bool:
        """Whether W and H must start above zero, because a zero would stay a zero."""
        return RULES[self.parameters.solver].multiplicative

    @property
    def regularisation(self) -> Regularisation:
        """L1 and L2 penalties on W and H."""
        return regularisation_of(self.parameters, self.rows.shape[1], float(self.totals[0] + self._before[1]))

    @property
    def _before(self) -> NDArray[np.float64]:
        """The totals of earlier documents, as in `topicsteer.nmf.protocols.History`."""
        return np.zeros(4) if self.history is None else self.history.totals

    def constraints(self, number: int) -> RowConstraints:
        """Weights, label patterns and penalties of the documents of a block."""
        rows, dtype = self._rows(number), self.rows.dtype
        own = Penalties.none(rows.stop - rows.start, dtype) if self.penalties is None else self.penalties(number)
        return RowConstraints(self.weight[rows].astype(dtype), self.supervision.pattern[rows], own)

    def starting_weights(self, number: int) -> Array:
        """The starting W of a block: zero where labels or penalties do not permit a topic."""
        rows = self._rows(number)
        if self.first is None:
            return np.zeros((rows.stop - rows.start, self.n_topics), dtype=self.rows.dtype)
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
        total = own + float(self._before[1])
        return own / total if total else 1.0


@dataclass
class Result:
    """Result of a factorisation.

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
    lost : array of bool (n_topics,)
        The topics without any weight.
    weights : array (n_documents, n_topics)
        W, in memory or mapped from a file.
    history : History, optional
        Sufficient statistics of all documents; None under a full error weight.
    """

    HT: Array
    objectives: list[float] = field(default_factory=list)
    error: float = 0.0
    ended: str = "max_iter"
    n_iter: int = 0
    lost: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    weights: Array = field(default_factory=lambda: np.empty((0, 0)))
    history: History | None = None

    @property
    def components(self) -> Array:
        """H, the terms of each topic."""
        return np.ascontiguousarray(self.HT.T)

    @property
    def plain(self) -> dict[str, Any]:
        """Number of iterations, reason of the end, and the root of the squared error."""
        return {"n_iter": self.n_iter, "ended": self.ended, "error": float(np.sqrt(max(self.error, 0.0)))}


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
        """A store for an array of ``width`` columns: in memory, or in ``folder/name.npy`` for blocks on disk."""

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

    def squares(self, run: OrderedMap) -> float:
        """Σ e x² of all documents."""
        return sum(self.map(squares, run))


class FitBackend(Backend, Protocol):
    """A backend that owns W."""

    def weights(self) -> Array:
        """W at the end of a fit: an array, or a memory-mapped file."""


# The fields of `History` that are sums over documents.
SUMS = ("cross", "gram", "penalty", "totals")


@dataclass(frozen=True, eq=False)
class History:
    """Sufficient statistics of earlier documents.

    Parameters
    ----------
    cross : array (n_terms, n_topics)
        Xᵀ(e∘W).
    gram : array (n_topics, n_topics)
        The Gram matrix (e∘W)ᵀW.
    penalty : array (n_topics,)
        Σ e (l1 + P) w.
    totals : array (4,)
        Σ e x²; Σ e; sum of the sample weights of all documents; and of the labelled documents.
    scale : array (n_topics,)
        Factor that the W of these documents has been multiplied by since they left, because H was divided by it.
    """

    cross: Array
    gram: Array
    penalty: Array
    totals: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def empty(cls, n_terms: int, n_topics: int, dtype: DTypeLike = np.float64) -> History:
        """The statistics of no document.

        Examples
        --------
        >>> History.empty(5, 2).widen(1, 1, 3).cross.shape
        (8, 3)
        """
        cross, gram = np.zeros((n_terms, n_topics), dtype=dtype), np.zeros((n_topics, n_topics), dtype=dtype)
        return cls(cross, gram, np.zeros(n_topics), np.zeros(4), np.ones(n_topics))

    def __add__(self, other: History) -> History:
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in SUMS})

    def __sub__(self, other: History) -> History:
        less = {name: getattr(self, name) - getattr(other, name) for name in SUMS}
        # Rounding may leave small negative sums.
        return replace(self, **{name: np.maximum(value, 0) for name, value in less.items()})

    def times(self, factor: Array) -> History:
        """The sums after W is multiplied by one factor per topic."""
        if not self.totals.any():
            return replace(self, scale=self.scale * factor)
        factor = factor.astype(self.cross.dtype)
        gram = self.gram * np.outer(factor, factor)
        return replace(
            self, cross=self.cross * factor, gram=gram, penalty=self.penalty * factor, scale=self.scale * factor
        )

    @classmethod
    def of(cls, X: sp.csr_array, W: Array, weight: Array, penalties: sp.csr_array = None, l1: float = 0.0) -> History:
        """The statistics of unlabelled documents; ``weight`` holds their document weights, ``penalties`` is a CSR."""
        n, t = X.shape
        W = np.ascontiguousarray(W, dtype=X.dtype)
        own = Penalties.none(n, X.dtype) if penalties is None else Penalties.of(penalties, X.dtype)
        block = Block.of(X, W, RowConstraints(weight.astype(X.dtype), np.zeros(n, dtype=np.int32), own))
        HT = np.zeros((t, W.shape[1]), dtype=X.dtype)
        total = sums(block, Step(HT, HT[:0], np.ones((1, W.shape[1]), dtype=np.bool_), Regularisation(l1_W=l1)))
        totals = np.array([squares(block), weight.sum(), weight.sum(), 0.0])
        return cls(total.cross, total.gram, total.penalty, totals, np.ones(W.shape[1]))

    def merge(self, group: Sequence[int]) -> History:
        """Merge several topics into the first of them: their weights are added."""
        first, rest = group[0], list(group[1:])
        join = np.delete(np.eye(len(self.penalty)), rest, axis=1)
        join[rest, first - sum(k < first for k in rest)] = 1
        join = join.astype(self.cross.dtype)
        merged = self.cross @ join, join.T @ self.gram @ join, self.penalty @ join
        return History(*merged, self.totals, np.delete(self.scale, rest))

    def take(self, order: Sequence[int]) -> History:
        """The topics in another order."""
        gram = self.gram[np.ix_(order, order)]
        return History(self.cross[:, order], gram, self.penalty[order], self.totals, self.scale[order])

    def widen(self, at: int, n_topics: int, n_terms: int) -> History:
        """Insert zeros for new topics before column ``at``, and for new terms at the end."""
        arrays = self.cross, self.gram, self.penalty, self.scale
        cross, gram, penalty, scale = (insert(array, at, n_topics, -1) for array in arrays)
        cross, gram = np.pad(cross, ((0, n_terms), (0, 0))), insert(gram, at, n_topics, 0)
        return History(cross, gram, penalty, self.totals, np.where(scale == 0, 1, scale))


@dataclass
class WithHistory(Backend):
    """A backend whose sums include the history; ``latest`` holds the last sums of both."""

    backend: Backend
    history: History
    latest: Sums = field(init=False)
    squared: float = field(default=0.0, init=False)

    def total(self, update: Callable[..., Sums], step: Step, run: OrderedMap) -> Sums:
        """As in :class:`~topicsteer.nmf.protocols.Backend`."""
        total, history, d = self.backend.total(update, step, run), self.history, len(self.history.penalty)
        if step.scale is not None:
            history = history.times(step.scale[:d])
        if step.dead is not None:
            history = history.times(np.where(np.isin(np.arange(d), step.dead), 0.0, 1.0))
        if history.totals.any():
            total.cross[:, :d] += history.cross
            total.gram[:d, :d] += history.gram
            total.penalty = total.penalty + history.penalty
        self.history, self.latest = history, total
        return total

    def map(self, function: Callable[[Block], T], run: OrderedMap) -> list[T]:
        """As in :class:`~topicsteer.nmf.protocols.Backend`."""
        return self.backend.map(function, run)

    def squares(self, run: OrderedMap) -> float:
        """As in :class:`~topicsteer.nmf.protocols.Backend`, with the history included."""
        self.squared = self.backend.squares(run) + float(self.history.totals[0])
        return self.squared

    def conclude(self, weights: Iterable[float]) -> History:
        """The history after this fit; ``weights`` are the last three ``totals`` of the current documents."""
        d = len(self.history.penalty)
        cross, gram = self.latest.cross[:, :d].copy(), self.latest.gram[:d, :d].copy()  # without padding
        totals = np.array([self.squared, *(self.history.totals[1:] + list(weights))])
        return replace(self.history, cross=cross, gram=gram, penalty=self.latest.penalty, totals=totals)


def insert(values: Array, at: int, number: int, axis: int) -> Array:
    """Insert zeros for new topics before position ``at`` of an axis."""
    return np.insert(values, [at] * number, 0, axis=axis)


def widened(X: sp.csr_array, n_terms: int) -> sp.csr_array:
    """The same rows with more columns for new terms."""
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_terms))
