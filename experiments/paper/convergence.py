"""Objective by iteration and by time for each solver from one start, alone on the machine."""

from __future__ import annotations

import statistics
import warnings
from typing import Any

import numpy as np

from experiments.shared.corpora import Corpus
from experiments.shared.internals import random_acol
from experiments.shared.methods import ITERATIONS
from topicsteer import TSNMF

LONG = 200
REPEATS = 3  # the median time counts


def measure(corpus: Corpus, rate: float = 0.2, seed: int = 0) -> dict[str, Any]:
    """Both solvers in double precision from the same H (Random Acol) and W (uniform), weighted labels."""
    supervision = corpus.supervision(corpus.labelled_rows(rate, seed))
    rng = np.random.RandomState(seed)
    X = corpus.X.astype(np.float64)
    start = rng.uniform(size=(X.shape[0], len(corpus.topics))), random_acol(X, len(corpus.topics), rng)
    solvers = {"mu": LONG, "hals": LONG // 2}
    return {solver: trace(X, supervision, start, solver, iterations) for solver, iterations in solvers.items()}


def trace(X: Any, supervision: Any, start: Any, solver: str, iterations: int) -> dict[str, list[float]]:
    """The objective and the median time since the start after each iteration."""
    seconds = []
    for _ in range(REPEATS):
        times = [0.0]
        model = TSNMF(init=tuple(part.copy() for part in start), solver=solver, tol=0.0, max_iter=iterations, threads=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, supervision, callback=lambda i, objective, s, times=times: times.append(s))
        seconds.append(times)
    return {
        "objective": model.objective_history_.tolist(),
        "seconds": [statistics.median(each) for each in zip(*seconds, strict=True)],
    }


def reach(traced: dict[str, list[float]], objective: float) -> tuple[int, float] | None:
    """Iterations and seconds until the objective is at most this."""
    for i, value in enumerate(traced["objective"]):
        if value <= objective:
            return i, traced["seconds"][i]
    return None


def compare(traces: dict[str, Any]) -> dict[str, Any]:
    """What coordinate descent takes to where the paper's rules are after 30 and after all their iterations."""
    mu, hals = traces["mu"], traces["hals"]
    rows = []
    for iterations in (ITERATIONS, len(mu["objective"]) - 1):
        target = mu["objective"][iterations]
        reached = reach(hals, target)
        rows.append(
            {
                "objective": target,
                "mu_iterations": iterations,
                "hals_iterations": reached[0] if reached else None,
                "time_ratio": mu["seconds"][iterations] / reached[1] if reached and reached[1] else None,
            }
        )
    return {"rows": rows, "rises": {name: largest_rise(trace["objective"]) for name, trace in traces.items()}}


def largest_rise(history: list[float]) -> float:
    """The largest relative change from one iteration to the next; negative if it always fell."""
    values = np.asarray(history)
    return float((np.diff(values) / values[:-1]).max())
