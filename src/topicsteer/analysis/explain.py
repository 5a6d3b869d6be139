"""Explanations: the contribution of each word to the topics of a document, x_ij ≈ Σ_k w_ik h_kj."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from topicsteer.system.templates import render, visible
from topicsteer.system.types import Array

# First character, end, and number of the term.
Place = tuple[int, int, int]
# First character, end, strength from 0 to 1, and number of the topic.
Mark = tuple[int, int, float, int]
Names = Sequence[str] | NDArray[np.object_]
# Colours of the topics of a document, strongest first.
COLOURS = ("#4477aa", "#ee6677", "#228833", "#aa7700", "#2299bb", "#aa3377", "#777777")


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The contribution of each word of a text to each of its topics.

    Parameters
    ----------
    text : str
        The document.
    names : tuple of str
        Topics in the document, strongest first.
    shares : array (n_topics,)
        The part of the document that each of these topics makes up.
    terms : tuple of str
        Terms of the vocabulary that occur in the document.
    values : array (n_terms,)
        Weights x_j of the terms in the document's row of the matrix.
    contributions : array (n_topics, n_terms)
        w_k h_kj; each column adds up to the explained weight of the term.
    spans : tuple of (start, end, term)
        Positions of the terms in the text: start, end and number of the term.

    Examples
    --------
    >>> explanation = Explanation("Green tea", ("tea",), np.array([1.0]), ("green", "tea"), np.array([0.6, 0.8]),
    ...                           np.array([[0.5, 0.8]]), ((0, 5, 0), (6, 9, 1)))
    >>> explanation
    <Explanation: 100% tea (tea, green)>
    >>> explanation.rows()["term"]
    ['tea', 'green']
    >>> explanation.strengths("tea")
    ((0, 5, 0.625), (6, 9, 1.0))
    """

    text: str
    names: tuple[str, ...]
    shares: Array
    terms: tuple[str, ...]
    values: Array
    contributions: Array
    spans: tuple[Place, ...]

    def rows(self, n: int | None = None) -> dict[str, list[Any]]:
        """Return a table, strongest term first: term, weight in the document, sum, contribution to each topic."""
        total = self.contributions.sum(axis=0)
        order = np.argsort(-total, kind="stable")[:n]
        numbers = {"weight": self.values, "explained": total} | dict(zip(self.names, self.contributions, strict=True))
        rows = {name: row[order].astype(np.float64).tolist() for name, row in numbers.items()}
        return {"term": [self.terms[j] for j in order]} | rows

    def strengths(self, topic: str, least: float = 0.0) -> tuple[tuple[int, int, float], ...]:
        """Return spans of the text with the strength of their contribution to a topic, from ``least`` to 1."""
        row = self.contributions[self.names.index(topic)]
        row = row / (row.max(initial=0.0) or 1.0)
        return tuple((start, end, float(row[j])) for start, end, j in self.spans if row[j] > least)

    def marked(self, least: float = 0.0) -> list[tuple[str, int | None, float]]:
        """The text in segments: (segment, number of the topic to which the word contributes most, strength 0 to 1).

        Words of at most the strength ``least`` are not marked. Terms that overlap are one mark, by `merged`.
        """
        pieces: list[tuple[str, int | None, float]] = []
        at, top = 0, self.contributions.max(initial=0.0) or 1.0
        best = self.contributions.argmax(axis=0) if len(self.names) else np.zeros(len(self.terms), np.int64)
        strength = self.contributions.max(axis=0, initial=0.0) / top
        spans = ((start, end, float(strength[j]), int(best[j])) for start, end, j in self.spans if strength[j] > least)
        for start, end, strong, k in merged(spans, len(self.text)):
            pieces += [(self.text[at:start], None, 0.0), (self.text[start:end], k, strong)]
            at = end
        return [*pieces, (self.text[at:], None, 0.0)]

    def strongest(self, k: int, n: int = 6) -> list[int]:
        """Return numbers of the terms with the largest contributions to the k-th topic; negligible ones are omitted."""
        row = self.contributions[k]
        least = min(0.0005, row.max(initial=0.0) / 100)
        return [int(j) for j in np.argsort(-row, kind="stable")[:n] if row[j] > least]

    def __repr__(self) -> str:
        parts = [
            f"{share:.0%} {visible(name)} ({', '.join(visible(self.terms[j]) for j in self.strongest(k, 3))})"
            for k, (name, share) in enumerate(zip(self.names, self.shares, strict=True))
        ]
        return f"<Explanation: {', '.join(parts) or 'no topic'}>"

    def __rich__(self) -> Table:
        """Return the topics and the marked text for a terminal."""
        text = Text()
        for piece, k, strength in self.marked():
            weight = " bold" if strength > 0.3 else ""
            text.append(visible(piece, len(piece)), "" if k is None else _colour(k) + weight)
        grid = Table.grid(padding=(0, 1))
        for k, (name, share) in enumerate(zip(self.names, self.shares, strict=True)):
            terms = [(visible(self.terms[j]), self.contributions[k, j]) for j in self.strongest(k)]
            words = ", ".join(f"{term} {part:.3f}" if part >= 0.0005 else f"{term} {part:.0e}" for term, part in terms)
            grid.add_row(Text(f"{share:4.0%}"), Text(visible(name), _colour(k)), Text(words, "dim"))
        if not self.names:
            grid.add_row(Text("No topic: the vocabulary of the model has no term of this text."))
        outer = Table.grid()
        for part in (text, "", grid):
            outer.add_row(part)
        return outer

    def _repr_html_(self) -> str:
        """Return the same for a notebook; the text is shown as text."""
        topics = [(_colour(k), *pair) for k, pair in enumerate(zip(self.names, self.shares, strict=True))]
        pieces = []
        for text, k, strength in self.marked():
            pieces.append(("" if k is None else f"{_colour(k)}{int(40 + 140 * strength):02x}", text))
        return render("analysis/templates/explanation.html", topics=topics, pieces=pieces)


