"""Sequences of values on disk, for corpora that do not fit into memory."""

import json
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_encode = json.JSONEncoder(ensure_ascii=False).encode


class DiskSequence(Sequence[Any]):
    """A sequence in two files: the values as lines of JSON, and the end of each line.

    Each value is read on access and not kept in memory.

    Parameters
    ----------
    path : path without ending
        The path given to `DiskSequenceWriter`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with DiskSequenceWriter(Path(folder) / "labels") as writer:
    ...         writer.extend([["tea"], [], ["coffee", "milk"]])
    ...     sequence = DiskSequence(Path(folder) / "labels")
    ...     sequence[2], sequence[-1:], len(sequence)
    (['coffee', 'milk'], [['coffee', 'milk']], 3)
    """

    def __init__(self, path: Path) -> None:
        self._lines, ends = _files(path)
        empty = ends.stat().st_size == 0  # An empty file cannot be mapped.
        self._ends: NDArray[np.int64] = np.empty(0, np.int64) if empty else np.memmap(ends, np.int64, "r")
        size = self._lines.stat().st_size
        if size != (0 if empty else self._ends[-1]):
            raise ValueError(f"{self._lines} is damaged: it has {size} bytes, not {0 if empty else self._ends[-1]}.")
        with self._lines.open("rb") as file:
            self._data: bytes | mmap.mmap = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[Any]:
        with self._lines.open("rb") as file:
            yield from map(json.loads, file)

    def __getitem__(self, place: int | slice) -> Any:
        row = range(len(self))[place]
        if isinstance(row, range):
            return [self[one] for one in row]
        return json.loads(self._data[self._ends[row - 1] if row else 0 : self._ends[row]])


class DiskSequenceWriter(ExitStack):
    """Writes a `DiskSequence`.

    Parameters
    ----------
    path : path without ending
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        for file in _files(path):
            # Delete the old files instead of truncating them: an open sequence still reads them.
            file.unlink(missing_ok=True)
        self._lines, self._ends = (self.enter_context(file.open("wb")) for file in _files(path))
        self._end = 0

    def extend(self, values: Iterable[object]) -> None:
        """Append values that JSON can represent."""
        lines = [_encode(value).encode() + b"\n" for value in values]
        ends = self._end + np.cumsum([len(line) for line in lines], dtype=np.int64)
        self._lines.write(b"".join(lines))
        self._ends.write(ends.tobytes())
        self._end = int(ends[-1]) if lines else self._end


def _files(path: Path) -> tuple[Path, Path]:
    return Path(f"{os.fspath(path)}.jsonl"), Path(f"{os.fspath(path)}.ends")
