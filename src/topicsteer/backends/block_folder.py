"""A matrix larger than memory: a folder of blocks of rows, each stored as three memory-mapped arrays.

A block consists of ``00000-indptr.npy``, ``00000-indices.npy`` and ``00000-data.npy``. ``blocks.json`` is written last,
so a folder without it is unfinished.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from topicsteer.backends.weight_folder import BlockError as BlockError
from topicsteer.backends.weight_folder import WeightFolder
from topicsteer.backends.weight_folder import writing as writing
from topicsteer.nmf.blocks import Block, RowConstraints, Sums, canonical, check_scale, mix_rows, slices, tree_sum
from topicsteer.nmf.protocols import FitBackend, Problem
from topicsteer.nmf.solvers import Step
from topicsteer.system.arrays import checked_csr, load_array
from topicsteer.system.files import PART, Scratch, write_text
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array

T = TypeVar("T")
G = TypeVar("G")

# Version of the format; folders of a later version are refused.
FORMAT = 1
# File that lists the blocks of a folder.
INDEX = "blocks.json"
# The arrays of a block, as attributes of a CSR and in file names.
ARRAYS = ("indptr", "indices", "data")


class BlockWriter:
    """Writes a :class:`BlockFolder`, block by block. As a context manager, it removes the folder after an error.

    Parameters
    ----------
    path : str or Path
        A new folder, or a folder of blocks, which are replaced.
    n_terms : int
        Number of columns.
    dtype : float32 or float64

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with BlockWriter(folder + "/blocks", n_terms=3) as writer:
    ...         writer.append(sp.csr_array(np.eye(2, 3)))
    ...         writer.append(sp.csr_array(np.ones((1, 3))))
    ...     BlockFolder(folder + "/blocks").shape
    (3, 3)
    """

    def __init__(self, path: str | os.PathLike[str], n_terms: int, dtype: DTypeLike = np.float32) -> None:
        self.path, self.n_terms, self.dtype = Path(path), int(n_terms), np.dtype(dtype)
        self._next = 0
        if self.path.exists() and any(not _is_block_file(name) for name in os.listdir(self.path)):
            raise BlockError(f"{self.path} holds other files than blocks: choose a new folder.")
        with writing(self.path, "begin"):
            self.path.mkdir(parents=True, exist_ok=True)
            for name in os.listdir(self.path):
                (self.path / name).unlink()

    def append(self, X: sp.sparray) -> None:
        """Write rows as the next block."""
        self.put(self._next, X)
        self._next += 1

    def put(self, number: int, X: sp.sparray) -> None:
        """Write rows as block ``number``; blocks may be written in any order, and by several processes."""
        X = canonical(checked_csr(X, "the block", dtype=self.dtype))
        if X.shape[1] != self.n_terms:
            raise BlockError(f"block {number} has {X.shape[1]} columns; the folder has {self.n_terms}.")
        with writing(self.path, f"write block {number}"):
            for name, kind in zip(ARRAYS, _dtypes(self.dtype), strict=True):
                np.save(_file(self.path, number, name), getattr(X, name).astype(kind, copy=False))

    def close(self) -> BlockFolder:
        """Write the index, which completes the folder."""
        with writing(self.path, "finish"):
            limits = [np.load(path, mmap_mode="r") for path in sorted(self.path.glob("*-indptr.npy"))]
            blocks = [{"rows": len(indptr) - 1, "entries": int(indptr[-1])} for indptr in limits]
            content = {"format": FORMAT, "terms": self.n_terms, "dtype": self.dtype.name, "blocks": blocks}
            write_text(self.path / INDEX, json.dumps(content))
        return BlockFolder(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            if not (self.path / INDEX).exists():
                shutil.rmtree(self.path, ignore_errors=True)


@dataclass(frozen=True)
class DenseFile:
    """A store for one array per block in a folder, which ends as one memory-mapped file."""

    weights: WeightFolder
    path: Path

    def write(self, number: int, arrays: Iterable[Array]) -> None:
        """Store the rows of block ``number``, in consecutive arrays."""
        none = np.zeros((0, self.weights.d), dtype=self.weights.dtype)
        self.weights.write(number, 1, np.concatenate([none, *arrays]))

    def close(self) -> Array:
        """Return all rows as one memory-mapped array; the files of the blocks are removed."""
        found = self.weights.mapped(1, self.path)
        self.weights.keep_only(set())
        return found


class StoredRows(ABC):
    """Base class of rows on disk and on a cluster (see `topicsteer.nmf.protocols.Rows`)."""

    shape: tuple[int, int]
    dtype: np.dtype[np.floating]
    starts: NDArray[np.int64]
    matrix: sp.csr_array | None = None

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> sp.csr_array:
        """Load some rows into memory: by their numbers, in that order, or by a mask."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64)
        order = np.argsort(rows, kind="stable")
        limits = itertools.pairwise(np.searchsorted(rows[order], self.starts))
        wanted = [(number, rows[order[a:b]] - self.starts[number]) for number, (a, b) in enumerate(limits) if a < b]
        if not wanted:
            return sp.csr_array((0, self.shape[1]), dtype=self.dtype)
        found = sp.csr_array(sp.vstack(self._take(wanted), format="csr")[np.argsort(order)])
        found.indices = found.indices.astype(np.int32, copy=False)
        return found

    @abstractmethod
    def _take(self, wanted: list[tuple[int, NDArray[np.int64]]]) -> list[sp.csr_array]:
        """Return rows of some blocks, from pairs of a block's number and row numbers within it."""

    def dense_store(self, folder: Path | None, name: str, width: int, dtype: DTypeLike) -> DenseFile:
        """Return a store in ``folder/name.npy``."""
        folder = _required(folder, name)
        return DenseFile(WeightFolder.make(folder / name, self.starts, width, dtype), folder / f"{name}.npy")

    def sparse_store(self, folder: Path | None, name: str, width: int, dtype: DTypeLike) -> BlockWriter:
        """Return a store in the folder ``folder/name``."""
        return BlockWriter(_required(folder, name) / name, width, dtype)


