"""Read documents from folders, files and tables, at once or block by block."""

import os
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from topicsteer.corpora.columns import Columns, RowProgress, check_labels, read_id, text_cell
from topicsteer.corpora.documents import (
    DEFAULT,
    BadRow,
    Documents,
    ReadError,
    ReadKeywords,
    ReadOptions,
    ReadReport,
)
from topicsteer.corpora.label_files import attach_labels, read_label_file
from topicsteer.corpora.readers import Table, check_encoding, load_table, open_table, read_text
from topicsteer.system.values import NONE, is_missing

# Approximate number of characters per block.
BLOCK_SIZE = 1 << 22
# A note on rows of zeros.
ZEROS = (
    "have 0 in every label column, which means that these documents have none of the topics; if they are unlabelled, "
    "leave their cells empty"
)


class TableStream:
    r"""The documents of a file larger than memory, in blocks; each loop reads the file again.

    All blocks together equal the result of `read_table`. The file is read once here, to choose the columns, and once
    per loop. Memory holds one block, eight bytes per id and the list of bad rows. Files of lines and Parquet files are
    read in blocks; a .json file and a table in memory are one block.

    Parameters
    ----------
    source : path or table
        As in `read_table`.
    options : ReadOptions, optional
        Columns and encoding. The labels of a label file are not read.
    keep_empty, keep_all : bool, default=False
        As in `read_documents`.
    size : int, optional
        Approximate number of characters per block. Default: four million.
    progress : callable, optional
        Called with the number of rows read while the columns are chosen.

    Attributes
    ----------
    report : ReadReport
        The guesses and, after a loop, the rows that were left out.
    rows : int
        Rows of the table, good and bad.
    characters : float
        Estimated number of characters of all texts, from the length of the first ones.

    Raises
    ------
    ReadError
        As in `read_table`, and at the end of a loop without any document.

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
        source: object,
        options: ReadOptions = DEFAULT,
        *,
        keep_empty: bool = False,
        keep_all: bool = False,
        size: int | None = None,
        progress: RowProgress | None = None,
    ) -> None:
        self._blocks = open_table(source, options)
        self._size = BLOCK_SIZE if size is None else size
        self._keep_empty = keep_empty
        self._keep_all = keep_all
        columns = Columns(self._blocks(self._size), options, progress)
        columns.refuse_empty()
        self._texts = columns.text()
        self._id = columns.ids(unique=True)
        self._has = columns.labels()
        self._lacks = columns.forbidden()
        self._free = dict.fromkeys(columns.names) if keep_all else columns.free
        self.numbered = self._id is None
        self._repeated = columns.repeated(self._id)
        self.rows = columns.rows + keep_all * columns.unreadable
        self.characters = columns.mean_length(*self._texts) * columns.rows
        if self._repeated and not keep_all:
            columns.guesses.append(
                f"column {self._id!r} repeats ids, and later rows are left out; if it holds no ids of rows, name "
                "another column with --id (id= in Python), or none"
            )
        treatment = "kept" if keep_all else "left out"
        self.report = ReadReport(columns.source, tuple(columns.guesses), treatment=treatment)
        self._lengths = {name: columns.mean_length(name) for name in self._free}
        self._zeros = 0
        self.reading = replace(
            options,
            text=self._texts,
            labels=self._has.names or self._has.name or (None if options.labels is None else False),
            id=False if columns.without_ids else self._id,
            forbidden=self._lacks.name or (None if options.forbidden is None else False),
            like=None,
        )

    def short_columns(self, most: int) -> list[str]:
        """Names of further columns whose values have at most this many characters on average."""
        return [name for name, length in self._lengths.items() if length <= most]

    def __iter__(self) -> Iterator[Documents]:
        """Yield the documents of each block, with a report on the rows of the block."""
        seen: set[str] = set()
        bad: list[BadRow] = []
        left_out: list[int] = []
        first = before = self._zeros = 0
        found = False
        for table in self._blocks(self._size):
            documents = self._read(table, first, before, seen)
            bad += documents.report.bad_rows
            left_out += documents.report.left_out
            first += len(table.places)
            before += len(table.places) + len(table.problems)
            found = found or len(documents) > 0
            if len(documents):
                yield documents
        self.report = replace(self.report, guesses=self._notes(), bad_rows=tuple(bad), left_out=tuple(left_out))
        if not found:
            raise ReadError(f"{self.report.source}: there is no row with a text\n{self.report}".rstrip())

    def _read(self, table: Table, first: int, before: int, seen: set[str]) -> Documents:
        """Return the documents of a block.

        ``first`` is the number of readable rows before it, ``before`` that of all rows. ``seen`` holds the
        repeated ids read so far.
        """
        ids = table.ids if self._id is None else table.column(self._id)
        texts, has, lacks = self._words(table), self._has.reader(table), self._lacks.reader(table)
        # Row of the block (None if the reader of the file refused it), id, text, labels and forbidden labels.
        found: list[tuple[int | None, Hashable, str, list[str], list[str]]] = []
        left_out: list[int] = []
        problems = dict(table.problems)
        for number, (row, place) in enumerate(_all_rows(table), before):
            key: Hashable = "" if row is None else first + row
            try:
                if row is None:
                    raise ValueError(problems[place])
                key = key if ids is None else read_id(ids[row])
                again = self._id is not None and hash(str(key)) in self._repeated
                if again and str(key) in seen:
                    raise ValueError(f"the id {key!r} occurs a second time")
                words, (labels, zeros) = texts(row), has(row)
                forbidden = [*lacks(row)[0], *zeros]
                check_labels(labels, forbidden)
                found.append((row, key, words, labels, forbidden))
                if again:
                    seen.add(str(key))
            except ValueError as error:
                problems[place] = str(error)
                if self._keep_all:
                    found.append((row, key, self._any_words(texts, row), [], []))
                else:
                    left_out.append(number)
        self._zeros += sum(labels == [NONE] for _, _, _, labels, _ in found) if self._has.names else 0
        free = {name: table.column(name) for name in self._free}
        return Documents(
            ids=[key for _, key, _, _, _ in found],
            texts=[words for _, _, words, _, _ in found],
            labels=[names for _, _, _, names, _ in found],
            columns={
                name: [None if row is None else values[row] for row, *_ in found] for name, values in free.items()
            },
            forbidden=[names for _, _, _, _, names in found],
            report=replace(
                table.report(self._notes(), problems), left_out=tuple(left_out), treatment=self.report.treatment
            ),
            numbered=ids is None,
            reading=self.reading,
        )

    def _words(self, table: Table) -> Callable[[int], str]:
        """A function from a row to its text, which several columns may hold."""
        columns = [table.column(name) for name in self._texts]

        def read(row: int) -> str:
            found = [text_cell(cells[row]) for cells in columns if not is_missing(cells[row])]
            if not found and not self._keep_empty:
                raise ValueError("empty text")
            return "\n".join(found)

        return read

    def _any_words(self, texts: Callable[[int], str], row: int | None) -> str:
        """Return the text of a row whose id or labels cannot be used; empty if it has none."""
        try:
            return "" if row is None else texts(row)
        except ValueError:
            return ""

    def _notes(self) -> tuple[str, ...]:
        """The guesses, and a note if most rows have 0 in all label columns."""
        if 2 * self._zeros <= self.rows:
            return self.report.guesses
        return (*self.report.guesses, f"{self._zeros:,} of {self.rows:,} rows {ZEROS}")


def _all_rows(table: Table) -> Iterable[tuple[int | None, int]]:
    """Yield number and place of all rows of a block, in their order; the number of a refused row is None."""
    if not table.problems:
        return enumerate(table.places)
    numbers = {place: row for row, place in enumerate(table.places)}
    return ((numbers.get(place), place) for place in sorted({*numbers, *table.problems}))


def read_documents(
    source: object, options: ReadOptions = DEFAULT, *, keep_empty: bool = False, keep_all: bool = False
) -> Documents:
    """Read documents from a folder, a file or a table in memory.

    Parameters
    ----------
    source : path, DataFrame, list of str or list of dict
        Any source of `read_folder` or `read_table`.
    options : ReadOptions, optional
        Columns, encoding, label file and bad rows. A folder has no columns: ``labels="folders"`` takes the names of
        the folders as labels.
    keep_empty : bool, default=False
        Whether a row with an empty text is kept as a document without words; otherwise it is a bad row.
    keep_all : bool, default=False
        Whether every row of a table is a document, in order, with all columns. A bad row has an empty text if its own
        cannot be read; ids may repeat. The report still lists bad rows.

    Returns
    -------
    Documents
        With the labels of the label file, if given.

    Raises
    ------
    ReadError
        As in `read_table` and `read_folder`.

    Examples
    --------
    >>> read_documents(["rain at noon", "shares fell"])
    <Documents: 2 documents, 0 labelled, 0 topics>
    """
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        folders = options.labels == "folders"
        documents = read_folder(str(source), labels_from_folders=folders, encoding=options.encoding)
    else:
        (documents,) = TableStream(load_table(source, options), options, keep_empty=keep_empty, keep_all=keep_all)
    if options.label_file is None:
        return documents
    return attach_labels(documents, read_label_file(options))


def read_table(source: object, **options: Unpack[ReadKeywords]) -> Documents:
    """Read documents from a file or from a table in memory.

    Columns without a given name are guessed where it is obvious, and ``documents.report`` lists the guesses. It also
    lists bad rows: lines that cannot be decoded, a wrong number of fields, empty texts, missing or repeated ids, and
    labels that are not names.

    Parameters
    ----------
    source : path, DataFrame, list of str or list of dict
        Files: .csv, .tsv, .jsonl, .json (a list of objects), each also with .gz, .xlsx or .parquet.
    text : str or list of str, optional
        The column of texts. Several are joined, and a row counts if one of them has a text.
    labels : str, list of str or False, optional
        The column of labels. Empty cells, -1, -, ?, NA, n/a, NaN and null mean "no label". The label "(none)", alone
        in its cell, means "none of the topics". Or one column of 0 and 1 per topic: a list of names, ``"tea,coffee"``,
        or a pattern such as ``"cs.*"``; a row of zeros has none of the topics. False or "none": no column.
    id : str or False, optional
        The column of ids. False or "none": no column. The ids are then the index of a pandas DataFrame, or else row
        numbers counted from 0.
    forbidden : str, optional
        The column of topics that a document does not have.
    separator : str, optional
        Separator of several labels in a cell; ``"json"`` if a cell holds a list. Default: guessed.
    label_file : path, optional
        A second file with labels in addition to the table, joined by id or text; see `read_labels`.
    label_options : dict, optional
        Options of the label file, such as ``{"labels": "Code", "id": "Nr"}``. Default: guessed.
    encoding : str, optional
        Default: UTF-8, UTF-16 or UTF-32 by their mark, else UTF-8 if the text is valid, else Windows-1252.
    delimiter : str, optional
        Delimiter of the fields of a .csv file. Default: guessed from the header.
    sheet : str, optional
        Sheet of an .xlsx file. Default: the first visible one with rows.

    Returns
    -------
    Documents
        The good rows, in the order of the source. Columns without a role are kept.

    Raises
    ------
    ReadError
        If the source cannot be read, or has no good row.

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
    return read_documents(source, ReadOptions(**options))


