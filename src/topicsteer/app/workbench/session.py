"""LabelSession: what people said of documents and topics, and everything they can do about it.

A plain object without web or browser. Each person has labels of their own: nobody overwrites anybody. What the fit
gets is the decision of `decisions.decide`. Undo and redo are read from the log, so they outlive the server.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topicsteer.app.workbench import decisions
from topicsteer.app.workbench.decisions import FILE, MOST_WORDS, TOPIC_FIELDS, Decision, Refused, Training, topic_name
from topicsteer.app.workbench.log import CLEARED, FORBIDDEN, NONE, PERMITTED, SKIPPED, WHOLE, Batch, Event, Topic
from topicsteer.app.workbench.project import Project

COLOURS = (
    "#3b7dd8", "#d9622b", "#2e9e6b", "#b0468f", "#8a7a1f", "#5a60c8",
    "#c43d4d", "#1f94a8", "#7f8c3a", "#9a5bd0", "#b8742a", "#4a8a8a",
)  # fmt: skip
MOST_DOCUMENTS = 20_000
DEFAULTS: dict[str, Any] = {"target": None, "refit after": 10, "free topics": 10, "complete": True}


class Change(NamedTuple):
    """What an action did: its batch, the documents and topics it touched; ``again`` if it had been done before."""

    batch: int
    documents: tuple[int, ...] = ()
    topics: bool = False
    again: bool = False
    note: str = ""


Plan: TypeAlias = tuple[Batch, Sequence[Event]]
ACTIONS: dict[str, Callable[..., Change]] = {}  # what people can do, by the name that the page has for it


def action(name: str) -> Callable[[Callable[..., Plan]], Callable[..., Change]]:
    """Make an action of a method that plans what is to be done: under the lock, and once for each request."""

    def decorate(plan: Callable[..., Plan]) -> Callable[..., Change]:
        @wraps(plan)
        def act(session: LabelSession, who: str, *, request: str | None = None, **values: object) -> Change:
            with session.lock:
                done = None if request is None else session.project.log.answered(request)
                if done is not None:
                    return Change(done, again=True)
                batch, events = plan(session, who, **values)
                return session.do(batch._replace(request=request), events)

        ACTIONS[name] = act
        return act

    return decorate


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
        self.topics: dict[int, Topic] = {}
        self._born: dict[int, int] = {}  # for each topic that there is the event that made it
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
        self._decide(self._said)

    # --- what is held ---

    @property
    def live(self) -> list[Topic]:
        """The topics, in the user's order."""
        with self.lock:
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

    def can(self, who: str) -> dict[str, bool]:
        """Whether a person has something to undo, and to redo."""
        return {"undo": bool(self._done.get(who)), "redo": bool(self._undone.get(who))}

    # --- labels ---

    @action("label")
    def label(self, who: str, *, documents: Sequence[int], topic: int, state: str) -> Plan:
        """Say that documents have a topic ("permitted") or not ("forbidden"), or take it back ("cleared")."""
        if state not in (PERMITTED, FORBIDDEN, CLEARED):
            raise Refused(f"a label is permitted, forbidden or cleared, not {state!r}.")
        batch = Batch(who, f"{state} {self.live_topic(topic).name}")
        states = _permit(topic) if state == PERMITTED else {topic: state}
        return batch, [event for row in self._check_rows(documents) for event in self._say(who, row, states)]

    @action("none")
    def none_of_these(self, who: str, *, documents: Sequence[int]) -> Plan:
        """Say that documents have none of the topics; permitted ones are taken back."""
        events = []
        for row in self._check_rows(documents):
            back = {topic: CLEARED for topic, (state, _) in self._said[row][who].items() if state == PERMITTED}
            events += self._say(who, row, back | {WHOLE: NONE})
        return Batch(who, NONE), events

    @action("skip")
    def skip(self, who: str, *, documents: Sequence[int]) -> Plan:
        """Say nothing of documents, and do not see them again."""
        rows = self._check_rows(documents)
        return Batch(who, SKIPPED), [event for row in rows for event in self._say(who, row, {WHOLE: SKIPPED})]

    def import_labels(
        self, who: str, labels: Mapping[int, Iterable[str]], forbidden: Mapping[int, Iterable[str]], *, source: str
    ) -> Change:
        """Take over the labels of a file by name, making the topics that are not there; one batch, one undo."""
        with self.lock:
            keys = {t.name.casefold(): t.key for t in self.live}
            events: list[Event] = []
            given = (name for rows in (labels, forbidden) for some in rows.values() for name in some)
            for name in sorted(set(map(topic_name, given))):
                if name.casefold() not in keys:
                    topic = self._new(name, len(keys))
                    keys[name.casefold()] = topic.key
                    events.append(Event.of_topic(None, topic))
            for rows, state in ((labels, PERMITTED), (forbidden, FORBIDDEN)):
                for row, some in rows.items():
                    states = {keys[topic_name(name).casefold()]: state for name in some}
                    events += self._say(FILE + source, int(row), states)
            return self.do(Batch(who, f"labels of {source}"), events)

    # --- undo and redo ---

    @action("undo")
    def undo(self, who: str) -> Plan:
        """Take back the last thing this person did."""
        return self._turn(who, "undo", self._done[who])

    @action("redo")
    def redo(self, who: str) -> Plan:
        """Bring back what this person took back last."""
        return self._turn(who, "redo", self._undone[who])

    def _turn(self, who: str, kind: str, stack: Sequence[int]) -> Plan:
        if not stack:
            raise Refused(f"There is nothing to {kind}.")
        events = self.project.log.events_of(stack[-1])
        if kind == "undo":
            events = [event._replace(state=event.before, before=event.state) for event in reversed(events)]
        return Batch(who, kind, kind=kind, target=stack[-1]), [event for event in events if self._as_before(event)]

    def _as_before(self, event: Event) -> bool:
        """Whether what an event changes is as it was; when a topic was born does not matter."""
        if event.document is not None:
            return self._state(str(event.person), event.document, event.topic) == event.before
        topic, before = self.topics.get(event.topic), Topic.parse(event.before)
        if topic is None or before is None:
            return before is None and (topic is None or topic.gone)
        return replace(before, born=0) == replace(topic, born=0)

    # --- topics ---

    @action("new topic")
    def new_topic(self, who: str, *, name: str, description: str = "", documents: Sequence[int] = ()) -> Plan:
        """Make a topic; the documents, if any, are labelled with it (a free topic becomes a known one that way)."""
        topic = self._new(name, len(self.live), description)
        events = [Event.of_topic(None, topic)]
        for row in self._check_rows(documents):
            events += self._say(who, row, _permit(topic.key))
        return Batch(who, f"new topic {topic.name}"), events

    @action("change topic")
    def change_topic(self, who: str, *, topic: int, **values: object) -> Plan:
        """Give a topic another name, description, colour, or other pinned and banned words."""
        old = self.live_topic(topic)
        if unknown := set(values) - set(TOPIC_FIELDS):
            raise Refused(f"a topic has no {sorted(unknown)[0]!r} to change.")
        tidy = {field: TOPIC_FIELDS[field](value) for field, value in values.items()}
        if "name" in values:
            tidy["name"] = self._free_name(values["name"], topic)
        new = Topic.restored(old.stored() | tidy)
        # The later word counts: pinning what was removed brings it back, and the other way round.
        if "pinned" in values:
            new = replace(new, banned=tuple(w for w in new.banned if w not in new.keywords))
        else:
            new = replace(new, keywords=tuple(w for w in new.keywords if w not in new.banned))
        return Batch(who, f"topic {new.name}: {', '.join(values)}"), _changed((old, new))

    @action("delete topic")
    def delete_topic(self, who: str, *, topic: int) -> Plan:
        """Take a topic away; its labels stay in the log and come back with it."""
        old = self.live_topic(topic)
        return Batch(who, f"delete topic {old.name}"), _changed((old, replace(old, gone=True)))

    @action("merge topics")
    def merge_topics(self, who: str, *, topics: Sequence[int], into: int) -> Plan:
        """Make one topic of several: the labels of the others become labels of the one."""
        rest = [self.live_topic(t) for t in dict.fromkeys(topics) if t != into]
        kept = self.live_topic(into)
        if not rest:
            raise Refused("Choose two topics or more to merge.")
        events = []
        for row, people in self._said.items():
            for person, slots in people.items():
                if (state := decisions.merged_state(slots, (kept, *rest))) is not None:
                    events += self._say(person, row, {into: state, **{t.key: CLEARED for t in rest}})
        keywords = tuple(dict.fromkeys(w for t in (kept, *rest) for w in t.keywords))[:MOST_WORDS]
        new = replace(kept, keywords=keywords, banned=tuple(w for w in kept.banned if w not in keywords))
        events += _changed((kept, new), *((t, replace(t, gone=True)) for t in rest))
        return Batch(who, f"merge {', '.join(t.name for t in rest)} into {kept.name}"), events

    @action("split topic")
    def split_topic(self, who: str, *, topic: int, name: str, documents: Sequence[int]) -> Plan:
        """Move documents from a topic to a new one of their own, whoever labelled them."""
        old = self.live_topic(topic)
        rows = self._check_rows(documents)
        if not rows:
            raise Refused("Choose the documents that the new topic takes with it.")
        new = self._new(name, len(self.live))
        events = [Event.of_topic(None, new)]
        for row in rows:
            people = [person for person in self._said[row] if self._state(person, row, topic) == PERMITTED]
            for person in dict.fromkeys([*people, who]):
                left = {topic: CLEARED} if person in people else {}
                events += self._say(person, row, left | _permit(new.key))
        return Batch(who, f"split {new.name} off {old.name}"), events

    @action("order topics")
    def order_topics(self, who: str, *, topics: Sequence[int]) -> Plan:
        """Put the topics into another order; those not named keep theirs, behind."""
        first = [self.live_topic(t) for t in dict.fromkeys(topics)]
        order = [*first, *(t for t in self.live if t not in first)]
        return Batch(who, "order of topics"), _changed(*((t, replace(t, position=k)) for k, t in enumerate(order)))

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
                self._decide(self._said)
        return Change(0, topics=True)

    @property
    def target(self) -> int:
        """Documents to label: as set, or ten for each topic, fifty at least."""
        return min(int(self.settings["target"] or max(50, 10 * len(self.live))), max(self.n, 1))

    # --- the one way in ---

    def do(self, batch: Batch, events: Sequence[Event]) -> Change:
        """Put events on disk, then into the state. Under the lock."""
        if not events and batch.kind == "do" and batch.request is None:
            return Change(0)
        number, first = self.project.log.append(batch, events)
        for seq, event in enumerate(events, start=first):
            self._hear(seq, event)
        self._stack(number, batch, not events)
        rows = tuple(dict.fromkeys(event.document for event in events if event.document is not None))
        self._decide(rows)
        return Change(number, rows, any(event.document is None for event in events), note=batch.note)

    def _hear(self, seq: int, event: Event) -> None:
        """Keep what was said of a document, or what became of a topic."""
        self.seq = seq
        if event.document is not None:
            self._said[event.document][str(event.person)][event.topic] = (event.state, seq)
            self.touched[event.document] = seq
            self._alter(event)
        else:
            topic = Topic.parse(event.state) or self.topics[event.topic]
            self.topics[event.topic] = replace(topic, born=topic.born or seq, gone=topic.gone or not event.state)

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

    def _decide(self, rows: Iterable[int]) -> None:
        """Work out anew what is held of some documents; of all, if topics came or went."""
        before, self._born = self._born, {t.key: t.born for t in self.topics.values() if not t.gone}
        for row in rows if before.keys() == self._born.keys() else self._said:
            for person, slots in self._said[row].items():
                self.spoken[person][row] = bool(decisions.standing(slots, self._born))
            new = decisions.decide(self._said[row], self._born, self.settings["complete"])
            self.counts.subtract(self.decisions.get(row, Decision()).permitted)
            self.counts.update(new.permitted)
            self.decisions[row] = new
            self.labelled[row] = any(new)
            self.differing[row] = bool(new.differing)

    def _say(self, person: str, row: int, states: Mapping[int, str]) -> list[Event]:
        """The events that bring what a person says of topics to these states, where it is not there."""
        before = {topic: self._state(person, row, topic) for topic in states}
        return [Event(person, row, t, state, before[t]) for t, state in states.items() if state != before[t]]

    def _state(self, person: str, row: int, topic: int) -> str:
        return self._said.get(row, {}).get(person, {}).get(topic, (CLEARED, 0))[0]

    # --- checks ---

    def _new(self, name: str, position: int, description: str = "") -> Topic:
        key = max(self.topics, default=0) + 1
        colour = COLOURS[(key - 1) % len(COLOURS)]
        free, about = self._free_name(name), decisions.description(description)
        topic = Topic(key, free, description=about, colour=colour, position=position)
        self.topics.setdefault(key, replace(topic, gone=True))  # the number is taken from here on
        return topic

    def _free_name(self, name: object, own: int | None = None) -> str:
        tidy = topic_name(name)
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


ACTIONS["settings"] = LabelSession.change_settings


def _permit(topic: int) -> dict[int, str]:
    """What is said of a document that has a topic."""
    return {topic: PERMITTED, WHOLE: CLEARED}


def _changed(*topics: tuple[Topic, Topic]) -> list[Event]:
    """The events of topics, old and new, that are not as they were."""
    return [Event.of_topic(old, new) for old, new in topics if new != old]
