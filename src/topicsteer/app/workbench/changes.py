"""Results of actions on labels and topics, the batches that each person can undo, and changes since an event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from topicsteer.app.workbench.event_log import WHOLE, Batch, Event


class Change(NamedTuple):
    """The effect of an action: its batch, the rows of changed documents, and whether topics changed.

    ``repeated``: the same request was granted before, so nothing was done.
    """

    batch: int
    documents: tuple[int, ...] = ()
    topics: bool = False
    repeated: bool = False
    note: str = ""


class UndoState(NamedTuple):
    """Whether a person can undo an action, and redo one."""

    undo: bool
    redo: bool


class UndoStacks:
    """The batches that each person can undo, and redo; the last one comes first."""

    def __init__(self) -> None:
        self.done: dict[str, list[int]] = defaultdict(list)
        self.undone: dict[str, list[int]] = defaultdict(list)

    def state(self, who: str) -> UndoState:
        """Return whether a person can undo and redo."""
        return UndoState(bool(self.done.get(who)), bool(self.undone.get(who)))

    def apply(self, number: int, batch: Batch, empty: bool) -> None:
        """Take note of a batch."""
        done, undone = self.done[batch.who], self.undone[batch.who]
        if batch.kind == "do" and not empty:
            done.append(number)
            undone.clear()
        elif batch.kind != "do" and batch.target is not None:
            source, goal = (done, undone) if batch.kind == "undo" else (undone, done)
            if batch.target in source:
                source.remove(batch.target)
            goal.append(batch.target)


class ChangedLabels:
    """Labels that changed after an event; a change that is undone is no change."""

    def __init__(self) -> None:
        self.since = 0
        # States at that event: {document: {(person, key): state}}.
        self.altered: dict[int, dict[tuple[str, int], str]] = {}

    def restart(self, seq: int, events: Iterable[tuple[int, Event]]) -> None:
        """Count from another event, with the events after it."""
        self.since, self.altered = seq, {}
        for number, event in events:
            self.apply(number, event)

    def apply(self, seq: int, event: Event) -> None:
        """Take note of an event; notes on documents are no labels."""
        if event.document is None or event.key < WHOLE:
            return
        slots, slot = self.altered.setdefault(event.document, {}), (str(event.person), event.key)
        if slots.setdefault(slot, event.before) == event.state:
            del slots[slot]
        if not slots:
            del self.altered[event.document]
