"""Tables of any kind to documents."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from topicsteer.corpora.cells import is_missing, read_id, read_text
from topicsteer.corpora.columns import FORBIDDEN, Columns, Survey
from topicsteer.corpora.documents import Documents
from topicsteer.corpora.label_files.formats import read_labels
from topicsteer.corpora.label_files.records import Labels, attach_labels
from topicsteer.corpora.options import ReadOptions
from topicsteer.corpora.read_report import BadRow, OnError, ReadError, ReadReport
from topicsteer.corpora.readers.folder import read_folder
from topicsteer.corpora.readers.sources import PIECE, Table, load_table, open_table

DEFAULT = ReadOptions()


def read_documents(source: object, options: ReadOptions = DEFAULT, *, keep_empty: bool = False) -> Documents:
    """Read documents from a folder, a file, an address, or a table in memory."""
    if not isinstance(source, str | Path) or not Path(source).is_dir():
        return read_table(source, **asdict(options), keep_empty=keep_empty)
    folders = options.labels == "folders"
    documents = read_folder(source, labels_from_folders=folders, encoding=options.encoding, on_error=options.on_error)
    if options.label_file is None:
        return documents
    beside = asdict(replace(options, labels=None) if folders else options)
    del beside["text"], beside["label_file"]
    return attach_labels(documents, read_labels(options.label_file, **beside), on_error=options.on_error)


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
    keep_empty: bool = False,
) -> Documents:
    """Read documents from a file or from a table in memory.

    What is not named is guessed when it is obvious, and the guesses stand in ``documents.report``. Rows that
    cannot be used (a line that cannot be decoded, a wrong number of fields, an empty text, a missing or
    repeated id, labels that are no names) are reported together.

    Parameters
    ----------
    source : path, address, DataFrame, Hugging Face Dataset, list of str or list of dict
        A file ends in .csv, .tsv, .jsonl, .json (a list of objects) or .parquet, each also with .gz. An address such as
        ``s3://bucket/a.csv`` is opened by fsspec (the extra ``remote``, and what its kind of address needs).
    text, labels, id, forbidden : str, optional
        Names of the columns. Without an id column the ids are the index of a pandas DataFrame, or else row
        numbers counted from 0. ``labels=False``: no column is taken for labels.
        ``forbidden`` holds topics that a document does not have. Empty cells, -1, -, ?, NA, n/a, NaN and null are no
        labels.
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
    keep_empty : bool, default=False
        Whether a row with an empty text is a document without words rather than a bad row.

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
    DataFrame: 1 bad row, left out
      row 2: empty text
    """
    table = load_table(source, encoding=encoding, delimiter=delimiter)
    stream = partial(
        TableStream, table, text=text, id=id, separator=separator, on_error=on_error, keep_empty=keep_empty
    )
    if label_file is None:
        (documents,) = stream(labels=labels, forbidden=forbidden)
        return documents
    (documents,) = stream(labels=False, forbidden=False)
    said = labels_beside(label_file, labels, id, forbidden, separator, encoding, delimiter, on_error)
    return attach_labels(documents, said, on_error=on_error)


def labels_beside(
    label_file: str | Path,
    labels: str | Literal[False] | None,
    id: str | None,
    forbidden: str | None,
    separator: str | None,
    encoding: str | None,
    delimiter: str | None,
    on_error: OnError,
) -> Labels:
    """Read the label file of a table, as `read_table` understands its options."""
    beside = load_table(label_file, encoding=encoding, delimiter=delimiter)
    key = id if id in beside.columns else None
    return read_labels(
        beside, labels=labels or None, id=key, forbidden=forbidden, separator=separator, on_error=on_error
    )


class TableStream:
    r"""The documents of a file larger than memory, some thousands at a time, as often as they are asked for.

    All together they are what `read_table` gives for the same file. The file is read once here, to choose the columns,
    and once in each loop; in memory are a piece of it, eight bytes for each id and the list of bad rows. Lines and
    Parquet can be read piece by piece; a .json file and a table in memory are one piece.

    Parameters
    ----------
    source : path, address or table
        As in `read_table`.
    text, id, labels, forbidden, separator, encoding, delimiter, on_error, keep_empty
        As in `read_table`. ``forbidden=False``: no column is taken for forbidden labels. Bad rows that are to be fatal
        are so at the end of a loop.
    size : int, optional
        Characters of a piece, about. Default: four million.
    progress : callable, optional
        Called with the number of rows seen, while the columns are chosen.

    Attributes
    ----------
    report : ReadReport
        What was guessed, and after a loop the rows that were left out.
    rows : int
        Rows of the table, good and bad.
    characters : float
        About how many characters all texts have, by the length of the first ones.

    Raises
    ------
    ReadError
        As in `read_table`; at the end of a loop if there was no document.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "texts.csv"
    ...     _ = path.write_text("text,label\nrain at noon,weather\nshares fell,\n")
    ...     stream = TableStream(path, size=10)
    ...     [documents.labels for documents in stream]
    [[['weather']], [[]]]
    """

    def __init__(
        self,
        source: Any,
        *,
        text: str | None = None,
        labels: str | Literal[False] | None = None,
        id: str | None = None,
        forbidden: str | Literal[False] | None = None,
        separator: str | None = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        on_error: OnError = "skip",
        keep_empty: bool = False,
        size: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._pieces = open_table(source, encoding=encoding, delimiter=delimiter)
        self._size, self._on_error, self._keep_empty = PIECE if size is None else size, on_error, keep_empty
        survey = Survey(self._watched(progress), (text, labels, id, forbidden))
        columns = Columns(survey)
        self._text, self._id = columns.text(text), columns.unique_ids(id)
        self._has = None if labels is False else columns.labels(labels, separator)
        self._lacks = (
            None if forbidden is False else columns.labels(forbidden, separator, FORBIDDEN, "forbidden labels")
        )
        self._free = list(columns.free)
        self.numbered = self._id is None
        self._repeated = set() if self._id is None else survey.keys[self._id].repeated()
        self.rows, self.characters = survey.rows, survey.mean_length(self._text) * survey.rows
        self.report = ReadReport(survey.source, tuple(columns.guesses)).settle(on_error)

    def __iter__(self) -> Iterator[Documents]:
        """Documents of one piece after another, each with the report on its own rows."""
        seen: set[Hashable] = set()
        bad: list[BadRow] = []
        first, found = 0, False
        for table in self._pieces(self._size):
            documents = self._read(table, first, seen)
            first += len(table.places)
            bad += documents.report.bad_rows
            found = found or len(documents) > 0
            if len(documents):
                yield documents
        self.report = replace(self.report, bad_rows=tuple(bad)).settle(self._on_error)
        if not found:
            raise ReadError(f"{self.report.source}: no document could be read\n{self.report}".rstrip())

    def _read(self, table: Table, first: int, seen: set[Hashable]) -> Documents:
        """Documents of a piece; ``first`` is the number of rows before it, ``seen`` holds ids that may come again."""
        texts, ids = table.column(self._text), table.ids if self._id is None else table.column(self._id)
        has, lacks = (column and column.reader(table) for column in (self._has, self._lacks))
        good: list[tuple[int, Hashable, str, list[str], list[str]]] = []
        free = {name: table.column(name) for name in self._free}
        problems = dict(table.problems)
        for row, place in enumerate(table.places):
            try:
                key = first + row if ids is None else read_id(ids[row])
                again = self._id is not None and hash(key) in self._repeated
                if again and key in seen:
                    raise ValueError(f"the id {key!r} occurs a second time")
                words = "" if self._keep_empty and is_missing(texts[row]) else read_text(texts[row])
                good.append((row, key, words, has(row) if has else [], lacks(row) if lacks else []))
                if again:
                    seen.add(key)
            except ValueError as error:
                problems[place] = str(error)
        return Documents(
            ids=[key for _, key, _, _, _ in good],
            texts=[words for _, _, words, _, _ in good],
            labels=[names for _, _, _, names, _ in good],
            columns={name: [values[row] for row, *_ in good] for name, values in free.items()},
            forbidden=[names for _, _, _, _, names in good],
            report=table.report(self.report.guesses, problems),
            numbered=ids is None,
        )

    def _watched(self, progress: Callable[[int], None] | None) -> Iterator[Table]:
        rows = 0
        for table in self._pieces(self._size):
            yield table
            rows += len(table.places)
            if progress is not None:
                progress(rows)
