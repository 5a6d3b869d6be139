"""Documents from the sources that methods of a model accept: lists, tables and files."""

from __future__ import annotations

import fnmatch
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from topicsteer.corpora import Documents, ReadOptions, ReadReport, read_documents
from topicsteer.corpora.columns import is_storable, label_candidates
from topicsteer.corpora.documents import Names, without_labels
from topicsteer.model.spool import Spool
from topicsteer.system.failures import warn_user

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from numpy.typing import ArrayLike

    from topicsteer.labels.supervision import Supervision

    Source: TypeAlias = Sequence[str] | Documents | IntoDataFrame | str | Path | Spool
    LabelSource: TypeAlias = (
        str | Sequence[Any] | Mapping[Any, Any] | IntoDataFrame | ArrayLike | Supervision | bool | None
    )


# Columns that a warning names at most.
SHOWN = 5


def named_columns(source: object, labels: object) -> Names | Literal[False] | None:
    """The label columns of a table, or None for a guess; False if the labels are not in a column.

    A list of names means columns if a DataFrame has them all.
    """
    if labels is None or isinstance(labels, str):
        return labels
    if isinstance(labels, list | tuple) and labels and all(isinstance(name, str) for name in labels):
        columns = list(map(str, getattr(source, "columns", ())))
        if all(fnmatch.filter(columns, name) or name in columns for name in labels):
            return tuple(labels)
    return False


def without_column(labels: LabelSource) -> LabelSource:
    """Labels as a method got them. False, as in `read_documents`, means that no column holds any."""
    return "none" if labels is False else labels


def warn_of_unread_labels(documents: Documents) -> None:
    """Warn if a table without labels has columns that may hold some."""
    found = [] if documents.topic_names else label_candidates(documents.columns)
    if found:
        listed = ", ".join(map(repr, found[:SHOWN])) + (", ..." if len(found) > SHOWN else "")
        warn_user(
            f"No column was read as labels, so all topics are free. Columns that may hold labels: {listed}. Pass "
            f"labels={found[0]!r}, or labels=False if there are no labels."
        )


def difference(ids: Sequence[Hashable], documents: Documents) -> str:
    """The first difference between the documents of a model, by their ids, and others."""
    if len(ids) != len(documents):
        return f"they are {len(documents):,}, and the model has {len(ids):,}"
    for row, (own, other) in enumerate(zip(ids, documents.ids, strict=True)):
        if str(own) != str(other):
            return f"number {row + 1:,} has the id {other!r}, and the id {own!r} in the model"
    return "their ids are the same, but texts differ"


def documents_of(
    source: object,
    labels: object,
    text: Names | None,
    id: str | None,
    *,
    like: Mapping[str, Any] | None = None,
    keep_all: bool = False,
) -> Documents:
    """Documents from a list, a table or a file; rows in memory count as documents even if their text is empty.

    Labels are a column or several, or None for columns that are guessed. Otherwise no column holds labels. ``like`` are
    the columns of the training documents. With ``keep_all``, every row of a table is a document.
    """
    if isinstance(source, Spool):
        return source.documents
    if isinstance(source, Documents):
        return source
    if isinstance(source, str) and "\n" in source:
        raise TypeError("expected a list of texts, a table or a path, but got one long text: put it in a list, [text].")
    if isinstance(source, str) and " " in source and "://" not in source and not Path(source).exists():
        raise TypeError(f"there is no file {source!r}; if it is a text, put it in a list, [text].")
    if isinstance(source, list | tuple) and not source:
        return Documents([], [], numbered=True)
    if isinstance(source, list) and text is None and id is None and not isinstance(labels, str):
        plain = _documents_of_list(source)
        if plain is not None:
            return plain
    column = named_columns(source, labels)
    in_memory = not isinstance(source, str | Path)
    options = ReadOptions(text=text, labels=column, id=id).after(like or {})
    documents = read_documents(source, options, keep_empty=in_memory, keep_all=keep_all)
    if column is False and labels is not False and documents.report.bad_rows:
        raise ValueError(f"Labels by row need every row, but some rows cannot be read:\n{documents.report}")
    if in_memory and not hasattr(type(source), "columns"):  # a list of texts has no columns to remember
        return replace(documents, reading=None)
    by_row = column is False and labels is not False
    return replace(documents, reading=without_labels(documents.reading)) if by_row else documents


def _documents_of_list(texts: list[object]) -> Documents | None:
    """Documents of a list of texts, without a table; None if an item is not a text that files can store."""
    found = []
    for text in texts:
        if not isinstance(text, str) or not (text.isascii() or is_storable(text)):
            return None
        found.append(text if text and not text.isspace() else "")
    return Documents(list(range(len(found))), found, report=ReadReport("list"), numbered=True)