def read_folder(
    path: str | Path,
    *,
    pattern: str = "*.txt",
    labels_from_folders: bool = False,
    encoding: str | None = None,
) -> Documents:
    """Read a folder of text files, one document per file, with all its subfolders.

    Parameters
    ----------
    path : path
        The folder.
    pattern : str, default="*.txt"
        Files to read; the same names followed by .gz are read too. ``"*"`` reads all.
    labels_from_folders : bool, default=False
        Label each document with the names of its folders inside ``path``; files at the top are unlabelled.
    encoding : str, optional
        Default: detected per file, as in `read_table`.

    Returns
    -------
    Documents
        Ids are the file names relative to the folder, sorted.

    Raises
    ------
    ReadError
        If there is no such folder, or it has no such file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     (Path(folder) / "weather").mkdir()
    ...     _ = (Path(folder) / "weather" / "monday.txt").write_text("rain at noon")
    ...     documents = read_folder(folder, labels_from_folders=True)
    >>> documents.ids, documents.texts, documents.labels
    (['weather/monday.txt'], ['rain at noon'], [['weather']])
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ReadError(f"{folder}: there is no such folder")
    if encoding is not None:
        check_encoding(encoding)
    ids, texts, labels, bad = [], [], [], []
    for file in sorted(file for file in {*folder.rglob(pattern), *folder.rglob(f"{pattern}.gz")} if file.is_file()):
        inside = file.relative_to(folder)
        try:
            text = read_text(file, encoding)
            if not text.strip():
                raise ReadError("empty text")
            names = list(dict.fromkeys(inside.parts[:-1])) if labels_from_folders else []
            check_labels(names, [])
        except ValueError as error:
            bad.append(BadRow(inside.as_posix(), str(error).removeprefix(f"{file}: ")))
            continue
        ids.append(inside.as_posix())
        texts.append(text)
        labels.append(names)
    report = ReadReport(str(folder), bad_rows=tuple(bad))
    if not ids:
        if (folder / "model.json").is_file():
            raise ReadError(f"{folder}: is a saved model; expected the table or the folder with the texts")
        expected = "expected a folder of such files, or a table (.csv, .xlsx, .jsonl, .parquet)"
        raise ReadError(f"{folder}: no file matching {pattern} could be read; {expected}\n{report}".rstrip())
    return Documents(ids, texts, labels, report=report)
