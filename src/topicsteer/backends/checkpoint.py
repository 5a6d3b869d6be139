"""Checkpoints of a fit with W on disk: the current version of W, and the state that a resumed fit needs."""

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

# File with the state of the last complete iteration.
STATE = "state.json"
# File with the constraints of the documents of a block, which workers on other machines read.
CONSTRAINTS = "known-{:05d}.rows"


class CheckpointedBackend(FitBackend):
    """Base class of backends with W on disk: it counts the versions of W and saves the state of the loop.

    Parameters
    ----------
    problem : Problem
    scratch : Scratch
        Folder for W. A fit in a temporary folder cannot be resumed.
    """

    def __init__(self, problem: Problem, scratch: Scratch) -> None:
        rows, d = problem.rows, problem.permitted.shape[1]
        self.constraints, self.scratch = problem.constraints, scratch
        self.folder = WeightFolder.make(scratch.path / "weights", rows.starts, d, rows.dtype)
        self.problem_hash = None if scratch.temporary else problem_hash(problem)
        self.version, self._saved = 0, 0
        self.earlier = self._resume()
        if self.earlier is None and problem.first is not None:
            for number in range(len(rows.starts) - 1):
                self.folder.write(number, 0, problem.starting_weights(number))

    def weights(self) -> StoredWeights:
        """As in `topicsteer.nmf.protocols.FitBackend`."""
        return StoredWeights(self.folder, self.version, self.scratch)

    def finish_pass(self) -> None:
        """Make the new version of W the current one, and remove versions that are no longer needed."""
        self.version += 1
        self.folder.keep_only({self.version, self._saved})

    def keep(self, result: Result) -> None:
        """Write the state that a resumed fit needs, then remove the previous state."""
        self._saved = self.version
        if self.problem_hash is None:
            return
        further = {"lives": result.revivals_left, "scale": result.scale}
        arrays: dict[str, Any] = {name: array for name, array in further.items() if array is not None}
        state = {"problem": self.problem_hash, "version": self.version, "n_iter": result.n_iter, "error": result.error}
        folder = self.folder.path
        with writing(folder, "write the state of the fit"):
            now = folder / f"state-{self.version}.npz"
            np.savez(now, HT=result.HT, objectives=np.array(result.objectives), **arrays)
            write_text(folder / STATE, json.dumps(state))
            for path in folder.glob("state-*.npz"):
                if path != now:
                    path.unlink()

    def _resume(self) -> Result | None:
        """The state of an interrupted fit of the same problem; without one, clear the folder and return None."""
        folder = self.folder.path
        for path in folder.glob(f"*{PART}"):
            path.unlink()
        try:
            state = json.loads((folder / STATE).read_text())
            if self.problem_hash is not None and state["problem"] == self.problem_hash:
                with np.load(folder / f"state-{state['version']}.npz", allow_pickle=False) as arrays:
                    found = {name: arrays[name] for name in arrays.files}
                self.version = self._saved = state["version"]
                self.folder.keep_only({self.version})
                objectives, HT = found["objectives"].tolist(), np.ascontiguousarray(found["HT"])
                further = found.get("scale"), found.get("lives")
                return Result(HT, objectives, state["error"], "max_iter", state["n_iter"], *further)
        except (OSError, ValueError, KeyError, EOFError):
            pass  # no state, or a damaged one: the fit starts from the beginning
        with suppress(OSError):
            (folder / STATE).unlink()
        self.folder.keep_only(set())
        return None


def problem_hash(problem: Problem) -> str:
    """A hash of everything that a fit depends on, to recognise the same problem."""
    rows, labels = problem.rows, problem.supervision
    digest = hashlib.sha256()
    for value in (problem.settings, problem.permitted.shape, rows.shape, labels.topics):
        digest.update(repr(value).encode())
    for array in (rows.sizes, labels.patterns, labels.pattern, problem.weight.astype(rows.dtype)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def write_constraints(weights: WeightFolder, number: int, constraints: RowConstraints) -> None:
    """Write the constraints of a block to a file in the folder of its weights."""
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
    """Read the file of :func:`write_constraints`."""
    with open(weights.path / CONSTRAINTS.format(number), "rb") as file:
        weight, pattern, *penalties = (load_array(file) for _ in range(5))
    return RowConstraints(weight, pattern, Penalties(*penalties))
