"""The regressions of the guide on labelled documents and names, and the likelihood that joins scores.

**Softmax and ridge regression** are solved in the coordinates of the examples themselves (:class:`Span`): the singular
vectors of their features. There are at most as many coordinates as examples, or as features, and they are uncorrelated,
so few steps are enough.

**One likelihood** serves documents with one topic and with several (:class:`Mix`). The evidence for topic k in a
document is a weighted sum s_k of a few scores. Its log odds compare it with its rivals:

    log odds_k = s_k − g log Σ_{j≠k} exp(s_j) + b

With g = 1 and b = 0 the probabilities are a softmax: topics exclude each other. With g = 0 topics are independent. The
weights of the scores, the coupling g and the intercept b have the least log loss on labels that were hidden. In a tree,
the rivals of a topic are the topics of its level, with the leaves above: a topic is no rival of its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit

from topicsteer.labels.forest import Forest
from topicsteer.system.types import Array

# --- rivals ---

# Smallest share of the rivals of a topic in the sum of all topics.
LEAST_RIVALS = 1e-7


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
    found = every + np.log(1 - np.minimum(np.exp(S - every), 1 - LEAST_RIVALS))
    found[rows, best] = log_sum(rest)[:, 0]
    return found, every, best, np.exp(rest - found[rows, best][:, None])


# --- regressions ---

# Singular values below this share of the largest are noise, because their squares are in single precision.
NOISE = 1e-3


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled documents, followed by names: features, targets and weights.

    Parameters
    ----------
    D : array (n_examples, dimensions)
    target : array (n_examples, n_topics)
        Topics of each example: the row of a document with several topics sums to 1.
    forbidden : array of bool (n_examples, n_topics)
        Topics that an example does not have.
    weight : array (n_examples,)
        Weight in the ridge regression.
    n_documents : int
        Number of documents; names follow.
    """

    D: Array
    target: Array
    forbidden: NDArray[np.bool_]
    weight: Array
    n_documents: int

    @cached_property
    def mean(self) -> Array:
        """Weighted share of each topic among the documents."""
        own = slice(self.n_documents)
        total = (self.weight[own, None] * (self.forbidden | (self.target > 0))[own]).sum(axis=0)
        return np.asarray((self.weight[own] @ self.target[own]) / np.maximum(total, 1e-9))

    @cached_property
    def centred(self) -> Array:
        """Targets of the ridge regression; 0 where it is unknown whether an example has a topic."""
        known = self.forbidden | (self.target > 0)
        found = np.where(known, self.target - self.mean, 0.0)
        found[self.n_documents :] = (self.target * (1 - self.mean))[self.n_documents :]  # a name is no rival
        return found


def balanced(target: Array) -> Array:
    """Weights of documents that give rare topics more weight: one over the root of their size; the mean is 1.

    Documents whose labels only forbid have the weight 1.
    """
    found = target @ np.maximum(target.sum(axis=0), 1e-9) ** -0.5
    some = found > 0
    found[some] *= some.sum() / max(found.sum(), 1e-30)
    found[~some] = 1
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class Span:
    """Coordinates of the span of some examples.

    Parameters
    ----------
    directions : array (dimensions, rank)
        Orthonormal directions.
    values : array (rank,)
        Squared singular values of the examples along them.
    """

    directions: Array
    values: Array

    @classmethod
    def of(cls, D: Array) -> Span:
        """The span of the rows of D."""
        small = len(D) <= D.shape[1]
        gram = (D @ D.T if small else D.T @ D).astype(np.float64)
        values, vectors = np.linalg.eigh(gram)
        kept = values > NOISE**2 * values.max(initial=1e-30)
        values, vectors = values[kept], vectors[:, kept]
        directions = D.T @ (vectors / np.sqrt(values)).astype(D.dtype) if small else vectors.astype(D.dtype)
        return cls(np.ascontiguousarray(directions), values)

    def outward(self, weights: Array) -> Array:
        """Weights of features from weights of coordinates; a row of intercepts stays as it is."""
        rank = self.directions.shape[1]
        found = self.directions @ weights[:rank].astype(np.float32)
        return np.vstack([found, weights[rank:].astype(np.float32)])


