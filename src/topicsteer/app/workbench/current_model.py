"""The model in use: the last fit of a project, with the arrays that the pages need."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.documents_to_label import Doubt, Suggestion, mixed_order, suggest
from topicsteer.analysis.topics import Topics, all_memberships
from topicsteer.app.workbench.errors import NotFound
from topicsteer.guidance.apply import FREE_THRESHOLD, Memberships
from topicsteer.guidance.features import COMPONENTS
from topicsteer.labels.supervision import Supervision
from topicsteer.model.live import MAPPED, LiveGuide
from topicsteer.model.topic_model import TopicModel
from topicsteer.system.threads import one_blas_thread
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from topicsteer.app.workbench.project import Database, Topic

# The key of a known topic is a number, the key of a free one is "free-3"; "none" stands for none of the known topics.
Key: TypeAlias = int | str
# Bytes of a model file per row of the table.
PART = 1 << 19
# Seconds between two parts of a model, in which labels can be written.
PAUSE = 0.002
# File in the folder of a model with the features of all documents.
FEATURES = "features.npy"
# Documents to label next, and size of the sample that they are chosen for.
SUGGESTIONS, SHORTLIST = 30, 2_500


class GroupShares(msgspec.Struct, frozen=True):
    """Shares of topics in the groups of a column: a row per group, the first of them for all documents.

    ``keys`` are the topics of the columns. ``arrays`` are fields of `Prevalence`, with None for an undefined value.
    """

    keys: list[Key]
    level: float
    notes: list[str]
    arrays: dict[str, list[list[float | None]]]


class ModelRecord(msgspec.Struct, omit_defaults=True):
    """Facts about a fit; reports of the worker add to them.

    Parameters
    ----------
    keys : list of int
        The topics of the known columns.
    seq : int
        The last event before the fit.
    labelled : int
        Labelled documents at the fit.
    seconds, notes
        Duration, and warnings.
    proposed : dict
        Rows that are proposed as labels, by the key of their topic.
    checks
        Labels that look wrong, with keys of topics in place of column numbers.
    shares : dict
        Shares by group, for each column; and of all documents under `EVERYTHING`.
    """

    keys: list[int]
    seq: int = 0
    labelled: int = 0
    seconds: float = 0.0
    notes: list[str] = []
    proposed: dict[int, list[int]] = {}
    checks: list[Doubt] = []
    shares: dict[str, GroupShares] = {}

    @classmethod
    def read(cls, text: str) -> ModelRecord:
        """Return a stored record; one that cannot be read, as of another version, has no keys."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError:
            return cls([])


# In place of a column: shares of all documents.
EVERYTHING = ""
# Terms per topic.
TERMS = 10
# Beginning of the key of a free topic, and the key of documents that have none of the known topics.
FREE, OUTSIDE = "free-", "none"
# The name of the latter.
NONE_OF_THESE = "None of these"


