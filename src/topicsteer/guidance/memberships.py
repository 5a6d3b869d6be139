"""Who has what: the one rule for known topics, free topics and none of the known topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topicsteer.guidance.apply import THRESHOLD_RANGE
from topicsteer.labels.forest import FLAT, Forest
from topicsteer.system.types import Array

# Membership from which a document has a free topic: the largest threshold that a known topic may have.
FREE_THRESHOLD = max(THRESHOLD_RANGE)


@dataclass(frozen=True, eq=False)
class Memberships:
    """Memberships of documents in known topics, in free topics and in none of the known topics.

    Parameters
    ----------
    values : array (n_documents, n_topics + 1)
        Known topics, free topics, and P(none). Known topics are enough for ``has_known`` and ``decisions``.
    thresholds : array (n_known,)
        Threshold of each known topic.
    open : bool
        Whether documents may have none of the known topics.
    forest : Forest
        The tree of the known topics.

    Examples
    --------
    >>> P = np.array([[0.9, 0.0, 0.1], [0.1, 0.7, 0.9], [0.1, 0.1, 0.9]])
    >>> found = Memberships(P, np.array([0.5]), open=True)
    >>> found.has().tolist(), found.main().tolist()
    ([[True, False], [False, True], [False, False]], [0, 1, 2])
    """

    values: Array
    thresholds: Array
    open: bool = False
    forest: Forest = FLAT

    @property
    def known(self) -> Array:
        """Memberships in the known topics."""
        return self.values[:, : len(self.thresholds)]

    @property
    def free(self) -> Array:
        """Memberships in the free topics."""
        return self.values[:, len(self.thresholds) : -1]

    @property
    def none(self) -> Array:
        """P(none)."""
        return self.values[:, -1]

    @cached_property
    def has_known(self) -> NDArray[np.bool_]:
        """Whether each document has each known topic: memberships at or above the thresholds."""
        return np.asarray(self.known >= self.thresholds)

    @cached_property
    def has_none(self) -> NDArray[np.bool_]:
        """Whether each document has none of the known topics; in a closed world only by a label."""
        if self.open:
            return np.asarray(~self.has_known.any(axis=1))
        return np.asarray(self.none > self.known.max(axis=1, initial=0.0))

    def has(self) -> NDArray[np.bool_]:
        """Whether each document has each topic; in an open world, documents with a known topic have no free one."""
        free = np.asarray(self.free >= FREE_THRESHOLD)
        if self.open:
            free &= self.has_none[:, None]
        return np.hstack([self.has_known, free])

    def decisions(self, names: Sequence[str], *, ancestors: bool = False) -> list[list[str]]:
        """Return the names of the known topics of each document, strongest first.

        In a tree these are the deepest topics, and with ``ancestors`` also the topics above them.
        """
        has = self.forest.with_ancestors(self.has_known) if ancestors else self.forest.deepest(self.has_known)
        order = np.argsort(-self.known, axis=1, kind="stable")
        return [[names[k] for k in ranks if row[k]] for row, ranks in zip(has, order, strict=True)]

    def main(self) -> NDArray[np.int64]:
        """Return the main topic of each document; the number after the last topic stands for none.

        It is the strongest known topic that the document has, of a tree the deepest. In an open world, other documents
        have their strongest free topic, or none. In a closed world, they have their strongest topic of any kind.
        """
        n_known = len(self.thresholds)
        P = np.asarray(self.values, dtype=np.float32)
        strength = P.copy()
        has = self.forest.deepest(self.has_known)
        lacks = ~has.any(axis=1)
        strength[:, :n_known][~has] = 0
        strength[~lacks, n_known:] = 0
        if self.open:
            free = strength[:, n_known:-1]
            free[free < FREE_THRESHOLD] = 0
            strength[lacks & ~free.any(axis=1), -1] = np.inf
            strength[lacks & free.any(axis=1), -1] = 0
        else:
            strength[lacks] = P[lacks]
            strength[~P.any(axis=1), -1] = np.inf
        return np.asarray(strength.argmax(axis=1))
