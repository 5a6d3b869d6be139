"""The project: one SQLite file with documents, topics, an append-only log of labels, settings and fitted models."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topicsteer import __version__
from topicsteer.app.workbench.database import LARGE_LOG, Database
from topicsteer.app.workbench.log import Log
from topicsteer.corpora import Documents
from topicsteer.system.files import replacing
from topicsteer.text.scripts import without_spaces

PART = 1 << 19  # bytes of a model's file in one row
PAUSE = 0.002  # seconds between two parts: labels come first
BEGINNING = 1_200  # bytes of a document that lists show
MOST = 24  # groups of a column
DATES = ("%d-%b-%Y %H:%M:%S.%f", "%d-%b-%Y", "%d.%m.%Y", "%d/%m/%Y", "%Y/%m/%d", "%a, %d %b %Y %H:%M:%S %z")
_KEPT = "nothing was changed. Take the file from a backup, or choose another name with --project."

APPLICATION = 0x54535452  # "TSTR": what tells a project from any other SQLite file

# A project of version n has gone through the first n of these. What is there is never changed, only added to.
_SCRIPTS = files("topicsteer.app.workbench").joinpath("migrations")
MIGRATIONS = tuple(_SCRIPTS.joinpath(f"{step}.sql").read_text("utf-8") for step in (1, 2))


class ProjectError(ValueError):
    """A project cannot be opened; the message says why and what to do. The file was left as it is."""


class Groups(NamedTuple):
    """The names of the groups, and for each document the number of its group, -1 if it has none."""

    names: list[str]
    code: NDArray[np.int64]


class Project(Database):
    """An open project file; `create` or `open` it.

    Parameters
    ----------
    path : Path
        The file. What people said is in ``log``, fitted models are in ``models``.
    lock : file
        What keeps a second workbench from the project.
    """

    def __init__(self, path: Path, lock: BinaryIO) -> None:
        super().__init__(path)
        self.log = Log(self)
        self.models = StoredModels(self)
        self._lock = lock

    # --- files ---

    @classmethod
    def create(cls, path: Path, documents: Documents, *, source: Path | None = None) -> None:
        """Write a new project beside its place and move it there when it is whole.

        Parameters
        ----------
        path : Path
            Where to; nothing may be there.
        documents : Documents
            Texts, ids and further columns; labels are not taken from here but by the session, as events.
        source : Path, optional
            The file they came from, to notice later that it changed.
        """
        if path.exists():
            raise ProjectError(f"{path} is there already: open it, or choose another name with --project.")
        dump, columns = partial(json.dumps, ensure_ascii=False), documents.columns.items()
        rows = (
            (row, dump(_plain(name)), text, dump({column: _plain(values[row]) for column, values in columns}))
            for row, (name, text) in enumerate(zip(documents.ids, documents.texts, strict=True))
        )
        made = {"made by": __version__, "source": fingerprint(source) if source else None}
        settings = [(name, json.dumps(value)) for name, value in made.items()]
        with replacing(path, durable=True) as part, closing(sqlite3.connect(part)) as connection:
            connection.executescript(f"PRAGMA page_size = 8192; PRAGMA application_id = {APPLICATION};")
            with connection:
                connection.executescript("BEGIN;" + MIGRATIONS[0])
                connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?)", rows)
                connection.executemany("INSERT INTO settings VALUES (?, ?)", settings)
                connection.execute("PRAGMA user_version = 1")
            _migrate(connection, 1)

    @classmethod
    def open(cls, path: Path) -> Project:
        """Open a project; an older one is brought up to date, a newer, foreign or damaged one is refused as it is."""
        if not path.is_file():
            raise ProjectError(f"there is no project {path}; topicsteer label articles.csv makes one.")
        _refuse_foreign(path)
        lock = _lock(path)
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if found != "ok":  # nothing is written before this
                    raise ProjectError(f"{path} is damaged ({found}); {_KEPT}")
                _migrate(connection, int(connection.execute("PRAGMA user_version").fetchone()[0]))
            return cls(path, lock)
        except BaseException as error:
            lock.close()
            if isinstance(error, sqlite3.Error):
                raise ProjectError(f"{path} cannot be opened as a project ({error}); {_KEPT}") from error
            raise

    def close(self) -> None:
        """Move everything into the one file and let it go; once is enough."""
        super().close()
        self._lock.close()

    # --- settings ---

    def settings(self) -> dict[str, Any]:
        """Everything that is set."""
        found = self.read("SELECT name, value FROM settings")
        return {name: json.loads(value) for name, value in found}

    def set(self, values: Mapping[str, Any]) -> None:
        """Set some of it."""
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        with self.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)

    # --- documents ---

    def __len__(self) -> int:
        return int(self.read("SELECT count(*) FROM documents").fetchone()[0])

    def ids(self) -> list[Hashable]:
        """The documents' ids, in order."""
        return [json.loads(row[0]) for row in self.read("SELECT id FROM documents ORDER BY row")]

    def document(self, row: int) -> tuple[Hashable, str, dict[str, Any]]:
        """Id, text and further columns of a document."""
        found = self.read("SELECT id, text, extra FROM documents WHERE row = ?", (row,)).fetchone()
        return json.loads(found[0]), found[1], json.loads(found[2])

    def beginnings(self, rows: Sequence[int]) -> dict[int, tuple[Hashable, str]]:
        """Id and beginning of some documents, in their order; in bytes, because SQLite's characters end at a NUL."""
        marks = ", ".join("?" * len(rows))
        query = f"SELECT row, id, substr(CAST(text AS BLOB), 1, {BEGINNING}) FROM documents WHERE row IN ({marks})"  # noqa: S608
        found = self.read(query, tuple(rows))
        texts = {row: (json.loads(name), bytes(text).decode("utf-8", "ignore")) for row, name, text in found}
        return {row: texts[row] for row in rows}

    def search(self, query: str) -> list[int]:
        """Rows with all the words, or words that begin so; where words are not spaced, with the query as written."""
        if without_spaces(query):
            like = "%" + query.strip().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
            where, value = "documents WHERE text LIKE ? ESCAPE '\\'", like
        else:
            words = "".join(letter if letter.isalnum() else " " for letter in query).split()
            where, value = "words WHERE words MATCH ?", " ".join(f'"{word}"*' for word in words)
        found = self.read(f"SELECT rowid FROM {where} ORDER BY rowid", (value,)) if value else ()  # noqa: S608
        return [row[0] for row in found]

    @cached_property
    def groups(self) -> dict[str, Groups]:
        """Columns of the table that make groups: few values, or dates."""
        extras = self.read("SELECT extra FROM documents ORDER BY row")
        return group_columns([json.loads(extra) for (extra,) in extras])


class StoredModels:
    """The models of a project; of all but the last only the description is kept.

    Parameters
    ----------
    database : Database
        Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def store(self, folder: Path, meta: Mapping[str, Any]) -> int:
        """Put the files of a model into the project, part by part; it counts only when all of them are there."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        text = json.dumps(meta, ensure_ascii=False)
        with self._database.transaction() as connection:
            cursor = connection.execute("INSERT INTO models (at, whole, meta) VALUES (?, 0, ?)", (at, text))
            model = int(cursor.lastrowid or 0)
        written = 0
        for path in sorted(folder.iterdir()):
            with open(path, "rb") as file:
                for part, data in enumerate(iter(partial(file.read, PART), b"")):
                    with self._database.transaction() as connection:
                        row = (model, path.name, part, data)
                        connection.execute("INSERT INTO model_files VALUES (?, ?, ?, ?)", row)
                    written += len(data)
                    time.sleep(PAUSE)  # labels come first
                    if written > LARGE_LOG:
                        self._database.tidy()
                        written = 0
        with self._database.transaction() as connection:
            connection.execute("UPDATE models SET whole = 1 WHERE model = ?", (model,))
        self._drop_files(model)
        self._database.tidy()
        return model

    def _drop_files(self, keep: int) -> None:
        """Remove the files of models before this one, finished or not; what is known of them stays."""
        while True:
            with self._database.transaction() as connection:
                found = connection.execute("SELECT rowid FROM model_files WHERE model < ? LIMIT 8", (keep,)).fetchall()
                connection.executemany("DELETE FROM model_files WHERE rowid = ?", found)
            if not found:
                return
            time.sleep(PAUSE)

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


def read_documents(path: Path) -> Documents:
    """Ids and texts of a project that another process has open."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.execute("PRAGMA query_only = ON")
        found = connection.execute("SELECT id, text FROM documents ORDER BY row").fetchall()
    return Documents([json.loads(name) for name, _ in found], [text for _, text in found])


def fingerprint(path: Path) -> dict[str, Any]:
    """Name, size and hash of a file, to notice later that it changed."""
    if not path.is_file():
        return {"name": path.name, "size": 0, "sha256": ""}
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": path.name, "size": path.stat().st_size, "sha256": digest}


def _plain(value: object) -> object:
    """A value as JSON holds it."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or isinstance(value, str | int):
        return value
    return value if isinstance(value, float) and value - value == 0 else str(value)


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a project up to date, each step whole or, when the connection is closed, not at all."""
    for step, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {step}; COMMIT;")


def _refuse_foreign(path: Path) -> None:
    """Refuse what is no project by its first bytes, before SQLite touches it."""
    with open(path, "rb") as file:
        head = file.read(100)
    if not head.startswith(b"SQLite format 3\x00"):
        raise ProjectError(f"{path} is not a project of topicsteer, or its beginning is damaged; {_KEPT}")
    version, application = int.from_bytes(head[60:64], "big"), int.from_bytes(head[68:72], "big")
    if application != APPLICATION:
        raise ProjectError(f"{path} is an SQLite file of another program; {_KEPT}")
    if version > len(MIGRATIONS):
        raise ProjectError(
            f"{path} was made by a newer topicsteer (version {version} of the project; this topicsteer, {__version__}, "
            f"knows versions up to {len(MIGRATIONS)}): upgrade with pip install --upgrade topicsteer."
        )


def _lock(path: Path) -> BinaryIO:
    """Keep other workbenches from the project until this is closed, or the process ends, however that ends."""
    file = open(path, "rb")  # noqa: SIM115
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ProjectError(f"{path} is open in another workbench: use that one, or end it first.") from None
    except (ImportError, OSError):  # no such locks on this system, or on this file system
        pass
    return file


def group_columns(rows: Sequence[Mapping[str, object]]) -> dict[str, Groups]:
    """The columns of a table that make groups."""
    found = {name: _grouped([row.get(name) for row in rows]) for name in (rows[0] if rows else ())}
    return {name: groups for name, groups in found.items() if groups is not None}


def _grouped(values: Sequence[object]) -> Groups | None:
    """Groups of a column: its values if they are few, months or years if they are dates, else None."""
    labels = [None if value is None or value == "" else str(value) for value in values]
    filled = [label for label in labels if label is not None]
    if len(filled) < max(2, len(values) // 2):
        return None
    if len(set(filled)) > MOST:
        if not all(map(_date, filled[:50])):
            return None
        stamps = [_date(label) if label else None for label in labels]
        for length in (10, 7, 4):
            labels = [stamp and stamp[:length] for stamp in stamps]
            if len(set(filter(None, labels))) <= MOST:
                break
    names = sorted(set(filter(None, labels)))
    if not 2 <= len(names) <= MOST:
        return None
    place = {name: k for k, name in enumerate(names)}
    return Groups(names, np.array([place[label] if label else -1 for label in labels], dtype=np.int64))


def _date(text: str) -> str | None:
    """A date as 2026-01-31, if it is one; a year as it is."""
    text = text.strip()
    with suppress(ValueError):
        return datetime.fromisoformat(text).date().isoformat()
    for form in DATES:
        with suppress(ValueError):
            return datetime.strptime(text, form).date().isoformat()
    return text if text.isdigit() and len(text) == 4 else None
