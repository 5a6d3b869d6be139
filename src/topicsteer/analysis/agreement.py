"""Agreement of coders beyond chance: Cohen's κ and Krippendorff's α with intervals, and exact intervals of shares.

Answers are an array with one row per document and one column per coder, people or programs. NaN marks a missing answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topicsteer.analysis.prevalence import Predictions
from topicsteer.analysis.survey_design import Sample
from topicsteer.labels.coder import PEOPLE, Coder
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.system.types import Array
from topicsteer.system.values import NONE

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
    found = _answers(codes, weight)
    statistic = _kappa if measure == "kappa" else _alpha
    value = float(statistic(found, found.mass[None])[0])
    comparable = found.counts.sum(axis=1) >= 2
    weights = np.ones(len(codes)) if weight is None else weight
    n = effective_number(weights, (~np.isnan(codes)).sum(axis=1) >= 2)
    if not comparable.any() or not n:
        return Estimate(value, float("nan"), float("nan"))
    low, high = _interval(found, comparable, n, statistic, seed)
    if np.isnan(value):
        return Estimate(value, low, high)
    return Estimate(value, min(low, value), max(high, value))


def effective_number(weight: ArrayLike, chosen: NDArray[np.bool_]) -> float:
    """Return the number of equally weighted documents that give the same precision as these weighted ones (Kish).

    Examples
    --------
    >>> effective_number([1, 1, 3, 5], np.array([True, True, True, False]))
    2.27...
    """
    some = np.asarray(weight, dtype=np.float64)[chosen]
    return float(some.sum() ** 2 / np.square(some).sum()) if some.size else 0.0


def exact_interval(successes: float, trials: float) -> Estimate:
    """Return share of successes with the interval of Clopper and Pearson, which covers in at least 95 % of all samples.

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
    """Return quantiles of a statistic over random weights of the patterns of answers."""
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


# The measures of a comparison, in the order of the table; each has a column for its value, and one per end.
MEASURES = ("precision", "recall", "kappa", "alpha")
# Probability with which a coder that treats all documents alike is left out of the shares.
FALSE_ALARM = 0.001


@dataclass(frozen=True)
class TopicComparison:
    """Answers of a coder to one topic, compared with another coder, the reference.

    Parameters
    ----------
    topic : str
        The topic, or "(none)" for documents with none of the topics.
    documents : int
        Documents to which both gave an answer.
    labels, predicted : int
        Documents with the topic according to the reference, and to the coder.
    precision, recall : Estimate
        Share of the coder's yes that the reference confirms, and of the reference's yes that the coder found.
    kappa, alpha : Estimate
        Cohen's κ and Krippendorff's α.
    """

    topic: str
    documents: int
    labels: int
    predicted: int
    precision: Estimate
    recall: Estimate
    kappa: Estimate
    alpha: Estimate


def people_of(supervision: Supervision) -> Coder:
    """Return the labels of a model in the form of a coder."""
    return Coder(PEOPLE, supervision)


def compare(coder: Coder, reference: Coder, *, weight: Array | None = None, seed: int = 0) -> list[TopicComparison]:
    """Compare a coder with a reference, topic by topic, over the documents to which both gave an answer.

    Parameters
    ----------
    coder, reference : Coder
        Two coders of the same documents and topics; the reference is often `people_of` the labels.
    weight : array (n_documents,), optional
        One over the probability with which a document was chosen to be labelled. Default: all the same.
    seed : int, default=0
        Seed of the intervals of κ and α.

    Returns
    -------
    list of TopicComparison
        One per topic, and one for "(none)" if one of the two gave that answer.

    Examples
    --------
    >>> from topicsteer.labels.coder import coder_of
    >>> truth = coder_of("anna", ["tea", "tea", "milk", "milk", None], 5, ["tea", "milk"])
    >>> gpt = coder_of("gpt", ["tea", "milk", "milk", "milk", "tea"], 5, ["tea", "milk"])
    >>> tea = compare(gpt, truth)[0]
    >>> tea.documents, tea.labels, tea.predicted, tea.precision.value, tea.recall.value, tea.kappa.value
    (4, 2, 1, 1.0, 0.5, 0.5)
    """
    names = [str(topic) for topic in coder.answers.topics]
    ours, theirs = _with_none(coder), _with_none(reference)
    if (ours[:, -1] == PERMITTED).any() or (theirs[:, -1] == PERMITTED).any():
        names.append(NONE)
    weights = np.ones(len(ours)) if weight is None else np.asarray(weight, dtype=np.float64)
    return [_compare_topic(name, ours[:, k], theirs[:, k], weights, seed) for k, name in enumerate(names)]


