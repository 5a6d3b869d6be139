"""ModelRecord: facts about a fit; and the fitted models of a project file."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from topicsteer.analysis.suggestions import Doubt

if TYPE_CHECKING:
    from topicsteer.app.workbench.project import Database

# The key of a known topic is a number, the key of a free one is "free-3"; "none" stands for none of the known topics.
Key: TypeAlias = int | str
# Bytes of a model file per row of the table.
PART = 1 << 19
# Bytes of a model after which the write-ahead log is moved into the project file.
LARGE = 4 << 20
# Seconds between two parts of a model, in which labels can be written.
PAUSE = 0.002


class SuggestedRow(msgspec.Struct, frozen=True):
    """A document to label next."""

    row: int
    why: str


class Point(msgspec.Struct, frozen=True):
    """A point of the learning curve: average precision on hidden labels, with standard errors.

    It is taken over all labels (micro) and as a mean over topics (macro).
    """

    documents: int
    micro: float
    macro: float
    micro_error: float = 0.0
    macro_error: float = 0.0


class GroupShares(msgspec.Struct, frozen=True):
    """Shares of topics in the groups of a column: a row per group, the first of them for all documents.

    ``keys`` are the topics of the columns, the others are fields of `Prevalence`; None where a value is not defined.
    """

    keys: list[Key]
    level: float
    notes: list[str]
    share: list[list[float | None]]
    low: list[list[float | None]]
    high: list[list[float | None]]
    plain: list[list[float | None]]
    worth: list[list[float | None]]
    labels: list[list[float | None]]
    drawn: list[list[float | None]]
    variance: list[list[float | None]]


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
    suggestions, checks
        Documents to label next, and labels that look wrong, with keys of topics in place of column numbers.
    outlook : str
        Advice on whether more labels help.
    curve : list of Point
        The evaluation on hidden labels, with a part of the labels and last with all of them.
    shares : dict
        Shares by group, for each column.
    """

    keys: list[int]
    seq: int = 0
    labelled: int = 0
    seconds: float = 0.0
    notes: list[str] = []
    proposed: dict[int, list[int]] = {}
    suggestions: list[SuggestedRow] = []
    checks: list[Doubt] = []
    outlook: str = ""
    curve: list[Point] = []
    shares: dict[str, GroupShares] = {}

    @classmethod
    def read(cls, text: str) -> ModelRecord:
        """Return a stored record; a field that cannot be read, as of another version, is left out."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError:
            stored = json.loads(text)
        found = {}
        for field in msgspec.structs.fields(cls):
            try:
                found[field.name] = msgspec.convert(stored[field.name], field.type, str_keys=True)
            except (KeyError, msgspec.ValidationError):
                continue
        return cls(**{"keys": [], **found})


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
        written = 0
        for path in sorted(folder.iterdir()):
            with open(path, "rb") as file:
                for part, data in enumerate(iter(partial(file.read, PART), b"")):
                    with self._database.transaction() as connection:
                        values = (model, path.name, part, data)
                        connection.execute("INSERT INTO model_files VALUES (?, ?, ?, ?)", values)
                    written += len(data)
                    time.sleep(PAUSE)  # labels can be written now
                    if written > LARGE:
                        self._database.tidy()
                        written = 0
        with self._database.transaction() as connection:
            connection.execute("UPDATE models SET whole = 1 WHERE model = ?", (model,))
        self._drop_files(model)
        self._database.tidy()
        return model

    def _drop_files(self, keep: int) -> None:
        """Remove the files of earlier models; their records stay."""
        while True:
            with self._database.transaction() as connection:
                found = connection.execute("SELECT rowid FROM model_files WHERE model < ? LIMIT 8", (keep,)).fetchall()
                connection.executemany("DELETE FROM model_files WHERE rowid = ?", found)
            if not found:
                return
            time.sleep(PAUSE)

    def describe(self, model: int, record: ModelRecord) -> None:
        """Replace the record of a model."""
        with self._database.transaction() as connection:
            values = (msgspec.json.encode(record).decode(), model)
            connection.execute("UPDATE models SET meta = ? WHERE model = ?", values)

    def finished(self) -> list[tuple[int, str, ModelRecord]]:
        """Return number, time and record of all complete models, oldest first."""
        rows = self._database.read("SELECT model, at, meta FROM models WHERE whole ORDER BY model")
        return [(model, at, ModelRecord.read(meta)) for model, at, meta in rows]

    def restore(self, model: int, folder: Path) -> None:
        """Write the files of a model into a folder."""
        query = "SELECT name, data FROM model_files WHERE model = ? ORDER BY name, part"
        for name, data in self._database.read(query, (model,)):
            if Path(name).name != name or name.startswith(".."):
                path = self._database.path
                raise ValueError(f"{path} has a model file with the name {name!r}, which topicsteer never writes.")
            with open(folder / name, "ab") as file:
                file.write(data)
