"""Agreement of coders beyond chance: Cohen's κ and Krippendorff's α with intervals, and exact intervals of shares.

Answers are an array with one row per document and one column per coder, people or programs. NaN marks a missing answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topicsteer.system.types import Array

Measure = Literal["kappa", "alpha"]

# Probability that an interval covers the true value.
LEVEL = 0.95
# Draws behind an interval of κ or α.
DRAWS = 2_000


class Estimate(NamedTuple):
    """A value and its 95 % interval; NaN where it is not defined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Answers:
    """The distinct rows of answers, and how many documents have each.

    Parameters
    ----------
    counts : int array (n_patterns, n_values)
        Number of coders that gave each value.
    pairs : int array (n_patterns, 2)
        Values of the first two coders; -1 where one is missing.
    mass : array (n_patterns,)
        Documents with these answers, weighted.
    """

    counts: NDArray[np.int64]
    pairs: NDArray[np.int64]
    mass: Array


def cohen_kappa(first: ArrayLike, second: ArrayLike, *, weight: ArrayLike | None = None) -> float:
    """Cohen's κ of two coders: agreement beyond chance, 1 if they always agree, 0 if they agree by chance only.

    Parameters
    ----------
    first, second : array (n_documents,)
        Answers as numbers, such as 0 and 1; NaN = missing. Documents with one answer do not count.
    weight : array (n_documents,), optional
        Weight per document, such as one over its probability of being labelled.

    Returns
    -------
    float
        NaN without a common document, and where both always give the same single answer.

    Examples
    --------
    >>> round(cohen_kappa([1, 1, 0, 0, 1, np.nan], [1, 0, 0, 0, 1, 1]), 3)
    0.615
    """
    answers = _answers(np.column_stack([np.asarray(first, float), np.asarray(second, float)]), weight)
    return float(_kappa(answers, answers.mass[None])[0])


def krippendorff_alpha(answers: ArrayLike, *, weight: ArrayLike | None = None) -> float:
    """Krippendorff's α for names (nominal values): any number of coders, answers may be missing.

    Parameters
    ----------
    answers : array (n_documents, n_coders)
        Answers as numbers; NaN = missing. Documents with fewer than two answers do not count.
    weight : array (n_documents,), optional
        Weight per document.

    Returns
    -------
    float
        NaN without a document that has two answers, and where all answers are the same.

    Examples
    --------
    >>> round(krippendorff_alpha([[1, 1, np.nan], [0, 0, 0], [1, 0, 1], [0, np.nan, 0]]), 3)
    0.625
    """
    found = _answers(np.asarray(answers, dtype=np.float64), weight)
    return float(_alpha(found, found.mass[None])[0])


def agreement(
    answers: ArrayLike, measure: Measure = "alpha", *, weight: ArrayLike | None = None, seed: int = 0
) -> Estimate:
    """κ or α with its 95 % interval, from draws of the documents (a Bayesian bootstrap).

    Each draw gives every distinct row of answers a random weight around its number of documents. For the lower end, one
    document of disagreement is added, and for the upper end one of agreement on each value. So the interval is honest
    where few documents were compared, where a value is rare, or where all agree.

    Parameters
    ----------
    answers : array (n_documents, n_coders)
        As in `krippendorff_alpha`. κ needs two coders.
    measure : {"kappa", "alpha"}, default="alpha"
        Cohen's κ or Krippendorff's α.
    weight : array (n_documents,), optional
        Weight per document. Unequal weights widen the interval.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> value, low, high = agreement([[1, 1], [0, 0], [1, 1], [0, 0], [0, 0]] * 4, "kappa")
    >>> value, round(low, 1), high
    (1.0, 0.6, 1.0)
    """
    codes = np.asarray(answers, dtype=np.float64)
    if measure not in ("kappa", "alpha"):
        raise ValueError(f"measure is {measure!r}: expected 'kappa' or 'alpha'.")
    if measure == "kappa" and (codes.ndim != 2 or codes.shape[1] != 2):
        raise ValueError(f"κ compares two coders, but the answers have the shape {codes.shape}: use measure='alpha'.")
    found, statistic = _answers(codes, weight), _kappa if measure == "kappa" else _alpha
    value = float(statistic(found, found.mass[None])[0])
    comparable = found.counts.sum(axis=1) >= 2
    n = effective_number(np.ones(len(codes)) if weight is None else weight, (~np.isnan(codes)).sum(axis=1) >= 2)
    if not comparable.any() or not n:
        return Estimate(value, float("nan"), float("nan"))
    low, high = _interval(found, comparable, n, statistic, seed)
    return Estimate(value, min(low, value), max(high, value)) if value == value else Estimate(value, low, high)


