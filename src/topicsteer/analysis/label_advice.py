"""Advice on labels and keywords: whether more labels help, whether labels took effect, and which keywords to add."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.documents_to_label import FEW
from topicsteer.analysis.evaluation import HiddenTruth, hidden_label_scores
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, Supervision, assign_folds, growing_subsets
from topicsteer.system.types import Array

# Candidate exponents c of the learning curve a - b n^-c.
POWERS = np.linspace(0.05, 1.5, 30)
# Gains are predicted for this many times the labels.
MORE = 1.5


def extrapolate(labelled: Array, scores: Array, again: Array, now: float) -> tuple[float, float]:
    """Estimate the gain from half as many labels more, if scores follow a - b n^-c.

    Four points do not determine c, so the estimates of many c are averaged, weighted by their likelihood.

    Parameters
    ----------
    labelled, scores : array (n_points,)
        The curve.
    again : array (n_groups, n_points)
        The curves with one group of documents left out each, for the jackknife.
    now : float
        Present number of labels.

    Returns
    -------
    gain, error : float
        The expected gain, and its standard error.

    Examples
    --------
    >>> n = np.array([10, 20, 40, 80])
    >>> gain, _ = extrapolate(n, 0.9 - n**-0.5, np.tile(0.9 - n**-0.5, (5, 1)), 80)
    >>> round(gain, 3), round(80**-0.5 - 120**-0.5, 3)
    (0.021, 0.021)
    """
    groups = len(again)

    def spread(values: Array) -> float:
        """Standard error by the jackknife."""
        return float(np.sqrt((groups - 1) * values.var()))

    # The noise of a point is the larger of its jackknife error and the misfit of the best curve.
    misfit = math.sqrt(_fits(labelled, scores, now)[1].min() / (len(scores) - 2))
    noise = max(spread(again[:, -1] - again[:, -2]) / math.sqrt(2), misfit, 0.003)
    gain, unsure = _continued(labelled, scores, now, noise)
    error = spread(np.array([_continued(labelled, points, now, noise)[0] for points in again]))
    # The noise of a point bounds the gain from doubling; a smaller step gains a part of it.
    return gain, math.hypot(error, unsure, noise * (MORE - 1))


def _continued(labelled: Array, scores: Array, now: float, noise: float) -> tuple[float, float]:
    """Return the weighted mean and spread of the gain over all exponents."""
    gains, misfits = _fits(labelled, scores, now)
    weights = np.exp(-(misfits - misfits.min()) / (2 * noise**2))
    mean = float(weights @ gains / weights.sum())
    return mean, math.sqrt(float(weights @ np.square(gains - mean) / weights.sum()))


def _fits(labelled: Array, scores: Array, now: float) -> tuple[Array, Array]:
    """Return the gain from more labels and residual sum of squares for each exponent, with its best a and b >= 0."""
    gains, misfits = np.empty(len(POWERS)), np.empty(len(POWERS))
    for i, c in enumerate(POWERS):
        x = (labelled / labelled[-1]) ** -c
        slope = min(float(np.cov(x, scores, bias=True)[0, 1] / x.var()), 0.0)
        misfits[i] = np.square(scores - scores.mean() - slope * (x - x.mean())).sum()
        gains[i] = -slope * ((now / labelled[-1]) ** -c - (MORE * now / labelled[-1]) ** -c)
    return np.minimum(gains, 1 - scores[-1]), misfits


# A gain in average precision below this is little.
LITTLE = 0.005
# Folds of hidden labels.
FOLDS = 3
# Shares of the labels at the points of the curve.
SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
# Groups of documents of the jackknife error of the curve.
GROUPS = 10
# Labelled documents that a curve needs.
FEWEST = 12
# More labels help little only if at most this share of the topics has few labels.
UNMET = 0.05

Rows = NDArray[np.integer]
# Takes the remaining labels and rows of hidden documents; returns their probabilities of the known topics.
Score = Callable[[Supervision, Rows], Array]


@dataclass(frozen=True)
class LabelCurve:
    """Average precision on hidden labels by the number of labelled documents.

    Parameters
    ----------
    labelled : tuple of float
        Labelled documents that each point learnt from.
    macro, micro : tuple of float
        Average precision: mean over topics, and over all labels.
    gain, error : float
        Expected gain from half as many labels more, mean of macro and micro, and its standard error. NaN with fewer
        than three points.
    """

    labelled: tuple[float, ...]
    macro: tuple[float, ...]
    micro: tuple[float, ...]
    gain: float
    error: float


@dataclass(frozen=True)
class StoppingAdvice:
    """Advice on whether to stop labelling.

    Parameters
    ----------
    stop : bool
        Whether more labels of this kind will change little.
    sentence : str
        The advice in a sentence.
    curve : LabelCurve or None
        The learning curve; None with too few labels.
    """

    stop: bool
    sentence: str
    curve: LabelCurve | None = None


def advise(
    supervision: Supervision, score: Score, seed: int = 0, progress: Callable[[int, int], object] = lambda *_: None
) -> StoppingAdvice:
    """Learn from parts of the labels and advise on more of them.

    Parameters
    ----------
    supervision : Supervision
        The labels.
    score : callable
        Learns from labels and returns probabilities of hidden documents.
    seed : int, default=0
        Seed of folds and subsets.
    progress : callable, optional
        Called before each time that is learnt, with its number and the number of all.
    """
    steps = itertools.count(1)

    def counted(left: Supervision, rows: Rows) -> Array:
        progress(next(steps), FOLDS * len(SHARES))
        return score(left, rows)

    curve = label_curve(supervision, counted, seed)
    return stopping_advice(supervision.counts, curve, int(supervision.labelled.sum()))


def label_curve(supervision: Supervision, score: Score, seed: int = 0) -> LabelCurve | None:
    """Learn from growing subsets of the labels and rank hidden documents; None with too few labels.

    Parameters
    ----------
    supervision : Supervision
        The labels.
    score : callable
        Learns from labels and returns probabilities of hidden documents.
    seed : int, default=0
        Seed of folds and subsets.
    """
    part = assign_folds(supervision.indicator(), FOLDS, seed)
    rows = np.flatnonzero(part >= 0)
    if len(rows) < FEWEST or part.max() < 1:
        return None
    labelled: list[list[int]] = []

    def answer(left: Supervision, hidden: Rows) -> list[Array]:
        labelled.append([])
        found = []
        for some in growing_subsets(left, SHARES, seed + len(labelled) - 1):
            labelled[-1].append(int(some.labelled.sum()))
            found.append(score(some, hidden))
        return [np.array(found)]

    (scores,) = hidden_label_scores(supervision, part, answer)
    states = supervision.patterns[supervision.pattern[rows]]
    judged = (states == PERMITTED).any(axis=0)
    truth = HiddenTruth(states[:, judged] == PERMITTED, states[:, judged] == FORBIDDEN)
    if not truth.two_sided.any():
        return None
    at = np.mean(labelled, axis=0)
    # A topic keeps at least one label, so points may coincide where labels are few: one of them is enough.
    apart = np.append(np.diff(at) > 0.1 * at[:-1], True)
    return _curve(at[apart], truth, scores[apart][..., judged], int(supervision.labelled.sum()))


def _curve(labelled: Array, truth: HiddenTruth, scores: Array, now: int) -> LabelCurve:
    """Return the curve through the rankings of hidden documents, with jackknife errors over groups of documents."""
    group = np.random.default_rng(0).permutation(len(truth.given)) % min(GROUPS, len(truth.given))

    def averages(rows: NDArray[np.bool_] | slice) -> list[tuple[float, float]]:
        rankings = [truth.ranking(score, rows) for score in scores]
        return [(ranking.macro, ranking.micro) for ranking in rankings]

    points = np.array(averages(slice(None)))  # (points, 2)
    again = np.array([averages(group != g) for g in np.unique(group)])  # (groups, points, 2)
    gain, error = np.nan, np.nan
    if len(labelled) >= 3:
        both = [extrapolate(labelled, points[:, j], again[:, :, j], now) for j in (0, 1)]
        gain, error = np.mean(both, axis=0).tolist()
    macro, micro = map(tuple, points.T.tolist())
    at = tuple(labelled.tolist())
    return LabelCurve(at, macro, micro, gain, error)


def stopping_advice(counts: Rows, curve: LabelCurve | None, labelled: int) -> StoppingAdvice:
    """Advise on more labels, from their learning curve and the number of topics with few labels.

    Parameters
    ----------
    counts : array of int (n_known,)
        Number of labels per topic.
    curve : LabelCurve or None
        The learning curve; without one, the advice is to label more.
    labelled : int
        Number of labelled documents.

    Examples
    --------
    >>> print(stopping_advice(np.array([2, 1]), None, 3).sentence)
    Label more: the labels are too few to predict the gain from further ones.
    """
    if curve is None or not np.isfinite(curve.gain):
        return StoppingAdvice(False, "Label more: the labels are too few to predict the gain from further ones.", curve)
    few = int((counts < FEW).sum())
    little = curve.gain < LITTLE and curve.gain + curve.error < 2 * LITTLE
    stop = little and few <= UNMET * len(counts)
    further = f", and {few} topics have fewer than {FEW} labels" if little and not stop else ""
    sentence = (
        f"{'More labels will change little' if stop else 'Label more'}: {round((MORE - 1) * labelled):,} more labelled "
        f"documents would add about {curve.gain:.3f} to the average precision, and at most "
        f"{curve.gain + 2 * curve.error:.3f}{further}."
    )
    return StoppingAdvice(stop, sentence, curve)
