"""Guides of a tree of topics: one flat guide per level, and one consistent probability per topic.

A tree is a stack of cuts: the topics of one level, with the leaves above it. No topic of a cut is below another, so
each cut is a flat problem for the guide (`topicsteer.guidance.train`).

- **Labels that end above a cut** name the right branch, but none of its topics. A first guide learns from the other
  documents. Its probabilities within the branch are the expected labels of these documents (:func:`expected_labels`).
  A second guide learns from all documents. This is one step of expectation maximisation.
- **Several cuts know a topic.** The log odds of a parent are the mean of its own and of the noisy-or of its children.
  Children then move by half of the difference (`combine_cuts`). No child exceeds its parent.

Both rules were chosen by average precision on 20 Newsgroups and Reuters: see `experiments/trees`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.guidance.calibration import Rounds
from topicsteer.guidance.guide import LEAST, Guide, Levels, empty_rounds
from topicsteer.guidance.keywords import TopicTexts
from topicsteer.guidance.latent import latent_directions
from topicsteer.guidance.train import train_guide
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.nmf.protocols import Rows
from topicsteer.system.types import Array


def train_tree(
    X: Rows,
    supervision: Supervision,
    open_world: Callable[..., Guide],
    *,
    names: TopicTexts | None = None,
    embeddings: Array | None = None,
    confidence: Array | None = None,
    directions: Array | None = None,
    **options: Any,
) -> Guide | None:
    """Train the guides of all cuts of a tree, and join them; None if no cut has labels or names.

    Parameters
    ----------
    X, names, embeddings, confidence, directions, **options
        As in `topicsteer.guidance.train.train_guide`.
    supervision : Supervision
        Labels that follow the tree.
    open_world : callable
        From a guide of flat topics to the guide of an open world; called with the guide and, by name, ``supervision``,
        ``names`` and ``confidence``.
    """
    forest = supervision.forest
    if directions is None:
        directions = latent_directions(X, options.get("seed", 0), options.get("threads"))
    shared = {"embeddings": embeddings, "confidence": confidence, "directions": directions, **options}
    guides = train_cuts(X, supervision, forest, names=names, **shared)
    base = max((level for level, guide in enumerate(guides) if guide is not None), default=-1)
    if base < 0 or (leaves := guides[base]) is None:
        return None
    cut = forest.cuts[base]
    flat, weight = likeliest_labels(X, supervision, forest, cut, leaves, embeddings, confidence, options.get("threads"))
    texts = None if names is None else texts_of(names, cut)
    opened = open_world(leaves, supervision=flat, names=texts, confidence=weight)
    above = [None if level == base else guide for level, guide in enumerate(guides)]
    return _joined(opened, forest, above, base)


def likeliest_labels(
    X: Rows,
    supervision: Supervision,
    forest: Forest,
    cut: Sequence[int],
    guide: Guide,
    embeddings: Array | None,
    confidence: Array | None,
    threads: int | None,
) -> tuple[Supervision, Array | None]:
    """Flat labels of a cut: labels that end above it become their likeliest topic below, with less confidence."""
    topics = tuple(supervision.topics[k] for k in cut)
    flat = Supervision(topics, supervision.pattern, supervision.patterns[:, list(cut)])
    rows = np.flatnonzero(np.asarray(ends(supervision.patterns, forest, cut).any(axis=1))[flat.pattern])
    if not rows.size:
        return flat, confidence
    E = None if embeddings is None else embeddings[rows]
    P = guide.probabilities(X.take(rows), threads, embeddings=E)
    expected = expected_labels(P, supervision, forest, cut, rows)[rows].toarray()
    states = np.full(expected.shape, UNKNOWN, dtype=np.int8)
    states[np.arange(len(rows)), expected.argmax(axis=1)] = PERMITTED
    weight = np.ones(X.shape[0]) if confidence is None else confidence.astype(np.float64)
    weight[rows] *= np.maximum(expected.max(axis=1), LEAST)
    return flat.relabel(rows, states, len(flat.pattern)), weight


def _joined(
    guide: Guide,
    forest: Forest,
    guides: Sequence[Guide | None],
    base: int,
) -> Guide:
    """The guide of the base cut with the guides of the other cuts as its levels; topics get their final numbers."""
    n_known, own = len(forest), np.array(forest.cuts[base])
    q, width, latent = guide.directions.shape[1], len(guide.dense), len(guide.seen)

    def numbers(covered: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of topics and groups among all."""
        known = covered < len(own)
        return np.where(known, own[np.where(known, covered, 0)], covered - len(own) + n_known)

    rounds, bases, left_out = [], [guide.basis], [guide.left_out[:, :0]]
    for level, (cut, other) in enumerate(zip(forest.cuts, guides, strict=True)):
        if level == base:
            continue
        if other is None:
            rounds.append(empty_rounds(width))
            continue
        dense = other.dense.copy()
        if guide.embedding:  # features have the weight of the embeddings of the base
            dense[latent:] *= np.float32(np.sqrt(other.embedding / guide.embedding))
        covered = np.asarray(cut)[other.covered]
        rounds.append(Rounds(dense, other.scale, other.calibration, other.word_round, covered))
        bases.append(other.basis[:, q:])
        left_out.append(other.left_out)
    levels = Levels(np.array(forest.parents), tuple(rounds), base, np.hstack(left_out))
    return replace(
        guide,
        basis=np.ascontiguousarray(np.hstack(bases)),
        covered=numbers(guide.covered),
        closed=None if guide.closed is None else replace(guide.closed, covered=numbers(guide.closed.covered)),
        n_known=n_known,
        levels=levels,
    )


