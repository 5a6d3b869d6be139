"""W in blocks on disk: each version of a block is a file, and most weights are zero."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from topicsteer.nmf import kernels as _kernels
from topicsteer.nmf.blocks import slices
from topicsteer.system.arrays import load_array
from topicsteer.system.files import replacing
from topicsteer.system.types import Array


class BlockError(ValueError):
    """A block could not be written or read; the message names it, and says what to do."""


@contextmanager
def writing(path: Path, what: str) -> Iterator[None]:
    """What goes wrong on the disk, said with the folder, the room left there and what to do."""
    try:
        yield
    except OSError as error:
        free = "?"
        with suppress(OSError):
            free = f"{shutil.disk_usage(path if path.exists() else path.parent).free / 1e9:.1f}"
        raise BlockError(
            f"could not {what} in {path}: {error.strerror or error}; {free} GB are free there. "
            "Make room, or give a folder on another disk."
        ) from error


@dataclass(frozen=True)
class WeightFolder:
    """W in blocks on disk, in versions. Most weights are zero: stored are the others, and a bit for each."""

    path: Path
    starts: NDArray[np.int64]
    d: int
    dtype: DTypeLike

    @classmethod
    def make(cls, path: Path, starts: NDArray[np.int64], d: int, dtype: DTypeLike) -> WeightFolder:
        """One in a new folder, or in one that has been used before."""
        with writing(path, "make a folder"):
            path.mkdir(parents=True, exist_ok=True)
        return cls(path, starts, d, dtype)

    def read(self, number: int, version: int) -> Array:
        """The W of a block; zero before the first version."""
        _kernels.prepare(self.dtype)
        shape = int(self.starts[number + 1] - self.starts[number]), self.d
        size = shape[0] * shape[1]
        path = self._file(number, version)
        if version == 0 and not path.exists():
            return np.zeros(shape, dtype=self.dtype)
        W = np.empty(-(-size // 8) * 8, dtype=self.dtype)
        try:
            with open(path, "rb") as file:
                bits, values = np.fromfile(file, np.uint8, len(W) // 8), np.fromfile(file, self.dtype)
            if 8 * len(bits) != len(W):
                raise ValueError("it is too short")
            stock = values if len(values) else np.zeros(1, dtype=self.dtype)  # there must be one to take from
            if _kernels.unpack(bits, stock, W) != len(values):
                raise ValueError("its bits and values do not fit")
        except (OSError, ValueError) as error:
            raise BlockError(
                f"the weights of block {number} cannot be read: {path} ({error}). Delete {self.path} and fit again."
            ) from error
        return W[:size].reshape(shape)

    def write(self, number: int, version: int, W: Array) -> None:
        """Write the W of a block; whoever does the same block a second time writes the same."""
        path = self._file(number, version)
        _kernels.prepare(self.dtype)
        bits, values = np.empty(-(-W.size // 8), dtype=np.uint8), np.empty(W.size, dtype=self.dtype)
        count = _kernels.pack(np.ascontiguousarray(W, dtype=self.dtype).reshape(-1), bits, values)
        said = writing(self.path, f"write the weights of block {number}")
        with said, replacing(path) as unfinished, open(unfinished, "xb") as file:
            bits.tofile(file)  # without headers: several threads read, and Python parses headers in one
            values[:count].tofile(file)

    def keep_only(self, versions: set[int]) -> None:
        """Remove the other versions."""
        for path in self.path.glob("*W-*"):  # also those that a killed process left unfinished
            if int(path.name.split("-")[1]) not in versions:
                with suppress(OSError):  # a worker on another machine may be writing it still
                    path.unlink()

    def _file(self, number: int, version: int) -> Path:
        return self.path / f"W-{version:06d}-{number:05d}.weights"


class StoredWeights:
    """The weights of documents in blocks on disk: rows are read when they are asked for.

    Parameters
    ----------
    folder : WeightFolder
    version : int
        Which of its versions.
    owner : object, optional
        What must live as long: a temporary folder, which goes with it.
    """

    ndim = 2

    def __init__(self, folder: WeightFolder, version: int, owner: object = None) -> None:
        self.folder, self.version, self._owner = folder, version, owner
        self.shape = int(folder.starts[-1]), folder.d
        self.dtype = np.dtype(folder.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<StoredWeights: {self.shape[0]:,} documents, {self.shape[1]} topics, in {self.folder.path}>"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.concatenate([*self.blocks(), np.zeros((0, self.shape[1]), self.dtype)]).astype(dtype or self.dtype)

    def __getitem__(self, key: Any) -> Any:
        """Rows by number, slice or array; a second part chooses among their topics."""
        rows, topics = key if isinstance(key, tuple) else (key, slice(None))
        chosen = np.arange(len(self))[rows]
        W = self._rows(np.atleast_1d(chosen))[:, topics]
        return W if chosen.ndim else W[0]

    def blocks(self) -> Iterator[Array]:
        """The weights of each block, in their order."""
        return (self.folder.read(number, self.version) for number in range(len(self.folder.starts) - 1))

    def mapped(self, path: Path) -> Array:
        """All of it as an array in a file, mapped into memory."""
        with writing(path.parent, f"write {path.name}"):
            out = np.lib.format.open_memmap(path, "w+", self.dtype, self.shape)
            for block, (a, b) in zip(self.blocks(), itertools.pairwise(self.folder.starts), strict=True):
                out[a:b] = block
            out.flush()
        return np.asanyarray(np.load(path, mmap_mode="c"))

    def _rows(self, rows: NDArray[np.int64]) -> Array:
        out = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        where = np.searchsorted(self.folder.starts, rows, side="right") - 1
        for number in np.unique(where):
            mine = where == number
            out[mine] = self.folder.read(int(number), self.version)[rows[mine] - self.folder.starts[number]]
        return out


def row_blocks(values: Array | StoredWeights, size: int) -> list[tuple[slice, Callable[[], Array]]]:
    """Blocks of rows, of ``size`` where none are given: which rows, and a function that reads them on any machine."""
    if isinstance(values, StoredWeights):
        limits = itertools.pairwise(values.folder.starts.tolist())
        return [(slice(a, b), partial(values.folder.read, i, values.version)) for i, (a, b) in enumerate(limits)]
    parts, file = slices(len(values), size), getattr(values, "filename", None)
    if file is None or np.load(file, mmap_mode="r").shape != values.shape:  # a part of a mapped array has its name too
        return [(rows, partial(np.asarray, values[rows])) for rows in parts]
    return [(rows, partial(_read_rows, file, rows)) for rows in parts]


def _read_rows(file: str, rows: slice) -> Array:
    return np.array(load_array(file, mmap_mode="r")[rows])
