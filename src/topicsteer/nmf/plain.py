"""Topic weights of a few documents in plain numpy: no compiled kernel has to be loaded for them."""

import numpy as np
import scipy.sparse as sp

from topicsteer.system.types import Array

# Sweeps of coordinate descent at most, and the relative change that ends them.
SWEEPS, TOLERANCE = 1_000, 1e-7


def few_weights(
    X: sp.csr_array, H: Array, penalties: sp.csr_array | None = None, *, l1: float = 0.0, l2: float = 0.0
) -> Array:
    """Topic weights of documents for a fixed H: the result of `topicsteer.TSNMF.transform`, up to rounding.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
    H : array (n_topics, n_terms)
    penalties : CSR (n_documents, n_topics), optional
        As in `topicsteer.TSNMF.fit`: a row with entries permits only these topics, each at its penalty.
    l1, l2 : float
        Strength of the penalties on W.

    Returns
    -------
    array (n_documents, n_topics)
    """
    exact = np.asarray(H, dtype=np.float64)
    gram = exact @ exact.T + l2 * np.eye(len(H))
    gradients = l1 - np.asarray(X.astype(np.float64) @ exact.T)
    if penalties is not None:
        lengths = np.linalg.norm(exact, axis=1)  # penalties are defined for rows of H of length 1
        for i in range(X.shape[0]):
            stored = slice(penalties.indptr[i], penalties.indptr[i + 1])
            topics = penalties.indices[stored]
            if topics.size:
                only = np.full(len(H), np.inf)
                only[topics] = gradients[i, topics] + penalties.data[stored] * lengths[topics]
                gradients[i] = only
    return np.stack([_solve(gram, g) for g in gradients]).astype(H.dtype) if X.shape[0] else np.zeros((0, len(H)))


def _solve(gram: Array, gradient: Array) -> Array:
    """Minimise ½ w gram wᵀ + gradient w over w ≥ 0 by coordinate descent, from w = 0."""
    w, g = np.zeros(len(gram)), gradient.copy()
    for _ in range(SWEEPS):
        furthest = 0.0
        for k in np.flatnonzero((w > 0) | (g < 0)):
            new = max(w[k] - g[k] / gram[k, k], 0.0) if gram[k, k] > 0 else w[k]
            move = new - w[k]
            if move:
                w[k] = new
                g += move * gram[k]
                furthest = max(furthest, abs(move))
        if furthest <= TOLERANCE * w.max():
            break
    return w
