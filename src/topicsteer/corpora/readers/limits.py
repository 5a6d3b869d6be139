"""Limits on the content of a file: a few kilobytes of gzip or Parquet can unpack to gigabytes."""

import gzip
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from topicsteer.corpora.read_report import ReadError
from topicsteer.system.memory import in_bytes

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

    def tell(self) -> int:
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
