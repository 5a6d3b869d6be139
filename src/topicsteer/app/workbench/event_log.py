"""The event log: every label that a person gave or took back, and every change of a topic. Nothing in it changes.

A label is written here: `EventLog.append` stores a batch of events and the topics they change in one transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from topicsteer.labels import codebook

if TYPE_CHECKING:
    from topicsteer.app.workbench.project import Database

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
    # States of a choice: drawn at random, or chosen by the model or by a person.
    RANDOM, SUGGESTED = "random", "suggested"
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

    def stored(self) -> dict[str, object]:
        """Return the fields under their names in the project file."""
        return {stored: getattr(self, name) for stored, name in STORED.items()}

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> Topic:
        """Return a topic from the fields of the project file."""
        words = {"keywords": tuple(stored["pinned"]), "banned": tuple(stored["banned"])}
        return cls(**{STORED[name]: value for name, value in stored.items()} | words)

    def dump(self) -> str:
        """Return the topic as JSON, for the log; a topic without a parent is written as before there were trees."""
        fields = {name: value for name, value in self.stored().items() if name != "parent" or value is not None}
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> Topic | None:
        """Return a topic from the log; None before it existed."""
        return cls.restored(json.loads(text)) if text else None


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
                if event.document is None:
                    _write_topic(connection, event, seq)
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


def _write_topic(connection: sqlite3.Connection, event: Event, seq: int) -> None:
    topic = Topic.parse(event.state)
    if topic is None:  # its creation was undone
        connection.execute("UPDATE topics SET gone = 1 WHERE topic = ?", (event.key,))
        return
    row = replace(topic, born=topic.born or seq).stored()
    row |= {"pinned": json.dumps(topic.keywords), "banned": json.dumps(topic.banned)}
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT OR REPLACE INTO topics ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))  # noqa: S608
