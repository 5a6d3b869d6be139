"""Shares of a tree of topics, which add up: a topic is its rest plus the topics below it.

The rest of a topic ("sport, nothing below") has a share of its own. If no labelled document has two children of a
topic, children and rest exclude each other. Their shares move until they add up, less precise ones more. Otherwise
documents with several children count several times, so the sum exceeds the share of the parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topicsteer.labels.forest import Forest
from topicsteer.system.types import Array

# Name of the rest of a topic.
REST = "{}, nothing below"
# Differences of shares below this are rounding errors.
TINY = 1e-12


@dataclass(frozen=True)
class TreeColumns:
    """Columns of labels and predictions for a tree: one per topic, one for none of them, and one per rest.

    Parameters
    ----------
    forest : Forest
        The tree of the known topics.
    found : frozenset of int
        Free topics inside others. They have no labels, and share the rest of the topic that they are inside.
    """

    forest: Forest
    found: frozenset[int] = frozenset()

    @cached_property
    def below(self) -> dict[int, tuple[int, ...]]:
        """The named children of each topic that has any."""
        named = {k: tuple(c for c in own if c not in self.found) for k, own in enumerate(self.forest.children)}
        return {k: own for k, own in named.items() if own}

    @cached_property
    def rest_of(self) -> dict[int, int]:
        """Column of the rest of each topic with named children."""
        return {k: len(self.forest) + 1 + place for place, k in enumerate(self.below)}

    @property
    def above(self) -> tuple[int, ...]:
        """The topic above each column; -1 without one."""
        return (*self.forest.parents, -1, *self.below)

    def labels(self, labels: Array) -> Array:
        """Labels (1, 0, NaN) of topics and of none, with a column per rest; unknown if a topic below is unknown.

        Examples
        --------
        >>> tree = TreeColumns(Forest((-1, 0, 0)))
        >>> tree.labels(np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [1, np.nan, 0, 0]]))[:, -1].tolist()
        [0.0, 1.0, 0.0, nan]
        """
        rests = []
        for k, own in self.below.items():
            states = labels[:, list(own)]
            lacks = (labels[:, k] == 0) | (states == 1).any(axis=1)
            has = (labels[:, k] == 1) & (states == 0).all(axis=1)
            rests.append(np.where(lacks, 0.0, np.where(has, 1.0, np.nan)))
        return np.column_stack([labels, *rests])

    def predictions(self, P: Array) -> Array:
        """Predictions of topics and of none, with a column per rest: the difference between a topic and those below."""
        rests = [np.maximum(P[:, k] - P[:, list(own)].sum(axis=1), 0) for k, own in self.below.items()]
        return np.column_stack([P, *rests])

    def excluding(self, labels: Array) -> list[int]:
        """Topics whose children exclude each other: no label gives a document two of them."""
        return [k for k, own in self.below.items() if not ((labels[:, list(own)] == 1).sum(axis=1) > 1).any()]

    def add_up(self, labels: Array, share: Array, low: Array, high: Array) -> None:
        """Move shares (n_groups, n_columns) and their intervals in place, from the top of the tree to its leaves.

        ``labels`` are labels of topics, one row per document.

        Examples
        --------
        >>> tree, labels = TreeColumns(Forest((-1, 0, 0))), np.array([[1.0, 1.0, 0.0, 0.0]])
        >>> share = np.array([[0.5, 0.3, 0.1, 0.5, 0.14]])
        >>> tree.add_up(labels, share, share - 0.05, share + 0.05)
        >>> share.round(3).tolist()
        [[0.5, 0.287, 0.087, 0.5, 0.127]]
        """
        exclude = set(self.excluding(labels))
        for k in self.forest.order:
            if k not in self.below:
                continue
            columns = [*self.below[k], self.rest_of[k]]
            for g in range(len(share)):
                if k in exclude:
                    moved = spread_out(share[g, columns], (high - low)[g, columns], share[g, k])
                else:
                    moved = np.minimum(share[g, columns], share[g, k])
                    moved[-1] = max(moved[-1], share[g, k] - moved[:-1].sum())
                by = moved - share[g, columns]
                low[g, columns] = np.clip(low[g, columns] + by, 0, moved)
                high[g, columns] = np.clip(high[g, columns] + by, moved, 1)
                share[g, columns] = moved

    def split_rests(self, share: Array, low: Array, high: Array, plain: Array) -> None:
        """Give free topics inside others their part of the rest, by plain averages (n_groups, n_columns).

        Labels do not separate these topics from the rest, so neither has an interval.
        """
        for k, own in enumerate(self.forest.children):
            inside = [c for c in own if c in self.found]
            if not inside:
                continue
            rest = self.rest_of.get(k)
            whole = share[:, k] if rest is None else share[:, rest]
            others = plain[:, k] - plain[:, list(own)].sum(axis=1)
            parts = np.column_stack([plain[:, inside], np.maximum(others, 0)])
            parts[parts.sum(axis=1) <= TINY, -1] = 1.0  # nothing to go by: all of it is the rest
            parts *= (whole / np.maximum(parts.sum(axis=1), TINY))[:, None]
            share[:, inside] = parts[:, :-1]
            low[:, inside] = high[:, inside] = np.nan
            if rest is not None:
                share[:, rest] = parts[:, -1]
                low[:, rest] = high[:, rest] = np.nan

    def names(self, topics: Sequence[str]) -> list[str]:
        """Names of the rests."""
        return [REST.format(topics[k]) for k in self.below]

    def order(self, n_topics: int) -> NDArray[np.int64]:
        """Order of all columns with each rest behind its topic; before, rests follow the ``n_topics`` others."""
        place = {k: n_topics + number for number, k in enumerate(self.below)}
        return np.array([c for k in range(n_topics) for c in ([k, place[k]] if k in place else [k])], dtype=np.int64)


def spread_out(share: Array, width: Array, total: float) -> Array:
    """Shares that are at least 0 and have the given sum, each moved in proportion to the square of its width.

    Shares without an interval (NaN) move first: they are plain averages.

    Examples
    --------
    >>> spread_out(np.array([0.3, 0.2]), np.array([0.2, 0.1]), 0.45).round(2).tolist()
    [0.26, 0.19]
    >>> spread_out(np.array([0.3, 0.2]), np.array([0.2, np.nan]), 0.4).round(2).tolist()
    [0.3, 0.1]
    """
    found = np.asarray(share, dtype=np.float64).copy()
    measured = ~np.isnan(width)
    for movable in [measured] if measured.all() else [~measured, measured]:
        ease = np.where(movable, np.square(np.nan_to_num(width, nan=1.0)), 0.0)
        if not ease.any():
            ease = movable.astype(np.float64)
        while ease.any() and abs(gap := total - found.sum()) > TINY:
            moved = found + gap * ease / ease.sum()
            ease = np.where(moved < 0, 0.0, ease)
            found = np.maximum(moved, 0.0)
    return found
