"""How wrong is a coder: precision, recall and agreement per topic with intervals, and documents of disagreement.

The answers of a coder are also predictions for shares of topics, next to the predictions of the guide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.agreement import Estimate, agreement, effective_number, exact_interval
from topicsteer.analysis.design import Sample
from topicsteer.analysis.estimates import Predictions
from topicsteer.labels.coder import PEOPLE, Coder
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.system.types import Array
from topicsteer.system.values import NONE

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
    labels, predicted, both : int
        Documents with the topic according to the reference, to the coder, and to both.
    precision, recall : Estimate
        Share of the coder's yes that the reference confirms, and of the reference's yes that the coder found.
    kappa, alpha : Estimate
        Cohen's κ and Krippendorff's α.
    """

    topic: str
    documents: int
    labels: int
    predicted: int
    both: int
    precision: Estimate
    recall: Estimate
    kappa: Estimate
    alpha: Estimate


def people_of(supervision: Supervision) -> Coder:
    """The labels of a model in the form of a coder."""
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
        int((said & true).sum()),
        _share(true, said, weight),
        _share(said, true, weight),
        kappa,
        alpha,
    )


def _share(success: NDArray[np.bool_], among: NDArray[np.bool_], weight: Array) -> Estimate:
    """Weighted share of successes with its interval, from the effective number of documents."""
    if not among.any():
        return exact_interval(0, 0)
    share = float(weight[among & success].sum() / weight[among].sum())
    trials = effective_number(weight, among)
    return exact_interval(min(share * trials, trials), trials)


def comparison_table(coders: Sequence[Coder], people: Coder, **options: Any) -> dict[str, list[Any]]:
    """Columns of all comparisons: every coder against the people, then every two coders against each other.

    Parameters
    ----------
    coders : sequence of Coder
        The coders.
    people : Coder
        The labels; see `people_of`.
    **options
        Arguments of `compare`. Weights are for comparisons with the people only.

    Returns
    -------
    dict of lists
        coder, against, topic, documents, labels, predicted, and value, low and high of each of `MEASURES`. None where
        a value is not defined.
    """
    seed = options.pop("seed", 0)
    pairs = [(coder, people) for coder in coders]
    pairs += [(coder, other) for i, coder in enumerate(coders) for other in coders[i + 1 :]]
    names = ["coder", "against", "topic", "documents", "labels", "predicted"]
    names += [f"{measure}{end}" for measure in MEASURES for end in ("", "_low", "_high")]
    table: dict[str, list[Any]] = {name: [] for name in names}
    for coder, other in pairs:
        for one in compare(coder, other, seed=seed, **options if other is people else {}):
            counts = [coder.name, other.name, one.topic, one.documents, one.labels, one.predicted]
            numbers = [number if number == number else None for m in MEASURES for number in getattr(one, m)]
            for name, value in zip(names, [*counts, *numbers], strict=True):
                table[name].append(value)
    return table


@dataclass(frozen=True)
class Disagreement:
    """A document to which two coders gave different answers: its row, and the topics according to each."""

    row: int
    coder: str
    against: str
    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    score: float | None


def disagreements(coder: Coder, reference: Coder) -> list[Disagreement]:
    """Documents where a coder and the reference disagree on a topic; the answers that the coder was surest of first.

    Examples
    --------
    >>> from topicsteer.labels.coder import coder_of
    >>> truth = coder_of("anna", ["tea", "tea", None], 3, ["tea", "milk"])
    >>> [one] = disagreements(coder_of("gpt", ["tea", "milk", "milk"], 3, ["tea", "milk"]), truth)
    >>> one.row, one.theirs, one.ours
    (1, ('tea',), ('milk',))
    """
    ours, theirs = coder.states, reference.states
    differ = ((ours != theirs) & (ours != UNKNOWN) & (theirs != UNKNOWN)).any(axis=1)
    rows = np.flatnonzero(differ)
    scores = np.full(len(ours), np.nan) if coder.scores is None else coder.scores
    order = np.argsort(-np.nan_to_num(scores[rows]), kind="stable")

    def names(states: NDArray[np.int8]) -> tuple[str, ...]:
        forest, has = coder.answers.forest, states == PERMITTED
        deepest = has if forest is None else forest.deepest(has[None])[0]
        named = tuple(str(coder.answers.topics[k]) for k in np.flatnonzero(deepest))
        lacks = (f"not {coder.answers.topics[k]}" for k in np.flatnonzero(states == FORBIDDEN))
        return named or (tuple(lacks) if (states == UNKNOWN).any() else (NONE,))

    return [
        Disagreement(
            int(row),
            coder.name,
            reference.name,
            names(theirs[row]),
            names(ours[row]),
            float(scores[row]) if scores[row] == scores[row] else None,
        )
        for row in rows[order]
    ]


# --- predictions for shares ---


def label_weights(sample: Sample, n_documents: int) -> Array:
    """Weight per document for comparisons with labels: the number of documents that a labelled one stands for."""
    own, weights = np.ones(len(sample.rows)), np.zeros(n_documents)
    weights[sample.rows] = sample.weights(own, float(n_documents), own)[0]
    return weights


def _means(values: Array) -> Array:
    """Mean of each column without its NaN; 0 for a column of NaN alone."""
    return np.asarray(np.nansum(values, axis=0) / np.maximum((~np.isnan(values)).sum(axis=0), 1))


def predictor_of(coder: Coder, sample: Sample) -> tuple[Predictions | None, str]:
    """The answers of a coder as predictions of the known topics and of none of them, and a sentence about them.

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
    answered = ~np.isnan(every[:, 0]) if every.shape[1] else np.zeros(len(every), dtype=np.bool_)
    if not answered.any():
        return None, f"The coder {coder.name} has no answers and takes no part in the shares."
    every = np.where(np.isnan(every), _means(every[answered]), every)
    checked = np.column_stack([answered, every])
    if _treats_differently(checked, sample):
        return None, (
            f"The coder {coder.name} takes no part in the shares: its answers to labelled documents differ from its "
            "other answers, as if it had seen the labels."
        )
    note = (
        f"The answers of the coder {coder.name} take part in the shares. It is assumed that it has not seen the labels."
    )
    return Predictions(every, every[sample.rows]), note


def _treats_differently(values: Array, sample: Sample) -> bool:
    """Whether the weighted mean of a column over labelled documents is far from its mean over all documents."""
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