class CurrentModel:
    """A fitted model and the record that is stored with it; its memberships follow labels (see `under`).

    Columns are the known topics, the free topics, and last none of the known ones; ``column`` has them by key. Values
    that pages need often are computed once, here. ``values`` are the memberships of documents in all columns, and
    ``has`` is True where a document has a topic. ``top`` is the strongest membership in a known topic, or P(none) if
    that is larger. ``doubt`` is 1 where it is 0.5. ``documents`` counts the documents per column. ``terms`` have
    strengths. ``at_fit`` are the memberships before any further label, and ``suggestions`` the documents to label next.

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
        if len(self.column_keys) != len(self.names):
            raise ValueError("its record cannot be read")
        self.column = {key: k for k, key in enumerate(self.column_keys)}
        self.open: bool = state.open
        self.thresholds = np.asarray(state.thresholds)
        self.terms = [self.result.term_strengths(k, TERMS) for k in range(len(self.result))]
        self.suggestions: list[Suggestion] = []
        self.live: LiveGuide | None = None
        # Leading principal components of the features, by which documents to label are compared.
        self._positions: Array | None = None
        if self.model.guide_ is not None and (folder / FEATURES).exists():
            D = np.load(folder / FEATURES, mmap_mode="r" if len(state.ids) > MAPPED else None)
            self.live = LiveGuide(state, self.model.guide_, D)
        self._judge(state.judged, state.supervision)
        self.at_fit = self.values

    def _judge(self, judged: Memberships, supervision: Supervision) -> None:
        """Set the values that follow from memberships and labels."""
        self.supervision = supervision
        self.values: NDArray[np.float32] = np.asarray(judged.values, dtype=np.float32)
        self.has: NDArray[np.bool_] = np.column_stack([judged.has(), judged.has_none])
        self.documents: list[int] = self.has.sum(axis=0).tolist()
        self.memberships = self.values[:, : self.n_known]
        self.none = self.values[:, -1]
        self.top: NDArray[np.float32] = np.maximum(self.memberships.max(axis=1, initial=0.0), self.none)
        self.doubt: NDArray[np.float32] = np.asarray(1 - 2 * np.abs(self.top - 0.5), dtype=np.float32)

    def under(self, supervision: Supervision) -> CurrentModel:
        """Return this model with the memberships under the present labels; itself if it has no live guide."""
        if self.live is None:
            return self
        now, state, outsiders = copy(self), self.live.label(supervision), supervision.outsiders
        values = all_memberships(state.memberships, self.result.proportions, self.n_known, outsiders)
        now._judge(self.model.state_.judge(values), supervision)
        return now

    def suggest(self) -> list[Suggestion]:
        """Choose the documents to label next, most useful first."""
        if self.live is None:
            return []
        with one_blas_thread():
            if self._positions is None:
                D = self.live.features
                some = np.asarray(D[:: -(-len(D) // SHORTLIST)])
                self._positions = np.asarray(D @ np.linalg.eigh(some.T @ some)[1][:, : -COMPONENTS - 1 : -1])
            Z, labelled = self._positions, self.supervision.labelled
            rows, seen = np.flatnonzero(~labelled & Z.any(axis=1)), Z[labelled].T @ Z[labelled]
            options = (self.memberships, self.supervision, seen, SUGGESTIONS)
            return suggest(Z.__getitem__, *options, rows=rows, shortlist=SHORTLIST)

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

    def proposals(self, key: str, n: int) -> list[int]:
        """Return unlabelled documents of a free topic: the three surest, then also documents near the threshold."""
        strength = self.strength(key)
        rows = np.flatnonzero(~self.supervision.labelled & (strength > 0))
        found: list[int] = rows[mixed_order(strength[rows], FREE_THRESHOLD)[:n]].tolist()
        return found

    def ranked(self, key: str, rows: Sequence[int]) -> list[int]:
        """Return the documents among some rows that have a free topic, most probable first."""
        strength, has = self.strength(key), self.has[:, self.number(key)]
        return sorted((row for row in rows if has[row]), key=lambda row: -strength[row])


def column_keys(keys: Sequence[int], topics: Topics) -> list[Key]:
    """Return the key of each column, from the keys of the known topics."""
    return [*keys, *(f"{FREE}{k}" for k in range(len(topics) - topics.n_known)), OUTSIDE]


class StoredModels:
    """The models of a project: the files of the last one, and the records of all.

    Parameters
    ----------
    database : Database
        The project file.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def store(self, folder: Path, record: ModelRecord) -> int:
        """Store the files of a model, part by part; it counts only when all parts are stored. Return its number."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        with self._database.transaction() as connection:
            row = (at, msgspec.json.encode(record).decode())
            cursor = connection.execute("INSERT INTO models (at, whole, meta) VALUES (?, 0, ?)", row)
            model = int(cursor.lastrowid or 0)
        for path in sorted(folder.iterdir()):
            with open(path, "rb") as file:
                for part, data in enumerate(iter(partial(file.read, PART), b"")):
                    with self._database.transaction() as connection:
                        values = (model, path.name, part, data)
                        connection.execute("INSERT INTO model_files VALUES (?, ?, ?, ?)", values)
                    time.sleep(PAUSE)  # labels can be written now
        with self._database.transaction() as connection:
            connection.execute("UPDATE models SET whole = 1 WHERE model = ?", (model,))
            connection.execute("DELETE FROM model_files WHERE model < ?", (model,))  # their records stay
        return model

    def describe(self, model: int, record: ModelRecord) -> None:
        """Replace the record of a model."""
        with self._database.transaction() as connection:
            values = (msgspec.json.encode(record).decode(), model)
            connection.execute("UPDATE models SET meta = ? WHERE model = ?", values)

    def last(self) -> tuple[int, ModelRecord] | None:
        """Return number and record of the last complete model."""
        query = "SELECT model, meta FROM models WHERE whole ORDER BY model DESC LIMIT 1"
        found = self._database.read(query).fetchone()
        return None if found is None else (found[0], ModelRecord.read(found[1]))

    def restore(self, model: int, folder: Path) -> None:
        """Write the files of a model into a folder."""
        query = "SELECT name, data FROM model_files WHERE model = ? ORDER BY name, part"
        for name, data in self._database.read(query, (model,)):
            if Path(name).name != name or name.startswith(".."):
                path = self._database.path
                raise ValueError(f"{path} has a model file with the name {name!r}, which topicsteer never writes.")
            with open(folder / name, "ab") as file:
                file.write(data)
