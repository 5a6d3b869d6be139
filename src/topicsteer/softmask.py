"""A soft mask for the factorisation: what each topic costs in each document, from how likely it is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.blocks import slices

Array = NDArray[np.floating[Any]]

STRENGTH = 0.1  # price of a topic that is e times less likely
IMPOSSIBLE = 0.01  # a known topic less likely than this is forbidden, unless it is the likeliest
UNKNOWN = 0.02  # stands for the probability of a known topic without labels
ROWS = 1 << 16


def soft_mask(probabilities: Array, covered: NDArray[np.bool_], n_components: int) -> sp.csr_array:
    """Prices ``-0.1 log p`` of the topics that are possible in each document.

    Free topics are for what the known ones leave over: their p is the probability that no known topic is present.

    Parameters
    ----------
    probabilities : array (n_documents, n_known)
        How likely each known topic is.
    covered : array of bool (n_known,)
        Whether a topic has labels, so that its probabilities mean something.
    n_components : int
        Number of topics, known and free.

    Returns
    -------
    CSR (n_documents, n_components)
        A price for what is permitted, as `topicsteer.TSNMF.fit` takes it.

    Examples
    --------
    >>> soft_mask(np.array([[1, 0], [0.5, 0.1]]), np.array([True, True]), 3).toarray().round(2).tolist()
    [[0.0, 0.0, 0.46...], [0.07..., 0.23..., 0.079...]]
    """
    n, known = probabilities.shape
    parts = []
    for rows in slices(n, ROWS):
        given = probabilities[rows][:, covered]
        p = np.full((len(given), n_components), UNKNOWN, dtype=np.float32)
        p[:, :known][:, covered] = given
        p[:, known:] = np.maximum(np.prod(1 - given, axis=1, keepdims=True), IMPOSSIBLE)
        best = p[:, :known].max(axis=1, initial=0, keepdims=True)
        documents, topics = np.nonzero((p >= np.minimum(best, IMPOSSIBLE)) & (p > 0))
        prices = -np.float32(STRENGTH) * np.log(p[documents, topics])
        parts.append(sp.csr_array((np.maximum(prices, 0), (documents, topics)), shape=p.shape))
    return sp.vstack(parts, format="csr") if parts else sp.csr_array((0, n_components), dtype=np.float32)
