"""Runs in parallel processes on one core each, with progress and the time left."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.shared.store import Store
from experiments.shared.terminal import console, note

# Environment variables that limit the threads of numerical libraries.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Exit code after Ctrl-C.
INTERRUPTED = 130
# Seconds between two progress lines if there is no terminal.
PAUSE = 30


def carry_out(
    runs: list[Any], perform: Callable[[Any], dict[str, Any]], store: Store, processes: int, title: str
) -> int:
    """Do the missing runs and store each as it ends; returns how many were done now."""
    missing = store.missing(runs)
    if not missing:
        return 0
    context = multiprocessing.get_context("spawn")
    with (
        progress(title, len(runs) - len(missing), len(runs)) as advance,
        ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent) as pool,
    ):
        try:
            with quiet_workers():
                futures = [pool.submit(timed, perform, run) for run in missing]
            for future in as_completed(futures):
                run, result, seconds = future.result()
                store.add(run.key, result, seconds)
                advance()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():  # their current runs may take long
                worker.terminate()
            raise
    return len(missing)


def stopped(runs: list[Any], store: Store) -> int:
    """Report after Ctrl-C how many runs are kept; returns the exit code."""
    note(f"stopping; {len(runs) - len(store.missing(runs)):,} of {len(runs):,} runs are kept; run it again to continue")
    return INTERRUPTED


@contextmanager
def progress(title: str, done: int, total: int) -> Iterator[Callable[[], object]]:
    """A function to call after each run: it moves a bar, or prints a line now and then without a terminal."""
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        left = (TextColumn("left"), TimeRemainingColumn())
        with Progress(*columns, *left, console=console, speed_estimate_period=300) as bars:
            task = bars.add_task(title, total=total, completed=done)
            yield lambda: bars.advance(task)
        return
    note(f"{title}: {done:,} of {total:,} runs are done")
    first, began = done, time.monotonic()
    printed = began

    def advance() -> None:
        nonlocal done, printed
        done, now = done + 1, time.monotonic()
        if now - printed >= PAUSE or done == total:
            printed = now
            minutes = (now - began) / (done - first) * (total - done) / 60
            note(f"{title}: {done:,} of {total:,} runs are done, about {minutes:.0f} min left")

    yield advance


def timed(perform: Callable[[Any], dict[str, Any]], run: Any) -> tuple[Any, dict[str, Any], float]:
    """A run, its result and its seconds."""
    began = time.perf_counter()
    result = perform(run)
    return run, result, time.perf_counter() - began


@contextmanager
def quiet_workers() -> Iterator[None]:
    """Start processes that compute on one thread, so that they do not compete for cores.

    They also leave Ctrl-C to their parent: a terminal sends it to all processes.
    """
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def end_with_parent() -> None:
    """End a worker when its parent was killed, because it gets no signal then."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
