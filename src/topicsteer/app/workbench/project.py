"""The project file: one SQLite file with documents, topics, the event log, settings and fitted models."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO

from topicsteer import __version__
from topicsteer.analysis.groups import Groups
from topicsteer.app.workbench import project_check
from topicsteer.app.workbench.database import LARGE_LOG, Database
from topicsteer.app.workbench.event_log import EventLog
from topicsteer.app.workbench.group_columns import stored_groups
from topicsteer.corpora import Documents
from topicsteer.system.files import replacing
from topicsteer.system.values import check_ids
from topicsteer.text.scripts import without_spaces

# Bytes of a model file per row of the table.
PART = 1 << 19
# Seconds between two parts of a model, in which labels can be written.
PAUSE = 0.002
# Bytes of a document that lists show.
BEGINNING = 1_200
_KEPT = "nothing was changed. Restore the file from a backup, or choose another name with --project."

# "TSTR" marks an SQLite file as a project.
APPLICATION = 0x54535452
# Scripts that bring a project up to date. A project of version n has run the first n. Never change one: add another.
_SCRIPTS = files("topicsteer.app.workbench").joinpath("migrations")
MIGRATIONS = tuple(_SCRIPTS.joinpath(f"{step}.sql").read_text("utf-8") for step in (1, 2, 3, 4, 5))


class ProjectError(ValueError):
    """A project cannot be opened or created; the message gives the reason. The file is unchanged."""


class Project(Database):
    """An open project file; `create` or `open` it.

    Parameters
    ----------
    path : Path
        The file. Labels are in ``log``, fitted models in ``models``.
    lock : file
        The open file that keeps other workbenches away.
    """

    def __init__(self, path: Path, lock: BinaryIO) -> None:
        super().__init__(path)
        self.log = EventLog(self)
        self.models = StoredModels(self)
        self._lock = lock

    # --- files ---

    @classmethod
    def create(
        cls,
        path: Path,
        documents: Documents,
        *,
        source: Path | None = None,
        prepare: Callable[[Project], None] | None = None,
    ) -> None:
        """Write a new project, whole or not at all: the file gets its name when everything is in it.

        Parameters
        ----------
        path : Path
            A path that does not exist.
        documents : Documents
            Texts, ids and further columns. The session imports their labels, as events.
        source : Path, optional
            The file with the documents. Its fingerprint is stored, so that later changes are noticed.
        prepare : callable, optional
            Called with the unfinished project, for example to import labels.
        """
        exists = f"{path} already exists: open it, or choose another name with --project."
        if path.exists():
            raise ProjectError(exists)
        check_ids(documents.ids)
        dump, columns = partial(json.dumps, ensure_ascii=False), documents.columns.items()
        rows = (
            (row, dump(_plain(name)), text, dump({column: _plain(values[row]) for column, values in columns}))
            for row, (name, text) in enumerate(zip(documents.ids, documents.texts, strict=True))
        )
        made = {"made by": __version__, "source": fingerprint(source) if source else None}
        settings = [(name, json.dumps(value)) for name, value in made.items()]
        try:
            with replacing(path, durable=True, new=True) as part:
                _write(part, rows, settings)
                if prepare is not None:
                    with closing(cls(part, open(part, "rb"))) as project:  # nobody else knows its name
                        prepare(project)
        except FileExistsError:  # another workbench was faster
            raise ProjectError(exists) from None

    @classmethod
    def open(cls, path: Path) -> Project:
        """Open a project; an old one is brought up to date, a newer, foreign or damaged one is refused unchanged."""
        if not path.is_file():
            raise ProjectError(f"there is no project {path}: create one with topicsteer label articles.csv.")
        _refuse_foreign(path)
        lock = _lock(path)
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if found != "ok":  # nothing is written before this
                    raise ProjectError(f"{path} is damaged ({found}); {_KEPT}")
                _migrate(connection, int(connection.execute("PRAGMA user_version").fetchone()[0]))
                if (found := project_check.problem(connection)) is not None:
                    raise ProjectError(f"{path} is damaged: {found}; {_KEPT}")
            return cls(path, lock)
        except BaseException as error:
            lock.close()
            if isinstance(error, sqlite3.Error):
                raise ProjectError(f"{path} cannot be opened as a project ({error}); {_KEPT}") from error
            raise

    def close(self) -> None:
        """Close the project and release its lock."""
        super().close()
        self._lock.close()

    # --- settings ---

    def settings(self) -> dict[str, Any]:
        """Return all stored settings."""
        found = self.read("SELECT name, value FROM settings")
        return {name: json.loads(value) for name, value in found}

    def set(self, values: Mapping[str, Any]) -> None:
        """Store settings."""
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        with self.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)

    # --- documents ---

    def __len__(self) -> int:
        return int(self.read("SELECT count(*) FROM documents").fetchone()[0])

    def ids(self) -> list[Hashable]:
        """Return the ids of the documents, in order."""
        return [json.loads(row[0]) for row in self.read("SELECT id FROM documents ORDER BY row")]

    def document(self, row: int) -> tuple[Hashable, str, dict[str, Any]]:
        """Return id, text and further columns of a document."""
        found = self.read("SELECT id, text, extra FROM documents WHERE row = ?", (row,)).fetchone()
        return json.loads(found[0]), found[1], json.loads(found[2])

    def beginnings(self, rows: Sequence[int]) -> dict[int, tuple[Hashable, str]]:
        """Return id and beginning of some documents; cut by bytes, because SQLite text functions end at NUL."""
        marks = ", ".join("?" * len(rows))
        query = f"SELECT row, id, substr(CAST(text AS BLOB), 1, {BEGINNING}) FROM documents WHERE row IN ({marks})"  # noqa: S608
        found = self.read(query, tuple(rows))
        texts = {row: (json.loads(name), bytes(text).decode("utf-8", "ignore")) for row, name, text in found}
        return {row: texts[row] for row in rows}

    def search(self, query: str) -> list[int]:
        """Return rows with words that begin like the words of the query.

        In scripts without spaces, the query must occur as written.
        """
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
        """The columns with few values or with dates, as groups."""
        return stored_groups(self.path)


class StoredModels:
    """The models of a project: the files of the last one, and the descriptions of all.

    Parameters
    ----------
    database : Database
        The project file.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def store(self, folder: Path, meta: Mapping[str, Any]) -> int:
        """Store the files of a model, part by part; it counts only when all parts are stored. Return its number."""
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
                    time.sleep(PAUSE)  # labels can be written now
                    if written > LARGE_LOG:
                        self._database.tidy()
                        written = 0
        with self._database.transaction() as connection:
            connection.execute("UPDATE models SET whole = 1 WHERE model = ?", (model,))
        self._drop_files(model)
        self._database.tidy()
        return model

    def _drop_files(self, keep: int) -> None:
        """Remove the files of earlier models; their descriptions stay."""
        while True:
            with self._database.transaction() as connection:
                found = connection.execute("SELECT rowid FROM model_files WHERE model < ? LIMIT 8", (keep,)).fetchall()
                connection.executemany("DELETE FROM model_files WHERE rowid = ?", found)
            if not found:
                return
            time.sleep(PAUSE)

    def describe(self, model: int, more: Mapping[str, Any]) -> None:
        """Add to the description of a model."""
        with self._database.transaction() as connection:
            (meta,) = connection.execute("SELECT meta FROM models WHERE model = ?", (model,)).fetchone()
            text = json.dumps(json.loads(meta) | dict(more), ensure_ascii=False)
            connection.execute("UPDATE models SET meta = ? WHERE model = ?", (text, model))

    def finished(self) -> list[tuple[int, str, dict[str, Any]]]:
        """Return number, time and description of all complete models, oldest first."""
        rows = self._database.read("SELECT model, at, meta FROM models WHERE whole ORDER BY model")
        return [(model, at, json.loads(meta)) for model, at, meta in rows]

    def restore(self, model: int, folder: Path) -> None:
        """Write the files of a model into a folder."""
        query = "SELECT name, data FROM model_files WHERE model = ? ORDER BY name, part"
        for name, data in self._database.read(query, (model,)):
            if Path(name).name != name or name.startswith(".."):
                path = self._database.path
                raise ValueError(f"{path} has a model file with the name {name!r}, which topicsteer never writes.")
            with open(folder / name, "ab") as file:
                file.write(data)


