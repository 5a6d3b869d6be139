"""The labels of all documents, as shared patterns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class State(IntEnum):
    """State of a topic in a document."""

    UNKNOWN = -1
    FORBIDDEN = 0
    PERMITTED = 1


# The states as plain integers, because numpy widens int8 arrays that are combined with an enum.
UNKNOWN, FORBIDDEN, PERMITTED = map(int, State)


@dataclass(frozen=True, eq=False)
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

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Whether each document has a permitted or a forbidden topic."""
        return np.asarray(self.pattern != 0)

    @property
    def permits(self) -> NDArray[np.bool_]:
        """Whether each document has a permitted topic."""
        return np.asarray((self.patterns == PERMITTED).any(axis=1)[self.pattern])

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

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of documents labelled with each topic."""
        uses = np.bincount(self.pattern, minlength=len(self.patterns))
        return np.asarray(uses @ (self.patterns == PERMITTED), dtype=np.int64)

    def indicator(self) -> sp.csr_array:
        """Sparse 0/1 matrix (n_documents, n_topics) of the permitted topics."""
        return sp.csr_array((self.patterns == PERMITTED).astype(np.float64))[self.pattern]

    def merge(self, group: Sequence[int]) -> Supervision:
        """Merge topics into the first of them: permitted if one is, forbidden if all are."""
        states = self.patterns[:, list(group)]
        rest = np.where((states == FORBIDDEN).all(axis=1), FORBIDDEN, UNKNOWN)
        patterns = self.patterns.copy()
        patterns[:, group[0]] = np.where((states == PERMITTED).any(axis=1), PERMITTED, rest)
        topics = tuple(name for k, name in enumerate(self.topics) if k not in group[1:])
        return Supervision(topics, self.pattern, np.delete(patterns, list(group[1:]), axis=1))

    def among(self, topics: Sequence[Hashable], complete: bool) -> Supervision:
        """Add topics: labelled documents forbid them if labels are complete; otherwise they are unknown."""
        if tuple(topics) == self.topics:
            return self
        patterns = np.full((len(self.patterns), len(topics)), UNKNOWN, dtype=np.int8)
        if complete:
            patterns[(self.patterns == PERMITTED).any(axis=1)] = FORBIDDEN
        place = {name: k for k, name in enumerate(topics)}
        patterns[:, [place[name] for name in self.topics]] = self.patterns
        return Supervision(tuple(topics), self.pattern, patterns)

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
        return Supervision(self.topics, pattern, patterns)

    def permitted(self, n_components: int, free_in_labelled: bool) -> NDArray[np.bool_]:
        """The components, known and free, that each pattern permits.

        A pattern that only forbids topics always permits the free ones, because no other might be left.
        """
        mask = np.ones((len(self.patterns), n_components), dtype=np.bool_)
        mask[:, : len(self.topics)] = self.patterns != FORBIDDEN
        if not free_in_labelled:
            mask[(self.patterns == PERMITTED).any(axis=1), len(self.topics) :] = False
        return mask
