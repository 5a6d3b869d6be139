"""The one result of every reader."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from topicsteer.corpora.read_report import ReadReport

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Documents:
    """Texts with their ids, labels and further columns, row by row.

    Parameters
    ----------
    ids : sequence of str or int
        One for each document, as the user has them.
    texts : sequence of str
        The documents.
    labels : sequence of sequences of str, optional
        The topics of each document; an empty list is an unlabelled document. Default: none is labelled.
    columns : mapping of str to sequence, optional
        Everything else that came with the documents.
    forbidden : sequence of sequences of str, optional
        The topics that somebody said a document does *not* have. Default: none.
    report : ReadReport, optional
        What the reader guessed and left out.
    numbered : bool, default=False
        The ids are row numbers, because there were no others.

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

    def __post_init__(self) -> None:
        for name in ("labels", "forbidden"):
            if not getattr(self, name):
                object.__setattr__(self, name, [[] for _ in self.texts])
        named = {"ids": self.ids, "labels": self.labels, "forbidden": self.forbidden}
        named |= {f"column {name!r}": values for name, values in self.columns.items()}
        for name, values in named.items():
            if len(values) != len(self.texts):
                raise ValueError(
                    f"{name} has {len(values):,} entries and there are {len(self.texts):,} texts: "
                    "give one entry for each document"
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
        """The distinct labels, permitted and forbidden, sorted."""
        return sorted({name for rows in (self.labels, self.forbidden) for row in rows for name in row})

    def select(self, rows: Iterable[int]) -> Documents:
        """Take the documents of these row numbers, in this order."""
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

    def hide_labels(self, share: float, seed: int = 0) -> Documents:
        """Take the labels from a random share of the documents, to see whether they are found again."""
        shown = np.random.default_rng(seed).random(len(self)) >= share
        labels = [list(names) if keep else [] for names, keep in zip(self.labels, shown, strict=True)]
        return replace(self, labels=labels)


def documents_of(rows: Sequence[tuple[Any, ...]], columns: Sequence[str], report: ReadReport) -> Documents:
    """Documents of rows: id, text, labels, and one value for each further column."""
    ids, texts, labels, *more = ([row[part] for row in rows] for part in range(3 + len(columns)))
    return Documents(ids, texts, labels, dict(zip(columns, more, strict=True)), report=report)
