"""The project: one SQLite file with documents, topics, an append-only log of labels, settings and fitted models."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from topicsteer import __version__
from topicsteer.app.workbench.database import Database
from topicsteer.app.workbench.log import Log
from topicsteer.app.workbench.stored_models import StoredModels
from topicsteer.corpora import Documents
from topicsteer.system.files import replacing
from topicsteer.text.scripts import without_spaces

APPLICATION = 0x54535452  # "TSTR": what tells a project from any other SQLite file

# A project of version n has gone through the first n of these. What is there is never changed, only added to.
_SCRIPTS = files("topicsteer.app.workbench").joinpath("migrations")
MIGRATIONS = tuple(_SCRIPTS.joinpath(f"{step}.sql").read_text("utf-8") for step in (1, 2))


class ProjectError(ValueError):
    """A project cannot be opened; the message says why and what to do. The file was left as it is."""


class Project:
    """An open project file; `create` or `open` it.

    Parameters
    ----------
    database : Database
        The file. What people said is in ``log``, fitted models are in ``models``.
    lock : ExitStack
        What keeps a second workbench from the project.
    """

    def __init__(self, database: Database, lock: ExitStack) -> None:
        self.path = database.path
        self.log = Log(database)
        self.models = StoredModels(database)
        self.database = database
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
        with replacing(path, durable=True) as part, closing(sqlite3.connect(part)) as connection:
            connection.executescript(f"PRAGMA page_size = 8192; PRAGMA application_id = {APPLICATION};")
            with connection:
                connection.executescript("BEGIN;" + MIGRATIONS[0])
                connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?)", rows)
                connection.execute("PRAGMA user_version = 1")
            _migrate(connection, 1)
            with connection:
                settings = [(name, json.dumps(value)) for name, value in made.items()]
                connection.executemany("INSERT INTO settings VALUES (?, ?)", settings)

    @classmethod
    def open(cls, path: Path) -> Project:
        """Open a project; an older one is brought up to date, a newer, foreign or damaged one is refused as it is."""
        if not path.is_file():
            raise ProjectError(f"there is no project {path}; topicsteer label articles.csv makes one.")
        _refuse_foreign(path)
        lock = _lock(path)
        try:
            with _reporting(path):
                with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                    _check(connection, path)
                    _migrate(connection, int(connection.execute("PRAGMA user_version").fetchone()[0]))
                return cls(Database(path), lock)
        except BaseException:
            lock.close()
            raise

    def close(self) -> None:
        """Move everything into the one file and let it go; once is enough."""
        self.database.close()
        self._lock.close()

    # --- settings ---

    def settings(self) -> dict[str, Any]:
        """Everything that is set."""
        found = self.database.read("SELECT name, value FROM settings")
        return {name: json.loads(value) for name, value in found}

    def set(self, values: Mapping[str, Any]) -> None:
        """Set some of it."""
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        with self.database.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)

    # --- documents ---

    def __len__(self) -> int:
        return int(self.database.read("SELECT count(*) FROM documents").fetchone()[0])

    def ids(self) -> list[Hashable]:
        """The documents' ids, in order."""
        return [json.loads(row[0]) for row in self.database.read("SELECT id FROM documents ORDER BY row")]

    def document(self, row: int) -> tuple[Hashable, str, dict[str, Any]]:
        """Id, text and further columns of a document."""
        found = self.database.read("SELECT id, text, extra FROM documents WHERE row = ?", (row,)).fetchone()
        if found is None:
            raise KeyError(f"there is no document {row}")
        return json.loads(found[0]), found[1], json.loads(found[2])

    def extras(self) -> list[dict[str, Any]]:
        """The further columns of all documents."""
        return [json.loads(row[0]) for row in self.database.read("SELECT extra FROM documents ORDER BY row")]

    def beginnings(self, rows: Sequence[int], size: int = 1_200) -> dict[int, tuple[Hashable, str]]:
        """Id and beginning of some documents; in bytes, because SQLite's characters end at a NUL."""
        marks = ", ".join("?" * len(rows))
        query = f"SELECT row, id, substr(CAST(text AS BLOB), 1, {size}) FROM documents WHERE row IN ({marks})"  # noqa: S608
        found = self.database.read(query, tuple(rows))
        return {row: (json.loads(name), bytes(text).decode("utf-8", "ignore")) for row, name, text in found}

    def search(self, query: str) -> list[int]:
        """Rows with all the words, or words that begin so; where words are not spaced, with the query as written."""
        if without_spaces(query):
            like = "%" + query.strip().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
            where, value = "documents WHERE text LIKE ? ESCAPE '\\'", like
        else:
            words = "".join(letter if letter.isalnum() else " " for letter in query).split()
            where, value = "words WHERE words MATCH ?", " ".join(f'"{word}"*' for word in words)
        found = self.database.read(f"SELECT rowid FROM {where} ORDER BY rowid", (value,)) if value else ()  # noqa: S608
        return [row[0] for row in found]


def read_documents(path: Path) -> Documents:
    """Ids and texts of a project that another process has open."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.execute("PRAGMA query_only = ON")
        ids, texts = [], []
        for name, text in connection.execute("SELECT id, text FROM documents ORDER BY row"):
            ids.append(json.loads(name))
            texts.append(text)
    return Documents(ids, texts)


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
    """Bring a project up to date, each step whole or not at all."""
    for step, script in enumerate(MIGRATIONS[version:], start=version + 1):
        try:
            connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {step}; COMMIT;")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


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


_KEPT = "nothing was changed. Take the file from a backup, or choose another name with --project."


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a damaged file; nothing is written before this."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise ProjectError(f"{path} is damaged ({found}); {_KEPT}")


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    """Say in words what SQLite found wrong."""
    try:
        yield
    except sqlite3.Error as error:
        raise ProjectError(f"{path} cannot be opened as a project ({error}); {_KEPT}") from error


def _lock(path: Path) -> ExitStack:
    """Keep other workbenches from the project until this is closed, or the process ends, however that ends."""
    held = ExitStack()
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return held
    file = held.enter_context(open(path, "rb"))  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        raise ProjectError(f"{path} is open in another workbench: use that one, or end it first.") from None
    except OSError:  # a file system without locks
        held.close()
    return held