def _required(folder: Path | None, name: str) -> Path:
    if folder is None:
        raise ValueError(f"rows in blocks need a folder for their {name}")
    return folder


class BlockFolder(StoredRows):
    """Rows of a sparse matrix in blocks on disk.

    Parameters
    ----------
    path : str or Path
        A folder that :class:`BlockWriter` wrote.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            content = json.loads((self.path / INDEX).read_text())
            if content["format"] > FORMAT:
                raise BlockError(f"{self.path} has blocks of the later format {content['format']}: upgrade topicsteer.")
            self._blocks = [(int(block["rows"]), int(block["entries"])) for block in content["blocks"]]
            self.dtype = np.dtype(content["dtype"])
            terms = int(content["terms"])
        except FileNotFoundError as error:
            raise BlockError(
                f"{self.path} has no {INDEX}: it is not a folder of blocks, or was never finished."
            ) from error
        except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise BlockError(f"{self.path / INDEX} is damaged ({error}); write the blocks again.") from error
        self.starts = np.cumsum([0, *(rows for rows, _ in self._blocks)])
        self.shape = int(self.starts[-1]), terms

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[sp.csr_array]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> sp.csr_array:
        """A block, memory-mapped."""
        rows, entries = self._blocks[number]
        found = []
        for name, length, kind in zip(ARRAYS, (rows + 1, entries, entries), _dtypes(self.dtype), strict=True):
            path = _file(self.path, number, name)
            try:
                array = load_array(path, mmap_mode="r") if length else np.empty(0, kind)
            except (OSError, ValueError) as error:
                raise BlockError(f"block {number} cannot be read: {path} ({error}). Write the blocks again.") from error
            if array.shape != (length,) or array.dtype != kind:
                raise BlockError(
                    f"block {number} is damaged: {path} holds {array.shape[0]} values of {array.dtype}, "
                    f"not {length} of {kind}. Write the blocks again."
                )
            found.append(array)
        X = sp.csr_array((rows, self.shape[1]), dtype=self.dtype)
        X.indptr, X.indices, X.data = found  # scipy's constructor would read all of them, and copy some
        X.has_canonical_format = True
        return X

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        """Number of stored entries of each row."""
        return np.concatenate([np.diff(block.indptr).astype(np.int32) for block in self] or [np.zeros(0, np.int32)])

    def _take(self, wanted: list[tuple[int, NDArray[np.int64]]]) -> list[sp.csr_array]:
        return [self[number][rows] for number, rows in wanted]

    def combine(self, weights: sp.sparray) -> NDArray[np.float64]:
        """Return weighted sums of rows: ``weights`` (k, n_rows) times the matrix."""
        return mix_rows(weights, zip(self.starts[:-1], self, strict=True), self.shape[1])

    def each(self, function: Callable[[sp.csr_array, G], T], given: Sequence[G]) -> Iterator[T]:
        """As in `topicsteer.nmf.protocols.Rows`."""
        return (function(block, one) for block, one in zip(self, given, strict=True))

    def backend(self, problem: Problem, scratch: Scratch | None) -> DiskBackend:
        """Return a backend that updates the blocks with threads of this process; W is written to ``scratch``."""
        return DiskBackend(self.__getitem__, problem, scratch or Scratch())

    def check(self) -> None:
        """Raise an error for invalid entries in any block."""
        check_scale(max(map(self.check_block, range(len(self))), default=0))

    def check_block(self, number: int) -> float:
        """Raise an error for invalid entries in one block, and return the largest entry."""
        X = self[number]
        where = f"block {number} of {self.path}"
        if X.indptr[0] != 0 or X.indptr[-1] != X.nnz or (np.diff(X.indptr) < 0).any():
            raise BlockError(f"{where} is damaged: its row limits do not match its entries. Write the blocks again.")
        if X.nnz and not (X.indices.min() >= 0 and X.indices.max() < self.shape[1]):
            raise BlockError(f"{where} is damaged: it has columns beyond {self.shape[1]}. Write the blocks again.")
        if X.nnz and not (X.data.min() >= 0 and X.data.max() < np.inf):
            first = int(np.argmax(~((X.data >= 0) & (X.data < np.inf))))
            row = int(np.searchsorted(X.indptr, first, side="right")) - 1
            raise BlockError(
                f"{where} has the entry {X.data[first]:g} in its row {row}, column {X.indices[first]}. Entries must be "
                "finite and not negative: repair them and write the blocks again."
            )
        return float(X.data.max(initial=0))


def as_blocks(X: object) -> BlockFolder | Iterable[sp.sparray] | None:
    """X if it is in blocks: a folder, its path, or an iterable of sparse matrices. None for anything else."""
    if isinstance(X, BlockFolder):
        return X
    if isinstance(X, str | os.PathLike):
        return BlockFolder(X)
    if isinstance(X, Iterator) or (isinstance(X, list | tuple) and X and all(map(sp.issparse, X))):
        return X
    return None


def write_blocks(path: str | os.PathLike[str], blocks: Iterable[sp.sparray]) -> BlockFolder:
    """Write sparse blocks of rows to a folder; the first block determines columns and precision."""
    blocks = iter(blocks)
    first = next(blocks, None)
    if first is None:
        raise BlockError("there are no blocks: pass at least one block with documents.")
    with BlockWriter(path, first.shape[1], np.float32 if first.dtype == np.float32 else np.float64) as writer:
        for X in itertools.chain([first], blocks):
            writer.append(X)
    return BlockFolder(path)


def in_blocks(X: sp.csr_array, rows: int = 1 << 14) -> Iterator[sp.csr_array]:
    """Yield a matrix in blocks of at most ``rows`` rows."""
    return (X[chosen] for chosen in slices(X.shape[0], rows))


def _file(path: Path, number: int, array: str) -> Path:
    return path / f"{number:05d}-{array}.npy"


def _dtypes(dtype: DTypeLike) -> tuple[np.dtype[np.generic], ...]:
    """Types of `ARRAYS`."""
    return np.dtype(np.int64), np.dtype(np.int32), np.dtype(dtype)


def _is_block_file(name: str) -> bool:
    """Return whether a :class:`BlockWriter` wrote this file, which may be unfinished."""
    unfinished = name.startswith(f".{INDEX}.") and name.endswith(PART)
    return name == INDEX or unfinished or (name.endswith(".npy") and name[:5].isdigit())


def update_stored_block(
    update: Callable[[Block], Sums],
    X: sp.csr_array,
    constraints: RowConstraints,
    weights: WeightFolder,
    number: int,
    version: int,
) -> Sums:
    """Update the W of a block from one version to the next. Nothing else changes, so the call can be repeated."""
    block = Block.of(X, weights.read(number, version), constraints)
    sums = update(block)
    weights.write(number, version + 1, block.W)
    return sums


class StoredBackend(FitBackend):
    """Base class of backends with W on disk, in versions.

    Parameters
    ----------
    problem : Problem
    scratch : Scratch
        Folder for W; the weights of an earlier fit are removed.
    """

    def __init__(self, problem: Problem, scratch: Scratch) -> None:
        rows = problem.rows
        self.constraints, self.scratch = problem.constraints, scratch
        self.folder = WeightFolder.make(scratch.path / "weights", rows.starts, problem.n_topics, rows.dtype)
        self.folder.keep_only(set())
        self.version = 0
        if problem.first is not None:
            for number in range(len(rows.starts) - 1):
                self.folder.write(number, 0, problem.starting_weights(number))

    def weights(self) -> Array:
        """The current W in a memory-mapped file, which stays readable after its folder is deleted."""
        found = self.folder.mapped(self.version, self.scratch.path / "document_topics.npy")
        self.folder.keep_only(set())
        return found

    def finish_pass(self) -> None:
        """Make the new version of W the current one, and remove all versions before the last one."""
        self.version += 1
        self.folder.keep_only({self.version - 1, self.version})


class DiskBackend(StoredBackend):
    """A backend (see `topicsteer.nmf.protocols.Backend`) for blocks of a folder, updated by threads of this process."""

    def __init__(self, rows: Callable[[int], sp.csr_array], problem: Problem, scratch: Scratch) -> None:
        super().__init__(problem, scratch)
        self.rows, self.numbers = rows, range(len(problem.rows.starts) - 1)

    def total(self, update: Callable[..., Sums], step: Step, run: OrderedMap) -> Sums:
        """As in `topicsteer.nmf.protocols.Backend`."""
        update = partial(update, step=step)

        def one(number: int) -> Sums:
            constraints = self.constraints(number)
            return update_stored_block(update, self.rows(number), constraints, self.folder, number, self.version)

        total = tree_sum(run(one, self.numbers), Sums.__iadd__)
        self.finish_pass()
        return total

    def map(self, function: Callable[[Block], T], run: OrderedMap) -> list[T]:
        """As in `topicsteer.nmf.protocols.Backend`."""

        def one(number: int) -> T:
            return function(
                Block.of(self.rows(number), self.folder.read(number, self.version), self.constraints(number))
            )

        return list(run(one, self.numbers))
