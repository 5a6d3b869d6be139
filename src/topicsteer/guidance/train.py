"""Training of a guide: the known topics, then the decision whether the world is open, and its groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from topicsteer.guidance import constants
from topicsteer.guidance.classes import Learnt, Task, learn
from topicsteer.guidance.features import Sample, joint, unit_rows
from topicsteer.guidance.guide import Classes, Guide, free_shares
from topicsteer.guidance.keywords import TopicTexts
from topicsteer.guidance.open_world import (
    UNCHANGED,
    GroupInput,
    calibrate_none,
    find_groups,
    group_positions,
    merge_order,
    number_of_groups,
    share_outside,
    with_groups,
)
from topicsteer.guidance.regression import Choice, Rivalry
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN
from topicsteer.system.memory import release_memory
from topicsteer.system.threads import OrderedMap, workers
from topicsteer.system.types import Array, Report

WORLDS = (None, "open", "closed")
# Prior share of documents without a known topic, which counts half where labels are few.
SHARE_IF_UNKNOWN = 1 / 3
# This many documents that are labelled with none of the topics declare the world open.
DECLARED = 3
# A free topic is shown if it has at least this many documents and this share of them.
MIN_TOPIC_DOCUMENTS, MIN_TOPIC_SHARE = 3, 0.001


def learn_guide(
    sample: Sample,
    names: TopicTexts | None = None,
    *,
    choice: Choice | None = None,
    world: str | None = None,
    n_free: int = 0,
    asked: bool = False,
    previous: Guide | None = None,
    report: Report = str,
) -> Guide | None:
    """Learn a guide from labels and texts about topics; None if there are neither.

    Parameters
    ----------
    sample : Sample
        The documents to learn from, with their labels.
    names : TopicTexts, optional
        Names, descriptions and keywords of the topics.
    choice : Choice, optional
        Settings of features and regressions; None = chosen from the labels.
    world : "open", "closed" or None
        Whether documents may have none of the known topics. None: decided from the documents. Documents that are
        labelled with none of the topics declare an open world as well.
    n_free : int
        Number of free topics that must be possible.
    asked : bool, default=False
        Whether the user asked for this number, and so expects unnamed topics. A share of documents without a known
        topic then opens the world even if it could be chance.
    previous : Guide, optional
        An earlier guide of an open world, whose groups are kept.
    report : callable, optional
        Called with the name of each step.

    Returns
    -------
    Guide or None

    Examples
    --------
    >>> from topicsteer.labels.forms import supervise
    >>> from topicsteer.backends import as_rows
    >>> X = sp.csr_array(np.kron(np.eye(2), np.full((4, 3), 3**-0.5)).astype(np.float32))
    >>> labels = supervise({0: "a", 4: "b"}, 8)
    >>> learn_guide(Sample(as_rows(X), labels), world="closed").probabilities(X).argmax(axis=1)
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """
    forest = sample.supervision.forest
    states = assumed_states(sample.supervision.patterns[sample.supervision.pattern[sample.labelled]], forest)
    named = np.zeros(0, dtype=np.int64) if names is None else names.topics
    covered = np.flatnonzero((states == PERMITTED).any(axis=0) | np.isin(np.arange(states.shape[1]), named))
    if not covered.size:
        return None
    if sample.given is None:
        report("features")
    D_names = _features_of_names(sample, names)
    report("known topics")
    with workers(sample.threads) as run:
        task = _task(sample, states, covered, names, D_names, run)
        closed = learn(task, choice)
        guide = _closed_guide(sample, task, closed, covered, forest)
        if world == "closed":
            return guide
        report("documents without a topic")
        outsiders = (states == FORBIDDEN).all(axis=1)
        declared = world == "open" or previous is not None or outsiders.sum() >= DECLARED
        declared |= states.shape[1] == 1 and not (states == FORBIDDEN).any()  # the rest of the corpus is the no
        D = joint(sample.latent, sample.meaning, guide.share)
        known = closed.probabilities[:, : len(covered)]
        estimate = share_outside(D, task.rows, task.given[:, : len(covered)], known, run)
        if not declared and not estimate.is_open(asked):
            return guide
        share = (estimate.share + SHARE_IF_UNKNOWN) / 2 if estimate.few else estimate.share
        if outsiders.sum() >= constants.FEW_LABELS:
            share = float(outsiders.mean())
        leaves = sum(not set(forest.children[k]) & set(covered.tolist()) for k in covered.tolist())
        n_groups = number_of_groups(leaves, share, n_free, task.n_documents)
        n_groups = previous.n_groups if previous is not None and previous.n_groups else n_groups
        if n_groups < 1 or not D.shape[1]:
            return replace(guide, open=True)
        report("groups of documents")
        R = _groups(sample, task, known, n_groups, previous, run)
        release_memory()
        whole = with_groups(task, R)
        learnt = learn(whole, closed.choice)
    return _open_guide(sample, guide, whole, learnt)


def _features_of_names(sample: Sample, names: TopicTexts | None) -> tuple[Array, Array]:
    """Latent semantics and meaning of the texts about topics; their meaning is centred by their own mean."""
    features = sample.features
    if names is None or not names.topics.size:
        return np.zeros((0, features.width), np.float32), np.zeros((0, len(features.centre)), np.float32)
    Z = features.latent(np.asarray(names.terms @ features.directions))
    if names.embeddings is None or names.embeddings.shape[1] != len(features.rotation):
        return Z, np.zeros((len(Z), len(features.centre)), np.float32)
    rows = unit_rows(features.reduced(names.embeddings))
    return Z, features.meaning(rows, rows.mean(axis=0) if len(rows) > 2 else None)


def _task(
    sample: Sample,
    states: NDArray[np.int8],
    covered: NDArray[np.int64],
    names: TopicTexts | None,
    D_names: tuple[Array, Array],
    run: OrderedMap,
) -> Task:
    """The task of the known topics; documents that are labelled with none of them are a class of their own."""
    own = states[:, covered]
    outsiders = (states == FORBIDDEN).all(axis=1)
    more = int(outsiders.any())
    if more:
        decided = (own == PERMITTED).any(axis=1)
        none = np.where(outsiders, PERMITTED, np.where(decided, FORBIDDEN, UNKNOWN)).astype(np.int8)
        own = np.hstack([own, none[:, None]])
    X = sample.terms
    place = np.full(states.shape[1], -1)
    place[covered] = np.arange(len(covered))
    named = np.zeros(0, dtype=np.int64)
    if names is not None and names.topics.size:
        named = place[names.topics]
        X = sp.csr_array(sp.vstack([X, names.terms.astype(X.dtype)], format="csr"))
    return Task(
        X,
        np.vstack([sample.latent, D_names[0]]),
        np.vstack([sample.meaning, D_names[1]]),
        np.arange(len(own)),
        own,
        np.ones(len(own), dtype=np.bool_),
        named,
        len(covered),
        Rivalry.of(sample.supervision.forest, covered, more),
        run,
    )


def assumed_states(states: NDArray[np.int8], forest: Forest) -> NDArray[np.int8]:
    """Label states with the assumption that a document lacks the topics that its labels leave open.

    Labels with yes only would otherwise leave a topic without a single document that lacks it. A document without any
    topic among its labels is left as it is, and topics below a label that ends above them stay unknown.

    Examples
    --------
    >>> assumed_states(np.array([[1, -1, -1], [-1, 0, -1]], dtype=np.int8), Forest((-1, -1, 0))).tolist()
    [[1, 0, -1], [-1, 0, -1]]
    """
    some = (states == PERMITTED).any(axis=1, keepdims=True)
    found = np.where((states == UNKNOWN) & some, FORBIDDEN, states).astype(np.int8)
    for k in forest.order:
        parent = forest.parents[k] if not forest.flat else -1
        if parent >= 0:
            kept = (states[:, k] == UNKNOWN) & (found[:, parent] != FORBIDDEN)
            found[kept, k] = UNKNOWN
    return found


def _closed_guide(sample: Sample, task: Task, learnt: Learnt, covered: NDArray[np.int64], forest: Forest) -> Guide:
    labelled = sample.latent[task.rows]
    if not sample.features.given:
        labelled = joint(labelled, sample.meaning[task.rows], learnt.choice.share)
    return Guide(
        sample.features,
        learnt.choice,
        Classes.of(learnt),
        covered.astype(np.int64),
        np.array(forest.parents, dtype=np.int64),
        sample.labelled.astype(np.int64),
        np.asarray(expit(learnt.hidden[:, : len(covered)]), dtype=np.float32),
        np.asarray(labelled.T @ labelled),
        len(task.rows),
    )


def _groups(sample: Sample, task: Task, known: Array, n_groups: int, previous: Guide | None, run: OrderedMap) -> Array:
    """Memberships in known topics and groups."""
    given = task.given[:, : known.shape[1]]
    rows = task.rows[given.any(axis=1)]
    target = given[given.any(axis=1)].astype(np.float64)
    free = np.ones(len(known), dtype=np.bool_)
    free[task.rows] = False
    best = known.argmax(axis=1)
    for k in np.flatnonzero(~given.any(axis=0)):  # names without labels
        own = np.flatnonzero(free & (best == k) & (known[:, k] >= 0.5))
        own = own[np.argsort(-known[own, k], kind="stable")[: constants.FEW_LABELS]]
        rows = np.append(rows, own)
        target = np.vstack([target, np.eye(known.shape[1])[np.full(len(own), k)]])
    order = np.argsort(rows, kind="stable")
    target /= np.maximum(target.sum(axis=1, keepdims=True), 1)
    n = task.n_documents
    positions = group_positions(sample.latent, sample.meaning)
    before = None
    if previous is not None and previous.groups is not None:
        E = None if not previous.embedding else sample.own_embeddings
        before = previous.probabilities(task.X[:n], sample.threads, embeddings=E)[:, previous.n_known : -1]
    return find_groups(GroupInput(task.X[:n], positions, rows[order], target[order], run), n_groups, before)


def _open_guide(sample: Sample, guide: Guide, task: Task, learnt: Learnt) -> Guide:
    """The guide with groups."""
    none = UNCHANGED
    if sample.drawn is not None:
        none = calibrate_none(learnt, task, guide.tops, sample.drawn[sample.labelled])
    free, _ = free_shares(learnt.probabilities, len(guide.covered), guide.tops, none)
    unlabelled = np.ones(len(free), dtype=np.bool_)
    unlabelled[: len(guide.rows)] = False
    sizes = free[unlabelled].sum(axis=0, dtype=np.float64)
    sizes *= int((~sample.supervision.labelled).sum()) / max(int(unlabelled.sum()), 1)
    merges = merge_order(free.T @ group_positions(sample.latent, sample.meaning))
    return replace(guide, open=True, groups=Classes.of(learnt), none=none, sizes=sizes, merges=merges)


def free_topics(guide: Guide, wanted: int | str, n_documents: int) -> tuple[tuple[int, ...], ...]:
    """Groups that make up each free topic, largest topic first: merged to a number; small topics are left out.

    "auto": as many as there would be if free topics were as large as known ones.
    """
    if guide.sizes is None or guide.merges is None or wanted == 0:
        return ()
    total = float(guide.sizes.sum())
    if isinstance(wanted, str):
        wanted = max(round(guide.n_known * total / max(n_documents - total, 1)), 1)
    topics = {k: [k] for k in range(guide.n_groups)}
    for kept, joins in guide.merges[: max(guide.n_groups - wanted, 0)].tolist():
        topics[kept] += topics.pop(joins)
    largest = sorted(topics.values(), key=lambda groups: -float(guide.sizes[groups].sum()))  # type: ignore[index]
    least = max(MIN_TOPIC_DOCUMENTS, MIN_TOPIC_SHARE * n_documents)
    return tuple(tuple(groups) for groups in largest if guide.sizes[groups].sum() >= least)
