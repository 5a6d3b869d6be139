"""The fitted topics as a frozen record, the source of tables, plots and reports."""

import tempfile
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from topicsteer.analysis.column_formats import Column
from topicsteer.analysis.survey_design import AT_RANDOM
from topicsteer.guidance.constants import FEW_LABELS
from topicsteer.labels.forest import FLAT, Forest
from topicsteer.labels.spelling import near_miss
from topicsteer.nmf.blocks import slices
from topicsteer.system.files import reserve
from topicsteer.system.types import Array
from topicsteer.system.values import NONE

# Number of top documents per topic that are ranked in advance.
LEADERS = 50
# Documents per block of a calculation.
ROWS = 1 << 16
# Columns of `Topics.table`.
COLUMNS = (
    Column("topic"),
    Column("level", "count"),
    Column("parent"),
    Column("kind", "origin"),
    Column("labelled", "count"),
    Column("mean membership", "share"),
    Column("terms"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Topics:
    """Named topics with their terms and documents; the known ones come first.

    Parameters
    ----------
    names : tuple of str
        Names of the topics.
    n_known : int
        Number of known topics.
    vocabulary : array of str (n_terms,)
        The terms.
    H : array (n_topics, n_terms)
        Weight of each term in each topic.
    W : array (n_documents, n_topics)
        Weight of each topic in each document; 0 where a label forbids it.
    ids : sequence (n_documents,)
        Ids of the documents.
    labelled : array of int (n_known,)
        Number of documents labelled with each known topic.
    memberships : array (n_documents, columns), optional
        Probability of known topics, then of free topics and of no known topic in an open world. Default: none.
    outsiders : array of bool (n_documents,), optional
        Documents that are marked as having none of the known topics.
    forest : Forest, optional
        The tree of the known topics. The column of a topic with others below it is its rest. Its terms come from
        its whole branch.
    missed : sequence of int, optional
        Topics whose names the fit did not find. Default: none.

    Examples
    --------
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.array([[0.1, 1.0], [1.0, 0.0]]),
    ...                 np.array([[2.0, 0.0], [1.0, 1.0]]), ["a", "b"], np.array([1]))
    >>> topics.top_terms(0, 1)
    ['leaf']
    >>> topics.proportions.round(2)
    array([[1.  , 0.  ],
           [0.52, 0.48]])
    """

    names: tuple[str, ...]
    n_known: int
    vocabulary: NDArray[np.object_]
    H: Array
    W: Array
    ids: Sequence[Hashable]
    labelled: NDArray[np.int64]
    memberships: Array | None = None
    outsiders: NDArray[np.bool_] | None = None
    forest: Forest = FLAT
    missed: Sequence[int] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "forest", self.forest.sized(self.n_known))

    def __len__(self) -> int:
        return len(self.names)

    def known(self, topic: int) -> bool:
        """Whether the topic is known."""
        return topic < self.n_known

    def kind(self, topic: int) -> str:
        """Whether the topic is known or free; "not found" if the fit did not find the name of a known topic."""
        if not self.known(topic):
            return "free"
        return "not found" if topic in self.missed and not self.labelled[topic] else "known"

    @property
    def empty(self) -> list[str]:
        """Names of free topics without a term: other topics explain their documents."""
        return [self.names[k] for k in range(self.n_known, len(self)) if not self.H[k].any()]

    def index(self, name: Hashable) -> int:
        """Number of a topic, given by name or number."""
        if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < len(self):
            return int(name)
        if name in self.names:
            return self.names.index(str(name))
        known = ", ".join(map(repr, self.names[:10])) + (", ..." if len(self) > 10 else "")
        near = near_miss(name, self.names)
        hint = f"; did you mean {near!r}?" if near else ""
        raise KeyError(f"there is no topic {name!r}; the topics are {known}{hint}")

    @cached_property
    def proportions(self) -> Array:
        """The part of each document that each topic makes up; rows add up to 1, or are 0."""
        return proportions(self.W, self.H)

    @cached_property
    def mean_memberships(self) -> Array:
        """The mean membership of each topic; of free topics without memberships, the mean of their proportions.

        It is no estimate of a share: see `topicsteer.analysis.prevalence`.
        """
        parts = self.proportions
        if not len(parts):
            return np.zeros(len(self))
        means = np.asarray(parts.mean(axis=0, dtype=np.float64))
        if self.memberships is not None:
            found = len(self) if self.memberships.shape[1] > len(self) else self.n_known
            means[:found] = self.memberships[:, :found].mean(axis=0, dtype=np.float64)
        return means

    def all_memberships(self) -> Array:
        """Memberships in all topics; the last column is P(none), in a closed world 1 for ``outsiders``."""
        found = self.proportions if self.memberships is None else self.memberships
        return all_memberships(found, self.proportions, self.n_known, self.outsiders)

    @property
    def open(self) -> bool:
        """Whether documents may have none of the known topics."""
        return self.memberships is not None and self.memberships.shape[1] > self.n_known

    @property
    def n_outsiders(self) -> int:
        """Number of documents that are marked as having none of the known topics."""
        return 0 if self.outsiders is None else int(self.outsiders.sum())

    @cached_property
    def branch_terms(self) -> Array:
        """Weight of each term in each topic with all topics below it; H without a tree."""
        if self.forest.flat:
            return self.H
        amounts, found = np.asarray(self.W.sum(axis=0, dtype=np.float64)), self.H.copy()
        for k, below in enumerate(self.forest.children):
            if below:
                branch = [k, *self.forest.descendants(k)]
                found[k] = amounts[branch] @ self.H[branch] / max(amounts[branch].sum(), 1e-30)
        return found

    @cached_property
    def ranking(self) -> Array:
        """Distinctiveness of each term for each topic: h log(h / mean over topics of h)."""
        h = self.branch_terms / np.maximum(self.branch_terms.sum(axis=1, keepdims=True), 1e-30)
        return np.asarray(h * np.log(np.maximum(h, 1e-30) / np.maximum(h.mean(axis=0), 1e-30)))

    def term_strengths(self, topic: Hashable, n: int = 10) -> list[tuple[str, float]]:
        """The most distinctive terms of a topic, with their strengths relative to the best."""
        k = self.index(topic)
        strength, h = np.maximum(self.ranking[k], 0), self.branch_terms[k]
        if not strength.any():  # no distinctive term: a single topic, or two identical ones
            strength = h
        best = [j for j in np.lexsort((-h, -strength))[:n] if h[j] > 0]
        return [(str(self.vocabulary[j]), float(strength[j] / strength[best[0]])) for j in best]

    def top_terms(self, topic: Hashable, n: int = 10) -> list[str]:
        """The most distinctive terms of a topic."""
        return [term for term, _ in self.term_strengths(topic, n)]

    def top_rows(self, topic: Hashable, n: int = 10) -> list[int]:
        """Row numbers of the documents with the largest part of a topic; ties are broken by weight."""
        k = self.index(topic)
        rows = self._leaders[k] if n <= LEADERS else np.arange(len(self.W))
        order = rows[np.lexsort((-self.W[rows, k], -self.proportions[rows, k]))[:n]]
        return [int(i) for i in order if self.W[i, k] > 0]

    @cached_property
    def _leaders(self) -> list[NDArray[np.int64]]:
        """The documents with the largest part of each topic, from one pass over all documents."""
        found = [np.zeros(0, dtype=np.int64) for _ in self.names]
        for part in slices(len(self.W), ROWS):
            W, parts = self.W[part], self.proportions[part]
            for k, rows in enumerate(found):
                here = part.start + np.lexsort((-W[:, k], -parts[:, k]))[:LEADERS]
                rows = np.append(rows, here)
                found[k] = rows[np.lexsort((-self.W[rows, k], -self.proportions[rows, k]))[:LEADERS]]
        return found

    def table(self, n_terms: int = 8, *, none: bool = False) -> dict[str, list[Any]]:
        """Table with one row per topic: name, known or free, labelled documents, mean membership, terms.

        A tree of topics has two more columns: the level of each topic, from 1, and its parent. With ``none``, the table
        of an open world ends with a row for documents that have none of the known topics.
        """
        table: dict[str, list[Any]] = {"topic": list(self.names)}
        if not self.forest.flat:
            above = [*self.forest.parents, *[-1] * (len(self) - self.n_known)]
            table["level"] = [1 if k >= self.n_known else 1 + self.forest.depth[k] for k in range(len(self))]
            table["parent"] = ["" if parent < 0 else self.names[parent] for parent in above]
        table |= {
            "kind": list(map(self.kind, range(len(self)))),
            "labelled": [int(self.labelled[k]) if self.known(k) else 0 for k in range(len(self))],
            "mean membership": self.mean_memberships.tolist(),
            "terms": [", ".join(self.top_terms(k, n_terms)) for k in range(len(self))],
        }
        if none and self.open:
            none_row = {
                "topic": NONE,
                "level": 1,
                "kind": "none",
                "labelled": self.n_outsiders,
                "mean membership": None,  # P(none) only ranks: prevalence has the share
            }
            for name, column in table.items():
                column.append(none_row.get(name, ""))
        return table


def proportions(W: Array, H: Array) -> Array:
    """The part of each document that each topic makes up: weights times the total of the topic's terms, scaled to 1.

    On disk if W is.
    """
    sizes = H.sum(axis=1)
    out = _empty_like(W, np.result_type(W, H), (len(W), len(H)))
    for part in slices(len(W), ROWS):
        out[part] = parts(W[part], sizes)
    return out


def all_memberships(
    found: Array, proportions: Array, n_known: int, outsiders: NDArray[np.bool_] | None = None
) -> Array:
    """Memberships in all topics; the last column is P(none).

    Parameters
    ----------
    found : array (n_documents, columns)
        Memberships in known topics; in an open world, memberships in free topics and in none may follow.
    proportions : array (n_documents, n_topics)
        Memberships in free topics that ``found`` does not contain.
    n_known : int
        Number of known topics.
    outsiders : array of bool (n_documents,), optional
        Documents without a known topic in a closed world. Default: none.
    """
    n_topics = proportions.shape[1]
    if found.shape[1] == n_topics + 1:
        return found
    out = _empty_like(found, found.dtype, (len(found), n_topics + 1))
    none: NDArray[Any] = np.zeros(len(found), dtype=np.bool_)
    if found.shape[1] == n_known + 1:
        none = found[:, -1]
    elif outsiders is not None:
        none = outsiders
    for part in slices(len(found), ROWS):
        out[part, :n_known] = found[part, :n_known]
        out[part, n_known:-1] = proportions[part, n_known:]
        out[part, -1] = none[part]
    return out


def parts(W: Array, sizes: Array) -> Array:
    """Parts of documents that topics make up, from their weights and the total term weight of each topic."""
    mass = W * sizes
    return np.asarray(mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-30))


