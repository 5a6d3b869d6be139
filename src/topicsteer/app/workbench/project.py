"""The project file: one SQLite file with documents, topics, the event log, settings and fitted models."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple

import msgspec
from msgspec import Meta

from topicsteer import __version__
from topicsteer.analysis.groups import Groups, likely_groups
from topicsteer.app.workbench.current_model import StoredModels
from topicsteer.app.workbench.errors import Invalid
from topicsteer.corpora import Documents
from topicsteer.labels import codebook
from topicsteer.system.files import hold, replacing, sync
from topicsteer.system.values import check_ids
from topicsteer.text.words import without_spaces

# Bytes of a document that lists show.
BEGINNING = 1_200
_KEPT = "nothing was changed. Restore the file from a backup, or choose another name with --project."
# "TSTR" marks an SQLite file as a project.
APPLICATION = 0x54535452
# Version of the project format. A new one needs a script that brings projects of this one up to date.
VERSION = 5
logger = logging.getLogger("topicsteer.app")


class ProjectError(ValueError):
    """A project cannot be opened or created; the message gives the reason. The file is unchanged."""


# --- topics, labels and events ---

# Key in place of a topic for the state of a document as a whole.
WHOLE = 0
# Key in place of a topic for the way in which a document was chosen, when it got its first label.
ORIGIN = -1
# Key in place of a topic for a person's note on a document; its state is the text as JSON, or "cleared".
NOTE = -2


class State:
    """States of a label: of a topic in a document, of a document as a whole, and of its choice."""

    PERMITTED, FORBIDDEN, CLEARED = "permitted", "forbidden", "cleared"
    # The answer yes to a question about one topic: the document has it, and its other topics stay open.
    CONFIRMED = "confirmed"
    # The document has the topic, and none of the topics below it.
    REST = "rest"
    # States of a document that has a topic.
    PRESENT = frozenset({PERMITTED, CONFIRMED, REST})
    # States of a document as a whole; one put aside for later comes again when its person asks for such documents.
    NONE, SKIPPED, LATER = "none", "skipped", "later"
    # States of a choice: drawn at random, chosen by the model or by a person, or drawn by doubt with the probability
    # that follows, as in "doubt 0.25".
    RANDOM, SUGGESTED, DOUBT = "random", "suggested", "doubt"
    # All states of a label, and of a choice.
    LABELS = (PERMITTED, FORBIDDEN, CLEARED, CONFIRMED, REST, NONE, SKIPPED, LATER)
    CHOICES = (RANDOM, SUGGESTED, CLEARED)


# Fields of a topic by their names in the project file.
STORED = {
    "topic": "key", "name": "name", "description": "description", "colour": "colour", "position": "position",
    "pinned": "keywords", "banned": "banned", "born": "born", "gone": "gone", "parent": "parent",
}  # fmt: skip


@dataclass(frozen=True)
class Topic(codebook.Topic):
    """A topic of the workbench; ``born`` is the number of the event that created it."""

    name: str
    colour: str = ""
    position: int = 0
    born: int = 0
    gone: bool = False

    def plain(self) -> codebook.Topic:
        """Return the topic without the fields that only the workbench needs."""
        return codebook.Topic(self.key, self.name, self.parent, self.description, self.keywords, self.banned)

    def dump(self) -> str:
        """Return the topic as JSON, for the log; a topic without a parent is written as before there were trees."""
        fields = {stored: getattr(self, name) for stored, name in STORED.items()}
        if self.parent is None:
            del fields["parent"]
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> Topic | None:
        """Return a topic from the log; None before it existed."""
        if not text:
            return None
        stored = json.loads(text)
        words = {"keywords": tuple(stored["pinned"]), "banned": tuple(stored["banned"])}
        return cls(**{STORED[name]: value for name, value in stored.items()} | words)


class Event(NamedTuple):
    """One change: of a person's label for a document or, without a document, of a topic.

    ``state`` and ``before`` are states of a label, or the topic as JSON.
    """

    person: str | None
    document: int | None
    key: int
    state: str
    before: str

    @classmethod
    def of_topic(cls, old: Topic | None, new: Topic) -> Event:
        """Return the event that creates or changes a topic."""
        return cls(None, None, new.key, new.dump(), old.dump() if old else "")


class Batch(NamedTuple):
    """Events that are undone together: the person who acted, and a note for readers of the log.

    The target of "undo" and "redo" is the batch that they revert or restore. The page names each request, so that a
    repeated request acts once.
    """

    who: str
    note: str = ""
    request: str | None = None
    kind: str = "do"
    target: int | None = None


# --- settings ---


class ProjectSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a project.

    Parameters
    ----------
    refit_after : int
        Newly labelled documents after which a fit starts. 0: never.
    free_topics : int
        Number of free topics.
    complete : bool
        A labelled document has no topics other than its labels.
    world : "open", "closed" or None
        Whether documents may have none of the topics. None: each fit decides.
    blind : bool
        Hide suggestions, predictions and the labels of others from people who label.
    overlap : int
        Every n-th labelled document is labelled by several people. 0: none.
    overlap_people : int
        The number of these people.
    path_separator : str, optional
        Separator of the levels in labels and names that are paths, such as "sport/football". None: no name is a path.
    """

    refit_after: Annotated[int, Meta(ge=0, le=100_000)] = 10
    free_topics: Annotated[int, Meta(ge=0, le=500)] = 10
    complete: bool = True
    world: Literal["open", "closed"] | None = None
    blind: bool = False
    overlap: Annotated[int, Meta(ge=0, le=1_000)] = 0
    overlap_people: Annotated[int, Meta(ge=2, le=20)] = 2
    path_separator: Annotated[str, Meta(max_length=8, pattern=r"\S")] | None = None

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> ProjectSettings:
        """Return the settings of a project file."""
        return cls(**{name: stored[name.replace("_", " ")] for name in FIELDS if name.replace("_", " ") in stored})

    def changed(self, values: Mapping[str, Any]) -> ProjectSettings:
        """Return the settings with new values, or refuse values that are not allowed."""
        try:
            return msgspec.convert(msgspec.structs.asdict(self) | dict(values), ProjectSettings)
        except msgspec.ValidationError as error:
            raise Invalid(f"A setting has a value that is not allowed: {error}. Nothing was changed.") from error

    def stored(self, names: Iterable[str]) -> dict[str, Any]:
        """Return some values under their names in the project file, which have spaces."""
        return {name.replace("_", " "): getattr(self, name) for name in names}


