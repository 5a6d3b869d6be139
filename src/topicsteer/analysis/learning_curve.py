"""Learning curves: the gain to expect from more labels."""

import math
from dataclasses import dataclass

import numpy as np

from topicsteer.system.types import Array

# Candidate exponents c of the learning curve a - b n^-c.
POWERS = np.linspace(0.05, 1.5, 30)


@dataclass(frozen=True, eq=False)
class Doubling:
    """Expected gain from twice as many labels or another factor, and its standard error."""

    gain: float
    error: float


def extrapolate(labelled: Array, scores: Array, again: Array, now: float, factor: float = 2.0) -> Doubling:
    """Estimate the gain from twice as many labels, or another factor, if scores follow a - b n^-c.

    Four points do not determine c, so the estimates of many c are averaged, weighted by their likelihood.

    Parameters
    ----------
    labelled, scores : array (n_points,)
        The curve.
    again : array (n_groups, n_points)
        The curves with one group of documents left out each, for the jackknife.
    now : float
        Present number of labels.
    factor : float, default=2
        The gain is from ``now`` to ``factor`` times as many labels.

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

    # The noise of a point is the larger of its jackknife error and the misfit of the best curve.
    misfit = math.sqrt(_fits(labelled, scores, now, factor)[1].min() / (len(scores) - 2))
    noise = max(spread(again[:, -1] - again[:, -2]) / math.sqrt(2), misfit, 0.003)
    gain, unsure = _continued(labelled, scores, now, factor, noise)
    error = spread(np.array([_continued(labelled, points, now, factor, noise)[0] for points in again]))
    if factor < 2:  # the noise of a point bounds the gain from doubling; a smaller step gains a part of it
        noise *= factor - 1
    return Doubling(gain, math.hypot(error, unsure, noise))


def _continued(labelled: Array, scores: Array, now: float, factor: float, noise: float) -> tuple[float, float]:
    """Weighted mean and spread of the gain over all exponents."""
    gains, misfits = _fits(labelled, scores, now, factor)
    weights = np.exp(-(misfits - misfits.min()) / (2 * noise**2))
    mean = float(weights @ gains / weights.sum())
    return mean, math.sqrt(float(weights @ np.square(gains - mean) / weights.sum()))


def _fits(labelled: Array, scores: Array, now: float, factor: float) -> tuple[Array, Array]:
    """Gain from more labels and residual sum of squares for each exponent, with its best a and b >= 0."""
    gains, misfits = np.empty(len(POWERS)), np.empty(len(POWERS))
    for i, c in enumerate(POWERS):
        x = (labelled / labelled[-1]) ** -c
        slope = min(float(np.cov(x, scores, bias=True)[0, 1] / x.var()), 0.0)
        misfits[i] = np.square(scores - scores.mean() - slope * (x - x.mean())).sum()
        gains[i] = -slope * ((now / labelled[-1]) ** -c - (factor * now / labelled[-1]) ** -c)
    return np.minimum(gains, 1 - scores[-1]), misfits
