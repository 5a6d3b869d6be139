"""What the guide says of all documents, as the factorisation and the user take it: memberships, cuts and prices.

Of documents in blocks, on disk or on a cluster, whoever holds a block works out its own part and writes it to a store.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from topicsteer.guidance.guide import Guide
from topicsteer.guidance.penalties import topic_penalties
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, Supervision
from topicsteer.nmf import kernels
from topicsteer.nmf.protocols import DenseStore, Rows, SparseStore
from topicsteer.system.types import Array

THRESHOLD_DOCUMENTS = 200_000  # documents that the cuts are found from, at most
THRESHOLD_RANGE = (0.25, 0.4)


@dataclass(frozen=True, eq=False)
class GuideOutput:
    """Memberships, which obey the labels, the cut of each known topic, and the prices of topics in documents."""

    memberships: Array
    thresholds: Array
    penalties: sp.csr_array | Rows


def apply_guide(
    X: Rows,
    learnt: Guide,
    supervision: Supervision,
    n_components: int,
    *,
    folder: Path,
    embeddings: Array | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> GuideOutput:
    """Ask the guide about all documents.

    Parameters
    ----------
    X : Rows
        The documents.
    learnt : Guide
    supervision : Supervision
        Their labels.
    n_components : int
        Number of topics, known and free.
    folder : Path
        Where memberships and prices go that are not kept in memory; all machines of a cluster must see it.
    embeddings : array, optional
        Of the documents, if the guide was learnt with them.
    threads : int, optional
    progress : callable, optional
        Called with the number of blocks done, and of all.
    """
    step = -(-X.shape[0] // THRESHOLD_DOCUMENTS)
    memberships = X.dense_store(folder, "memberships", learnt.n_known, np.float32)
    penalties = X.sparse_store(folder, "prices", n_components, X.dtype)
    parts = [
        _Part(
            number,
            replace(supervision, pattern=supervision.pattern[a:b]),
            None if embeddings is None else embeddings[a:b],
            slice(-a % step, None, step),
        )
        for number, (a, b) in enumerate(itertools.pairwise(X.starts.tolist()))
    ]
    ask = partial(
        _apply_to_block,
        learnt=learnt,
        memberships=memberships,
        penalties=penalties,
        width=n_components,
        threads=threads,
    )
    sample = []
    for done, found in enumerate(X.each(ask, parts), 1):
        sample.append(found)
        if progress is not None and len(parts) > 1:
            progress(done, len(parts))
    thresholds = best_thresholds(np.concatenate(sample))
    return GuideOutput(memberships.close(), thresholds, penalties.close())


@dataclass(frozen=True)
class _Part:
    """What is known of the documents of a block; ``sampled`` chooses those that the cuts are found from."""

    number: int
    supervision: Supervision
    embeddings: Array | None
    sampled: slice


def _apply_to_block(
    X: sp.csr_array,
    part: _Part,
    *,
    learnt: Guide,
    memberships: DenseStore,
    penalties: SparseStore,
    width: int,
    threads: int | None,
) -> Array:
    """Write memberships and prices of a block; the probabilities of a sample of its documents come back."""
    kernels.prepare(X.dtype)
    belongs = learnt.probabilities(X, threads, embeddings=part.embeddings)
    memberships_of_block = apply_labels(belongs, part.supervision)
    memberships.write(part.number, memberships_of_block)
    penalties.put(part.number, topic_penalties(memberships_of_block, learnt.covers, width, part.supervision.permits))
    return np.asarray(belongs[part.sampled])


def apply_labels(probabilities: Array, supervision: Supervision) -> Array:
    """Probabilities of labelled documents replaced by what their labels say: 1 permitted, 0 forbidden."""
    states = supervision.patterns[supervision.pattern]
    return np.asarray(
        np.where(states == PERMITTED, 1, np.where(states == FORBIDDEN, 0, probabilities)), dtype=probabilities.dtype
    )


def best_thresholds(probabilities: Array) -> Array:
    """For each topic the probability from which "yes" maximises the expected Jaccard index, drawn to the middle.

    Of the m most probable documents Σp are expected to be right, and the union has m plus the expected rest. Single
    topics are noisy, so each cut is averaged with that of all topics that have any probability, and kept in a range.
    """
    ranked = -np.sort(-probabilities.astype(np.float64), axis=0)
    right = np.cumsum(ranked, axis=0)
    many = np.arange(1, len(ranked) + 1)[:, None]
    best = (right / (many + right[-1:] - right)).argmax(axis=0)
    thresholds = np.maximum(np.take_along_axis(ranked, best[None], axis=0)[0], 1e-3)
    typical = np.exp(np.log(thresholds[ranked[0] > 0]).mean()) if ranked[0].any() else THRESHOLD_RANGE[0]
    return np.asarray(np.clip(np.sqrt(thresholds * typical), *THRESHOLD_RANGE))
