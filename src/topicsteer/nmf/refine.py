"""Factorise a few topics again while all others stay: the topics into which one topic is split."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.nmf.kernels import TINY
from topicsteer.system.types import Array


def refine(
    X: sp.csr_array,
    W: Array,
    H: Array,
    others: tuple[Array, Array],
    weight: Array,
    penalties: Array,
    permitted: NDArray[np.bool_],
    iterations: int = 20,
) -> tuple[Array, Array, NDArray[np.float64]]:
    """W and H of some topics by HALS (hierarchical alternating least squares), and the objective after each iteration.

    The objective is ½ Σ e ‖x - wH - w°H°‖² + Σ e p w, without the part that is constant. No step raises it.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
    W : array (n_documents, n_some)
        Starting weights, 0 where not permitted.
    H : array (n_some, n_terms)
        Starting terms.
    others : pair of arrays
        W° (n_documents, n_others) and H° (n_others, n_terms) of the topics that stay.
    weight : array (n_documents,)
        Weight e of each document.
    penalties : array (n_documents, n_some)
        Penalty p of each topic in each document.
    permitted : array of bool (n_documents, n_some)
    iterations : int, default=20
    """
    W, H = np.where(permitted, W, 0).astype(np.float64), H.astype(np.float64)
    W_other, H_other = (part.astype(np.float64) for part in others)
    e, XT, objectives = weight[:, None].astype(np.float64), sp.csr_array(X.T), []
    for _ in range(iterations):
        gram, cross = H @ H.T, np.asarray(X @ H.T) - W_other @ (H_other @ H.T) - penalties
        for j in range(W.shape[1]):
            step = (cross[:, j] - W @ gram[:, j]) / max(gram[j, j], TINY)
            W[:, j] = np.where(permitted[:, j], np.maximum(W[:, j] + step, 0), 0)
        gram, cross = W.T @ (e * W), (np.asarray(XT @ (e * W)) - H_other.T @ (W_other.T @ (e * W))).T
        for j in range(len(H)):
            if gram[j, j] > TINY:
                H[j] = np.maximum(H[j] + (cross[j] - gram[j] @ H) / gram[j, j], 0)
        objectives.append(0.5 * float((gram * (H @ H.T)).sum()) - float((cross * H).sum()) + (e * penalties * W).sum())
    return W, H, np.array(objectives)
