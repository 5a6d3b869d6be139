"""Apply a guide to all documents: memberships and thresholds for the user, penalties for the factorisation.

The process that holds a block of documents computes its memberships and penalties, and writes them to a store.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.guidance.guide import Guide
from topicsteer.guidance.penalties import topic_penalties
from topicsteer.labels.forest import FLAT, Forest
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, Supervision
from topicsteer.nmf.blocks import slices
from topicsteer.nmf.protocols import DenseStore, Rows, SparseStore
from topicsteer.system.lazy import lazy_module
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from topicsteer.nmf import kernels
else:
    kernels = lazy_module("topicsteer.nmf.kernels")

# Thresholds are chosen from at most this many documents.
THRESHOLD_DOCUMENTS = 50_000
# Documents and topics per block of work: blocks of other sizes would change the last digits of memberships.
ROWS, TOPICS = 1 << 14, 8
# Smallest and largest threshold.
THRESHOLD_RANGE = (0.25, 0.4)
# Factor of the thresholds if the guide has groups of documents without a known topic. Memberships of known topics are
# smaller then, by the probability of no known topic.
OPEN_THRESHOLD = 0.75


@dataclass(frozen=True, eq=False)
class GuideOutput:
    """Memberships consistent with the labels, the threshold of each known topic, and the penalties of topics.

    Memberships have one column per known topic. In an open world, columns of the free topics that the guide knows
    follow, and last the probability of no known topic.
    """

    memberships: Array
    thresholds: Array
    penalties: sp.csr_array | Rows


def apply_guide(
    X: Rows,
    guide: Guide,
    supervision: Supervision,
    groups: Sequence[Sequence[int]],
    n_components: int,
    *,
    folder: Path,
    embeddings: Array | None = None,
    latent: Callable[[slice], Array | None] | None = None,
    threads: int | None = None,
    threshold_documents: int = THRESHOLD_DOCUMENTS,
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
    groups : sequence of sequences of int
        Classes of the guide that make up each topic: known topics first, then free ones, if the guide has any.
    n_components : int
        Number of topics, known and free.
    folder : Path
        Folder for memberships and penalties on disk; all machines of a cluster must have access to it.
    embeddings : array, optional
        Embeddings of the documents, if the guide was learnt with them.
    latent : callable, optional
        Latent semantics of a slice of the documents, if they are known; only for rows in memory.
    threads : int, optional
        None = all cores.
    threshold_documents : int
        Thresholds are chosen from at most this many documents.
    progress : callable, optional
        Called with the number of finished blocks and the number of all blocks.
    """
    step = -(-X.shape[0] // threshold_documents)
    width = len(groups) + guide.open
    memberships = X.dense_store(folder, "memberships", width, np.float32)
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
        groups=groups,
        memberships=memberships,
        penalties=penalties,
        n_components=n_components,
        latent=latent,
        threads=threads,
    )
    sample = []
    for done, found in enumerate(X.each(function, blocks), 1):
        sample.append(found)
        if progress is not None and len(blocks) > 1:
            progress(done, len(blocks))
    every = sample[0] if len(sample) == 1 else np.concatenate(sample)
    thresholds = choose_thresholds(guide, every, supervision.forest)
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
    groups: Sequence[Sequence[int]],
    memberships: DenseStore,
    penalties: SparseStore,
    n_components: int,
    latent: Callable[[slice], Array | None] | None,
    threads: int | None,
) -> Array:
    """Write memberships and penalties of a block; return the probabilities of its sampled documents.

    Documents pass through in smaller blocks, so that no more than the memberships is dense for all of them.
    """
    kernels.prepare(X.dtype)
    known = len(block.supervision.topics)  # after an edit, not the number that the guide was trained with
    covered = covered_topics(guide, groups)
    sampled = np.zeros(X.shape[0], dtype=np.bool_)
    sampled[block.sampled] = True
    sample = np.empty((int(sampled.sum()), known), dtype=np.float32)
    places = np.append(0, np.cumsum(sampled))
    found_penalties = [sp.csr_array((0, n_components), dtype=X.dtype)]
    forest = block.supervision.forest

    def belongs() -> Iterator[Array]:
        for rows in slices(X.shape[0], ROWS):
            E = None if block.embeddings is None else block.embeddings[rows]
            supervision = replace(block.supervision, pattern=block.supervision.pattern[rows])
            D = None if latent is None else latent(rows)
            found = topic_probabilities(guide.probabilities(X[rows], threads, embeddings=E, latent=D), groups, forest)
            own = apply_labels(found, supervision)
            options = {"open_world": guide.open, "by_names": not guide.chosen_from}
            rest = forest.rest(own)
            found_penalties.append(topic_penalties(rest, covered, n_components, supervision.decided, **options))
            sample[places[rows.start] : places[rows.stop]] = found[sampled[rows], :known]
            yield with_none(own, known, forest) if guide.open else own

    memberships.write(block.number, belongs())
    penalties.put(block.number, sp.csr_array(sp.vstack(found_penalties, format="csr")))
    return sample


