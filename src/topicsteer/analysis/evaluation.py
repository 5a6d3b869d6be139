"""Evaluation by cross-validation: hide labels, predict them, and compare with logistic regression."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer import metrics
from topicsteer.analysis.column_formats import MISSING, Column
from topicsteer.analysis.survey_design import AT_RANDOM, wilson
from topicsteer.labels.forest import FLAT, Forest
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision, assign_folds
from topicsteer.metrics import AveragePrecision, Decisions
from topicsteer.system.threads import one_blas_thread
from topicsteer.system.types import Array

MeasureTable = Mapping[str, Sequence[Any]]
# Measures that rank the methods: their sum decides the headline.
RANKED_BY = ("macro average precision", "micro average precision")
# More topics without enough labels are counted, not named.
NAMED = 8
# The two methods.
OURS, LOGISTIC = "topicsteer", "logistic regression"


def compare(summary: MeasureTable, topics: MeasureTable, not_judged: Sequence[str] = ()) -> list[str]:
    """Compare topicsteer with logistic regression, in sentences.

    Parameters
    ----------
    summary : mapping of str to sequence
        Names of the measures, and one column per method; see `Evaluation.summary`.
    topics : mapping of str to sequence
        Average precision per topic, one column per method; other columns are ignored.
    not_judged : sequence of str
        Topics with too few labels.

    Examples
    --------
    >>> summary = {"measure": [*RANKED_BY, "F1"], OURS: [0.9, 0.9, 0.5], LOGISTIC: [0.8, 0.7, 0.6]}
    >>> print(*compare(summary, {OURS: [0.9], LOGISTIC: [0.8]}, ["tea"]))
    By average precision, topicsteer finds the hidden labels best. Logistic regression is ahead in F1. Not judged, too
    few labels: tea.
    """
    scores = {measure: values for measure, *values in zip(*summary.values(), strict=True)}
    own, other = (sum(scores[measure][k] for measure in RANKED_BY) for k in (0, 1))
    findings = [_headline(own, other)]
    if math.isfinite(own):
        ahead = ", ".join(measure for measure, (a, b) in scores.items() if round(a, 3) < round(b, 3))
        if ahead:
            findings.append(f"Logistic regression is ahead in {ahead}.")
        each = list(zip(topics[OURS], topics[LOGISTIC], strict=True))
        lost = sum(b > a for a, b in each)
        if lost:
            findings.append(f"Logistic regression is ahead in {lost:,} of {len(each):,} topics.")
    if not_judged:
        more = [f"{len(not_judged) - NAMED} more"] if len(not_judged) > NAMED else []
        findings.append(f"Not judged, too few labels: {', '.join([*not_judged[:NAMED], *more])}.")
    return findings


def too_few_labels(names: Sequence[str]) -> str:
    """Return the verdict where nothing can be compared, with the only topics that have labels to hide."""
    return (
        "There are too few labels for an evaluation: at least two topics need two labelled documents each, not all of "
        f"them the same. Topics with enough labels so far: {', '.join(names)}."
    )


def _headline(own: float, other: float) -> str:
    """Return the method that finds the hidden labels best, by the sums of their measures."""
    if math.isnan(own):
        return (
            "No hidden document is known to lack a topic, so only recall can be judged. Mark topics that documents do "
            "not have, or declare their labels complete if they are."
        )
    if round(own, 6) == round(other, 6):
        return f"{OURS} and {LOGISTIC} find the hidden labels equally well."
    if own > other:
        return f"By average precision, {OURS} finds the hidden labels best."
    return f"By average precision, {LOGISTIC} finds the hidden labels better than {OURS} on these documents."


Rows = NDArray[np.integer[Any]]


def logistic_regression(X: sp.csr_array, supervision: Supervision, rows: Rows | slice = slice(None)) -> Array:
    """Return scores of one balanced logistic regression per topic, trained on the labelled documents.

    As usual in practice, a topic that a labelled document does not list counts as absent, even if it is unknown.
    """
    from sklearn.linear_model import LogisticRegression

    labelled = np.flatnonzero(supervision.labelled)
    given = supervision.patterns[supervision.pattern[labelled]] == PERMITTED
    asked = X[rows]
    scores = np.zeros((asked.shape[0], given.shape[1]))
    for k in range(given.shape[1]):
        if given[:, k].any() and not given[:, k].all():
            model = LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000)
            with one_blas_thread():  # ten times faster for a hundred documents
                scores[:, k] = model.fit(X[labelled], given[:, k]).predict_proba(asked)[:, 1]
        else:
            scores[:, k] = float(given[:, k].any())
    return scores


def logistic_answers(X: sp.csr_array, supervision: Supervision, rows: Rows) -> tuple[Array, NDArray[np.bool_]]:
    """Return scores of the logistic regression, and predictions at the threshold 0.5."""
    scores = logistic_regression(X, supervision, rows)
    return scores, scores >= 0.5


# With this many random labels, they alone give the scores. A score needs as many documents as the second number.
FEWEST_RANDOM, FEWEST_JUDGED = 30, 10
# Variance of a score relative to that of a binomial share: the guides of the folds decide a little differently than the
# guide of all labels. Without it, 87 to 91 % of the intervals contained the truth (one seed of `experiments/honesty`).
FOLDS_EFFECT = 1.7


def intervals(found: Decisions, precise: bool) -> dict[str, list[str]]:
    """Precision and recall of each topic with their 95 % intervals as text; "–" from fewer than ten documents."""
    parts = {"recall": (found.recall, found.true)}
    if precise:
        parts = {"precision": (found.precision, found.predicted), **parts}
    texts = {}
    for name, (value, n) in parts.items():
        low, high = wilson(value, n / FOLDS_EFFECT)
        each = zip(value, low, high, n, strict=True)
        texts[name] = [f"{v:.2f} ({a:.2f}–{b:.2f})" if count >= FEWEST_JUDGED else MISSING for v, a, b, count in each]
    return texts


def scope(found: Decisions, drawn: int, whole: bool, precise: bool) -> str:
    """For which documents the scores hold, in a sentence.

    Parameters
    ----------
    found : Decisions
        Predictions of all topics together, in the hidden documents.
    drawn : int
        Number of hidden documents that were drawn at random.
    whole : bool
        Whether the whole corpus is labelled.
    precise : bool
        Whether the precision is known.
    """
    if drawn < FEWEST_RANDOM and not whole:
        return (
            f"This is no estimate for the corpus: {drawn:,} hidden labels are known to be drawn at random, and "
            f"{FEWEST_RANDOM} are needed: {AT_RANDOM}."
        )
    texts = [f"{name} {text}" for name, (text,) in intervals(found, precise).items() if text != MISSING]
    source = "the whole corpus" if whole else "drawn at random"
    return f"Scores of {drawn:,} documents ({source}): {', '.join(texts) or 'nothing to judge'}."


# The precision of an open world is not known without these labels.
NO_PRECISION = 'No precision is known: some documents seem to have no topic, and no hidden one is labelled "(none)".'

Counts = NDArray[np.int64]
Scorer = Callable[[sp.csr_array, Supervision, Rows], tuple[Array, NDArray[np.bool_]]]
Table = dict[str, list[Any]]

# Columns of the table for people that are counts; all others are text.
COLUMNS = tuple(Column(name, "count") for name in ("level", "wrong"))


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of one method on hidden labels.

    Parameters
    ----------
    ranking : AveragePrecision
        Quality of the ranking of documents.
    decisions : Decisions
        Quality of the predictions.
    two_sided : array of bool (n_topics,)
        Topics with a hidden document that has the topic and one that lacks it. Other topics allow recall only.
    precise : bool, default=True
        Whether hidden documents show the precision. Otherwise it is undefined, and so is F1.
    """

    ranking: AveragePrecision
    decisions: Decisions
    two_sided: NDArray[np.bool_]
    precise: bool = True

    def measures(self) -> dict[str, Array]:
        """Return each measure per topic; NaN where it is undefined."""
        topics = {
            "average precision": self.ranking.topics,
            "precision": self.decisions.precision,
            "recall": self.decisions.recall,
            "F1": self.decisions.f1,
        }
        known = dict.fromkeys(topics, self.two_sided & self.precise)
        known |= {"average precision": self.two_sided, "recall": np.ones_like(self.two_sided)}
        return {name: np.where(known[name], values, np.nan) for name, values in topics.items()}

    def summary(self) -> dict[str, float]:
        """Return each measure as mean over topics (macro), and over all pairs of document and topic (micro)."""
        some, d = self.two_sided if self.two_sided.any() else slice(None), self.decisions
        micro = Decisions(d.correct[some], d.true[some], d.predicted[some]).micro
        pooled = (self.ranking.micro, float(micro.precision[0]), float(micro.recall[0]), float(micro.f1[0]))
        out = {}
        for (name, topics), all_pairs in zip(self.measures().items(), pooled, strict=True):
            judged = np.isfinite(topics).any()
            out[f"macro {name}"] = float(np.nanmean(topics)) if judged else math.nan
            out[f"micro {name}"] = all_pairs if judged else math.nan
        return out