def _empty_like(W: Array, dtype: DTypeLike, shape: tuple[int, int]) -> Array:
    """An empty array; in an anonymous file next to W if W is mapped from a file."""
    mapped = W
    while not isinstance(mapped, np.memmap) and isinstance(mapped.base, np.ndarray):
        mapped = mapped.base
    if not isinstance(mapped, np.memmap) or mapped.filename is None:
        return np.empty(shape, dtype=dtype)
    with tempfile.TemporaryFile(dir=Path(mapped.filename).parent) as file:
        reserve(file, int(np.prod(shape)) * np.dtype(dtype).itemsize)
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


def merge_topics(H: Array, W: Array, group: Sequence[int]) -> tuple[Array, Array]:
    """Merge topics into the first: terms are averaged by weight, weights are added up.

    Examples
    --------
    >>> H, W = merge_topics(np.array([[1.0, 0], [0, 2], [1, 1]]), np.array([[1.0, 1, 0], [0, 0, 3]]), [0, 1])
    >>> H.round(2).tolist(), W.tolist()
    ([[0.33, 0.67], [1.0, 1.0]], [[3.0, 0.0], [0.0, 3.0]])
    """
    first, rest, group = group[0], list(group[1:]), list(group)
    sizes = H[group].sum(axis=1)
    mass = W[:, group] * sizes
    totals = mass.sum(axis=0)
    H, W = H.copy(), W.copy()
    H[first] = (totals / np.maximum(sizes, 1e-30)) @ H[group] / max(float(totals.sum()), 1e-30)
    W[:, first] = mass.sum(axis=1)
    return np.delete(H, rest, axis=0), np.delete(W, rest, axis=1)


