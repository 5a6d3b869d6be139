"""Evaluation by cross-validation: hide labels, predict them, and compare with two baselines."""

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
from topicsteer.analysis.verdict import Finding, Verdict, compare, too_few_labels
from topicsteer.analysis.whole_corpus import Unlabelled, in_corpus, scope
from topicsteer.labels.folds import assign_folds, growing_subsets
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.metrics import AveragePrecision, Calibration, Decisions
from topicsteer.system.renamed import Renamed
from topicsteer.system.types import Array

Counts = NDArray[np.int64]
Scorer = Callable[[sp.csr_array, Supervision, Rows], tuple[Array, NDArray[np.bool_]]]
Table = dict[str, list[Any]]

# Columns of the tables of an `Evaluation` that are counts; all others are text and scores.
COLUMNS = tuple(Column(name, "count") for name in ("labelled", "level", "documents", "of", "instead"))
OURS, LOGISTIC, CENTROID = "topicsteer", "logistic regression", "nearest centroid"
# Shares of the labels at the points of the learning curve.
SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
# Groups of documents of the jackknife error of the learning curve.
GROUPS = 10


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of one method on hidden labels.

    Parameters
    ----------
    ranking : AveragePrecision
        Quality of the ranking of documents.
    decisions : Decisions
        Quality of the predictions.
    calibration : Calibration or None
        Quality of the probabilities; None if the scores are not probabilities.
    two_sided : array of bool (n_topics,)
        Topics with a hidden document that has the topic and one that lacks it. Other topics allow recall only.
    hierarchical : Decisions or None
        Quality of the predictions with the topics above them, all topics together; None for a flat list of topics.
    """

    ranking: AveragePrecision
    decisions: Decisions
    calibration: Calibration | None
    two_sided: NDArray[np.bool_]
    hierarchical: Decisions | None = None

    def measures(self) -> dict[str, Array]:
        """Each measure per topic; NaN where it is undefined."""
        topics = {
            "average precision": self.ranking.topics,
            "precision": self.decisions.precision,
            "recall": self.decisions.recall,
            "F1": self.decisions.f1,
        }
        return {name: np.where(self.two_sided | (name == "recall"), v, np.nan) for name, v in topics.items()}

    def summary(self) -> dict[str, float]:
        """Each measure as mean over topics (macro), and over all pairs of document and topic (micro)."""
        some, d = self.two_sided if self.two_sided.any() else slice(None), self.decisions
        micro = Decisions(d.correct[some], d.true[some], d.predicted[some]).micro
        pooled = (self.ranking.micro, float(micro.precision[0]), float(micro.recall[0]), float(micro.f1[0]))
        out = {}
        for (name, topics), all_pairs in zip(self.measures().items(), pooled, strict=True):
            judged = np.isfinite(topics).any()
            out[f"macro {name}"] = float(np.nanmean(topics)) if judged else math.nan
            out[f"micro {name}"] = all_pairs if judged else math.nan
        return out

    def tree_summary(self, depth: Sequence[int]) -> dict[str, float]:
        """Macro average precision of each level, and hierarchical measures; ``depth`` is the level of each topic."""
        if self.hierarchical is None:
            return {}
        level, precision = np.asarray(depth), self.measures()["average precision"]
        out = {}
        for number in np.unique(level):
            own = precision[level == number]
            mean = float(np.nanmean(own)) if np.isfinite(own).any() else math.nan
            out[f"level {number + 1}, macro average precision"] = mean
        d = self.hierarchical
        values = (float(d.precision[0]), float(d.recall[0]), float(d.f1[0]))
        return out | dict(
            zip(("hierarchical precision", "hierarchical recall", "hierarchical F1"), values, strict=True)
        )


@dataclass(frozen=True, eq=False)
class Curve:
    """Learning curve.

    Parameters
    ----------
    labelled : array (n_points,)
        Number of labelled documents, averaged over folds.
    macro, micro : dict of str to array (n_points,)
        Average precision of each method.
    doubling : dict of str to Doubling
        Expected gain of topicsteer from twice as many labels, for "macro" and "micro". Empty if there are too few
        points.
    """

    labelled: Array
    macro: dict[str, Array]
    micro: dict[str, Array]
    doubling: dict[str, Doubling]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Result of an evaluation on hidden labels.

    Pairs of document and topic without a label count neither as correct nor as wrong.

    Parameters
    ----------
    names : tuple of str
        Topics with hidden labels.
    counts : array (n_topics,)
        Number of labelled documents per topic.
    scores : dict of str to Scores
        Scores of each method on hidden labels.
    confusions, instead, possible : array of int (n_topics, n_topics)
        Counts of hidden documents of a topic (row). ``confusions``: topicsteer predicted another topic (column) that
        they lack. ``instead``: it also missed their own topic. ``possible``: documents known to lack the other topic.
    folds : int
        Number of folds.
    labelled : int
        Number of labelled documents.
    curve : Curve or None
        Learning curve.
    complete : bool
        Whether all topics of all hidden documents are known.
    not_judged : tuple of str
        Topics with too few labels to hide one.
    corpus : Decisions or None
        Predictions of topicsteer for the corpus as it is, all topics together: hidden documents of each kind are
        mixed as in the corpus. None if no outsider was hidden, though documents without a known topic may exist.
    scope : str
        For which documents the figures hold.
    forest : Forest or None
        The tree of the topics in ``names``; None for a flat list.

    Examples
    --------
    >>> from topicsteer import TopicModel
    >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3
    >>> result = TopicModel(0, world="closed").evaluate(texts, ["tea", "coffee"] * 6)
    >>> result.macro["topicsteer"], result.verdict
    (1.0, 'topicsteer and logistic regression find the hidden labels equally well.')
    """

    names: tuple[str, ...]
    counts: Counts
    scores: dict[str, Scores]
    confusions: Counts
    instead: Counts
    possible: Counts
    folds: int
    labelled: int
    curve: Curve | None = None
    complete: bool = False
    not_judged: tuple[str, ...] = ()
    corpus: Decisions | None = None
    scope: str = ""
    forest: Forest | None = None
    found, confused, left_out = Renamed("scores"), Renamed("confusions"), Renamed("not_judged")

    @property
    def macro(self) -> dict[str, float]:
        """Macro average precision of each method: the mean over topics."""
        return {name: scores.summary()["macro average precision"] for name, scores in self.scores.items()}

    @property
    def micro(self) -> dict[str, float]:
        """Micro average precision of each method, over all pairs of document and topic."""
        return {name: scores.summary()["micro average precision"] for name, scores in self.scores.items()}

    @property
    def judged(self) -> bool:
        """Whether there is a result: at least one two-sided topic, or recall for incomplete labels."""
        return not self.complete or bool(self.scores[OURS].two_sided.any())

    @cached_property
    def judgement(self) -> Verdict:
        """The comparison with the baselines, and the topics that could not be judged."""
        if not self.judged:
            return too_few_labels(self.names)
        overall = {name: scores.summary() for name, scores in self.scores.items()}
        verdict = compare(self._as_table(overall), self.table(), self.not_judged)
        return Verdict((*verdict.findings, Finding("neutral", self.scope))) if self.scope else verdict

    @property
    def verdict(self) -> str:
        """The judgement as text."""
        return str(self.judgement)

    def summary(self) -> Table:
        """Table with one row per measure and one column per method.

        A tree of topics also has one row per level, and hierarchical precision, recall and F1: a document that has a
        topic has all topics above it.
        """
        return self._as_table({name: own.summary() | own.tree_summary(self.depth) for name, own in self.scores.items()})

    @property
    def depth(self) -> tuple[int, ...]:
        """Level of each topic, 0 without a parent."""
        return (0,) * len(self.names) if self.forest is None else self.forest.depth

    def _as_table(self, columns: dict[str, dict[str, float]]) -> Table:
        return {"measure": list(columns[OURS])} | {name: list(values.values()) for name, values in columns.items()}

    def table(self) -> Table:
        """Table with one row per topic: average precision of each method; precision, recall and F1 of topicsteer."""
        columns: Table = {"topic": list(self.names), "labelled": self.counts.tolist()}
        if self.forest is not None:
            columns |= {"level": [depth + 1 for depth in self.depth]}
        columns |= {name: scores.measures()["average precision"].tolist() for name, scores in self.scores.items()}
        decided = list(self.scores[OURS].measures().items())[1:]
        return columns | {name: values.tolist() for name, values in decided}

    def confusion(self, n: int = 20) -> Table:
        """Table of the most frequent confusions: topic, wrongly predicted topic, number of documents.

        A document with several topics counts for each of them. ``of`` counts documents that could be confused.
        ``instead`` counts documents whose own topic was missed too.
        """
        share = self.confusions / np.maximum(self.possible, 1)
        order = np.lexsort((-share.ravel(), -self.confusions.ravel()))[:n]
        pairs = [divmod(int(pair), len(self.names)) for pair in order if self.confusions.flat[pair]]
        return {
            "topic": [self.names[a] for a, _ in pairs],
            "taken for": [self.names[b] for _, b in pairs],
            "documents": [int(self.confusions[pair]) for pair in pairs],
            "of": [int(self.possible[pair]) for pair in pairs],
            "instead": [int(self.instead[pair]) for pair in pairs],
        }

    def reliability(self, method: str = OURS) -> Table:
        """Table with one row per bin of probabilities: number of pairs, mean probability, observed share."""
        held = self.scores[method].calibration
        if held is None:
            raise ValueError(f"the scores of {method!r} are not probabilities: choose {OURS!r} or {LOGISTIC!r}.")
        columns = {"from": held.edges[:-1], "to": held.edges[1:], "pairs": held.pairs, "predicted": held.predicted}
        return {name: values.tolist() for name, values in (columns | {"observed": held.observed}).items()}

    def calibration(self) -> Table:
        """Table with one row per method with probabilities: calibration error, in all and without the first bin."""
        rows = {name: scores.calibration for name, scores in self.scores.items() if scores.calibration is not None}
        return {
            "method": list(rows),
            "calibration error": [held.error for held in rows.values()],
            "where a topic was likely": [held.claimed_error for held in rows.values()],
        }

    def learning_curve(self, average: str = "macro") -> Table:
        """Table with one row per number of labelled documents: average precision of each method."""
        if self.curve is None:
            raise ValueError("there is no learning curve: evaluate with curve=True.")
        scores = self.curve.macro if average == "macro" else self.curve.micro
        return {"labelled": self.curve.labelled.tolist()} | {name: v.tolist() for name, v in scores.items()}

    @property
    def advice(self) -> str:
        """Expected gain from more labels, in a sentence; empty without a learning curve."""
        if self.curve is None:
            return ""
        if not self.curve.doubling:
            return "There are too few labels to estimate the gain from more of them."
        gains = []
        for average, double in self.curve.doubling.items():
            room = 1 - (self.curve.macro if average == "macro" else self.curve.micro)[OURS][-1]
            low, high = max(double.gain - 2 * double.error, 0), min(double.gain + 2 * double.error, room)
            about = f"about {double.gain:.2f}" if double.gain >= 0.005 else "almost nothing"
            gains.append(f"{about} to {average} average precision (likely {low:.2f} to {high:.2f})")
        return f"Twice as many labels of the same kind, {2 * self.labelled:,} documents, would add {', '.join(gains)}."

    def tables(self) -> dict[str, Any]:
        """All results as plain lists and numbers, for a report or a file; None where a value is undefined."""
        out: dict[str, Any] = {
            "judged": self.judged,
            "verdict": self.verdict,
            "summary": self.summary(),
            "topics": self.table(),
            "methods": {
                name: {measure: values.tolist() for measure, values in scores.measures().items()}
                for name, scores in self.scores.items()
            },
            "calibration": self.calibration(),
            "reliability": self.reliability(),
            "confusion": self.confusion(),
            "folds": self.folds,
            "labelled": self.labelled,
            "scope": self.scope,
        }
        if self.corpus is not None:
            precision, recall = float(self.corpus.precision[0]), float(self.corpus.recall[0])
            out["corpus"] = {"precision": precision, "recall": recall}
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
    unlabelled: Unlabelled | None = None,
    declared: bool = False,
    folds: int = 3,
    seed: int = 0,
    curve: bool = True,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Evaluation:
    """Hide each label once, and score its prediction.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
        All documents.
    supervision : Supervision
        All labels.
    scorer : callable
        Takes X, the remaining labels and row numbers. Returns the probability of each known topic in these rows, and
        the predictions.
    unlabelled : Unlabelled, optional
        Estimates for the unlabelled documents of an open world.
    declared : bool, default=False
        Whether the user declared that every document has one of the topics.
    folds : int, default=3
        Number of folds; every topic keeps some of its labels in each.
    seed : int, default=0
        Seed of the folds.
    curve : bool, default=True
        Whether to compute a learning curve from an eighth, a quarter and a half of the remaining labels. It takes three
        more fits per fold.
    progress : callable, optional
        Called with the number of steps done and in total.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If no topic has two labelled documents.
    """
    outsiders = supervision.outsiders
    part = assign_folds(supervision.indicator(), folds, seed, others=outsiders)
    rows = np.flatnonzero(part >= 0)
    if not rows.size:
        raise ValueError("No topic has two labelled documents, so no label can be hidden: label more documents.")
    methods: dict[str, Scorer] = {OURS: scorer, LOGISTIC: logistic_answers, CENTROID: centroid_answers}
    shares, folds = SHARES if curve else SHARES[-1:], int(part.max()) + 1
    labelled: list[list[int]] = []  # labelled documents per fold and share
    steps, total = itertools.count(1), folds * len(shares) * len(methods)

    def answer(left: Supervision, hidden: Rows) -> tuple[Array, Array]:
        scores = np.zeros((len(methods), len(shares), len(hidden), len(left.topics)))
        predicted = np.zeros((len(methods), len(hidden), len(left.topics)))
        labelled.append([])
        # The last share is all labels: its predictions are kept.
        for s, some in enumerate(growing_subsets(left, shares, seed + len(labelled) - 1)):
            labelled[-1].append(int(some.labelled.sum()))
            for m, method in enumerate(methods.values()):
                scores[m, s], predicted[m] = method(X, some, hidden)
                progress(next(steps), total)
        return scores, predicted

    all_scores, all_predicted = hidden_label_scores(supervision, part, answer)
    states = supervision.patterns[supervision.pattern[rows]]
    judged = np.flatnonzero((states == PERMITTED).any(axis=0))
    forest = None if supervision.forest is None else supervision.forest.part(judged.tolist())
    truth = HiddenTruth(states[:, judged] == PERMITTED, states[:, judged] == FORBIDDEN, forest)
    scores = {name: values[:, :, judged] for name, values in zip(methods, all_scores, strict=True)}
    predicted = {name: values[:, judged] > 0 for name, values in zip(methods, all_predicted, strict=True)}
    ranking = {name: [truth.ranking(score) for score in values] for name, values in scores.items()}
    now = int(supervision.labelled.sum())
    marked = int(outsiders[rows].sum())
    corpus = None
    if unlabelled is not None and marked:
        corpus = in_corpus(states == PERMITTED, all_predicted[0] > 0, outsiders[rows], unlabelled)
    return Evaluation(
        tuple(str(supervision.topics[k]) for k in judged),
        supervision.counts[judged],
        {name: truth.score(name, ranking[name][-1], scores[name][-1], predicted[name]) for name in methods},
        *truth.confusions(predicted[OURS]),
        folds,
        now,
        _curve(np.mean(labelled, axis=0), ranking, truth, scores[OURS], now) if curve else None,
        bool((states != UNKNOWN).all()),
        tuple(str(name) for k, name in enumerate(supervision.topics) if k not in judged),
        corpus,
        "" if declared else scope(corpus, unlabelled, marked, supervision),
        forest,
    )


