"""Trees of topics: the rules for labels, masks and memberships that follow from them.

This is the only module that knows the rules of a tree:

- A document that has a topic has all topics above it. Label states follow this rule (:meth:`Forest.closed`), and so do
  memberships (:meth:`Forest.raised`).
- A label permits its own topic and all topics below it. The column of a topic with children is the topic's rest:
  "sport, nothing below" (:meth:`Forest.own`, :meth:`Forest.rest`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from topicsteer.system.types import Array

T = TypeVar("T", bound=np.generic)


class State(IntEnum):
    """State of a topic in a document."""

    UNKNOWN = -1
    FORBIDDEN = 0
    PERMITTED = 1


# The states as plain integers, because numpy widens int8 arrays that are combined with an enum.
UNKNOWN, FORBIDDEN, PERMITTED = map(int, State)


@dataclass(frozen=True)
class Forest:
    """Topics by number, each with the number of its parent; without any parent, it is flat, and all rules do nothing.

    Parameters
    ----------
    parents : tuple of int
        Number of each topic's parent; -1 for a topic without one.

    Raises
    ------
    ValueError
        If a parent does not exist, or topics are below themselves.

    Examples
    --------
    >>> forest = Forest((-1, 0, 0, 1, -1))
    >>> forest.order, forest.depth
    ((0, 1, 3, 2, 4), (0, 1, 1, 2, 0))
    >>> forest.ancestors(3), forest.descendants(0)
    ((1, 0), (1, 3, 2))
    >>> forest.cuts
    ((0, 4), (1, 2, 4), (2, 3, 4))
    """

    parents: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        wrong = [k for k, parent in enumerate(self.parents) if not -1 <= parent < len(self.parents)]
        if wrong:
            raise ValueError(
                f"the topic number {wrong[0]} has the parent {self.parents[wrong[0]]}, which does not exist."
            )
        if ring := cycle(self.parents):
            raise ValueError(f"the topics number {' and '.join(map(str, ring))} are below each other.")

    def sized(self, n: int) -> Forest:
        """Return this forest; a flat one gets n topics."""
        return Forest((-1,) * n) if self.flat and len(self) != n else self

    @cached_property
    def flat(self) -> bool:
        """Whether no topic has a parent."""
        return not any(parent >= 0 for parent in self.parents)

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each topic, in order."""
        found: list[list[int]] = [[] for _ in self.parents]
        for k, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(k)
        return tuple(map(tuple, found))

    @property
    def roots(self) -> tuple[int, ...]:
        """Topics without a parent."""
        return tuple(k for k, parent in enumerate(self.parents) if parent < 0)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All topics depth first: each topic is followed by the topics below it."""
        return tuple(k for root in self.roots for k in (root, *self.descendants(root)))

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """Level of each topic, 0 for a topic without a parent."""
        return tuple(len(self.ancestors(k)) for k in range(len(self)))

    @cached_property
    def cuts(self) -> tuple[tuple[int, ...], ...]:
        """Flat lists of topics, one per level: the topics of the level, and leaves of the levels above it.

        No topic of a cut is below another. The last cut has the leaves.
        """
        levels = range(max(self.depth, default=0) + 1)
        return tuple(
            tuple(k for k, depth in enumerate(self.depth) if depth == level or (depth < level and not self.children[k]))
            for level in levels
        )

    def ancestors(self, k: int) -> tuple[int, ...]:
        """The topics above a topic, nearest first."""
        found = []
        while (k := self.parents[k]) >= 0:
            found.append(k)
        return tuple(found)

    def descendants(self, k: int) -> tuple[int, ...]:
        """The topics below a topic, depth first."""
        found, left = [], list(reversed(self.children[k]))
        while left:
            found.append(left.pop())
            left += reversed(self.children[found[-1]])
        return tuple(found)

    def part(self, topics: Sequence[int]) -> Forest:
        """The forest of some topics, numbered by their positions; a topic goes under its nearest ancestor among them.

        Examples
        --------
        >>> Forest((-1, 0, 1, 0)).part([0, 2, 3])
        Forest(parents=(-1, 0, 0))
        """
        place = {topic: position for position, topic in enumerate(topics)}
        above = ((place[k] for k in self.ancestors(topic) if k in place) for topic in topics)
        return Forest(tuple(next(line, -1) for line in above))

    # --- label states ---

    def closed(self, patterns: NDArray[np.int8], *, explicit: bool = False) -> NDArray[np.int8]:
        """Label states that no longer contradict the tree.

        A permitted topic permits all topics above it. A forbidden topic forbids all topics below it. If the labels of
        a document end at a topic, the topics below are unknown.

        Parameters
        ----------
        patterns : array of int (n_patterns, n_topics)
        explicit : bool, default=False
            Whether each forbidden topic was forbidden one by one. It then stays forbidden below a label.

        Examples
        --------
        >>> Forest((-1, 0, 0, -1)).closed(np.array([[0, 1, 0, 0], [1, 0, 0, 0]], dtype=np.int8)).tolist()
        [[1, 1, 0, 0], [1, -1, -1, 0]]
        """
        if self.flat:
            return patterns
        found = np.where(self.with_ancestors(patterns == PERMITTED), PERMITTED, patterns).astype(np.int8)
        for k in self.order:
            below = list(self.children[k])
            if not below:
                continue
            ends = (found[:, k] != FORBIDDEN) & ~(found[:, below] == PERMITTED).any(axis=1)
            if not explicit:
                found[np.ix_(ends, below)] = UNKNOWN
            found[np.ix_(found[:, k] == FORBIDDEN, below)] = FORBIDDEN
        return found

    def own(self, patterns: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Whether each pattern permits each topic's own column, for closed label states.

        A topic without children: if it is not forbidden. Otherwise the column is the rest of the topic, and labels that
        are complete below it leave none.
        """
        permitted = np.asarray(patterns != FORBIDDEN)
        for k, below in enumerate(self.children):
            if below:
                states = patterns[:, list(below)]
                permitted[(states == PERMITTED).any(axis=1) & ~(states == UNKNOWN).any(axis=1), k] = False
        return permitted

    def ends_above(self, patterns: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Whether the labels of each pattern end at a topic with children, which leaves the topics below unknown."""
        found = np.zeros(len(patterns), dtype=np.bool_)
        for k, below in enumerate(self.children):
            if below:
                states = patterns[:, list(below)]
                unknown = (states == UNKNOWN).any(axis=1) & ~(states == PERMITTED).any(axis=1)
                found |= (patterns[:, k] == PERMITTED) & unknown
        return found

    def new_column(self, patterns: NDArray[np.int8], k: int, others: Sequence[int], complete: bool) -> NDArray[np.int8]:
        """Label states of a topic that is new below its parent, from the states of ``others``, its earlier siblings."""
        parent = patterns[:, self.parents[k]]
        known = (patterns[:, list(others)] == PERMITTED).any(axis=1) if complete and others else np.False_
        return np.where((parent == FORBIDDEN) | known, FORBIDDEN, UNKNOWN).astype(np.int8)

    def replanted(self, patterns: NDArray[np.int8], before: Forest, complete: bool) -> NDArray[np.int8]:
        """Label states under this tree, from states that followed another tree of the same topics.

        The labels of a document are its permitted topics without permitted topics below them. Topics that were
        forbidden below a label stay forbidden there.
        """
        labels = before.deepest(np.asarray(patterns == PERMITTED))
        some = labels.any(axis=1)
        found = patterns.copy()
        found[some] = FORBIDDEN if complete else UNKNOWN
        found[labels] = PERMITTED
        found = self.closed(found)
        for k in range(len(self)):
            below = sorted({*before.descendants(k)} & {*self.descendants(k)})
            kept = np.ix_(np.flatnonzero(labels[:, k]), np.array(below, dtype=np.int64))
            found[kept] = np.where((patterns[kept] == FORBIDDEN) & (found[kept] == UNKNOWN), FORBIDDEN, found[kept])
        if not complete:
            found = np.where((patterns == FORBIDDEN) & (found == UNKNOWN), FORBIDDEN, found)
        return self.closed(found.astype(np.int8), explicit=True)

    # --- memberships ---

    def top(self, memberships: Array) -> Array:
        """Memberships (n_documents, n_topics) of the topics without a parent."""
        return memberships if self.flat else memberships[:, list(self.roots)]

    def raised(self, memberships: Array) -> Array:
        """Memberships (n_documents, at least n_topics) with parents at least as large as their children.

        Examples
        --------
        >>> Forest((-1, 0, 1)).raised(np.array([[0.2, 0.1, 0.4]])).tolist()
        [[0.4, 0.4, 0.4]]
        """
        return self._upwards(memberships, np.fmax)

    def summed(self, parts: Array) -> Array:
        """Parts of documents (n_documents, at least n_topics) that topics make up, with all topics below them.

        Examples
        --------
        >>> Forest((-1, 0, 1)).summed(np.array([[0.25, 0.5, 0.125]])).tolist()
        [[0.875, 0.625, 0.125]]
        """
        return self._upwards(parts, np.add)

    def rest(self, memberships: Array) -> Array:
        """Memberships (n_documents, at least n_topics) of each topic without the topics below it.

        A topic's membership minus the sum of its children's, at least 0. So shares add up: a topic's share is its rest
        plus the shares of its children, less the documents that several children count.

        Examples
        --------
        >>> Forest((-1, 0, 0)).rest(np.array([[0.75, 0.5, 0.125], [0.5, 0.5, 0.25]])).tolist()
        [[0.125, 0.5, 0.125], [0.0, 0.5, 0.25]]
        """
        if self.flat:
            return memberships
        found = memberships.copy()
        for k, below in enumerate(self.children):
            if below:
                found[:, k] = np.maximum(memberships[:, k] - memberships[:, list(below)].sum(axis=1), 0)
        return found

    def conditional(self, memberships: Array, patterns: NDArray[np.int8]) -> Array:
        """Memberships of topics below a label, given that the label is right: divided by the label's membership.

        Parameters
        ----------
        memberships : array (n_documents, n_topics)
            Memberships without regard to labels; parents are at least as large as children.
        patterns : array of int (n_documents, n_topics)
            Closed label states of the documents.
        """
        if self.flat:
            return memberships
        found = memberships.copy()
        for k in self.order:  # a label further down comes later, and decides
            if self.children[k]:
                rows = np.flatnonzero((patterns[:, k] == PERMITTED) & (memberships[:, k] > 0))
                below = np.ix_(rows, np.array(self.descendants(k)))
                found[below] = memberships[below] / memberships[rows, k][:, None]
        return found

    def lowered(self, thresholds: Array) -> Array:
        """Thresholds with parents at most as large as their children: a document with a topic has the topics above."""
        return self._upwards(thresholds, np.minimum)

    def deepest(self, has: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The topics of each document without the topics above them.

        Examples
        --------
        >>> Forest((-1, 0, -1)).deepest(np.array([[True, True, False], [True, False, True]])).tolist()
        [[False, True, False], [True, False, True]]
        """
        if self.flat:
            return has
        found = has.copy()
        for k, below in enumerate(self.children):
            if below:
                found[:, k] &= ~has[:, list(self.descendants(k))].any(axis=1)
        return found

    def with_ancestors(self, has: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The topics of each document with the topics above them."""
        return self._upwards(has, np.logical_or)

    def _upwards(self, values: NDArray[T], join: np.ufunc) -> NDArray[T]:
        """Join the value of each parent with the values of its children, from the leaves up; topics come last."""
        if self.flat:
            return values
        found = values.copy()
        for k in reversed(self.order):
            parent = self.parents[k]
            if parent >= 0:
                found[..., parent] = join(found[..., parent], found[..., k])
        return found


def cycle(parents: Sequence[int]) -> tuple[int, ...]:
    """Topics that are below each other, in a ring; empty if there are none.

    Examples
    --------
    >>> cycle([1, 2, 0, -1]), cycle([-1, 0])
    ((0, 1, 2), ())
    """
    safe: set[int] = set()
    for start in range(len(parents)):
        path: dict[int, None] = {}  # an ordered set
        k = start
        while k >= 0 and k not in safe:
            if k in path:
                ring = list(path)
                return tuple(ring[ring.index(k) :])
            path[k] = None
            k = parents[k]
        safe.update(path)
    return ()


# A flat list of topics, of any number.
FLAT = Forest()
