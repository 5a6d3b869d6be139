"""Edits of a fitted model: rename, merge, move, adopt and split topics."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.analysis.topics import Topics, merge_topics
from topicsteer.corpora import Documents
from topicsteer.guidance.apply import relabelled
from topicsteer.guidance.discover import MixtureInput, find_groups
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.open_world import latent_positions
from topicsteer.guidance.outside import learn_outside
from topicsteer.labels.codebook import Codebook, Topic, check_topic_name
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.model.labelling import training_corpus
from topicsteer.model.predictor import HISTORY, beginning
from topicsteer.model.state import FittedState
from topicsteer.nmf.protocols import History, Rows, insert
from topicsteer.system.files import Scratch, one_at_a_time
from topicsteer.system.threads import workers
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from topicsteer.guidance.guide import Guide
    from topicsteer.model.predictor import Frame
    from topicsteer.model.topic_model import TopicModel


# Documents that groups are found in, at most.
DOCUMENTS = 10_000
# A document belongs to a topic or group from this membership on; to a topic that no document reaches, from this part of
# its largest membership on.
MEMBER = 0.5
# Groups of the mixture per wanted group; similar groups merge.
GROUPS_PER_PART = 3
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

    def table(self, n: int = 3) -> dict[str, list[Any]]:
        """Table with one row per group: number, number of documents, terms, and the ids of its n surest documents."""
        return {
            "group": list(range(1, len(self.groups) + 1)),
            "documents": [len(group) for group in self.groups],
            "terms": [", ".join(group.terms) for group in self.groups],
            "surest": ["; ".join(map(str, group.ids[:n])) for group in self.groups],
        }


def find_parts(
    state: FittedState, X: Rows, guide: Guide, topic: int, n: int, embeddings: Array | None, threads: int | None
) -> Split:
    """Find at most n groups among the documents of a known topic that have no named topic below it.

    Parameters
    ----------
    state : FittedState
    X : Rows
        The training documents.
    guide : Guide
        The guide of the state.
    topic : int
        Number of the topic.
    n : int
        Number of groups, at most.
    embeddings : array, optional
        Embeddings of the documents, if the guide was learnt with them.
    threads : int, optional
    """
    name = state.names[topic]
    below = [k for k, record in enumerate(state.codebook) if record.parent == state.codebook.keys[topic]]
    rows = _documents(state, X, topic)
    labelled = np.asarray((state.patterns[:, below] == PERMITTED).any(axis=1))[state.pattern[rows]]
    rows = np.concatenate([rows[labelled], rows[~labelled]])
    if len(rows) < n * DOCUMENTS_PER_GROUP or not guide.directions.shape[1]:
        raise ValueError(f"the topic {name!r} has too few documents for {n} groups.")
    with workers(threads):
        terms = X.take(rows)
        D = guide.features(terms, threads, embeddings=None if embeddings is None else embeddings[rows])
        topics, none = _known(state, D, topic, below, rows, int(labelled.sum()))
        fixed = np.arange(len(rows)) < labelled.sum()
        corpus = MixtureInput(terms, latent_positions(D, guide), topics, none, fixed, threads)
        found, tree = find_groups(corpus, max(n, min(GROUPS_PER_PART * n, len(rows) // DOCUMENTS_PER_GROUP)))
    parts = [np.minimum(found[:, list(part)].sum(axis=1), 1) for part in tree.cut(n)]
    parts = [part for part in parts if (part >= MEMBER).any()]
    if not parts:
        raise ValueError(f"the documents of the topic {name!r} form no groups.")
    weights = sp.csr_array(np.stack([np.where(part >= MEMBER, part, 0) for part in parts]))
    profiles = np.asarray((weights @ terms).toarray() / np.asarray(weights.sum(axis=1)).reshape(-1, 1))
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


def _documents(state: FittedState, X: Rows, topic: int) -> NDArray[np.intp]:
    """Return the documents of a topic, or a sample of them."""
    membership = np.asarray(state.memberships[:, topic])
    usable = X.sizes > 0
    least = MEMBER * min(1.0, float(np.max(membership[usable], initial=0)))
    rows = np.flatnonzero(usable & (membership >= least) & (membership > 0))
    if len(rows) > DOCUMENTS:
        rows = np.sort(np.random.default_rng(0).choice(rows, DOCUMENTS, replace=False))
    return rows


def _known(
    state: FittedState, D: Array, topic: int, below: list[int], rows: NDArray[np.intp], labelled: int
) -> tuple[Array, Array]:
    """Return P(topic below | some topic below) and P(no topic below); the first rows are labelled with one."""
    if not below:
        whole = np.ones((len(rows), 1), dtype=np.float32)
        return whole, np.asarray(state.memberships[rows, topic], dtype=np.float32)
    states = state.patterns[:, below][state.pattern[rows]]
    memberships = np.asarray(state.memberships[rows][:, below])
    given = states == PERMITTED
    equal = given / np.maximum(given.sum(axis=1, keepdims=True), 1)
    topics = np.where(given.any(axis=1, keepdims=True), equal, memberships).astype(np.float32)
    none = np.clip(1 - memberships.sum(axis=1), 0, 1)
    if labelled:
        nobody = np.zeros((0, D.shape[1])), np.zeros(0, dtype=np.int64)
        none = learn_outside(D, states[:labelled], memberships, *nobody)[0].none(D)
        none[:labelled] = 0
    return topics, np.where((states == FORBIDDEN).all(axis=1), np.float32(1), none).astype(np.float32)


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
    history = None
    if state.history is not None:
        wide = History(**state.history).widen(known, 1, 0)
        history = {part: getattr(wide, part) for part in HISTORY}
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
        history=history,
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


def move(state: FittedState, topic: int, parent: int | None) -> FittedState:
    """Put a known topic, and all topics below it, under another known topic, or at the top.

    Labels stay, and permitted topics follow the new tree. A parent has at least the membership of its children.
    """
    return replanted(state, state.codebook.move(topic, parent))


def replanted(state: FittedState, book: Codebook) -> FittedState:
    """The state with another tree of the same topics: patterns, memberships, weights and thresholds follow it."""
    before, tree, known = state.codebook.forest, book.forest, len(book)
    if before.flat and tree.flat:
        return replace(state, codebook=book)
    complete = bool(state.parameters["complete"])
    patterns = tree.replanted(state.patterns, before, complete)
    now = replace(state, codebook=book, patterns=patterns, thresholds=tree.lowered(state.thresholds))
    memberships = np.array(state.memberships)
    memberships[:, :known] = tree.raised(np.where(_forced(now), 0, memberships[:, :known]))
    labelled = now.supervision.labelled
    memberships[labelled] = relabelled(memberships[labelled], replace(now.supervision, pattern=now.pattern[labelled]))
    if state.outside is not None:
        memberships[:, -1] = np.prod(1 - tree.top(memberships[:, :known]), axis=1)
    permitted = now.supervision.permitted(len(state.names), free_in_labelled=True)[now.pattern]
    return replace(now, memberships=memberships, document_topics=np.where(permitted, state.document_topics, 0))


def _forced(state: FittedState) -> NDArray[np.bool_]:
    """Known topics that the labels of each document forbid."""
    return np.asarray((state.patterns == FORBIDDEN)[state.pattern])


def with_keys(state: FittedState, keys: Sequence[int]) -> FittedState:
    """Set the keys of the known topics, for a model of a version without keys."""
    if len(keys) != len(state.codebook):
        raise ValueError(f"expected one key per known topic, {len(state.codebook)}; got {len(keys)}.")
    now = dict(zip(state.codebook.keys, keys, strict=True))
    above = (None if topic.parent is None else now[topic.parent] for topic in state.codebook)
    topics = [replace(t, key=now[t.key], parent=parent) for t, parent in zip(state.codebook, above, strict=True)]
    return replace(state, codebook=Codebook(tuple(topics)))


def merge(state: FittedState, group: Sequence[int], name: str | None = None) -> FittedState:
    """Merge topics into the first: weights and labels are added up. The result is known if one of them is."""
    first, rest, n_known = group[0], list(group[1:]), len(state.codebook)
    H, W = state.components, state.document_topics
    known = [k for k in group if k < n_known]
    history = state.history
    if history is not None:
        sizes = np.ones(len(H))
        sizes[list(group)] = H[list(group)].sum(axis=1)  # the weights of merge_topics
        joined = History(**history).times(sizes).merge(group)
        history = {part: getattr(joined, part) for part in HISTORY}
    components, document_topics = merge_topics(H, W, group)
    names = [text for k, text in enumerate(state.names) if k not in rest]
    names[first] = name or names[first]
    state = _merge_memberships(state, group)
    if len(known) > 1:
        state = _merge_known(state, known)
    left = len(state.codebook)
    unnamed = replace(
        state,
        components=components,
        document_topics=document_topics,
        history=history,
        free_names=tuple(f"free {k}" for k in range(len(names) - left)),
    )
    return rename(replanted(unnamed, unnamed.codebook), names)


def adopt(state: FittedState, topic: int, name: Hashable) -> FittedState:
    """Make a free topic known, as the last of the known topics; no document gets a label."""
    known, free = len(state.codebook), topic - len(state.codebook)
    if not 0 <= free < len(state.free_groups):
        raise ValueError(f"{state.names[topic]!r} cannot be adopted: {_why_not(state, topic)}.")
    taken = state.names[:topic] + state.names[topic + 1 :]
    if str(name) in taken:
        raise ValueError(f"the name {name!r} belongs to another topic; use merge to combine the two.")
    order = [*range(known), topic, *(k for k in range(known, len(state.names)) if k != topic)]
    columns = [*order, len(order)]
    memberships = np.asarray(state.memberships)[:, columns]
    memberships[:, -1] *= 1 - memberships[:, known]
    history = None
    if state.history is not None:
        before = History(**state.history)
        history = {
            "cross": before.cross[:, order],
            "gram": before.gram[np.ix_(order, order)],
            "penalty": before.penalty[order],
            "totals": before.totals,
            "scale": before.scale[order],
        }
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
        history=history,
    )


def classes_of(state: FittedState) -> int:
    """Number of the guide's first group: the number of known topics when it was learnt."""
    return 0 if state.outside is None else int(state.outside["counts"][0])


