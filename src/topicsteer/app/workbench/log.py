"""The log: what people said of documents, and what became of topics. It is only ever added to.

Whoever changes a project goes through `Log.append`: events, topics and the batch they belong to are on disk together
or not at all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from topicsteer.app.workbench.database import Database
from topicsteer.labels import codebook

PERMITTED, FORBIDDEN, CLEARED, NONE, SKIPPED = "permitted", "forbidden", "cleared", "none", "skipped"
WHOLE = 0  # in place of a topic: what is said of the document as a whole


# What the fields of a topic are called in the file and in the log.
STORED = {
    "topic": "key", "name": "name", "description": "description", "colour": "colour", "position": "position",
    "pinned": "keywords", "banned": "banned", "born": "born", "gone": "gone",
}  # fmt: skip


@dataclass(frozen=True)
class Topic(codebook.Topic):
    """A topic of the user's, as it stands in the file: ``born`` is the event that made it."""

    name: str
    colour: str = ""
    position: int = 0
    born: int = 0
    gone: bool = False

    def plain(self) -> codebook.Topic:
        """Without what only the workbench needs."""
        return codebook.Topic(self.key, self.name, self.parent, self.description, self.keywords, self.banned)

    def stored(self) -> dict[str, object]:
        """Its fields under the names that they have in the file."""
        return {stored: getattr(self, name) for stored, name in STORED.items()}

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> Topic:
        """From the fields as they are in the file."""
        words = {"keywords": tuple(stored["pinned"]), "banned": tuple(stored["banned"])}
        return cls(**{STORED[name]: value for name, value in stored.items()} | words)

    def dump(self) -> str:
        """JSON, for the log."""
        return json.dumps(self.stored(), ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> Topic | None:
        """From the log; None where there was no topic yet."""
        return cls.restored(json.loads(text)) if text else None


class Event(NamedTuple):
    """What was said: of a document by a person, or (document None) what became of a topic, as JSON."""

    person: str | None
    document: int | None
    topic: int
    state: str
    before: str

    @classmethod
    def of_topic(cls, old: Topic | None, new: Topic) -> Event:
        """A topic is made, or is not as it was."""
        return cls(None, None, new.key, new.dump(), old.dump() if old else "")


class Batch(NamedTuple):
    """Events that are undone together: who did it, and a note for people who read the log.

    "undo" and "redo" have the batch they take back or bring back as their target. The request is the name that the page
    gave to what it asked for, so that asking twice does it once.
    """

    who: str
    note: str = ""
    request: str | None = None
    kind: str = "do"
    target: int | None = None


class Log:
    """The log of a project.

    Parameters
    ----------
    database : Database
        Where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, batch: Batch, events: Sequence[Event]) -> tuple[int, int]:
        """Put events on disk as one batch; when this returns they are there.

        Parameters
        ----------
        batch : Batch
            What they belong to.
        events : sequence of Event
            In their order.

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
                if event.document is None:
                    _put_topic(connection, event, seq)
        return number, first

    def answered(self, request: str) -> int | None:
        """The batch that was made for a request, if there is one."""
        query = "SELECT batch FROM batches WHERE request = ?"
        found = self._database.read(query, (request,)).fetchone()
        return None if found is None else int(found[0])

    def batches(self) -> Iterator[tuple[int, Batch, bool]]:
        """All batches in their order: number, batch, and whether it is empty, since nothing was left to do."""
        query = (
            "SELECT batch, who, note, request, kind, target, "
            "NOT EXISTS (SELECT 1 FROM events WHERE events.batch = batches.batch) FROM batches ORDER BY batch"
        )
        for number, *batch, empty in self._database.read(query):
            yield number, Batch(*batch), bool(empty)

    def events_of(self, batch: int) -> list[Event]:
        """The events of a batch, in their order."""
        query = "SELECT person, document, topic, state, before FROM events WHERE batch = ? ORDER BY seq"
        return [Event(*row) for row in self._database.read(query, (batch,))]

    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """The log, whole or after an event: number and event."""
        query = "SELECT seq, person, document, topic, state, before FROM events WHERE seq > ? ORDER BY seq"
        for seq, *event in self._database.read(query, (after,)):
            yield seq, Event(*event)

    def history(self) -> Iterator[tuple[str, str, str, str, int, int, str]]:
        """The labels of the log for people: when, who did it, how, whose label, document, topic, state."""
        yield from self._database.read(
            "SELECT at, who, kind, person, document, topic, state FROM events JOIN batches USING (batch) "
            "WHERE document IS NOT NULL ORDER BY seq"
        )


def _put_topic(connection: sqlite3.Connection, event: Event, seq: int) -> None:
    topic = Topic.parse(event.state)
    if topic is None:  # a topic that was made and taken back
        connection.execute("UPDATE topics SET gone = 1 WHERE topic = ?", (event.topic,))
        return
    row = replace(topic, born=topic.born or seq).stored()
    row |= {"pinned": json.dumps(topic.keywords), "banned": json.dumps(topic.banned)}
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT OR REPLACE INTO topics ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))  # noqa: S608
