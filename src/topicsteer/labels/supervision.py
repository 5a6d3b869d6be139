"""The labels of all documents, as shared patterns; and their origin.

A table may have two columns for the origin. ``chosen`` is "random", "doubt" (drawn with a known probability, doubtful
documents more often) or "suggested" (by a rule or a person). A number gives the order of rounds: "random", then
"suggested 2", then "doubt 3". ``probability`` is the probability of a draw by doubt.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.labels.forest import FLAT, FORBIDDEN, PERMITTED, UNKNOWN, Forest, State
from topicsteer.system.values import CHOSEN, PROBABILITY, is_missing

__all__ = ["CHOSEN", "FORBIDDEN", "PERMITTED", "PROBABILITY", "UNKNOWN", "State", "Supervision"]


@dataclass(frozen=True, eq=False, repr=False)
class Supervision:
    """The known topics of each document: permitted, forbidden or unknown.

    Documents with the same labels share a pattern, so that each document needs four bytes.

    Parameters
    ----------
    topics : tuple of str or int
        Names of the known topics, in the user's order.
    pattern : int32 array of shape (n_documents,)
        Row of ``patterns`` for each document; 0 = unlabelled.
    patterns : int8 array of shape (n_patterns, n_topics)
        1 permitted, 0 forbidden, -1 unknown. The first row is all unknown.
    forest : Forest, optional
        The tree of the topics. Default: a flat list. Patterns follow it: a permitted topic permits the topics above it,
        and a forbidden one forbids the topics below it.

    Examples
    --------
    >>> from topicsteer.labels.forms import supervise
    >>> supervision = supervise(["tea", None, "coffee"], 3)
    >>> supervision.topics
    ('coffee', 'tea')
    >>> supervision.counts
    array([1, 1])
    """

    topics: tuple[Hashable, ...]
    pattern: NDArray[np.int32]
    patterns: NDArray[np.int8]
    forest: Forest = FLAT

    def __post_init__(self) -> None:
        object.__setattr__(self, "forest", self.forest.sized(len(self.topics)))

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Whether each document has a permitted or a forbidden topic."""
        return np.asarray(self.pattern != 0)

    @property
    def permits(self) -> NDArray[np.bool_]:
        """Whether each document has a permitted topic."""
        return np.asarray((self.patterns == PERMITTED).any(axis=1)[self.pattern])

    @property
    def decided(self) -> NDArray[np.bool_]:
        """Whether each document has a permitted topic, and labels do not end above the leaves of a tree."""
        return np.asarray(self.permits & ~self.forest.ends_above(self.patterns)[self.pattern])

    @property
    def outsiders(self) -> NDArray[np.bool_]:
        """Whether each document has none of the topics: all of them are forbidden.

        Examples
        --------
        >>> from topicsteer.labels.forms import supervise
        >>> supervise(["tea", None, "(none)"], 3).outsiders
        array([False, False,  True])
        """
        return np.asarray((self.patterns == FORBIDDEN).all(axis=1)[self.pattern] & self.labelled)

    @property
    def rests(self) -> NDArray[np.bool_]:
        """Whether each topic has others below it, so that its own column is a rest and may be empty."""
        return np.array([bool(below) for below in self.forest.children], dtype=np.bool_)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of documents labelled with each topic."""
        uses = np.bincount(self.pattern, minlength=len(self.patterns))
        return np.asarray(uses @ (self.patterns == PERMITTED), dtype=np.int64)

    def indicator(self) -> sp.csr_array:
        """Sparse 0/1 matrix (n_documents, n_topics) of the permitted topics."""
        return sp.csr_array((self.patterns == PERMITTED).astype(np.float64))[self.pattern]

    def merge(self, group: Sequence[int]) -> Supervision:
        """Merge topics of a flat list into the first of them: permitted if one is, forbidden if all are."""
        states = self.patterns[:, list(group)]
        rest = np.where((states == FORBIDDEN).all(axis=1), FORBIDDEN, UNKNOWN)
        patterns = self.patterns.copy()
        patterns[:, group[0]] = np.where((states == PERMITTED).any(axis=1), PERMITTED, rest)
        topics = tuple(name for k, name in enumerate(self.topics) if k not in group[1:])
        return Supervision(topics, self.pattern, np.delete(patterns, list(group[1:]), axis=1))

    def among(self, topics: Sequence[Hashable], complete: bool, forest: Forest = FLAT) -> Supervision:
        """Add topics: labelled documents forbid them if labels are complete; otherwise they are unknown.

        Below a topic at which the labels of a document end, new topics are always unknown. ``forest`` is the tree of
        all these topics.
        """
        if tuple(topics) == self.topics:
            return self
        patterns = np.full((len(self.patterns), len(topics)), UNKNOWN, dtype=np.int8)
        if complete:
            patterns[(self.patterns == PERMITTED).any(axis=1)] = FORBIDDEN
        place = {name: k for k, name in enumerate(topics)}
        old = {place[name] for name in self.topics}
        patterns[:, [place[name] for name in self.topics]] = self.patterns
        for k in forest.order:
            if k not in old and forest.parents[k] >= 0:
                others = [child for child in forest.children[forest.parents[k]] if child in old]
                patterns[:, k] = forest.new_column(patterns, k, others, complete)
        return Supervision(tuple(topics), self.pattern, patterns, forest)

    def relabel(self, rows: NDArray[np.int64], states: NDArray[np.int8], n_documents: int) -> Supervision:
        """Extend to more documents and apply new states of some; "unknown" leaves the old state.

        Examples
        --------
        >>> from topicsteer.labels.forms import supervise
        >>> old = supervise(["tea", None], 2, topics=["tea", "milk"])
        >>> now = old.relabel(np.array([1, 2]), np.array([[-1, 0], [1, 1]], dtype=np.int8), 3)
        >>> now.patterns[now.pattern].tolist()
        [[1, 0], [-1, 0], [1, 1]]
        """
        seen: dict[bytes, int] = {}
        kept = np.array([seen.setdefault(state.tobytes(), len(seen)) for state in self.patterns], dtype=np.int32)
        pattern = kept[np.pad(self.pattern, (0, n_documents - len(self.pattern)))]
        known = list(seen)
        for row, state in zip(rows, states, strict=True):
            before = np.frombuffer(known[pattern[row]], dtype=np.int8)
            key = np.where(state == UNKNOWN, before, state).astype(np.int8).tobytes()
            if key not in seen:
                seen[key] = len(seen)
                known.append(key)
            pattern[row] = seen[key]
        patterns = np.frombuffer(b"".join(known), dtype=np.int8).reshape(len(known), len(self.topics))
        return Supervision(self.topics, pattern, patterns, self.forest)

    def permitted(self, n_components: int, free_in_labelled: bool) -> NDArray[np.bool_]:
        """The components, known and free, that each pattern permits.

        The component of a topic with others below it is its rest: see `topicsteer.labels.forest`. A pattern that only
        forbids topics always permits the free ones, because no other might be left.
        """
        mask = np.ones((len(self.patterns), n_components), dtype=np.bool_)
        mask[:, : len(self.topics)] = self.forest.own(self.patterns)
        if not free_in_labelled:
            mask[(self.patterns == PERMITTED).any(axis=1), len(self.topics) :] = False
        return mask


def assign_folds(
    truth: sp.csr_array, folds: int, seed: int, others: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """The fold in which the labels of each document are hidden; -1 if they never are.

    Each document counts for its rarest topic, and the documents of a topic are spread evenly over the folds. So every
    topic keeps some labels. A topic with a single document keeps its label in every fold. The documents of the mask
    ``others`` that have no topic are spread in the same way; the folds of all other documents do not depend on them.
    """
    counts = np.asarray(truth.sum(axis=0)).ravel()
    fold = np.full(truth.shape[0], -1, dtype=np.int64)
    rng = np.random.default_rng(seed)
    rarest = rarest_topics(truth)
    for k in np.unique(rarest[rarest >= 0]):
        own = rng.permutation(np.flatnonzero(rarest == k))
        if counts[k] > 1:
            fold[own] = np.arange(len(own)) % max(2, min(folds, len(own)))
    if others is not None:
        rest = rng.permutation(np.flatnonzero(others & (rarest < 0)))
        if len(rest) > 1:
            fold[rest] = np.arange(len(rest)) % min(folds, len(rest))
    return fold


def rarest_topics(truth: sp.csr_array) -> NDArray[np.int64]:
    """The rarest topic of each document; -1 if it has none."""
    counts = np.asarray(truth.sum(axis=0)).ravel()
    rarest = np.full(truth.shape[0], -1, dtype=np.int64)
    for i in np.flatnonzero(np.diff(truth.indptr)):
        rarest[i] = min(truth.indices[truth.indptr[i] : truth.indptr[i + 1]], key=lambda k: counts[k])
    return rarest


class Kind(IntEnum):
    """How a document was chosen."""

    UNKNOWN = 0
    RANDOM = 1
    SUGGESTED = 2
    DOUBT = 3


@dataclass(frozen=True, eq=False)
class Origin:
    """Origin of the labels of each document.

    Parameters
    ----------
    kind : int8 array (n_documents,)
        A :class:`Kind`; unlabelled documents are UNKNOWN.
    draw : int32 array (n_documents,)
        Number of the round in which the document was chosen, from 1; 0 without one.
    probability : array (n_documents,)
        Probability with which the document was drawn; NaN if it is unknown or the same for all documents.

    Notes
    -----
    Labels of unknown origin next to others count as chosen before them.
    """

    kind: NDArray[np.int8]
    draw: NDArray[np.int32]
    probability: NDArray[np.float64]

    @classmethod
    def unknown(cls, n: int) -> Origin:
        """Labels of unknown origin."""
        return cls(np.zeros(n, dtype=np.int8), np.zeros(n, dtype=np.int32), np.full(n, np.nan))

    @classmethod
    def random(cls, n: int) -> Origin:
        """Labels that were all drawn at random."""
        return replace(cls.unknown(n), kind=np.full(n, Kind.RANDOM, dtype=np.int8))

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any]], n: int) -> Origin | None:
        """The origin in the columns ``chosen`` and ``probability`` of a table; None if the first is about other things.

        Raises
        ------
        ValueError
            If a value is not as expected; the message has the row.

        Examples
        --------
        >>> found = Origin.of({"chosen": ["random", None, "doubt 2"], "probability": [None, None, 0.2]}, 3)
        >>> found.kind.tolist(), found.draw.tolist(), found.probability.tolist()
        ([1, 0, 3], [1, 0, 2], [nan, nan, 0.2])
        """
        if CHOSEN not in columns or not any(_kind(str(value)) for value in columns[CHOSEN]):
            return None
        found, given = cls.unknown(n), columns.get(PROBABILITY, [None] * n)
        for row, (chosen, probability) in enumerate(zip(columns[CHOSEN], given, strict=True)):
            if not is_missing(chosen):
                kind, draw = _read(str(chosen), row)
                found.kind[row], found.draw[row] = kind, draw
                found.probability[row] = _probability(probability, kind, row)
        return found

    def arrays(self) -> dict[str, NDArray[Any]] | None:
        """The fields as arrays; None if nothing is known."""
        return vars(self).copy() if self.kind.any() else None

    def names(self) -> list[str | None]:
        """The column ``chosen``."""
        return [_name(Kind(kind), draw) for kind, draw in zip(self.kind.tolist(), self.draw.tolist(), strict=True)]

    @property
    def by_chance(self) -> NDArray[np.bool_]:
        """Whether each document was drawn by chance, with a known probability."""
        return np.isin(self.kind, (Kind.RANDOM, Kind.DOUBT))

    @property
    def rounds(self) -> int:
        """Number of the last round."""
        return int(self.draw.max(initial=0))

    def take(self, rows: NDArray[np.integer[Any]]) -> Origin:
        """The origin of some documents."""
        return Origin(self.kind[rows], self.draw[rows], self.probability[rows])

    def extend(
        self,
        columns: Mapping[str, Sequence[Any]],
        rows: NDArray[np.integer[Any]],
        n: int,
        labelled: NDArray[np.bool_] | None = None,
    ) -> Origin:
        """Extend to n documents, and replace the origin of some rows where the columns of their table have one.

        ``labelled`` has the rows with a label now. First labels without an origin are later than all draws, so they
        are a round of their own that somebody chose.
        """
        other = Origin.of(columns, len(rows)) or Origin.unknown(len(rows))
        more = n - len(self.kind)
        kind, draw = np.pad(self.kind, (0, more)), np.pad(self.draw, (0, more))
        probability = np.pad(self.probability, (0, more), constant_values=np.nan)
        known = other.kind != Kind.UNKNOWN
        kind[rows[known]], draw[rows[known]] = other.kind[known], other.draw[known]
        probability[rows[known]] = other.probability[known]
        if labelled is not None and self.kind.any():
            late = rows[labelled & (kind[rows] == Kind.UNKNOWN)]
            kind[late], draw[late] = Kind.SUGGESTED, max(self.rounds, other.rounds) + 1
        return Origin(kind, draw, probability)


def _name(kind: Kind, draw: int) -> str | None:
    if kind == Kind.UNKNOWN:
        return None
    return kind.name.lower() + (f" {draw}" if draw > 1 else "")


def _read(text: str, row: int) -> tuple[Kind, int]:
    """Kind and number of a draw, from a cell."""
    kind, number = _kind(text), text.strip().partition(" ")[2] or "1"
    if kind is None or not (number.isdecimal() and len(number) < 9):
        raise ValueError(
            f"row {row + 1}: the column {CHOSEN!r} has {text[:40]!r}; expected random, doubt, suggested or nothing."
        )
    return kind, int(number)


def _kind(text: str) -> Kind | None:
    """The kind that a cell names, if any."""
    name = text.strip().upper().partition(" ")[0]
    return Kind[name] if name in ("RANDOM", "SUGGESTED", "DOUBT") else None


def _probability(value: object, kind: Kind, row: int) -> float:
    """The probability of a draw, from a cell."""
    if is_missing(value):
        if kind == Kind.DOUBT:
            raise ValueError(f"row {row + 1}: drawn by doubt, but the column {PROBABILITY!r} is empty.")
        return float("nan")
    try:
        found = float(str(value))
    except ValueError:
        found = 0.0
    if not 0 < found <= 1:
        raise ValueError(f"row {row + 1}: the column {PROBABILITY!r} has {str(value)[:40]!r}; expected 0 to 1.")
    return found