def read_documents(path: Path) -> Documents:
    """Read ids and texts of a project, even while it is open elsewhere."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.execute("PRAGMA query_only = ON")
        found = connection.execute("SELECT id, text FROM documents ORDER BY row").fetchall()
    return Documents([json.loads(name) for name, _ in found], [text for _, text in found])


def fingerprint(path: Path) -> dict[str, Any]:
    """Return name, size and hash of a file."""
    if not path.is_file():
        return {"name": path.name, "size": 0, "sha256": ""}
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": path.name, "size": path.stat().st_size, "sha256": digest}


def _plain(value: object) -> object:
    """Return a value that JSON can hold."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or isinstance(value, str | int):
        return value
    return value if isinstance(value, float) and value - value == 0 else str(value)


def _write(path: Path, rows: Iterable[tuple[object, ...]], settings: Iterable[tuple[str, str]]) -> None:
    """Write the documents and settings of a new project."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"PRAGMA page_size = 8192; PRAGMA application_id = {APPLICATION};")
        with connection:
            connection.executescript("BEGIN;" + MIGRATIONS[0])
            connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?)", rows)
            connection.executemany("INSERT INTO settings VALUES (?, ?)", settings)
            connection.execute("PRAGMA user_version = 1")
        _migrate(connection, 1)


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a project up to date; each step is one transaction."""
    for step, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {step}; COMMIT;")


def _refuse_foreign(path: Path) -> None:
    """Refuse a file that is no project by its first bytes, before SQLite opens it."""
    with open(path, "rb") as file:
        head = file.read(100)
    if not head.startswith(b"SQLite format 3\x00"):
        raise ProjectError(f"{path} is not a topicsteer project, or its beginning is damaged; {_KEPT}")
    version, application = int.from_bytes(head[60:64], "big"), int.from_bytes(head[68:72], "big")
    if application != APPLICATION:
        raise ProjectError(f"{path} is an SQLite file of another program; {_KEPT}")
    if version > len(MIGRATIONS):
        raise ProjectError(
            f"{path} was written by a newer topicsteer. It has version {version} of the project format, and topicsteer "
            f"{__version__} reads versions up to {len(MIGRATIONS)}: upgrade topicsteer."
        )


def _lock(path: Path) -> BinaryIO:
    """Lock the project until the returned file is closed or the process ends."""
    file = open(path, "rb")  # noqa: SIM115
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ProjectError(f"{path} is open in another workbench: use that one, or close it first.") from None
    except (ImportError, OSError):  # no such locks on this system, or on this file system
        pass
    return file
