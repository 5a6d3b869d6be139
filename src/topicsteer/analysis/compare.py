"""Compare two models: matched topics, what became of their terms and shares, and the documents that moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.topics import Topics
from topicsteer.metrics import match_topics
from topicsteer.system.types import Array
from topicsteer.system.values import NONE

# Top terms that are compared.
TERMS = 10
# Topics of less similar terms are not matched, unless they have the same name.
LEAST_SIMILARITY = 0.2
# A smaller change of a share does not count as one.
SHARE_CHANGE = 0.01


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two models compared.

    Parameters
    ----------
    now, before : Topics
    pairs : tuple of (int or None, int or None)
        Topics of ``now`` and ``before`` that are the same; None: there is no such topic.
    similarity : array (n_pairs,)
        Cosine similarity of their term weights; NaN without a partner.
    """

    now: Topics
    before: Topics
    pairs: tuple[tuple[int | None, int | None], ...]
    similarity: Array

    def table(self, *, changed: bool = False) -> dict[str, list[Any]]:
        """One row per topic of either model: names, similarity, shares, labels, and terms that came and went.

        Parameters
        ----------
        changed : bool, default=False
            Leave out topics with the same name, terms and labels, and with a share that changed by less than 0.01.
        """
        rows = list(self._rows())
        if changed:
            rows = [row for row in rows if self._differs(row)]
        names = (
            "topic",
            "before",
            "similarity",
            "share",
            "share_before",
            "labelled",
            "labelled_before",
            "came",
            "went",
        )
        return {name: [row[name] for row in rows] for name in names}

    def moves(self) -> dict[str, list[Any]]:
        """Documents of both models whose main topic is another one now: from, to, and their number."""
        partner = {j: i for i, j in self.pairs if i is not None and j is not None}
        names = [*self.now.names, NONE]
        new, old = _main_topics(self.now), _main_topics(self.before)
        rows = {str(key): row for row, key in enumerate(self.before.ids)}
        found: Counter[tuple[str, str]] = Counter()
        for row, key in enumerate(self.now.ids):
            if (earlier := rows.get(str(key))) is None:
                continue
            k, last = int(old[earlier]), len(self.before)
            was = names[-1] if k == last else names[partner[k]] if k in partner else f"{self.before.names[k]} (gone)"
            if was != names[new[row]]:
                found[was, names[new[row]]] += 1
        order = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return {
            "from": [pair[0] for pair, _ in order],
            "to": [pair[1] for pair, _ in order],
            "documents": [number for _, number in order],
        }

    def __str__(self) -> str:
        both = [(i, j) for i, j in self.pairs if i is not None and j is not None]
        moved = sum(self.moves()["documents"])
        common = len(set(map(str, self.now.ids)) & set(map(str, self.before.ids)))
        new, gone = len(self.now) - len(both), len(self.before) - len(both)
        return (
            f"{len(both)} topics are in both models, {new} only in this one, {gone} only in the other; "
            f"{moved:,} of {common:,} common documents have another main topic"
        )

    def _rows(self) -> Iterator[dict[str, Any]]:
        shares, earlier = self.now.share, self.before.share
        for (i, j), similarity in zip(self.pairs, self.similarity, strict=True):
            terms = [] if i is None else self.now.top_terms(i, TERMS)
            old = [] if j is None else self.before.top_terms(j, TERMS)
            yield {
                "topic": None if i is None else self.now.names[i],
                "before": None if j is None else self.before.names[j],
                "similarity": None if np.isnan(similarity) else float(similarity),
                "share": None if i is None else float(shares[i]),
                "share_before": None if j is None else float(earlier[j]),
                "labelled": None if i is None else _labelled(self.now, i),
                "labelled_before": None if j is None else _labelled(self.before, j),
                "came": ", ".join(term for term in terms if term not in old),
                "went": ", ".join(term for term in old if term not in terms),
            }

    @staticmethod
    def _differs(row: dict[str, Any]) -> bool:
        if row["topic"] != row["before"] or row["labelled"] != row["labelled_before"] or row["came"] or row["went"]:
            return True
        return bool(abs(row["share"] - row["share_before"]) >= SHARE_CHANGE)


def compare(now: Topics, before: Topics) -> Comparison:
    """Match the topics of two models: by name, then by their terms.

    Examples
    --------
    >>> words = np.array(["cup", "leaf", "bean"])
    >>> old = Topics(("tea",), 1, words, np.array([[1.0, 1, 0]]), np.ones((2, 1)), ["a", "b"], np.array([1]))
    >>> new = Topics(("coffee", "teas"), 2, words, np.array([[0.0, 0, 1], [1, 1.1, 0]]), np.array([[0, 1.0], [1, 0]]),
    ...              ["a", "b"], np.array([1, 1]))
    >>> found = compare(new, old)
    >>> found.table()["topic"], found.table()["before"], found.moves()["to"]
    (['coffee', 'teas'], [None, 'tea'], ['coffee'])
    """
    alike = _similarity(now, before)
    wanted = alike.copy()
    for i, name in enumerate(now.names):
        if name in before.names:  # the same name is the same topic, whatever its terms
            wanted[i, before.names.index(name)] = 2.0
    found = match_topics(np.where(wanted < LEAST_SIMILARITY, 0, wanted)).found if wanted.size else np.zeros(0, np.int64)
    partner = {int(i): j for j, i in enumerate(found) if i >= 0 and wanted[i, j] >= LEAST_SIMILARITY}
    pairs: list[tuple[int | None, int | None]] = [(i, partner.get(i)) for i in range(len(now))]
    pairs += [(None, j) for j in range(len(before)) if j not in partner.values()]
    values = [np.nan if i is None or j is None else alike[i, j] for i, j in pairs]
    return Comparison(now, before, tuple(pairs), np.array(values))


def _similarity(now: Topics, before: Topics) -> Array:
    """Cosine similarity of the topics' weights of common terms, relative to all their terms."""
    places = {term: k for k, term in enumerate(now.vocabulary)}
    common = [(places[term], k) for k, term in enumerate(before.vocabulary) if term in places]
    here, there = ([pair[side] for pair in common] for side in (0, 1))
    A, B = (H / np.maximum(np.linalg.norm(H, axis=1, keepdims=True), 1e-30) for H in (now.H, before.H))
    return np.asarray(A[:, here] @ B[:, there].T, dtype=np.float64)


def _main_topics(topics: Topics) -> NDArray[np.int64]:
    """The topic with the largest membership; the number after the last topic is none."""
    nobody = np.zeros(len(topics.ids), dtype=np.bool_)
    return np.asarray(np.argmax(topics.all_memberships(nobody), axis=1), dtype=np.int64)


def _labelled(topics: Topics, k: int) -> int:
    return int(topics.labelled[k]) if topics.known(k) else 0
