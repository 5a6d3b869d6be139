"""A factorisation on a Dask cluster: the rows of X stay with the workers, each block updates its own W.

Only H goes out and only sums come back, added up among the workers in a tree. A task reads one version of its block's W
from a folder that all machines share and writes the next, so it depends on no other task of the past: what a lost
worker had is done again elsewhere by Dask itself, with the same result.
"""

from __future__ import annotations

import itertools
import operator
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.backends.block_folder import BlockError, BlockFolder, StoredRows
from topicsteer.backends.checkpoint import StateKeeper, read_constraints, write_constraints
from topicsteer.backends.disk import work
from topicsteer.backends.weight_folder import WeightFolder
from topicsteer.nmf.blocks import Block, Sums, canonical, in_a_tree, mix_rows, slices
from topicsteer.nmf.protocols import Problem
from topicsteer.nmf.rules import Step
from topicsteer.system.files import Scratch
from topicsteer.system.threads import OrderedMap

T = TypeVar("T")
G = TypeVar("G")


def is_distributed(X: object) -> bool:
    """Whether X is on a cluster: a Dask array, a list of delayed blocks or of futures, or blocks of ours."""
    if isinstance(X, ClusterBlocks):
        return True
    parts = X if isinstance(X, list | tuple) and X else [X]
    return all(type(part).__module__.split(".")[0] in ("dask", "distributed") for part in parts)


