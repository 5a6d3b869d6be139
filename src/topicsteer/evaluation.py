"""Evaluation from the labels themselves: hide some, predict them, beside two plain baselines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from topicsteer.metrics import average_precision
from topicsteer.supervision import PERMITTED, Supervision, hidden_parts

Array = NDArray[np.floating[Any]]
Scorer = Callable[[sp.csr_array, Supervision], Array]

OURS, LOGISTIC, CENTROID = "topicsteer", "logistic regression", "nearest centroid"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well hidden labels were found again.

    Parameters
    ----------
    names : tuple of str
        Topics with labels to hide.
    counts : array (n_topics,)
        Labelled documents of each.
    precision : dict of str to array (n_topics,)
        For each method the average precision of each topic on documents whose labels were hidden.
    micro : dict of str to float
        The same over all pairs of document and topic at once.
    folds : int
        How many parts the labels were hidden in.
    """

    names: tuple[str, ...]
    counts: NDArray[np.int64]
    precision: dict[str, Array]
    micro: dict[str, float]
    folds: int

    @property
    def macro(self) -> dict[str, float]:
        """Mean of the topics' average precision for each method."""
        return {name: float(np.nanmean(values)) for name, values in self.precision.items()}

    @property
    def verdict(self) -> str:
        """One plain sentence on who won."""
        score = {name: self.macro[name] + self.micro[name] for name in self.precision}
        best = max(score, key=lambda name: score[name])
        if best == OURS:
            return "topicsteer finds the hidden labels best."
        return f"{best.capitalize()} finds the hidden labels better than topicsteer on these documents."

    def summary(self) -> dict[str, list[Any]]:
        """Table with a row a method."""
        methods = list(self.precision)
        return {
            "method": methods,
            "macro average precision": [self.macro[name] for name in methods],
            "micro average precision": [self.micro[name] for name in methods],
        }

    def tables(self) -> dict[str, Any]:
        """Everything for a report."""
        return {"summary": self.summary(), "topics": self.table(), "verdict": self.verdict}

    def table(self) -> dict[str, list[Any]]:
        """Table with a row a topic."""
        columns: dict[str, list[Any]] = {"topic": list(self.names), "labelled": self.counts.tolist()}
        return columns | {name: values.tolist() for name, values in self.precision.items()}


def evaluate(
    X: sp.csr_array,
    supervision: Supervision,
    scorer: Scorer,
    *,
    folds: int = 3,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Evaluation:
    """Hide each label once and score how well it is found.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
        All documents.
    supervision : Supervision
        All labels.
    scorer : callable
        From X and the labels that are left to a score for each document and known topic.
    folds : int, default=3
        Parts to hide in turn; every topic keeps some of its labels each time.
    seed : int, default=0
        For the parts.
    progress : callable, optional
        Called with parts done and their number.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If no topic has two labelled documents, so that nothing can be hidden.
    """
    truth = supervision.indicator()
    part = hidden_parts(truth, folds, seed)
    if (part < 0).all():
        raise ValueError("No topic has two labelled documents, so there is no label to hide: label some more.")
    folds = int(part.max()) + 1
    methods: dict[str, Scorer] = {OURS: scorer, LOGISTIC: logistic_regression, CENTROID: nearest_centroid}
    scores = {name: np.zeros(truth.shape) for name in methods}
    for fold in range(folds):
        hidden = part == fold
        left = Supervision(supervision.topics, np.where(hidden, 0, supervision.pattern), supervision.patterns)
        for name, method in methods.items():
            scores[name][hidden] = method(X, left)[hidden]
        if progress is not None:
            progress(fold + 1, folds)
    rows = part >= 0
    given = truth[rows].toarray()
    judged = np.flatnonzero(given.any(axis=0))
    found = {name: average_precision(given, score[rows]) for name, score in scores.items()}
    return Evaluation(
        tuple(str(supervision.topics[k]) for k in judged),
        supervision.counts[judged],
        {name: precision.topics[judged] for name, precision in found.items()},
        {name: precision.micro for name, precision in found.items()},
        folds,
    )


def logistic_regression(X: sp.csr_array, supervision: Supervision) -> Array:
    """One balanced logistic regression a topic on the labelled documents."""
    rows = np.flatnonzero(supervision.labelled)
    given = supervision.patterns[supervision.pattern[rows]] == PERMITTED
    scores = np.zeros((X.shape[0], given.shape[1]))
    for k in range(given.shape[1]):
        if given[:, k].any() and not given[:, k].all():
            model = LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000)
            scores[:, k] = model.fit(X[rows], given[:, k]).predict_proba(X)[:, 1]
        else:
            scores[:, k] = float(given[:, k].any())
    return scores


def nearest_centroid(X: sp.csr_array, supervision: Supervision) -> Array:
    """Cosine of each document and the mean of the documents labelled with each topic."""
    centroids = normalize((supervision.indicator().T @ X).tocsr())
    return np.asarray((normalize(X) @ centroids.T).toarray())
