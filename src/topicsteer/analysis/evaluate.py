"""Evaluation from the labels themselves: hide some, predict them, beside two plain baselines."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer import metrics
from topicsteer.analysis.baselines import Rows, centroid_answers, logistic_answers
from topicsteer.analysis.columns import Column
from topicsteer.analysis.learning_curve import Doubling, extrapolate
from topicsteer.analysis.verdict import Verdict, compare, too_few_labels
from topicsteer.labels.folds import assign_folds, growing_subsets
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.metrics import AveragePrecision, Calibration, Decisions
from topicsteer.system.types import Array

Counts = NDArray[np.int64]
Scorer = Callable[[sp.csr_array, Supervision, Rows], tuple[Array, NDArray[np.bool_]]]
Table = dict[str, list[Any]]

# Columns of the tables of an `Evaluation` that are counts; all others are text and scores.
COLUMNS = tuple(Column(name, "count") for name in ("labelled", "documents", "of", "instead"))
OURS, LOGISTIC, CENTROID = "topicsteer", "logistic regression", "nearest centroid"
SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)  # of the labels, for the learning curve
GROUPS = 10  # of documents, left out in turn to see how far the curve depends on them


@dataclass(frozen=True, eq=False)
class Found:
    """How one method found the hidden labels.

    Parameters
    ----------
    ranking : AveragePrecision
        How far up the right documents stand.
    decisions : Decisions
        Its yes-or-no answers.
    calibration : Calibration or None
        Whether its probabilities hold; None if its scores are none.
    two_sided : array of bool (n_topics,)
        Topics that some hidden document is known to have and some other is known not to have. Only for them is there
        more to judge than recall.
    """

    ranking: AveragePrecision
    decisions: Decisions
    calibration: Calibration | None
    two_sided: NDArray[np.bool_]

    def measures(self) -> dict[str, Array]:
        """Each measure of each topic, NaN where it cannot be judged."""
        topics = {
            "average precision": self.ranking.topics,
            "precision": self.decisions.precision,
            "recall": self.decisions.recall,
            "F1": self.decisions.f1,
        }
        return {name: np.where(self.two_sided | (name == "recall"), v, np.nan) for name, v in topics.items()}

    def summary(self) -> dict[str, float]:
        """The mean of each measure over the topics (macro), and of all pairs of document and topic at once (micro)."""
        some, d = self.two_sided if self.two_sided.any() else slice(None), self.decisions
        micro = Decisions(d.correct[some], d.true[some], d.predicted[some]).micro
        pooled = (self.ranking.micro, float(micro.precision[0]), float(micro.recall[0]), float(micro.f1[0]))
        out = {}
        for (name, topics), all_pairs in zip(self.measures().items(), pooled, strict=True):
            judged = np.isfinite(topics).any()
            out[f"macro {name}"] = float(np.nanmean(topics)) if judged else math.nan
            out[f"micro {name}"] = all_pairs if judged else math.nan
        return out


@dataclass(frozen=True, eq=False)
class Curve:
    """Scores by the number of labels.

    Parameters
    ----------
    labelled : array (n_points,)
        Labelled documents that were left, mean of the folds.
    macro, micro : dict of str to array (n_points,)
        Average precision of each method.
    doubling : dict of str to Doubling
        For "macro" and "micro", what twice all the labels would bring topicsteer. Empty where there were too few
        points to tell.
    """

    labelled: Array
    macro: dict[str, Array]
    micro: dict[str, Array]
    doubling: dict[str, Doubling]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well hidden labels were found again.

    Pairs of document and topic of which the labels say nothing count neither as right nor as wrong.

    Parameters
    ----------
    names : tuple of str
        Topics with labels to hide.
    counts : array (n_topics,)
        Labelled documents of each.
    found : dict of str to Found
        For each method how it did on the documents whose labels were hidden.
    confused, instead, possible : array of int (n_topics, n_topics)
        Hidden documents of a topic (row) that topicsteer also or only gave another topic (column) that they do not
        have; those of them that it did not give their own; and those of which it is known that they do not have it.
    folds : int
        How many parts the labels were hidden in.
    labelled : int
        Labelled documents.
    curve : Curve or None
        Scores with fewer labels.
    complete : bool
        Of each hidden document it is known which topics it has.
    left_out : tuple of str
        Topics without a label that could be hidden.

    Examples
    --------
    >>> from topicsteer import TopicModel
    >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3
    >>> result = TopicModel(0).evaluate(texts, ["tea", "coffee"] * 6)
    >>> result.macro["topicsteer"], result.verdict
    (1.0, 'topicsteer and logistic regression find the hidden labels equally well.')
    """

    names: tuple[str, ...]
    counts: Counts
    found: dict[str, Found]
    confused: Counts
    instead: Counts
    possible: Counts
    folds: int
    labelled: int
    curve: Curve | None = None
    complete: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def macro(self) -> dict[str, float]:
        """Mean of the topics' average precision for each method."""
        return {name: found.summary()["macro average precision"] for name, found in self.found.items()}

    @property
    def micro(self) -> dict[str, float]:
        """Average precision over all pairs of document and topic at once, for each method."""
        return {name: found.summary()["micro average precision"] for name, found in self.found.items()}

    @property
    def judged(self) -> bool:
        """Whether there is anything to show: some topic with hidden documents on both sides, or recall at least."""
        return not self.complete or bool(self.found[OURS].two_sided.any())

    @cached_property
    def judgement(self) -> Verdict:
        """The comparison with the baselines, and the topics that could not be judged."""
        return compare(self.summary(), self.table(), self.left_out) if self.judged else too_few_labels(self.names)

    @property
    def verdict(self) -> str:
        """The judgement in plain sentences."""
        return str(self.judgement)

    def summary(self) -> Table:
        """Table with a row a measure and a column a method."""
        columns = {name: found.summary() for name, found in self.found.items()}
        return {"measure": list(columns[OURS])} | {name: list(values.values()) for name, values in columns.items()}

    def table(self) -> Table:
        """Table with a row a topic: average precision of each method, then precision, recall and F1 of topicsteer."""
        columns: Table = {"topic": list(self.names), "labelled": self.counts.tolist()}
        columns |= {name: found.measures()["average precision"].tolist() for name, found in self.found.items()}
        decided = list(self.found[OURS].measures().items())[1:]
        return columns | {name: values.tolist() for name, values in decided}

    def confusion(self, n: int = 20) -> Table:
        """Table of the topics that were most often taken for another: in how many documents, of how many.

        A document with several topics counts for each of them. ``instead``: its own topic was not found beside.
        """
        share = self.confused / np.maximum(self.possible, 1)
        order = np.lexsort((-share.ravel(), -self.confused.ravel()))[:n]
        pairs = [divmod(int(pair), len(self.names)) for pair in order if self.confused.flat[pair]]
        return {
            "topic": [self.names[a] for a, _ in pairs],
            "taken for": [self.names[b] for _, b in pairs],
            "documents": [int(self.confused[pair]) for pair in pairs],
            "of": [int(self.possible[pair]) for pair in pairs],
            "instead": [int(self.instead[pair]) for pair in pairs],
        }

    def reliability(self, method: str = OURS) -> Table:
        """Table with a row a bin of probabilities: pairs in it, what was said of them and what was right."""
        held = self.found[method].calibration
        if held is None:
            raise ValueError(f"the scores of {method!r} are no probabilities: choose {OURS!r} or {LOGISTIC!r}.")
        columns = {"from": held.edges[:-1], "to": held.edges[1:], "pairs": held.pairs, "predicted": held.predicted}
        return {name: values.tolist() for name, values in (columns | {"observed": held.observed}).items()}

    def calibration(self) -> Table:
        """Table with a row a method that gives probabilities: expected calibration error, and without the first bin."""
        rows = {name: found.calibration for name, found in self.found.items() if found.calibration is not None}
        return {
            "method": list(rows),
            "calibration error": [held.error for held in rows.values()],
            "where a topic was likely": [held.claimed_error for held in rows.values()],
        }

    def learning_curve(self, average: str = "macro") -> Table:
        """Table with a row a number of labelled documents and the average precision of each method."""
        if self.curve is None:
            raise ValueError("there is no learning curve: evaluate with curve=True.")
        scores = self.curve.macro if average == "macro" else self.curve.micro
        return {"labelled": self.curve.labelled.tolist()} | {name: v.tolist() for name, v in scores.items()}

    @property
    def advice(self) -> str:
        """What more labels would bring, in a sentence; empty without a learning curve."""
        if self.curve is None:
            return ""
        if not self.curve.doubling:
            return "There are too few labels to tell what more of them would bring."
        told = []
        for average, double in self.curve.doubling.items():
            room = 1 - (self.curve.macro if average == "macro" else self.curve.micro)[OURS][-1]
            low, high = max(double.gain - 2 * double.error, 0), min(double.gain + 2 * double.error, room)
            about = f"about {double.gain:.2f}" if double.gain >= 0.005 else "next to nothing"
            told.append(f"{about} to {average} average precision (likely {low:.2f} to {high:.2f})")
        return f"Twice as many labels of the same kind, {2 * self.labelled:,} documents, would add {', '.join(told)}."

    def tables(self) -> dict[str, Any]:
        """Everything, for a report or a file: plain lists and numbers, None where there is nothing to say."""
        out: dict[str, Any] = {
            "judged": self.judged,
            "verdict": self.verdict,
            "summary": self.summary(),
            "topics": self.table(),
            "methods": {
                name: {measure: values.tolist() for measure, values in found.measures().items()}
                for name, found in self.found.items()
            },
            "calibration": self.calibration(),
            "reliability": self.reliability(),
            "confusion": self.confusion(),
            "folds": self.folds,
            "labelled": self.labelled,
        }
        if self.curve is not None:
            out["curve"] = {average: self.learning_curve(average) for average in ("macro", "micro")}
            out["doubling"] = {name: {"gain": d.gain, "error": d.error} for name, d in self.curve.doubling.items()}
            out["advice"] = self.advice
        return dict(_without_nan(out))