class ClusterBlocks(StoredRows):
    """Rows of a sparse matrix that the workers of a Dask cluster hold.

    Blocks of a folder can be read by any worker, so a task takes ``run`` neighbours at once, a power of two: their sums
    are a branch of the same tree, and fewer sums travel. Other blocks are worked on one by one, where they are.

    Parameters
    ----------
    X : BlockFolder, dask array, or list of delayed or futures of sparse blocks
    client : distributed.Client, optional
        Default: the one that is there.
    """

    def __init__(self, X: Any, client: Any = None) -> None:
        self.client = _client() if client is None else client
        self.run = 1
        self.blocks: list[Held]
        if isinstance(X, BlockFolder):
            self.blocks = [_Named(str(X.path), number) for number in range(len(X))]
            threads = sum(self.client.nthreads().values())
            while len(X) > 4 * threads * self.run:
                self.run *= 2
        else:
            if hasattr(X, "to_delayed"):
                X = X.rechunk({1: -1}).to_delayed().ravel().tolist()
            futures = self.client.compute([part for part in X if hasattr(part, "__dask_graph__")]) or list(X)
            self.blocks = [
                self.submit(f"block-{number}", _checked, part, number) for number, part in enumerate(futures)
            ]
        described = self.client.gather([self.submit("describe", _described, block) for block in self.blocks])
        terms, dtypes, sizes = zip(*described, strict=True)
        if len(set(terms)) != 1:
            raise BlockError(f"the blocks have different numbers of columns: {sorted(set(terms))}.")
        self.sizes: NDArray[np.int32] = np.concatenate(sizes)
        self.starts = np.cumsum([0, *map(len, sizes)])
        self.dtype = np.result_type(*dtypes)
        self.shape = int(self.starts[-1]), terms[0]

    def __len__(self) -> int:
        return len(self.blocks)

    def _parts(self, wanted: list[tuple[int, NDArray[np.int64]]]) -> list[sp.csr_array]:
        return self._gather("take", operator.getitem, ((self.blocks[number], rows) for number, rows in wanted))

    def combine(self, weights: sp.sparray) -> NDArray[np.float64]:
        """Weighted sums of rows, ``weights`` (k, n_rows) times the matrix, added up by the workers."""
        weights = sp.csc_array(weights, dtype=np.float64)
        parts = [
            self.submit("mix", _call, _mix, block, weights[:, a:b])
            for block, (a, b) in zip(self.blocks, itertools.pairwise(self.starts), strict=True)
            if weights.indptr[b] > weights.indptr[a]
        ]
        if not parts:
            return np.zeros((weights.shape[0], self.shape[1]))
        return np.asarray(self.total(parts))

    def each(self, function: Callable[[sp.csr_array, G], T], given: Sequence[G]) -> list[T]:
        """What a function makes of each block and of what is given for it, in their order; workers do it."""
        return self._gather("each", self.broadcast(function), zip(self.blocks, given, strict=True))

    def backend(self, problem: Problem, scratch: Scratch | None) -> OnCluster:
        """The workers work on their blocks; W goes to the folder, which all of them must see."""
        return OnCluster(self, problem, scratch or Scratch())

    def shares(self) -> tuple[list[slice], list[dict[str, Any]]]:
        """Runs of blocks, and who had best do each.

        Neighbours go to one worker, so that most sums are added where they are; who is idle may take from others. A
        block that a worker holds is worked on there, as Dask does without being told.
        """
        runs = slices(len(self), self.run)
        if not isinstance(self.blocks[0], _Named):
            return runs, [{}] * len(runs)
        workers = [address for address, threads in sorted(self.client.nthreads().items()) for _ in range(threads)]
        best = [workers[i * len(workers) // len(runs) : i * len(workers) // len(runs) + 1] for i in range(len(runs))]
        return runs, [{"workers": one, "allow_other_workers": True} if one else {} for one in best]

    def broadcast(self, what: object) -> Any:
        """Give something to all workers: a task, and not scattered data, since a task can be done again."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # H is as large as it is
            return self.submit("H", _itself, what)

    def total(self, parts: list[Any]) -> Any:
        """The sum of futures, added up where they are; the last two come here, which is one way less."""

        def future(node: Any) -> Any:
            return self.submit("add", operator.add, *map(future, node)) if isinstance(node, tuple) else node

        root = in_a_tree(parts, lambda left, right: (left, right))
        if not isinstance(root, tuple):
            return root.result()
        left, right = self.client.gather([future(node) for node in root])
        return left + right

    def _gather(self, name: str, function: object, pairs: Iterable[tuple[Held, object]]) -> list[Any]:
        """What a function makes of blocks and of what is given for each."""
        return list(self.client.gather([self.submit(name, _call, function, *pair) for pair in pairs]))

    def submit(self, name: str, function: Callable[..., object], *arguments: object, **near: object) -> Any:
        """A task, under a name that the dashboard groups by its beginning."""
        return self.client.submit(function, *arguments, key=f"topics-{name}-{uuid.uuid4().hex}", **near)


class OnCluster(StateKeeper):
    """A backend (see `topicsteer.nmf.protocols.Backend`): blocks that the workers of a cluster hold and work on."""

    def __init__(self, X: ClusterBlocks, problem: Problem, scratch: Scratch) -> None:
        super().__init__(problem, scratch)
        self.X = X
        shared_folder(X.client, self.folder.path)
        for number in range(len(X)):
            write_constraints(self.folder, number, self.constraints(number))

    def total(self, update: Callable[..., Sums], step: Step, run: OrderedMap) -> Sums:
        """As in `topicsteer.nmf.protocols.Backend`; the sums are added up by the workers."""
        common = update, self.X.broadcast(step), self.folder, self.version
        parts = [
            self.X.submit(f"update-{part.start}", _work, part.start, self.X.blocks[part], *common, **near)
            for part, near in zip(*self.X.shares(), strict=True)
        ]
        total: Sums = self.X.total(parts)
        self.passed()
        return total

    def ask(self, question: Callable[[Block], T], run: OrderedMap) -> list[T]:
        """As in `topicsteer.nmf.protocols.Backend`."""
        known = self.X.broadcast(question)
        answers = [
            self.X.submit("ask", _answer, known, block, self.folder, number, self.version)
            for number, block in enumerate(self.X.blocks)
        ]
        return list(self.X.client.gather(answers))


def shared_folder(client: Any, path: Path) -> None:
    """Refuse a folder that not all workers can see; wait for the first worker, and say so."""
    if not client.scheduler_info()["workers"]:
        warnings.warn(
            f"The cluster has no workers yet, so the work waits. Start one: dask worker {client.scheduler.address}",
            stacklevel=2,
        )
        client.wait_for_workers(1)
    mark = path / f"seen-{uuid.uuid4().hex}"
    mark.touch()
    try:
        blind = [worker for worker, seen in client.run(_sees, str(mark)).items() if not seen]
    finally:
        mark.unlink()
    if blind:
        raise BlockError(
            f"{len(blind)} workers, such as {blind[0]}, cannot see {path}: give folder= a place that all of them share."
        )


def client_of(source: object) -> Any:
    """The cluster that a Dask collection is to be worked on; None for anything else."""
    return _client() if hasattr(source, "dask") else None


def _client() -> Any:
    try:
        from distributed import get_client
    except ImportError as error:
        raise ImportError("this needs Dask: install it with `pip install topicsteer[dask]`") from error
    try:
        return get_client()
    except ValueError as error:
        raise ValueError(
            "X is on Dask, but there is no cluster to work on: start one with "
            "`from dask.distributed import Client; client = Client()`."
        ) from error


class _Held(sp.csr_array):
    """Rows in the memory of a worker; Dask sees how many bytes they are, and keeps the tasks where they are."""

    def __sizeof__(self) -> int:
        return int(self.data.nbytes + self.indices.nbytes + self.indptr.nbytes)


@dataclass(frozen=True)
class _Named:
    """A block of a folder: a task of it waits for nothing but H, so Dask gives it to whoever is free."""

    path: str
    number: int


Held: TypeAlias = sp.csr_array | _Named  # a block with a worker, or in a folder


def _opened(X: Held) -> sp.csr_array:
    """The rows, wherever they are."""
    return BlockFolder(X.path)[X.number] if isinstance(X, _Named) else X


def _checked(X: sp.sparray, number: int) -> sp.csr_array:
    """A block as CSR with entries that can be."""
    X = canonical(sp.csr_array(X, dtype=np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64))
    if X.nnz and not (X.data.min() >= 0 and X.data.max() < np.inf):
        raise BlockError(f"block {number} has entries that are negative, NaN or infinite: repair them.")
    X = _Held(X)
    X.indices, X.indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
    return X


def _described(X: Held) -> tuple[int, np.dtype[np.floating], NDArray[np.int32]]:
    if isinstance(X, _Named):
        BlockFolder(X.path).check(X.number)
    X = _opened(X)
    return X.shape[1], X.dtype, np.diff(X.indptr).astype(np.int32)


def _mix(X: sp.csr_array, weights: sp.csc_array) -> NDArray[np.float64]:
    return mix_rows(weights, [(0, X)], X.shape[1])


def _itself(what: T) -> T:
    return what


def _call(function: Callable[[sp.csr_array, G], T], X: Held, given: G) -> T:
    return function(_opened(X), given)


def _sees(path: str) -> bool:
    return Path(path).exists()


def _work(
    first: int, blocks: list[Held], update: Callable[..., Sums], step: Step, weights: WeightFolder, version: int
) -> Sums:
    """Update neighbouring blocks, and add up their sums as the others are added up."""
    update = partial(update, step=_near(step))

    def one(number: int, X: Held) -> Sums:
        return work(update, _opened(X), read_constraints(weights, number), weights, number, version)

    return in_a_tree((one(number, X) for number, X in enumerate(blocks, first)), Sums.__iadd__)


_last: list[tuple[Step, Step]] = []


def _near(step: Step) -> Step:
    """H out of the bytes that came, in memory of its own, where tasks took 6 % less: once for all tasks of a step."""
    for came, near in _last:
        if came is step:
            return near
    near = replace(step, HT=step.HT.copy())
    _last[:] = [(step, near)]
    return near


def _answer(question: Callable[[Block], T], X: Held, weights: WeightFolder, number: int, version: int) -> T:
    return question(Block.of(_opened(X), weights.read(number, version), read_constraints(weights, number)))