def _with_none(coder: Coder) -> NDArray[np.int8]:
    """Answers per document and topic, and a last column for none of the topics."""
    states = coder.states
    none = np.where((states == UNKNOWN).any(axis=1), UNKNOWN, coder.answers.outsiders).astype(np.int8)
    none[(states == PERMITTED).any(axis=1)] = 0
    return np.column_stack([states, none])


def _compare_topic(
    name: str, ours: NDArray[np.int8], theirs: NDArray[np.int8], weight: Array, seed: int
) -> TopicComparison:
    known = (ours != UNKNOWN) & (theirs != UNKNOWN) & (weight > 0)
    said, true = known & (ours == PERMITTED), known & (theirs == PERMITTED)
    answers = np.column_stack([ours, theirs])[known].astype(np.float64)
    kappa, alpha = (agreement(answers, measure, weight=weight[known], seed=seed) for measure in ("kappa", "alpha"))
    return TopicComparison(
        name,
        int(known.sum()),
        int(true.sum()),
        int(said.sum()),
        _share(true, said, weight),
        _share(said, true, weight),
        kappa,
        alpha,
    )


def _share(success: NDArray[np.bool_], among: NDArray[np.bool_], weight: Array) -> Estimate:
    """Return the weighted share of successes with its interval, from the effective number of documents."""
    if not among.any():
        return exact_interval(0, 0)
    share = float(weight[among & success].sum() / weight[among].sum())
    trials = effective_number(weight, among)
    return exact_interval(min(share * trials, trials), trials)


def comparison_table(
    coders: Sequence[Coder], people: Coder, *, weight: Array | None = None, seed: int = 0
) -> dict[str, list[Any]]:
    """Return the columns of all comparisons: every coder against the people, then every two coders against each other.

    Parameters
    ----------
    coders : sequence of Coder
        The coders.
    people : Coder
        The labels; see `people_of`.
    weight, seed
        As in `compare`. Weights are for comparisons with the people only.

    Returns
    -------
    dict of lists
        coder, against, topic, documents, labels, predicted, and value, low and high of each of `MEASURES`. None where
        a value is not defined.
    """
    pairs = [(coder, people) for coder in coders]
    pairs += [(coder, other) for i, coder in enumerate(coders) for other in coders[i + 1 :]]
    names = ["coder", "against", "topic", "documents", "labels", "predicted"]
    names += [f"{measure}{end}" for measure in MEASURES for end in ("", "_low", "_high")]
    table: dict[str, list[Any]] = {name: [] for name in names}
    for coder, other in pairs:
        for one in compare(coder, other, weight=weight if other is people else None, seed=seed):
            counts = [coder.name, other.name, one.topic, one.documents, one.labels, one.predicted]
            numbers = [number if number == number else None for m in MEASURES for number in getattr(one, m)]
            for name, value in zip(names, [*counts, *numbers], strict=True):
                table[name].append(value)
    return table


class Disagreement(NamedTuple):
    """A document to which a coder and a reference gave different answers: its row, and the topics of each."""

    row: int
    coder: str
    theirs: tuple[str, ...]
    ours: tuple[str, ...]


