"""The project: one SQLite file with documents, topics, an append-only log of labels, settings and fitted models.

Whoever changes it goes through `Project.append`: events, topics and the batch they belong to are on disk together or
not at all. Fitted models are the files of a model folder, cut into parts so that no label waits for a large write.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from topicsteer import __version__
from topicsteer.corpora import Documents
from topicsteer.text.scripts import without_spaces

APPLICATION = 0x54535452  # "TSTR": what tells a project from any other SQLite file
PART = 1 << 19  # bytes of a model's file in one row
LARGE_LOG = 4 << 20  # bytes of the write-ahead log that are moved into the file

PERMITTED, FORBIDDEN, CLEARED, NONE, SKIPPED = "permitted", "forbidden", "cleared", "none", "skipped"
WHOLE = 0  # in place of a topic: what is said of the document as a whole

# A project of version n has gone through the first n of these. What is there is never changed, only added to.
MIGRATIONS = (
    """
    CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE documents (row INTEGER PRIMARY KEY, id TEXT NOT NULL, text TEXT NOT NULL, extra TEXT NOT NULL);
    CREATE TABLE topics (
        topic INTEGER PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL, colour TEXT NOT NULL,
        position INTEGER NOT NULL, pinned TEXT NOT NULL, banned TEXT NOT NULL, born INTEGER NOT NULL,
        gone INTEGER NOT NULL
    );
    CREATE TABLE batches (
        batch INTEGER PRIMARY KEY AUTOINCREMENT, who TEXT NOT NULL, at TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('do', 'undo', 'redo')), target INTEGER, request TEXT UNIQUE,
        note TEXT NOT NULL
    );
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, batch INTEGER NOT NULL REFERENCES batches (batch),
        person TEXT, document INTEGER, topic INTEGER NOT NULL, state TEXT NOT NULL, before TEXT NOT NULL
    );
    CREATE INDEX events_of_batch ON events (batch);
    CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
    CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
    """,
    """
    CREATE TABLE models (
        model INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, whole INTEGER NOT NULL, meta TEXT NOT NULL
    );
    CREATE TABLE model_files (
        model INTEGER NOT NULL, name TEXT NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL
    );
    CREATE INDEX model_files_in_order ON model_files (model, name, part);
    CREATE VIRTUAL TABLE words USING fts5 (
        text, content = 'documents', content_rowid = 'row', tokenize = 'unicode61 remove_diacritics 2'
    );
    INSERT INTO words (words) VALUES ('rebuild');
    """,
)


class ProjectError(ValueError):
    """A project cannot be opened; the message says why and what to do. The file was left as it is."""


@dataclass(frozen=True)
class Topic:
    """A topic of the user's, as it stands in the file."""

    topic: int
    name: str
    description: str = ""
    colour: str = ""
    position: int = 0
    pinned: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()
    born: int = 0
    gone: bool = False

    def dump(self) -> str:
        """JSON, for the log."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> Topic | None:
        """From the log; None where there was no topic yet."""
        values = json.loads(text) if text else None
        return None if values is None else cls(**values | {k: tuple(values[k]) for k in ("pinned", "banned")})


class Event(NamedTuple):
    """What was said: of a document by a person, or (document None) what became of a topic, as JSON."""

    person: str | None
    document: int | None
    topic: int
    state: str
    before: str


class Batch(NamedTuple):
    """Events that are undone together; there may be none, where nothing was left to do."""

    batch: int
    who: str
    kind: str
    target: int | None
    empty: bool


class Project:
    """An open project file; `create` or `open` it.

    Parameters
    ----------
    path : Path
        The file.
    connection : sqlite3.Connection
        For writing; readers get their own.
    lock : open file or None
        What keeps a second workbench from the project.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: BinaryIO | None) -> None:
        self.path = path
        self._connection = connection
        self._lock_file = lock
        self._writing = threading.Lock()
        self._closed = False
        self._readers = threading.local()
        self._all_readers: list[sqlite3.Connection] = []

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
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)
        names = list(documents.columns)
        columns = [documents.columns[name] for name in names]
        rows = (
            (
                row,
                json.dumps(_plain(documents.ids[row]), ensure_ascii=False),
                documents.texts[row],
                json.dumps({n: _plain(c[row]) for n, c in zip(names, columns, strict=True)}, ensure_ascii=False),
            )
            for row in range(len(documents))
        )
        try:
            with closing(sqlite3.connect(part)) as connection:
                connection.executescript(f"PRAGMA page_size = 8192; PRAGMA application_id = {APPLICATION};")
                with connection:
                    connection.executescript("BEGIN;" + MIGRATIONS[0])
                    connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?)", rows)
                    connection.execute("PRAGMA user_version = 1")
                _migrate(connection, 1)
                made: dict[str, Any] = {"made by": __version__, "source": fingerprint(source) if source else None}
                with connection:
                    connection.executemany(
                        "INSERT INTO settings VALUES (?, ?)",
                        [(name, json.dumps(value)) for name, value in made.items()],
                    )
            with open(part, "rb") as file:
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    @classmethod
    def open(cls, path: Path) -> Project:
        """Open a project; an older one is brought up to date, a newer, foreign or damaged one is refused as it is."""
        if not path.is_file():
            raise ProjectError(f"there is no project {path}; topicsteer label articles.csv makes one.")
        _refuse_foreign(path)
        lock = _lock(path)
        try:
            with _reporting(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
                _check(connection, path)
                version = int(connection.execute("PRAGMA user_version").fetchone()[0])
                _migrate(connection, version)
            with _reporting(path):
                writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
                writer.executescript(
                    # Moving the log into the file waits for the disk twice: that is done beside, see `tidy`.
                    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                    "PRAGMA foreign_keys = ON;"
                )
            return cls(path, writer, lock)
        except BaseException:
            _unlock(lock)
            raise

    def close(self) -> None:
        """Move everything into the one file and let it go; once is enough."""
        with self._writing:
            if self._closed:
                return
            self._closed = True
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            for reader in self._all_readers:
                reader.close()
            self._connection.close()
            _unlock(self._lock_file)

    def tidy(self) -> None:
        """Move what the log holds into the file if it is much; labels go on meanwhile."""
        log = self.path.with_name(self.path.name + "-wal")
        with suppress(OSError, sqlite3.Error):
            if log.stat().st_size > LARGE_LOG:
                with closing(sqlite3.connect(self.path, timeout=30)) as connection:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._writing:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @property
    def _reader(self) -> sqlite3.Connection:
        """A connection of this thread for reading."""
        reader: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if reader is None:
            reader = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
            reader.execute("PRAGMA query_only = ON")
            self._readers.connection = reader
            self._all_readers.append(reader)
        return reader

    # --- the log ---

    def append(
        self,
        who: str,
        events: Sequence[Event],
        *,
        kind: str = "do",
        target: int | None = None,
        request: str | None = None,
        note: str = "",
    ) -> tuple[int, int]:
        """Put events on disk as one batch; when this returns they are there.

        Parameters
        ----------
        who : str
            Who did it.
        events : sequence of Event
            In their order.
        kind, target : str, int
            "undo" and "redo" name the batch they take back or bring back.
        request : str, optional
            The name that the page gave to what it asked for, so that asking twice does it once.
        note : str
            For people who read the log.

        Returns
        -------
        batch, first : int
            Numbers of the batch and of its first event.
        """
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO batches (who, at, kind, target, request, note) VALUES (?, ?, ?, ?, ?, ?)",
                (who, at, kind, target, request, note),
            )
            batch = int(cursor.lastrowid or 0)
            first = 0
            for event in events:
                cursor = connection.execute(
                    "INSERT INTO events (batch, person, document, topic, state, before) VALUES (?, ?, ?, ?, ?, ?)",
                    (batch, *event),
                )
                seq = int(cursor.lastrowid or 0)
                first = first or seq
                if event.document is None:
                    self._put_topic(connection, event, seq)
        return batch, first

    @staticmethod
    def _put_topic(connection: sqlite3.Connection, event: Event, seq: int) -> None:
        topic = Topic.parse(event.state)
        if topic is None:  # a topic that was made and taken back
            connection.execute("UPDATE topics SET gone = 1 WHERE topic = ?", (event.topic,))
            return
        row = asdict(topic) | {"pinned": json.dumps(topic.pinned), "banned": json.dumps(topic.banned)}
        row["born"] = topic.born or seq
        connection.execute(
            f"INSERT OR REPLACE INTO topics ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608
            tuple(row.values()),
        )

    def answered(self, request: str) -> int | None:
        """The batch that was made for a request, if there is one."""
        found = self._reader.execute("SELECT batch FROM batches WHERE request = ?", (request,)).fetchone()
        return None if found is None else int(found[0])

    def batches(self) -> Iterator[Batch]:
        """All batches in their order."""
        empty = "NOT EXISTS (SELECT 1 FROM events WHERE events.batch = batches.batch)"
        for row in self._reader.execute(f"SELECT batch, who, kind, target, {empty} FROM batches ORDER BY batch"):  # noqa: S608
            yield Batch(*row)

    def events_of(self, batch: int) -> list[Event]:
        """The events of a batch, in their order."""
        query = "SELECT person, document, topic, state, before FROM events WHERE batch = ? ORDER BY seq"
        return [Event(*row) for row in self._reader.execute(query, (batch,))]

    def events(self, after: int = 0) -> Iterator[tuple[int, int, Event]]:
        """The log, whole or after an event: number, batch and event."""
        query = "SELECT seq, batch, person, document, topic, state, before FROM events WHERE seq > ? ORDER BY seq"
        for row in self._reader.execute(query, (after,)):
            yield row[0], row[1], Event(*row[2:])

    def history(self) -> Iterator[tuple[str, str, str, str, int, int, str]]:
        """The labels of the log for people: when, who did it, how, whose label, document, topic, state."""
        yield from self._reader.execute(
            "SELECT at, who, kind, person, document, topic, state FROM events JOIN batches USING (batch) "
            "WHERE document IS NOT NULL ORDER BY seq"
        )

    def topics(self) -> dict[int, Topic]:
        """All topics, also those that are gone."""
        found = {}
        for row in self._reader.execute(
            "SELECT topic, name, description, colour, position, pinned, banned, born, gone FROM topics ORDER BY topic"
        ):
            topic, name, description, colour, position, pinned, banned, born, gone = row
            words = (tuple(json.loads(pinned)), tuple(json.loads(banned)))
            found[topic] = Topic(topic, name, description, colour, position, *words, born, bool(gone))
        return found

    # --- settings ---

    def settings(self) -> dict[str, Any]:
        """Everything that is set."""
        return {name: json.loads(value) for name, value in self._reader.execute("SELECT name, value FROM settings")}

    def set(self, values: Mapping[str, Any]) -> None:
        """Set some of it."""
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)

    # --- documents ---

    def __len__(self) -> int:
        return int(self._reader.execute("SELECT count(*) FROM documents").fetchone()[0])

    def ids(self) -> list[Hashable]:
        """The documents' ids, in order."""
        return [json.loads(row[0]) for row in self._reader.execute("SELECT id FROM documents ORDER BY row")]

    def document(self, row: int) -> tuple[Hashable, str, dict[str, Any]]:
        """Id, text and further columns of a document."""
        found = self._reader.execute("SELECT id, text, extra FROM documents WHERE row = ?", (row,)).fetchone()
        if found is None:
            raise KeyError(f"there is no document {row}")
        return json.loads(found[0]), found[1], json.loads(found[2])

    def extras(self) -> list[dict[str, Any]]:
        """The further columns of all documents."""
        return [json.loads(row[0]) for row in self._reader.execute("SELECT extra FROM documents ORDER BY row")]

    def beginnings(self, rows: Sequence[int], size: int = 1_200) -> dict[int, tuple[Hashable, str]]:
        """Id and beginning of some documents; in bytes, because SQLite's characters end at a NUL."""
        marks = ", ".join("?" * len(rows))
        query = f"SELECT row, id, substr(CAST(text AS BLOB), 1, {size}) FROM documents WHERE row IN ({marks})"  # noqa: S608
        found = self._reader.execute(query, tuple(rows))
        return {row: (json.loads(name), bytes(text).decode("utf-8", "ignore")) for row, name, text in found}

    def search(self, query: str) -> list[int]:
        """Rows with all the words, or words that begin so; where words are not spaced, with the query as written."""
        if without_spaces(query):
            like = "%" + query.strip().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
            found = self._reader.execute(
                "SELECT row FROM documents WHERE text LIKE ? ESCAPE '\\' ORDER BY row", (like,)
            )
            return [row[0] for row in found]
        words = "".join(letter if letter.isalnum() else " " for letter in query).split()
        if not words:
            return []
        match = " ".join(f'"{word}"*' for word in words)
        return [
            row[0]
            for row in self._reader.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid", (match,))
        ]

    # --- models ---

    def store_model(self, folder: Path, meta: Mapping[str, Any], pause: float = 0.002) -> int:
        """Put the files of a model into the project, part by part; it counts only when all of them are there."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        text = json.dumps(meta, ensure_ascii=False)
        with self._transaction() as connection:
            cursor = connection.execute("INSERT INTO models (at, whole, meta) VALUES (?, 0, ?)", (at, text))
            model = int(cursor.lastrowid or 0)
        written = 0
        for path in sorted(folder.iterdir()):
            with open(path, "rb") as file:
                for part, data in enumerate(iter(lambda file=file: file.read(PART), b"")):  # type: ignore[misc]
                    with self._transaction() as connection:
                        connection.execute(
                            "INSERT INTO model_files VALUES (?, ?, ?, ?)", (model, path.name, part, data)
                        )
                    written += len(data)
                    time.sleep(pause)  # labels come first
                    if written > LARGE_LOG:
                        self.tidy()
                        written = 0
        with self._transaction() as connection:
            connection.execute("UPDATE models SET whole = 1 WHERE model = ?", (model,))
        self._drop_files(model, pause)
        self.tidy()
        return model

    def _drop_files(self, keep: int, pause: float) -> None:
        """Remove the files of models before this one, finished or not; what is known of them stays."""
        while True:
            with self._transaction() as connection:
                found = connection.execute("SELECT rowid FROM model_files WHERE model < ? LIMIT 8", (keep,)).fetchall()
                connection.executemany("DELETE FROM model_files WHERE rowid = ?", found)
            if not found:
                return
            time.sleep(pause)

    def describe_model(self, model: int, more: Mapping[str, Any]) -> None:
        """Add to what is known of a model."""
        with self._transaction() as connection:
            (meta,) = connection.execute("SELECT meta FROM models WHERE model = ?", (model,)).fetchone()
            text = json.dumps(json.loads(meta) | dict(more), ensure_ascii=False)
            connection.execute("UPDATE models SET meta = ? WHERE model = ?", (text, model))

    def models(self) -> list[tuple[int, str, dict[str, Any]]]:
        """Number, time and description of all models that were finished, oldest first."""
        rows = self._reader.execute("SELECT model, at, meta FROM models WHERE whole ORDER BY model")
        return [(model, at, json.loads(meta)) for model, at, meta in rows]

    def restore_model(self, model: int, folder: Path) -> None:
        """Write the files of a model to a folder."""
        query = "SELECT name, data FROM model_files WHERE model = ? ORDER BY name, part"
        for name, data in self._reader.execute(query, (model,)):
            if Path(name).name != name or name.startswith(".."):
                raise ProjectError(f"{self.path} names a file {name!r} of a model, which topicsteer would not.")
            with open(folder / name, "ab") as file:
                file.write(data)


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


def _plain(value: Any) -> Any:
    """A value as JSON holds it."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or isinstance(value, str | int | bool):
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


def _lock(path: Path) -> BinaryIO | None:
    """Keep other workbenches from the project; the lock goes with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return None
    file = open(path, "rb")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ProjectError(f"{path} is open in another workbench: use that one, or end it first.") from None
    except OSError:  # a file system without locks
        file.close()
        return None
    return file


def _unlock(lock: BinaryIO | None) -> None:
    if lock is not None:
        lock.close()
