"""Objective of each solver by iteration and by time, from the same start; nothing else runs meanwhile."""

from __future__ import annotations

import statistics
import warnings
from typing import Any

import numpy as np

from experiments.shared.corpora import Corpus
from experiments.shared.internals import random_acol
from experiments.shared.methods import ITERATIONS
from topicsteer import TSNMF

# Iterations of the multiplicative rules.
LONG = 200
# The median time of this many fits counts.
REPEATS = 3


def measure(corpus: Corpus, rate: float = 0.2, seed: int = 0) -> dict[str, Any]:
    """Both solvers in double precision from the same H (Random Acol) and W (uniform), weighted labels."""
    supervision = corpus.supervision(corpus.labelled_rows(rate, seed))
    rng = np.random.RandomState(seed)
    X = corpus.X.astype(np.float64)
    start = rng.uniform(size=(X.shape[0], len(corpus.topics))), random_acol(X, len(corpus.topics), rng)
    solvers = {"mu": LONG, "hals": LONG // 2}
    return {solver: trace(X, supervision, start, solver, iterations) for solver, iterations in solvers.items()}


def trace(X: Any, supervision: Any, start: Any, solver: str, iterations: int) -> dict[str, list[float]]:
    """Objective and median time since the start, after each iteration."""
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
    """Iterations and seconds until the objective is this low, None if it never is."""
    for i, value in enumerate(traced["objective"]):
        if value <= objective:
            return i, traced["seconds"][i]
    return None


def compare(traces: dict[str, Any]) -> dict[str, Any]:
    """Cost of coordinate descent to reach the objective of the paper's rules, after 30 and after all iterations."""
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
    """Largest relative change from one iteration to the next; negative if the objective always fell."""
    values = np.asarray(history)
    return float((np.diff(values) / values[:-1]).max())
