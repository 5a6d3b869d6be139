"""Blocks of documents: what a solver works on, so that sums over documents can be made piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from topicsteer.nmf import kernels as _kernels
from topicsteer.system.types import Array

T = TypeVar("T")

ROWS = 512  # documents whose cross products are kept at once: they stay in the cache
MIXED_ROWS = 1 << 16  # documents that are added up in double precision at once
MIN_TERMS = 32  # a block has this many entries a term, or adding up its sums would cost more than it gains


@dataclass(frozen=True)
class Penalties:
    """What a topic costs in each row, as CSR arrays; ``indptr`` may be a slice of a larger mask's.

    A row that stores something permits only the topics that it stores. A row that stores nothing is not restricted.
    """

    indptr: NDArray[np.int64]
    topics: NDArray[np.int32]
    values: Array

    @classmethod
    def of(cls, matrix: sp.csr_array, dtype: DTypeLike) -> Penalties:
        """The mask that a sparse matrix of prices describes."""
        parts = (matrix.indptr, np.int64), (matrix.indices, np.int32), (matrix.data, dtype)
        return cls(*(np.ascontiguousarray(part, dtype=kind) for part, kind in parts))

    @classmethod
    def none(cls, n: int, dtype: DTypeLike) -> Penalties:
        """A mask that says nothing of n rows."""
        return cls(np.zeros(n + 1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=dtype))

    def rows(self, part: slice) -> Penalties:
        """The mask of some of the rows, without a copy."""
        return Penalties(self.indptr[part.start : part.stop + 1], self.topics, self.values)

    @property
    def entries(self) -> tuple[NDArray[np.intp], NDArray[np.int32], Array]:
        """Row, topic and price of all that is stored."""
        part = slice(self.indptr[0], self.indptr[-1])
        rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return rows, self.topics[part], self.values[part]

    def column(self, k: int) -> Array:
        """The price of one topic in each row: 0 where nothing is said, infinity where it is not permitted."""
        rows, topics, values = self.entries
        out = np.where(np.diff(self.indptr) > 0, self.values.dtype.type(np.inf), self.values.dtype.type(0))
        out[rows[topics == k]] = values[topics == k]
        return out

    def dense(self, d: int) -> Array:
        """Price of each of d topics in each row; 0 where none is stored."""
        rows, topics, values = self.entries
        out = np.zeros((len(self.indptr) - 1, d), dtype=self.values.dtype)
        out[rows, topics] = values
        return out

    def clear(self, W: Array) -> None:
        """Set to zero what is not permitted."""
        rows, topics, _ = self.entries
        kept = W[rows, topics]
        W[np.diff(self.indptr) > 0] = 0
        W[rows, topics] = kept


class RowConstraints(NamedTuple):
    """What is known of the documents of a block beside their terms: error weights, label patterns, the soft mask."""

    weight: Array
    pattern: NDArray[np.int32]
    penalties: Penalties


@dataclass
class Block:
    """Consecutive documents: rows of X, their weights W (changed in place), error weights and label patterns.

    ``indptr`` may be a slice of a larger matrix's; ``soft`` is the soft mask of these rows and ``E`` their full error
    weight, sparse or dense, if there is one.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: Array
    W: Array
    weight: Array
    pattern: NDArray[np.int32]
    penalties: Penalties
    E: sp.csr_array = None

    @classmethod
    def of(cls, X: sp.csr_array, W: Array, constraints: RowConstraints, E: sp.csr_array = None) -> Block:
        """The rows of a CSR, with the W that they have."""
        return cls(X.indptr.astype(np.int64, copy=False), X.indices, X.data, W, *constraints, E)

    def part(self, rows: slice) -> Block:
        """Some of its documents, without a copy."""
        indptr, E = self.indptr[rows.start : rows.stop + 1], None if self.E is None else self.E[rows]
        own = self.W[rows], self.weight[rows], self.pattern[rows], self.penalties.rows(rows)
        return Block(indptr, self.indices, self.data, *own, E)

    def parts(self, size: int = ROWS) -> Iterator[Block]:
        """A few of its documents at a time."""
        return (self.part(rows) for rows in slices(len(self.W), size))

    def squared_norms(self) -> NDArray[np.float64]:
        """Sum of x² of each document."""
        first, last = self.indptr[0], self.indptr[-1]
        total = np.concatenate([[0.0], np.cumsum(np.square(self.data[first:last], dtype=np.float64))])
        return np.asarray(np.diff(total[self.indptr - first]))


