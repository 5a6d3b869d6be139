"""Factorisation on a Dask cluster: the workers read the blocks of a shared folder, and tasks update their W.

Only H is sent to the workers, and only sums return; the workers add them up in a tree. A task reads one version of its
block's W from a folder that all machines share, and writes the next. It depends on no earlier task, so Dask can repeat
the tasks of a lost worker elsewhere, with the same result.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import operator
import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.backends.block_folder import BlockError, BlockFolder, StoredBackend, StoredRows, update_stored_block
from topicsteer.backends.weight_folder import WeightFolder, writing
from topicsteer.nmf.blocks import Block, Penalties, RowConstraints, Sums, check_scale, mix_rows, slices, tree_sum
from topicsteer.nmf.protocols import Problem
from topicsteer.nmf.solvers import Step
from topicsteer.system.arrays import load_array
from topicsteer.system.failures import warn_user
from topicsteer.system.files import Scratch
from topicsteer.system.threads import OrderedMap, interrupted

T = TypeVar("T")
G = TypeVar("G")
# Seconds without any worker before a message, and before the fit gives up.
PATIENCE, LIMIT = 5.0, 600.0
# Seconds between two looks at a cluster that has not answered.
POLL = 1.0
# File with the constraints of the documents of a block, which workers on other machines read.
CONSTRAINTS = "known-{:05d}.rows"


class NoWorkers(ConnectionError):
    """A cluster that has had no workers for too long, or whose scheduler is gone."""


@contextmanager
def connected() -> Iterator[None]:
    """Raise NoWorkers if the scheduler does not answer. Dask raises many kinds of errors then."""
    try:
        yield
    except (OSError, KeyError, RuntimeError, asyncio.CancelledError, concurrent.futures.CancelledError) as error:
        raise NoWorkers("the connection to the scheduler is lost: start the fit again.") from error


def gather(client: Any, futures: Sequence[Any], *, patience: float = PATIENCE, limit: float = LIMIT) -> list[Any]:
    """Return the results of futures, in order. Without any worker: warn, wait for new ones, and give up in the end.

    Dask would wait for ever, and a Ctrl-C that waits for the end of an iteration would wait as long.
    """
    handle = asyncio.run_coroutine_threadsafe(client.gather(futures, asynchronous=True), client.loop.asyncio_loop)
    alone: float | None = None
    warned = False
    while True:
        try:
            return list(handle.result(timeout=POLL))
        except concurrent.futures.TimeoutError:
            pass
        except (concurrent.futures.CancelledError, asyncio.CancelledError):
            with connected():
                raise
        now = time.monotonic()
        alone = None if _has_workers(client) else alone or now
        if alone is None or now - alone < patience:
            continue
        if interrupted() or now - alone > limit:
            handle.cancel()
            if interrupted():
                raise KeyboardInterrupt
            raise NoWorkers(f"the cluster has had no workers for {limit:g} s: start workers, then start the fit again.")
        if not warned:
            warned = True
            warn_user(_no_workers(client, f"gives up after {limit:g} s"))


def _has_workers(client: Any) -> bool:
    try:
        return client.status == "running" and bool(client.nthreads())
    except OSError:
        return False


def _no_workers(client: Any, otherwise: str) -> str:
    start = f"dask worker {client.scheduler.address}"
    return f"The cluster has no workers, so the fit waits, and {otherwise}. It continues with a new worker: {start}"


class ClusterBlocks(StoredRows):
    """Rows of a folder of blocks that the workers of a Dask cluster read (see `topicsteer.nmf.protocols.Rows`).

    Any worker can read any block, so a task updates ``blocks_per_task`` neighbouring blocks, a power of two. Their sums
    are a branch of the same tree, and fewer sums travel.

    Parameters
    ----------
    X : BlockFolder
    client : distributed.Client
    """

    def __init__(self, X: BlockFolder, client: Any) -> None:
        self.client, self.shape, self.dtype, self.starts = client, X.shape, X.dtype, X.starts
        self.blocks = [DaskBlock(str(X.path), number) for number in range(len(X))]
        self.blocks_per_task = 1
        with connected():
            threads = sum(self.client.nthreads().values())
        while len(X) > 4 * threads * self.blocks_per_task:
            self.blocks_per_task *= 2
        described = gather(self.client, [self.submit("describe", _describe, block) for block in self.blocks])
        sizes, largest = zip(*described, strict=True)
        check_scale(max(largest))
        self.sizes: NDArray[np.int32] = np.concatenate(sizes)

    def __len__(self) -> int:
        return len(self.blocks)

    def _take(self, wanted: list[tuple[int, NDArray[np.int64]]]) -> list[sp.csr_array]:
        return self._gather("take", operator.getitem, ((self.blocks[number], rows) for number, rows in wanted))

    def combine(self, weights: sp.sparray) -> NDArray[np.float64]:
        """Return weighted sums of rows: ``weights`` (k, n_rows) times the matrix; the workers add them up."""
        weights = sp.csc_array(weights, dtype=np.float64)
        products = [
            self.submit("mix", _apply, _mix, block, weights[:, a:b])
            for block, (a, b) in zip(self.blocks, itertools.pairwise(self.starts), strict=True)
            if weights.indptr[b] > weights.indptr[a]
        ]
        if not products:
            return np.zeros((weights.shape[0], self.shape[1]))
        return np.asarray(self.total(products))

    def each(self, function: Callable[[sp.csr_array, G], T], given: Sequence[G]) -> list[T]:
        """As in `topicsteer.nmf.protocols.Rows`; the workers call the function."""
        return self._gather("each", self.broadcast(function), zip(self.blocks, given, strict=True))

    def backend(self, problem: Problem, scratch: Scratch | None) -> DaskBackend:
        """Return a backend that updates the blocks on the workers; all of them must have access to ``scratch``."""
        return DaskBackend(self, problem, scratch or Scratch())

    @connected()
    def tasks(self) -> tuple[list[slice], list[dict[str, Any]]]:
        """Return the blocks of each task, and the arguments of ``submit`` that place the task.

        Neighbouring blocks prefer the same worker, so that most sums need not travel; idle workers may take tasks from
        others.
        """
        runs = slices(len(self), self.blocks_per_task)
        workers = [address for address, threads in sorted(self.client.nthreads().items()) for _ in range(threads)]
        best = [workers[i * len(workers) // len(runs) : i * len(workers) // len(runs) + 1] for i in range(len(runs))]
        return runs, [{"workers": one, "allow_other_workers": True} if one else {} for one in best]

    def broadcast(self, value: object) -> Any:
        """Send a value to all workers as a task: unlike scattered data, a task can be repeated after a failure."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # expected: H is large
            return self.submit("H", _identity, value)

    def total(self, futures: list[Any]) -> Any:
        """The sum of futures. Workers add them in a tree; the last addition happens here, which saves a transfer."""

        def future(node: Any) -> Any:
            return self.submit("add", operator.add, *map(future, node)) if isinstance(node, tuple) else node

        root = tree_sum(futures, lambda left, right: (left, right))
        if not isinstance(root, tuple):
            return gather(self.client, [root])[0]
        left, right = gather(self.client, [future(node) for node in root])
        return left + right

    def _gather(self, name: str, function: object, pairs: Iterable[tuple[DaskBlock, object]]) -> list[Any]:
        """Call a function with pairs of a block and its argument; return the results in order."""
        return gather(self.client, [self.submit(name, _apply, function, *pair) for pair in pairs])

    @connected()
    def submit(self, name: str, function: Callable[..., object], *arguments: object, **placement: object) -> Any:
        """Submit a task; Dask's dashboard groups tasks by the beginning of their names."""
        return self.client.submit(function, *arguments, key=f"topics-{name}-{uuid.uuid4().hex}", **placement)


