"""Scores by the number of labels: what more of them would bring."""

import math
from dataclasses import dataclass

import numpy as np

from topicsteer.system.types import Array

POWERS = np.linspace(0.05, 1.5, 30)  # how fast learning curves flatten: a score is a - b n^-power


@dataclass(frozen=True, eq=False)
class Doubling:
    """What twice as many labels would bring: an estimate from the learning curve, and its standard error."""

    gain: float
    error: float


def extrapolate(labelled: Array, scores: Array, again: Array, now: float) -> Doubling:
    """What twice as many labels would bring if scores follow a - b n^-c.

    Four points do not tell how fast a curve flattens, so the answers of many c are averaged, each by how well it fits.

    Parameters
    ----------
    labelled, scores : array (n_points,)
        The curve.
    again : array (n_groups, n_points)
        The curve with each group of documents left out in turn: how far the scores depend on the documents at hand.
    now : float
        Number of labels that would be doubled.

    Returns
    -------
    Doubling

    Examples
    --------
    >>> n = np.array([10, 20, 40, 80])
    >>> found = extrapolate(n, 0.9 - n**-0.5, np.tile(0.9 - n**-0.5, (5, 1)), 80)
    >>> round(found.gain, 3), round(80**-0.5 - 160**-0.5, 3)
    (0.033, 0.033)
    """
    groups = len(again)

    def spread(values: Array) -> float:
        """Standard error by the jackknife."""
        return float(np.sqrt((groups - 1) * values.var()))

    # A point is as uncertain as the documents make it, or as the best of the curves misses it.
    misfit = math.sqrt(_fits(labelled, scores, now)[1].min() / (len(scores) - 2))
    noise = max(spread(again[:, -1] - again[:, -2]) / math.sqrt(2), misfit, 0.003)
    gain, unsure = _continued(labelled, scores, now, noise)
    error = spread(np.array([_continued(labelled, points, now, noise)[0] for points in again]))
    return Doubling(gain, math.hypot(error, unsure, noise))


def _continued(labelled: Array, scores: Array, now: float, noise: float) -> tuple[float, float]:
    """Mean and spread of the gain over the powers."""
    gains, misfits = _fits(labelled, scores, now)
    weights = np.exp(-(misfits - misfits.min()) / (2 * noise**2))
    mean = float(weights @ gains / weights.sum())
    return mean, math.sqrt(float(weights @ np.square(gains - mean) / weights.sum()))


def _fits(labelled: Array, scores: Array, now: float) -> tuple[Array, Array]:
    """For each power, with its best a and b >= 0, what doubling brings, and the sum of squares it leaves."""
    gains, misfits = np.empty(len(POWERS)), np.empty(len(POWERS))
    for i, c in enumerate(POWERS):
        x = (labelled / labelled[-1]) ** -c
        slope = min(float(np.cov(x, scores, bias=True)[0, 1] / x.var()), 0.0)
        misfits[i] = np.square(scores - scores.mean() - slope * (x - x.mean())).sum()
        gains[i] = -slope * ((now / labelled[-1]) ** -c - (2 * now / labelled[-1]) ** -c)
    return np.minimum(gains, 1 - scores[-1]), misfits
