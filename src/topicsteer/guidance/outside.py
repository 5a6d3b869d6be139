"""The outside: the probability that a document has none of the known topics.

Labels alone cannot show it, because most labelled documents have a known topic. The unlabelled documents can: a ridge
regression learns each topic from its labels, with all unlabelled documents as weak examples without a topic. A document
has much evidence if it scores like documents whose labels were hidden (Elkan & Noto, 2008). The comparison of hidden
labelled documents with unlabelled ones shows how many documents have no known topic, and how sure that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from topicsteer.guidance.latent import ROWS, cross_gram
from topicsteer.labels.supervision import PERMITTED, assign_folds
from topicsteer.nmf.blocks import slices
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array

# Weight of a labelled document relative to an unlabelled one.
LABELLED_WEIGHT = 20.0
# Strength of the ridge.
RIDGE = 100.0
# Number of folds in which labels are hidden.
FOLDS = 3
# Hidden documents of a topic are averaged with this many documents of a typical topic.
TYPICAL_DOCUMENTS = 5
# Topics with fewer labels than this do not show how much evidence is normal.
FEW_LABELS = 8
# Range of the probability where labels are too few to estimate it: from most to least evidence.
FEW_RANGE = (0.25, 0.75)
# The world is open if at least this share of the documents seems to have no known topic.
OPEN_SHARE = 0.1
# It must also be this many standard errors above 0: the mean of the tails, or the estimate of one tail.
OPEN_ERRORS = (2.0, 3.0)
# With few labels per topic, which hardly show the size of topics, it must be this many times as far from 0.
FEW_LABELS_FACTOR = 2.5
# Shares of hidden documents with less evidence, at which hidden and unlabelled documents are compared.
TAILS = (0.2, 0.35, 0.5, 0.65, 0.8)
# Points at which the map from evidence to probability is stored.
POINTS = 129


@dataclass(frozen=True, eq=False)
class Outside:
    """From the dense features of documents to the probability that they have no known topic.

    Parameters
    ----------
    weights : array (n_folds, dimensions, n_known)
        Ridge regression of each fold.
    normal : array (n_folds, n_known)
        Mean score of hidden documents of each topic.
    evidence, probability : array (n_points,)
        The map from evidence (ascending) to the probability of no known topic (descending).
    """

    weights: Array
    normal: Array
    evidence: Array
    probability: Array

    def none(self, D: Array) -> NDArray[np.float32]:
        """Probability of no known topic for documents with the features D, averaged over folds."""
        found = [
            np.interp(_evidence(D @ weights, normal), self.evidence, self.probability)
            for weights, normal in zip(self.weights, self.normal, strict=True)
        ]
        return np.asarray(np.mean(found, axis=0), dtype=np.float32)


@dataclass(frozen=True)
class ShareOutside:
    """Estimated share of the unlabelled documents that have no known topic.

    ``errors`` are the distances of the mean from 0, and of the farthest of the `TAILS`, in standard errors. ``few``:
    topics have few labels.
    """

    share: float
    errors: tuple[float, float]
    few: bool = False

    @property
    def is_large(self) -> bool:
        """Whether the share would matter if it were no accident."""
        return self.share >= OPEN_SHARE

    @property
    def is_open(self) -> bool:
        """Whether the estimate shows that there are such documents."""
        factor = FEW_LABELS_FACTOR if self.few else 1.0
        beyond = any(error >= factor * least for error, least in zip(self.errors, OPEN_ERRORS, strict=True))
        return self.is_large and beyond

    @classmethod
    def of(cls, shares: Sequence[Array], document_weight: Array, few: bool) -> ShareOutside:
        """The estimate from shares at the tails, one array per fold, and the weights of labelled documents."""
        if not len(shares):
            return cls(0.0, (0.0, 0.0), few)
        found, tails = np.mean(shares, axis=0), np.array(TAILS)
        mean = float(found.mean())
        root = float(document_weight.sum() / np.linalg.norm(document_weight))  # of the effective number of labels
        return cls(mean, (mean * root, float((found * np.sqrt((1 - tails) / tails)).max()) * root), few)


def learn_outside(
    D: Array,
    states: NDArray[np.int8],
    probabilities: Array,
    names: Array,
    named: NDArray[np.int64],
    run: OrderedMap = map,
) -> tuple[Outside, ShareOutside]:
    """Learn the outside; also return the estimated share of unlabelled documents in it.

    Parameters
    ----------
    D : array (n_documents, dimensions)
        Features of the labelled documents, followed by unlabelled ones.
    states : array of int (n_labelled, n_known)
        Label states of the labelled documents.
    probabilities : array (n_documents, n_known)
        Probability of each known topic under the assumption that every document has one.
    names : array (n_named, dimensions)
        Features of the names of topics, which count as labelled documents.
    named : array of int (n_named,)
        Topics of these names.
    run : OrderedMap
        An ordered parallel map.
    """
    n, known = len(states), states.shape[1]
    given = states == PERMITTED
    fold_of = assign_folds(sp.csr_array(given), FOLDS, seed=0)
    target = given / np.maximum(given.sum(axis=1, keepdims=True), 1)
    gram = cross_gram(D, D, run) + RIDGE * np.eye(D.shape[1])
    gram += LABELLED_WEIGHT * (names.T @ names)
    from_names = np.zeros((D.shape[1], known))
    np.add.at(from_names.T, named, names)
    document_weight = documents_per_label(given, probabilities)

    def one(fold: int) -> tuple[Array, Array, Array]:
        """Weights with the labels of a fold hidden, usual scores of its topics, and evidence of all documents."""
        visible = fold_of != fold
        own = D[:n][visible].astype(np.float64)
        cross = LABELLED_WEIGHT * (own.T @ target[visible] + from_names)
        solved = cho_solve(cho_factor(gram + (LABELLED_WEIGHT - 1) * (own.T @ own)), cross).astype(np.float32)
        scores = D @ solved
        usual = _usual(scores[:n][~visible], given[~visible])
        return solved, usual, _evidence(scores, usual)

    weights, normal, unlabelled, middles, shares = [], [], [], [], []
    for fold, (solved, usual, found) in enumerate(run(one, range(max(int(fold_of.max(initial=-1)) + 1, 1)))):
        hidden = fold_of == fold
        weights.append(solved)
        normal.append(usual)
        unlabelled.append(found[n:])
        if hidden.any() and n < len(D):
            levels, reached = _tails(found[:n][hidden], document_weight[hidden])
            middles.append(levels[len(levels) // 2])
            above = (found[n:, None] >= levels).mean(axis=0)
            shares.append(np.maximum(1 - above / reached, 0))
    levels = np.quantile(np.concatenate(unlabelled), np.linspace(0, 1, POINTS)) if n < len(D) else np.zeros(1)
    few = few_labels(given)
    estimate = ShareOutside.of(shares, document_weight, few)
    middle = float(np.mean(middles)) if middles else 0.0
    chance = np.linspace(*FEW_RANGE[::-1], len(levels)) if few else _probability(levels, middle, estimate.share)
    return Outside(np.ascontiguousarray(weights), np.stack(normal), levels, chance), estimate


def few_labels(given: NDArray[np.bool_]) -> bool:
    """Whether the topics have too few labels to estimate the outside from them."""
    counts = given.sum(axis=0)
    return bool(np.median(counts[counts > 0], axis=0) < FEW_LABELS) if counts.any() else True


def _evidence(scores: Array, normal: Array) -> Array:
    """Evidence of any known topic: the root of the length of the scores relative to normal ones."""
    found = np.empty(len(scores))
    for rows in slices(len(scores), ROWS):
        found[rows] = np.sqrt(np.linalg.norm(np.maximum(scores[rows] / normal, 0), axis=1))
    return found


def _usual(scores: Array, given: NDArray[np.bool_]) -> Array:
    """Mean score of each topic in its hidden documents, shrunk towards the mean of all topics."""
    total, count = (scores * given).sum(axis=0), given.sum(axis=0)
    typical = max(float(total.sum() / max(count.sum(), 1)), 1e-6)
    return np.asarray(np.maximum((total + TYPICAL_DOCUMENTS * typical) / (count + TYPICAL_DOCUMENTS), 1e-6))


def documents_per_label(given: NDArray[np.bool_], probabilities: Array) -> Array:
    """Number of documents that a labelled document stands for.

    People label three documents per topic rather than a random sample. The chance of a label is then the sum over the
    topics of a document of labels per document.
    """
    chance = given @ (given.sum(axis=0) / np.maximum(probabilities.sum(axis=0), 1))
    return np.asarray(np.where(given.any(axis=1), 1 / np.maximum(chance, 1e-9), 0))


def _tails(evidence: Array, weight: Array) -> tuple[Array, Array]:
    """Evidence at the `TAILS` of hidden documents, and their share with at least this much evidence."""
    order = np.argsort(evidence, kind="stable")
    total = np.cumsum(weight[order])
    first = np.minimum(np.searchsorted(total, np.array(TAILS) * total[-1]), len(order) - 1)
    levels = evidence[order][first]
    return levels, np.array([weight[evidence >= level].sum() for level in levels]) / max(total[-1], 1e-9)


def _probability(levels: Array, middle: float, share: float) -> Array:
    """Probability of no known topic at each level of evidence, equally frequent levels; the mean is the share.

    It is 0 from the middle of the hidden documents on, and rises towards 1 for less evidence.
    """
    below = np.minimum(levels - middle, 0)
    slope = 1.0
    if share <= 0 or not below.any():
        return np.zeros(len(levels))
    low, high = 0.0, 1e3 / float(-below.min())
    for _ in range(50):
        slope = (low + high) / 2
        low, high = (slope, high) if (1 - np.exp(slope * below)).mean() < share else (low, slope)
    return np.asarray(1 - np.exp(slope * below))