class DaskBackend(StoredBackend):
    """A backend (see `topicsteer.nmf.protocols.Backend`) for blocks that the workers of a cluster update."""

    def __init__(self, X: ClusterBlocks, problem: Problem, scratch: Scratch) -> None:
        super().__init__(problem, scratch)
        self.X = X
        shared_folder(X.client, self.folder.path)
        for number in range(len(X)):
            write_constraints(self.folder, number, self.constraints(number))

    def total(self, update: Callable[..., Sums], step: Step, run: OrderedMap) -> Sums:
        """As in `topicsteer.nmf.protocols.Backend`; the workers add up the sums."""
        common = update, self.X.broadcast(step), self.folder, self.version
        futures = [
            self.X.submit(f"update-{some.start}", _update_blocks, some.start, self.X.blocks[some], *common, **placement)
            for some, placement in zip(*self.X.tasks(), strict=True)
        ]
        total: Sums = self.X.total(futures)
        self.finish_pass()
        return total

    def map(self, function: Callable[[Block], T], run: OrderedMap) -> list[T]:
        """As in `topicsteer.nmf.protocols.Backend`."""
        shared = self.X.broadcast(function)
        results = [
            self.X.submit("map", _apply_to_block, shared, block, self.folder, number, self.version)
            for number, block in enumerate(self.X.blocks)
        ]
        return gather(self.X.client, results)


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


