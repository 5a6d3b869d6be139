"""Documents as they come: what is left of those that are gone, and how it joins those that are at hand.

The solver speaks in sums over documents. Of a document that is no longer at hand its part of the sums stays, with the W
that it had last: H then minimises the objective of those at hand plus a bound of that of the others, and no step can
raise it. Where old documents are to count less and less, their sums are multiplied with a factor below 1 now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from topicsteer.nmf.blocks import Block, Penalties, RowConstraints, Sums
from topicsteer.nmf.protocols import Backend, Result
from topicsteer.nmf.rules import Regularisation, Step, squares, sums
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array

T = TypeVar("T")
SUMS = ("cross", "gram", "penalty", "totals")  # what is added up over documents


@dataclass(frozen=True, eq=False)
class History:
    """Sums over documents that are gone.

    Parameters
    ----------
    cross : array (n_terms, n_topics)
        Xᵀ(e∘W).
    gram : array (n_topics, n_topics)
        (e∘W)ᵀW.
    charge : array (n_topics,)
        Σ e (l1 + P) w, what their topics cost.
    totals : array (4,)
        Σ e x²; Σ e; and the weights before labels made some heavier, of all and of labelled documents.
    scale : array (n_topics,)
        What their W has been multiplied with since they went, because H was divided by it.
    """

    cross: Array
    gram: Array
    penalty: Array
    totals: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def nothing(cls, n_terms: int, n_topics: int, dtype: DTypeLike = np.float64) -> History:
        """No document at all.

        Examples
        --------
        >>> History.nothing(5, 2).widen(1, 1, 3).cross.shape
        (8, 3)
        """
        cross, gram = np.zeros((n_terms, n_topics), dtype=dtype), np.zeros((n_topics, n_topics), dtype=dtype)
        return cls(cross, gram, np.zeros(n_topics), np.zeros(4), np.ones(n_topics))

    def __add__(self, other: History) -> History:
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in SUMS})

    def __sub__(self, other: History) -> History:
        less = {name: getattr(self, name) - getattr(other, name) for name in SUMS}
        return replace(self, **{name: np.maximum(value, 0) for name, value in less.items()})  # 0 up to rounding

    def fade(self, factor: float) -> History:
        """The same documents, each with a part of its weight."""
        return replace(self, **{name: getattr(self, name) * factor for name in SUMS})

    def times(self, factor: Array) -> History:
        """What the sums are once the W of each topic is multiplied with a factor."""
        if not self.totals.any():
            return replace(self, scale=self.scale * factor)
        factor = factor.astype(self.cross.dtype)
        gram = self.gram * np.outer(factor, factor)
        return replace(
            self, cross=self.cross * factor, gram=gram, penalty=self.penalty * factor, scale=self.scale * factor
        )

    @classmethod
    def of(cls, X: sp.csr_array, W: Array, weight: Array, penalties: sp.csr_array = None, l1: float = 0.0) -> History:
        """Unlabelled documents with these weights of theirs and of their topics; ``penalties`` are a CSR."""
        n, t = X.shape
        W = np.ascontiguousarray(W, dtype=X.dtype)
        own = Penalties.none(n, X.dtype) if penalties is None else Penalties.of(penalties, X.dtype)
        block = Block.of(X, W, RowConstraints(weight.astype(X.dtype), np.zeros(n, dtype=np.int32), own))
        HT = np.zeros((t, W.shape[1]), dtype=X.dtype)
        total = sums(block, Step(HT, HT[:0], np.ones((1, W.shape[1]), dtype=np.bool_), Regularisation(l1_W=l1)))
        totals = np.array([squares(block), weight.sum(), weight.sum(), 0.0])
        return cls(total.cross, total.gram, total.penalty, totals, np.ones(W.shape[1]))

    def merge(self, group: Sequence[int]) -> History:
        """Several topics as one, at the place of the first: their weights are added up."""
        first, rest = group[0], list(group[1:])
        join = np.delete(np.eye(len(self.penalty)), rest, axis=1)
        join[rest, first - sum(k < first for k in rest)] = 1
        join = join.astype(self.cross.dtype)
        parts = self.cross @ join, join.T @ self.gram @ join, self.penalty @ join
        return History(*parts, self.totals, np.delete(self.scale, rest))

    def widen(self, at: int, n_topics: int, n_terms: int) -> History:
        """Room for more topics before column ``at``, and for more terms behind the last."""
        parts = self.cross, self.gram, self.penalty, self.scale
        cross, gram, penalty, scale = (insert(part, at, n_topics, -1) for part in parts)
        cross, gram = np.pad(cross, ((0, n_terms), (0, 0))), insert(gram, at, n_topics, 0)
        return History(cross, gram, penalty, self.totals, np.where(scale == 0, 1, scale))


@dataclass
class WithHistory(Backend):
    """A place whose documents are joined by those of the past; ``latest`` are the sums of both."""

    place: Backend
    history: History
    latest: Sums = field(init=False)
    squared: float = field(default=0.0, init=False)

    def total(self, update: Callable[..., Sums], step: Step, run: OrderedMap) -> Sums:
        """As in :class:`~topicsteer.nmf.protocols.Backend`."""
        total, history, d = self.place.total(update, step, run), self.history, len(self.history.penalty)
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

    def ask(self, question: Callable[[Block], T], run: OrderedMap) -> list[T]:
        """As in :class:`~topicsteer.nmf.protocols.Backend`."""
        return self.place.ask(question, run)

    def squares(self, run: OrderedMap) -> float:
        """As in :class:`~topicsteer.nmf.protocols.Backend`, with those of the past."""
        self.squared = self.place.squares(run) + float(self.history.totals[0])
        return self.squared

    def keep(self, result: Result) -> None:
        """As in :class:`~topicsteer.nmf.protocols.Backend`."""
        self.place.keep(result)

    def conclude(self, weights: Iterable[float]) -> History:
        """All of it as the past of what will come; ``weights`` are those of the documents at hand, as in ``totals``."""
        d = len(self.history.penalty)
        cross, gram = self.latest.cross[:, :d].copy(), self.latest.gram[:d, :d].copy()  # without padding
        totals = np.array([self.squared, *(self.history.totals[1:] + list(weights))])
        return replace(self.history, cross=cross, gram=gram, penalty=self.latest.penalty, totals=totals)


def insert(values: Array, at: int, number: int, axis: int) -> Array:
    """Zeros for new topics, before the place ``at`` of an axis."""
    return np.insert(values, [at] * number, 0, axis=axis)


def widened(X: sp.csr_array, n_terms: int) -> sp.csr_array:
    """The same rows with room for more terms."""
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_terms))