def ridge(F: Array, examples: Examples, strength: float) -> Array:
    """Weights (rank, n_topics) of a ridge regression on the coordinates F of the examples."""
    weighted = F.T * examples.weight.astype(F.dtype)
    A = (weighted @ F).astype(np.float64)
    A.flat[:: len(A) + 1] += strength
    return np.asarray(cho_solve(cho_factor(A, overwrite_a=True), weighted @ examples.centred.astype(F.dtype)))


def softmax_regression(
    F: Array, values: Array, target: Array, rivalry: Rivalry, strength: float, steps: int, start: Array | None = None
) -> Array:
    """Weights (rank + 1, n_topics) of a softmax regression on the coordinates F; the intercepts come last.

    The steps are in coordinates that are scaled by the curvature of the loss.
    """
    n_topics, rank = target.shape[1], F.shape[1]
    scale = 1 / np.sqrt(1 + strength * values / max(n_topics, 2))
    scaled = np.hstack([F * scale.astype(F.dtype), np.ones((len(F), 1), dtype=F.dtype)])
    target = target.astype(F.dtype)
    parts = [(members, judged, target[:, members]) for members, judged in rivalry.cuts]

    def loss(x: Array) -> tuple[float, Array]:
        U = x.reshape(rank + 1, n_topics)
        S = scaled @ U.astype(F.dtype)
        slope = np.zeros_like(S)
        total = 0.0
        for members, _, T in parts:
            own = S[:, members]
            log_p = own - log_sum(own)
            total -= float((T * log_p).sum(dtype=np.float64))
            slope[:, members] += np.exp(log_p) * T.sum(axis=1, keepdims=True) - T
        pull = U[:-1] * (scale**2)[:, None]
        gradient = strength * (scaled.T @ slope).astype(np.float64)
        gradient[:-1] += pull
        return strength * total + 0.5 * float((U[:-1] * pull).sum()), gradient.ravel()

    first = np.zeros((rank + 1) * n_topics)
    if start is not None:
        first = (start / np.append(scale, 1.0)[:, None]).ravel()
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x
    return np.asarray(found.reshape(rank + 1, n_topics) * np.append(scale, 1.0)[:, None])


@dataclass(frozen=True)
class Choice:
    """Settings of the features and the ridge regression.

    Parameters
    ----------
    share : float
        Share of meaning in the features.
    ridge : float
        Strength of the ridge.
    sharpness : float
        Factor from ridge scores to log odds.
    """

    share: float
    ridge: float
    sharpness: float


def left_out_loss(
    examples: Examples, ridges: Sequence[float], sharpnesses: Sequence[float]
) -> list[tuple[float, float, float]]:
    """Log loss, ridge and sharpness of every pair of settings, by leave-one-out scores in closed form."""
    n = examples.n_documents
    root = np.sqrt(examples.weight)[:, None]
    A = root.astype(examples.D.dtype) * examples.D
    span = Span.of(A)
    U = (A @ (span.directions / np.sqrt(span.values)).astype(A.dtype))[:, :]
    R = root * examples.centred
    projected, squares = U.T @ R.astype(U.dtype), np.square(U)
    T = examples.target[:n]
    weight = examples.weight[:n, None] * T
    weight /= max(float(weight.sum()), 1e-30)
    found = []
    for strength in ridges:
        kept = (span.values / (span.values + strength)).astype(U.dtype)
        fitted = U @ (kept[:, None] * projected)
        leverage = np.minimum(squares @ kept, 0.999)[:, None]
        scores = ((fitted - leverage * R) / (1 - leverage) / root)[:n].astype(np.float32)
        for sharpness in sharpnesses:
            S = sharpness * scores
            found.append((float(-(weight * (S - log_sum(S))).sum()), strength, sharpness))
    return found


# --- the likelihood ---


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
