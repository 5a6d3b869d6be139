"""When to stop labelling: the learning curve of the labels so far, continued to half as many labels more.

The labels of three folds are hidden in turn. The model learns from an eighth, a quarter, a half and all of the other
labels, and ranks the hidden documents. The curve through these points predicts the gain from more labels.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.evaluate import SHARES, HiddenTruth, hidden_label_scores, rankings_without_groups
from topicsteer.analysis.learning_curve import extrapolate
from topicsteer.analysis.suggest import FEW
from topicsteer.labels.folds import assign_folds, drop_tenth, growing_subsets
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, Supervision
from topicsteer.system.types import Array

# A gain in average precision below this is little.
LITTLE = 0.005
# Gains are predicted for this many times the labels.
MORE = 1.5
# Folds of hidden labels.
FOLDS = 3
# Labelled documents that a curve needs.
FEWEST = 12
# Without a curve, labels help little once predictions from nine tenths of them agree this well with the present ones.
STEADY = 0.95
# More labels help little only if at most this share of the topics has no label, or few.
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
    macro_error, micro_error : tuple of float
        Standard errors by the jackknife.
    topics : int
        Number of topics with a hidden label.
    gain, error : float
        Expected gain from half as many labels more, mean of macro and micro, and its standard error. NaN with fewer
        than three points.
    """

    labelled: tuple[float, ...]
    macro: tuple[float, ...]
    micro: tuple[float, ...]
    macro_error: tuple[float, ...]
    micro_error: tuple[float, ...]
    topics: int
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
    agreement : float
        Agreement with the predictions from nine tenths of the labels, averaged over topics; 1 = identical.
    doubtful : float
        Share of the unlabelled documents without a clear topic.
    unmet : float
        Number of topics without a label: known topics, or Chao's estimate of unseen topics if larger. The estimate
        uses the numbers of topics with one and two labels (Chao 1984; a lower bound for labels at random).
    curve : LabelCurve or None
        The learning curve; None with too few labels.
    """

    stop: bool
    sentence: str
    agreement: float
    doubtful: float
    unmet: float
    curve: LabelCurve | None = None


def advise(
    supervision: Supervision,
    rank: Score,
    score: Score,
    probabilities: Array,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> StoppingAdvice:
    """Learn from parts of the labels and advise on more of them.

    Parameters
    ----------
    supervision : Supervision
        The labels.
    rank : callable
        Learns from labels and returns probabilities that rank hidden documents.
    score : callable
        Learns from labels and returns probabilities like the given ones.
    probabilities : array (n_unlabelled, n_known)
        Probabilities of the unlabelled documents from all labels.
    seed : int, default=0
        Seed of folds and subsets.
    progress : callable, optional
        Called before each time that is learnt, with its number and the number of all.
    """
    steps = itertools.count(1)

    def counted(learn: Score) -> Score:
        def answer(left: Supervision, rows: Rows) -> Array:
            if progress is not None:
                progress(next(steps), FOLDS * len(SHARES) + 1)
            return learn(left, rows)

        return answer

    curve = label_curve(supervision, counted(rank), seed)
    before = counted(score)(drop_tenth(supervision, seed), np.flatnonzero(~supervision.labelled))
    return stopping_advice(probabilities, before, supervision.counts, curve, int(supervision.labelled.sum()))


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
    """The curve through the rankings of hidden documents."""
    rankings = [truth.ranking(score) for score in scores]
    without = rankings_without_groups(truth, scores)
    points, errors, gains = dict[str, Array](), dict[str, Array](), list[tuple[float, float]]()
    for average in ("macro", "micro"):
        points[average] = np.array([getattr(ranking, average) for ranking in rankings])
        again = np.array([[getattr(ranking, average) for ranking in some] for some in without])
        errors[average] = np.sqrt((len(again) - 1) * again.var(axis=0))
        if len(labelled) >= 3:
            more = extrapolate(labelled, points[average], again, now, MORE)
            gains.append((more.gain, more.error))
    gain, error = np.mean(gains, axis=0).tolist() if gains else (np.nan, np.nan)
    return LabelCurve(
        labelled=tuple(labelled.tolist()),
        macro=tuple(points["macro"].tolist()),
        micro=tuple(points["micro"].tolist()),
        macro_error=tuple(errors["macro"].tolist()),
        micro_error=tuple(errors["micro"].tolist()),
        topics=truth.given.shape[1],
        gain=gain,
        error=error,
    )


def stopping_advice(
    probabilities: Array, before: Array, counts: Rows, curve: LabelCurve | None = None, labelled: int = 0
) -> StoppingAdvice:
    """Advise on more labels, from their learning curve and the number of topics without labels.

    Without a curve, the effect of the last tenth of the labels decides.

    Parameters
    ----------
    probabilities, before : array (n_unlabelled, n_known)
        Probabilities from all labels, and from nine tenths of them.
    counts : array of int (n_known,)
        Number of labels per topic.
    curve : LabelCurve, optional
        The learning curve.
    labelled : int
        Number of labelled documents.

    Returns
    -------
    StoppingAdvice

    Examples
    --------
    >>> same = np.array([[0.9, 0.0], [0.1, 0.8]])
    >>> stopping_advice(same, same, np.array([9, 9])).stop
    True
    >>> print(stopping_advice(same, same[:, ::-1], np.array([9, 9])).sentence)
    Label more: the last tenth of the labels changed 94 % of the predictions.
    """
    if not counts.any():
        return StoppingAdvice(False, "Label more: there are no labels yet.", 0.0, 1.0, float(len(counts)))
    both = np.minimum(probabilities, before).sum(axis=0, dtype=np.float64)
    either = np.maximum(probabilities, before).sum(axis=0, dtype=np.float64)
    found = either > 0
    agreement = float((both[found] / either[found]).mean()) if found.any() else 0.0
    doubtful = float((probabilities.max(axis=1, initial=0) < 0.5).mean()) if len(probabilities) else 0.0
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    unmet = max(float((counts == 0).sum()), once * (once - 1) / (2 * (twice + 1)))
    met, few = unmet <= UNMET * len(counts), int((counts < FEW).sum())
    if curve is None or not np.isfinite(curve.gain):
        little = agreement >= STEADY
        reason = f"the last tenth of the labels changed {100 * (1 - agreement):.0f} % of the predictions"
    else:
        little = curve.gain < LITTLE and curve.gain + curve.error < 2 * LITTLE
        most = curve.gain + 2 * curve.error
        reason = f"{round((MORE - 1) * labelled):,} more labelled documents would add about {curve.gain:.3f} to the "
        reason += f"average precision, and at most {most:.3f}"
    stop, thin = little and met and few <= UNMET * len(counts), f", and {few} topics have fewer than {FEW} labels."
    sentence = f"{'More labels will change little' if stop else 'Label more'}: {reason}"
    sentence += (
        f", and about {unmet:.0f} topics seem to lack labels." if not met else thin if little and not stop else "."
    )
    return StoppingAdvice(stop, sentence, agreement, doubtful, unmet, curve)