@dataclass(frozen=True, eq=False, repr=False)
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
    folds : int
        Number of folds.
    labelled : int
        Number of labelled documents.
    complete : bool
        Whether all topics of all hidden documents are known.
    not_judged : tuple of str
        Topics with too few labels to hide one.
    scope : str
        For which documents the figures hold.
    random : bool
        Whether they hold for the whole corpus.
    forest : Forest or None
        The tree of the topics in ``names``; None for a flat list.

    Examples
    --------
    >>> from topicsteer import TopicModel
    >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3
    >>> result = TopicModel(0, world="closed").fit(texts, ["tea", "coffee"] * 6).evaluate()
    >>> result.macro["topicsteer"], result.scope
    (1.0, 'Scores of 12 documents (the whole corpus): precision 1.00 (0.65–1.00), recall 1.00 (0.65–1.00).')
    """

    names: tuple[str, ...]
    counts: Counts
    scores: dict[str, Scores]
    folds: int
    labelled: int
    complete: bool = False
    not_judged: tuple[str, ...] = ()
    scope: str = ""
    random: bool = False
    forest: Forest = FLAT

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
    def findings(self) -> tuple[str, ...]:
        """The comparison with logistic regression, and the topics that could not be judged, in sentences."""
        if not self.judged:
            return (too_few_labels(self.names),)
        return (self.scope, *compare(self.summary(), self.table(), self.not_judged))

    @property
    def verdict(self) -> str:
        """All findings as one text."""
        return " ".join(self.findings)

    def summary(self) -> Table:
        """Return a table with one row per measure and one column per method."""
        columns = {name: scores.summary() for name, scores in self.scores.items()}
        return {"measure": list(columns[OURS])} | {name: list(values.values()) for name, values in columns.items()}

    def table(self) -> Table:
        """Table with one row per topic: average precision of each method; precision, recall and F1 of topicsteer."""
        columns: Table = {"topic": list(self.names), "labelled": self.counts.tolist()}
        if not self.forest.flat:
            columns |= {"level": [depth + 1 for depth in self.forest.depth]}
        columns |= {name: scores.measures()["average precision"].tolist() for name, scores in self.scores.items()}
        decided = list(self.scores[OURS].measures().items())[1:]
        return columns | {name: values.tolist() for name, values in decided}

    def shown(self) -> Table:
        """Return a table for people: counts of hidden labels, and intervals if they hold for the corpus."""
        ours = self.scores[OURS]
        found = ours.decisions
        columns: Table = {"topic": list(self.names)}
        if not self.forest.flat:
            columns["level"] = [depth + 1 for depth in self.forest.depth]
        columns["found"] = [f"{own:,.0f} of {every:,.0f}" for own, every in zip(found.correct, found.true, strict=True)]
        if ours.precise:
            columns["wrong"] = (found.predicted - found.correct).astype(np.int64).tolist()
        return columns | (intervals(found, ours.precise) if self.random else {})

    def tables(self) -> dict[str, Any]:
        """Return all results as plain lists and numbers, for a report or a file; None where a value is undefined."""
        out = {
            "judged": self.judged,
            "verdict": self.verdict,
            "summary": self.summary(),
            "topics": self.table(),
            "folds": self.folds,
            "labelled": self.labelled,
            "scope": self.scope,
            "random": self.random,
        }
        return dict(msgspec.json.decode(msgspec.json.encode(out)))  # JSON has no NaN


def evaluate(
    X: sp.csr_array,
    supervision: Supervision,
    scorer: Scorer,
    *,
    random: NDArray[np.bool_] | bool = False,
    open_world: bool = False,
    folds: int = 3,
    seed: int = 0,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Evaluation:
    """Hide each label once, and score its prediction; only random labels if there are enough.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
        All documents.
    supervision : Supervision
        All labels.
    scorer : callable
        Takes X, the remaining labels and row numbers. Returns the probability of each known topic in these rows, and
        the predictions.
    random : array of bool (n_documents,), optional
        Documents that were drawn at random. Default: none. If all documents are labelled, all are.
    open_world : bool, default=False
        Whether documents may have none of the topics.
    folds : int, default=3
        Number of folds; every topic keeps some of its labels in each.
    seed : int, default=0
        Seed of the folds.
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
    outsiders, labelled = supervision.outsiders, supervision.labelled
    part = assign_folds(supervision.indicator(), folds, seed, others=outsiders)
    if not (part >= 0).any():
        raise ValueError("No topic has two labelled documents, so no label can be hidden: label more documents.")
    drawn = (part >= 0) & (random | labelled.all())
    enough = bool(labelled.all() or drawn.sum() >= FEWEST_RANDOM)
    if enough:
        part[~drawn] = -1
    rows = np.flatnonzero(part >= 0)
    part[rows] = np.unique(part[rows], return_inverse=True)[1]
    methods: dict[str, Scorer] = {OURS: scorer, LOGISTIC: logistic_answers}
    folds = int(part.max()) + 1
    steps, total = itertools.count(1), folds * len(methods)

    def answer(left: Supervision, hidden: Rows) -> tuple[Array, Array]:
        scores = np.zeros((len(methods), len(hidden), len(left.topics)))
        predicted = np.zeros((len(methods), len(hidden), len(left.topics)))
        for m, method in enumerate(methods.values()):
            scores[m], predicted[m] = method(X, left, hidden)
            progress(next(steps), total)
        return scores, predicted

    all_scores, all_predicted = hidden_label_scores(supervision, part, answer)
    states = supervision.patterns[supervision.pattern[rows]]
    judged = np.flatnonzero((states == PERMITTED).any(axis=0))
    forest = supervision.forest.part(judged.tolist())
    truth = HiddenTruth(states[:, judged] == PERMITTED, states[:, judged] == FORBIDDEN)
    scores = {name: values[:, judged] for name, values in zip(methods, all_scores, strict=True)}
    predicted = {name: values[:, judged] > 0 for name, values in zip(methods, all_predicted, strict=True)}
    precise = bool(not open_world or outsiders[rows].any())
    found = {name: truth.score(scores[name], predicted[name], precise) for name in methods}
    sentences = [scope(found[OURS].decisions.micro, int(drawn.sum()), bool(labelled.all()), precise)]
    return Evaluation(
        tuple(str(supervision.topics[k]) for k in judged),
        supervision.counts[judged],
        found,
        folds,
        int(supervision.labelled.sum()),
        bool((states != UNKNOWN).all()),
        tuple(str(name) for k, name in enumerate(supervision.topics) if k not in judged),
        " ".join(sentences if precise else [*sentences, NO_PRECISION]),
        enough,
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
    """Hidden labels: pairs of document and topic that are present (``given``) or absent (``lacks``)."""

    given: NDArray[np.bool_]
    lacks: NDArray[np.bool_]

    @property
    def two_sided(self) -> NDArray[np.bool_]:
        """Topics that at least one document lacks; each topic is present in at least one."""
        return np.asarray(self.lacks.any(axis=0))

    def ranking(self, scores: Array, rows: NDArray[np.bool_] | slice = slice(None)) -> AveragePrecision:
        """Return the average precision of the two-sided topics; without a negative, every ranking is perfect."""
        given, two_sided = self.given[rows], self.two_sided
        return metrics.average_precision(given & two_sided, scores[rows], (given | self.lacks[rows]) & two_sided)

    def score(self, scores: Array, predicted: NDArray[np.bool_], precise: bool) -> Scores:
        """Return scores of a method from its scores of documents and its predictions."""
        decisions = metrics.precision_recall(self.given, predicted, self.given | self.lacks)
        return Scores(self.ranking(scores), decisions, self.two_sided, precise)
