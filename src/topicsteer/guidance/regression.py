"""Two regressions on the dense features of labelled documents and names: softmax and ridge, and their settings.

Both are solved in the coordinates of the examples themselves (:class:`Span`): the singular vectors of their features.
There are at most as many coordinates as examples, or as features, and they are uncorrelated, so few steps are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from topicsteer.guidance.likelihood import Rivalry, log_sum
from topicsteer.system.types import Array

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
    times : array (n_examples,)
        How often an example counts in the softmax regression: the confidence of its label.
    n_documents : int
        Number of documents; names follow.
    """

    D: Array
    target: Array
    forbidden: NDArray[np.bool_]
    weight: Array
    times: Array
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
    name : float
        Weight of a name relative to a labelled document.
    ridge : float
        Strength of the ridge.
    sharpness : float
        Factor from ridge scores to log odds.
    """

    share: float
    name: float
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
