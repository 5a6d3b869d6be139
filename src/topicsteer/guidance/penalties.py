"""A soft mask for the factorisation: what each topic costs in each document, from how likely it is there."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.nmf.blocks import slices
from topicsteer.system.types import Array

STRENGTH = 0.1  # price of a topic that is e times less likely
IMPOSSIBLE = 0.01  # a known topic that is less likely than this times the likeliest is forbidden
UNKNOWN = 0.02  # stands for the probability of a known topic without labels
ROWS = 1 << 16


def topic_penalties(
    probabilities: Array, covered: NDArray[np.bool_], n_components: int, labelled: NDArray[np.bool_] | None = None
) -> sp.csr_array:
    """Prices ``-0.1 log p`` of the topics that are possible in each document.

    The p of a known topic is its probability over that of the likeliest, which costs nothing, so that no document is
    left without topics because all are unlikely. Free topics are for what the known ones leave over: their p is the
    probability that no known topic is present.

    Parameters
    ----------
    probabilities : array (n_documents, n_known)
        How likely each known topic is.
    covered : array of bool (n_known,)
        Whether a topic has labels, so that its probabilities mean something.
    n_components : int
        Number of topics, known and free.
    labelled : array of bool (n_documents,), optional
        Documents of which the labels say enough: their rows store nothing, which restricts nothing.

    Returns
    -------
    CSR (n_documents, n_components)
        A price for what is permitted, as `topicsteer.TSNMF.fit` takes it.

    Examples
    --------
    >>> topic_penalties(np.array([[1, 0], [0.5, 0.1]]), np.array([True, True]), 3).toarray().round(2).tolist()
    [[0.0, 0.0, 0.46...], [0.0, 0.15..., 0.079...]]
    """
    n, known = probabilities.shape
    parts = []
    for rows in slices(n, ROWS):
        given = probabilities[rows][:, covered]
        p = np.full((len(given), n_components), UNKNOWN, dtype=np.float32)
        p[:, np.flatnonzero(covered)] = given / np.maximum(given.max(axis=1, initial=0, keepdims=True), 1e-30)
        p[:, known:] = np.maximum(np.prod(1 - given, axis=1, keepdims=True), IMPOSSIBLE)
        if labelled is not None:
            p[labelled[rows]] = 0
        documents, topics = np.nonzero(p >= IMPOSSIBLE)
        penalties = -np.float32(STRENGTH) * np.log(p[documents, topics])
        parts.append(sp.csr_array((np.maximum(penalties, 0), (documents, topics)), shape=p.shape))
    return sp.vstack(parts, format="csr") if parts else sp.csr_array((0, n_components), dtype=np.float32)
