"""Readers of files with tables (text with delimiters, JSON, Parquet, Excel), and of tables in memory.

A reader yields `Table` objects from a `TableFile`, with limits on its content.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import logging
import math
import os
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date, datetime, time
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from xml.parsers import expat

from topicsteer.corpora.documents import BadRow, ReadError, ReadOptions, ReadReport
from topicsteer.system.memory import in_bytes
from topicsteer.system.templates import unguarded

if TYPE_CHECKING:
    import fastexcel
    import polars as pl


# Environment variable with a limit such as 200GB, for files that unpack to more than the default permits.
VARIABLE = "TOPICSTEER_UNPACKED"
# A file may unpack to this many times its size; text rarely exceeds 20.
FACTOR = 100
# Any file may unpack to this many bytes.
FLOOR = 1 << 30
# Bytes of memory per cell of a table.
CELL = 8
# Greatest number of columns of a table.
MOST_COLUMNS = 100_000

_limit: ContextVar[int | None] = ContextVar("limit", default=None)


@contextmanager
def limited(n_bytes: int) -> Iterator[None]:
    """Files that are read in this context may unpack to this many bytes."""
    token = _limit.set(n_bytes)
    try:
        yield
    finally:
        _limit.reset(token)


def limit_of(path: str | Path) -> int:
    """Bytes that a file may unpack to: of the context, of the user, or by its size.

    Examples
    --------
    >>> with limited(5000):
    ...     limit_of("x.csv.gz")
    5000
    """
    given = _limit.get()
    if given is None and (chosen := os.environ.get(VARIABLE)):
        given = in_bytes(chosen)
    if given is None:
        given = max(FLOOR, FACTOR * os.path.getsize(path)) if os.path.isfile(path) else 1 << 60
    return given


def check_cells(path: str | Path, rows: int, columns: int) -> None:
    """Raise ReadError if a table has more cells than a file of this size may have."""
    if columns > MOST_COLUMNS:
        raise ReadError(f"{path}: {columns:,} columns; at most {MOST_COLUMNS:,} are read")
    check_bytes(path, CELL * rows * columns)


def check_bytes(path: str | Path, n_bytes: int) -> None:
    """Raise ReadError if the content of a file takes more bytes than it may."""
    limit = limit_of(path)
    if n_bytes > limit:
        raise ReadError(
            f"{path}: its content takes more than {limit / 1e9:.3g} GB, far more than the file: it may be made to fill "
            f"the memory. If you trust it, set the environment variable {VARIABLE}, for example to 200GB"
        )


class _Counted(io.RawIOBase):
    """The unpacked bytes of a gzip file, counted while they are read."""

    def __init__(self, packed: gzip.GzipFile, path: str | Path) -> None:
        self._packed, self._path, self._read = packed, path, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._read = self._packed.seek(offset, whence)
        return self._read

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._packed.read(len(buffer))
        buffer[: len(data)] = data
        self._read += len(data)
        check_bytes(self._path, self._read)
        return len(data)


class Unpacked(io.BufferedReader):
    """A gzip file as a stream of its content; too much content raises ReadError."""

    def __init__(self, packed: gzip.GzipFile, path: str | Path) -> None:
        super().__init__(_Counted(packed, path), 1 << 16)


# Byte order marks by encoding. UTF-32 comes first, because its little-endian mark starts with that of UTF-16.
BYTE_ORDER_MARKS = {
    "utf-8-sig": (codecs.BOM_UTF8,),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
# First bytes of a gzip file.
GZIP_MAGIC = b"\x1f\x8b"
# Number of bytes to read at once.
BUFFER = 1 << 16
# Added to the number of characters of each row, so that blocks of short rows stay small.
ROW_COST = 100


@dataclass(frozen=True)
class TableFile:
    """A file with a table, and the options to read it.

    Parameters
    ----------
    path : str
    given_encoding : str, optional
        The encoding. Default: detected.
    delimiter : str, optional
        Delimiter of the fields of a line. Default: guessed.
    sheet : str, optional
        Sheet of a workbook. Default: the first visible one with rows.
    """

    path: str
    given_encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None

    @property
    def kind(self) -> str:
        """The file extension, without .gz."""
        return Path(Path(self.path).name.lower().removesuffix(".gz")).suffix

    @cached_property
    def encoding(self) -> str:
        """The encoding of the text."""
        return find_encoding(self.path) if self.given_encoding is None else check_encoding(self.given_encoding)

    @property
    def guesses(self) -> tuple[str, ...]:
        """Guesses about the whole file."""
        known = self.given_encoding is not None or self.encoding.startswith("utf-8")
        return () if known else (f"encoding is {self.encoding}",)


@dataclass(frozen=True)
class Table:
    """Columns of equal length, the place of each row in the source, and the problems of unreadable rows.

    It may be a block of a larger table. ``ids`` are ids outside the columns, such as the index of a pandas DataFrame.
    ``guarded``: cells may have a quote that keeps spreadsheets from reading them as formulas.
    """

    source: str
    columns: Mapping[str, Sequence[object]]
    places: Sequence[int]
    unit: str = "row"
    guesses: tuple[str, ...] = ()
    problems: Mapping[int, str] = field(default_factory=dict)
    ids: Sequence[Hashable] | None = None
    guarded: bool = False

    def column(self, name: str | None) -> Sequence[object]:
        """Return the cells of a column; None in all rows if this table does not have it."""
        return [None] * len(self.places) if name is None or name not in self.columns else self.columns[name]

    def unguarded(self, cell: object) -> object:
        """Return a cell without the quote that keeps spreadsheets from reading it as a formula."""
        return unguarded(cell) if self.guarded and isinstance(cell, str) else cell

    def report(self, guesses: Iterable[str], problems: Mapping[int, str]) -> ReadReport:
        """Return a report of guesses and problems, in the order of the source."""
        bad = (BadRow(f"{self.unit} {place}", problems[place]) for place in sorted(problems))
        return ReadReport(self.source, tuple(guesses), tuple(bad))


# Reads a table in blocks of about the given number of characters, any number of times.
TableBlocks = Callable[[float], Iterator[Table]]


def columns_of(rows: Sequence[Mapping[str, object]], path: str = "") -> dict[str, list[object]]:
    """Convert rows to columns; None where a row has no value. Too many cells for the file at ``path`` are an error."""
    names = dict.fromkeys(name for row in rows for name in row)
    if path:  # rows with names of their own would fill the memory
        check_cells(path, len(rows), len(names))
    return {str(name): [row.get(name) for row in rows] for name in names}


def column_names(header: Sequence[str]) -> list[str]:
    """Return unique column names; columns without a name are named by their number."""
    names: dict[str, None] = {}
    for number, cell in enumerate(header, 1):
        name = cell.strip() or f"column {number}"
        names[name if name not in names else f"{name} (column {number})"] = None
    return list(names)


@contextmanager
def open_bytes(place: str | Path) -> Iterator[BinaryIO]:
    """Open a file for reading, and unpack gzip; every error of the disk becomes a ReadError."""
    try:
        with Path(place).open("rb") as stream:
            packed = stream.read(2) == GZIP_MAGIC
            stream.seek(0)
            yield Unpacked(gzip.GzipFile(fileobj=stream), place) if packed else stream
    except FileNotFoundError:
        raise ReadError(f"{place}: there is no such file; check the name and the folder") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ReadError(f"{place}: damaged gzip file ({error}); copy or download it again") from None
    except OSError as error:
        raise ReadError(f"{place}: cannot be read ({error.strerror or error})") from None


def check_unpacked(file: TableFile) -> None:
    """Raise ReadError if a file cannot be read or is packed with gzip, which does not make its kind smaller."""
    with open_bytes(file.path) as stream:
        if isinstance(stream, Unpacked):
            raise ReadError(f"{file.path}: {file.kind} files are not read from gzip; unpack it first (gunzip)")


def find_encoding(path: str | Path) -> str:
    """Detect UTF-8, UTF-16 and UTF-32 (by their mark), or else Windows-1252.

    A file without a mark is UTF-8 if at least half of its lines outside ASCII are valid UTF-8. So one damaged line
    among good ones is a bad row and not a sign of another encoding.
    """
    valid = invalid = 0
    with open_bytes(path) as stream:
        for number, line in enumerate(_lines(stream)):
            if number == 0:
                for encoding, marks in BYTE_ORDER_MARKS.items():
                    if line.startswith(marks):
                        return encoding
            if not line.isascii():
                try:
                    line.decode()
                    valid += 1
                except UnicodeDecodeError:
                    invalid += 1
    return "utf-8" if valid >= invalid else "cp1252"


def check_encoding(encoding: str) -> str:
    """Return the encoding if it is a text encoding of Python."""
    try:
        b"a".decode(encoding, "ignore")
    except (LookupError, UnicodeError):
        raise ReadError(
            f"unknown encoding {encoding!r}: expected a name such as 'utf-8', 'cp1252' or 'shift_jis'"
        ) from None
    return encoding


def undecodable(encoding: str) -> str:
    """The problem of a line that is not written in the encoding of its file."""
    return f"cannot be decoded as {encoding}; if the file has another encoding, pass --encoding (encoding= in Python)"


def read_lines(path: str | Path, encoding: str) -> Iterator[tuple[str, bool]]:
    """Yield each line with its line end, and whether it could be decoded."""
    with open_bytes(path) as stream:
        if codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):  # A line end has several bytes.
            with io.TextIOWrapper(stream, encoding, errors="replace", newline="") as lines:
                for text in lines:
                    yield text, "\ufffd" not in text
            return
        for line in _lines(stream):
            try:
                yield line.decode(encoding), True
            except UnicodeError:
                yield line.decode(encoding, "replace"), False


def read_text(path: str | Path, encoding: str | None) -> str:
    """Return the text of a whole file; raises ReadError if it cannot be decoded."""
    lines = list(read_lines(path, encoding or find_encoding(path)))
    if not all(good for _, good in lines):
        bad = next(number for number, (_, good) in enumerate(lines, 1) if not good)
        raise ReadError(f"{path}: line {bad} cannot be decoded; name the encoding of the file")
    return "".join(text for text, _ in lines).removeprefix("\ufeff")


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines, also of files that end them with a single carriage return, as some spreadsheets do."""
    head = stream.read(BUFFER)
    stream.seek(0)
    if b"\r" not in head or b"\n" in head:
        yield from stream
        return
    rest = b""
    while read := stream.read(BUFFER):
        *lines, rest = (rest + read).replace(b"\r", b"\n").split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


