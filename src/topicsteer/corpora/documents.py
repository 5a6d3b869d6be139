"""Documents, the result of every reader."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from topicsteer.corpora.disk_sequence import DiskSequence
from topicsteer.corpora.options import ReadOptions
from topicsteer.corpora.read_report import ReadReport
from topicsteer.system.values import NONE, plain_id

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Documents:
    """Texts with their ids, labels and further columns, row by row.

    Parameters
    ----------
    ids : sequence of str or int
        One per document. Whole floats become integers, and other values become text.
    texts : sequence of str
        The documents.
    labels : sequence of sequences of str, optional
        The topics of each document. An empty list marks an unlabelled document, and ``["(none)"]`` a document that has
        none of the topics. Default: all unlabelled.
    columns : mapping of str to sequence, optional
        All other columns of the source.
    forbidden : sequence of sequences of str, optional
        The topics that a document does *not* have. Default: none.
    report : ReadReport, optional
        Guesses and bad rows of the reader.
    numbered : bool, default=False
        Whether the ids are row numbers, because the source has no ids.
    reading : ReadOptions, optional
        The columns that were read.

    Examples
    --------
    >>> documents = Documents(["a", "b"], ["rain at noon", "shares fell"], [["weather"], []])
    >>> documents
    <Documents: 2 documents, 1 labelled, 1 topic>
    >>> documents.topic_names
    ['weather']
    >>> documents.select([1]).ids
    ['b']
    """

    ids: Sequence[Hashable]
    texts: Sequence[str]
    labels: Sequence[Sequence[str]] = ()
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    forbidden: Sequence[Sequence[str]] = ()
    report: ReadReport = field(default_factory=ReadReport, compare=False)
    numbered: bool = False
    reading: ReadOptions | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        lazy = isinstance(self.ids, range | DiskSequence)  # with plain ids
        if not lazy and any(type(key) not in (str, int) for key in self.ids):
            object.__setattr__(self, "ids", [plain_id(key) for key in self.ids])
        for name in ("labels", "forbidden"):
            if not getattr(self, name):
                object.__setattr__(self, name, [()] * len(self.texts))
        named = {"ids": self.ids, "labels": self.labels, "forbidden": self.forbidden}
        named |= {f"column {name!r}": values for name, values in self.columns.items()}
        for name, values in named.items():
            if len(values) != len(self.texts):
                raise ValueError(
                    f"{name} has {len(values):,} entries and there are {len(self.texts):,} texts: "
                    "pass one entry per document"
                )

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        labelled, topics = sum(map(bool, self.labels)), len(self.topic_names)
        counts = [(len(self), "document"), (topics, "topic")]
        documents, names = (f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts)
        columns = f", columns {', '.join(self.columns)}" if self.columns else ""
        return f"<Documents: {documents}, {labelled:,} labelled, {names}{columns}>"

    @property
    def topic_names(self) -> list[str]:
        """The distinct labels, permitted or forbidden, sorted."""
        names = {name for rows in (self.labels, self.forbidden) for row in rows for name in row}
        return sorted(names - {NONE})

    def select(self, rows: Iterable[int]) -> Documents:
        """Return the documents of some rows, in the given order."""
        rows = [int(row) for row in rows]

        def take(values: Sequence[T]) -> list[T]:
            return [values[row] for row in rows]

        return replace(
            self,
            ids=take(self.ids),
            texts=take(self.texts),
            labels=take(self.labels),
            columns={name: take(values) for name, values in self.columns.items()},
            forbidden=take(self.forbidden),
        )

    def numbered_on(self, taken: Sequence[Hashable]) -> Documents:
        """Return the documents with new ids, from the first unused number on; "7" is a used number too."""
        numbers = (int(text) for text in map(str, taken) if text.isascii() and text.isdecimal() and len(text) < 19)
        first = 1 + max(numbers, default=len(taken) - 1)
        return replace(self, ids=[first + i for i in range(len(self))])

    def hide_labels(self, share: float, seed: int = 0) -> Documents:
        """Remove the labels of a random share of the documents, for example to test predictions."""
        shown = np.random.default_rng(seed).random(len(self)) >= share
        labels = [list(names) if keep else [] for names, keep in zip(self.labels, shown, strict=True)]
        return replace(self, labels=labels)


def documents_of(rows: Sequence[tuple[Any, ...]], columns: Sequence[str], report: ReadReport) -> Documents:
    """Make documents from rows of id, text, labels, and one value per further column."""
    ids, texts, labels, *more = ([row[field] for row in rows] for field in range(3 + len(columns)))
    return Documents(ids, texts, labels, dict(zip(columns, more, strict=True)), report=report)
