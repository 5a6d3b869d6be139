"""Tables of any kind to documents."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, Literal

from topicsteer.corpora.cells import read_id, read_text
from topicsteer.corpora.columns import FORBIDDEN, Columns
from topicsteer.corpora.documents import Documents
from topicsteer.corpora.labelfiles import read_labels
from topicsteer.corpora.labels import attach_labels
from topicsteer.corpora.reports import OnError, ReadError
from topicsteer.corpora.sources import load_table


def read_table(
    source: Any,
    *,
    text: str | None = None,
    labels: str | Literal[False] | None = None,
    id: str | None = None,
    forbidden: str | None = None,
    separator: str | None = None,
    label_file: str | Path | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    on_error: OnError = "skip",
) -> Documents:
    """Read documents from a file or from a table in memory.

    What is not named is guessed when it is obvious, and the guesses stand in ``documents.report``. Rows that
    cannot be used (a line that cannot be decoded, a wrong number of fields, an empty text, a missing or
    repeated id, labels that are no names) are reported together.

    Parameters
    ----------
    source : path, DataFrame, Hugging Face Dataset, list of str or list of dict
        A file ends in .csv, .tsv, .jsonl, .json (a list of objects) or .parquet, each also with .gz.
    text, labels, id, forbidden : str, optional
        Names of the columns. Without an id column the ids are the index of a pandas DataFrame, or else row
        numbers counted from 0. ``labels=False``: no column is taken for labels.
        ``forbidden`` holds topics that a document does not have. Labels that are empty or -1 are no labels.
    separator : str, optional
        What stands between several labels in a cell; ``"json"`` if a cell holds a list. Default: guessed.
    label_file : path, optional
        A second file with the labels, joined by id or text; see `read_labels`. ``labels`` and ``forbidden``
        then name its columns, and so does ``id`` if it has a column of that name.
    encoding : str, optional
        Default: UTF-8, UTF-16 or UTF-32 by their mark, UTF-8 if the file is, Windows-1252 otherwise.
    delimiter : str, optional
        What stands between the fields of a .csv file. Default: guessed from the header.
    on_error : {"skip", "raise"}, default="skip"
        Leave bad rows out and list them in the report, or raise one error that lists them.

    Returns
    -------
    Documents
        The good rows, in the order of the source. Columns without a role are kept.

    Raises
    ------
    ReadError
        If the source cannot be read at all, has no usable row, or has bad rows and they are to be fatal.

    Examples
    --------
    >>> import polars as pl
    >>> texts = ["rain at noon", "", "shares fell"]
    >>> documents = read_table(pl.DataFrame({"body": texts, "topics": ["weather", "", "money;trade"]}))
    >>> documents.ids, documents.labels
    ([0, 2], [['weather'], ['money', 'trade']])
    >>> print(documents.report)
    DataFrame: text is column 'body'
    DataFrame: labels are column 'topics', separated by ';'
    DataFrame: 1 bad row
      row 2: empty text
    """
    table = load_table(source, encoding=encoding, delimiter=delimiter)
    columns = Columns(table)
    texts, ids = columns.text(text), columns.unique_ids(id) or table.ids
    has = lacks = None
    if label_file is None:
        has = None if labels is False else columns.labels(labels, separator)
        lacks = columns.labels(forbidden, separator, FORBIDDEN, "forbidden labels")
    good: list[tuple[int, Hashable, str, list[str], list[str]]] = []
    seen: set[Hashable] = set()
    problems = dict(table.problems)
    for row, place in enumerate(table.places):
        try:
            key = row if ids is None else read_id(ids[row])
            if key in seen:
                raise ValueError(f"the id {key!r} occurs a second time")
            good.append((row, key, read_text(texts[row]), has(row) if has else [], lacks(row) if lacks else []))
            seen.add(key)
        except ValueError as error:
            problems[place] = str(error)
    report = table.report(columns.guesses, problems).settle(on_error)
    if not good:
        raise ReadError(f"{table.source}: no document could be read\n{report}".rstrip())
    documents = Documents(
        ids=[key for _, key, _, _, _ in good],
        texts=[words for _, _, words, _, _ in good],
        labels=[names for _, _, _, names, _ in good],
        columns={name: [values[row] for row, *_ in good] for name, values in columns.free.items()},
        forbidden=[names for _, _, _, _, names in good],
        report=report,
        numbered=ids is None,
    )
    if label_file is None:
        return documents
    beside = load_table(label_file, encoding=encoding, delimiter=delimiter)
    key_column = id if id in beside.columns else None
    said = read_labels(
        beside, labels=labels or None, id=key_column, forbidden=forbidden, separator=separator, on_error=on_error
    )
    return attach_labels(documents, said, on_error=on_error)