# Number of bytes of a part to unpack at once.
PIECE = 1 << 18
# Bytes of memory per cell of the rectangle around all cells, which fastexcel fills.
CELL_COST = 32
# First bytes of an old .xls file and of a workbook with a password.
OLE_MAGIC = b"\xd0\xcf\x11\xe0"
# Errors of a damaged archive, or of an unknown encoding or method.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, LookupError, RuntimeError, ValueError)
# Days of a cell with a time and no date, in the two calendars of Excel.
NO_DAYS = (date(1899, 12, 30), date(1899, 12, 31), date(1904, 1, 1))
# A moment as fastexcel writes it into a column with texts: at midnight, and without a day.
MIDNIGHT = r"^(\d{4}-\d\d-\d\d) 00:00:00$"
NO_DAY = r"^(?:1899-12-3[01]|1904-01-01) (\d\d:\d\d:\d\d(?:\.\d+)?)$"


def read_excel(file: TableFile, size: float) -> Iterator[Table]:
    """Yield one sheet of a workbook as one block: the named one, or else the first visible one with rows."""
    import fastexcel

    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # a column without values is no news
    check_unpacked(file)
    try:
        _Extent(file.path).check()
        table = _sheet(file, fastexcel.read_excel(file.path))
    except (fastexcel.FastExcelError, OSError, *DAMAGE) as error:  # OSError: an impossible place in the file
        if isinstance(error, ReadError):
            raise
        with open(file.path, "rb") as stream:
            old = stream.read(4) == OLE_MAGIC
        why = "it is an old .xls file, or has a password" if old else str(error).splitlines()[0]
        advice = "open it in a spreadsheet program, and save it as .xlsx without a password"
        raise ReadError(f"{file.path}: not an Excel workbook that can be read ({why}); {advice}") from None
    yield table


