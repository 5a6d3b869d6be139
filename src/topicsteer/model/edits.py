"""Edits of a fitted model: rename, merge, move, adopt and split topics."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.analysis.topics import Topics, merge_topics
from topicsteer.guidance.apply import apply_labels
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.open_world import GroupInput, find_groups, group_positions
from topicsteer.labels.codebook import Codebook, Topic, check_topic_name
from topicsteer.labels.supervision import FORBIDDEN, UNKNOWN
from topicsteer.model.labelling import training_corpus
from topicsteer.model.state import Arrays, FittedState
from topicsteer.nmf.protocols import History, insert
from topicsteer.system.files import one_at_a_time
from topicsteer.system.threads import workers
from topicsteer.system.types import Array
from topicsteer.text.words import is_weak

if TYPE_CHECKING:
    from topicsteer.guidance.guide import Guide
    from topicsteer.model.pipeline import Corpus
    from topicsteer.model.predictor import Frame
    from topicsteer.model.topic_model import TopicModel


# Documents that groups are found in, at most.
DOCUMENTS = 10_000
# A document belongs to a topic or group from this membership on; to a topic that no document reaches, from this part of
# its largest membership on.
MEMBER = 0.5
# Documents per group of the mixture, at least.
DOCUMENTS_PER_GROUP = 5
# Terms per group.
TERMS = 10


@dataclass(frozen=True, eq=False)
class Group:
    """A group of the documents of a known topic.

    Parameters
    ----------
    topic : str
        The known topic.
    terms : tuple of str
        Most distinctive terms, best first.
    rows : array of int (n_documents,)
        Row numbers of its documents, surest first.
    ids : tuple
        Their ids.
    membership : array (n_documents,)
        Their memberships in the group.
    profile : array (n_terms,)
        Their mean terms.
    """

    topic: str
    terms: tuple[str, ...]
    rows: NDArray[np.intp]
    ids: tuple[Hashable, ...]
    membership: Array
    profile: Array

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Group of {self.topic!r}: {len(self)} documents, {', '.join(self.terms[:5])}>"


@dataclass(frozen=True, eq=False)
class Split:
    """Groups of the documents of a known topic, largest first; see :meth:`topicsteer.TopicModel.split`.

    Parameters
    ----------
    topic : str
        The known topic.
    groups : tuple of Group
    """

    topic: str
    groups: tuple[Group, ...]


def find_parts(state: FittedState, corpus: Corpus, guide: Guide, topic: int, n: int, threads: int | None) -> Split:
    """Find at most n groups among the documents of a known topic that have no topic below it.

    Parameters
    ----------
    state : FittedState
    corpus : Corpus
        The training documents.
    guide : Guide
        The guide of the state.
    topic : int
        Number of the topic.
    n : int
        Number of groups, at most.
    threads : int, optional
    """
    name, membership = state.names[topic], np.asarray(state.memberships[:, topic])
    below = [k for k, record in enumerate(state.codebook) if record.parent == state.codebook.keys[topic]]
    usable = (corpus.rows.sizes > 0) & ~state.judged.has()[:, below].any(axis=1)
    least = MEMBER * min(1.0, float(np.max(membership[usable], initial=0)))
    rows = np.flatnonzero(usable & (membership >= least) & (membership > 0))
    if len(rows) > DOCUMENTS:
        rows = np.sort(np.random.default_rng(0).choice(rows, DOCUMENTS, replace=False))
    if len(rows) < n * DOCUMENTS_PER_GROUP or not guide.features.directions.shape[1]:
        raise ValueError(f"the topic {name!r} has too few documents for {n} groups.")
    terms = corpus.rows.take(rows)
    E = None if corpus.embeddings is None else corpus.embeddings[rows]
    D = group_positions(*guide.features.of(terms, threads, E))
    nobody = np.zeros(0, dtype=np.intp)
    with workers(threads) as run:
        found = find_groups(GroupInput(terms, D, nobody, np.zeros((0, 0)), run), n)
    parts = [part for part in found.T if (part >= MEMBER).any()]
    if not parts:
        raise ValueError(f"the documents of the topic {name!r} form no groups.")
    weights = sp.csr_array(np.stack([np.where(part >= MEMBER, part, 0) for part in parts]))
    profiles = np.asarray((weights @ terms).toarray() / np.asarray(weights.sum(axis=1)).reshape(-1, 1))
    profiles[:, is_weak(state.idf)] = 0
    H = np.vstack([profiles, np.asarray(terms.mean(axis=0)).reshape(1, -1)])  # the whole topic comes last
    names = tuple(map(str, range(len(H))))
    ranked = Topics(names, 0, np.array(state.vocabulary, dtype=object), H, H[:0], (), np.zeros(0, dtype=np.int64))
    groups = []
    for k, part in enumerate(parts):
        order = np.argsort(-part, kind="stable")
        order = order[part[order] >= MEMBER]
        ids = tuple(state.ids[int(row)] for row in rows[order])
        groups.append(Group(name, tuple(ranked.top_terms(k, TERMS)), rows[order], ids, part[order], profiles[k]))
    return Split(name, tuple(sorted(groups, key=len, reverse=True)))


def adopt_group(state: FittedState, group: Group, name: Hashable) -> FittedState:
    """Make a group known, as the last of the known topics and below the topic that was split; nothing gets a label.

    Its documents have it, and share the weight of the topic above with it. The guide does not know it: new documents
    have it after an update or a fit with labels.
    """
    if str(name) in state.names:
        raise ValueError(f"the name {name!r} belongs to another topic; use merge to combine the two.")
    if group.topic not in state.names[: len(state.codebook)]:
        raise ValueError(f"there is no known topic {group.topic!r} any more: split again.")
    known, above = len(state.codebook), state.names.index(group.topic)
    key = max(state.codebook.keys) + 1
    book = Codebook((*state.codebook, Topic(key, name, state.codebook.keys[above])))
    supervision = state.supervision.among(book.names, bool(state.parameters["complete"]), book.forest)
    memberships = insert(np.asarray(state.memberships), known, 1, 1)
    memberships[group.rows, known] = memberships[group.rows, above] * group.membership
    W = insert(np.asarray(state.document_topics), known, 1, 1)
    W[group.rows, known] = W[group.rows, above] * group.membership
    W[group.rows, above] -= W[group.rows, known]
    H = insert(state.components, known, 1, 0)
    H[known] = group.profile * (np.linalg.norm(H[above]) / max(float(np.linalg.norm(group.profile)), 1e-30))
    return replace(
        state,
        codebook=book,
        groups=(*state.groups, ()),
        components=H,
        document_topics=W,
        profiles=np.pad(state.profiles, ((0, 1), (0, 0))),
        patterns=supervision.patterns,
        memberships=memberships,
        thresholds=np.append(state.thresholds, state.thresholds[above]),
        history=_history(state, lambda earlier: earlier.widen(known, 1, 0)),
        estimator=dict(state.estimator) | {"n_components": len(H)},
    )


def rename(state: FittedState, names: Sequence[Hashable]) -> FittedState:
    """Rename all topics at once, known ones first; unchanged names keep their type."""
    texts = [str(name) for name in names]
    if len(texts) != len(state.names):
        raise ValueError(f"expected {len(state.names)} names, one per topic; got {len(texts)}.")
    for text in texts:
        check_topic_name(text)
    if doubles := [text for k, text in enumerate(texts) if text in texts[:k]]:
        raise ValueError(f"two topics would have the name {doubles[0]!r}: choose different names.")
    book = state.codebook
    for k, name in enumerate(names[: len(book)]):
        if str(name) != str(book.names[k]):
            book = book.rename(k, name)
    return replace(state, codebook=book, free_names=tuple(map(str, names[len(book) :])))


def with_paths(state: FittedState, topic: int, name: str) -> list[str]:
    """The names of all topics after one of them gets a new name: paths that begin with the old name follow it."""
    separator, names, forest = state.parameters.get("path_separator"), list(state.names), state.codebook.forest
    if isinstance(separator, str) and topic < len(forest):
        old = names[topic] + separator
        for k in forest.descendants(topic):
            if names[k].startswith(old):
                names[k] = f"{name}{separator}{names[k][len(old) :]}"
    names[topic] = name
    return names


def replanted(state: FittedState, book: Codebook) -> FittedState:
    """The state with another tree of the same topics: patterns, memberships, weights and thresholds follow it."""
    before, tree, known = state.codebook.forest, book.forest, len(book)
    if before.flat and tree.flat:
        return replace(state, codebook=book)
    complete = bool(state.parameters["complete"])
    patterns = tree.replanted(state.patterns, before, complete)
    now = replace(state, codebook=book, patterns=patterns, thresholds=tree.lowered(state.thresholds))
    memberships = np.array(state.memberships)
    forbidden = (now.patterns == FORBIDDEN)[now.pattern]
    memberships[:, :known] = tree.raised(np.where(forbidden, 0, memberships[:, :known]))
    labelled = now.supervision.labelled
    memberships[labelled] = apply_labels(memberships[labelled], replace(now.supervision, pattern=now.pattern[labelled]))
    permitted = now.supervision.permitted(len(state.names), free_in_labelled=True)[now.pattern]
    return replace(now, memberships=memberships, document_topics=np.where(permitted, state.document_topics, 0))


def merge(state: FittedState, group: Sequence[int], name: str | None = None) -> FittedState:
    """Merge topics into the first: weights and labels are added up. The result is known if one of them is."""
    first, rest, n_known = group[0], group[1:], len(state.codebook)
    known = [k for k in group if k < n_known]
    guided = [k for k in group if k < n_known + len(state.free_groups)]
    free = guided[len(known) :]
    every = [*state.names]
    every[first] = name or every[first]
    names = [text for k, text in enumerate(every) if k not in rest]
    memberships = np.array(state.memberships)
    if guided:
        base = classes_of(state)
        of_groups = [k for k in known if state.groups[k] and min(state.groups[k]) >= base] + free  # exclude each other
        own = [k for k in known if k not in of_groups]
        together = np.minimum(memberships[:, of_groups].sum(axis=1), 1)
        memberships[:, first] = np.maximum(memberships[:, own].max(axis=1, initial=0), together)
    if known and free:
        memberships[:, -1] = np.maximum(memberships[:, -1] - np.asarray(state.memberships)[:, free].sum(axis=1), 0)
    classes = [k for topic in free for k in state.free_groups[topic - n_known]]
    groups = list(state.groups)
    free_groups = list(state.free_groups)
    if known:
        own = [*state.groups[first], *(classes_of(state) + k for k in classes)]
        groups[first] = (*own, *(k for topic in known[1:] for k in state.groups[topic]))
    elif free:
        free_groups[first - n_known] = tuple(sorted(classes))
    sizes = np.ones(len(state.components))
    sizes[list(group)] = state.components[list(group)].sum(axis=1)  # the weights of merge_topics
    components, document_topics = merge_topics(state.components, state.document_topics, group)
    merged = replace(
        state,
        components=components,
        document_topics=document_topics,
        memberships=np.delete(memberships, guided[1:], axis=1),
        groups=tuple(own for k, own in enumerate(groups) if k not in rest),
        free_groups=tuple(own for k, own in enumerate(free_groups) if n_known + k not in rest),
        free_names=tuple(text for k, text in enumerate(state.free_names) if n_known + k not in rest),
        history=_history(state, lambda earlier: earlier.times(sizes).merge(group)),
    )
    if len(known) > 1:
        merged = _merge_labels(merged, known)
    return rename(replanted(merged, merged.codebook), names)


def _merge_labels(state: FittedState, known: Sequence[int]) -> FittedState:
    """Merge the labels, profiles and thresholds of known topics."""
    first, rest, kept = known[0], known[1:], list(known)
    counts = state.supervision.counts[kept][:, None]
    profiles = state.profiles.copy()
    profiles[first] = (counts * profiles[kept]).sum(axis=0) / max(int(counts.sum()), 1)
    thresholds = state.thresholds.copy()
    thresholds[first] = thresholds[kept].min()
    return replace(
        state,
        codebook=state.codebook.merge(known),
        profiles=np.delete(profiles, rest, axis=0),
        patterns=state.supervision.merge(known).patterns,
        thresholds=np.delete(thresholds, rest),
    )


def _history(state: FittedState, change: Callable[[History], History]) -> Arrays | None:
    """The statistics of earlier documents after a change of the topics."""
    return None if state.history is None else vars(change(History(**state.history)))


def adopt(state: FittedState, topic: int, name: Hashable) -> FittedState:
    """Make a free topic known, as the last of the known topics; no document gets a label."""
    known, free = len(state.codebook), topic - len(state.codebook)
    if not 0 <= free < len(state.free_groups):
        why = "the model was fitted without groups of documents; label some of its documents instead"
        if topic < known:
            why = "it is a known topic"
        raise ValueError(f"{state.names[topic]!r} cannot be adopted: {why}.")
    taken = state.names[:topic] + state.names[topic + 1 :]
    if str(name) in taken:
        raise ValueError(f"the name {name!r} belongs to another topic; use merge to combine the two.")
    order = [*range(known), topic, *(k for k in range(known, len(state.names)) if k != topic)]
    columns = [*order, len(order)]
    memberships = np.asarray(state.memberships)[:, columns]
    memberships[:, -1] = np.maximum(memberships[:, -1] - memberships[:, known], 0)
    unknown = np.full((len(state.patterns), 1), UNKNOWN, dtype=state.patterns.dtype)
    key = max(state.codebook.keys, default=0) + 1
    first = classes_of(state)
    return replace(
        state,
        codebook=Codebook((*state.codebook, Topic(key, name))),
        free_names=tuple(text for k, text in enumerate(state.free_names) if k != free),
        groups=(*state.groups, tuple(first + k for k in state.free_groups[free])),
        free_groups=tuple(group for k, group in enumerate(state.free_groups) if k != free),
        components=state.components[order],
        document_topics=np.asarray(state.document_topics)[:, order],
        profiles=np.vstack([state.profiles, np.zeros_like(state.profiles[:1])]),
        patterns=np.hstack([state.patterns, unknown]),
        memberships=memberships,
        thresholds=np.append(state.thresholds, np.median(state.thresholds)),
        history=_history(state, lambda earlier: earlier.take(order)),
    )


def classes_of(state: FittedState) -> int:
    """Number of the guide's first group: the number of known topics when it was learnt."""
    return 0 if state.outside is None else int(state.outside["counts"][0])


