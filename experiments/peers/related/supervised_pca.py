"""Supervised principal components (Bair, Hastie, Paul & Tibshirani 2006), one regression per topic.

1. Score each term j by its univariate association with the topic: s_j = x_jᵀ(y - ȳ) / ‖x_j‖, with centred x_j.
2. Keep the terms with the largest |s_j|; cross-validation chooses how many.
3. The first principal component u of the centred, reduced matrix is the predictor: y ≈ ȳ + γ u.

All steps read the labelled documents alone, as in the paper. With several labels per document each topic has its own
response of 0 and 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from experiments.peers.rivals import TINY, given, lowest_elsewhere
from experiments.shared.internals import Supervision

# Numbers of terms that cross-validation chooses from; a topic with few labels has the one in the middle.
SIZES = (25, 100, 400)
# Folds of the cross-validation, and the least number of labels of the topic for it.
FOLDS, LEAST = 3, 6


def associations(X: Any, y: np.ndarray) -> np.ndarray:
    """Association of each term with the response, 0 for constant terms."""
    n, mean = X.shape[0], np.asarray(X.mean(axis=0)).ravel()
    squares = np.asarray(X.multiply(X).sum(axis=0)).ravel() - n * mean**2
    length = np.sqrt(np.maximum(squares, 0))
    return np.where(length > 1e-6, X.T @ (y - y.mean()) / np.maximum(length, TINY), 0)


def direction(X: Any, y: np.ndarray, strongest: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights of the terms and the constant, so that ȳ + γ u = X @ weights + constant."""
    n, part = X.shape[0], X[:, strongest].toarray()
    mean = part.mean(axis=0)
    covariance = part.T @ part - n * np.outer(mean, mean)
    values, vectors = eigh(covariance, subset_by_index=[len(strongest) - 1] * 2)
    v = vectors[:, 0]
    slope = (part @ v - mean @ v) @ (y - y.mean()) / max(values[0], TINY)
    weights = np.zeros(X.shape[1])
    weights[strongest] = slope * v
    return weights, float(y.mean() - slope * mean @ v)


def chosen_size(X: Any, y: np.ndarray, seed: int) -> int:
    """The number of terms with the least squared error on hidden documents."""
    if y.sum() < LEAST:
        return SIZES[len(SIZES) // 2]
    fold_of = np.empty(len(y), dtype=int)
    rng = np.random.default_rng(seed)
    for value in (0, 1):  # each fold has its share of the topic's labels
        own = rng.permutation(np.flatnonzero(y == value))
        fold_of[own] = np.arange(len(own)) % FOLDS
    errors = np.zeros(len(SIZES))
    for fold in range(FOLDS):
        seen = fold_of != fold
        order = np.argsort(-np.abs(associations(X[seen], y[seen])), kind="stable")
        for i, size in enumerate(SIZES):
            weights, constant = direction(X[seen], y[seen], order[:size])
            errors[i] += np.square(y[~seen] - X[~seen] @ weights - constant).sum()
    return SIZES[int(errors.argmin())]


def supervised_pca(X: Any, supervision: Supervision, seed: int) -> np.ndarray:
    """Fitted responses of all documents."""
    rows, Y = given(supervision)
    labelled = sp.csc_array(X[rows].astype(np.float64))
    weights, constants = np.zeros((Y.shape[1], X.shape[1])), np.zeros(Y.shape[1])
    for k in np.flatnonzero(Y.any(axis=0)):
        y = Y[:, k]
        order = np.argsort(-np.abs(associations(labelled, y)), kind="stable")
        weights[k], constants[k] = direction(labelled, y, order[: chosen_size(labelled, y, seed)])
    return lowest_elsewhere(np.asarray(X @ weights.T) + constants, Y)
