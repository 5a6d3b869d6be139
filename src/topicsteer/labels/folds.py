"""Leave out labels: folds to hide in turn, growing subsets, and nine tenths."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.labels.supervision import Supervision


def assign_folds(
    truth: sp.csr_array, folds: int, seed: int, others: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """The fold in which the labels of each document are hidden; -1 if they never are.

    Each document counts for its rarest topic, and the documents of a topic are spread evenly over the folds. So every
    topic keeps some labels. A topic with a single document keeps its label in every fold. The documents of the mask
    ``others`` that have no topic are spread in the same way; the folds of all other documents do not depend on them.
    """
    counts = np.asarray(truth.sum(axis=0)).ravel()
    fold = np.full(truth.shape[0], -1, dtype=np.int64)
    rng = np.random.default_rng(seed)
    rarest = rarest_topics(truth)
    for k in np.unique(rarest[rarest >= 0]):
        own = rng.permutation(np.flatnonzero(rarest == k))
        if counts[k] > 1:
            fold[own] = np.arange(len(own)) % max(2, min(folds, len(own)))
    if others is not None:
        rest = rng.permutation(np.flatnonzero(others & (rarest < 0)))
        if len(rest) > 1:
            fold[rest] = np.arange(len(rest)) % min(folds, len(rest))
    return fold


def rarest_topics(truth: sp.csr_array) -> NDArray[np.int64]:
    """The rarest topic of each document; -1 if it has none."""
    counts = np.asarray(truth.sum(axis=0)).ravel()
    rarest = np.full(truth.shape[0], -1, dtype=np.int64)
    for i in np.flatnonzero(np.diff(truth.indptr)):
        rarest[i] = min(truth.indices[truth.indptr[i] : truth.indptr[i + 1]], key=lambda k: counts[k])
    return rarest


def growing_subsets(supervision: Supervision, shares: Sequence[float], seed: int) -> Iterator[Supervision]:
    """A subset of the labels for each share; every topic keeps about that share, and at least one document.

    Each subset contains the one before.
    """
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(supervision.labelled))
    truth = supervision.indicator()[rows]
    rarest, of_topic = rarest_topics(truth), sp.csc_array(truth)
    kept = np.zeros(len(rows), dtype=np.bool_)
    for share in shares:
        for k in np.unique(rarest):
            own = np.flatnonzero(rarest == k)
            kept[own[: max(round(share * len(own)), 1)]] = True
        # A topic that is never the rarest of its documents may still have no document.
        for k in range(truth.shape[1]):
            own = of_topic.indices[of_topic.indptr[k] : of_topic.indptr[k + 1]]
            if own.size and not kept[own].any():
                kept[own.min()] = True
        pattern = np.zeros_like(supervision.pattern)
        pattern[rows[kept]] = supervision.pattern[rows[kept]]
        yield replace(supervision, pattern=pattern)


def drop_tenth(supervision: Supervision, seed: int = 0) -> Supervision:
    """Remove the labels of a random tenth of the labelled documents."""
    labelled = np.flatnonzero(supervision.labelled)
    pattern = supervision.pattern.copy()
    pattern[np.random.default_rng(seed).permutation(labelled)[: -(-len(labelled) // 10)]] = 0
    return replace(supervision, pattern=pattern)