def _sheet(file: TableFile, book: fastexcel.ExcelReader) -> Table:
    """Return the rows below the first row with a value, which is the header."""
    import polars as pl

    sheet, others = _choose(file, book)
    # Row numbers of the sheet: fastexcel leaves out empty rows at the top unless it skips 0 rows.
    texts = book.load_sheet(sheet, header_row=None, skip_rows=0, dtypes="string").to_polars()
    filled = texts.select(pl.any_horizontal(pl.all().fill_null("") != "")).to_series() if texts.width else pl.Series()
    numbers = filled.arg_true().to_list()
    first = numbers[0] if numbers else 0
    cells = pl.DataFrame()
    if numbers:
        cells = book.load_sheet(sheet, header_row=first, schema_sample_rows=None).to_polars()
    header = texts.row(first) if numbers else ()
    names = column_names([text or "" for text in header])
    kept = [number - first - 1 for number in numbers[1:]]
    columns = {
        name: _plain(column.gather(kept))
        for name, title, column in zip(names, header, cells.get_columns(), strict=True)
        if title or column.null_count() < len(column)
    }
    places = [number + 1 for number in numbers[1:]]
    empty = sorted(set(range(first + 2, max(places, default=0))) - set(places))
    guess = f"the sheet is {sheet!r}; other sheets: {', '.join(map(repr, others))}"
    return Table(file.path, columns, places, "row", (guess,) if others else (), dict.fromkeys(empty, "empty row"))


