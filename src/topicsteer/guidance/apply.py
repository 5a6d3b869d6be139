"""Apply a guide to all documents: memberships and thresholds for the user, penalties for the factorisation.

The process that holds a block of documents computes its memberships and penalties, and writes them to a store.
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

# Thresholds are chosen from at most this many documents.
THRESHOLD_DOCUMENTS = 200_000
# Smallest and largest threshold.
THRESHOLD_RANGE = (0.25, 0.4)


@dataclass(frozen=True, eq=False)
class GuideOutput:
    """Memberships consistent with the labels, the threshold of each known topic, and the penalties of topics."""

    memberships: Array
    thresholds: Array
    penalties: sp.csr_array | Rows


def apply_guide(
    X: Rows,
    guide: Guide,
    supervision: Supervision,
    n_components: int,
    *,
    folder: Path,
    embeddings: Array | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> GuideOutput:
    """Compute memberships, thresholds and penalties of all documents.

    Parameters
    ----------
    X : Rows
        The documents.
    guide : Guide
    supervision : Supervision
        Labels of the documents.
    n_components : int
        Number of topics, known and free.
    folder : Path
        Folder for memberships and penalties on disk; all machines of a cluster must have access to it.
    embeddings : array, optional
        Embeddings of the documents, if the guide was learnt with them.
    threads : int, optional
        None = all cores.
    progress : callable, optional
        Called with the number of finished blocks and the number of all blocks.
    """
    step = -(-X.shape[0] // THRESHOLD_DOCUMENTS)
    memberships = X.dense_store(folder, "memberships", guide.n_known, np.float32)
    penalties = X.sparse_store(folder, "penalties", n_components, X.dtype)
    blocks = [
        _BlockInput(
            number,
            replace(supervision, pattern=supervision.pattern[a:b]),
            None if embeddings is None else embeddings[a:b],
            slice(-a % step, None, step),
        )
        for number, (a, b) in enumerate(itertools.pairwise(X.starts.tolist()))
    ]
    function = partial(
        _apply_to_block,
        guide=guide,
        memberships=memberships,
        penalties=penalties,
        width=n_components,
        threads=threads,
    )
    sample = []
    for done, found in enumerate(X.each(function, blocks), 1):
        sample.append(found)
        if progress is not None and len(blocks) > 1:
            progress(done, len(blocks))
    thresholds = best_thresholds(np.concatenate(sample))
    return GuideOutput(memberships.close(), thresholds, penalties.close())


@dataclass(frozen=True)
class _BlockInput:
    """Labels and embeddings of the documents of a block; ``sampled`` selects documents to choose thresholds from."""

    number: int
    supervision: Supervision
    embeddings: Array | None
    sampled: slice


def _apply_to_block(
    X: sp.csr_array,
    block: _BlockInput,
    *,
    guide: Guide,
    memberships: DenseStore,
    penalties: SparseStore,
    width: int,
    threads: int | None,
) -> Array:
    """Write memberships and penalties of a block; return the probabilities of its sampled documents."""
    kernels.prepare(X.dtype)
    probabilities = guide.probabilities(X, threads, embeddings=block.embeddings)
    memberships_of_block = apply_labels(probabilities, block.supervision)
    memberships.write(block.number, memberships_of_block)
    penalties.put(block.number, topic_penalties(memberships_of_block, guide.covers, width, block.supervision.permits))
    return np.asarray(probabilities[block.sampled])


def apply_labels(probabilities: Array, supervision: Supervision) -> Array:
    """Replace the probabilities of labelled documents: 1 for permitted topics, 0 for forbidden topics."""
    states = supervision.patterns[supervision.pattern]
    return np.asarray(
        np.where(states == PERMITTED, 1, np.where(states == FORBIDDEN, 0, probabilities)), dtype=probabilities.dtype
    )


def best_thresholds(probabilities: Array) -> Array:
    """The threshold of each topic that maximises the expected Jaccard index, shrunk towards a common threshold.

    If the m most probable documents are accepted, Σp of them are expected to be correct. The expected size of the union
    is m plus the expected number of missed documents.

    Thresholds of single topics are noisy. The result is the geometric mean of the topic's own threshold and a common
    threshold, limited to `THRESHOLD_RANGE`. The common one is the geometric mean over topics with any probability.
    """
    ranked = -np.sort(-probabilities.astype(np.float64), axis=0)
    right = np.cumsum(ranked, axis=0)
    many = np.arange(1, len(ranked) + 1)[:, None]
    best = (right / (many + right[-1:] - right)).argmax(axis=0)
    thresholds = np.maximum(np.take_along_axis(ranked, best[None], axis=0)[0], 1e-3)
    typical = np.exp(np.log(thresholds[ranked[0] > 0]).mean()) if ranked[0].any() else THRESHOLD_RANGE[0]
    return np.asarray(np.clip(np.sqrt(thresholds * typical), *THRESHOLD_RANGE))
