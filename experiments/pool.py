"""Runs in parallel processes, each on one core, with progress and the time left."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.runs import perform
from experiments.store import Store

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def carry_out(
    runs: list[Any], store: Store, processes: int, title: str, perform: Callable[[Any], dict[str, Any]] = perform
) -> int:
    """Do the runs that are missing and store each as it ends; says how many were done now."""
    missing = store.missing(runs)
    if not missing:
        return 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    context = multiprocessing.get_context("spawn")
    with (
        Progress(*columns, TextColumn("left"), TimeRemainingColumn(), speed_estimate_period=300) as progress,
        one_thread_each(),
        ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent) as pool,
    ):
        task = progress.add_task(title, total=len(runs), completed=len(runs) - len(missing))
        try:
            for future in as_completed([pool.submit(timed, perform, run) for run in missing]):
                run, result, seconds = future.result()
                store.add(run.key, result, seconds)
                progress.advance(task)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return len(missing)


def timed(perform: Callable[[Any], dict[str, Any]], run: Any) -> tuple[Any, dict[str, Any], float]:
    """A run, what it gave and how long it took."""
    began = time.perf_counter()
    result = perform(run)
    return run, result, time.perf_counter() - began


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes that start inside keep their arithmetic to one thread, or they would compete for cores."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def end_with_parent() -> None:
    """In a worker: end when the parent was killed, which tells nobody."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