def evaluate(
    X: sp.csr_array,
    supervision: Supervision,
    scorer: Scorer,
    *,
    folds: int = 3,
    seed: int = 0,
    curve: bool = True,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Evaluation:
    """Hide each label once and score how well it is found.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
        All documents.
    supervision : Supervision
        All labels.
    scorer : callable
        From X, the labels that are left and the numbers of some documents to a probability for each of these documents
        and each known topic, and to the yes or no it makes of it.
    folds : int, default=3
        Parts to hide in turn; every topic keeps some of its labels each time.
    seed : int, default=0
        For the parts.
    curve : bool, default=True
        Also learn from an eighth, a quarter and a half of the labels that are left. That is three fits more a part.
    progress : callable, optional
        Called with steps done and their number.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If no topic has two labelled documents, so that nothing can be hidden.
    """
    part = assign_folds(supervision.indicator(), folds, seed)
    rows = np.flatnonzero(part >= 0)
    if not rows.size:
        raise ValueError("No topic has two labelled documents, so there is no label to hide: label some more.")
    methods: dict[str, Scorer] = {OURS: scorer, LOGISTIC: logistic_answers, CENTROID: centroid_answers}
    shares, folds = SHARES if curve else SHARES[-1:], int(part.max()) + 1
    labelled: list[list[int]] = []  # for each fold and share the documents that keep their labels
    steps, total = itertools.count(1), folds * len(shares) * len(methods)

    def answer(left: Supervision, hidden: Rows) -> tuple[Array, Array]:
        scores = np.zeros((len(methods), len(shares), len(hidden), len(left.topics)))
        said = np.zeros((len(methods), len(hidden), len(left.topics)))
        labelled.append([])
        # All labels come last, so that their answers are the ones that stay in `said`.
        for s, some in enumerate(growing_subsets(left, shares, seed + len(labelled) - 1)):
            labelled[-1].append(int(some.labelled.sum()))
            for m, method in enumerate(methods.values()):
                scores[m, s], said[m] = method(X, some, hidden)
                progress(next(steps), total)
        return scores, said

    all_scores, all_said = hidden_label_scores(supervision, part, answer)
    states = supervision.patterns[supervision.pattern[rows]]
    judged = np.flatnonzero((states == PERMITTED).any(axis=0))
    truth = _Truth(states[:, judged] == PERMITTED, states[:, judged] == FORBIDDEN)
    scores = {name: values[:, :, judged] for name, values in zip(methods, all_scores, strict=True)}
    said = {name: values[:, judged] > 0 for name, values in zip(methods, all_said, strict=True)}
    ranking = {name: [truth.ranking(score) for score in values] for name, values in scores.items()}
    now = int(supervision.labelled.sum())
    return Evaluation(
        tuple(str(supervision.topics[k]) for k in judged),
        supervision.counts[judged],
        {name: truth.found(name, ranking[name][-1], scores[name][-1], said[name]) for name in methods},
        *truth.confused(said[OURS]),
        folds,
        now,
        _curve(np.mean(labelled, axis=0), ranking, truth, scores[OURS], now) if curve else None,
        bool((states != UNKNOWN).all()),
        tuple(str(name) for k, name in enumerate(supervision.topics) if k not in judged),
    )


def hidden_label_scores(
    supervision: Supervision, part: Rows, score: Callable[[Supervision, Rows], Sequence[Array]]
) -> list[Array]:
    """Hide the labels of one fold after the other, and put the scores of the hidden documents together.

    Parameters
    ----------
    supervision : Supervision
        All labels.
    part : array of int (n_documents,)
        The fold in which the labels of each document are hidden, -1 for never; see `assign_folds`.
    score : callable
        From the labels that are left and the numbers of the hidden documents to one array or more of shape
        (..., n_hidden, n_topics). What it raises ends the loop.

    Returns
    -------
    list of array (..., n_rows, n_topics)
        The same arrays for all documents that are ever hidden, in their order. Empty if none is.

    Examples
    --------
    >>> from topicsteer.labels.forms import supervise
    >>> given = supervise(["tea", "milk", "tea", "milk", None], 5)
    >>> part = np.array([0, 0, 0, 1, -1])
    >>> hidden_label_scores(given, part, lambda left, rows: [np.tile(left.counts, (len(rows), 1))])[0].tolist()
    [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 2.0]]
    """
    rows = np.flatnonzero(part >= 0)
    whole: list[Array] = []
    for fold in range(int(part.max(initial=-1)) + 1):
        hidden = part == fold
        left = replace(supervision, pattern=np.where(hidden, 0, supervision.pattern).astype(np.int32))
        answers = score(left, np.flatnonzero(hidden))
        whole = whole or [np.zeros((*some.shape[:-2], len(rows), some.shape[-1])) for some in answers]
        for every, some in zip(whole, answers, strict=True):
            every[..., hidden[rows], :] = some
    return whole


@dataclass(frozen=True, eq=False)
class _Truth:
    """What is known of hidden documents: the pairs of document and topic that hold, and those that do not."""

    given: NDArray[np.bool_]
    lacks: NDArray[np.bool_]

    @property
    def two_sided(self) -> NDArray[np.bool_]:
        """Topics that some document is known not to have; all of them are given to some."""
        return np.asarray(self.lacks.any(axis=0))

    def ranking(self, scores: Array, rows: NDArray[np.bool_] | slice = slice(None)) -> AveragePrecision:
        """Average precision of the topics that can be wrong: where all that is known is a yes, any order is perfect."""
        given, two_sided = self.given[rows], self.two_sided
        return metrics.average_precision(given & two_sided, scores[rows], (given | self.lacks[rows]) & two_sided)

    def found(self, method: str, ranking: AveragePrecision, scores: Array, said: NDArray[np.bool_]) -> Found:
        """How a method did, by its ranking, its scores if they are probabilities, and its yes or no."""
        known = self.given | self.lacks
        held = None if method == CENTROID else metrics.calibration(self.given, scores, known)
        return Found(ranking, metrics.precision_recall(self.given, said, known), held, self.two_sided)

    def confused(self, said: NDArray[np.bool_]) -> tuple[Counts, Counts, Counts]:
        """Documents of each topic that were given another, that were given it instead, and that could have been."""
        given, wrong = self.given.astype(np.int64).T, (said & self.lacks).astype(np.int64)
        return given @ wrong, (self.given & ~said).astype(np.int64).T @ wrong, given @ self.lacks


def _curve(labelled: Array, ranking: dict[str, list[AveragePrecision]], truth: _Truth, ours: Array, now: int) -> Curve:
    """The curve, and its continuation with what it would be without some of the documents."""
    # Where a topic has few labels it keeps one at every share, and points fall together: one of them is enough.
    apart = np.append(np.diff(labelled) > 0.1 * labelled[:-1], True)
    macro, micro = (
        {name: np.array([getattr(r, average) for r in points])[apart] for name, points in ranking.items()}
        for average in ("macro", "micro")
    )
    doubling = {}
    if apart.sum() >= 3 and all(math.isfinite(r.macro) for r in ranking[OURS]):
        group = np.random.default_rng(0).permutation(len(truth.given)) % min(GROUPS, len(truth.given))
        without = [[truth.ranking(score, group != g) for score in ours[apart]] for g in np.unique(group)]
        for name, points in (("macro", macro[OURS]), ("micro", micro[OURS])):
            again = np.array([[getattr(r, name) for r in some] for some in without])
            doubling[name] = extrapolate(labelled[apart], points, again, now)
    return Curve(labelled[apart], macro, micro, doubling)


def _without_nan(value: Any) -> Any:
    """The same with None for NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
