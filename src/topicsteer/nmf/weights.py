"""Topic weights of documents for a fixed H: `document_weights` for any number, `few_weights` for a few.

A few documents are solved in plain numpy, because no compiled kernel has to be loaded for them. Both ways minimise the
same function, and their results are equal up to rounding.
"""

import numpy as np
import scipy.sparse as sp

from topicsteer.nmf.blocks import Block, Penalties, RowConstraints
from topicsteer.nmf.solvers import Regularisation
from topicsteer.system.types import Array

# Documents that are solved without the kernels at most.
FEW = 100
# Sweeps of coordinate descent over a few documents at most, and the relative change that ends them.
SWEEPS, TOLERANCE = 1_000, 1e-7


def document_weights(
    X: sp.csr_array,
    H: Array,
    penalties: sp.csr_array | None = None,
    regularisation: Regularisation = Regularisation(),  # noqa: B008
    threads: int | None = None,
) -> Array:
    """Return the topic weights of documents for a fixed H. The weights of a document depend on its own row only.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
    H : array (n_topics, n_terms)
    penalties : CSR (n_documents, n_topics), optional
        As in `topicsteer.TSNMF.fit`: a row with entries permits only these topics, each at its penalty.
    regularisation : Regularisation
        L1 and L2 penalties on W.
    threads : int, optional
        None = all cores.

    Returns
    -------
    array (n_documents, n_topics)
    """
    if X.shape[0] <= FEW:
        return few_weights(X, H, penalties, l1=regularisation.l1_W, l2=regularisation.l2_W)
    own = None if penalties is None else Penalties.of(penalties, X.dtype)
    return many_weights(X, H, own, regularisation, threads)


def many_weights(
    X: sp.csr_array, H: Array, penalties: Penalties | None, regularisation: Regularisation, threads: int | None
) -> Array:
    """Return the topic weights of documents by the compiled kernels; see :func:`document_weights`."""
    from topicsteer.nmf import kernels
    from topicsteer.nmf.loop import transform

    n, d = X.shape[0], len(H)
    HT = np.ascontiguousarray(H.T, dtype=X.dtype)
    kernels.announce(X.dtype)
    if penalties is None:
        scaled = Penalties.none(n, X.dtype)
    else:  # penalties are defined for rows of H of length 1
        lengths = np.linalg.norm(HT, axis=0)
        scaled = Penalties(penalties.indptr, penalties.topics, penalties.values * lengths[penalties.topics])
    known = RowConstraints(np.ones(n, dtype=X.dtype), np.zeros(n, dtype=np.int32), scaled)
    W = np.zeros((n, d), dtype=X.dtype)
    transform(Block.of(X, W, known), HT, np.ones((1, d), dtype=np.bool_), regularisation, threads)
    return W


def few_weights(
    X: sp.csr_array, H: Array, penalties: sp.csr_array | None = None, *, l1: float = 0.0, l2: float = 0.0
) -> Array:
    """Return the topic weights of a few documents in plain numpy; see :func:`document_weights`.

    ``l1`` and ``l2`` are the strengths of the penalties on W.
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
    found = np.zeros((X.shape[0], len(H)), dtype=H.dtype)
    for row, gradient in zip(found, gradients, strict=True):
        row[:] = _descend(gram, gradient)
    return found


def _descend(gram: Array, gradient: Array) -> Array:
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
