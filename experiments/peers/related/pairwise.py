"""Semi-supervised NMF with pairwise constraints (Chen, Rege, Dong & Hua 2008, doi 10.1007/s10115-008-0134-6).

The similarity A of the documents is raised where two documents must be together, and lowered where they must not:
Ã = A + reward - penalty. Then Ã ≈ G S Gᵀ with G, S ≥ 0, symmetric. Row i of G holds the weights of document i in the
clusters:

    S ← S ∘ √( Gᵀ Ã G / GᵀG S GᵀG )
    G ← G ∘ √( Ã G S / G S GᵀG S )

Sources: the abstract of the paper states must-link and cannot-link pairs and the symmetric tri-factorisation of the
similarity. The rules are derived, because its full text could not be read. Each fraction has the negative part of the
gradient of ‖Ã - G S Gᵀ‖² above and the positive part below. The root only shortens the steps: the stationary
points are the same. Tests show the gradient, and that the objective falls. The weights of pairs and the start are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.peers.rivals import TINY, given, matched
from experiments.shared.internals import Supervision


@dataclass(frozen=True, eq=False)
class Similarity:
    """Ã = XXᵀ with ``change`` added to the rows and columns of the labelled documents; XXᵀ is never computed."""

    X: Any
    rows: np.ndarray
    change: np.ndarray

    def times(self, G: np.ndarray) -> np.ndarray:
        """Ã G."""
        product = self.X @ (self.X.T @ G)
        product[self.rows] += self.change @ G[self.rows]
        return np.asarray(product)


def constrained(X: Any, rows: np.ndarray, Y: np.ndarray, weight: float = 1.0) -> Similarity:
    """Similarity by cosine (rows of X have length 1) with the constraints that follow from labels.

    Two labelled documents must be together if they share a topic, and must not if they share none. A document with
    several topics is so tied to the documents of each. Ã has no negative entries: a penalty lowers it to 0 at most.
    """
    cosines = (X[rows] @ X[rows].T).toarray()
    together = Y @ Y.T > 0
    change = np.where(together, weight, -np.minimum(weight, cosines))
    np.fill_diagonal(change, 0)
    return Similarity(X, rows, change)


def step(similarity: Similarity, G: np.ndarray, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One update of S, then of G."""
    gram = G.T @ G
    S = S * np.sqrt((G.T @ similarity.times(G)) / (gram @ S @ gram + TINY))
    S = (S + S.T) / 2  # against rounding: it stays symmetric
    return G * np.sqrt(similarity.times(G @ S) / (G @ (S @ gram @ S) + TINY)), S


def ss_nmf(X: Any, supervision: Supervision, seed: int, iterations: int = 50) -> np.ndarray:
    """One cluster per topic. Labelled documents start close to their clusters, the others uniform.

    Clusters have no names, so the labelled documents name them one to one.
    """
    rows, Y = given(supervision)
    similarity = constrained(X, rows, Y)
    rng = np.random.default_rng(seed)
    d = Y.shape[1]
    G, S = rng.random((X.shape[0], d)), np.eye(d) + 0.001
    G[rows] *= Y + 0.01
    for _ in range(iterations):
        G, S = step(similarity, G, S)
    return matched(G * np.sqrt(np.diag(S)), supervision, seed)
