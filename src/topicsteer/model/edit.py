"""Edit a fitted model: rename and merge topics. Each function takes a state and returns a new one."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from topicsteer.analysis.topics import merge_topics
from topicsteer.labels.codebook import Codebook, check_topic_name
from topicsteer.labels.supervision import Supervision
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


def with_keys(state: FittedState, keys: Sequence[int]) -> FittedState:
    """Set the keys of the known topics, for a model of a version without keys."""
    topics = [replace(topic, key=key) for topic, key in zip(state.codebook, keys, strict=True)]
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
    return rename(unnamed, names)


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
