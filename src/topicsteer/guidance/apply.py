"""Apply a guide to all documents: memberships, thresholds and decisions for the user, penalties for the factorisation.

The process that holds a block of documents computes its memberships and penalties, and writes them to a store.
`Memberships` is the one rule for who has what: known topics, free topics and none of the known topics.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.guidance.guide import Guide
from topicsteer.labels.forest import FLAT, Forest
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, Supervision
from topicsteer.nmf.blocks import slices
from topicsteer.nmf.protocols import DenseStore, Rows, SparseStore
from topicsteer.system.types import Array

# Penalty of a topic that is e times less likely than the likeliest; the second number is for an open world, where free
# topics compete with known ones and documents need not be pushed into one of them.
STRENGTH = (0.1, 0.01)
# A topic is forbidden if it is less likely than this share of the likeliest.
MIN_RELATIVE_PROBABILITY = (0.01, 0.001)
# Documents per block of work.
PENALTY_ROWS = 1 << 16


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
    for rows in slices(n, PENALTY_ROWS):
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


# Thresholds are chosen from at most this many documents.
THRESHOLD_DOCUMENTS = 50_000
# Documents and topics per block of work: blocks of other sizes would change the last digits of memberships.
ROWS, TOPICS = 1 << 14, 8
# Smallest and largest threshold.
THRESHOLD_RANGE = (0.25, 0.4)


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
    sampled = np.arange(X.shape[0]) % step == 0
    blocks = [
        (
            number,
            replace(supervision, pattern=supervision.pattern[a:b]),
            sampled[a:b],
            None if embeddings is None else embeddings[a:b],
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
        threads=threads,
    )
    sample = []
    for done, found in enumerate(X.each(function, blocks), 1):
        sample.append(found)
        if progress is not None and len(blocks) > 1:
            progress(done, len(blocks))
    every = sample[0] if len(sample) == 1 else np.concatenate(sample)
    thresholds = choose_thresholds(every, supervision.forest)
    return GuideOutput(memberships.close(), thresholds, penalties.close())


def _apply_to_block(
    X: sp.csr_array,
    block: tuple[int, Supervision, NDArray[np.bool_], Array | None],
    *,
    guide: Guide,
    groups: Sequence[Sequence[int]],
    memberships: DenseStore,
    penalties: SparseStore,
    n_components: int,
    threads: int | None,
) -> Array:
    """Write memberships and penalties of a block; return the probabilities of its sampled documents.

    The block has a number, labels, a mark of sampled documents, and embeddings.
    Documents pass through in smaller blocks, so that no more than the memberships is dense for all of them.
    """
    number, labels, sampled, embeddings = block
    known = len(labels.topics)  # after an edit, not the number that the guide was trained with
    covered = covered_topics(guide, groups)
    sample = [np.empty((0, known), dtype=np.float32)]
    found_penalties = [sp.csr_array((0, n_components), dtype=X.dtype)]
    forest = labels.forest

    def belongs() -> Iterator[Array]:
        for rows in slices(X.shape[0], ROWS):
            supervision = replace(labels, pattern=labels.pattern[rows])
            P = guide.probabilities(X[rows], threads, embeddings=None if embeddings is None else embeddings[rows])
            found = topic_probabilities(P, groups, forest, known, guide)
            own = apply_labels(found, supervision)
            options = {"open_world": guide.open, "by_names": not guide.chosen_from}
            rest = forest.rest(own[:, : len(groups)])
            found_penalties.append(topic_penalties(rest, covered, n_components, supervision.decided, **options))
            sample.append(found[sampled[rows], :known])
            yield own

    memberships.write(number, belongs())
    penalties.put(number, sp.csr_array(sp.vstack(found_penalties, format="csr")))
    return np.concatenate(sample)


def merged_classes(probabilities: Array, groups: Sequence[Sequence[int]], n_known: int) -> Array:
    """Probabilities of topics that are made up of classes of the guide; 0 without any.

    The maximum over its known topics, and the sum over groups of documents, which exclude each other.
    """
    if all(len(group) == 1 for group in groups) and len(groups) == probabilities.shape[1]:
        return np.asarray(probabilities[:, [k for (k,) in groups]])
    found = np.zeros((len(probabilities), len(groups)), dtype=probabilities.dtype)
    for out, group in zip(found.T, groups, strict=True):
        known = [k for k in group if k < n_known]
        outside = probabilities[:, [k for k in group if k >= n_known]].sum(axis=1)
        out[:] = np.maximum(probabilities[:, known].max(axis=1, initial=0), np.minimum(outside, 1))
    return found


def topic_probabilities(
    probabilities: Array, groups: Sequence[Sequence[int]], forest: Forest, n_known: int, guide: Guide
) -> Array:
    """Probabilities of topics from the classes of the guide; no topic of a tree exceeds its parent.

    In an open world, P(none) comes last: without the groups that are part of a known topic by now.
    """
    if not guide.open:
        return forest.raised(merged_classes(probabilities, groups, guide.n_known))
    adopted = [k for group in groups[:n_known] for k in group if k >= guide.n_known]
    none = np.maximum(probabilities[:, -1] - probabilities[:, adopted].sum(axis=1), 0)
    merged = merged_classes(probabilities[:, :-1], groups, guide.n_known)
    return np.hstack([forest.raised(merged), none[:, None]])


def topic_classes(
    groups: Sequence[Sequence[int]], free_groups: Sequence[Sequence[int]], n_known: int
) -> list[tuple[int, ...]]:
    """Classes of the guide that make up each topic: known ones first; groups are numbered after ``n_known`` classes."""
    return [*map(tuple, groups), *(tuple(n_known + k for k in group) for group in free_groups)]


def covered_topics(guide: Guide, groups: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    """Whether the guide covers each topic."""
    covers = guide.covers
    return np.array([covers[list(group)].any() for group in groups], dtype=np.bool_)


def apply_labels(probabilities: Array, supervision: Supervision) -> Array:
    """Replace the probabilities of labelled documents: 1 for permitted topics, 0 for forbidden topics.

    Columns after the known topics are free topics and, last, P(none); documents with a label have none of them, and
    documents that are labelled with none of the topics have no known one. Memberships below a label assume that the
    label is right.
    """
    states = supervision.patterns[supervision.pattern]
    known = states.shape[1]
    below = supervision.forest.conditional(probabilities[:, :known], states)
    labelled = np.where(states == PERMITTED, 1, np.where(states == FORBIDDEN, 0, below))
    if known == probabilities.shape[1]:
        return np.asarray(labelled, dtype=probabilities.dtype)
    free = np.where(supervision.permits[:, None], 0, probabilities[:, known:])
    free[supervision.outsiders, -1] = 1
    return np.hstack([labelled, free]).astype(probabilities.dtype)


def choose_thresholds(probabilities: Array, forest: Forest = FLAT) -> Array:
    """The threshold of each known topic from probabilities; no parent has a larger one than a child."""
    return forest.lowered(best_thresholds(probabilities))


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


# Membership from which a document has a free topic: the largest threshold that a known topic may have.
FREE_THRESHOLD = max(THRESHOLD_RANGE)


@dataclass(frozen=True, eq=False, repr=False)
class Memberships:
    """Memberships of documents in known topics, in free topics and in none of the known topics.

    Parameters
    ----------
    values : array (n_documents, n_topics + 1)
        Known topics, free topics, and P(none). Known topics are enough for ``has_known`` and ``decisions``.
    thresholds : array (n_known,)
        Threshold of each known topic.
    open : bool
        Whether documents may have none of the known topics.
    forest : Forest
        The tree of the known topics.

    Examples
    --------
    >>> P = np.array([[0.9, 0.0, 0.1], [0.1, 0.7, 0.9], [0.1, 0.1, 0.9]])
    >>> found = Memberships(P, np.array([0.5]), open=True)
    >>> found.has().tolist(), found.main().tolist()
    ([[True, False], [False, True], [False, False]], [0, 1, 2])
    """

    values: Array
    thresholds: Array
    open: bool = False
    forest: Forest = FLAT

    @property
    def known(self) -> Array:
        """Memberships in the known topics."""
        return self.values[:, : len(self.thresholds)]

    @property
    def free(self) -> Array:
        """Memberships in the free topics."""
        return self.values[:, len(self.thresholds) : -1]

    @property
    def none(self) -> Array:
        """P(none)."""
        return self.values[:, -1]

    @cached_property
    def has_known(self) -> NDArray[np.bool_]:
        """Whether each document has each known topic: memberships at or above the thresholds."""
        return np.asarray(self.known >= self.thresholds)

    @cached_property
    def has_none(self) -> NDArray[np.bool_]:
        """Whether each document has none of the known topics; in a closed world only by a label."""
        if self.open:
            return np.asarray(~self.has_known.any(axis=1))
        return np.asarray(self.none > self.known.max(axis=1, initial=0.0))

    def has(self) -> NDArray[np.bool_]:
        """Whether each document has each topic; in an open world, documents with a known topic have no free one."""
        free = np.asarray(self.free >= FREE_THRESHOLD)
        if self.open:
            free &= self.has_none[:, None]
        return np.hstack([self.has_known, free])

    def decisions(self, names: Sequence[str], *, ancestors: bool = False) -> list[list[str]]:
        """Return the names of the known topics of each document, strongest first.

        In a tree these are the deepest topics, and with ``ancestors`` also the topics above them.
        """
        has = self.forest.with_ancestors(self.has_known) if ancestors else self.forest.deepest(self.has_known)
        order = np.argsort(-self.known, axis=1, kind="stable")
        return [[names[k] for k in ranks if row[k]] for row, ranks in zip(has, order, strict=True)]

    def main(self) -> NDArray[np.int64]:
        """Return the main topic of each document; the number after the last topic stands for none.

        It is the strongest known topic that the document has, of a tree the deepest. In an open world, other documents
        have their strongest free topic, or none. In a closed world, they have their strongest topic of any kind.
        """
        n_known = len(self.thresholds)
        P = np.asarray(self.values, dtype=np.float32)
        strength = P.copy()
        has = self.forest.deepest(self.has_known)
        lacks = ~has.any(axis=1)
        strength[:, :n_known][~has] = 0
        strength[~lacks, n_known:] = 0
        if self.open:
            free = strength[:, n_known:-1]
            free[free < FREE_THRESHOLD] = 0
            strength[lacks & ~free.any(axis=1), -1] = np.inf
            strength[lacks & free.any(axis=1), -1] = 0
        else:
            strength[lacks] = P[lacks]
            strength[~P.any(axis=1), -1] = np.inf
        return np.asarray(strength.argmax(axis=1))