FIELDS = ProjectSettings.__struct_fields__

# --- columns that can be groups: few values, or dates ---


def group_columns(rows: Sequence[Mapping[str, object]]) -> dict[str, Groups]:
    """Return the columns with few values or with dates, as groups."""
    found = {name: likely_groups(name, [row.get(name) for row in rows]) for name in (rows[0] if rows else ())}
    return {name: groups for name, groups in found.items() if groups is not None}


def stored_groups(path: Path) -> dict[str, Groups]:
    """Return the groups of a project, even while it is open elsewhere."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.execute("PRAGMA query_only = ON")
        extras = connection.execute("SELECT extra FROM documents ORDER BY row")
        return group_columns([json.loads(extra) for (extra,) in extras])


# --- a check of the content, before anything relies on it: SQLite checks pages, not meaning ---

# Conditions that no row of a sound project fulfils: the problem, a table and the condition. The
# topic 0 stands for the document as a whole, -1 for the choice of the document, and -2 for a note.
TOPICS = "SELECT topic FROM events WHERE document IS NULL"
PROBLEMS = (
    ("documents are missing", "documents", "row < 0 OR row >= (SELECT count(*) FROM documents)"),
    ("a label belongs to an unknown document", "events", "document NOT IN (SELECT row FROM documents)"),
    ("a label belongs to an unknown topic", "events", f"topic > 0 AND topic NOT IN ({TOPICS})"),
    ("a label has no owner", "events", "document IS NOT NULL AND person IS NULL"),
    ("a label has an unknown state", "events", f"document IS NOT NULL AND topic >= 0 AND state NOT IN {State.LABELS}"),
    (
        "a label has an unknown origin",
        "events",
        f"document IS NOT NULL AND topic = {ORIGIN} AND state NOT IN {State.CHOICES} AND state NOT GLOB 'doubt [01]*'",
    ),
    ("a label belongs to an unknown topic", "events", f"document IS NOT NULL AND topic < {NOTE}"),
    (
        "a note cannot be read",
        "events",
        f"document IS NOT NULL AND topic = {NOTE} AND state != '{State.CLEARED}' AND NOT json_valid(state)",
    ),
    ("a topic cannot be read", "events", "document IS NULL AND state != '' AND NOT json_valid(state)"),
    ("a setting cannot be read", "settings", "NOT json_valid(value)"),
)


def found_problem(connection: sqlite3.Connection) -> str | None:
    """Return the first problem in the pages or the content of a project, or None."""
    pages = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if pages != "ok":
        return pages
    for name, table, condition in PROBLEMS:
        if connection.execute(f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1").fetchone():  # noqa: S608
            return name
    return None


# --- the file ---


class Database:
    """Connections to an SQLite file.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = self._connect()
        self._writer.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")
        self._writing = threading.Lock()
        self._readers = threading.local()
        self._all_readers: list[sqlite3.Connection] = []

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection for writing; its changes are on disk together or not at all."""
        with self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:  # on a full disk SQLite may have ended it
                    self._writer.execute("ROLLBACK")
                raise

    def read(self, query: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        """Return the rows of a query; each thread has its own connection."""
        reader: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if reader is None:
            reader = self._readers.connection = self._connect()
            reader.execute("PRAGMA query_only = ON")
            self._all_readers.append(reader)
        return reader.execute(query, tuple(values))

    def close(self) -> None:
        """Move the write-ahead log into the file, and close all connections."""
        with self._writing:
            with suppress(sqlite3.Error):
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            for connection in (*self._all_readers, self._writer):
                connection.close()


class EventLog:
    """The append-only log of a project.

    Parameters
    ----------
    database : Database
        The project file.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, batch: Batch, events: Sequence[Event]) -> tuple[int, int]:
        """Write events as one batch; they are on disk when this returns.

        Parameters
        ----------
        batch : Batch
            The batch of the events.
        events : sequence of Event
            Events in order.

        Returns
        -------
        batch, first : int
            Numbers of the batch and of its first event.
        """
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._database.transaction() as connection:
            insert = "INSERT INTO batches (who, note, request, kind, target, at) VALUES (?, ?, ?, ?, ?, ?)"
            number = int(connection.execute(insert, (*batch, at)).lastrowid or 0)
            first = 0
            for event in events:
                insert = "INSERT INTO events (batch, person, document, topic, state, before) VALUES (?, ?, ?, ?, ?, ?)"
                seq = int(connection.execute(insert, (number, *event)).lastrowid or 0)
                first = first or seq
        return number, first

    def batch_of(self, request: str) -> int | None:
        """Return the batch of a request, or None for a new request."""
        query = "SELECT batch FROM batches WHERE request = ?"
        found = self._database.read(query, (request,)).fetchone()
        return None if found is None else int(found[0])

    def batches(self) -> Iterator[tuple[int, Batch, bool]]:
        """Yield all batches in order: number, batch, and whether it is empty."""
        query = (
            "SELECT batch, who, note, request, kind, target, "
            "NOT EXISTS (SELECT 1 FROM events WHERE events.batch = batches.batch) FROM batches ORDER BY batch"
        )
        for number, *batch, empty in self._database.read(query):
            yield number, Batch(*batch), bool(empty)

    def events_of(self, batch: int) -> list[Event]:
        """Return the events of a batch in order."""
        query = "SELECT person, document, topic, state, before FROM events WHERE batch = ? ORDER BY seq"
        return [Event(*row) for row in self._database.read(query, (batch,))]

    def events(self) -> Iterator[tuple[int, Event]]:
        """Yield all events in order: number and event."""
        query = "SELECT seq, person, document, topic, state, before FROM events ORDER BY seq"
        for seq, *event in self._database.read(query):
            yield seq, Event(*event)

    def history(self) -> Iterator[tuple[str, str, str, str, int, int, str]]:
        """Yield every label: time, who acted, kind of batch, owner of the label, document, key, state."""
        yield from self._database.read(
            "SELECT at, who, kind, person, document, topic, state FROM events JOIN batches USING (batch) "
            "WHERE document IS NOT NULL ORDER BY seq"
        )


