"""Penalties of topics in documents, from the probabilities of the guide."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.nmf.blocks import slices
from topicsteer.system.types import Array

# Penalty of a topic that is e times less likely than the likeliest.
STRENGTH = 0.1
# A known topic is forbidden if it is less likely than this share of the likeliest.
MIN_RELATIVE_PROBABILITY = 0.01
# Relative probability that is assumed for known topics that the guide does not cover.
UNCOVERED_PROBABILITY = 0.02
# Documents per block of work.
ROWS = 1 << 16


def topic_penalties(
    probabilities: Array, covered: NDArray[np.bool_], n_components: int, labelled: NDArray[np.bool_] | None = None
) -> sp.csr_array:
    """The penalty ``-0.1 log p`` of each possible topic in each document.

    The p of a known topic is its probability relative to that of the likeliest topic. The likeliest topic has no
    penalty, so no document loses all its topics because each is unlikely. Free topics explain the rest of a document:
    their p is the probability that no known topic is present.

    Parameters
    ----------
    probabilities : array (n_documents, n_known)
        Probability of each known topic.
    covered : array of bool (n_known,)
        Whether the guide covers a topic, so that its probabilities are meaningful.
    n_components : int
        Number of topics, known and free.
    labelled : array of bool (n_documents,), optional
        Documents whose labels are enough: their rows stay empty, which restricts nothing.

    Returns
    -------
    CSR (n_documents, n_components)
        The ``penalties`` of `topicsteer.TSNMF.fit`: one entry per permitted topic.

    Examples
    --------
    >>> topic_penalties(np.array([[1, 0], [0.5, 0.1]]), np.array([True, True]), 3).toarray().round(2).tolist()
    [[0.0, 0.0, 0.46...], [0.0, 0.15..., 0.079...]]
    """
    n, known = probabilities.shape
    blocks = []
    for rows in slices(n, ROWS):
        given = probabilities[rows][:, covered]
        p = np.full((len(given), n_components), UNCOVERED_PROBABILITY, dtype=np.float32)
        p[:, np.flatnonzero(covered)] = given / np.maximum(given.max(axis=1, initial=0, keepdims=True), 1e-30)
        p[:, known:] = np.maximum(np.prod(1 - given, axis=1, keepdims=True), MIN_RELATIVE_PROBABILITY)
        if labelled is not None:
            p[labelled[rows]] = 0
        documents, topics = np.nonzero(p >= MIN_RELATIVE_PROBABILITY)
        penalties = -np.float32(STRENGTH) * np.log(p[documents, topics])
        blocks.append(sp.csr_array((np.maximum(penalties, 0), (documents, topics)), shape=p.shape))
    return sp.vstack(blocks, format="csr") if blocks else sp.csr_array((0, n_components), dtype=np.float32)
