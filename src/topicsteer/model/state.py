"""The fitted state: all arrays and plain values of a model in one frozen record, with a schema.

A fit returns a state, and so do an update and each edit. Files store a state, and `TopicModel` holds one. Vectoriser,
estimator and guide are built from it when needed; see `topicsteer.model.predictor`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.topics import Topics
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.origin import Origin
from topicsteer.labels.supervision import Supervision
from topicsteer.model.plain_forms import FORMS
from topicsteer.model.schema import GROUPS, SCHEMA, Arrays, StateError, check
from topicsteer.system.plain import check_form
from topicsteer.system.types import JSON, Array

if TYPE_CHECKING:
    from topicsteer.corpora import Documents


@dataclass(frozen=True, eq=False)
class FittedState:
    """A fitted model.

    Parameters
    ----------
    parameters : mapping
        The arguments of the `TopicModel`, as plain values; see `topicsteer.model.predictor`.
    codebook : Codebook
        The known topics.
    free_names : tuple of str
        Names of the free topics, which come after the known ones.
    groups : tuple of tuples of int
        Classes of the guide that make up each known topic: several after a merge.
    free_groups : tuple of tuples of int
        The same for free topics; empty if the guide does not know them.
    vectorizer, vocabulary, lemmatized
        Options and terms of the vectoriser, and whether the fit used a lemmatizer, which is not stored.
    estimator : mapping
        Parameters of the factorisation, number of iterations and reason for the end.
    fingerprint : str
        Hash of all documents.
    ids, texts
        Ids and texts of the documents; texts may be None.
    learnt_from : int
        Number of retained documents when the latent semantics were computed.
    seconds : mapping of str to float
        Seconds of each stage of the fit; empty in models of earlier versions.
    frames : str
        Kind of tables that the fit got: "pandas" or "polars".
    reading : mapping
        Columns of the training documents, from `ReadOptions.to_json`.
    encoder : mapping
        Where the embeddings of the fit came from; see `topicsteer.model.encoders`.
    components ... weights : arrays
        See :data:`SCHEMA`.
    guide, outside, levels, reservoir, history, origin : mapping of arrays or None
        Arrays of the guide, an open world, a tree of topics and the retained documents. Then the statistics of all
        other documents, and the origin of labels.
    """

    parameters: Mapping[str, JSON]
    codebook: Codebook
    free_names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    free_groups: tuple[tuple[int, ...], ...]
    vectorizer: Mapping[str, JSON]
    vocabulary: Sequence[str]
    lemmatized: bool
    estimator: Mapping[str, JSON]
    fingerprint: str
    ids: Sequence[Hashable]
    texts: Sequence[str] | None
    learnt_from: int
    components: Array
    document_topics: Array
    idf: NDArray[np.float64]
    profiles: Array
    pattern: NDArray[np.int32]
    patterns: NDArray[np.int8]
    objectives: Array
    memberships: Array
    thresholds: Array
    digests: NDArray[np.uint64]
    weights: Array
    guide: Arrays | None = field(default=None)
    outside: Arrays | None = field(default=None)
    levels: Arrays | None = field(default=None)
    reservoir: Arrays | None = field(default=None)
    history: Arrays | None = field(default=None)
    origin: Arrays | None = field(default=None)
    seconds: Mapping[str, float] = field(default_factory=dict)
    frames: str = "polars"
    reading: Mapping[str, JSON] = field(default_factory=dict)
    encoder: Mapping[str, JSON] = field(default_factory=dict)

    @cached_property
    def supervision(self) -> Supervision:
        """The labels."""
        return Supervision(self.codebook.names, self.pattern, self.patterns, self.codebook.forest)

    @property
    def label_origin(self) -> Origin:
        """How the labelled documents were chosen."""
        return Origin.unknown(len(self.pattern)) if self.origin is None else Origin(**self.origin)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all topics as text, known ones first."""
        return (*map(str, self.codebook.names), *self.free_names)

    @cached_property
    def topics(self) -> Topics:
        """Names, terms, documents and shares of the topics."""
        return Topics(
            self.names,
            len(self.codebook),
            np.array(self.vocabulary, dtype=object),
            self.components,
            self.document_topics,
            self.ids,
            self.supervision.counts,
            self.memberships,
            int(self.supervision.outsiders.sum()),
            self.codebook.forest,
            tuple(k for k, topic in enumerate(self.codebook) if topic.found),
        )

    @property
    def open(self) -> bool:
        """Whether memberships have columns of free topics and of no known topic."""
        return self.topics.open

    @property
    def believes_open(self) -> bool:
        """Whether documents seem to have none of the known topics; free topics that were asked for do not show it."""
        asked_for = self.outside is not None and not len(self.outside["weights"]) and bool(self.outside["counts"][1])
        return self.open and not asked_for

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by their names in :data:`SCHEMA`."""
        single = {f.name: getattr(self, f.name) for f in SCHEMA if f.name.partition("_")[0] not in GROUPS}
        for group in GROUPS:
            single |= {f"{group}_{name}": array for name, array in (getattr(self, group) or {}).items()}
        return single

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], arrays: Arrays) -> FittedState:
        """A checked state from JSON values, which have :data:`FORMS`, and from arrays.

        Raises
        ------
        StateError
            If a value has another form, or as in :meth:`build`.
        """
        try:
            for name, form in FORMS.items():
                check_form(plain[name], form, name)
            ready = dict(plain) | {
                "codebook": Codebook.from_json(plain["codebook"]),
                "free_names": tuple(plain["free_names"]),
                **{name: tuple(map(tuple, plain[name])) for name in ("groups", "free_groups")},
            }
        except ValueError as error:
            raise StateError(str(error)) from error
        return cls.build(ready, arrays)

    @classmethod
    def build(cls, plain: Mapping[str, Any], arrays: Arrays) -> FittedState:
        """A checked state from plain values and from arrays by their names in :data:`SCHEMA`.

        Raises
        ------
        StateError
            If an array is missing or violates the schema.
        """
        check(arrays, {"guided": sum(map(len, plain["groups"]))})
        groups: dict[str, Any] = {}
        single: dict[str, Any] = {}
        for name, array in arrays.items():
            group, _, rest = name.partition("_")
            if group in GROUPS:
                groups.setdefault(group, {})[rest] = array
            else:
                single[name] = array
        state = cls(**plain, **single, **groups)
        for name, size, wanted in (
            ("vocabulary", len(state.vocabulary), state.components.shape[1]),
            ("names of topics", len(state.names), len(state.components)),
            ("codebook", len(state.codebook), state.patterns.shape[1]),
            ("groups", len(state.groups), state.patterns.shape[1]),
            ("columns of memberships", state.memberships.shape[1], _columns(state)),
            ("ids", len(state.ids), len(state.pattern)),
            ("texts", len(state.pattern if state.texts is None else state.texts), len(state.pattern)),
        ):
            if size != wanted:
                raise StateError(f"there are {size:,} {name}, but {wanted:,} in the arrays")
        _check_numbers(state)
        return state


def digests(documents: Documents) -> NDArray[np.uint64]:
    """Hash of the id and text of each document."""
    found = b"".join(
        hashlib.sha256(f"{name}\x00{text}".encode("utf-8", "surrogatepass")).digest()[:8]
        for name, text in zip(documents.ids, documents.texts, strict=True)
    )
    return np.frombuffer(found, dtype="<u8").astype(np.uint64)


def fingerprint(numbers: NDArray[np.uint64]) -> str:
    """A short hash of a sequence of documents, from their :func:`digests`."""
    return hashlib.sha256(numbers.astype("<u8").tobytes()).hexdigest()[:16]


def _check_numbers(state: FittedState) -> None:
    """Check that terms, ids and keys are unique, and that topics are made up of existing classes of the guide."""
    for name, values in (("terms", state.vocabulary), ("keys of topics", state.codebook.keys)):
        if len(set(values)) != len(values):
            raise StateError(f"two {name} are equal")
    known, free = sum(map(len, state.groups)), 0
    if state.outside is not None:
        n_known, free = state.outside["counts"].tolist()
        known = n_known + free
    for name, groups, most in (("groups", state.groups, known), ("free_groups", state.free_groups, free)):
        if not all(groups) or not all(0 <= k < most for group in groups for k in group):
            raise StateError(f"{name} has classes that the guide does not have")


def _columns(state: FittedState) -> int:
    """Number of columns of the memberships."""
    return len(state.groups) + len(state.free_groups) + (state.outside is not None)


PLAIN = tuple(f.name for f in fields(FittedState) if f.name not in {s.name for s in SCHEMA} | set(GROUPS))