def train_cuts(
    X: Rows,
    supervision: Supervision,
    forest: Forest,
    *,
    names: TopicTexts | None = None,
    embeddings: Array | None = None,
    **options: Any,
) -> list[Guide | None]:
    """Train one guide per cut.

    Parameters
    ----------
    X : Rows (n_documents, n_terms)
    supervision : Supervision
        Labels that follow the tree: a permitted topic permits the topics above it. If the labels of a document end at
        a topic, the topics below are unknown.
    forest : Forest
        The tree of the topics.
    names : TopicTexts, optional
        Texts about all topics.
    embeddings : array, optional
        Embeddings of the documents.
    **options
        Further options of :func:`topicsteer.guidance.train.train_guide`.

    Returns
    -------
    list of Guide or None
        None for a cut without labels and names.

    Examples
    --------
    >>> from topicsteer.backends import as_rows
    >>> X = sp.csr_array(np.kron(np.eye(4), np.full((3, 3), 3**-0.5)).astype(np.float32))
    >>> states = [-1, -1, -1, -1], [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1], [1, -1, -1, 0]
    >>> patterns = np.array(states, dtype=np.int8)
    >>> pattern = np.array([1, 0, 0, 2, 4, 0, 3, 0, 0, 0, 0, 0], dtype=np.int32)
    >>> labels = Supervision(("sport", "tennis", "chess", "arts"), pattern, patterns)
    >>> guides = train_cuts(as_rows(X), labels, Forest((-1, 0, 0, -1)))
    >>> [guide.probabilities(X)[4].argmax().item() for guide in guides]
    [0, 1]
    """
    found: list[Guide | None] = []
    for cut in forest.cuts:
        shared = {"names": None if names is None else texts_of(names, cut), "embeddings": embeddings, **options}
        first = None
        topics = tuple(supervision.topics[k] for k in cut)
        labels = Supervision(topics, supervision.pattern, supervision.patterns[:, list(cut)])
        ended = np.asarray(ends(supervision.patterns, forest, cut).any(axis=1))[labels.pattern]
        if ended.any():
            first = train_guide(X, replace(labels, pattern=np.where(ended, np.int32(0), labels.pattern)), **shared)
        expected = None
        if ended.any() and first is not None:
            rows = np.flatnonzero(ended)
            E = None if embeddings is None else embeddings[rows]
            probabilities = first.probabilities(X.take(rows), options.get("threads"), embeddings=E)
            expected = expected_labels(probabilities, supervision, forest, cut, rows)
            shared["directions"] = first.directions
        found.append(train_guide(X, labels, expected=expected, **shared))
    return found


