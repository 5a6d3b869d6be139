"""LabelSession: what people said of documents and topics, and everything they can do about it.

A plain object without web or browser. Each person has labels of their own: nobody overwrites anybody. What the fit
gets is the decision of `decisions.decide`. Undo and redo are read from the log, so they outlive the server.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.app.workbench import checks, decisions
from topicsteer.app.workbench.checks import Refused
from topicsteer.app.workbench.decisions import FILE, Decision, Training
from topicsteer.app.workbench.log import CLEARED, FORBIDDEN, NONE, PERMITTED, SKIPPED, WHOLE, Batch, Event, Topic
from topicsteer.app.workbench.project import Project

COLOURS = (
    "#3b7dd8", "#d9622b", "#2e9e6b", "#b0468f", "#8a7a1f", "#5a60c8",
    "#c43d4d", "#1f94a8", "#7f8c3a", "#9a5bd0", "#b8742a", "#4a8a8a",
)  # fmt: skip
MOST_DOCUMENTS = 20_000
DEFAULTS: dict[str, Any] = {"target": None, "refit after": 10, "free topics": 10, "complete": True}


@dataclass(frozen=True)
class Change:
    """What an action did: its batch, the documents and topics it touched; ``again`` if it had been done before."""

    batch: int
    documents: tuple[int, ...] = ()
    topics: bool = False
    again: bool = False
    note: str = ""


class LabelSession:
    """The state of a project.

    Parameters
    ----------
    project : Project
        An open project.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from topicsteer.corpora import Documents
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "drinks.steer"
    >>> Project.create(path, Documents(["a", "b"], ["green tea", "black coffee"]))
    >>> session = LabelSession(Project.open(path))
    >>> tea = session.new_topic("ann", name="tea")
    >>> change = session.label("ann", documents=[0], topic=1, state="permitted")
    >>> session.decisions[0].permitted, session.counts[1]
    (frozenset({1}), 1)
    >>> undone = session.undo("ann")
    >>> session.counts[1]
    0
    >>> session.project.close(); folder.cleanup()
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.lock = threading.RLock()
        self.n = len(project)
        self.topics = project.log.topics()
        self._born = self._live_topics()  # kept, because it is asked for with each document
        self.settings = DEFAULTS | {k: v for k, v in project.settings().items() if k in DEFAULTS}
        self.decisions: dict[int, Decision] = {}
        self.counts: Counter[int] = Counter()
        self.labelled = np.zeros(self.n, dtype=np.bool_)
        self.differing = np.zeros(self.n, dtype=np.bool_)
        self.touched = np.zeros(self.n, dtype=np.int64)  # number of the last event of each document
        # Documents of which each person has said something
        self.spoken: dict[str, NDArray[np.bool_]] = defaultdict(lambda: np.zeros(self.n, dtype=np.bool_))
        self.seq = 0
        # What is not as it was after an event: {document: {(person, topic): state then}}
        self._since = 0
        self._altered: dict[int, dict[tuple[str, int], str]] = {}
        # What each person said last, by document: {document: {person: {topic: (state, number of the event)}}}
        self._said: dict[int, dict[str, dict[int, tuple[str, int]]]] = defaultdict(lambda: defaultdict(dict))
        self._done: dict[str, list[int]] = defaultdict(list)
        self._undone: dict[str, list[int]] = defaultdict(list)
        for seq, event in project.log.events():
            self._hear(seq, event)
        for number, batch, empty in project.log.batches():
            self._stack(number, batch, empty)
        self._decide(list(self._said))

    # --- what is held ---

    @property
    def live(self) -> list[Topic]:
        """The topics, in the user's order."""
        return sorted((t for t in self.topics.values() if not t.gone), key=lambda t: (t.position, t.key))

    @property
    def people(self) -> list[str]:
        """Everybody who said something, files last."""
        found = {person for said in self._said.values() for person in said}
        return sorted(found, key=lambda person: (person.startswith(FILE), person))

    def said(self, document: int) -> dict[str, dict[int, str]]:
        """For each person what they said of a document: of topics, and of the whole under `WHOLE`."""
        with self.lock:
            people = self._said.get(document, {}).items()
            return {person: states for person, slots in people if (states := decisions.standing(slots, self._born))}

    def training(self) -> Training:
        """The labels for a fit, by row."""
        with self.lock:
            return decisions.training(self.live, self.decisions, self.seq)

    def fresh(self, seq: int) -> int:
        """Number of labelled documents of which something else is said now than after an event."""
        with self.lock:
            if seq != self._since:
                self._since, self._altered = seq, {}
                for _, event in self.project.log.events(seq):
                    self._alter(event)
            return int(self.labelled[list(self._altered)].sum())

    def _alter(self, event: Event) -> None:
        """Keep account of what is not as it was; what is taken back, or brought back, is as it was."""
        if event.document is None:
            return
        slots, slot = self._altered.setdefault(event.document, {}), (str(event.person), event.topic)
        if slots.setdefault(slot, event.before) == event.state:
            del slots[slot]
        if not slots:
            del self._altered[event.document]

    def can(self, who: str) -> tuple[bool, bool]:
        """Whether a person has something to undo, and to redo."""
        return bool(self._done.get(who)), bool(self._undone.get(who))

    # --- labels ---

    def label(
        self, who: str, *, documents: Sequence[int], topic: int, state: str, request: str | None = None
    ) -> Change:
        """Say that documents have a topic ("permitted") or not ("forbidden"), or take it back ("cleared")."""
        if state not in (PERMITTED, FORBIDDEN, CLEARED):
            raise Refused(f"a label is permitted, forbidden or cleared, not {state!r}.")
        with self.lock:
            batch = Batch(who, f"{state} {self.live_topic(topic).name}", request)
            events = []
            for row in self._check_rows(documents):
                permit = state == PERMITTED
                events += self._permit(who, row, topic) if permit else self._slot(who, row, topic, state)
            return self._do(batch, events)

    def none_of_these(self, who: str, *, documents: Sequence[int], request: str | None = None) -> Change:
        """Say that documents have none of the topics; permitted ones are taken back."""
        return self._say_whole(Batch(who, NONE, request), documents, NONE)

    def skip(self, who: str, *, documents: Sequence[int], request: str | None = None) -> Change:
        """Say nothing of documents, and do not see them again."""
        return self._say_whole(Batch(who, SKIPPED, request), documents, SKIPPED)

    def _say_whole(self, batch: Batch, documents: Sequence[int], state: str) -> Change:
        who = batch.who
        with self.lock:
            events = []
            for row in self._check_rows(documents):
                if state == NONE:
                    for topic, (before, _) in self._said[row][who].items():
                        events += self._slot(who, row, topic, CLEARED) if topic and before == PERMITTED else []
                events += self._slot(who, row, WHOLE, state)
            return self._do(batch, events)

    def import_labels(
        self, who: str, labels: Mapping[int, Iterable[str]], forbidden: Mapping[int, Iterable[str]], *, source: str
    ) -> Change:
        """Take over the labels of a file by name, making the topics that are not there; one batch, one undo."""
        with self.lock:
            keys = {t.name.casefold(): t.key for t in self.live}
            events: list[Event] = []
            given = (name for rows in (labels, forbidden) for some in rows.values() for name in some)
            for name in sorted(set(map(checks.topic_name, given))):
                if name.casefold() not in keys:
                    topic = self._new(name, len(keys))
                    keys[name.casefold()] = topic.key
                    events.append(Event.of_topic(None, topic))
            for rows, state in ((labels, PERMITTED), (forbidden, FORBIDDEN)):
                for row, some in rows.items():
                    for name in some:
                        events += self._slot(FILE + source, int(row), keys[checks.topic_name(name).casefold()], state)
            return self._do(Batch(who, f"labels of {source}"), events)

    # --- undo and redo ---

    def undo(self, who: str, *, request: str | None = None) -> Change:
        """Take back the last thing this person did."""
        return self._turn(Batch(who, "undo", request, "undo"), self._done.get(who, []))

    def redo(self, who: str, *, request: str | None = None) -> Change:
        """Bring back what this person took back last."""
        return self._turn(Batch(who, "redo", request, "redo"), self._undone.get(who, []))

    def _turn(self, batch: Batch, stack: list[int]) -> Change:
        with self.lock:
            if (before := self._answered(batch)) is not None:
                return before
            if not stack:
                raise Refused(f"There is nothing to {batch.kind}.")
            events = []
            for event in self.project.log.events_of(stack[-1]):
                turned = event._replace(state=event.before, before=event.state) if batch.kind == "undo" else event
                if self._as_before(turned):
                    events.append(turned)
            if batch.kind == "undo":
                events.reverse()
            return self._do(batch._replace(target=stack[-1]), events)

    def _as_before(self, event: Event) -> bool:
        """Whether what an event changes is as it was; when a topic was born does not matter."""
        if event.document is not None:
            return self._state(str(event.person), event.document, event.topic) == event.before
        topic, before = self.topics.get(event.topic), Topic.parse(event.before)
        if topic is None or before is None:
            return before is None and (topic is None or topic.gone)
        return replace(before, born=0) == replace(topic, born=0)

    # --- topics ---

    def new_topic(
        self, who: str, *, name: str, description: str = "", documents: Sequence[int] = (), request: str | None = None
    ) -> Change:
        """Make a topic; the documents, if any, are labelled with it (a free topic becomes a known one that way)."""
        with self.lock:
            topic = self._new(name, len(self.live), description)
            events = [Event.of_topic(None, topic)]
            for row in self._check_rows(documents):
                events += self._permit(who, row, topic.key)
            return self._do(Batch(who, f"new topic {topic.name}", request), events)

    def change_topic(self, who: str, *, topic: int, request: str | None = None, **values: object) -> Change:
        """Give a topic another name, description, colour, or other pinned and banned words."""
        with self.lock:
            old = self.live_topic(topic)
            rules: dict[str, Callable[[object], object]] = {
                "name": lambda value: self._free_name(value, topic),
                "description": checks.description,
                "colour": checks.colour,
                "pinned": checks.words,
                "banned": checks.words,
            }
            if unknown := set(values) - set(rules):
                raise Refused(f"a topic has no {sorted(unknown)[0]!r} to change.")
            new = Topic.restored(old.stored() | {name: rules[name](value) for name, value in values.items()})
            # The later word counts: pinning what was removed brings it back, and the other way round.
            if "pinned" in values:
                new = replace(new, banned=tuple(w for w in new.banned if w not in new.keywords))
            else:
                new = replace(new, keywords=tuple(w for w in new.keywords if w not in new.banned))
            batch = Batch(who, f"topic {new.name}: {', '.join(values)}", request)
            return self._do(batch, [] if new == old else [Event.of_topic(old, new)])

    def delete_topic(self, who: str, *, topic: int, request: str | None = None) -> Change:
        """Take a topic away; its labels stay in the log and come back with it."""
        with self.lock:
            old = self.live_topic(topic)
            event = Event.of_topic(old, replace(old, gone=True))
            return self._do(Batch(who, f"delete topic {old.name}", request), [event])

    def merge_topics(self, who: str, *, topics: Sequence[int], into: int, request: str | None = None) -> Change:
        """Make one topic of several: the labels of the others become labels of the one."""
        with self.lock:
            rest = [self.live_topic(t) for t in dict.fromkeys(topics) if t != into]
            kept = self.live_topic(into)
            if not rest:
                raise Refused("Choose two topics or more to merge.")
            events = []
            for row, people in self._said.items():
                for person, slots in people.items():
                    if (state := decisions.merged_state(slots, (kept, *rest))) is not None:
                        events += self._slot(person, row, into, state)
                        events += [e for topic in rest for e in self._slot(person, row, topic.key, CLEARED)]
            keywords = tuple(dict.fromkeys(w for t in (kept, *rest) for w in t.keywords))[: checks.MOST_WORDS]
            new = replace(kept, keywords=keywords, banned=tuple(w for w in kept.banned if w not in keywords))
            events += [] if new == kept else [Event.of_topic(kept, new)]
            events += [Event.of_topic(t, replace(t, gone=True)) for t in rest]
            names = ", ".join(t.name for t in rest)
            return self._do(Batch(who, f"merge {names} into {kept.name}", request), events)

    def split_topic(
        self, who: str, *, topic: int, name: str, documents: Sequence[int], request: str | None = None
    ) -> Change:
        """Move documents from a topic to a new one of their own, whoever labelled them."""
        with self.lock:
            old = self.live_topic(topic)
            rows = self._check_rows(documents)
            if not rows:
                raise Refused("Choose the documents that the new topic takes with it.")
            new = self._new(name, len(self.live))
            events = [Event.of_topic(None, new)]
            for row in rows:
                people = [p for p, slots in self._said[row].items() if slots.get(topic, ("", 0))[0] == PERMITTED]
                for person in dict.fromkeys([*people, who]):
                    if person in people:
                        events += self._slot(person, row, topic, CLEARED)
                    events += self._permit(person, row, new.key)
            return self._do(Batch(who, f"split {new.name} off {old.name}", request), events)

    def order_topics(self, who: str, *, topics: Sequence[int], request: str | None = None) -> Change:
        """Put the topics into another order; those not named keep theirs, behind."""
        with self.lock:
            first = [self.live_topic(t) for t in dict.fromkeys(topics)]
            order = [*first, *(t for t in self.live if t not in first)]
            moved = [(t, replace(t, position=place)) for place, t in enumerate(order) if t.position != place]
            return self._do(Batch(who, "order of topics", request), [Event.of_topic(*pair) for pair in moved])

    # --- settings ---

    def change_settings(self, who: str, *, request: str | None = None, **values: object) -> Change:
        """Set the target, the number of labels after which to fit again, free topics, and what a label means."""
        for name, value in values.items():
            number = value if isinstance(value, int) and not isinstance(value, bool) else -1
            good = {
                "target": value is None or 1 <= number <= 10_000_000,
                "refit after": 0 <= number <= 100_000,
                "free topics": 0 <= number <= 500,
                "complete": isinstance(value, bool),
            }
            if not good.get(name):
                raise Refused(f"{value!r} is not a value for the setting {name!r}.")
        with self.lock:
            self.project.set(values)
            self.settings |= values
            if "complete" in values:
                self._decide(list(self._said))
        return Change(0, topics=True)

    @property
    def target(self) -> int:
        """Documents to label: as set, or ten for each topic, fifty at least."""
        return min(int(self.settings["target"] or max(50, 10 * len(self.live))), max(self.n, 1))

    # --- the one way in ---

    def _do(self, batch: Batch, events: Sequence[Event]) -> Change:
        """Put events on disk, then into the state. Under the lock."""
        if (again := self._answered(batch)) is not None:
            return again
        if not events and batch.kind == "do" and batch.request is None:
            return Change(0)
        number, first = self.project.log.append(batch, events)
        rows = list(dict.fromkeys(event.document for event in events if event.document is not None))
        for seq, event in enumerate(events, start=first):
            self._hear(seq, event)
            if event.document is None and (topic := Topic.parse(event.state) or self.topics.get(event.topic)):
                self.topics[event.topic] = replace(topic, born=topic.born or seq, gone=topic.gone or not event.state)
        self._stack(number, batch, not events)
        before, self._born = self._born, self._live_topics()
        self._decide(rows if before.keys() == self._born.keys() else list(self._said))
        return Change(number, tuple(rows), any(event.document is None for event in events), note=batch.note)

    def _answered(self, batch: Batch) -> Change | None:
        """What was done when the same was asked for before."""
        number = None if batch.request is None else self.project.log.answered(batch.request)
        return None if number is None else Change(number, again=True)

    def _hear(self, seq: int, event: Event) -> None:
        """Keep what was said of a document."""
        self.seq = seq
        if event.document is not None:
            self._said[event.document][str(event.person)][event.topic] = (event.state, seq)
            self.touched[event.document] = seq
            self._alter(event)

    def _stack(self, number: int, batch: Batch, empty: bool) -> None:
        """Keep account of what a person can take back and bring back."""
        done, undone = self._done[batch.who], self._undone[batch.who]
        if batch.kind == "do" and not empty:
            done.append(number)
            undone.clear()
        elif batch.kind != "do" and batch.target is not None:
            away, to = (done, undone) if batch.kind == "undo" else (undone, done)
            if batch.target in away:
                away.remove(batch.target)
            to.append(batch.target)

    def _live_topics(self) -> dict[int, int]:
        """The topics that there are, and for each the event that made it."""
        return {t.key: t.born for t in self.topics.values() if not t.gone}

    def _decide(self, rows: Iterable[int]) -> None:
        """Work out anew what is held of some documents."""
        live, complete = self._born, self.settings["complete"]
        for row in rows:
            for person, slots in self._said[row].items():
                self.spoken[person][row] = bool(decisions.standing(slots, live))
            new = decisions.decide(self._said[row], live, complete)
            self.counts.subtract(self.decisions.get(row, Decision()).permitted)
            self.counts.update(new.permitted)
            self.decisions[row] = new
            self.labelled[row] = any(new)
            self.differing[row] = bool(new.differing)

    def _permit(self, person: str, row: int, topic: int) -> list[Event]:
        """The events that give a document a topic."""
        return self._slot(person, row, topic, PERMITTED) + self._slot(person, row, WHOLE, CLEARED)

    def _slot(self, person: str, row: int, topic: int, state: str) -> list[Event]:
        """The event that brings a slot to a state, if it is not there."""
        before = self._state(person, row, topic)
        return [] if before == state else [Event(person, row, topic, state, before)]

    def _state(self, person: str, row: int, topic: int) -> str:
        return self._said.get(row, {}).get(person, {}).get(topic, (CLEARED, 0))[0]

    # --- checks ---

    def _new(self, name: str, position: int, description: str = "") -> Topic:
        key = max(self.topics, default=0) + 1
        colour = COLOURS[(key - 1) % len(COLOURS)]
        free, about = self._free_name(name), checks.description(description)
        topic = Topic(key, free, description=about, colour=colour, position=position)
        self.topics.setdefault(key, replace(topic, gone=True))  # the number is taken from here on
        return topic

    def _free_name(self, name: object, own: int | None = None) -> str:
        tidy = checks.topic_name(name)
        for topic in self.live:
            if topic.name.casefold() == tidy.casefold() and topic.key != own:
                raise Refused(f"There is a topic {topic.name!r} already; use another name, or merge the two.")
        return tidy

    def live_topic(self, topic: object) -> Topic:
        """A topic that is there."""
        found = self.topics.get(topic) if isinstance(topic, int) else None
        if found is None or found.gone:
            raise Refused("This topic is no longer there; somebody may have deleted or merged it.")
        return found

    def _check_rows(self, documents: object) -> list[int]:
        if not isinstance(documents, list | tuple) or len(documents) > MOST_DOCUMENTS:
            raise Refused(f"Expected a list of at most {MOST_DOCUMENTS:,} documents.")
        for row in documents:
            if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < self.n:
                raise Refused(f"There is no document number {row!r}.")
        return list(dict.fromkeys(documents))
