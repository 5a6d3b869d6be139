"""The model in use: the last fit of a project, with the arrays that the pages need."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.label_advice import label_effects
from topicsteer.analysis.suggestions import Suggestion, suggest_unknown
from topicsteer.analysis.topics import Topics
from topicsteer.app.workbench.event_log import Topic
from topicsteer.app.workbench.model_record import Key, ModelRecord
from topicsteer.app.workbench.refusals import NotFound
from topicsteer.model.topic_model import TopicModel
from topicsteer.system.types import Array

# Terms per topic.
TERMS = 10
# Beginning of the key of a free topic, and the key of documents that have none of the known topics.
FREE, OUTSIDE = "free-", "none"


class CurrentModel:
    """A fitted model and the record that is stored with it.

    Values that pages need often are computed once, here: ``terms`` with their strengths, and the ``effects`` of labels.
    ``none`` is the probability that a document has none of the known topics, and ``outside`` is True where it is
    predicted. ``top`` is the strongest membership of each document, or ``none`` if that is larger. ``doubt`` is 1 where
    it is 0.5. ``has`` is True for each document and known topic that it has.

    Parameters
    ----------
    folder : Path
        The files of the model, loaded without documents.
    record : ModelRecord
        Facts about the fit.
    vectors : array, optional
        Embeddings of the documents, if they are in a file.
    """

    def __init__(self, folder: Path, record: ModelRecord, vectors: Array | None = None) -> None:
        self.folder = folder
        self.model = model = TopicModel.load(folder, embeddings=vectors)
        self.record = record
        self.keys = record.keys
        self.result = model.state_.topics
        self.n_known = self.result.n_known
        self.n_free = len(self.result) - self.n_known
        self.column = dict(zip(self.keys, range(self.n_known), strict=True))
        self.column_keys = column_keys(self.keys, self.result)
        self.open: bool = model.state_.open
        self.memberships: NDArray[np.float32] = np.asarray(model.state_.known_memberships, dtype=np.float32)
        self.thresholds = np.asarray(model.state_.thresholds)
        self.judged = judged = model.state_.judged
        self.free: Array = judged.free
        self.none: NDArray[np.float32] = np.asarray(judged.none, dtype=np.float32)
        strongest = self.memberships.max(axis=1, initial=0.0)
        self.top: NDArray[np.float32] = np.maximum(strongest, self.none)
        self.doubt: NDArray[np.float32] = np.asarray(1 - 2 * np.abs(self.top - 0.5), dtype=np.float32)
        self.has: NDArray[np.bool_] = judged.has_known
        # Number of documents with each known topic.
        self.documents: list[int] = self.has.sum(axis=0).tolist()
        self.outside: NDArray[np.bool_] = judged.has_none
        self._has_free: NDArray[np.bool_] = judged.has()[:, self.n_known :]
        self.terms = [self.result.term_strengths(k, TERMS) for k in range(len(self.result))]
        self.effects: Mapping[str, Sequence[Any]] = label_effects(
            self.result, model.state_.supervision, model.state_.profiles
        )

    def renamed(self, topics: Mapping[int, Topic]) -> Topics:
        """Return the result under the current names of the topics."""
        now = {k: topics[key].name for key, k in self.column.items()}
        return replace(self.result, names=tuple(now.get(k, name) for k, name in enumerate(self.result.names)))

    def strength(self, key: Key | None) -> Array:
        """Return the probability of a known topic, of a free one or of none in each document, else the strongest."""
        if key == OUTSIDE:
            return self.none
        if isinstance(key, str):
            return self.free[:, self.free_number(key)]
        return self.top if key not in self.column else self.memberships[:, self.column[key]]

    def members(self, key: str) -> NDArray[np.bool_]:
        """Return whether each document has a free topic, or none of the known ones.

        In an open world these documents have no known topic, and a free topic has the largest threshold that a known
        topic may have.
        """
        if key == OUTSIDE:
            return self.outside
        return self._has_free[:, self.free_number(key)]

    def surest(self, key: str, n: int) -> list[int]:
        """Return the unlabelled documents that most surely have a free topic, surest first."""
        strength = np.where(self.model.state_.supervision.labelled, 0, self.strength(key))
        return [int(row) for row in np.argsort(-strength, kind="stable")[:n] if strength[row] > 0]

    @cached_property
    def unknown(self) -> list[Suggestion]:
        """Documents of the largest free topics; none in a closed world."""
        if not self.open or not any(map(len, self.model.state_.free_groups)):
            return []
        names = self.result.names[self.n_known :]
        sizes = [int(self.members(f"{FREE}{k}").sum()) for k in range(self.n_free)]
        return suggest_unknown(self.free, names, sizes, self.model.state_.supervision.labelled)

    def key_of(self, k: int) -> Key:
        """Return the key of a column: a number for a known topic, "free-3" for a free one."""
        return self.column_keys[k]

    def number(self, key: Key) -> int:
        """Return the column of a known or free topic."""
        return self.column[key] if isinstance(key, int) else self.free_column(key)

    def free_column(self, key: str) -> int:
        """Return the column of a free topic."""
        return self.n_known + self.free_number(key)

    def free_number(self, key: str) -> int:
        """Return the number of a free topic."""
        number = int(key.removeprefix(FREE)) if key.startswith(FREE) else self.n_free
        if number >= self.n_free:
            raise NotFound("This free topic no longer exists: the last fit found others.")
        return number


def column_keys(keys: Sequence[int], topics: Topics) -> list[Key]:
    """Return the key of each column, from the keys of the known topics."""
    return [*keys, *(f"{FREE}{k}" for k in range(len(topics) - topics.n_known))]
