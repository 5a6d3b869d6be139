"""LDA with topic-in-set knowledge (Andrzejewski & Zhu 2009): collapsed Gibbs sampling under sets of permitted topics.

Token i of document d with term w has a set C(i) of topics. The sampler draws its topic v with probability proportional
to

    (n_dv + α) (n_vw + β) / (n_v + Vβ) · (η [v ∈ C(i)] + 1 - η)

where the counts n leave token i out. η = 1 makes the sets hard constraints. Here all tokens of a labelled document have
the set of its labels, so that several labels need no further convention. Other tokens have all topics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from experiments.peers.rivals import given, lowest_elsewhere
from experiments.shared.internals import Supervision

# The priors of the paper.
ALPHA, BETA = 0.5, 0.1


@njit
def gibbs(documents, terms, allowed, n_terms, alpha, beta, eta, sweeps, burn_in, seed):  # type: ignore[no-untyped-def]
    """Mean share of each topic in each document over the sweeps after the first ``burn_in``.

    ``documents`` and ``terms`` hold one entry per token, ``allowed`` (documents × topics) the sets.
    """
    np.random.seed(seed)  # noqa: NPY002 -- the compiled function has a generator of its own
    n, d = allowed.shape
    in_document, of_term, total = np.zeros((n, d)), np.zeros((n_terms, d)), np.zeros(d)
    length, mean, cumulated = np.zeros(n), np.zeros((n, d)), np.zeros(d)
    topics = np.empty(len(terms), dtype=np.int64)
    for i in range(len(terms)):
        v = np.random.randint(d)  # noqa: NPY002
        while not allowed[documents[i], v]:
            v = np.random.randint(d)  # noqa: NPY002
        topics[i] = v
        in_document[documents[i], v] += 1
        of_term[terms[i], v] += 1
        total[v] += 1
        length[documents[i]] += 1
    inverse = 1 / (total + n_terms * beta)
    for sweep in range(sweeps):
        for i in range(len(terms)):
            own, word, v = documents[i], terms[i], topics[i]
            in_document[own, v] -= 1
            of_term[word, v] -= 1
            total[v] -= 1
            inverse[v] = 1 / (total[v] + n_terms * beta)
            s = 0.0
            for k in range(d):
                inside = 1.0 if allowed[own, k] else 1.0 - eta
                if inside > 0.0:
                    s += inside * (in_document[own, k] + alpha) * (of_term[word, k] + beta) * inverse[k]
                cumulated[k] = s
            drawn = np.random.random() * s  # noqa: NPY002
            v = 0
            while cumulated[v] <= drawn and v < d - 1:
                v += 1
            topics[i] = v
            in_document[own, v] += 1
            of_term[word, v] += 1
            total[v] += 1
            inverse[v] = 1 / (total[v] + n_terms * beta)
        if sweep >= burn_in:
            for j in range(n):
                for k in range(d):
                    mean[j, k] += (in_document[j, k] + alpha) / (length[j] + d * alpha)
    return mean / (sweeps - burn_in)


def topic_in_set_lda(
    counts: Any, supervision: Supervision, seed: int, eta: float = 1.0, sweeps: int = 100, burn_in: int = 50
) -> np.ndarray:
    """Shares of the topics; topics without labels are free to be used by unlabelled documents."""
    rows, Y = given(supervision)
    n, d = counts.shape[0], Y.shape[1]
    allowed = np.ones((n, d), dtype=np.bool_)
    allowed[rows] = Y > 0
    times = np.rint(counts.data).astype(np.int64)
    documents = np.repeat(np.repeat(np.arange(n), np.diff(counts.indptr)), times)
    terms = np.repeat(counts.indices.astype(np.int64), times)
    shares = gibbs(documents, terms, allowed, counts.shape[1], ALPHA, BETA, eta, sweeps, burn_in, seed)
    return lowest_elsewhere(shares, Y)