def _choose(file: TableFile, book: fastexcel.ExcelReader) -> tuple[str, list[str]]:
    """Return the sheet to read, and the other visible ones if nobody named it."""
    if file.sheet is not None:
        if file.sheet not in book.sheet_names:
            listed = ", ".join(map(repr, book.sheet_names)) or "none"
            raise ReadError(f"{file.path}: there is no sheet {file.sheet!r}; the sheets are {listed}")
        return file.sheet, []
    if len(book.sheet_names) == 1:
        return book.sheet_names[0], []
    sheets = [book.load_sheet(name, header_row=None, dtypes="string") for name in book.sheet_names]
    shown = [sheet for sheet in sheets if sheet.visible == "visible"] or sheets
    if not shown:
        raise ReadError(f"{file.path}: the workbook has no sheet with cells")
    chosen = next((sheet.name for sheet in shown if sheet.height), shown[0].name)
    return chosen, [sheet.name for sheet in shown if sheet.name != chosen]


def _plain(column: pl.Series) -> list[object]:
    """Return the cells of a column as whole numbers, dates and times where they are; None for empty ones."""
    import polars as pl

    if column.dtype == pl.String:
        texts = column.str.replace(MIDNIGHT, "$1").str.replace(NO_DAY, "$1")
        return texts.str.replace_all("\r\n", "\n", literal=True).replace("", None).to_list()
    cells = column.to_list()
    found = [cell for cell in cells if cell is not None]
    if column.dtype == pl.Float64:
        return [int(cell) if cell is not None and cell.is_integer() and abs(cell) < 1 << 53 else cell for cell in cells]
    if all(isinstance(cell, datetime) for cell in found):
        if all(cell.date() in NO_DAYS for cell in found):
            return [None if cell is None else cell.time() for cell in cells]
        if all(cell.time() == time() for cell in found):
            return [None if cell is None else cell.date() for cell in cells]
    return cells


