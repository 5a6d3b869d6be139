"""Scores of all runs by method, rate and seed, and intervals of their differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from experiments.paper.runs import Run


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} [{self.low:.4f}, {self.high:.4f}]"


class Scoreboard:
    """Results of all runs of a corpus."""

    def __init__(self, results: dict[Run, dict[str, Any]], corpus: str, n_topics: int) -> None:
        self.corpus, self.n_topics = corpus, n_topics
        self.rows = {run: row for run, row in results.items() if run.corpus == corpus and run.study == "score"}
        self.others = {run: row for run, row in results.items() if run.corpus == corpus and run.study != "score"}

    def methods(self) -> list[str]:
        """Methods that have been run."""
        return sorted({run.method for run in self.rows})

    def rates(self, method: str = "TS-NMF") -> list[float]:
        """Rates at which a method has been run."""
        return sorted({run.rate for run in self.rows if run.method == method})

    def values(self, method: str, rate: float, score: str) -> np.ndarray:
        """One number per seed, in the order of the seeds."""
        runs = sorted(run for run in self.rows if (run.method, run.rate) == (method, rate))
        return np.array([self.rows[run][score] for run in runs], dtype=np.float64)

    def mean(self, method: str, rate: float, score: str) -> float:
        """Mean over the seeds, NaN if there is none."""
        values = self.values(method, rate, score)
        return float(values.mean()) if values.size else float("nan")

    def curve(self, method: str, score: str) -> tuple[list[float], np.ndarray, np.ndarray, np.ndarray]:
        """Rates, and at each rate the mean, the 5th and the 95th percentile of a score."""
        rates = self.rates(method)
        values = [self.values(method, rate, score) for rate in rates]
        low, high = ([np.percentile(each, q) for each in values] for q in (5, 95))
        return rates, np.array([each.mean() for each in values]), np.array(low), np.array(high)


def difference(a: np.ndarray, b: np.ndarray) -> Interval | None:
    """Mean of a minus mean of b with Welch's interval; None if either has fewer than two values."""
    if min(a.size, b.size) < 2:
        return None
    gap, parts = float(a.mean() - b.mean()), np.array([a.var(ddof=1) / a.size, b.var(ddof=1) / b.size])
    if not parts.any():
        return Interval(gap, gap, gap)
    freedom = parts.sum() ** 2 / (parts**2 / (a.size - 1, b.size - 1)).sum()
    half = float(stats.t.ppf(0.975, freedom) * np.sqrt(parts.sum()))
    return Interval(gap, gap - half, gap + half)


def mean_interval(values: np.ndarray) -> Interval | None:
    """Mean with Student's interval; None with fewer than two values."""
    if values.size < 2:
        return None
    half = float(stats.t.ppf(0.975, values.size - 1) * stats.sem(values))
    return Interval(float(values.mean()), float(values.mean()) - half, float(values.mean()) + half)


def correlation(x: np.ndarray, y: np.ndarray) -> Interval | None:
    """Pearson's r with Fisher's interval; None with fewer than ten points."""
    if x.size < 10 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    result = stats.pearsonr(x, y)
    low, high = result.confidence_interval(0.95)
    return Interval(float(result.statistic), float(low), float(high))


def deviations(board: Scoreboard, method: str = "TS-NMF") -> tuple[np.ndarray, np.ndarray]:
    """Coverage and similarity of each run minus the mean of its rate."""
    rates = board.rates(method)
    both = [(board.values(method, rate, "coverage"), board.values(method, rate, "similarity_all")) for rate in rates]
    if not both:
        return np.zeros(0), np.zeros(0)
    x, y = (np.concatenate([each - each.mean() for each in column]) for column in zip(*both, strict=True))
    return x, y