def split_into_blocks(whole: Block, n_terms: int) -> list[Block]:
    """Blocks of documents: a power of two of them, each with work enough to pay for adding up its sums."""
    n, entries, number = len(whole.W), whole.indptr[-1], 1
    while number < 64 and entries >= 2 * MIN_TERMS * n_terms * number and n >= 2 * number:
        number *= 2
    return list(whole.parts(-(-n // number)))


def canonical(X: sp.csr_array) -> sp.csr_array:
    """A CSR whose rows have sorted columns, each once: the same, or a copy."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def times(indptr: NDArray[np.int64], indices: NDArray[np.int32], data: Array, HT: Array) -> Array:
    """X Hᵀ for all topics of documents given as CSR arrays."""
    _kernels.prepare(HT.dtype)
    n = len(indptr) - 1
    out = np.empty((n, HT.shape[1]), dtype=HT.dtype)
    everything, pattern = np.ones((1, HT.shape[1]), dtype=np.bool_), np.zeros(n, dtype=np.int32)
    penalties = Penalties.none(n, HT.dtype)
    _kernels.cross_rows(indptr, indices, data, HT, everything, pattern, penalties.indptr, penalties.topics, out)
    return out


def slices(length: int, size: int) -> list[slice]:
    """0 to ``length`` in pieces of ``size``."""
    return [slice(low, min(low + size, length)) for low in range(0, length, max(size, 1))]


@dataclass
class Sums:
    """What H and the objective need to know of some documents.

    ``charge`` is Σ e (l1 + P) w of each topic. ``below`` is the paper's denominator for H; it follows from ``gram``
    unless E is a full matrix.
    """

    cross: Array
    gram: Array
    penalty: NDArray[np.float64]
    below: Array | None = None
    error: float = 0.0

    def __sizeof__(self) -> int:
        """What Dask goes by: it adds up sums where they are."""
        return self.cross.nbytes + self.gram.nbytes + (0 if self.below is None else self.below.nbytes)

    def __add__(self, other: Sums) -> Sums:
        total = replace(self, cross=self.cross.copy(), below=None if self.below is None else self.below.copy())
        total += other
        return total

    def __iadd__(self, other: Sums) -> Sums:
        """The same in the memory of the first."""
        self.cross += other.cross
        self.gram, self.penalty = self.gram + other.gram, self.penalty + other.penalty
        if self.below is not None and other.below is not None:
            self.below += other.below
        self.error += other.error
        return self

    def times(self, factor: Array) -> Sums:
        """The sums after W is multiplied with a factor for each topic; in the memory of these, ``below`` apart."""
        self.cross *= factor
        self.gram = self.gram * np.outer(factor, factor)
        return self


def in_a_tree(parts: Iterable[T], add: Callable[[T, T], T]) -> T:
    """The sum of parts in their order, neighbours first: the same tree whoever adds, and few parts held at once.

    Examples
    --------
    >>> in_a_tree("abcdef", lambda a, b: f"({a}{b})")
    '(((ab)(cd))(ef))'
    """
    waiting: list[tuple[int, T]] = []
    for part in parts:
        size = 1
        while waiting and waiting[-1][0] == size:
            part = add(waiting.pop()[1], part)
            size *= 2
        waiting.append((size, part))
    _, total = waiting.pop()
    while waiting:
        total = add(waiting.pop()[1], total)
    return total


def mix_rows(weights: sp.sparray, blocks: Iterable[tuple[int, sp.csr_array]], n_terms: int) -> NDArray[np.float64]:
    """``weights`` (k, n) times documents that come in blocks, each with the number of its first row.

    In double precision, so that it does not show where the blocks were cut.
    """
    weights = sp.csc_array(weights, dtype=np.float64)
    out = np.zeros((weights.shape[0], n_terms))
    for start, X in blocks:
        used = start + np.flatnonzero(np.diff(weights.indptr[start : start + X.shape[0] + 1]))
        for part in slices(len(used), MIXED_ROWS):
            rows = used[part]
            out += (weights[:, rows] @ X[rows - start].astype(np.float64)).toarray()
    return out
