"""W in blocks on disk: one file per version of a block, packed because most weights are zero."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from topicsteer.system.files import replacing, reserve
from topicsteer.system.types import Array


class BlockError(ValueError):
    """A block could not be written or read; the message names the block and a remedy."""


@contextmanager
def writing(path: Path, task: str) -> Iterator[None]:
    """Turn errors of the disk into messages with the folder, its free space and a remedy."""
    try:
        yield
    except OSError as error:
        free = "?"
        with suppress(OSError):
            free = f"{shutil.disk_usage(path if path.exists() else path.parent).free / 1e9:.1f}"
        raise BlockError(
            f"could not {task} in {path}: {error.strerror or error}; {free} GB are free there. "
            "Free some space, or choose a folder on another disk."
        ) from error


def new_array(path: Path, dtype: DTypeLike, shape: tuple[int, int]) -> np.memmap[Any, Any]:
    """Return a memory-mapped array of zeros in a new file."""
    path.unlink(missing_ok=True)  # arrays of an earlier fit may still be mapped from the old file
    out = np.lib.format.open_memmap(path, "w+", dtype, shape)
    with open(path, "r+b") as file:
        reserve(file, path.stat().st_size)
    return out


@dataclass(frozen=True)
class WeightFolder:
    """W in blocks on disk, in versions. A file stores one bit per weight, then the weights that are not zero."""

    path: Path
    starts: NDArray[np.int64]
    d: int
    dtype: DTypeLike

    @classmethod
    def make(cls, path: Path, starts: NDArray[np.int64], d: int, dtype: DTypeLike) -> WeightFolder:
        """Create the folder if it does not exist."""
        with writing(path, "create a folder"):
            path.mkdir(parents=True, exist_ok=True)
        return cls(path, starts, d, dtype)

    def read(self, number: int, version: int) -> Array:
        """Return the W of a block; zero before the first version."""
        shape = int(self.starts[number + 1] - self.starts[number]), self.d
        size = shape[0] * shape[1]
        path = self._file(number, version)
        if version == 0 and not path.exists():
            return np.zeros(shape, dtype=self.dtype)
        W = np.zeros(size, dtype=self.dtype)
        try:
            with open(path, "rb") as file:
                bits, values = np.fromfile(file, np.uint8, -(-size // 8)), np.fromfile(file, self.dtype)
            if 8 * len(bits) < size:
                raise ValueError("it is too short")
            filled = np.unpackbits(bits, count=size).view(np.bool_)
            if np.count_nonzero(filled) != len(values):
                raise ValueError("its bits and values do not match")
            W[filled] = values
        except (OSError, ValueError) as error:
            raise BlockError(
                f"the weights of block {number} cannot be read: {path} ({error}). Delete {self.path} and fit again."
            ) from error
        return W.reshape(shape)

    def write(self, number: int, version: int, W: Array) -> None:
        """Write the W of a block; a repeated write of the same version writes the same file."""
        path = self._file(number, version)
        W = np.asarray(W, dtype=self.dtype).reshape(-1)
        filled = W != 0
        errors_explained = writing(self.path, f"write the weights of block {number}")
        with errors_explained, replacing(path, sweeping=False) as unfinished, open(unfinished, "wb") as file:
            np.packbits(filled).tofile(
                file
            )  # without a header, which Python would parse under the GIL while other threads wait
            W[filled].tofile(file)

    def mapped(self, version: int, path: Path) -> Array:
        """Write all rows of a version to a file, and return it as a memory-mapped array."""
        with writing(path.parent, f"write {path.name}"):
            out = new_array(path, self.dtype, (int(self.starts[-1]), self.d))
            for number, (a, b) in enumerate(itertools.pairwise(self.starts)):
                out[a:b] = self.read(number, version)
            out.flush()
        return np.asanyarray(np.load(path, mmap_mode="c"))

    def keep_only(self, versions: set[int]) -> None:
        """Remove all other versions."""
        for path in self.path.glob("*W-*"):  # includes unfinished files of a killed process
            if int(path.name.split("-")[1]) not in versions:
                with suppress(OSError):  # a worker on another machine may still be writing it
                    path.unlink()

    def _file(self, number: int, version: int) -> Path:
        return self.path / f"W-{version:06d}-{number:05d}.weights"