class Project(Database):
    """An open project file; `create` or `open` it.

    Parameters
    ----------
    path : Path
        The file. Labels are in ``log``, fitted models in ``models``.
    lock : file, optional
        The open file that keeps other workbenches away. Without it, the project is new, and only this process knows it.
    """

    def __init__(self, path: Path, lock: BinaryIO | None = None) -> None:
        super().__init__(path)
        self.log = EventLog(self)
        self.models = StoredModels(self)
        self._lock = lock
        self._closing = threading.Event()
        self._keeper = threading.Thread(target=self._keep_copies, daemon=True)

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
        rows = ((row, *stored) for row, stored in enumerate(_stored_rows(documents)))
        made = {"made by": __version__, "source": fingerprint(source) if source else None}
        settings = [(name, json.dumps(value)) for name, value in made.items()]
        try:
            with replacing(path, durable=True, new=True) as part:
                _write(part, rows, settings)
                if prepare is not None:
                    with closing(cls(part)) as project:
                        prepare(project)
                _finish(part)
            sync(path.parent)
        except FileExistsError:  # another workbench was faster
            raise ProjectError(exists) from None

    @classmethod
    def open(cls, path: Path) -> Project:
        """Open a project; one of another version, foreign or damaged, is refused unchanged."""
        _refuse_foreign(path)
        lock = _lock(path)
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                if (found := found_problem(connection)) is not None:  # nothing is written before this
                    raise ProjectError(f"{path} is damaged: {found}; {_KEPT}")
            project = cls(path, lock)
            project._keeper.start()
            return project
        except BaseException as error:
            lock.close()
            if isinstance(error, sqlite3.Error):
                raise ProjectError(f"{path} cannot be opened as a project ({error}); {_KEPT}") from error
            raise

    def close(self) -> None:
        """Close the project and release its lock."""
        self._closing.set()
        if self._keeper.is_alive():
            self._keeper.join()
        super().close()
        if self._lock is not None:
            self._lock.close()

    def _keep_copies(self) -> None:
        """Move the write-ahead log into the file every second, and write a copy at the first change of each day."""
        unmoved, tried = Path(f"{self.path}-wal"), None
        with closing(sqlite3.connect(self.path, timeout=0)) as connection:
            while not self._closing.wait(1):
                with suppress(OSError, sqlite3.Error):  # on a full disk the labels stay in the log
                    if unmoved.stat().st_size:
                        connection.execute("PRAGMA wal_checkpoint")  # labels can be written meanwhile
                        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # short, because nothing is left to move
                        if tried != date.today():
                            tried = date.today()
                            self._copy_daily(connection)

    def _copy_daily(self, connection: sqlite3.Connection) -> None:
        """Replace the daily copy, if it is of another day and the disk has room for two."""
        copy = self.path.with_name(f"{self.path.stem}.backup{self.path.suffix}")
        if copy.exists() and date.fromtimestamp(copy.stat().st_mtime) == date.today():
            return
        try:
            if shutil.disk_usage(self.path.parent).free < 2 * self.path.stat().st_size:
                raise OSError("the disk has too little room")
            _copy(connection, copy)
        except (OSError, ValueError, sqlite3.Error) as error:
            logger.warning("%s was not written: %s", copy, error)

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

    def add(self, documents: Documents, rows: Sequence[int], source: Path) -> None:
        """Append some rows of a table to the documents, all of them or none."""
        new, stored = len(self), list(_stored_rows(documents))
        with self.transaction() as connection:
            for place, row in enumerate(rows, start=new):
                connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?)", (place, *stored[row]))
                connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (place, stored[row][1]))
            known = ("source", json.dumps(fingerprint(source)))
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", known)

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