def adopted_groups(state: FittedState) -> tuple[int, ...]:
    """Groups of documents that are part of known topics."""
    first = classes_of(state)
    return tuple(k - first for group in state.groups for k in group if k >= first)


def _why_not(state: FittedState, topic: int) -> str:
    if topic < len(state.codebook):
        return "it is a known topic"
    return "the model was fitted without groups of documents; label some of its documents instead"


def _merge_memberships(state: FittedState, group: Sequence[int]) -> FittedState:
    """Merge memberships and classes of a group with free topics; known topics alone are left to `_merge_known`."""
    known, first = len(state.codebook), group[0]
    free = [k for k in group if known <= k < known + len(state.free_groups)]
    if not free:
        return state
    memberships = np.array(state.memberships)
    memberships[:, first] = memberships[:, [k for k in group if k < known or k in free]].max(axis=1)
    if first < known:
        memberships[:, -1] = np.prod(1 - memberships[:, :known], axis=1)
    classes = [k for topic in free for k in state.free_groups[topic - known]]
    groups, free_groups = list(state.groups), list(state.free_groups)
    if first < known:
        groups[first] = (*groups[first], *(classes_of(state) + k for k in classes))
    else:
        free_groups[first - known] = tuple(sorted(classes))
    gone = [k for k in free if k != first]
    return replace(
        state,
        memberships=np.delete(memberships, gone, axis=1),
        groups=tuple(groups),
        free_groups=tuple(group for k, group in enumerate(free_groups) if known + k not in gone),
    )


