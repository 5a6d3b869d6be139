"""A factorisation whose blocks are on disk: the rows of X are mapped into memory, W is read, updated and written.

Every pass over the blocks writes a new version of W and leaves the last one alone, so that a pass that was killed, or a
block that is done twice, does no harm; the loop's own state is written after each iteration, and an interrupted fit
goes on from there.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from topicsteer.backends.block_folder import BlockError, BlockFolder, put_text, writing
from topicsteer.nmf import kernels as _kernels
from topicsteer.nmf.blocks import Block, SoftMask, Sums, in_a_tree, mask_weights
from topicsteer.nmf.loop import Map, Result, Step
from topicsteer.system.types import Array

T = TypeVar("T")

STATE = "state.json"


@dataclass(frozen=True)
class WeightFolder:
    """W in blocks on disk, in versions. Most weights are zero: stored are the others, and a bit for each."""

    path: Path
    starts: NDArray[np.int64]
    d: int
    dtype: Any

    @classmethod
    def make(cls, path: Path, starts: NDArray[np.int64], d: int, dtype: Any) -> WeightFolder:
        """One in a new folder, or in one that has been used before."""
        with writing(path, "make a folder"):
            path.mkdir(parents=True, exist_ok=True)
        return cls(path, starts, d, dtype)

    def read(self, number: int, version: int) -> Array:
        """The W of a block; zero before the first version."""
        shape = int(self.starts[number + 1] - self.starts[number]), self.d
        size = shape[0] * shape[1]
        path = self._file(number, version)
        if version == 0 and not path.exists():
            return np.zeros(shape, dtype=self.dtype)
        W = np.empty(-(-size // 8) * 8, dtype=self.dtype)
        try:
            with open(path, "rb") as file:
                bits, values = np.load(file, allow_pickle=False), np.load(file, allow_pickle=False)
            if 8 * len(bits) != len(W) or values.dtype != W.dtype:
                raise ValueError("it is of another shape or precision")
            _kernels.prepare(self.dtype)
            stock = values if len(values) else np.zeros(1, dtype=self.dtype)  # there must be one to take from
            if _kernels.unpack(bits, stock, W) != len(values):
                raise ValueError("its bits and values do not fit")
        except Exception as error:  # npy files fail in many ways when they are damaged
            raise BlockError(
                f"the weights of block {number} cannot be read: {path} ({error}). Delete {self.path} and fit again."
            ) from error
        return W[:size].reshape(shape)

    def write(self, number: int, version: int, W: Array) -> None:
        """Write the W of a block; whoever does the same block a second time writes the same."""
        path = self._file(number, version)
        temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
        _kernels.prepare(self.dtype)
        bits, values = np.empty(-(-W.size // 8), dtype=np.uint8), np.empty(W.size, dtype=self.dtype)
        count = _kernels.pack(np.ascontiguousarray(W, dtype=self.dtype).reshape(-1), bits, values)
        with writing(self.path, f"write the weights of block {number}"):
            try:
                with open(temporary, "xb") as file:
                    np.save(file, bits)  # one after the other: a zip file would take twice as long
                    np.save(file, values[:count])
                os.replace(temporary, path)
            except OSError:
                with suppress(OSError):
                    temporary.unlink()
                raise

    def keep_only(self, versions: set[int]) -> None:
        """Remove the other versions."""
        for path in self.path.glob("W-*"):
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

    def __init__(self, folder: WeightFolder, version: int, owner: Any = None) -> None:
        self.folder, self.version, self._owner = folder, version, owner
        self.shape = int(folder.starts[-1]), folder.d
        self.dtype = np.dtype(folder.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<weights of {self.shape[0]:,} documents and {self.shape[1]} topics on disk, in {self.folder.path}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.concatenate([*self.blocks(), np.zeros((0, self.shape[1]), self.dtype)]).astype(dtype or self.dtype)

    def __getitem__(self, key: Any) -> Any:
        """Rows by number, slice or array; a second part chooses among their topics."""
        rows, topics = key if isinstance(key, tuple) else (key, slice(None))
        if isinstance(rows, int | np.integer):
            return self._rows(np.arange(len(self))[[int(rows)]])[0, topics]
        return self._rows(np.arange(len(self))[rows])[:, topics]

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


@dataclass(frozen=True)
class Rows:
    """What is known of the documents of a block beside their terms."""

    weight: Array
    pattern: NDArray[np.int32]
    soft: SoftMask

    def write(self, path: Path) -> None:
        """Keep them in a file."""
        low, high = self.soft.indptr[0], self.soft.indptr[-1]
        soft = self.soft.indptr - low, self.soft.topics[low:high], self.soft.price[low:high]
        with writing(path.parent, f"write {path.name}"), open(path, "wb") as file:
            for array in (self.weight, self.pattern, *soft):
                np.save(file, array)

    @classmethod
    def read(cls, path: Path) -> Rows:
        """What was written."""
        with open(path, "rb") as file:
            weight, pattern, *soft = (np.load(file, allow_pickle=False) for _ in range(5))
        return cls(weight, pattern, SoftMask(*soft))


def open_block(X: Any, W: Array, rows: Rows) -> Block:
    """A block of rows of X with the W that it has."""
    return Block(X.indptr, X.indices, X.data, W, rows.weight, rows.pattern, rows.soft)


def work(
    update: Callable[..., Sums], X: Any, rows: Rows, weights: WeightFolder, number: int, version: int, step: Step
) -> Sums:
    """Update the W of a block from one version to the next; nothing else is touched, so it can be done again."""
    _kernels.prepare(weights.dtype)
    block = open_block(X, weights.read(number, version), rows)
    sums = update(block, step=step)
    weights.write(number, version + 1, block.W)
    return sums


class StateKeeper:
    """The passes of a fit over blocks: which version of W holds, and what the loop has to know to go on.

    Parameters
    ----------
    weights : WeightFolder
    rows : callable
        From the number of a block to what is known of its documents.
    problem : str, optional
        What tells the problem from others; without it nothing is kept, and nothing can be gone on with.
    """

    def __init__(self, weights: WeightFolder, rows: Callable[[int], Rows], problem: str | None) -> None:
        self.weights, self.rows, self.problem = weights, rows, problem
        self.version, self._kept = 0, 0

    def begin(self, first: Callable[[slice], Array], permitted: NDArray[np.bool_]) -> None:
        """Write the W that the loop starts from."""
        for number, (a, b) in enumerate(itertools.pairwise(self.weights.starts.tolist())):
            W, rows = np.ascontiguousarray(first(slice(a, b)), dtype=self.weights.dtype), self.rows(number)
            mask_weights(W, rows.pattern, rows.soft, permitted)
            self.weights.write(number, 0, W)

    def passed(self) -> None:
        """A pass is over: the new version of W holds."""
        self.version += 1
        self.weights.keep_only({self.version, self._kept})

    def keep(self, result: Result) -> None:
        """Write what is needed to go on, then drop what was needed before."""
        if self.problem is None:
            self._kept = self.version
            return
        arrays: dict[str, Any] = {
            "HT": result.HT,
            "history": np.array(result.history),
            "lives": result.lives,
            "scale": result.scale,
        }
        state = {"problem": self.problem, "version": self.version, "n_iter": result.n_iter, "error": result.error}
        folder = self.weights.path
        with writing(folder, "write the state of the fit"):
            np.savez(folder / f"state-{self.version}.npz", **{k: v for k, v in arrays.items() if v is not None})
            put_text(folder / STATE, json.dumps(state))
            for path in folder.glob("state-*.npz"):
                if path.name != f"state-{self.version}.npz":
                    path.unlink()
        self._kept = self.version

    def recall(self) -> Result | None:
        """Where an earlier fit of the same problem stood; otherwise clear the folder for this one."""
        folder = self.weights.path
        try:
            state = json.loads((folder / STATE).read_text())
            if self.problem is not None and state["problem"] == self.problem:
                with np.load(folder / f"state-{state['version']}.npz", allow_pickle=False) as arrays:
                    found = {name: arrays[name] for name in arrays.files}
                self.version = self._kept = state["version"]
                self.weights.keep_only({self.version})
                history, HT = found["history"].tolist(), np.ascontiguousarray(found["HT"])
                further = found.get("scale"), found.get("lives")
                return Result(HT, history, state["error"], "max_iter", state["n_iter"], *further)
        except (OSError, ValueError, KeyError, EOFError):
            pass  # nothing, or nothing that can be used
        with suppress(OSError):
            (folder / STATE).unlink()
        self.weights.keep_only(set())
        return None


class OnDisk(StateKeeper):
    """A place (see `topicsteer.nmf.loop.Place`): the blocks of a folder, worked on by the threads of this process."""

    def __init__(
        self, X: BlockFolder, weights: WeightFolder, rows: Callable[[int], Rows], problem: str | None = None
    ) -> None:
        super().__init__(weights, rows, problem)
        self.X = X

    def total(self, update: Callable[..., Sums], step: Step, run: Map) -> Sums:
        """As in `topicsteer.nmf.loop.Place`."""

        def one(number: int) -> Sums:
            return work(update, self.X[number], self.rows(number), self.weights, number, self.version, step)

        total: Sums = in_a_tree(run(one, range(len(self.X))), Sums.__iadd__)
        self.passed()
        return total

    def ask(self, question: Callable[[Block], T], run: Map) -> list[T]:
        """As in `topicsteer.nmf.loop.Place`."""

        def one(number: int) -> T:
            return question(open_block(self.X[number], self.weights.read(number, self.version), self.rows(number)))

        return list(run(one, range(len(self.X))))


def problem_of(*parts: Any) -> str:
    """A hash of everything that a fit depends on, to recognise the same problem again."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return digest.hexdigest()[:16]


def block_rows(
    starts: NDArray[np.int64], weight: Array, pattern: NDArray[np.int32], soft: SoftMask | BlockFolder | None
) -> Callable[[int], Rows]:
    """From the number of a block to what is known of its documents; prices come whole or in blocks of their own."""
    return partial(_block_rows, starts, weight, pattern, soft)


def _block_rows(starts: Any, weight: Any, pattern: Any, soft: Any, number: int) -> Rows:
    part = slice(int(starts[number]), int(starts[number + 1]))
    if isinstance(soft, BlockFolder):
        mask = SoftMask.of(soft[number], weight.dtype)
    elif soft is None:
        mask = SoftMask.silent(part.stop - part.start, weight.dtype)
    else:
        mask = soft.rows(part)
    return Rows(weight[part], pattern[part], mask)
