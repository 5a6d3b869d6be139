"""Intervals of shares: Wilson's for one share, MOVER for differences and other sums of shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from topicsteer.system.types import Array


def z_value(level: float) -> float:
    """The quantile of the normal distribution for a two-sided interval."""
    return float(norm.ppf(0.5 + level / 2))


def wilson(share: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """Wilson's interval of a share that was measured on n documents; n may be a fraction, and 0 gives 0 to 1.

    Parameters
    ----------
    share, n : array
        Shares from 0 to 1, and numbers of documents.
    level : float, default=0.95
        Confidence level.

    Returns
    -------
    (array, array)
        Lower and upper ends.

    Examples
    --------
    >>> low, high = wilson(15 / 148, 148)  # an example of Newcombe (1998)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0624, 0.1605)
    """
    z2 = z_value(level) ** 2
    share, n = np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64)
    centre = (n * share + z2 / 2) / (n + z2)
    half = np.sqrt(z2 * (n * share * (1 - share) + z2 / 4)) / (n + z2)
    return np.maximum(centre - half, 0), np.minimum(centre + half, 1)


def mover(estimates: ArrayLike, low: ArrayLike, high: ArrayLike, coefficients: ArrayLike) -> tuple[Array, Array, Array]:
    """A weighted sum of independent estimates with its interval, from the intervals of each (Zou and Donner 2008).

    With the coefficients 1 and -1, and Wilson's intervals, this is Newcombe's interval of a difference.

    Parameters
    ----------
    estimates, low, high : array (n, ...)
        Estimates with the ends of their intervals.
    coefficients : array (n,)

    Returns
    -------
    (array, array, array)
        The sum, and the ends of its interval.

    Examples
    --------
    >>> shares, n = np.array([56 / 70, 48 / 80]), np.array([70, 80])  # an example of Newcombe (1998)
    >>> _, low, high = mover(shares, *wilson(shares, n), [1, -1])
    >>> round(float(low), 4), round(float(high), 4)
    (0.0524, 0.3339)
    """
    estimates, low, high = (np.asarray(a, dtype=np.float64) for a in (estimates, low, high))
    c = np.asarray(coefficients, dtype=np.float64).reshape(-1, *[1] * (estimates.ndim - 1))
    least, most = np.where(c > 0, low, high), np.where(c > 0, high, low)
    found = (c * estimates).sum(axis=0)
    below = np.sqrt(np.square(c * (estimates - least)).sum(axis=0))
    above = np.sqrt(np.square(c * (estimates - most)).sum(axis=0))
    return found, found - below, found + above