def effective_number(weight: ArrayLike, chosen: NDArray[np.bool_]) -> float:
    """The number of equally weighted documents that give the same precision as these weighted ones (Kish).

    Examples
    --------
    >>> effective_number([1, 1, 3, 5], np.array([True, True, True, False]))
    2.27...
    """
    some = np.asarray(weight, dtype=np.float64)[chosen]
    return float(some.sum() ** 2 / np.square(some).sum()) if some.size else 0.0


def exact_interval(successes: float, trials: float) -> Estimate:
    """Share of successes with the interval of Clopper and Pearson, which covers in at least 95 % of all samples.

    Numbers may be fractions, for weighted documents (Korn and Graubard).

    Examples
    --------
    >>> Estimate(*(round(number, 3) for number in exact_interval(8, 10)))
    Estimate(value=0.8, low=0.444, high=0.975)
    >>> exact_interval(0, 0)
    Estimate(value=nan, low=0.0, high=1.0)
    """
    from scipy.special import betaincinv

    if trials <= 0:
        return Estimate(float("nan"), 0.0, 1.0)
    tail = (1 - LEVEL) / 2
    low = betaincinv(successes, trials - successes + 1, tail) if successes > 0 else 0.0
    high = betaincinv(successes + 1, trials - successes, 1 - tail) if successes < trials else 1.0
    return Estimate(successes / trials, float(low), float(high))


def _answers(codes: Array, weight: ArrayLike | None) -> Answers:
    """Reduce answers to distinct rows."""
    if codes.ndim != 2 or codes.shape[1] < 2:
        raise ValueError(f"answers have the shape {codes.shape}: expected documents × coders, two coders or more.")
    mass = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
    if mass.shape != (len(codes),) or not np.isfinite(mass).all() or (mass < 0).any():
        raise ValueError(f"weight has the shape {mass.shape}: expected one positive number per document, {len(codes)}.")
    given = ~np.isnan(codes)
    values = np.unique(codes[given])
    numbers = np.where(given, np.searchsorted(values, np.where(given, codes, 0)), -1)
    rows, which = np.unique(numbers, axis=0, return_inverse=True)
    counts = (rows[:, :, None] == np.arange(len(values))).sum(axis=1)
    masses = np.bincount(which.ravel(), mass, minlength=len(rows)).astype(np.float64)
    return Answers(counts, rows[:, :2], masses)


def _interval(
    found: Answers, comparable: NDArray[np.bool_], n: float, statistic: Callable[[Answers, Array], Array], seed: int
) -> tuple[float, float]:
    """Quantiles of a statistic over random weights of the patterns of answers."""
    values = max(found.counts.shape[1], 2)  # a coder who gave one answer only could have given another
    pairs = np.stack(np.meshgrid(range(values), range(values)), axis=-1).reshape(-1, 2)
    same = pairs[:, 0] == pairs[:, 1]
    counts = np.pad(found.counts[comparable], ((0, 0), (0, values - found.counts.shape[1])))
    more = (pairs[:, :, None] == np.arange(values)).sum(axis=1)
    mass = found.mass[comparable] * n / found.mass[comparable].sum()
    both = Answers(np.vstack([counts, more]), np.vstack([found.pairs[comparable], pairs]), mass)
    ends = []
    for added, level in ((~same / (~same).sum(), (1 - LEVEL) / 2), (same * 1.0, (1 + LEVEL) / 2)):
        shape = np.append(mass, added)
        drawn = np.random.default_rng(seed).standard_gamma(shape, (DRAWS, len(shape)))
        drawn *= n / drawn.sum(axis=1, keepdims=True)
        ends.append(float(np.nanquantile(statistic(both, drawn), level)))
    return ends[0], ends[1]


def _kappa(found: Answers, mass: Array) -> Array:
    """Cohen's κ for each row of ``mass``, the weights of the patterns."""
    both = (found.pairs >= 0).all(axis=1)
    pairs, mass, values = found.pairs[both], mass[:, both], np.arange(found.counts.shape[1])
    total = mass.sum(axis=1)
    first, second = (mass @ (pairs[:, [c]] == values) for c in (0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = mass[:, pairs[:, 0] == pairs[:, 1]].sum(axis=1) / total
        expected = (first * second).sum(axis=1) / total**2
        return np.asarray(np.where(expected < 1, (observed - expected) / (1 - expected), np.nan))


def _alpha(found: Answers, mass: Array) -> Array:
    """Krippendorff's α for each row of ``mass``, the weights of the patterns."""
    several = found.counts.sum(axis=1) >= 2
    counts, mass = found.counts[several].astype(np.float64), mass[:, several]
    coders = counts.sum(axis=1)
    values = mass @ counts
    n = values.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = mass @ ((coders**2 - np.square(counts).sum(axis=1)) / (coders - 1))
        expected = (n**2 - np.square(values).sum(axis=1)) / (n - 1)
        return np.asarray(np.where(expected > 0, 1 - observed / expected, np.nan))
