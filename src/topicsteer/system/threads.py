"""Threads for blocks of documents, and an orderly end on Ctrl-C."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType
from typing import Protocol, TypeVar

from threadpoolctl import ThreadpoolController

A = TypeVar("A")
B = TypeVar("B")


class OrderedMap(Protocol):
    """`map`, on threads or not."""

    def __call__(self, function: Callable[[A], B], items: Iterable[A], /) -> Iterator[B]:
        """Results of the function, in the order of the items."""
        ...


def default_threads() -> int:
    """Cores this process may use, or fewer where OMP_NUM_THREADS says so (as joblib's workers do)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def workers(threads: int | None) -> Iterator[OrderedMap]:
    """An ordered parallel map over blocks; BLAS keeps to one thread meanwhile, or the two would compete."""
    with _blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(threads or default_threads()) as pool:
        yield pool.map


@contextmanager
def ordered_map(threads: int | None) -> Iterator[OrderedMap]:
    """Give a `map` that works a few items ahead on threads and keeps their order; None takes all cores."""
    threads = threads or default_threads()
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads) as pool:

        def ordered(function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
            ahead: deque[Future[B]] = deque()
            for item in items:
                ahead.append(pool.submit(function, item))
                if len(ahead) > 2 * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

        yield ordered


@contextmanager
def interruptions() -> Iterator[list[int]]:
    """Hold back Ctrl-C: it is noted in the list, and the loop ends in order. A second one interrupts at once."""
    noted: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    previous = signal.getsignal(signal.SIGINT)
    if not main or not callable(previous):  # of no use here, ignored on purpose, or not Python's to handle
        yield noted
        return

    def note(signum: int, frame: FrameType | None) -> None:
        noted.append(signum)
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, previous)
