"""The outside: the probability that a document has none of the known topics.

Labels alone cannot show it, because most labelled documents have a known topic. The unlabelled documents can: a ridge
regression learns each topic from its labels, with all unlabelled documents as weak examples without a topic. A document
has much evidence if it scores like documents whose labels were hidden (Elkan & Noto, 2008). The comparison of hidden
labelled documents with unlabelled ones turns evidence into a probability.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import LogisticRegression

from topicsteer.labels.folds import assign_folds
from topicsteer.labels.supervision import PERMITTED
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


def learn_outside(
    D: Array, states: NDArray[np.int8], probabilities: Array, names: Array, named: NDArray[np.int64]
) -> tuple[Outside, float]:
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
    """
    n, known = len(states), states.shape[1]
    given = states == PERMITTED
    fold_of = assign_folds(sp.csr_array(given), FOLDS, seed=0)
    target = given / np.maximum(given.sum(axis=1, keepdims=True), 1)
    gram = (D.T @ D).astype(np.float64) + RIDGE * np.eye(D.shape[1])
    gram += LABELLED_WEIGHT * (names.T @ names)
    from_names = np.zeros((D.shape[1], known))
    np.add.at(from_names.T, named, names)
    weights, normal, inside, outside = [], [], [], []
    for fold in range(max(int(fold_of.max(initial=-1)) + 1, 1)):
        visible, hidden = fold_of != fold, fold_of == fold
        own = D[:n][visible].astype(np.float64)
        cross = LABELLED_WEIGHT * (own.T @ target[visible] + from_names)
        solved = cho_solve(cho_factor(gram + (LABELLED_WEIGHT - 1) * (own.T @ own)), cross).astype(np.float32)
        scores = D @ solved
        usual = _usual(scores[:n][hidden], given[hidden])
        found = _evidence(scores, usual)
        weights.append(solved)
        normal.append(usual)
        inside.append((found[:n][hidden], hidden))
        outside.append(found[n:])
    middle, slope = _compare(inside, outside, given, probabilities)
    levels = np.quantile(np.concatenate(outside), np.linspace(0, 1, POINTS)) if n < len(D) else np.zeros(1)
    chance = 1 - np.exp(np.minimum(0, slope * (levels - middle)))
    share = float(np.mean([np.interp(found, levels, chance).mean() for found in outside])) if n < len(D) else 0.0
    if few_labels(given):
        chance = np.linspace(FEW_RANGE[1], FEW_RANGE[0], len(levels))
    return Outside(np.ascontiguousarray(weights), np.stack(normal), levels, chance), share


def few_labels(given: NDArray[np.bool_]) -> bool:
    """Whether the topics have too few labels to estimate the outside from them."""
    counts = given.sum(axis=0)
    return bool(np.median(counts[counts > 0], axis=0) < FEW_LABELS) if counts.any() else True


def _evidence(scores: Array, normal: Array) -> Array:
    """Evidence of any known topic: the root of the length of the scores relative to normal ones."""
    return np.asarray(np.sqrt(np.linalg.norm(np.maximum(scores / normal, 0), axis=1)))


def _usual(scores: Array, given: NDArray[np.bool_]) -> Array:
    """Mean score of each topic in its hidden documents, shrunk towards the mean of all topics."""
    total, count = (scores * given).sum(axis=0), given.sum(axis=0)
    typical = max(float(total.sum() / max(count.sum(), 1)), 1e-6)
    return np.asarray(np.maximum((total + TYPICAL_DOCUMENTS * typical) / (count + TYPICAL_DOCUMENTS), 1e-6))


def _compare(
    inside: list[tuple[Array, NDArray[np.bool_]]],
    outside: list[Array],
    given: NDArray[np.bool_],
    probabilities: Array,
) -> tuple[float, float]:
    """Median evidence of hidden documents, and how fast evidence separates them from unlabelled documents.

    People label three documents per topic rather than a random sample: a hidden document weighs as much as its topic
    has documents per label.
    """
    sizes = np.maximum(probabilities.sum(axis=0), 1) / np.maximum(given.sum(axis=0), 1)
    found = np.concatenate([evidence for evidence, _ in inside])
    weight = np.concatenate([given[hidden] @ sizes / np.maximum(given[hidden].sum(axis=1), 1) for _, hidden in inside])
    background = np.concatenate(outside)
    if not found.size or not background.size:
        return 0.0, 0.0
    order = np.argsort(found, kind="stable")
    total = np.cumsum(weight[order])
    middle = float(found[order][np.searchsorted(total, total[-1] / 2)])
    evidence = np.concatenate([found, background])[:, None]
    is_hidden = np.repeat([True, False], [len(found), len(background)])
    balance = np.concatenate([weight * (len(background) / total[-1]), np.ones(len(background))])
    model = LogisticRegression(C=1e6, max_iter=1000).fit(evidence, is_hidden, sample_weight=balance)
    return middle, max(float(model.coef_[0, 0]), 0.0)
