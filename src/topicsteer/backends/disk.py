"""A factorisation whose blocks are on disk: the rows of X are mapped into memory, W is read, updated and written.

Every pass over the blocks writes a new version of W and leaves the last one alone, so that a pass that was killed, or a
block that is done twice, does no harm; the loop's own state is written after each iteration, and an interrupted fit
goes on from there.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from topicsteer.backends.block_folder import BlockFolder, put_text, writing
from topicsteer.backends.weight_folder import WeightFolder
from topicsteer.nmf import kernels as _kernels
from topicsteer.nmf.blocks import Block, SoftMask, Sums, in_a_tree, mask_weights
from topicsteer.nmf.loop import Result
from topicsteer.nmf.protocols import Backend, Map
from topicsteer.nmf.rules import Step
from topicsteer.system.types import Array

T = TypeVar("T")

STATE = "state.json"


@dataclass(frozen=True)
class Known:
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
    def read(cls, path: Path) -> Known:
        """What was written."""
        with open(path, "rb") as file:
            weight, pattern, *soft = (np.load(file, allow_pickle=False) for _ in range(5))
        return cls(weight, pattern, SoftMask(*soft))


def open_block(X: Any, W: Array, rows: Known) -> Block:
    """A block of rows of X with the W that it has."""
    return Block(X.indptr, X.indices, X.data, W, rows.weight, rows.pattern, rows.soft)


def work(
    update: Callable[..., Sums], X: Any, rows: Known, weights: WeightFolder, number: int, version: int, step: Step
) -> Sums:
    """Update the W of a block from one version to the next; nothing else is touched, so it can be done again."""
    _kernels.prepare(weights.dtype)
    block = open_block(X, weights.read(number, version), rows)
    sums = update(block, step=step)
    weights.write(number, version + 1, block.W)
    return sums


class StateKeeper(Backend):
    """The passes of a fit over blocks: which version of W holds, and what the loop has to know to go on.

    Parameters
    ----------
    weights : WeightFolder
    rows : callable
        From the number of a block to what is known of its documents.
    problem : str, optional
        What tells the problem from others; without it nothing is kept, and nothing can be gone on with.
    """

    def __init__(self, weights: WeightFolder, rows: Callable[[int], Known], problem: str | None) -> None:
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
    """A backend (see `topicsteer.nmf.protocols.Backend`): blocks of a folder, worked on by threads of this process."""

    def __init__(
        self, X: BlockFolder, weights: WeightFolder, rows: Callable[[int], Known], problem: str | None = None
    ) -> None:
        super().__init__(weights, rows, problem)
        self.X = X

    def total(self, update: Callable[..., Sums], step: Step, run: Map) -> Sums:
        """As in `topicsteer.nmf.protocols.Backend`."""

        def one(number: int) -> Sums:
            return work(update, self.X[number], self.rows(number), self.weights, number, self.version, step)

        total: Sums = in_a_tree(run(one, range(len(self.X))), Sums.__iadd__)
        self.passed()
        return total

    def ask(self, question: Callable[[Block], T], run: Map) -> list[T]:
        """As in `topicsteer.nmf.protocols.Backend`."""

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
) -> Callable[[int], Known]:
    """From the number of a block to what is known of its documents; prices come whole or in blocks of their own."""
    return partial(_block_rows, starts, weight, pattern, soft)


def _block_rows(starts: Any, weight: Any, pattern: Any, soft: Any, number: int) -> Known:
    part = slice(int(starts[number]), int(starts[number + 1]))
    if isinstance(soft, BlockFolder):
        mask = SoftMask.of(soft[number], weight.dtype)
    elif soft is None:
        mask = SoftMask.silent(part.stop - part.start, weight.dtype)
    else:
        mask = soft.rows(part)
    return Known(weight[part], pattern[part], mask)