def ends(patterns: NDArray[np.int8], forest: Forest, cut: Sequence[int]) -> NDArray[np.bool_]:
    """Whether the labels of each pattern end at each topic, which leaves topics of the cut below it unknown.

    Examples
    --------
    >>> ends(np.array([[1, -1, -1, 0], [1, 1, 0, 0]], dtype=np.int8), Forest((-1, 0, 0, -1)), (1, 2, 3)).tolist()
    [[True, False, False, False], [False, False, False, False]]
    """
    found = np.zeros(patterns.shape, dtype=np.bool_)
    for k, inside in branches(forest, cut).items():
        reached = (patterns[:, list(forest.children[k])] == PERMITTED).any(axis=1)
        unknown = (patterns[:, np.asarray(cut)[inside]] == UNKNOWN).any(axis=1)
        found[:, k] = (patterns[:, k] == PERMITTED) & ~reached & unknown
    return found


def branches(forest: Forest, cut: Sequence[int]) -> dict[int, NDArray[np.intp]]:
    """Positions in the cut of the topics below each topic above the cut.

    Examples
    --------
    >>> branches(Forest((-1, 0, 0, -1)), (1, 2, 3))
    {0: array([0, 1])}
    """
    found: dict[int, list[int]] = {}
    for position, topic in enumerate(cut):
        for above in forest.ancestors(topic):
            found.setdefault(above, []).append(position)
    return {topic: np.array(positions, dtype=np.intp) for topic, positions in found.items()}


def expected_labels(
    probabilities: Array,
    supervision: Supervision,
    forest: Forest,
    cut: Sequence[int],
    rows: NDArray[np.intp],
) -> sp.csr_array:
    """Probabilities of topics of a cut, given that the labels above them are right.

    A document has one topic of the branch at which its labels end, in proportion to the probabilities. If some
    documents are known to have none of these topics, others have one of them less often by that share.

    Parameters
    ----------
    probabilities : array (n_rows, size of the cut)
        Probabilities of the topics of the cut in these rows.
    supervision : Supervision
        Labels of all documents, which follow the tree.
    forest : Forest
        The tree of the topics.
    cut : sequence of int
        Topics of the cut.
    rows : array of int (n_rows,)
        Documents with labels that end above the cut.

    Returns
    -------
    CSR (n_documents, size of the cut)

    Examples
    --------
    >>> patterns = np.array([[-1, -1, -1], [1, -1, -1]], dtype=np.int8)
    >>> labels = Supervision(("sport", "tennis", "chess"), np.array([0, 1], dtype=np.int32), patterns)
    >>> found = expected_labels(np.array([[0.3, 0.1]]), labels, Forest((-1, 0, 0)), (1, 2), np.array([1]))
    >>> found.toarray().round(2).tolist()
    [[0.0, 0.0], [0.75, 0.25]]
    """
    patterns, topics = supervision.patterns, np.asarray(cut)
    ended = ends(patterns, forest, cut)
    uses = np.bincount(supervision.pattern, minlength=len(patterns))
    out = np.zeros((len(rows), len(cut)))
    for k, inside in branches(forest, cut).items():
        states = patterns[:, topics[inside]]
        decided = (patterns[:, k] == PERMITTED) & (states != UNKNOWN).all(axis=1)
        rest = uses[decided & (states == FORBIDDEN).all(axis=1)].sum() / max(uses[decided].sum(), 1)
        mine = np.flatnonzero(ended[supervision.pattern[rows], k])
        P = np.clip(probabilities[np.ix_(mine, inside)].astype(np.float64), LEAST, 1 - LEAST)
        P[states[supervision.pattern[rows[mine]]] != UNKNOWN] = 0
        out[np.ix_(mine, inside)] = np.maximum((1 - rest) * P / P.sum(axis=1, keepdims=True), LEAST * (P > 0))
    place = np.full(len(supervision.pattern), len(rows))
    place[rows] = np.arange(len(rows))
    return sp.csr_array(sp.vstack([sp.csr_array(out), sp.csr_array((1, len(cut)))], format="csr")[place])


def texts_of(names: TopicTexts, cut: Sequence[int]) -> TopicTexts:
    """Texts about the topics of a cut, by their positions in it."""
    place = {topic: position for position, topic in enumerate(cut)}
    kept = np.array([i for i, topic in enumerate(names.topics.tolist()) if topic in place], dtype=np.int64)
    topics = np.array([place[topic] for topic in names.topics[kept].tolist()], dtype=np.int64)
    return TopicTexts(
        sp.csr_array(names.terms[kept]), topics, None if names.embeddings is None else names.embeddings[kept]
    )
