"""The documents of a table, block by block."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, Self

from topicsteer.corpora.cells import check_labels, read_id, read_text
from topicsteer.corpora.columns import Columns, RowProgress
from topicsteer.corpora.documents import Documents
from topicsteer.corpora.options import Names, ReadOptions
from topicsteer.corpora.read_report import BadRow, OnError, ReadError, ReadReport
from topicsteer.corpora.readers.registry import open_table
from topicsteer.corpora.readers.table_file import Table
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
    source : path, address or table
        As in `read_table`.
    text, id, labels, forbidden, separator, encoding, delimiter, sheet, on_error, keep_empty, keep_all
        As in `read_table`. ``forbidden=False``: no column holds forbidden labels. With ``on_error="raise"`` bad rows
        raise at the end of a loop.
    like : ReadOptions, optional
        Columns of an earlier source, chosen where an option is None and the source has them.
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
        text: Names | None = None,
        labels: Names | Literal[False] | None = None,
        id: str | Literal[False] | None = None,
        forbidden: str | Literal[False] | None = None,
        separator: str | None = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        on_error: OnError = "skip",
        sheet: str | None = None,
        like: ReadOptions | None = None,
        keep_empty: bool = False,
        keep_all: bool = False,
        size: int | None = None,
        progress: RowProgress | None = None,
    ) -> None:
        options = ReadOptions(
            text, labels, id, forbidden, separator, encoding, delimiter, on_error=on_error, sheet=sheet, like=like
        )
        self._blocks, self._size = open_table(source, options), BLOCK_SIZE if size is None else size
        self._on_error, self._keep_empty, self._keep_all = on_error, keep_empty, keep_all
        columns = Columns(self._blocks(self._size), options, progress)
        columns.refuse_empty()
        self._texts, self._id = columns.text(), columns.ids(unique=True)
        self._has, self._lacks = columns.labels(), columns.forbidden()
        self._free = dict.fromkeys(columns.names) if keep_all else columns.free
        self.numbered, self._repeated = self._id is None, columns.repeated(self._id)
        self.rows, self.characters = columns.rows, columns.mean_length(*self._texts) * columns.rows
        self.rows += columns.unreadable if keep_all else 0
        if self._repeated and not keep_all:
            columns.guesses.append(
                f"column {self._id!r} repeats ids, and later rows are left out; if it holds no ids of rows, name "
                "another column with --id (id= in Python), or none"
            )
        self.report = ReadReport(columns.source, tuple(columns.guesses), kept=keep_all).raise_for_bad_rows(on_error)
        self._lengths, self._zeros = {name: columns.mean_length(name) for name in self._free}, 0
        self.reading = replace(
            options,
            text=self._texts,
            labels=self._has.names or self._has.name or (None if labels is None else False),
            id=False if columns.without_ids else self._id,
            forbidden=self._lacks.name or (None if forbidden is None else False),
            like=None,
        )

    def short_columns(self, most: int) -> list[str]:
        """Names of further columns whose values have at most this many characters on average."""
        return [name for name, length in self._lengths.items() if length <= most]

    @classmethod
    def of(
        cls,
        source: object,
        options: ReadOptions,
        *,
        keep_empty: bool = False,
        keep_all: bool = False,
        size: int | None = None,
        progress: RowProgress | None = None,
    ) -> Self:
        """Stream a source with the options of a reader; with a label file, labels in the source are ignored."""
        given = options.given()
        if given.pop("label_file") is not None:
            given |= {"labels": False, "forbidden": False}
        return cls(source, **given, keep_empty=keep_empty, keep_all=keep_all, size=size, progress=progress)

    def __iter__(self) -> Iterator[Documents]:
        """Yield the documents of each block, with a report on the rows of the block."""
        seen: set[str] = set()
        bad: list[BadRow] = []
        left_out: list[int] = []
        first, before, found, self._zeros = 0, 0, False, 0
        for table in self._blocks(self._size):
            documents = self._read(table, first, before, seen)
            bad += documents.report.bad_rows
            left_out += documents.report.left_out
            first += len(table.places)
            before += len(_all_places(table))
            found = found or len(documents) > 0
            if len(documents):
                yield documents
        self.report = replace(self.report, guesses=self._notes(), bad_rows=tuple(bad), left_out=tuple(left_out))
        self.report.raise_for_bad_rows(self._on_error)
        if not found:
            raise ReadError(f"{self.report.source}: there is no row with a text\n{self.report}".rstrip())

    def _read(self, table: Table, first: int, before: int, seen: set[str]) -> Documents:
        """Return the documents of a block.

        ``first`` is the number of readable rows before it, ``before`` that of all rows. ``seen`` holds the
        repeated ids read so far.
        """
        ids = table.ids if self._id is None else table.column(self._id)
        texts, has, lacks = self._words(table), self._has.reader(table), self._lacks.reader(table)
        zeros = self._has.forbids(table)
        good: list[tuple[int, Hashable, str, list[str], list[str]]] = []
        free = {name: table.column(name) for name in self._free}
        problems = dict(table.problems)
        for row, place in enumerate(table.places):
            key: Hashable = first + row
            try:
                key = key if ids is None else read_id(ids[row])
                again = self._id is not None and hash(str(key)) in self._repeated
                if again and str(key) in seen:
                    raise ValueError(f"the id {key!r} occurs a second time")
                words, labels, forbidden = texts(row), has(row), [*lacks(row), *zeros(row)]
                check_labels(labels, forbidden)
                good.append((row, key, words, labels, forbidden))
                if again:
                    seen.add(str(key))
            except ValueError as error:
                problems[place] = str(error)
                if self._keep_all:
                    good.append((row, key, self._any_words(texts, row), [], []))
        self._zeros += sum(labels == [NONE] for _, _, _, labels, _ in good) if self._has.names else 0
        documents = Documents(
            ids=[key for _, key, _, _, _ in good],
            texts=[words for _, _, words, _, _ in good],
            labels=[names for _, _, _, names, _ in good],
            columns={name: [values[row] for row, *_ in good] for name, values in free.items()},
            forbidden=[names for _, _, _, _, names in good],
            report=replace(
                table.report(self._notes(), problems),
                left_out=() if self._keep_all else self._left_out({row for row, *_ in good}, table, before),
                kept=self._keep_all,
            ),
            numbered=ids is None,
            reading=self.reading,
        )
        return _with_unread(documents, table) if self._keep_all and table.problems else documents

    @staticmethod
    def _left_out(good: set[int], table: Table, before: int) -> tuple[int, ...]:
        """Numbers of the rows of a block that are no documents, also of rows that the reader of the file refused."""
        if len(good) == len(table.places) and not table.problems:
            return ()
        kept = {table.places[row] for row in good}
        return tuple(row for row, place in enumerate(_all_places(table), before) if place not in kept)

    def _words(self, table: Table) -> Callable[[int], str]:
        """A function from a row to its text, which several columns may hold."""
        columns = [table.column(name) for name in self._texts]

        def read(row: int) -> str:
            found = [read_text(cells[row]) for cells in columns if not is_missing(cells[row])]
            if not found and not self._keep_empty:
                raise ValueError("empty text")
            return "\n".join(found)

        return read

    def _any_words(self, texts: Callable[[int], str], row: int) -> str:
        """The text of a row whose id or labels cannot be used; empty if it has none."""
        try:
            return texts(row)
        except ValueError:
            return ""

    def _notes(self) -> tuple[str, ...]:
        """The guesses, and a note if most rows have 0 in all label columns."""
        if 2 * self._zeros <= self.rows:
            return self.report.guesses
        return (*self.report.guesses, f"{self._zeros:,} of {self.rows:,} rows {ZEROS}")


def _all_places(table: Table) -> Sequence[int]:
    """The places of all rows of a block in their order, also of rows that the reader of the file refused."""
    return sorted({*table.places, *table.problems}) if table.problems else table.places


def _with_unread(documents: Documents, table: Table) -> Documents:
    """The documents of a block, with an empty one in the place of every row that the reader of the file refused."""
    places = list(dict.fromkeys([*table.places, *table.problems]))
    order = sorted(range(len(places)), key=places.__getitem__)
    n = len(places) - len(documents)
    return replace(
        documents,
        ids=[*documents.ids, *[""] * n],
        texts=[*documents.texts, *[""] * n],
        labels=[*documents.labels, *[[] for _ in range(n)]],
        forbidden=[*documents.forbidden, *[[] for _ in range(n)]],
        columns={name: [*values, *[None] * n] for name, values in documents.columns.items()},
    ).select(order)
