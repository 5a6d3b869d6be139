"""Free topics of a corpus whose documents have several topics each: components of its latent semantics.

Such documents do not form groups, since each is a mixture. A rotation of the latent directions separates the mixture:
varimax looks for components that few documents have, and those strongly (Rohe & Zeng, 2023). As many components as
known and free topics are rotated. The most concentrated ones are free topics, except for doubles of known topics.
Known topics are not subtracted first: in such corpora topics overlap, and the remainder describes no topic. A ridge
regression on all features then smooths each component.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit

from topicsteer.system.types import Array

# Iterations of the rotation, and the number of documents that it is computed from.
ITERATIONS, ROTATION_DOCUMENTS = 20, 5_000
# A component is a known topic if their correlation is at least this.
KNOWN = 0.8
# Strength of the ridge.
RIDGE = 100.0
# Log odds of the average document with the component.
TYPICAL_ODDS = 6.0


@dataclass(frozen=True, eq=False)
class Components:
    """From the dense features of documents to the probability of each free topic.

    Parameters
    ----------
    weights : array (dimensions, n_components)
        Weights of the features.
    levels : array (n_components,)
        Score at which the probability is one half.
    slopes : array (n_components,)
        Log odds per score.
    """

    weights: Array
    levels: Array
    slopes: Array

    def select(self, columns: Sequence[int]) -> Components:
        """Some of the components."""
        chosen = np.array(columns, dtype=np.int64)
        return Components(self.weights[:, chosen], self.levels[chosen], self.slopes[chosen])

    def probabilities(self, D: Array) -> Array:
        """Probability of each component in documents with the features D."""
        return np.asarray(expit((D @ self.weights - self.levels) * self.slopes), dtype=np.float32)


def find_components(D: Array, positions: Array, known: Array, n_free: int) -> Components | None:
    """The free topics; None if the latent semantics have too few directions.

    Parameters
    ----------
    D : array (n_documents, dimensions)
        Features of documents.
    positions : array (n_documents, q)
        Their latent positions, leading directions first.
    known : array (n_documents, n_known)
        Probability of each known topic.
    n_free : int
        Number of free topics that are wanted.
    """
    Z = positions[:, : known.shape[1] + n_free].astype(np.float64)
    if Z.shape[1] < n_free or len(Z) <= Z.shape[1]:
        return None
    loadings = rotated(Z)
    # Number of documents that would make up the component if all of them had it equally.
    second, fourth = (loadings**2).sum(axis=0), (loadings**4).sum(axis=0)
    documents = second**2 / np.maximum(fourth, 1e-30)
    is_known = _correlation(loadings, known).max(axis=1, initial=0) >= KNOWN
    kept = np.sort(np.lexsort((documents, is_known))[:n_free])
    target = (loadings[:, kept] / np.maximum(loadings[:, kept].max(axis=0), 1e-30)) ** 2
    return _learn(D, target, documents[kept])


def _correlation(A: Array, B: Array) -> Array:
    """Correlation of each column of A with each column of B."""
    A, B = A - A.mean(axis=0), B.astype(np.float64) - B.mean(axis=0)
    lengths = np.linalg.norm(A, axis=0)[:, None] * np.linalg.norm(B, axis=0)
    return np.asarray(A.T @ B / np.maximum(lengths, 1e-30))


def learn_components(D: Array, probabilities: Array) -> Components:
    """The components with these probabilities in documents with the features D."""
    return _learn(D, probabilities.astype(np.float64), probabilities.sum(axis=0, dtype=np.float64))


def _learn(D: Array, target: Array, documents: Array) -> Components:
    """Ridge regression of each component; as many documents as it has get a probability above one half.

    A component without documents has a level that no document reaches.
    """
    gram = (D.T @ D).astype(np.float64) + RIDGE * np.eye(D.shape[1])
    weights = cho_solve(cho_factor(gram), D.T.astype(np.float64) @ target).astype(np.float32)
    ranked, each = -np.sort(-(D @ weights), axis=0), np.arange(target.shape[1])
    last = np.clip(np.rint(documents).astype(np.int64), 1, len(ranked) - 1)
    levels = ranked[last, each].astype(np.float64)
    levels[documents < 0.5] = 1
    typical = np.cumsum(ranked, axis=0, dtype=np.float64)[last - 1, each] / last
    return Components(weights, levels, TYPICAL_ODDS / np.maximum(typical - levels, 1e-6))


def rotated(Z: Array) -> Array:
    """Positive parts of the columns of Z after whitening and :func:`varimax`; the strong side is positive."""
    root = np.linalg.cholesky(Z.T @ Z + 1e-9 * max(float((Z**2).sum()), 1e-30) * np.eye(Z.shape[1]))
    U = solve_triangular(root, Z.T, lower=True).T.astype(np.float32)
    loadings = (U @ varimax(U[:: -(-len(U) // ROTATION_DOCUMENTS) or 1])).astype(np.float64)
    return np.asarray(np.maximum(loadings * np.where((loadings**3).sum(axis=0) < 0, -1, 1), 0))


def varimax(U: Array) -> Array:
    """The rotation after which each column of U is concentrated in few rows."""
    k = U.shape[1]
    rotation = np.eye(k, dtype=U.dtype)
    for _ in range(ITERATIONS):
        turned = U @ rotation
        left, _, right = np.linalg.svd(U.T @ (turned**3 - turned * (turned**2).mean(axis=0)))
        rotation = left @ right
    return np.asarray(rotation)