def _merge_known(state: FittedState, known: Sequence[int]) -> FittedState:
    """Merge labels, profiles, memberships and thresholds of known topics."""
    first, rest, kept = known[0], known[1:], list(known)
    counts = state.supervision.counts[kept][:, None]
    profiles = state.profiles.copy()
    profiles[first] = (counts * profiles[kept]).sum(axis=0) / max(int(counts.sum()), 1)
    memberships = np.delete(
        state.memberships, rest, axis=1
    )  # np.delete copies: the originals may be mapped from a file
    memberships[:, first] = state.memberships[:, kept].max(axis=1)
    thresholds = state.thresholds.copy()
    thresholds[first] = thresholds[kept].min()
    groups = list(state.groups)
    groups[first] = tuple(k for topic in known for k in state.groups[topic])
    supervision: Supervision = state.supervision.merge(known)
    return replace(
        state,
        codebook=state.codebook.merge(known),
        profiles=np.delete(profiles, rest, axis=0),
        patterns=supervision.patterns,
        memberships=memberships,
        thresholds=np.delete(thresholds, rest),
        groups=tuple(group for k, group in enumerate(groups) if k not in rest),
    )


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
        self._model.state_ = move(self._model.state_, k, parent)
        return self._model

    @one_at_a_time
    def with_keys(self, keys: Sequence[int]) -> TopicModel:
        """Set the keys of the known topics, for a model of a version without keys."""
        self._model.state_ = with_keys(self._model.state_, keys)
        return self._model

    @one_at_a_time
    def merge(self, topics: Sequence[Hashable], name: str | None = None) -> TopicModel:
        """Merge topics; their weights and labels are added up.

        Parameters
        ----------
        topics : sequence of topics
            Names or numbers. The merged topic takes the position of the first; it is known if one of them is.
        name : str, optional
            Default: the name of the first topic.
        """
        group = sorted({self._model._number(topic) for topic in topics})
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
        table: dict[str, list[Any]] = {"id": list(topic.ids[:n]), "membership": topic.membership[:n].tolist()}
        if self._model.documents_ is not None:
            table["text"] = [beginning(self._model.documents_.texts[int(row)]) for row in topic.rows[:n]]
        return self._model._table(table)

    @one_at_a_time
    def cut(self, free_topics: int) -> TopicModel:
        """Show another number of free topics. Groups of documents, known topics and their memberships stay.

        Parameters
        ----------
        free_topics : int
            Largest number of free topics.
        """
        from topicsteer.guidance import open_world

        guide, adopted = self._guide_with_groups(), adopted_groups(self._model.state_)
        return self._regroup(open_world.free_topics(guide, free_topics, len(self._model.state_.ids), adopted))

    @one_at_a_time
    def split(self, topic: Hashable, n: int = 2) -> Split | TopicModel:
        """Find the parts of a topic.

        Of a known topic: groups of the documents that have the topic, and no topic below it. Nothing changes until
        :meth:`adopt` turns one of the groups into a topic. A free topic is replaced by its most different parts.

        Parameters
        ----------
        topic : topic
            Name or number.
        n : int, default=2
            Number of parts, at most.

        Returns
        -------
        Split
            The groups of a known topic; for a free topic, the model itself.
        """
        number, known = self._model._number(topic), len(self._model.codebook)
        if not (isinstance(n, int) and n >= 2):
            raise ValueError(f"a split needs 2 parts or more; got {n!r}.")
        if number < known:
            guide = self._model.guide_
            if guide is None:
                raise ValueError("a split needs guidance, and labels or words about topics.")
            E, threads = self._model._training_embeddings(), self._model._settings().threads
            return find_parts(self._model.state_, self._model._training_rows(), guide, number, n, E, threads)
        guide, groups = self._guide_with_groups(), list(self._model.state_.free_groups)
        if not number - known < len(groups) or len(groups[number - known]) < 2 or guide.tree is None:
            raise ValueError(
                f"the topic {self._model.state_.topics.names[number]!r} has no parts: it is a single group."
            )
        groups[number - known : number - known + 1] = guide.tree.parts(groups[number - known], n)
        return self._regroup(tuple(groups))

    def _guide_with_groups(self) -> Guide:
        guide: Guide | None = self._model.guide_
        if guide is None or not guide.n_groups:
            raise ValueError("this model has no groups of documents without a known topic: fit it in an open world.")
        return guide

    def _regroup(self, free_groups: tuple[tuple[int, ...], ...]) -> TopicModel:
        """Factorise again with other free topics, and the guide as it is."""
        from topicsteer.model import pipeline

        model = self._model
        documents = Documents(model.state_.ids, model._texts())
        corpus = replace(training_corpus(model), documents=documents)
        work = Scratch()
        model.state_ = pipeline.regroup(
            model.state_, corpus, model._settings(), self._guide_with_groups(), free_groups, work.path
        )
        self._model._rows, self._model._work = corpus.rows, work  # the folder lives as long as the model
        return self._model