def hidden_label_scores(
    supervision: Supervision, part: Rows, score: Callable[[Supervision, Rows], Sequence[Array]]
) -> list[Array]:
    """Hide the labels of each fold in turn, and collect the scores of the hidden documents.

    Parameters
    ----------
    supervision : Supervision
        All labels.
    part : array of int (n_documents,)
        Fold in which the labels of each document are hidden, -1 for never; see `assign_folds`.
    score : callable
        Takes the remaining labels and the row numbers of hidden documents. Returns one or more arrays of shape
        (..., n_hidden, n_topics).

    Returns
    -------
    list of array (..., n_rows, n_topics)
        The arrays of all hidden documents, in the order of their rows; empty if no document is hidden.

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
class HiddenTruth:
    """Hidden labels: pairs of document and topic that are present (``given``) or absent (``lacks``), and their tree."""

    given: NDArray[np.bool_]
    lacks: NDArray[np.bool_]
    forest: Forest | None = None

    @property
    def two_sided(self) -> NDArray[np.bool_]:
        """Topics that at least one document lacks; each topic is present in at least one."""
        return np.asarray(self.lacks.any(axis=0))

    def ranking(self, scores: Array, rows: NDArray[np.bool_] | slice = slice(None)) -> AveragePrecision:
        """Average precision of the two-sided topics; without a negative, every ranking is perfect."""
        given, two_sided = self.given[rows], self.two_sided
        return metrics.average_precision(given & two_sided, scores[rows], (given | self.lacks[rows]) & two_sided)

    def score(self, method: str, ranking: AveragePrecision, scores: Array, predicted: NDArray[np.bool_]) -> Scores:
        """Scores of a method from its ranking, its probabilities and its predictions."""
        known = self.given | self.lacks
        held = None if method == CENTROID else metrics.calibration(self.given, scores, known)
        decisions, tree = metrics.precision_recall(self.given, predicted, known), None
        if self.forest is not None:
            tree = metrics.hierarchical_precision_recall(self.given, predicted, self.forest.parents, known).micro
        return Scores(ranking, decisions, held, self.two_sided, tree)

    def confusions(self, predicted: NDArray[np.bool_]) -> tuple[Counts, Counts, Counts]:
        """The three counts of an `Evaluation`: ``confusions``, ``instead`` and ``possible``."""
        given, wrong = self.given.astype(np.int64).T, (predicted & self.lacks).astype(np.int64)
        return given @ wrong, (self.given & ~predicted).astype(np.int64).T @ wrong, given @ self.lacks


def _curve(
    labelled: Array, ranking: dict[str, list[AveragePrecision]], truth: HiddenTruth, ours: Array, now: int
) -> Curve:
    """The learning curve and the expected gain from twice as many labels."""
    # A topic keeps at least one label, so points may coincide where labels are few: one of them is enough.
    apart = np.append(np.diff(labelled) > 0.1 * labelled[:-1], True)
    macro, micro = (
        {name: np.array([getattr(r, average) for r in points])[apart] for name, points in ranking.items()}
        for average in ("macro", "micro")
    )
    doubling = {}
    if apart.sum() >= 3 and all(math.isfinite(r.macro) for r in ranking[OURS]):
        without = rankings_without_groups(truth, ours[apart])
        for name, points in (("macro", macro[OURS]), ("micro", micro[OURS])):
            again = np.array([[getattr(r, name) for r in some] for some in without])
            doubling[name] = extrapolate(labelled[apart], points, again, now)
    return Curve(labelled[apart], macro, micro, doubling)


def rankings_without_groups(truth: HiddenTruth, scores: Array) -> list[list[AveragePrecision]]:
    """Rankings of each point of a curve with one group of hidden documents left out each, for the jackknife."""
    group = np.random.default_rng(0).permutation(len(truth.given)) % min(GROUPS, len(truth.given))
    return [[truth.ranking(score, group != g) for score in scores] for g in np.unique(group)]


def _without_nan(value: Any) -> Any:
    """Replace NaN by None, because JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
