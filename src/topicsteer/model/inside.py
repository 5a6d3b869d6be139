"""Free topics inside known topics: found by a fit, or by a split of one topic of a fitted model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from topicsteer.analysis.topics import Topics, name_free_topics
from topicsteer.guidance.apply import apply_labels, topic_probabilities
from topicsteer.guidance.children import Branch, find_children
from topicsteer.guidance.components import learn_components
from topicsteer.guidance.guide import Guide
from topicsteer.labels.codebook import Codebook, Topic
from topicsteer.labels.supervision import Supervision
from topicsteer.model.state import FittedState
from topicsteer.nmf.blocks import slices
from topicsteer.nmf.protocols import Rows
from topicsteer.system.threads import workers
from topicsteer.system.types import Array

# Documents per block of work.
ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class Known:
    """The known topics of a fit: records, labels and guide."""

    codebook: Codebook
    supervision: Supervision
    guide: Guide

    def with_free_inside(
        self,
        X: Rows,
        wanted: Mapping[str, int | str],
        *,
        complete: bool,
        embeddings: Array | None,
        seed: int,
        threads: int | None,
    ) -> Known:
        """The known topics with free ones inside some of them; ``wanted`` is their number by the name of the topic."""
        names, now = [str(name) for name in self.codebook.names], self
        for name, number in wanted.items():
            if name not in names:
                raise ValueError(f"free_topics names {name!r}, which is not one of the topics ({', '.join(names)}).")
            topic, known = names.index(name), len(now.codebook)
            if not number:
                continue
            found = known_memberships(X, now.guide, now.supervision, embeddings, threads)
            branch = Branch.of(found, now.supervision, topic, np.flatnonzero([one.found for one in now.codebook]))
            components = find_children(X, branch, now.guide, number, embeddings=embeddings, seed=seed, threads=threads)
            if components is None:
                continue
            more = components.weights.shape[1]
            book = with_children(now.codebook, topic, [f"{name} free {known + k}" for k in range(more)])
            now = Known(
                book,
                now.supervision.among(book.names, complete, book.forest),
                now.guide.with_found([topic] * more, components),
            )
        return now


def known_memberships(
    X: Rows, guide: Guide, supervision: Supervision, embeddings: Array | None, threads: int | None
) -> Array:
    """Memberships in all known topics of all documents, under their labels."""
    known = len(supervision.topics)
    classes = [(k,) for k in range(known)]
    out = np.empty((X.shape[0], known), dtype=np.float32)
    for rows in slices(X.shape[0], ROWS):
        E = None if embeddings is None else embeddings[rows]
        P = guide.probabilities(X.take(np.arange(rows.start, rows.stop)), threads, embeddings=E)
        labels = replace(supervision, pattern=supervision.pattern[rows])
        out[rows] = apply_labels(topic_probabilities(P, classes, supervision.forest), labels)
    return out


def with_children(codebook: Codebook, parent: int, names: Sequence[Hashable]) -> Codebook:
    """The codebook with free topics inside a topic, at the end."""
    first = max(codebook.keys, default=0) + 1
    new = (Topic(first + k, name, codebook.keys[parent], found=True) for k, name in enumerate(names))
    return Codebook((*codebook, *new))


def named_children(state: FittedState, fresh: Sequence[int], separator: str | None) -> FittedState:
    """The state with names for new free topics inside others, from their terms; a path begins with its parent."""
    book, names = state.codebook, list(state.names)
    result = Topics(
        state.names, len(book), np.array(state.vocabulary, dtype=object), state.components, state.document_topics, (),
        np.zeros(len(book), dtype=np.int64), forest=book.forest,
    )  # fmt: skip
    taken = [name for k, name in enumerate(names) if k not in fresh]
    for k, own in zip(fresh, name_free_topics([result.top_terms(k, 5) for k in fresh], taken), strict=True):
        name = own if separator is None else f"{book.parent_names[str(book.names[k])]}{separator}{own}"
        book = book.rename(k, name)
    return replace(state, codebook=book)


def with_earlier_found(
    guide: Guide,
    found: Sequence[int],
    X: Rows,
    earlier: Guide,
    groups: Sequence[Sequence[int]],
    embeddings: Array | None,
    threads: int | None,
) -> Guide:
    """A new guide with the free topics inside others that an earlier guide knows.

    Parameters
    ----------
    guide, earlier : Guide
        The new and the earlier guide; both read the terms of X.
    found : sequence of int
        Numbers of these topics, which are their classes in the new guide.
    X : Rows
        Documents that the topics are learnt from again, if the latent semantics are new.
    groups : sequence of sequences of int
        Classes of the earlier guide that make up each topic.
    """
    if earlier.levels is None or guide.levels is None:
        return guide
    column = {int(k): i for i, k in enumerate(earlier.levels.found)}
    chosen = [(k, column[groups[k][0]]) for k in found if k < len(groups) and groups[k][0] in column]
    components = earlier.levels.components.select([i for _, i in chosen])
    same = guide.embedding == earlier.embedding and np.array_equal(guide.directions, earlier.directions)
    if not same:
        with workers(threads):
            terms = X.take(np.arange(X.shape[0]))
            D = earlier.features(terms, threads, embeddings=embeddings)
            now = guide.features(terms, threads, embeddings=embeddings)
            components = learn_components(now, components.probabilities(D))
    numbers = np.array([k for k, _ in chosen], dtype=np.int64)
    return replace(guide, levels=replace(guide.levels, found=numbers, components=components))
