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
# The name of the latter.
NONE_OF_THESE = "None of these"


class CurrentModel:
    """A fitted model and the record that is stored with it.

    Columns are the known topics, the free topics, and last none of the known ones; ``column`` has them by key. Values
    that pages need often are computed once, here. ``values`` are the memberships of documents in all columns, and
    ``has`` is True where a document has a topic. ``top`` is the strongest membership in a known topic, or P(none) if
    that is larger. ``doubt`` is 1 where it is 0.5. ``documents`` counts the documents per column. ``terms`` have
    strengths; ``effects`` belong to labels.

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
        self.model = TopicModel.load(folder, embeddings=vectors)
        self.record = record
        self.keys = record.keys
        state = self.model.state_
        self.result = state.topics
        self.n_known = self.result.n_known
        self.column_keys = column_keys(self.keys, self.result)
        # Names of the columns at the fit.
        self.names = (*self.result.names, NONE_OF_THESE)
        self.column = dict(zip(self.column_keys, range(len(self.names)), strict=True))
        self.open: bool = state.open
        self.thresholds = np.asarray(state.thresholds)
        judged = state.judged
        self.values: NDArray[np.float32] = np.asarray(judged.values, dtype=np.float32)
        self.has: NDArray[np.bool_] = np.column_stack([judged.has(), judged.has_none])
        self.documents: list[int] = self.has.sum(axis=0).tolist()
        self.memberships = self.values[:, : self.n_known]
        self.none = self.values[:, -1]
        self.top: NDArray[np.float32] = np.maximum(self.memberships.max(axis=1, initial=0.0), self.none)
        self.doubt: NDArray[np.float32] = np.asarray(1 - 2 * np.abs(self.top - 0.5), dtype=np.float32)
        self.terms = [self.result.term_strengths(k, TERMS) for k in range(len(self.result))]
        self.effects: Mapping[str, Sequence[Any]] = label_effects(self.result, state.supervision, state.profiles)

    def renamed(self, topics: Mapping[int, Topic]) -> Topics:
        """Return the result under the current names of the topics."""
        now = [topics[key].name for key in self.keys]
        return replace(self.result, names=(*now, *self.result.names[self.n_known :]))

    def number(self, key: Key) -> int:
        """Return the column of a topic."""
        if key not in self.column:
            raise NotFound("This free topic no longer exists: the last fit found others.")
        return self.column[key]

    def strength(self, key: Key | None) -> Array:
        """Return the memberships of all documents in a topic; in a topic that is not part of the fit, the strongest."""
        return self.values[:, self.number(key)] if key in self.column or isinstance(key, str) else self.top

    def surest(self, key: str, n: int) -> list[int]:
        """Return the unlabelled documents that most surely have a free topic, surest first."""
        strength = np.where(self.model.state_.supervision.labelled, 0, self.strength(key))
        return [int(row) for row in np.argsort(-strength, kind="stable")[:n] if strength[row] > 0]

    @cached_property
    def unknown(self) -> list[Suggestion]:
        """Documents of the largest free topics; none in a closed world."""
        if not self.open or not any(map(len, self.model.state_.free_groups)):
            return []
        free, names = self.values[:, self.n_known : -1], self.names[self.n_known : -1]
        labelled = self.model.state_.supervision.labelled
        return suggest_unknown(free, names, self.documents[self.n_known : -1], labelled)


def column_keys(keys: Sequence[int], topics: Topics) -> list[Key]:
    """Return the key of each column, from the keys of the known topics."""
    return [*keys, *(f"{FREE}{k}" for k in range(len(topics) - topics.n_known)), OUTSIDE]