def back_up(path: Path, copy: Path) -> None:
    """Write a copy of a project as it is at this moment, even while it is open elsewhere; it replaces no file."""
    _refuse_foreign(path)
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        _copy(connection, copy, new=True)


def _copy(connection: sqlite3.Connection, copy: Path, *, new: bool = False) -> None:
    """Write a checked copy of a project, whole or not at all."""
    with replacing(copy, durable=True, new=new) as part:
        part.chmod(0o600)
        with closing(sqlite3.connect(part)) as other:
            connection.backup(other)
        _finish(part)
    sync(copy.parent)


def _finish(path: Path) -> None:
    """Leave a new file alone, without a log, and check it before it gets its name."""
    with closing(sqlite3.connect(path)) as connection:
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
        problem = found_problem(connection) if mode == "delete" else "its log cannot be moved into it"
    if problem is not None:
        raise ProjectError(f"the new file would be damaged ({problem}): nothing was written. Check the disk.")


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


def _stored_rows(documents: Documents) -> Iterator[tuple[str, str, str]]:
    """Yield id, text and further columns of each document, as a project stores them."""
    dump, columns = partial(json.dumps, ensure_ascii=False), documents.columns.items()
    for row, (name, text) in enumerate(zip(documents.ids, documents.texts, strict=True)):
        yield dump(_plain(name)), text, dump({column: _plain(values[row]) for column, values in columns})


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
        tables = files("topicsteer.app.workbench").joinpath("tables.sql").read_text("utf-8")
        with connection:
            connection.executescript("BEGIN;" + tables)
            connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?)", rows)
            connection.executemany("INSERT INTO settings VALUES (?, ?)", settings)
            connection.execute("INSERT INTO words (words) VALUES ('rebuild')")
            connection.execute(f"PRAGMA user_version = {VERSION}")


