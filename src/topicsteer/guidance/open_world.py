"""The guide of an open world, in which some documents have none of the known topics.

:func:`open_guide` decides whether the world is open. If it is, the guide learns again, with groups of documents
without a known topic as further classes:

1. `topicsteer.guidance.outside` estimates the probability that a document has no known topic.
2. `topicsteer.guidance.discover` finds groups among these documents, many and small, and the tree in which they merge.
3. The surest documents of each group are its labels, and the guide learns known topics and groups alike.

Known topics do not depend on the number of free topics that the user wants to see: it only decides where the tree is
cut. Documents of a corpus with several topics each do not form groups. There, `topicsteer.guidance.discover` finds as
many free topics as the user wants. If the user asks for free topics in a closed world, groups become such components,
too: they are shown, and known topics stay as they are.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topicsteer.guidance.apply import with_name_labels
from topicsteer.guidance.calibration import LIKELY, SEVERAL, topics_per_document
from topicsteer.guidance.discover import (
    DIMENSIONS,
    Components,
    GroupTree,
    MixtureInput,
    continue_groups,
    find_components,
    find_groups,
    learn_components,
    merge_tree,
)
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.keywords import TopicTexts
from topicsteer.guidance.latent import block_sizes, dense_features, unit_rows
from topicsteer.guidance.outside import Outside, ShareOutside, learn_outside
from topicsteer.guidance.ridge import EXACT_DOCUMENTS, no_report
from topicsteer.guidance.train import Sample, train_guide
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.nmf.protocols import Rows
from topicsteer.system.threads import workers
from topicsteer.system.types import Array, Report

WORLDS = (None, "open", "closed")
# This many documents that are marked as outsiders declare the world open.
MIN_OUTSIDERS = 3
# Documents have several topics each if documents with a known topic have this many known ones on average.
SEVERAL_TOPICS = 1.3
# Number of groups: at least this, at least this many per known topic. At most one per this many documents outside.
MIN_GROUPS, GROUPS_PER_TOPIC, DOCUMENTS_PER_GROUP = 20, 2, 30
# Labels of a group: this many times the labels of the median known topic, within a range.
LABELS_PER_LABEL, GROUP_LABELS = 1.5, (10, 100)
# A free topic is shown if it has at least this many documents and this share of them.
MIN_TOPIC_DOCUMENTS, MIN_TOPIC_SHARE = 3, 0.001
# Fewest labels of a group where the number of groups limits them.
FEWEST_LABELS = 5


def open_guide(
    X: Rows,
    supervision: Supervision,
    closed: Guide,
    *,
    names: TopicTexts | None = None,
    embeddings: Array | None = None,
    confidence: Array | None = None,
    world: str | None = None,
    n_free: int | None = None,
    asked: bool = False,
    previous: Guide | None = None,
    sample: Sample | None = None,
    seed: int = 0,
    threads: int | None = None,
    report: Report = no_report,
) -> Guide:
    """The guide of an open world; in a closed world the given guide, unchanged.

    Parameters
    ----------
    X, supervision, names, embeddings, confidence, sample, seed, threads, report
        As in `train_guide`.
    closed : Guide
        The guide under the assumption that every document has a known topic.
    world : "open", "closed" or None
        None: decided from the documents. Documents that are marked as outsiders declare an open world as well.
    n_free : int, optional
        Number of free topics that must be possible; None = any.
    asked : bool, default=False
        Whether the user asked for this number, and so expects unnamed topics. A share of documents without a known
        topic then opens the world even if it could be chance. In a closed world, free topics are looked for, too, and
        known topics do not change.
    previous : Guide, optional
        An earlier guide of an open world, whose groups are kept.
    """
    if world == "closed":
        return closed
    sample = sample or Sample(X, supervision, embeddings, closed.directions, seed, threads)
    sight = _Sight(sample, closed, names)
    if previous is not None and not previous.believes_open:
        return sight.with_components(closed, n_free, previous)
    declared = world == "open" or sight.declared or previous is not None
    if not sight.D.shape[1] or len(sample.rows) == len(closed.rows):  # too few documents for latent semantics
        return replace(closed, open=declared)
    report("documents without a topic")
    outside, estimate = sight.outside()
    several = sight.several_topics if previous is None else not previous.group_classes
    if not declared and not (estimate.is_open or (asked and estimate.is_large)):
        if not asked:
            return closed
        report("free topics")
        if several:
            return sight.with_components(closed, n_free)
        return sight.with_group_components(closed, outside, n_free)
    only_outside = replace(closed, open=True, outside=outside)
    if several:
        report("free topics")
        return sight.with_components(only_outside, n_free, previous)
    report("groups of documents")
    groups, tree = sight.groups(outside, n_free, previous)
    if tree is None:
        return only_outside
    labels = sight.second_labels(groups, outside)
    learnt = train_guide(
        X,
        labels,
        names=names,
        embeddings=embeddings,
        confidence=confidence,
        choice=closed.choice,
        sample=Sample(X, labels, embeddings, closed.directions, seed, threads, sample.given_latent),
        threads=threads,
        report=report,
    )
    if learnt is None:
        return only_outside
    joint = _joint(closed, learnt, supervision.labelled[learnt.rows], groups.shape[1], outside)
    return replace(joint, tree=sight.measured(tree, joint))


def _joint(closed: Guide, learnt: Guide, real: NDArray[np.bool_], n_groups: int, outside: Outside) -> Guide:
    """The guide with groups, joined with the closed one; ``real`` marks its documents with labels of the user."""
    return replace(
        learnt,
        basis=np.hstack([learnt.basis, closed.basis[:, closed.directions.shape[1] :]]),
        closed=closed.rounds,
        n_known=closed.n_known,
        n_groups=n_groups,
        open=True,
        outside=outside,
        rows=learnt.rows[real],
        left_out=learnt.left_out[real],
        seen=closed.seen,
    )


@dataclass(frozen=True, eq=False)
class _Sight:
    """The documents that the outside is learnt from: labelled ones, followed by background documents."""

    sample: Sample
    closed: Guide
    names: TopicTexts | None

    @property
    def states(self) -> NDArray[np.int8]:
        """Label states of the labelled documents."""
        return self.sample.states

    @property
    def threads(self) -> int | None:
        """Number of threads; None = all cores."""
        return self.sample.threads

    @property
    def given(self) -> NDArray[np.bool_]:
        """Topics of the labelled documents."""
        return np.asarray(self.states == PERMITTED)

    @property
    def outsiders(self) -> NDArray[np.bool_]:
        """Labelled documents that are marked as having none of the topics."""
        return np.asarray((self.states == FORBIDDEN).all(axis=1))

    @property
    def declared(self) -> bool:
        """Whether the labels declare an open world."""
        return bool(self.outsiders.sum() >= MIN_OUTSIDERS) or one_sided(self.states)

    @cached_property
    def D(self) -> Array:
        """Their dense features."""
        return self.sample.dense(self.closed.embedding)

    @cached_property
    def probabilities(self) -> Array:
        """Probability of each known topic under the assumption that every document has one."""
        own = self.sample
        return self.closed.probabilities(own.terms, self.threads, embeddings=own.own_embeddings, latent=own.latent)

    def outside(self) -> tuple[Outside, ShareOutside]:
        """The outside, and the estimated share of unlabelled documents in it."""
        names, named = _name_features(self.names, self.closed, self.D.shape[1])
        found = self.probabilities
        with workers(self.threads) as run:
            return learn_outside(self.D, self.states, found, names, named, run)

    def groups(self, outside: Outside, n_free: int | None, previous: Guide | None) -> tuple[Array, GroupTree | None]:
        """Memberships in groups and their tree; None without any group. An earlier guide keeps its groups."""
        found = self.probabilities
        with workers(self.threads):
            corpus = _corpus(self.sample, self.D, self.closed, found, outside.none(self.D))
            if previous is None or previous.tree is None:
                n_groups = _number_of_groups(self.closed.n_known, n_free, corpus)
                return find_groups(corpus, n_groups) if n_groups else (found[:, :0], None)
        before = previous.probabilities(self.sample.terms, self.threads, embeddings=self.sample.own_embeddings)
        before = before[:, previous.n_known :] * np.where(corpus.fixed, 0, corpus.none)[:, None]
        with workers(self.threads):
            before /= np.maximum(before.sum(axis=1, keepdims=True), 1)
            return continue_groups(corpus, before), previous.tree

    @property
    def several_topics(self) -> bool:
        """Whether documents typically have several known topics, by the labels or, without any, by the names."""
        if self.given.any():
            return several_topics(self.given, self.probabilities)
        return topics_per_document(self.probabilities >= LIKELY) >= SEVERAL

    def second_labels(self, groups: Array, outside: Outside) -> Supervision:
        """The labels, with the surest documents of each group, and of each name without a label."""
        labels = with_group_labels(self.sample.supervision, self.sample.rows, groups, self.given, self.outsiders)
        if self.given.any(axis=0).all():
            return labels
        return with_name_labels(labels, self.sample.rows, self.probabilities * (1 - outside.none(self.D))[:, None])

    def with_components(self, guide: Guide, n_free: int | None, previous: Guide | None = None) -> Guide:
        """The guide with components as free topics, if their number is known. An earlier guide keeps its components."""
        if not n_free if previous is None else previous.components is None:
            return guide
        known, E = self.probabilities, self.sample.own_embeddings
        if previous is not None and previous.tree is not None:
            before = previous.probabilities(self.sample.terms, self.threads, embeddings=E)[:, previous.n_known :]
            with workers(self.threads):
                return self._joined(guide, learn_components(self.D, before), previous.tree)
        first, second, q = block_sizes(guide.directions.shape[1])
        with workers(self.threads):
            found = find_components(self.D, self.D[:, first + second : first + second + q], known, n_free or 0)
            if found is None:
                return guide
            own = found.probabilities(self.D)
            tree = merge_tree(np.asarray((self.sample.terms.T @ own).T, dtype=np.float64), np.zeros(own.shape[1]))
        return self._joined(guide, found, tree)

    def with_group_components(self, guide: Guide, outside: Outside, n_free: int | None) -> Guide:
        """The guide with groups of documents as components, which leave its known topics as they are."""
        groups, tree = self.groups(outside, n_free, None)
        if tree is None:
            return guide
        with workers(self.threads):
            components = learn_components(self.D, groups)
        return self._joined(guide, components, tree)

    def _joined(self, guide: Guide, components: Components, tree: GroupTree) -> Guide:
        guide = replace(guide, open=True, components=components, n_groups=len(components.levels), tree=tree)
        return replace(guide, tree=self.measured(tree, guide))

    def measured(self, tree: GroupTree, guide: Guide) -> GroupTree:
        """The tree with the expected number of documents of each group of a guide, and the certainty of the group."""
        n, E = len(self.closed.rows), self.sample.own_embeddings
        own_E, latent = None if E is None else E[n:], self.sample.latent[n:]
        found = guide.probabilities(self.sample.terms[n:], self.threads, embeddings=own_E, latent=latent)
        found = found[:, guide.n_known :].astype(np.float64)
        scale = int((~self.sample.supervision.labelled).sum()) / (len(self.sample.rows) - n)
        sizes = found.sum(axis=0)
        certainty = (found**2).sum(axis=0) / np.maximum(sizes, 1e-9)
        return replace(tree, sizes=scale * sizes, certainty=np.minimum(certainty, 1))


def free_topics(guide: Guide, wanted: int | str, n_documents: int) -> tuple[tuple[int, ...], ...]:
    """Groups that make up each free topic, largest topic first; small topics are left out.

    "auto": as many as there would be if free topics were as large as known ones.
    """
    if guide.tree is None or wanted == 0:
        return ()
    size = float(guide.tree.sizes.sum())
    if isinstance(wanted, str):
        wanted = max(round(guide.n_known * size / max(n_documents - size, 1)), 1)
    least = max(MIN_TOPIC_DOCUMENTS, MIN_TOPIC_SHARE * n_documents)
    return tuple(topic for topic in guide.tree.cut(wanted) if guide.tree.size(topic) >= least)


def several_topics(given: NDArray[np.bool_], probabilities: Array) -> bool:
    """Whether documents with a known topic typically have several of them.

    Labels that were given topic by topic meet documents of many topics more often, because most of these have a rare
    topic as well. Each labelled document therefore weighs as much as its rarest topic has documents per label.
    """
    counts = given.sum(axis=1)
    if not counts.any():
        return False
    chance = (given * (given.sum(axis=0) / np.maximum(probabilities.sum(axis=0), 1))).max(axis=1)
    weight = np.where(counts > 0, 1 / np.maximum(chance, 1e-9), 0)
    return bool(np.average(counts, weights=weight) >= SEVERAL_TOPICS)


def one_sided(states: NDArray[np.int8]) -> bool:
    """Whether there is only one topic and no document that lacks it: the rest of the corpus stands in for the no."""
    return states.shape[1] == 1 and not (states == FORBIDDEN).any()


def _name_features(names: TopicTexts | None, guide: Guide, width: int) -> tuple[Array, NDArray[np.int64]]:
    """Dense features of the texts about topics, and their topics; they have no embeddings."""
    if names is None or not names.topics.size:
        return np.zeros((0, width)), np.zeros(0, dtype=np.int64)
    latent = dense_features(names.terms, guide.directions)
    return np.pad(latent, ((0, 0), (0, width - latent.shape[1]))).astype(np.float64), names.topics


def _corpus(sample: Sample, D: Array, guide: Guide, probabilities: Array, none: Array) -> MixtureInput:
    """The documents of the mixture: labelled ones first; a known topic is kept."""
    states = sample.states
    given, n = states == PERMITTED, len(states)
    topics = probabilities.copy()
    topics[:n][given.any(axis=1)] = 0
    topics[:n] = np.where(given, 1 / np.maximum(given.sum(axis=1, keepdims=True), 1), topics[:n])
    fixed = np.zeros(len(D), dtype=np.bool_)
    fixed[:n] = given.any(axis=1)
    none = none.copy()
    none[:n] = np.where(given.any(axis=1), 0, np.where((states == FORBIDDEN).all(axis=1), 1, none[:n]))
    return MixtureInput(sample.terms, latent_positions(D, guide), topics, none, fixed, sample.threads)


def latent_positions(D: Array, guide: Guide) -> Array:
    """Latent positions of documents with the features D."""
    first, second, _ = block_sizes(guide.directions.shape[1])
    latent = D[:, first : first + min(second, DIMENSIONS)]
    return unit_rows(latent if latent.shape[1] else D)


def _number_of_groups(n_known: int, n_free: int | None, corpus: MixtureInput) -> int:
    """Number of groups; it does not depend on the number of free topics unless many are wanted."""
    outside = float(corpus.none[~corpus.fixed].sum())
    wanted = max(MIN_GROUPS, GROUPS_PER_TOPIC * n_known)
    return max(min(wanted, int(outside / DOCUMENTS_PER_GROUP)), min(n_free or 0, int(outside)))


def with_group_labels(
    supervision: Supervision,
    background: NDArray[np.intp],
    groups: Array,
    given: NDArray[np.bool_],
    outsiders: NDArray[np.bool_],
) -> Supervision:
    """The labels, with the surest documents of each group as labels of further topics.

    A document is a label of a group only if it belongs there rather than anywhere else.
    """
    n, known, n_groups = len(given), given.shape[1], groups.shape[1]
    counts = given.sum(axis=0)
    typical = np.median(counts[counts > 0]) if counts.any() else 0  # of names alone
    most = int(np.clip(LABELS_PER_LABEL * typical, *GROUP_LABELS))
    room = (EXACT_DOCUMENTS - n) // n_groups
    most = min(most, max(room, FEWEST_LABELS)) if n < EXACT_DOCUMENTS else most
    group_of = np.full(len(groups), -1)
    for k in range(n_groups):
        rows = n + np.argsort(-groups[n:, k], kind="stable")[:most]
        group_of[rows[groups[rows, k] > 0.5]] = k
    sure = outsiders & (groups[:n].max(axis=1, initial=0) > 0.5)
    group_of[:n][sure] = groups[:n][sure].argmax(axis=1)

    def widen(patterns: NDArray[np.int8], group: int) -> NDArray[np.int8]:
        """Label states of known topics, followed by states of groups."""
        more = np.full((len(patterns), n_groups), FORBIDDEN, dtype=np.int8)
        if group >= 0:
            more[:, group] = PERMITTED
        return np.hstack([patterns, more])

    # The first pattern is of unlabelled documents. Then come the old ones, then documents with a group.
    nothing, old = np.full((1, known + n_groups), UNKNOWN, dtype=np.int8), supervision.patterns[1:]
    in_group = [widen(np.full((1, known), FORBIDDEN, dtype=np.int8), k) for k in range(n_groups)]
    pattern = supervision.pattern.copy()
    chosen = group_of >= 0
    pattern[background[chosen]] = len(supervision.patterns) + group_of[chosen]
    topics = (*supervision.topics, *(object() for _ in range(n_groups)))
    return Supervision(topics, pattern, np.vstack([nothing, widen(old, -1), *in_group]))
