"""The documents of a table, block by block."""

from collections.abc import Hashable, Iterator
from dataclasses import asdict, replace
from typing import Literal, Self

from topicsteer.corpora.cells import check_labels, read_id, read_text
from topicsteer.corpora.columns import Columns, RowProgress
from topicsteer.corpora.documents import Documents
from topicsteer.corpora.options import ReadOptions
from topicsteer.corpora.read_report import BadRow, OnError, ReadError, ReadReport
from topicsteer.corpora.readers.registry import open_table
from topicsteer.corpora.readers.table_file import Table
from topicsteer.system.values import is_missing

# Approximate number of characters per block.
BLOCK_SIZE = 1 << 22


class TableStream:
    r"""The documents of a file larger than memory, in blocks; each loop reads the file again.

    All blocks together equal the result of `read_table`. The file is read once here, to choose the columns, and once
    per loop. Memory holds one block, eight bytes per id and the list of bad rows. Files of lines and Parquet files are
    read in blocks; a .json file and a table in memory are one block.

    Parameters
    ----------
    source : path, address or table
        As in `read_table`.
    text, id, labels, forbidden, separator, encoding, delimiter, on_error, keep_empty
        As in `read_table`. ``forbidden=False``: no column holds forbidden labels. With ``on_error="raise"`` bad rows
        raise at the end of a loop.
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
        progress: RowProgress | None = None,
    ) -> None:
        options = ReadOptions(text, labels, id, forbidden, separator, encoding, delimiter, on_error=on_error)
        self._blocks, self._size = open_table(source, options), BLOCK_SIZE if size is None else size
        self._on_error, self._keep_empty = on_error, keep_empty
        columns = Columns(self._blocks(self._size), options, progress)
        self._text, self._id = columns.text(), columns.ids(unique=True)
        self._has, self._lacks, self._free = columns.labels(), columns.forbidden(), columns.free
        self.numbered, self._repeated = self._id is None, columns.repeated(self._id)
        self.rows, self.characters = columns.rows, columns.mean_length(self._text) * columns.rows
        self.report = ReadReport(columns.source, tuple(columns.guesses)).raise_for_bad_rows(on_error)
        self._lengths = {name: columns.mean_length(name) for name in self._free}

    def short_columns(self, most: int) -> list[str]:
        """Names of further columns whose values have at most this many characters on average."""
        return [name for name, length in self._lengths.items() if length <= most]

    @classmethod
    def of(
        cls, source: object, options: ReadOptions, *, keep_empty: bool = False, progress: RowProgress | None = None
    ) -> Self:
        """Stream a source with the options of a reader; with a label file, labels in the source are ignored."""
        given = asdict(options)
        if given.pop("label_file") is not None:
            given |= {"labels": False, "forbidden": False}
        return cls(source, **given, keep_empty=keep_empty, progress=progress)

    def __iter__(self) -> Iterator[Documents]:
        """Yield the documents of each block, with a report on the rows of the block."""
        seen: set[str] = set()
        bad: list[BadRow] = []
        first, found = 0, False
        for table in self._blocks(self._size):
            documents = self._read(table, first, seen)
            first += len(table.places)
            bad += documents.report.bad_rows
            found = found or len(documents) > 0
            if len(documents):
                yield documents
        self.report = replace(self.report, bad_rows=tuple(bad)).raise_for_bad_rows(self._on_error)
        if not found:
            raise ReadError(f"{self.report.source}: there is no row with a text\n{self.report}".rstrip())

    def _read(self, table: Table, first: int, seen: set[str]) -> Documents:
        """Return the documents of a block.

        ``first`` is the number of rows before it. ``seen`` holds the repeated ids read so far.
        """
        texts, ids = table.column(self._text), table.ids if self._id is None else table.column(self._id)
        has, lacks = self._has.reader(table), self._lacks.reader(table)
        good, all_ids, all_texts = list[int](), list[Hashable](), list[str]()
        all_labels, all_forbidden = list[list[str]](), list[list[str]]()
        free = {name: table.column(name) for name in self._free}
        problems = dict(table.problems)
        for row, place in enumerate(table.places):
            try:
                key = first + row if ids is None else read_id(ids[row])
                again = self._id is not None and hash(str(key)) in self._repeated
                if again and str(key) in seen:
                    raise ValueError(f"the id {key!r} occurs a second time")
                words = "" if self._keep_empty and is_missing(texts[row]) else read_text(texts[row])
                labels, forbidden = has(row), lacks(row)
                check_labels(labels, forbidden)
            except ValueError as error:
                problems[place] = str(error)
                continue
            if again:
                seen.add(str(key))
            good.append(row)
            all_ids.append(key)
            all_texts.append(words)
            all_labels.append(labels)
            all_forbidden.append(forbidden)
        return Documents(
            ids=all_ids,
            texts=all_texts,
            labels=all_labels,
            columns={name: [values[row] for row in good] for name, values in free.items()},
            forbidden=all_forbidden,
            report=table.report(self.report.guesses, problems),
            numbered=ids is None,
        )