def disagreements(coder: Coder, reference: Coder) -> list[Disagreement]:
    """Documents where a coder and the reference disagree on a topic.

    Examples
    --------
    >>> from topicsteer.labels.coder import coder_of
    >>> truth = coder_of("anna", ["tea", "tea", None], 3, ["tea", "milk"])
    >>> disagreements(coder_of("gpt", ["tea", "milk", "milk"], 3, ["tea", "milk"]), truth)
    [Disagreement(row=1, coder='gpt', theirs=('tea',), ours=('milk',))]
    """
    ours, theirs = coder.states, reference.states
    differ = ((ours != theirs) & (ours != UNKNOWN) & (theirs != UNKNOWN)).any(axis=1)

    def names(states: NDArray[np.int8]) -> tuple[str, ...]:
        deepest = coder.answers.forest.deepest((states == PERMITTED)[None])[0]
        named = tuple(str(coder.answers.topics[k]) for k in np.flatnonzero(deepest))
        lacks = (f"not {coder.answers.topics[k]}" for k in np.flatnonzero(states == FORBIDDEN))
        return named or (tuple(lacks) if (states == UNKNOWN).any() else (NONE,))

    rows = np.flatnonzero(differ).tolist()
    return [Disagreement(row, coder.name, names(theirs[row]), names(ours[row])) for row in rows]


# --- predictions for shares ---


def label_weights(sample: Sample, n_documents: int) -> Array:
    """Weight per document for comparisons with labels: the number of documents that a labelled one stands for."""
    own, weights = np.ones(len(sample.rows)), np.zeros(n_documents)
    weights[sample.rows] = sample.weights(own, float(n_documents), own)[0]
    return weights


def _means(values: Array) -> Array:
    """Return the mean of each column without its NaN; 0 for a column of NaN alone."""
    return np.asarray(np.nansum(values, axis=0) / np.maximum((~np.isnan(values)).sum(axis=0), 1))


def predictor_of(coder: Coder, sample: Sample) -> tuple[Predictions | None, str]:
    """Return the answers of a coder as predictions of the known topics and of none of them, and a sentence about them.

    A document without an answer gets the mean prediction of its topic. That is valid only if the coder treats labelled
    documents like all others. A coder that answers mostly to labelled documents, or answers them differently, has
    probably seen the labels, and is left out.

    Parameters
    ----------
    coder : Coder
        Answers to all documents of the corpus.
    sample : Sample
        The labelled documents.

    Returns
    -------
    (Predictions or None, str)
    """
    known = coder.predictions
    none = np.where(np.isnan(known).any(axis=1), np.nan, coder.answers.outsiders)
    every = np.column_stack([known, none])
    answered = ~np.isnan(every[:, 0])
    if not answered.any():
        return None, f"The coder {coder.name} has no answers and takes no part in the shares."
    every = np.where(np.isnan(every), _means(every[answered]), every)
    checked = np.column_stack([answered, every])
    if treats_differently(checked, sample):
        return None, (
            f"The coder {coder.name} takes no part in the shares: its answers to labelled documents differ from its "
            "other answers, as if it had seen the labels."
        )
    note = (
        f"The answers of the coder {coder.name} take part in the shares. It is assumed that it has not seen the labels."
    )
    return Predictions(every, every[sample.rows]), note


def treats_differently(values: Array, sample: Sample) -> bool:
    """Return whether the weighted mean of a column over labelled documents is far from its mean over all documents."""
    weight = label_weights(sample, len(values))[sample.rows]
    n = effective_number(weight, weight > 0)
    if not n or not sample.by_chance.any():
        return False
    here = values[sample.rows]
    apart = np.abs(np.average(here, axis=0, weights=weight) - values.mean(axis=0))
    return bool((apart > chance_difference(values.var(axis=0), n)).any())


def chance_difference(variance: Array, n: float) -> Array:
    """Difference between n random documents and all others that is exceeded once in a thousand corpora by any column.

    Bernstein's inequality, for values from 0 to 1: it also holds for topics with a few documents, whose means are far
    from normal. It holds for all columns together.

    Examples
    --------
    >>> chance_difference(np.array([0.25, 0.01]), 300).round(3).tolist()
    [0.127, 0.034]
    """
    bits = np.log(2 * len(variance) / FALSE_ALARM) / n
    return np.asarray(bits / 3 + np.sqrt(np.square(bits / 3) + 2 * bits * variance))
