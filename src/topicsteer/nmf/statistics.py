"""Incremental fits: sufficient statistics of earlier documents, and how they join the current documents.

H needs only sums over documents (see `topicsteer.nmf.loop`). An earlier document stays in these sums with its last W,
and its row is no longer needed. H then minimises the objective of the current documents plus an upper bound of the
objective of the earlier documents. No step can raise this total. A factor below 1 on the sums makes earlier documents
count less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from topicsteer.nmf.blocks import Block, Penalties, RowConstraints, Sums
from topicsteer.nmf.protocols import Backend
from topicsteer.nmf.rules import Regularisation, Step, squares, sums
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array

T = TypeVar("T")
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

    def fade(self, factor: float) -> History:
        """The same documents, with their weights multiplied by a factor."""
        return replace(self, **{name: getattr(self, name) * factor for name in SUMS})

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