def name_free_topics(ranked_terms: Sequence[Sequence[str]], taken: Sequence[str]) -> list[str]:
    """Names of free topics: their first two terms, and further terms where a name would not be unique.

    Examples
    --------
    >>> name_free_topics([["cup", "saucer", "milk"], ["cup", "saucer", "final"]], ["tea"])
    ['cup, saucer', 'cup, saucer, final']
    """
    names: list[str] = []
    for k, terms in enumerate(ranked_terms):
        candidates = [", ".join(terms[:n]) for n in range(2, len(terms) + 1)] or [", ".join(terms) or "empty"]
        candidates.append(f"{candidates[0]} ({k + 1})")
        names.append(next(name for name in candidates if name not in names and name not in taken))
    return names


# How to declare it, in Python and on the command line; the workbench has a setting instead.
DECLARE_OPEN = 'set world="open" (--world open)'


def believed(topics: Topics, declared: object, drawn: bool = False) -> str:
    """Return in a sentence whether documents may have none of the known topics.

    Parameters
    ----------
    topics : Topics
    declared : str or None
        The declared world; see `TopicModel`.
    drawn : bool, default=False
        Whether some labels were drawn at random.
    """
    known = topics.n_known
    if not known:
        return "There are no known topics."
    yours = f"your {known:,} topics" if known > 1 else "your topic"
    lack = f"have none of {yours}" if known > 1 else "do not have your topic"
    counts = topics.labelled[topics.labelled > 0]
    if declared == "closed":
        return f"Every document has one of {yours}, as declared."
    if topics.open:
        if drawn:
            return f"Some documents {lack}. prevalence estimates how many, from labels that were drawn at random."
        return f"Some documents {lack}. How many is not known: {AT_RANDOM}."
    if not counts.size or np.median(counts) < FEW_LABELS:
        return (
            f"Labels are too few to decide whether some documents {lack}. "
            f'If some do, {DECLARE_OPEN}, or mark a few of them as "none of these".'
        )
    return f"Every document seems to have one of {yours}."
