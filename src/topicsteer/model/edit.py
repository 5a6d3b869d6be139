"""Edit a fitted model: rename, merge, move and adopt topics. Each function takes a state and returns a new one."""

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.topics import merge_topics
from topicsteer.guidance.apply import relabelled
from topicsteer.labels.codebook import Codebook, Topic, check_topic_name
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import FORBIDDEN, UNKNOWN, Supervision
from topicsteer.model.predictor import HISTORY
from topicsteer.model.state import FittedState
from topicsteer.nmf.statistics import History


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
    if isinstance(separator, str) and forest is not None and topic < len(forest):
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
    before, forest, known = state.codebook.forest, book.forest, len(book)
    if before is None and forest is None:
        return replace(state, codebook=book)
    tree, complete = forest or Forest((-1,) * known), bool(state.parameters["complete"])
    patterns = tree.replanted(state.patterns, before, complete)
    now = replace(state, codebook=book, patterns=patterns, thresholds=tree.lowered(state.thresholds))
    memberships = np.array(state.memberships)
    memberships[:, :known] = tree.raised(np.where(_forced(now), 0, memberships[:, :known]))
    labelled = now.supervision.labelled
    memberships[labelled] = relabelled(memberships[labelled], replace(now.supervision, pattern=now.pattern[labelled]))
    if state.outside is not None:
        memberships[:, -1] = np.prod(1 - memberships[:, list(tree.roots)], axis=1)
    permitted = now.supervision.permitted(len(state.names), free_in_labelled=True)[now.pattern]
    return replace(now, memberships=memberships, document_topics=np.where(permitted, state.document_topics, 0))


def _forced(state: FittedState) -> NDArray[np.bool_]:
    """Known topics that the labels of each document forbid."""
    return np.asarray((state.patterns == FORBIDDEN)[state.pattern])


def with_keys(state: FittedState, keys: Sequence[int]) -> FittedState:
    """Set the keys of the known topics, for a model of a version without keys; free topics inside them get others."""
    named, fresh = iter(keys), itertools.count(max(keys, default=0) + 1)
    now = {topic.key: next(fresh) if topic.found else next(named) for topic in state.codebook}
    if len(keys) != sum(not topic.found for topic in state.codebook):
        raise ValueError(f"expected one key per known topic, {len(now)}; got {len(keys)}.")
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
    if topic < known and state.codebook.topics[topic].found:
        named = rename(state, with_paths(state, topic, str(name)))
        topics = [replace(one, found=one.found and k != topic) for k, one in enumerate(named.codebook)]
        return replace(named, codebook=Codebook(tuple(topics)))
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