def merged_classes(probabilities: Array, groups: Sequence[Sequence[int]]) -> Array:
    """Probabilities of topics that are made up of classes of the guide: the maximum over these, 0 without any."""
    if all(len(group) == 1 for group in groups) and len(groups) == probabilities.shape[1]:
        return np.asarray(probabilities[:, [k for (k,) in groups]])
    return np.stack([probabilities[:, list(group)].max(axis=1, initial=0) for group in groups], axis=1)


def topic_probabilities(probabilities: Array, groups: Sequence[Sequence[int]], forest: Forest) -> Array:
    """Probabilities of topics from the classes of the guide; no topic of a tree exceeds its parent."""
    return forest.raised(merged_classes(probabilities, groups))


def topic_classes(
    groups: Sequence[Sequence[int]], free_groups: Sequence[Sequence[int]], n_known: int
) -> list[tuple[int, ...]]:
    """Classes of the guide that make up each topic: known ones first; groups are numbered after ``n_known`` classes."""
    return [*map(tuple, groups), *(tuple(n_known + k for k in group) for group in free_groups)]


def covered_topics(guide: Guide, groups: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    """Whether the guide covers each topic."""
    covers = guide.covers
    return np.array([covers[list(group)].any() for group in groups], dtype=np.bool_)


def with_none(memberships: Array, n_known: int, forest: Forest = FLAT) -> Array:
    """Memberships with a last column: the probability that a document has none of the known topics."""
    none = np.prod(1 - forest.top(memberships[:, :n_known]), axis=1, keepdims=True)
    return np.hstack([memberships, none])


def apply_labels(probabilities: Array, supervision: Supervision) -> Array:
    """Replace the probabilities of labelled documents: 1 for permitted topics, 0 for forbidden topics.

    Columns after the known topics are free topics; documents with a label have none of them. Memberships below a label
    assume that the label is right.
    """
    states = supervision.patterns[supervision.pattern]
    known = states.shape[1]
    below = supervision.forest.conditional(probabilities[:, :known], states)
    labelled = np.where(states == PERMITTED, 1, np.where(states == FORBIDDEN, 0, below))
    if known == probabilities.shape[1]:
        return np.asarray(labelled, dtype=probabilities.dtype)
    free = np.where(supervision.permits[:, None], 0, probabilities[:, known:])
    return np.hstack([labelled, free]).astype(probabilities.dtype)


def relabelled(memberships: Array, supervision: Supervision) -> Array:
    """Memberships after a change of labels; the last column of an open world follows from the others."""
    known = len(supervision.topics)
    if memberships.shape[1] == known:
        return apply_labels(memberships, supervision)
    return with_none(apply_labels(memberships[:, :-1], supervision), known, supervision.forest)


def choose_thresholds(guide: Guide, probabilities: Array, forest: Forest = FLAT) -> Array:
    """The threshold of each known topic, from the probabilities of a guide; no parent has a larger one than a child.

    Few labels leave even the surest documents some probability of no known topic. Thresholds are lower by it. Names
    alone have larger memberships, see `Guide`.
    """
    thresholds = forest.lowered(best_thresholds(probabilities))
    if guide.outside is None or not guide.group_classes or not guide.by_labels:
        return thresholds
    return thresholds * OPEN_THRESHOLD * (1 - float(guide.outside.probability.min()))


def best_thresholds(probabilities: Array, limits: tuple[float, float] = THRESHOLD_RANGE) -> Array:
    """The threshold of each topic that maximises the expected Jaccard index, shrunk towards a common threshold.

    If the m most probable documents are accepted, Σp of them are expected to be correct. The expected size of the union
    is m plus the expected number of missed documents.

    Thresholds of single topics are noisy. The result is the geometric mean of the topic's own threshold and a common
    threshold, within ``limits``. The common one is the geometric mean over topics with any probability.
    """
    own = [_own_thresholds(probabilities[:, topics]) for topics in slices(probabilities.shape[1], TOPICS)]
    thresholds, any_probability = (np.concatenate([found[k] for found in own]) for k in (0, 1))
    typical = np.exp(np.log(thresholds[any_probability]).mean()) if any_probability.any() else limits[0]
    return np.asarray(np.clip(np.sqrt(thresholds * typical), *limits))


def _own_thresholds(probabilities: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The threshold of each topic by itself, and whether the topic has any probability."""
    ranked = -np.sort(-probabilities.astype(np.float64), axis=0)
    right = np.cumsum(ranked, axis=0)
    many = np.arange(1, len(ranked) + 1)[:, None]
    best = (right / (many + right[-1:] - right)).argmax(axis=0)
    return np.maximum(np.take_along_axis(ranked, best[None], axis=0)[0], 1e-3), np.asarray(ranked[0] > 0)
