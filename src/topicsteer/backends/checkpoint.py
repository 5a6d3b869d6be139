"""A fit whose W is on disk: which version of W holds, and what is needed to go on after an interruption."""

import hashlib
import json
from contextlib import suppress
from typing import Any

import numpy as np

from topicsteer.backends.weight_folder import StoredWeights, WeightFolder, writing
from topicsteer.nmf.blocks import Penalties, RowConstraints
from topicsteer.nmf.protocols import FitBackend, Problem, Result
from topicsteer.system.arrays import load_array
from topicsteer.system.files import PART, Scratch, write_text

STATE = "state.json"
CONSTRAINTS = "known-{:05d}.rows"  # what is known of the documents of a block, for workers on other machines


class StateKeeper(FitBackend):
    """The passes of a fit over blocks: which version of W holds, and what the loop has to know to go on.

    Parameters
    ----------
    problem : Problem
    scratch : Scratch
        Where W goes. What is in a temporary folder is not kept, and cannot be gone on with.
    """

    def __init__(self, problem: Problem, scratch: Scratch) -> None:
        rows, d = problem.rows, problem.permitted.shape[1]
        self.constraints, self.scratch = problem.constraints, scratch
        self.folder = WeightFolder.make(scratch.path / "weights", rows.starts, d, rows.dtype)
        self.name = None if scratch.temporary else problem_of(problem)
        self.version, self._kept = 0, 0
        self.earlier = self._recall()
        if self.earlier is None and problem.first is not None:
            for number in range(len(rows.starts) - 1):
                self.folder.write(number, 0, problem.begin(number))

    def weights(self) -> StoredWeights:
        """As in `topicsteer.nmf.protocols.FitBackend`."""
        return StoredWeights(self.folder, self.version, self.scratch)

    def passed(self) -> None:
        """A pass is over: the new version of W holds."""
        self.version += 1
        self.folder.keep_only({self.version, self._kept})

    def keep(self, result: Result) -> None:
        """Write what is needed to go on, then drop what was needed before."""
        self._kept = self.version
        if self.name is None:
            return
        further = {"lives": result.lives, "scale": result.scale}
        arrays: dict[str, Any] = {name: array for name, array in further.items() if array is not None}
        state = {"problem": self.name, "version": self.version, "n_iter": result.n_iter, "error": result.error}
        folder = self.folder.path
        with writing(folder, "write the state of the fit"):
            now = folder / f"state-{self.version}.npz"
            np.savez(now, HT=result.HT, objectives=np.array(result.objectives), **arrays)
            write_text(folder / STATE, json.dumps(state))
            for path in folder.glob("state-*.npz"):
                if path != now:
                    path.unlink()

    def _recall(self) -> Result | None:
        """Where an earlier fit of the same problem stood; otherwise clear the folder for this one."""
        folder = self.folder.path
        for path in folder.glob(f"*{PART}"):
            path.unlink()
        try:
            state = json.loads((folder / STATE).read_text())
            if self.name is not None and state["problem"] == self.name:
                with np.load(folder / f"state-{state['version']}.npz", allow_pickle=False) as arrays:
                    found = {name: arrays[name] for name in arrays.files}
                self.version = self._kept = state["version"]
                self.folder.keep_only({self.version})
                objectives, HT = found["objectives"].tolist(), np.ascontiguousarray(found["HT"])
                further = found.get("scale"), found.get("lives")
                return Result(HT, objectives, state["error"], "max_iter", state["n_iter"], *further)
        except (OSError, ValueError, KeyError, EOFError):
            pass  # nothing, or nothing that can be used
        with suppress(OSError):
            (folder / STATE).unlink()
        self.folder.keep_only(set())
        return None


def problem_of(problem: Problem) -> str:
    """A hash of what a fit depends on, to recognise the same problem again."""
    rows, labels = problem.rows, problem.supervision
    digest = hashlib.sha256()
    for part in (problem.settings, problem.permitted.shape, rows.shape, labels.topics):
        digest.update(repr(part).encode())
    for array in (rows.sizes, labels.patterns, labels.pattern, problem.weight.astype(rows.dtype)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def write_constraints(weights: WeightFolder, number: int, constraints: RowConstraints) -> None:
    """Keep what is known of the documents of a block in a file beside their weights."""
    path = weights.path / CONSTRAINTS.format(number)
    low, high = constraints.penalties.indptr[0], constraints.penalties.indptr[-1]
    penalties = (
        constraints.penalties.indptr - low,
        constraints.penalties.topics[low:high],
        constraints.penalties.values[low:high],
    )
    with writing(path.parent, f"write {path.name}"), open(path, "wb") as file:
        for array in (constraints.weight, constraints.pattern, *penalties):
            np.save(file, array)


def read_constraints(weights: WeightFolder, number: int) -> RowConstraints:
    """What `write_known` wrote."""
    with open(weights.path / CONSTRAINTS.format(number), "rb") as file:
        weight, pattern, *penalties = (load_array(file) for _ in range(5))
    return RowConstraints(weight, pattern, Penalties(*penalties))