def shared_folder(client: Any, path: Path) -> None:
    """Raise an error if a worker has no access to a folder. If there is no worker yet, warn and wait for one."""
    with connected():
        known = client.scheduler_info()["workers"]
    if not known:
        warn_user(_no_workers(client, f"gives up after {LIMIT:g} s"))
        try:
            client.wait_for_workers(1, timeout=LIMIT)
        except TimeoutError as error:
            raise NoWorkers(f"the cluster has had no workers for {LIMIT:g} s: start some, and try again.") from error
    mark = path / f"seen-{uuid.uuid4().hex}"
    mark.touch()
    try:
        with connected():
            blind = [worker for worker, seen in client.run(os.path.exists, str(mark)).items() if not seen]
    finally:
        mark.unlink()
    if blind:
        raise BlockError(
            f"{len(blind)} workers, such as {blind[0]}, cannot access {path}: "
            "set folder= to a folder that all workers share."
        )


@dataclass(frozen=True)
class DaskBlock:
    """A block of a folder; its tasks need only H, so Dask runs them on any idle worker."""

    path: str
    number: int

    def rows(self) -> sp.csr_array:
        """Return the rows of the block."""
        return BlockFolder(self.path)[self.number]


def _describe(X: DaskBlock) -> tuple[NDArray[np.int32], float]:
    """Check a block, and return the number of entries of each row and the largest entry."""
    largest = BlockFolder(X.path).check_block(X.number)
    return np.diff(X.rows().indptr).astype(np.int32), largest


def _mix(X: sp.csr_array, weights: sp.csc_array) -> NDArray[np.float64]:
    return mix_rows(weights, [(0, X)], X.shape[1])


def _identity(value: T) -> T:
    return value


def _apply(function: Callable[[sp.csr_array, G], T], X: DaskBlock, given: G) -> T:
    return function(X.rows(), given)


def _update_blocks(
    first: int, blocks: list[DaskBlock], update: Callable[..., Sums], step: Step, weights: WeightFolder, version: int
) -> Sums:
    """Update neighbouring blocks, and add up their sums in the same tree as on other backends."""
    update = partial(update, step=_with_local_H(step))

    def one(number: int, X: DaskBlock) -> Sums:
        return update_stored_block(update, X.rows(), read_constraints(weights, number), weights, number, version)

    return tree_sum((one(number, X) for number, X in enumerate(blocks, first)), Sums.__iadd__)


# The last step that this worker received, with its copy in local memory.
_local_steps: list[tuple[Step, Step]] = []


def _with_local_H(step: Step) -> Step:
    """A step whose H is copied out of the received bytes, once for all tasks of a step. Tasks take 6 % less time."""
    for received, local in _local_steps:
        if received is step:
            return local
    local = replace(step, HT=step.HT.copy())
    _local_steps[:] = [(step, local)]
    return local


def _apply_to_block(
    function: Callable[[Block], T], X: DaskBlock, weights: WeightFolder, number: int, version: int
) -> T:
    return function(Block.of(X.rows(), weights.read(number, version), read_constraints(weights, number)))
