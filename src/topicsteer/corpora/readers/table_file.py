"""What a reader is given and what it gives: a `TableFile` (bytes to text, here and elsewhere), and a `Table`.

A line remembers whether it could be decoded. A table has plain columns, and may be one piece of a larger one.
"""

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from topicsteer.corpora.read_report import BadRow, ReadError, ReadReport

# UTF-32 first: its little-endian mark starts with that of UTF-16.
BYTE_ORDER_MARKS = {
    "utf-8-sig": (codecs.BOM_UTF8,),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
GZIP_MAGIC = b"\x1f\x8b"
BUFFER = 1 << 16
ROW_COST = 100  # what a row costs besides its characters, where a piece is to have so many


def is_address(place: str | Path) -> bool:
    """Tell whether this names something that fsspec opens, such as ``s3://bucket/a.csv``, and no file here."""
    return "://" in str(place)


@dataclass(frozen=True)
class TableFile:
    """A file or address that holds a table, and how the user wants it read.

    Parameters
    ----------
    path : str
        Where it is.
    wanted : str, optional
        Its encoding; found out if there is none.
    delimiter : str, optional
        What stands between the fields of a line; guessed if there is none.
    """

    path: str
    wanted: str | None = None
    delimiter: str | None = None

    @property
    def kind(self) -> str:
        """How its name ends, before .gz."""
        return Path(Path(self.path).name.lower().removesuffix(".gz")).suffix

    @cached_property
    def encoding(self) -> str:
        """The encoding of its text."""
        return find_encoding(self.path) if self.wanted is None else check_encoding(self.wanted)

    @property
    def guesses(self) -> tuple[str, ...]:
        """What was guessed of the whole file."""
        known = self.wanted is not None or self.encoding.startswith("utf-8")
        return () if known else (f"encoding is {self.encoding}",)


@dataclass(frozen=True)
class Table:
    """Columns of equal length, where each row stands in its source, and what could not become a row.

    It may be one piece of a larger table. ``ids`` are those that the rows have without a column for it, such as the
    index of a pandas DataFrame.
    """

    source: str
    columns: Mapping[str, Sequence[object]]
    places: Sequence[int]
    unit: str = "row"
    guesses: tuple[str, ...] = ()
    problems: Mapping[int, str] = field(default_factory=dict)
    ids: Sequence[Hashable] | None = None

    def column(self, name: str | None) -> Sequence[object]:
        """Cells of a column; None in all rows if this table, or this piece of one, does not have it."""
        return [None] * len(self.places) if name is None or name not in self.columns else self.columns[name]

    def report(self, guesses: Iterable[str], problems: Mapping[int, str]) -> ReadReport:
        """Say what was guessed and what was found wrong, in the order of the source."""
        bad = (BadRow(f"{self.unit} {place}", problems[place]) for place in sorted(problems))
        return ReadReport(self.source, tuple(guesses), tuple(bad))


TableBlocks = Callable[[float], Iterator[Table]]  # a table in pieces of so many characters, any number of times


def columns_of(rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    """Columns of all names that occur, None where a row lacks one."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {str(name): [row.get(name) for row in rows] for name in names}


@contextmanager
def open_bytes(place: str | Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    """Open a file or address for reading, unpacked if it is gzip; whatever the disk says becomes a ReadError."""
    try:
        with _open_address(str(place)) if is_address(place) else Path(place).open("rb") as stream:
            packed = stream.read(2) == GZIP_MAGIC
            stream.seek(0)
            yield gzip.GzipFile(fileobj=stream) if packed else stream
    except FileNotFoundError:
        raise ReadError(f"{place}: there is no such file; check the name and the folder") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ReadError(f"{place}: damaged gzip file ({error}); copy or download it again") from None
    except OSError as error:
        raise ReadError(f"{place}: cannot be read ({error.strerror or error})") from None


def _open_address(address: str) -> BinaryIO:
    try:
        import fsspec
    except ImportError:
        raise ReadError(f'{address}: files elsewhere need fsspec: pip install "topicsteer[remote]"') from None
    try:
        return io.BufferedReader(fsspec.open(address, "rb").open(), 1 << 20)
    except (ImportError, ValueError) as error:  # a package that is missing, a protocol that nobody knows
        raise ReadError(f"{address}: cannot be opened ({error})") from None


def find_encoding(path: str | Path) -> str:
    """Detect UTF-8, UTF-16 and UTF-32 (by their mark), or else Windows-1252.

    A file counts as UTF-8 if at least as many of its lines outside ASCII are valid UTF-8 as are not: one
    damaged line among good ones is a bad row, not another encoding.
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
    """Return the encoding if Python knows it as a text encoding."""
    try:
        b"a".decode(encoding, "ignore")
    except (LookupError, UnicodeError):
        raise ReadError(
            f"unknown encoding {encoding!r}: expected a name such as 'utf-8', 'cp1252' or 'shift_jis'"
        ) from None
    return encoding


def read_lines(path: str | Path, encoding: str) -> Iterator[tuple[str, bool]]:
    """Each line with its line end, and whether it could be decoded."""
    with open_bytes(path) as stream:
        if codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):  # a line end is not one byte
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
    """Decode a whole file; raises ReadError if it cannot be decoded."""
    lines = list(read_lines(path, encoding or find_encoding(path)))
    if not all(good for _, good in lines):
        bad = next(number for number, (_, good) in enumerate(lines, 1) if not good)
        raise ReadError(f"{path}: line {bad} cannot be decoded; name the encoding of the file")
    return "".join(text for text, _ in lines).removeprefix("\ufeff")


def _lines(stream: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    """Lines, also of a file that ends them with a lone carriage return, as some spreadsheets still do."""
    head = stream.read(BUFFER)
    stream.seek(0)
    if b"\r" not in head or b"\n" in head:
        yield from stream
        return
    rest = b""
    while part := stream.read(BUFFER):
        *lines, rest = (rest + part).replace(b"\r", b"\n").split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest
