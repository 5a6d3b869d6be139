"""Fitted models in the project: files of a model folder, cut into parts so that no label waits for a large write."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from topicsteer.app.workbench.database import LARGE_LOG, Database

PART = 1 << 19  # bytes of a model's file in one row


class StoredModels:
    """The models of a project; of all but the last only the description is kept.

    Parameters
    ----------
    database : Database
        Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def store(self, folder: Path, meta: Mapping[str, Any], pause: float = 0.002) -> int:
        """Put the files of a model into the project, part by part; it counts only when all of them are there."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        text = json.dumps(meta, ensure_ascii=False)
        with self._database.transaction() as connection:
            cursor = connection.execute("INSERT INTO models (at, whole, meta) VALUES (?, 0, ?)", (at, text))
            model = int(cursor.lastrowid or 0)
        written = 0
        for path in sorted(folder.iterdir()):
            with open(path, "rb") as file:
                part = 0
                while data := file.read(PART):
                    with self._database.transaction() as connection:
                        row = (model, path.name, part, data)
                        connection.execute("INSERT INTO model_files VALUES (?, ?, ?, ?)", row)
                    part, written = part + 1, written + len(data)
                    time.sleep(pause)  # labels come first
                    if written > LARGE_LOG:
                        self._database.tidy()
                        written = 0
        with self._database.transaction() as connection:
            connection.execute("UPDATE models SET whole = 1 WHERE model = ?", (model,))
        self._drop_files(model, pause)
        self._database.tidy()
        return model

    def _drop_files(self, keep: int, pause: float) -> None:
        """Remove the files of models before this one, finished or not; what is known of them stays."""
        while True:
            with self._database.transaction() as connection:
                found = connection.execute("SELECT rowid FROM model_files WHERE model < ? LIMIT 8", (keep,)).fetchall()
                connection.executemany("DELETE FROM model_files WHERE rowid = ?", found)
            if not found:
                return
            time.sleep(pause)

    def describe(self, model: int, more: Mapping[str, Any]) -> None:
        """Add to what is known of a model."""
        with self._database.transaction() as connection:
            (meta,) = connection.execute("SELECT meta FROM models WHERE model = ?", (model,)).fetchone()
            text = json.dumps(json.loads(meta) | dict(more), ensure_ascii=False)
            connection.execute("UPDATE models SET meta = ? WHERE model = ?", (text, model))

    def finished(self) -> list[tuple[int, str, dict[str, Any]]]:
        """Number, time and description of all models that were finished, oldest first."""
        rows = self._database.read("SELECT model, at, meta FROM models WHERE whole ORDER BY model")
        return [(model, at, json.loads(meta)) for model, at, meta in rows]

    def restore(self, model: int, folder: Path) -> None:
        """Write the files of a model to a folder."""
        query = "SELECT name, data FROM model_files WHERE model = ? ORDER BY name, part"
        for name, data in self._database.read(query, (model,)):
            if Path(name).name != name or name.startswith(".."):
                path = self._database.path
                raise ValueError(f"{path} names a file {name!r} of a model, which topicsteer would not.")
            with open(folder / name, "ab") as file:
                file.write(data)
