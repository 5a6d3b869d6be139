"""Long work: thread pools for blocks of documents, an orderly end on Ctrl-C, and the seconds of each stage."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import FrameType
from typing import Protocol, TypeVar

from threadpoolctl import ThreadpoolController

from topicsteer.system.types import Progress

A = TypeVar("A")
B = TypeVar("B")


class OrderedMap(Protocol):
    """The type of `map`, with or without threads."""

    def __call__(self, function: Callable[[A], B], items: Iterable[A], /) -> Iterator[B]:
        """Yield the results of the function, in the order of the items."""
        ...


def default_threads() -> int:
    """Number of cores this process may use, or OMP_NUM_THREADS if that is less (joblib sets it for its workers)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: for vectors of a few thousand numbers, more threads spend their time waiting."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@contextmanager
def workers(threads: int | None) -> Iterator[OrderedMap]:
    """Give an ordered parallel map over blocks; BLAS uses one thread meanwhile, so that the two do not compete."""
    with one_blas_thread(), _pool(threads or default_threads()) as pool:
        yield pool.map


@contextmanager
def _pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Give a thread pool, also for one thread: the main thread gets Ctrl-C, and a kernel there would lose it.

    After an error or Ctrl-C, work that has not begun is dropped.
    """
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield pool
        except BaseException as error:
            pool.shutdown(cancel_futures=True)
            if isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt):
                raise error.__cause__ from None  # a kernel that the main thread called itself
            raise


@contextmanager
def ordered_map(threads: int | None) -> Iterator[OrderedMap]:
    """Give a `map` that works a few items ahead on threads and keeps their order; None uses all cores."""
    threads = threads or default_threads()
    with _pool(threads) as pool:

        def ordered(function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
            ahead: deque[Future[B]] = deque()
            for item in items:
                ahead.append(pool.submit(function, item))
                if len(ahead) > 2 * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

        yield ordered


# Answer to the first Ctrl-C.
ANSWER = b"\nStopping after this step; press Ctrl-C again to stop at once.\n"
# The interruptions that loops have noted and not yet acted upon.
_NOTED: list[list[int]] = []


def interrupted() -> bool:
    """Return whether a Ctrl-C waits for the end of a step: a step that cannot end should stop."""
    return any(_NOTED)


@contextmanager
def interruptions() -> Iterator[list[int]]:
    """Delay Ctrl-C: it is added to the list, so that a loop can end in order, and answered. A second one interrupts."""
    noted: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    previous = signal.getsignal(signal.SIGINT)
    # Only the main thread gets signals. Without a Python handler, Ctrl-C is ignored or handled elsewhere.
    if not main or not callable(previous):
        yield noted
        return

    def note(signum: int, frame: FrameType | None) -> None:
        noted.append(signum)
        signal.signal(signal.SIGINT, previous)
        with suppress(OSError):  # nobody may be listening
            os.write(2, ANSWER)  # directly, because a signal may come in the middle of a buffered write

    signal.signal(signal.SIGINT, note)
    _NOTED.append(noted)
    try:
        yield noted
    finally:
        _NOTED.pop()
        signal.signal(signal.SIGINT, previous)


class Stages:
    """A progress callback that passes calls on and adds up the seconds of each stage.

    A stage lasts until the next one begins. The steps of the guide are stages of their own.

    Parameters
    ----------
    progress : callable, optional
        The callback of the user.
    first : str
        Name of the stage that begins now.

    Examples
    --------
    >>> stages = Stages(None, "terms")
    >>> stages("guide", 0, None, "weights, fold 1 of 3")
    >>> stages("fit", 3, 100, "objective 2.5")
    >>> list(stages.end())
    ['terms', 'weights', 'fit']
    """

    def __init__(self, progress: Progress | None, first: str) -> None:
        self._progress, self._now, self._since = progress, first, time.perf_counter()
        self._seconds: dict[str, float] = {}

    def __call__(self, stage: str, done: int, total: int | None, detail: str) -> None:
        """As a progress callback."""
        step = detail.partition(",")[0]
        name = step if stage == "guide" and step else stage
        if name != self._now:
            self._change(name)
        if self._progress is not None:
            self._progress(stage, done, total, detail)

    def end(self) -> dict[str, float]:
        """Seconds of each stage in order of their beginning; the last one ends now."""
        self._change("")
        return {name: round(seconds, 3) for name, seconds in self._seconds.items()}

    def _change(self, name: str) -> None:
        now = time.perf_counter()
        self._seconds[self._now] = self._seconds.get(self._now, 0.0) + now - self._since
        self._now, self._since = name, now
