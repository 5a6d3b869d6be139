"""Supervised singular value decomposition (Li, Yang, Nobel & Shen 2016) by the EM algorithm of the paper.

The model has a low-rank X whose factors depend on the labels Y. Both are centred:

    X = U Vᵀ + E,   U = Y B + F,   rows of F ~ N(0, Σ) with Σ diagonal,   entries of E ~ N(0, σ²),   VᵀV = I

Without a relation between U and Y it is probabilistic PCA. In the E step U has a normal distribution given X. The M
step maximises over B, Σ, σ² and V, and an eigendecomposition of V Σ Vᵀ makes V orthonormal and Σ diagonal again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from experiments.peers.rivals import given, lowest_elsewhere
from experiments.shared.internals import Supervision

# Largest rank, and iterations of EM.
RANK, ITERATIONS = 100, 50
# Variances stay above this share of the variance of an entry of X.
FLOOR = 1e-6


@dataclass(frozen=True, eq=False)
class Centred:
    """A sparse matrix minus its column means, which is never computed."""

    X: Any
    mean: np.ndarray

    def times(self, V: np.ndarray) -> np.ndarray:
        """The matrix times V."""
        return np.asarray(self.X @ V) - self.mean @ V

    def transposed_times(self, U: np.ndarray) -> np.ndarray:
        """Its transpose times U."""
        return np.asarray(self.X.T @ U) - np.outer(self.mean, U.sum(axis=0))

    def squares(self) -> float:
        """Sum of its squared entries."""
        return float(self.X.multiply(self.X).sum() - self.X.shape[0] * self.mean @ self.mean)


@dataclass(frozen=True, eq=False)
class Model:
    """Loadings V, regression B, the variances Σ of the factors, and the variance σ² of the noise."""

    V: np.ndarray
    B: np.ndarray
    variances: np.ndarray
    noise: float


def first_model(X: Centred, Y: np.ndarray, rank: int, seed: int) -> Model:
    """Start from the singular value decomposition, as the paper does."""
    n, p = X.X.shape
    V = randomized_svd(X.X, rank, n_iter=4, random_state=seed)[2].T
    U = X.times(V)
    B = np.linalg.lstsq(Y, U, rcond=1e-9)[0]
    least = FLOOR * X.squares() / (n * p)
    noise = max((X.squares() - np.square(U).sum()) / (n * p), least)
    return Model(V, B, np.maximum(np.square(U - Y @ B).mean(axis=0), least), noise)


def em_step(X: Centred, Y: np.ndarray, solve: np.ndarray, model: Model) -> Model:
    """One iteration; ``solve`` is the pseudo-inverse of Y."""
    n, p = X.X.shape
    V, B, noise = model.V, model.B, model.noise
    variance = 1 / (1 / noise + 1 / model.variances)  # of U given X, the same for all documents
    U = (X.times(V) / noise + (Y @ B) / model.variances) * variance
    second = U.T @ U + n * np.diag(variance)  # E[UᵀU]
    B = solve @ U
    fitted = Y @ B
    across = fitted.T @ U
    covariance = (second + fitted.T @ fitted - across - across.T) / n
    crossed = X.transposed_times(U)
    V = np.linalg.solve(second, crossed.T).T
    noise = (X.squares() - 2 * float((V * crossed).sum()) + float(((V.T @ V) * second).sum())) / (n * p)
    least = FLOOR * X.squares() / (n * p)
    return orthonormal(V, B, covariance, max(noise, least), least)


def orthonormal(V: np.ndarray, B: np.ndarray, covariance: np.ndarray, noise: float, least: float) -> Model:
    """The same model with orthonormal loadings and independent factors: V Σ Vᵀ = Q R Σ Rᵀ Qᵀ."""
    Q, R = np.linalg.qr(V)
    values, turn = np.linalg.eigh(R @ covariance @ R.T)
    order = np.argsort(-values, kind="stable")
    turn = turn[:, order]
    return Model(Q @ turn, B @ R.T @ turn, np.maximum(values[order], least), noise)


def log_likelihood(X: Centred, Y: np.ndarray, model: Model) -> float:
    """Of X given Y, without the constant."""
    n, p = X.X.shape
    rank, spread = len(model.variances), model.variances + model.noise
    U, fitted = X.times(model.V), Y @ model.B
    inside = float((np.square(U - fitted) / spread).sum())
    outside = (X.squares() - float(np.square(U).sum())) / model.noise
    return -0.5 * (n * float(np.log(spread).sum()) + n * (p - rank) * np.log(model.noise) + inside + outside)


def supsvd(X: Any, supervision: Supervision, seed: int) -> np.ndarray:
    """Log odds of each topic by the densities of the model, with and without the topic.

    The model is fitted to the labelled documents, with one column of Y per topic, so that a document may have several.
    The other topics of a document are taken at their means. Its density given a topic is normal.
    """
    rows, Y = given(supervision)
    covered = np.flatnonzero(Y.any(axis=0))
    labelled = X[rows].astype(np.float64)
    frequency = Y[:, covered].mean(axis=0)
    centred = Centred(labelled, np.asarray(labelled.mean(axis=0)).ravel())
    response = Y[:, covered] - frequency
    solve = np.linalg.pinv(response, rcond=1e-9)  # with one label per document the columns add up to 0
    model = first_model(centred, response, max(1, min(RANK, len(covered), len(rows) // 2)), seed)
    for _ in range(ITERATIONS):
        model = em_step(centred, response, solve, model)
    scores = np.zeros((X.shape[0], Y.shape[1]))
    scores[:, covered] = log_odds(Centred(X, centred.mean).times(model.V), model, frequency)
    return lowest_elsewhere(scores, Y)


def log_odds(U: np.ndarray, model: Model, frequency: np.ndarray) -> np.ndarray:
    """Log odds of each topic from projected documents, with the frequency of the topic among the labels."""
    scaled = model.B / (model.variances + model.noise)
    half = (scaled * model.B).sum(axis=1) * (0.5 - frequency)  # the absent topic lies at -frequency, not at 0
    usual = np.clip(frequency, 1e-6, 1 - 1e-6)
    return np.asarray(U @ scaled.T - half + np.log(usual / (1 - usual)))
