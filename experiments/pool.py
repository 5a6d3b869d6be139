"""Runs in parallel processes, each on one core, with progress and the time left."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.runs import Run, perform
from experiments.store import Store


def carry_out(runs: list[Run], store: Store, processes: int, title: str) -> int:
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
            for future in as_completed([pool.submit(timed, run) for run in missing]):
                run, result, seconds = future.result()
                store.add(run.key, result, seconds)
                progress.advance(task)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return len(missing)


def timed(run: Run) -> tuple[Run, dict[str, Any], float]:
    """A run, what it gave and how long it took."""
    began = time.perf_counter()
    result = perform(run)
    return run, result, time.perf_counter() - began


class one_thread_each:
    """Processes that start inside it keep their arithmetic to one thread, or they would compete for cores."""

    NAMES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

    def __enter__(self) -> None:
        self._before = {name: os.environ.get(name) for name in self.NAMES}
        os.environ.update(dict.fromkeys(self.NAMES, "1"))

    def __exit__(self, *error: object) -> None:
        for name, value in self._before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def end_with_parent() -> None:
    """In a worker: end when the parent was killed, which tells nobody."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
