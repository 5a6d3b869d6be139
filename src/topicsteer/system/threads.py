"""Thread pools for blocks of documents, and an orderly end on Ctrl-C."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import FrameType
from typing import Protocol, TypeVar

from threadpoolctl import ThreadpoolController

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