class _Extent:
    """The memory that a workbook takes, counted while its parts are unpacked piece by piece.

    fastexcel keeps a rectangle around all cells of a sheet, and a copy of a shared text per cell.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.unpacked = 0
        self.lengths: list[int] = []
        self.uses: Counter[int] = Counter()
        self.rows = self.columns = 0
        self.row = self.column = 0
        self.kind = ""
        self.text: list[str] = []

    def check(self) -> None:
        """Raise ReadError if the content takes more memory than a file of this size may."""
        with zipfile.ZipFile(self.path) as archive:
            for part in archive.infolist():
                part.file_size = 1 << 62  # the stated size may be false
                with archive.open(part) as stream:
                    self._scan(part.filename, stream)
                check_cells(self.path, self.rows * CELL_COST // 8, self.columns)
        shared = sum(count * self.lengths[k] for k, count in self.uses.items() if k < len(self.lengths))
        check_bytes(self.path, shared)

    def _scan(self, name: str, stream: Any) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse  # entities of a document type can grow without bounds
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self.text.append
        self.row = self.column = 0
        well_formed = True
        while piece := stream.read(PIECE):
            self.unpacked += len(piece)
            check_bytes(self.path, self.unpacked)
            try:
                if well_formed:
                    parser.Parse(piece, False)
            except expat.ExpatError as error:
                well_formed = False
                if name.lower().endswith((".xml", ".rels")):
                    raise ValueError(f"{name}: {error}") from None
            if not well_formed and b"sheetData" in piece:
                raise ValueError(f"{name}: not well-formed")

    def _start(self, name: str, given: Mapping[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name == "row":
            self.row = _whole(given.get("r", ""), self.row + 1)
            self.column = 0
        elif name == "c":
            place = given.get("r", "")
            letters = place.rstrip("0123456789")
            self.column = _column(letters) if letters else self.column + 1
            self.kind = given.get("t", "")
            self.rows = max(self.rows, self.row, _whole(place[len(letters) :], 0))
            self.columns = max(self.columns, self.column)
        if name in ("c", "si"):
            self.text.clear()

    def _end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        if name == "si":
            self.lengths.append(sum(map(len, self.text)))
        elif name == "c" and self.kind == "s":
            self.uses[_whole("".join(self.text).strip(), -1)] += 1

    def _refuse(self, *_: object) -> None:
        raise ReadError(f"{self.path}: has a document type, which no Excel workbook has; it is not read")


def _whole(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


def _column(letters: str) -> int:
    """Return the number of a column, counted from 1."""
    number = 0
    for letter in letters[:4].upper():
        number = 26 * number + ord(letter) - 64
    return number


# Delimiters that are tried on the header.
DELIMITERS = ",\t;|"
# Characters of the header in which the delimiter is counted.
LONG_HEADER = 1 << 20
# Maximum number of characters in a record of several lines. A longer one has a quote that is never closed.
MAX_RECORD = 1 << 24


def read_delimited(file: TableFile, size: float, notes: list[str] | None = None) -> Iterator[Table]:
    """Yield the blocks of a file of delimited text.

    With a list of ``notes``, rows with the wrong number of fields are not problems: see `read_records`.
    """
    delimiter = file.delimiter or ("\t" if file.kind in (".tsv", ".tab") else None)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ReadError(f"delimiter is {delimiter!r}: expected one character such as ',' or ';'")
    records = read_records(read_lines(file.path, file.encoding), delimiter, file.encoding, notes)
    with long_fields():
        _, header, _ = next(records, (0, [], None))
    if not header:
        raise ReadError(f"{file.path}: is empty; expected a header with the names of the columns")
    check_cells(file.path, 1, len(header))
    names = column_names(header)
    guesses = file.guesses
    if file.delimiter and len(header) == 1 and set(DELIMITERS) & set(header[0]):
        one = f"{delimiter!r} does not occur in the header, so there is one column, {header[0][:60]!r}"
        guesses = (*guesses, f"{one}; to split it, pass another --delimiter (delimiter= in Python)")
    while True:
        rows: list[list[str]] = []
        places: list[int] = []
        problems: dict[int, str] = {}
        room = size
        # The limit of the csv module is global, so it is raised only while this code runs.
        with long_fields():
            for line, fields, problem in records:
                if problem is None:
                    rows.append(fields)
                    places.append(line)
                else:
                    problems[line] = problem
                room -= sum(map(len, fields)) + ROW_COST
                if room <= 0:
                    break
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        named = dict(zip(names, columns, strict=True))
        yield Table(file.path, named, places, "line", guesses, problems, guarded=True)
        if room > 0:
            return


class Lines:
    """Decoded lines, with a memory of the current record, so that some of its lines can be read again."""

    def __init__(self, lines: Iterable[tuple[str, bool]]) -> None:
        self._lines = iter(lines)
        # Lines to read again, the next one last.
        self._waiting: list[tuple[str, bool]] = []
        self.number = 0
        self.record: list[tuple[str, bool]] = []
        self._length = 0

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        line = self._waiting.pop() if self._waiting else next(self._lines)
        self.number += 1
        self.record.append(line)
        self._length += len(line[0])
        if self._length > MAX_RECORD and len(self.record) > 1:
            raise csv.Error("an open quote")
        return line[0]

    def begin(self) -> None:
        """Begin a new record."""
        self.record = []
        self._length = 0

    def unread(self, keep: int) -> None:
        """Return the lines of this record after the first ``keep``, so that they are read again."""
        rest = self.record[keep:]
        self._waiting += reversed(rest)
        self.number -= len(rest)
        del self.record[keep:]


def read_records(
    source: Iterable[tuple[str, bool]], delimiter: str | None, encoding: str, notes: list[str] | None = None
) -> Iterator[tuple[int, list[str], str | None]]:
    """Yield line number, fields, and problem or None, of each record; the first one is the header.

    An open quote can join a line with the lines below it. A record with wrong quotes is therefore read again as one
    line. So is a record of several lines with the wrong number of fields.

    With a list of ``notes``, a short record gets empty fields, and further fields of a long one join its last field.
    Each gets a note.
    """
    lines = Lines(source)
    if delimiter is None:
        first = next(lines, "")
        delimiter = guess_delimiter(first[:LONG_HEADER])
        lines.unread(0)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    width = 0
    while True:
        lines.begin()
        fields: list[str] | None
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error:
            fields = None
        if fields is None or (len(lines.record) > 1 and len(fields) != (width or len(fields))):
            lines.unread(1)
            fields = split_line(lines.record[0][0], delimiter)
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
        if not fields:
            continue  # An empty line has no fields.
        width = width or len(fields)
        while len(fields) > width and not fields[-1]:
            fields.pop()
        problem = None
        line = lines.number - len(lines.record) + 1
        if not all(decoded for _, decoded in lines.record):
            problem = undecodable(encoding)
        elif notes is None:
            if len(fields) != width:
                problem = f"{len(fields)} field{'s' if len(fields) != 1 else ''}, the header has {width}"
        elif len(fields) < width:
            notes.append(f"Line {line} has {len(fields)} of {width} fields: the others are empty.")
            fields += [""] * (width - len(fields))
        elif len(fields) > width:
            notes.append(
                f"Line {line} has {len(fields)} fields, and the header {width}: the last ones are read as one."
            )
            fields[width - 1 :] = [delimiter.join(fields[width - 1 :])]
        yield line, fields, problem


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the fields of a single line, even if its quotes are not closed."""
    plain = line.rstrip("\r\n").replace("\r", " ").replace("\n", " ")
    return next(csv.reader([plain], delimiter=delimiter), [])


