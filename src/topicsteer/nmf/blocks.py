"""Blocks of consecutive documents and their sufficient statistics.

A solver updates one block at a time; :class:`Sums` holds the statistics that H needs, added up over blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from topicsteer.system.machine_code import lazy_module
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from topicsteer.nmf import kernels as _kernels
else:
    _kernels = lazy_module("topicsteer.nmf.kernels")

T = TypeVar("T")

# Documents per call of a kernel: few enough for their cross products to stay in the cache.
ROWS = 512
# Documents that `mix_rows` converts to double precision at once.
MIXED_ROWS = 1 << 16
# Entries of X per term that a block needs; with fewer, adding up its sums costs more than parallel work gains.
MIN_ENTRIES_PER_TERM = 32
# Exponents of two of the largest entry of X, and of the largest weight: about 1e-6 and 1e12. Sums of squares lose
# digits beyond them.
LOWEST_EXPONENT = -20
HIGHEST_EXPONENT = 40


def check_scale(largest: float, name: str = "X") -> None:
    """Raise ValueError if the largest entry is too large or too small for sums of squares."""
    exponent = math.frexp(largest)[1]
    if largest > 0 and not LOWEST_EXPONENT <= exponent <= HIGHEST_EXPONENT:
        raise ValueError(
            f"The largest entry of {name} is {largest:.3g}; expected a value from 1e-6 to 1e12, because sums of "
            f"squares would lose their digits. Multiply {name} by 2.0**{-exponent}."
        )


@dataclass(frozen=True)
class Penalties:
    """The penalty of each topic in each row, as CSR arrays; ``indptr`` may be a slice of a larger one.

    A row with entries permits only the topics it stores. A row without entries restricts nothing.
    """

    indptr: NDArray[np.int64]
    topics: NDArray[np.int32]
    values: Array

    @classmethod
    def of(cls, matrix: sp.csr_array, dtype: DTypeLike) -> Penalties:
        """The penalties of a sparse matrix."""
        arrays = (matrix.indptr, np.int64), (matrix.indices, np.int32), (matrix.data, dtype)
        return cls(*(np.ascontiguousarray(array, dtype=kind) for array, kind in arrays))

    @classmethod
    def none(cls, n: int, dtype: DTypeLike) -> Penalties:
        """No restriction on any of n rows."""
        return cls(np.zeros(n + 1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=dtype))

    def rows(self, chosen: slice) -> Penalties:
        """The penalties of consecutive rows, without a copy."""
        return Penalties(self.indptr[chosen.start : chosen.stop + 1], self.topics, self.values)

    @property
    def entries(self) -> tuple[NDArray[np.intp], NDArray[np.int32], Array]:
        """Row, topic and penalty of each stored entry."""
        stored = slice(self.indptr[0], self.indptr[-1])
        rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return rows, self.topics[stored], self.values[stored]

    def column(self, k: int) -> Array:
        """The penalty of one topic in each row: 0 in unrestricted rows, infinity where it is not permitted."""
        rows, topics, values = self.entries
        out = np.where(np.diff(self.indptr) > 0, self.values.dtype.type(np.inf), self.values.dtype.type(0))
        out[rows[topics == k]] = values[topics == k]
        return out

    def dense(self, d: int) -> Array:
        """The penalties as an array of d columns, 0 where none is stored."""
        rows, topics, values = self.entries
        out = np.zeros((len(self.indptr) - 1, d), dtype=self.values.dtype)
        out[rows, topics] = values
        return out

    def clear(self, W: Array) -> None:
        """Set the weights of topics that are not permitted to zero, in place."""
        rows, topics, _ = self.entries
        kept = W[rows, topics]
        W[np.diff(self.indptr) > 0] = 0
        W[rows, topics] = kept


class RowConstraints(NamedTuple):
    """Error weights, label patterns and penalties of the documents of a block."""

    weight: Array
    pattern: NDArray[np.int32]
    penalties: Penalties


@dataclass
class Block:
    """Consecutive documents: rows of X, their topic weights W, and their constraints. Solvers change W in place.

    ``indptr`` may be a slice of a larger one. ``E`` is the full error weight, sparse or dense, if there is one.
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
        """The rows of a CSR with their W and their constraints."""
        indptr = X.indptr.astype(np.int64, copy=False)
        return cls(indptr, X.indices.astype(np.int32, copy=False), X.data, W, *constraints, E)

    def rows(self, chosen: slice) -> Block:
        """A smaller block of consecutive documents, without a copy."""
        indptr, E = self.indptr[chosen.start : chosen.stop + 1], None if self.E is None else self.E[chosen]
        own = self.W[chosen], self.weight[chosen], self.pattern[chosen], self.penalties.rows(chosen)
        return Block(indptr, self.indices, self.data, *own, E)

    def split(self, size: int = ROWS) -> Iterator[Block]:
        """Smaller blocks of ``size`` documents each, in order, without a copy."""
        return (self.rows(chosen) for chosen in slices(len(self.W), size))

    def squared_norms(self) -> NDArray[np.float64]:
        """Σ x² of each document."""
        first, last = self.indptr[0], self.indptr[-1]
        total = np.concatenate([[0.0], np.cumsum(np.square(self.data[first:last], dtype=np.float64))])
        return np.asarray(np.diff(total[self.indptr - first]))


