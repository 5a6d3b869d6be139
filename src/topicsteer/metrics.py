"""Measures of predicted topics against true labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from topicsteer.system.arrays import checked_csr

Array = NDArray[np.float64]
Matrix: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix
Marks: TypeAlias = NDArray[np.bool_]

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class AveragePrecision:
    """Average precision of each topic, NaN if no document has it, and of all pairs at once (``micro``)."""

    topics: Array
    micro: float

    @property
    def macro(self) -> float:
        """Mean over the topics that at least one document has."""
        return float(np.nanmean(self.topics)) if np.isfinite(self.topics).any() else float("nan")


def average_precision(truth: Matrix, scores: ArrayLike, known: Matrix | None = None) -> AveragePrecision:
    """Return the average precision of each topic: the quality of the ranking of all documents by score.

    Parameters
    ----------
    truth : {array-like, sparse matrix} of shape (n_documents, n_topics)
        1 where a document has the topic, else 0.
    scores : array (n_documents, n_topics)
        Larger where the topic is more likely.
    known : array of bool (n_documents, n_topics), optional
        Pairs with a known truth; the others are left out. Default: all.

    Returns
    -------
    AveragePrecision

    Examples
    --------
    >>> result = average_precision([[1, 0], [0, 1], [1, 0]], [[0.9, 0.1], [0.5, 0.2], [0.2, 0.0]])
    >>> result.topics.round(3), round(result.macro, 3), round(result.micro, 3)
    (array([0.833, 1.   ]), 0.917, 0.833)
    """
    given, scores, known = _pairs(truth, np.asarray(scores), known)
    judged = np.flatnonzero((given & known).any(axis=0))
    topics = np.full(given.shape[1], np.nan)
    topics[judged] = [_average_precision(given[known[:, k], k], scores[known[:, k], k]) for k in judged]
    pairs = known[:, judged]
    micro = _average_precision(given[:, judged][pairs], scores[:, judged][pairs]) if judged.size else float("nan")
    return AveragePrecision(topics, micro)


@dataclass(frozen=True, eq=False)
class Decisions:
    """Counts of yes-or-no predictions per topic: correct, true and predicted.

    Precision, recall and F1 are 0 where their denominator is 0.
    """

    correct: Array
    true: Array
    predicted: Array

    @property
    def precision(self) -> Array:
        """Share of predicted labels that are correct."""
        return np.asarray(self.correct / np.maximum(self.predicted, 1))

    @property
    def recall(self) -> Array:
        """Share of true labels that were predicted."""
        return np.asarray(self.correct / np.maximum(self.true, 1))

    @property
    def f1(self) -> Array:
        """Harmonic mean of precision and recall."""
        return np.asarray(2 * self.correct / np.maximum(self.true + self.predicted, 1))

    @property
    def micro(self) -> Decisions:
        """The counts of all topics together."""
        return Decisions(*(np.array([counts.sum()]) for counts in (self.correct, self.true, self.predicted)))


def precision_recall(truth: Matrix, predicted: Matrix, known: Matrix | None = None) -> Decisions:
    """Return precision, recall and F1 of yes-or-no predictions, per topic.

    Parameters
    ----------
    truth, predicted : {array-like, sparse matrix} of shape (n_documents, n_topics)
        1 where a document has the topic, and where the topic was predicted.
    known : array of bool (n_documents, n_topics), optional
        Pairs with a known truth; the others are left out. Default: all.

    Returns
    -------
    Decisions

    Examples
    --------
    >>> decisions = precision_recall([[1, 0], [1, 1]], [[1, 1], [0, 1]])
    >>> decisions.precision, decisions.recall, decisions.f1.round(2)
    (array([1. , 0.5]), array([0.5, 1. ]), array([0.67, 0.67]))
    >>> decisions.micro.recall.round(2)
    array([0.67])
    """
    given, marked, known = _pairs(truth, _dense(predicted) > 0, known)
    counted = (given & marked & known, given & known, marked & known)
    return Decisions(*(pairs.sum(axis=0).astype(np.float64) for pairs in counted))


def _average_precision(given: NDArray[np.bool_], scores: NDArray[np.generic]) -> float:
    """Return the mean over the true documents of the precision among all with an equal or higher score."""
    every, right = np.sort(scores), np.sort(scores[given])
    high = every.size - np.searchsorted(every, right)
    return float(np.mean((right.size - np.searchsorted(right, right)) / high))


def _dense(values: Matrix) -> NDArray[Any]:
    return np.asarray(checked_csr(values, "a matrix").toarray() if sp.issparse(values) else values)


def _pairs(truth: Matrix, predictions: NDArray[T], known: Matrix | None) -> tuple[Marks, NDArray[T], Marks]:
    """Check that truth, predictions and known pairs have one shape; all pairs are known by default."""
    given = _dense(truth) > 0
    known = np.ones(given.shape, dtype=np.bool_) if known is None else np.asarray(known, dtype=np.bool_)
    for other in (predictions, known):
        if given.shape != other.shape:
            raise ValueError(f"truth is {given.shape} and the predictions are {other.shape}: use one column per topic.")
    return given, predictions, known