def guess_delimiter(header: str) -> str:
    """Return the delimiter that gives the most fields in the header; a comma if none splits it."""
    return max(DELIMITERS, key=lambda delimiter: len(split_line(header, delimiter)))


@contextmanager
def long_fields() -> Iterator[None]:
    """Allow fields of any length; by default, the csv module refuses more than 131,072 characters."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def read_json_lines(file: TableFile, size: float) -> Iterator[Table]:
    """Yield the blocks of a file with one object per line."""
    rows: dict[int, object] = {}
    problems: dict[int, str] = {}
    room = size
    for number, (line, decoded) in enumerate(read_lines(file.path, file.encoding), 1):
        if not decoded:
            problems[number] = undecodable(file.encoding)
        elif line.strip():
            try:
                rows[number] = json.loads(line.removeprefix("\ufeff").rstrip())
            except (ValueError, RecursionError) as error:
                problems[number] = _json_problem(error)
        room -= len(line) + ROW_COST
        if room <= 0:
            yield _table(file, rows, "line", problems)
            rows, problems, room = {}, {}, size
    yield _table(file, rows, "line", problems)


def read_json(file: TableFile, size: float) -> Iterator[Table]:
    """Yield a list of objects as one block."""
    try:
        items = json.loads(read_text(file.path, file.encoding))
    except (json.JSONDecodeError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise ReadError(
            f"{file.path}: {line}{_json_problem(error)}; a file with one object per line is .jsonl"
        ) from None
    if not isinstance(items, list):
        raise ReadError(f"{file.path}: JSON of type {type(items).__name__}, expected a list of objects")
    yield _table(file, dict(enumerate(items, 1)), "row", {})


def _table(file: TableFile, rows: Mapping[int, object], unit: str, problems: Mapping[int, str]) -> Table:
    """Make a table of the rows that are objects; other rows are problems."""
    good = {number: row for number, row in rows.items() if isinstance(row, dict)}
    bad = {
        number: f"JSON of type {type(row).__name__}, expected an object with named values"
        for number, row in rows.items()
        if number not in good
    }
    return Table(
        file.path, columns_of(list(good.values()), file.path), list(good), unit, file.guesses, {**problems, **bad}
    )


def _json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg} at character {error.colno})"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def read_parquet(file: TableFile, size: float) -> Iterator[Table]:
    """Yield slices of a Parquet file; polars loads only the row groups of a slice."""
    import polars as pl

    check_unpacked(file)
    try:
        scan = pl.scan_parquet(file.path, glob=False)
        total, low, rows = scan.select(pl.len()).collect().item(), 0, 1000.0
        schema = scan.collect_schema()
        check_cells(file.path, total, len(schema))
        # One long text may stand for a million, and one list may hold a million values.
        lengths = [pl.col(name).str.len_bytes().sum() for name, kind in schema.items() if kind == pl.String]
        lengths += [8 * pl.col(name).list.len().sum() for name, kind in schema.items() if kind == pl.List]
        if lengths:
            check_bytes(file.path, int(scan.select(pl.sum_horizontal(lengths)).collect().item() or 0))
        while True:
            frame = scan.slice(low, None if size == math.inf else int(rows)).collect()
            yield Table(file.path, frame.to_dict(as_series=False), range(low + 1, low + len(frame) + 1))
            low += len(frame)
            if low >= total:
                return
            rows = max(1.0, size / (frame.estimated_size() / len(frame) + ROW_COST))
    except ReadError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise ReadError(f"{file.path}: not a Parquet file that can be read ({error})") from None


# The reader of each file extension, without .gz. It yields blocks of about the given number of characters.
READERS: dict[str, Callable[[TableFile, float], Iterator[Table]]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".tab": read_delimited,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".xlsx": read_excel,
    ".xlsm": read_excel,
}
# Kinds of sheets that are not read.
OTHER_SHEETS = (".xls", ".xlsb", ".ods", ".numbers")


def load_table(source: object, options: ReadOptions) -> Table:
    """Load any supported source as one table."""
    return next(open_table(source, options)(math.inf))


def open_table(source: object, options: ReadOptions) -> TableBlocks:
    """Return a function that reads a source in blocks; a table in memory and a .json file are one block."""
    if isinstance(source, str | os.PathLike):
        file = TableFile(os.fspath(source), options.encoding, options.delimiter, options.sheet)
        if Path(file.path).is_dir():
            raise ReadError(f"{file.path}: is a folder; read its files with read_folder")
        if file.kind not in READERS:
            save = "; save the sheet as .xlsx first" if file.kind in OTHER_SHEETS else ""
            raise ReadError(
                f"{file.path}: unknown kind of file {file.kind!r}; expected .csv, .tsv, .jsonl or .json, also "
                f"with .gz, .xlsx or .parquet{save}"
            )
        return partial(READERS[file.kind], file)
    table = source if isinstance(source, Table) else _load_object(source)
    return lambda size: iter([table])


def _load_object(source: object) -> Table:
    """Load a table in memory: a DataFrame, or a list of texts or dicts."""
    if isinstance(source, Mapping):
        names = ", ".join(map(repr, list(source)[:5]))
        raise ReadError(f"cannot read a {type(source).__name__} of {names}: pass one of its values, or a DataFrame")
    frame = _from_frame(source)
    if frame is not None:
        return frame
    if isinstance(source, Iterable):
        rows = source.to_pylist() if hasattr(source, "to_pylist") else list(source)  # Arrow columns have to_pylist.
        records = bool(rows) and all(isinstance(row, dict) for row in rows)
        columns = columns_of(rows) if records else {"text": rows}
        return Table("list", columns, range(1, len(rows) + 1))
    raise ReadError(f"cannot read a {type(source).__name__}: expected a file name, a DataFrame or a list of strings")


def _from_frame(source: object) -> Table | None:
    """Load any DataFrame that narwhals supports, also a lazy one; None for other objects."""
    import narwhals as nw

    try:
        frame = nw.from_native(source, pass_through=True)
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    except nw.exceptions.DuplicateError:
        raise ReadError("two columns of the DataFrame have the same name: rename one of them") from None
    if not isinstance(frame, nw.DataFrame):
        return None
    columns = {str(name): frame.get_column(name).to_list() for name in frame.columns}
    index = nw.maybe_get_index(frame)
    ids = index.tolist() if index is not None and index.is_unique else None
    return Table("DataFrame", columns, range(1, len(frame) + 1), ids=ids)