def split_into_blocks(whole: Block, n_terms: int, min_entries: int = MIN_ENTRIES_PER_TERM) -> list[Block]:
    """Split documents into blocks for parallel work, see :func:`block_size`."""
    return list(whole.split(block_size(len(whole.W), whole.indptr[-1], n_terms, min_entries)))


def block_size(n: int, entries: int, n_terms: int, min_entries: int = MIN_ENTRIES_PER_TERM) -> int:
    """Number of documents per block of parallel work.

    The number of blocks is a power of two, and each block has enough entries to pay for adding up its sums:
    ``min_entries`` per term.
    """
    number = 1
    while number < 64 and entries >= 2 * min_entries * n_terms * number and n >= 2 * number:
        number *= 2
    return -(-n // number)


def canonical(X: sp.csr_array) -> sp.csr_array:
    """X with sorted columns and no duplicates: X itself, or a copy."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def times(indptr: NDArray[np.int64], indices: NDArray[np.int32], data: Array, HT: Array) -> Array:
    """X Hᵀ for all topics; the documents are CSR arrays."""
    _kernels.prepare(HT.dtype)
    n = len(indptr) - 1
    out = np.empty((n, HT.shape[1]), dtype=HT.dtype)
    everything, pattern = np.ones((1, HT.shape[1]), dtype=np.bool_), np.zeros(n, dtype=np.int32)
    penalties = Penalties.none(n, HT.dtype)
    _kernels.cross_rows(indptr, indices, data, HT, everything, pattern, penalties.indptr, penalties.topics, out)
    return out


def slices(length: int, size: int) -> list[slice]:
    """Consecutive slices of ``size`` that cover 0 to ``length``."""
    return [slice(low, min(low + size, length)) for low in range(0, length, max(size, 1))]


@dataclass
class Sums:
    """Sufficient statistics of some documents: everything that the update of H and the objective need.

    ``cross`` is Xᵀ(e∘W), ``gram`` the Gram matrix (e∘W)ᵀW, and ``penalty`` the sum Σ e (l1 + P) w of each topic.
    ``below``, the paper's denominator for H, and ``error`` are set only under a full error weight E; otherwise both
    follow from ``gram`` and ``cross``.
    """

    cross: Array
    gram: Array
    penalty: NDArray[np.float64]
    below: Array | None = None
    error: float = 0.0

    def __sizeof__(self) -> int:
        """Size in bytes: Dask uses it to add sums on the worker that holds them."""
        return self.cross.nbytes + self.gram.nbytes + (0 if self.below is None else self.below.nbytes)

    def __add__(self, other: Sums) -> Sums:
        total = replace(self, cross=self.cross.copy(), below=None if self.below is None else self.below.copy())
        total += other
        return total

    def __iadd__(self, other: Sums) -> Sums:
        """Add in place."""
        self.cross += other.cross
        self.gram, self.penalty = self.gram + other.gram, self.penalty + other.penalty
        if self.below is not None and other.below is not None:
            self.below += other.below
        self.error += other.error
        return self

    def times(self, factor: Array) -> Sums:
        """The sums after W is multiplied by one factor per topic, in place; ``below`` does not change."""
        self.cross *= factor
        self.gram = self.gram * np.outer(factor, factor)
        return self


def tree_sum(terms: Iterable[T], add: Callable[[T, T], T]) -> T:
    """Add terms pairwise in a fixed tree, neighbours first.

    The tree depends on the number of terms alone, so rounding does too. Few terms are in memory at once.

    Examples
    --------
    >>> tree_sum("abcdef", lambda a, b: f"({a}{b})")
    '(((ab)(cd))(ef))'
    """
    waiting: list[tuple[int, T]] = []
    for term in terms:
        size = 1
        while waiting and waiting[-1][0] == size:
            term = add(waiting.pop()[1], term)
            size *= 2
        waiting.append((size, term))
    _, total = waiting.pop()
    while waiting:
        total = add(waiting.pop()[1], total)
    return total


def mix_rows(weights: sp.sparray, blocks: Iterable[tuple[int, sp.csr_array]], n_terms: int) -> NDArray[np.float64]:
    """The product ``weights`` (k, n) times X, where each block of X comes with the number of its first row.

    It is computed in double precision, so that block boundaries do not show in the result.
    """
    weights = sp.csc_array(weights, dtype=np.float64)
    out = np.zeros((weights.shape[0], n_terms))
    for start, X in blocks:
        used = start + np.flatnonzero(np.diff(weights.indptr[start : start + X.shape[0] + 1]))
        for chosen in slices(len(used), MIXED_ROWS):
            rows = used[chosen]
            out += (weights[:, rows] @ X[rows - start].astype(np.float64)).toarray()
    return out