class Edits:
    """Edits of the topics of a fitted `TopicModel`, as ``model.edit``.

    Parameters
    ----------
    model : TopicModel
    """

    def __init__(self, model: TopicModel) -> None:
        self._model = model

    @one_at_a_time
    def rename(self, old: Hashable, new: str) -> TopicModel:
        """Rename a known or free topic."""
        k = self._model._number(old)
        names = list(self._model.state_.topics.names)
        if new in names[:k] + names[k + 1 :]:
            raise ValueError(f"the name {new!r} belongs to another topic; use merge to combine the two.")
        return self.rename_all(with_paths(self._model.state_, k, new))

    @one_at_a_time
    def rename_all(self, names: Sequence[str]) -> TopicModel:
        """Rename all topics at once: known ones first, then free ones."""
        self._model.state_ = rename(self._model.state_, names)
        return self._model

    @one_at_a_time
    def move(self, topic: Hashable, under: Hashable | None = None) -> TopicModel:
        """Put a known topic, and all topics below it, under another known topic, or at the top.

        Labels stay, and the topics that they permit follow the new tree. Fit again to learn from it.

        Parameters
        ----------
        topic : topic
            Name or number.
        under : topic, optional
            The new parent; None = at the top.
        """
        k, parent = self._model._number(topic), None if under is None else self._model._number(under)
        for number in (k, parent):
            if number is not None and number >= len(self._model.codebook):
                raise ValueError(f"{self._model.state_.topics.names[number]!r} is a free topic: adopt it first.")
        state = self._model.state_
        self._model.state_ = replanted(state, state.codebook.move(k, parent))
        return self._model

    @one_at_a_time
    def merge(self, topics: Sequence[Hashable], name: str | None = None) -> TopicModel:
        """Merge topics; their weights and labels are added up.

        Parameters
        ----------
        topics : sequence of topics
            Names or numbers. They become part of the first one that is known, or of the first one if all are free.
        name : str, optional
            Default: the name of that topic.
        """
        known = len(self._model.codebook)
        group = sorted(dict.fromkeys(map(self._model._number, topics)), key=lambda k: k >= known)
        if len(group) < 2:
            raise ValueError("merge needs two topics or more.")
        self._model.state_ = merge(self._model.state_, group, name)
        return self._model

    @one_at_a_time
    def adopt(self, topic: Hashable | Group, name: str, n: int = 10) -> Frame:
        """Make a free topic or a group of a split known, and propose documents to label with it.

        Parameters
        ----------
        topic : topic or Group
            Name or number of a free topic; "free 3" is the third. A group becomes a topic below the one that was split.
        name : str
            Its name from now on.
        n : int, default=10
            Number of proposals.

        Returns
        -------
        table
            Documents that most surely have the topic, to be confirmed: id, membership, start of the text. None of them
            is labelled by this method.
        """
        if not isinstance(topic, Group):
            self._model.state_ = adopt(self._model.state_, self._model._number(topic), name)
            return self._model.labels.surest(name, n)
        self._model.state_ = adopt_group(self._model.state_, topic, name)
        return self._model._documents_table(topic.rows[:n].tolist(), {"membership": topic.membership[:n].tolist()})

    @one_at_a_time
    def split(self, topic: Hashable, n: int = 2) -> Split:
        """Find groups of the documents of a known topic that have no topic below it.

        Nothing changes until :meth:`adopt` turns one of the groups into a topic.

        Parameters
        ----------
        topic : topic
            Name or number.
        n : int, default=2
            Number of groups, at most.
        """
        model, number = self._model, self._model._number(topic)
        if not (isinstance(n, int) and n >= 2):
            raise ValueError(f"a split needs 2 parts or more; got {n!r}.")
        if number >= len(model.codebook):
            raise ValueError(f"{model.state_.names[number]!r} is a free topic: adopt it first.")
        if model.guide_ is None:
            raise ValueError("a split needs labels or words about topics: label some documents, and fit again.")
        return find_parts(model.state_, training_corpus(model), model.guide_, number, n, model.threads)
