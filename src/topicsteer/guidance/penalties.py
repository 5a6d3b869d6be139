"""Penalties of topics in documents, from the probabilities of the guide."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.nmf.blocks import slices
from topicsteer.system.types import Array

# Penalty of a topic that is e times less likely than the likeliest; the second number is for an open world, where free
# topics compete with known ones and documents need not be pushed into one of them.
STRENGTH = (0.1, 0.01)
# A topic is forbidden if it is less likely than this share of the likeliest.
MIN_RELATIVE_PROBABILITY = (0.01, 0.001)
# Documents per block of work.
ROWS = 1 << 16


def topic_penalties(
    probabilities: Array,
    covered: NDArray[np.bool_],
    n_components: int,
    labelled: NDArray[np.bool_] | None = None,
    *,
    open_world: bool = False,
    by_names: bool = False,
) -> sp.csr_array:
    """The penalty ``-c log p`` of each possible topic in each document.

    The p of a known topic is its probability relative to that of the likeliest topic. The likeliest topic has no
    penalty, so no document loses all its topics because each is unlikely. Known topics that the guide does not
    cover are forbidden, because nothing ties their names to a document. Free topics explain the rest of a document:
    their p is the probability that no known topic is present.

    Parameters
    ----------
    probabilities : array (n_documents, n_guided)
        Probability of each topic that the guide knows: known topics, and in an open world free ones.
    covered : array of bool (n_guided,)
        Whether the guide covers a topic, so that its probabilities are meaningful.
    n_components : int
        Number of topics, known and free.
    labelled : array of bool (n_documents,), optional
        Documents whose labels are enough: their rows stay empty, which restricts nothing.
    open_world : bool, default=False
        Whether documents may have none of the known topics. Penalties are weaker then, and free topics that the guide
        does not know have none.
    by_names : bool, default=False
        Whether the probabilities come from names alone. "None of the known topics" then counts among the likeliest, if
        there are free topics that can take the document.

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
    strength, least = STRENGTH[open_world], MIN_RELATIVE_PROBABILITY[open_world]
    blocks = []
    for rows in slices(n, ROWS):
        given = probabilities[rows][:, covered]
        p = np.zeros((len(given), n_components), dtype=np.float32)
        none = np.prod(1 - given, axis=1, keepdims=True)
        best = given.max(axis=1, initial=0, keepdims=True)
        best = np.maximum(best, none) if by_names and n_components > known else best
        p[:, np.flatnonzero(covered)] = given / np.maximum(best, 1e-30)
        p[:, known:] = 1 if open_world else np.maximum(none, least)
        if labelled is not None:
            p[labelled[rows]] = 0
        documents, topics = np.nonzero(p >= least)
        penalties = -np.float32(strength) * np.log(p[documents, topics])
        starts = np.append(0, np.cumsum(np.bincount(documents, minlength=len(p)))).astype(np.int32)
        blocks.append(sp.csr_array((np.maximum(penalties, 0), topics.astype(np.int32), starts), shape=p.shape))
    return sp.vstack(blocks, format="csr") if blocks else sp.csr_array((0, n_components), dtype=np.float32)