def _refuse_foreign(path: Path) -> None:
    """Refuse a file that is no project by its first bytes, before SQLite opens it."""
    if not path.is_file():
        raise ProjectError(f"there is no project {path}: create one with topicsteer label articles.csv.")
    with open(path, "rb") as file:
        head = file.read(100)
    if not head.startswith(b"SQLite format 3\x00"):
        raise ProjectError(f"{path} is not a topicsteer project, or its beginning is damaged; {_KEPT}")
    version, application = int.from_bytes(head[60:64], "big"), int.from_bytes(head[68:72], "big")
    if application != APPLICATION:
        raise ProjectError(f"{path} is an SQLite file of another program; {_KEPT}")
    if version != VERSION:
        advice = "upgrade topicsteer" if version > VERSION else "open it with topicsteer 0.2.0 first"
        raise ProjectError(
            f"{path} has version {version} of the project format, and topicsteer {__version__} reads version "
            f"{VERSION}: {advice}."
        )


def _lock(path: Path) -> BinaryIO:
    """Lock the project until the returned file is closed or the process ends."""
    file = open(path, "r+b")  # noqa: SIM115 - some network drives only lock files that are open for writing
    try:
        if hold(file.fileno()):
            return file
        reason = "is open in another workbench: use that one, or close it first."
    except OSError as error:
        reason = f"cannot be locked ({error.strerror}), as on some network drives: move it to a local disk."
    file.close()
    raise ProjectError(f"{path} {reason}")
