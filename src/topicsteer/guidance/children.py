"""Free topics inside a topic: groups of the documents that have it, and none of the named topics below it.

A mixture finds groups among the documents of the topic, as at the top (`topicsteer.guidance.discover`). The named
topics below are its known classes. `topicsteer.guidance.outside` estimates which documents have none of them. A ridge
regression on the features of documents then smooths the groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicsteer.guidance.components import Components, learn_components
from topicsteer.guidance.discover import MixtureInput, find_groups
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.open_world import latent_positions
from topicsteer.guidance.outside import learn_outside
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, Supervision
from topicsteer.nmf.protocols import Rows
from topicsteer.system.threads import workers
from topicsteer.system.types import Array

# Documents that groups are found in, at most.
DOCUMENTS = 10_000
# A document has the topic from this membership on, or from this share of the largest if none reaches it.
MEMBER = 0.5
# Groups per wanted topic; similar groups merge.
GROUPS_PER_TOPIC = 3
# Documents per group, at least.
DOCUMENTS_PER_GROUP = 5
# Range of the number of topics if it is chosen automatically.
AUTO_RANGE = (2, 10)


@dataclass(frozen=True, eq=False)
class Branch:
    """A topic with the named topics below it.

    Parameters
    ----------
    membership : array (n_documents,)
        Membership of each document in the topic.
    below : array (n_documents, n_children)
        Memberships in the named topics just below it.
    states : array of int (n_documents, n_children)
        Label states of these.
    typical : float
        Expected number of documents of a typical topic without topics below it.
    """

    membership: Array
    below: Array
    states: NDArray[np.int8]
    typical: float

    @classmethod
    def of(cls, memberships: Array, supervision: Supervision, topic: int, found: NDArray[np.int64]) -> Branch:
        """The branch of a topic, from memberships in all known topics; ``found`` are free topics inside others."""
        parents = np.array(supervision.forest.parents if supervision.forest else [-1] * len(supervision.topics))
        below = np.setdiff1d(np.flatnonzero(parents == topic), found)
        sizes = memberships.sum(axis=0, dtype=np.float64)[~supervision.rests]
        typical = float(sizes.mean()) if sizes.size else 1.0
        states = supervision.patterns[:, below][supervision.pattern]
        return cls(memberships[:, topic], memberships[:, below], states, typical)


def find_children(
    X: Rows,
    branch: Branch,
    guide: Guide,
    wanted: int | str,
    *,
    embeddings: Array | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Components | None:
    """Free topics inside a topic; None if too few documents have it, or the corpus is too small for latent semantics.

    Parameters
    ----------
    X : Rows (n_documents, n_terms)
    branch : Branch
        The topic.
    guide : Guide
        The guide of the documents; its latent semantics are the features.
    wanted : int or "auto"
        Number of free topics, at most. "auto": as many as if they were as large as a typical topic.
    embeddings : array (n_documents, any), optional
    seed : int, default=0
        Seed of the sample of documents.
    threads : int, optional
    """
    rows = members(branch.membership, X.sizes > 0, seed)
    sure = (branch.states[rows] == PERMITTED).any(axis=1)
    rows = np.concatenate([rows[sure], rows[~sure]])  # documents with a label below come first
    E = None if embeddings is None else embeddings[rows]
    if len(rows) < 2 * DOCUMENTS_PER_GROUP or not guide.directions.shape[1]:
        return None
    with workers(threads):
        terms = X.take(rows)
        D = guide.features(terms, threads, embeddings=E)
        none = _none(D, branch, rows, int(sure.sum()))
        number = wanted
        if isinstance(number, str):
            number = int(np.clip(round(float(none.sum()) / max(branch.typical, 1)), *AUTO_RANGE))
        if len(rows) < number * DOCUMENTS_PER_GROUP:
            return None
        topics = _shares(branch, rows)
        fixed = np.arange(len(rows)) < sure.sum()
        corpus = MixtureInput(terms, latent_positions(D, guide), topics, none, fixed, threads)
        groups, tree = find_groups(
            corpus, max(number, min(GROUPS_PER_TOPIC * number, len(rows) // DOCUMENTS_PER_GROUP))
        )
        chosen = [list(topic) for topic in tree.cut(number) if groups[:, list(topic)].sum() >= 1]
        if not chosen:
            return None
        return learn_components(D, np.stack([groups[:, topic].sum(axis=1) for topic in chosen], axis=1))


def members(membership: Array, usable: NDArray[np.bool_], seed: int) -> NDArray[np.intp]:
    """Documents of a topic, or a sample of them."""
    most = float(np.max(membership[usable], initial=0))
    rows = np.flatnonzero(usable & (membership >= min(MEMBER, MEMBER * most)) & (membership > 0))
    if len(rows) > DOCUMENTS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, DOCUMENTS, replace=False))
    return rows


def _none(D: Array, branch: Branch, rows: NDArray[np.intp], labelled: int) -> Array:
    """Probability that documents have none of the named topics below; the first ``labelled`` have one."""
    states = branch.states[rows]
    if not states.shape[1]:
        return branch.membership[rows].astype(np.float32)
    if labelled:
        nobody = np.zeros((0, D.shape[1])), np.zeros(0, dtype=np.int64)
        outside, _ = learn_outside(D, states[:labelled], branch.below[rows], *nobody)
        none = outside.none(D)
    else:
        none = np.clip(1 - branch.below[rows].sum(axis=1), 0, 1)
    none[:labelled] = 0
    return np.where((states == FORBIDDEN).all(axis=1), np.float32(1), none).astype(np.float32)


def _shares(branch: Branch, rows: NDArray[np.intp]) -> Array:
    """Probability of each named topic below, given that there is one; without any, one class for other documents."""
    states = branch.states[rows]
    if not states.shape[1]:
        return np.ones((len(rows), 1), dtype=np.float32)
    given = states == PERMITTED
    equal = given / np.maximum(given.sum(axis=1, keepdims=True), 1)
    return np.where(given.any(axis=1, keepdims=True), equal, branch.below[rows]).astype(np.float32)