def _colour(topic: int) -> str:
    return COLOURS[topic % len(COLOURS)]


def merged(spans: Iterable[Mark], length: int) -> list[Mark]:
    """Return spans of a text without overlaps, in order.

    The strongest spans come first. A span counts if it covers a character that no stronger span does, and overlapping
    ones become one span: 東京 and 京都 are 東京都. So weak pairs between two words do not join them.

    Parameters
    ----------
    spans : iterable of (start, end, strength, topic)
        Spans that leave the text are ignored.
    length : int
        Number of characters of the text.

    Examples
    --------
    >>> merged([(0, 2, 1.0, 0), (1, 3, 0.7, 0), (2, 4, 0.1, 0), (3, 5, 0.9, 0)], 9)
    [(0, 3, 1.0, 0), (3, 5, 0.9, 0)]
    """
    covered, kept = bytearray(length), list[Mark]()
    for span in sorted(spans, key=lambda span: (-span[2], span)):
        start, end = span[:2]
        if 0 <= start < end <= length and 0 in covered[start:end]:
            covered[start:end] = b"\1" * (end - start)
            kept.append(span)
    joined = list[Mark]()
    for start, end, strength, topic in sorted(kept):
        if joined and start < joined[-1][1]:
            before = joined[-1]
            strongest = max(before[2:], (strength, topic), key=lambda value: value[0])
            joined[-1] = (before[0], max(before[1], end), *strongest)
        else:
            joined.append((start, end, strength, topic))
    return joined


def explain(
    text: str, x: sp.csr_array, w: Array, H: Array, names: Sequence[str], terms: Names, places: Iterable[Place]
) -> Explanation:
    """Split the topic weights of a document into contributions of its words.

    Parameters
    ----------
    text : str
        The document.
    x : sparse matrix (1, n_terms)
        Row of the document in the matrix.
    w : array (n_topics,)
        Topic weights of the document.
    H : array (n_topics, n_terms)
        Weights of the terms in the topics.
    names, terms : sequence of str
        Names of the topics, and terms of the columns.
    places : list of (start, end, column)
        Positions of the terms in the text.

    Returns
    -------
    Explanation
    """
    mass = w * H.sum(axis=1)
    present = [int(k) for k in np.argsort(-mass, kind="stable") if mass[k] > 0]
    columns = x.indices
    position = {int(column): j for j, column in enumerate(columns)}
    return Explanation(
        text,
        tuple(names[k] for k in present),
        mass[present] / max(float(mass.sum()), 1e-30),
        tuple(str(terms[j]) for j in columns),
        np.asarray(x.data),
        w[present, None] * H[np.ix_(present, columns)],
        tuple((start, end, position[column]) for start, end, column in places if column in position),
    )
