"""One likelihood for documents with one topic and with several: log odds from evidence, with a learnt coupling.

The evidence for topic k in a document is a weighted sum s_k of a few scores. Its log odds compare it with its rivals:

    log odds_k = s_k − g log Σ_{j≠k} exp(s_j) + b

With g = 1 and b = 0 the probabilities are a softmax: topics exclude each other. With g = 0 topics are independent. The
weights of the scores, the coupling g and the intercept b have the least log loss on labels that were hidden.

In a tree, the rivals of a topic are the topics of its level, with the leaves above: a topic is no rival of its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from topicsteer.labels.forest import Forest
from topicsteer.system.types import Array

# Smallest share of the rivals of a topic in the sum of all topics.
LEAST = 1e-7


@dataclass(frozen=True)
class Rivalry:
    """Which topics exclude each other.

    Parameters
    ----------
    cuts : tuple of (array of int, array of int)
        For each level: the topics that exclude each other, and the places among them of the topics that the level
        judges. Each topic is judged by one level.
    """

    cuts: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]

    @classmethod
    def of(cls, forest: Forest, topics: NDArray[np.int64], more: int = 0) -> Rivalry:
        """Rivalry of the classes ``topics`` of a forest; ``more`` further classes are rivals of all."""
        n = len(topics)
        others = np.arange(n, n + more)
        if forest.flat or not len(forest):
            every = np.arange(n + more)
            return cls(((every, every),))
        part = forest.part(topics.tolist())  # a topic without covered topics below is a leaf
        cuts = []
        for level, cut in enumerate(part.cuts):
            judged = [i for i, position in enumerate(cut) if part.depth[position] == level]
            if level == 0:
                judged += range(len(cut), len(cut) + more)
            cuts.append((np.append(cut, others).astype(np.int64), np.array(judged, dtype=np.int64)))
        return cls(tuple(cuts))

    def with_more(self, more: int, n: int) -> Rivalry:
        """The rivalry with further classes after the n present ones, which are rivals of all."""
        added = np.arange(n, n + more)
        first, *rest = self.cuts
        judged = np.append(first[1], len(first[0]) + np.arange(more))
        cuts = [(np.append(first[0], added), judged), *((np.append(own, added), places) for own, places in rest)]
        return Rivalry(tuple(cuts))

    def others(self, S: Array) -> Array:
        """Log of the summed exponentials of the rivals of each topic; 0 for a topic without rivals."""
        out = np.zeros_like(S)
        for members, judged in self.cuts:
            if len(members) > 1:
                out[:, members[judged]] = _others(S[:, members])[0][:, judged]
        return out

    def log_softmax(self, S: Array) -> Array:
        """Log probabilities if the topics of each level exclude each other."""
        out = np.empty_like(S)
        for members, judged in self.cuts:
            own = S[:, members]
            out[:, members[judged]] = (own - log_sum(own))[:, judged]
        return out


def log_sum(S: Array) -> Array:
    """Log of the sum of exponentials of each row, as a column."""
    most = S.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(S - most).sum(axis=1, keepdims=True)) + most)


def _others(S: Array) -> tuple[Array, Array, NDArray[np.intp], Array]:
    """Log sums of the other columns; log sums of all; the best column, and the softmax of the others for it."""
    rows, best, every = np.arange(len(S)), S.argmax(axis=1), log_sum(S)
    rest = S.copy()
    rest[rows, best] = -np.inf
    found = every + np.log(1 - np.minimum(np.exp(S - every), 1 - LEAST))
    found[rows, best] = log_sum(rest)[:, 0]
    return found, every, best, np.exp(rest - found[rows, best][:, None])


@dataclass(frozen=True, eq=False)
class Mix:
    """Weights of the scores, coupling and intercept."""

    weights: Array
    coupling: float
    intercept: float

    def total(self, scores: Sequence[Array]) -> Array:
        """The weighted sum of scores (n_documents, n_topics)."""
        out = np.float32(self.weights[0]) * scores[0]
        for weight, score in zip(self.weights[1:], scores[1:], strict=True):
            out += np.float32(weight) * score
        return np.asarray(out)

    def odds(self, scores: Sequence[Array], rivalry: Rivalry) -> Array:
        """Log odds of each topic."""
        S = self.total(scores)
        return np.asarray(S - np.float32(self.coupling) * rivalry.others(S) + np.float32(self.intercept))

    @property
    def vector(self) -> Array:
        """All numbers."""
        return np.array([*self.weights, self.coupling, self.intercept])

    @classmethod
    def of(cls, vector: Array) -> Mix:
        """The mix of these numbers."""
        return cls(np.asarray(vector[:-2], dtype=np.float64), float(vector[-2]), float(vector[-1]))


# Largest coupling: slightly more than that of a softmax.
MAX_COUPLING = 1.5


def learn_mix(scores: Sequence[Array], given: Array, weight: Array, rivalry: Rivalry, start: Mix) -> Mix:
    """The mix with the least log loss on hidden labels.

    Parameters
    ----------
    scores : sequence of arrays (n_documents, n_topics)
        Scores of labelled documents whose own labels were hidden.
    given : array (n_documents, n_topics)
        1 for topics that a document has.
    weight : array (n_documents, n_topics)
        Weight of each pair; 0 where the label is unknown.
    rivalry : Rivalry
    start : Mix
        The mix is pulled to it by a weak prior, one squared unit of each weight relative to its start.
    """
    A = np.stack([np.asarray(score, dtype=np.float64) for score in scores], axis=-1)
    k = A.shape[-1]
    unit = np.append(start.weights, [1.0, 1.0])
    origin = np.append(np.ones(k), [start.coupling, start.intercept])

    def loss(x: Array) -> tuple[float, Array]:
        total, gradient = log_loss(x * unit, A, given, weight, rivalry)
        return total + float(((x - origin) ** 2).sum()), gradient * unit + 2 * (x - origin)

    bounds = [(0.0, None)] * k + [(0.0, MAX_COUPLING), (None, None)]
    return Mix.of(minimize(loss, origin, jac=True, method="L-BFGS-B", bounds=bounds).x * unit)


def log_loss(vector: Array, A: Array, given: Array, weight: Array, rivalry: Rivalry) -> tuple[float, Array]:
    """Log loss of the mix of these numbers, and its gradient; A are the scores (n_documents, n_topics, n_scores)."""
    *_, g, b = vector
    S = A @ vector[:-2]
    total, gradient = 0.0, np.zeros(len(vector))
    for members, judged in rivalry.cuts:
        own, Y = S[:, members], given[:, members]
        seen = np.zeros(len(members))
        seen[judged] = 1
        c = weight[:, members] * seen
        found = _others(own) if len(members) > 1 else None
        others = np.zeros(own.shape) if found is None else found[0]
        odds = own - g * others + b
        total += float((c * (np.logaddexp(0, odds) - Y * odds)).sum())
        r = np.asarray(c * (expit(odds) - Y))
        slope = r.copy()
        if found is not None:
            _, every, best, softmax = found
            rows = np.arange(len(own))
            at_best = r[rows, best].copy()
            spread = r * np.exp(np.minimum(every - others, 50))
            spread[rows, best] = 0
            shared = np.exp(own - every) * (spread.sum(axis=1, keepdims=True) - spread)
            slope -= g * (shared + at_best[:, None] * softmax)
        gradient[:-2] += np.einsum("nk,nkj->j", slope, A[:, members])
        gradient[-2] -= float((r * others).sum())
        gradient[-1] += float(r.sum())
    return total, gradient
