"""Input and output of a reader: a `TableFile` with limits on its content, and a `Table` of columns."""

import codecs
import gzip
import io
import os
import shutil
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from topicsteer.corpora.documents import BadRow, ReadError, ReadReport
from topicsteer.system.files import Scratch
from topicsteer.system.memory import in_bytes
from topicsteer.system.templates import unguarded

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


def is_address(place: str | Path) -> bool:
    """Whether this is an address for fsspec, such as ``s3://bucket/a.csv``, and not a local file."""
    return "://" in str(place)


@dataclass(frozen=True)
class TableFile:
    """A file or address of a table, with the options to read it.

    Parameters
    ----------
    path : str
        Path or address.
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
    """Open a file or address for reading, and unpack gzip; every error of the disk becomes a ReadError."""
    try:
        with _open_address(str(place)) if is_address(place) else Path(place).open("rb") as stream:
            packed = stream.read(2) == GZIP_MAGIC
            stream.seek(0)
            yield Unpacked(gzip.GzipFile(fileobj=stream), place) if packed else stream
    except FileNotFoundError:
        raise ReadError(f"{place}: there is no such file; check the name and the folder") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ReadError(f"{place}: damaged gzip file ({error}); copy or download it again") from None
    except OSError as error:
        raise ReadError(f"{place}: cannot be read ({error.strerror or error})") from None


@contextmanager
def local_copy(path: str, suffix: str) -> Iterator[str]:
    """Give a local, unpacked file: the file itself, or a temporary copy of a remote or packed one."""
    with open_bytes(path) as stream:
        if not is_address(path) and not isinstance(stream, Unpacked):
            yield path
            return
        with Scratch() as folder:
            copy = folder / f"copy{suffix}"
            with copy.open("wb") as target:
                shutil.copyfileobj(stream, target, 1 << 20)
            yield str(copy)


def _open_address(address: str) -> BinaryIO:
    try:
        import fsspec
    except ImportError:
        raise ReadError(f"{address}: remote files need fsspec: pip install fsspec") from None
    try:
        return io.BufferedReader(fsspec.open(address, "rb").open(), 1 << 20)
    except (ImportError, ValueError) as error:  # A missing package or an unknown protocol.
        raise ReadError(f"{address}: cannot be opened ({error})") from None


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
