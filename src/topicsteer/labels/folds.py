"""Which labels to leave out: hidden parts, growing shares, and nine tenths."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.labels.supervision import Supervision


def hidden_parts(truth: sp.csr_array, folds: int, seed: int) -> NDArray[np.int64]:
    """The part in which each labelled document is hidden, -1 for those that never are.

    Each document goes with its rarest topic, and a topic's documents are dealt out in turn, so that every topic keeps
    some labels; of a topic with a single document nothing is hidden.
    """
    counts = np.asarray(truth.sum(axis=0)).ravel()
    part = np.full(truth.shape[0], -1, dtype=np.int64)
    rng = np.random.default_rng(seed)
    rarest = rarest_topics(truth)
    for k in np.unique(rarest[rarest >= 0]):
        own = rng.permutation(np.flatnonzero(rarest == k))
        if counts[k] > 1:
            part[own] = np.arange(len(own)) % max(2, min(folds, len(own)))
    return part


def rarest_topics(truth: sp.csr_array) -> NDArray[np.int64]:
    """The rarest topic of each document, -1 where there is none."""
    counts = np.asarray(truth.sum(axis=0)).ravel()
    rarest = np.full(truth.shape[0], -1, dtype=np.int64)
    for i in np.flatnonzero(np.diff(truth.indptr)):
        rarest[i] = min(truth.indices[truth.indptr[i] : truth.indptr[i + 1]], key=lambda k: counts[k])
    return rarest


def thinned(supervision: Supervision, shares: Sequence[float], seed: int) -> Iterator[Supervision]:
    """A growing part of the labels for each share, of each topic as much, and of every topic at least one document."""
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(supervision.labelled))
    truth = supervision.indicator()[rows]
    rarest, of_topic = rarest_topics(truth), sp.csc_array(truth)
    kept = np.zeros(len(rows), dtype=np.bool_)
    for share in shares:
        for k in np.unique(rarest):
            own = np.flatnonzero(rarest == k)
            kept[own[: max(round(share * len(own)), 1)]] = True
        for k in range(truth.shape[1]):  # a topic that is never the rarest of its documents may still have none
            own = of_topic.indices[of_topic.indptr[k] : of_topic.indptr[k + 1]]
            if own.size and not kept[own].any():
                kept[own.min()] = True
        pattern = np.zeros_like(supervision.pattern)
        pattern[rows[kept]] = supervision.pattern[rows[kept]]
        yield replace(supervision, pattern=pattern)


def nine_tenths(supervision: Supervision, seed: int = 0) -> Supervision:
    """The labels without a tenth of the labelled documents, drawn at random."""
    labelled = np.flatnonzero(supervision.labelled)
    pattern = supervision.pattern.copy()
    pattern[np.random.default_rng(seed).permutation(labelled)[: -(-len(labelled) // 10)]] = 0
    return Supervision(supervision.topics, pattern, supervision.patterns)
