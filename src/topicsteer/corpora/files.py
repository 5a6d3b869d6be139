"""Bytes to text: gzip, encodings, and lines that remember whether they could be decoded."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from topicsteer.corpora.reports import ReadError

# UTF-32 first: its little-endian mark starts with that of UTF-16.
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked if it is gzip; whatever the disk says becomes a ReadError."""
    try:
        with path.open("rb") as stream:
            packed = stream.peek(2)[:2] == GZIP_MAGIC
            yield cast(BinaryIO, gzip.GzipFile(fileobj=stream)) if packed else stream
    except FileNotFoundError:
        raise ReadError(f"{path}: there is no such file; check the name and the folder") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ReadError(f"{path}: damaged gzip file ({error}); copy or download it again") from None
    except OSError as error:
        raise ReadError(f"{path}: cannot be read ({error.strerror or error})") from None


def find_encoding(path: Path) -> str:
    """Detect UTF-8, UTF-16 and UTF-32 (by their mark), or else Windows-1252.

    A file counts as UTF-8 if at least as many of its lines outside ASCII are valid UTF-8 as are not: one
    damaged line among good ones is a bad row, not another encoding.
    """
    valid = invalid = 0
    with open_bytes(path) as stream:
        for number, line in enumerate(stream):
            if number == 0:
                for mark, encoding in BYTE_ORDER_MARKS.items():
                    if line.startswith(mark):
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


def read_lines(path: Path, encoding: str) -> Iterator[tuple[str, bool]]:
    """Each line with its line end, and whether it could be decoded."""
    with open_bytes(path) as stream:
        if codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):  # a line end is not one byte
            with io.TextIOWrapper(stream, encoding, errors="replace", newline="") as lines:
                for text in lines:
                    yield text, "\ufffd" not in text
            return
        for line in _unix_ends(stream):
            try:
                yield line.decode(encoding), True
            except UnicodeError:
                yield line.decode(encoding, "replace"), False


def read_text(path: Path, encoding: str | None) -> str:
    """Decode a whole file; raises ReadError if it cannot be decoded."""
    lines = list(read_lines(path, encoding or find_encoding(path)))
    if not all(good for _, good in lines):
        bad = next(number for number, (_, good) in enumerate(lines, 1) if not good)
        raise ReadError(f"{path}: line {bad} cannot be decoded; name the encoding of the file")
    return "".join(text for text, _ in lines).removeprefix("\ufeff")


def _unix_ends(stream: BinaryIO) -> BinaryIO:
    """Give lines to a file that ends them with a lone carriage return, as some spreadsheets still do."""
    head = stream.read(1 << 16)
    if b"\r" in head and b"\n" not in head:
        return io.BytesIO((head + stream.read()).replace(b"\r", b"\n"))
    stream.seek(0)
    return stream
