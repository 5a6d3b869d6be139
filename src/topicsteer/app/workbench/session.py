"""LabelSession: what people said of documents and topics, and everything they can do about it.

A plain object without web or browser. Each person has labels of their own: nobody overwrites anybody. What the fit
gets is the decision of `decide`: people before the file that labels came with, the majority of people, and nothing
where they stand against each other. Undo and redo are read from the log, so they outlive the server.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topicsteer.app.workbench.project import (
    CLEARED,
    FORBIDDEN,
    NONE,
    PERMITTED,
    SKIPPED,
    WHOLE,
    Event,
    Project,
    Topic,
)
from topicsteer.system.safe_text import visible

COLOURS = (
    "#3b7dd8", "#d9622b", "#2e9e6b", "#b0468f", "#8a7a1f", "#5a60c8",
    "#c43d4d", "#1f94a8", "#7f8c3a", "#9a5bd0", "#b8742a", "#4a8a8a",
)  # fmt: skip
FILE = "file: "  # how the person is called whose labels came with the documents
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_PERSON, MOST_WORDS, MOST_DOCUMENTS = 80, 4_000, 40, 100, 20_000
DEFAULTS: dict[str, Any] = {"target": None, "refit after": 10, "free topics": 10, "complete": True}


class Refused(ValueError):
    """Something that was asked for cannot be done; the message is for the person who asked."""


class Decision(NamedTuple):
    """What is held of a document: topics it has, topics it does not have, topics on which people differ."""

    permitted: frozenset[int] = frozenset()
    forbidden: frozenset[int] = frozenset()
    differing: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Training:
    """The labels as a fit takes them; ``complete`` says that what is not listed beside a label is forbidden."""

    topics: tuple[Topic, ...]
    labels: Mapping[int, list[str]]
    forbidden: Mapping[int, list[str]]
    complete: bool
    seq: int


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
        self.topics = project.topics()
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
        for seq, _, event in project.events():
            self.seq = seq
            if event.document is not None:
                self._said[event.document][str(event.person)][event.topic] = (event.state, seq)
                self.touched[event.document] = seq
                self._alter(event)
        for batch in project.batches():
            self._stack(batch.who, batch.batch, batch.kind, batch.target, bool(batch.empty))
        self._decide(list(self._said))

    # --- what is held ---

    @property
    def live(self) -> list[Topic]:
        """The topics, in the user's order."""
        return sorted((t for t in self.topics.values() if not t.gone), key=lambda t: (t.position, t.topic))

    @property
    def people(self) -> list[str]:
        """Everybody who said something, files last."""
        found = {person for said in self._said.values() for person in said}
        return sorted(found, key=lambda person: (person.startswith(FILE), person))

    def said(self, document: int) -> dict[str, dict[int, str]]:
        """For each person what they said of a document: of topics, and of the whole under `WHOLE`."""
        with self.lock:
            found = {}
            for person, slots in self._said.get(document, {}).items():
                states = {t: s for t, (s, _) in slots.items() if s != CLEARED and (t == WHOLE or self._is_live(t))}
                if states:
                    found[person] = states
            return found

    def training(self) -> Training:
        """The labels for a fit, by row."""
        with self.lock:
            live = self.live
            name = {t.topic: t.name for t in live}
            rows = {r: d for r, d in sorted(self.decisions.items()) if d.permitted or d.forbidden}
            whole = all(len(d.permitted) + len(d.forbidden) == len(live) for d in rows.values() if d.permitted)
            labels = {r: sorted(name[t] for t in d.permitted) for r, d in rows.items() if d.permitted}
            forbidden = {
                r: sorted(name[t] for t in d.forbidden)
                for r, d in rows.items()
                if d.forbidden and not (whole and d.permitted)
            }
            return Training(tuple(live), labels, forbidden, whole, self.seq)

    def fresh(self, seq: int) -> int:
        """Number of labelled documents of which something else is said now than after an event."""
        with self.lock:
            if seq != self._since:
                self._since, self._altered = seq, {}
                for _, _, event in self.project.events(seq):
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
            self._check_topic(topic)
            events = []
            for row in self._check_rows(documents):
                events += self._slot(who, row, topic, state)
                if state == PERMITTED:
                    events += self._slot(who, row, WHOLE, CLEARED)
            return self._do(who, events, request, f"{state} {self.topics[topic].name}")

    def none_of_these(self, who: str, *, documents: Sequence[int], request: str | None = None) -> Change:
        """Say that documents have none of the topics; permitted ones are taken back."""
        return self._say_whole(who, documents, NONE, request)

    def skip(self, who: str, *, documents: Sequence[int], request: str | None = None) -> Change:
        """Say nothing of documents, and do not see them again."""
        return self._say_whole(who, documents, SKIPPED, request)

    def _say_whole(self, who: str, documents: Sequence[int], state: str, request: str | None) -> Change:
        with self.lock:
            events = []
            for row in self._check_rows(documents):
                if state == NONE:
                    for topic, (before, _) in self._said[row][who].items():
                        events += self._slot(who, row, topic, CLEARED) if topic and before == PERMITTED else []
                events += self._slot(who, row, WHOLE, state)
            return self._do(who, events, request, state)

    def import_labels(
        self,
        who: str,
        labels: Mapping[int, Iterable[str]],
        forbidden: Mapping[int, Iterable[str]],
        *,
        source: str,
    ) -> Change:
        """Take over the labels of a file by name, making the topics that are not there; one batch, one undo."""
        with self.lock:
            keys = {t.name.casefold(): t.topic for t in self.live}
            events: list[Event] = []
            for name in sorted({_name(n) for rows in (labels, forbidden) for some in rows.values() for n in some}):
                if name.casefold() not in keys:
                    topic = self._new(name, len(keys))
                    keys[name.casefold()] = topic.topic
                    events.append(Event(None, None, topic.topic, topic.dump(), ""))
            for rows, state in ((labels, PERMITTED), (forbidden, FORBIDDEN)):
                for row, some in rows.items():
                    for name in some:
                        events += self._slot(FILE + source, int(row), keys[_name(name).casefold()], state)
            return self._do(who, events, None, f"labels of {source}")

    # --- undo and redo ---

    def undo(self, who: str, *, request: str | None = None) -> Change:
        """Take back the last thing this person did."""
        return self._turn(who, self._done, "undo", request)

    def redo(self, who: str, *, request: str | None = None) -> Change:
        """Bring back what this person took back last."""
        return self._turn(who, self._undone, "redo", request)

    def _turn(self, who: str, stacks: dict[str, list[int]], kind: str, request: str | None) -> Change:
        with self.lock:
            if request is not None and (before := self.project.answered(request)) is not None:
                return Change(before, again=True)
            if not stacks.get(who):
                raise Refused(f"There is nothing to {kind}.")
            target = stacks[who][-1]
            events = []
            for event in self.project.events_of(target):
                old, new = (event.state, event.before) if kind == "undo" else (event.before, event.state)
                if event.document is None:
                    topic = self.topics.get(event.topic)
                    gone = topic is None or (topic.gone and old == "")
                    if (gone and old == "") or (topic is not None and _same(topic, old)):
                        events.append(event._replace(state=new, before=old))
                elif self._state(str(event.person), event.document, event.topic) == old:
                    events.append(event._replace(state=new, before=old))
            if kind == "undo":
                events.reverse()
            return self._do(who, events, request, kind, kind=kind, target=target, keep_empty=True)

    # --- topics ---

    def new_topic(
        self,
        who: str,
        *,
        name: str,
        description: str = "",
        documents: Sequence[int] = (),
        request: str | None = None,
    ) -> Change:
        """Make a topic; the documents, if any, are labelled with it (a free topic becomes a known one that way)."""
        with self.lock:
            topic = self._new(name, len(self.live), description)
            events = [Event(None, None, topic.topic, topic.dump(), "")]
            for row in self._check_rows(documents):
                events += self._slot(who, row, topic.topic, PERMITTED) + self._slot(who, row, WHOLE, CLEARED)
            return self._do(who, events, request, f"new topic {topic.name}")

    def change_topic(self, who: str, *, topic: int, request: str | None = None, **values: Any) -> Change:
        """Give a topic another name, description, colour, or other pinned and banned words."""
        with self.lock:
            old = self._check_topic(topic)
            checks: dict[str, Callable[[Any], Any]] = {
                "name": lambda value: self._free_name(value, topic),
                "description": _description,
                "colour": _colour,
                "pinned": _words,
                "banned": _words,
            }
            if unknown := set(values) - set(checks):
                raise Refused(f"a topic has no {sorted(unknown)[0]!r} to change.")
            new = replace(old, **{name: checks[name](value) for name, value in values.items()})
            if both := set(new.pinned) & set(new.banned):
                # The later word counts: pinning what was removed brings it back, and the other way round.
                if "pinned" in values:
                    new = replace(new, banned=tuple(w for w in new.banned if w not in both))
                else:
                    new = replace(new, pinned=tuple(w for w in new.pinned if w not in both))
            events = [] if new == old else [_topic_event(old, new)]
            return self._do(who, events, request, f"topic {new.name}: {', '.join(values)}")

    def delete_topic(self, who: str, *, topic: int, request: str | None = None) -> Change:
        """Take a topic away; its labels stay in the log and come back with it."""
        with self.lock:
            old = self._check_topic(topic)
            return self._do(who, [_topic_event(old, replace(old, gone=True))], request, f"delete topic {old.name}")

    def merge_topics(self, who: str, *, topics: Sequence[int], into: int, request: str | None = None) -> Change:
        """Make one topic of several: the labels of the others become labels of the one."""
        with self.lock:
            rest = [self._check_topic(t) for t in dict.fromkeys(topics) if t != into]
            kept = self._check_topic(into)
            if not rest:
                raise Refused("Choose two topics or more to merge.")
            events = []
            for row, people in list(self._said.items()):
                for person, slots in list(people.items()):
                    states = {slots[t.topic][0] for t in (kept, *rest) if t.topic in slots} - {CLEARED}
                    if not states & {PERMITTED, FORBIDDEN}:
                        continue
                    # Forbidden counts only where each of them was: "not tea" does not mean "not tea or coffee".
                    everywhere = all(slots.get(t.topic, ("", 0))[0] == FORBIDDEN for t in (kept, *rest))
                    state = PERMITTED if PERMITTED in states else FORBIDDEN if everywhere else CLEARED
                    events += self._slot(person, row, into, state)
                    for topic in rest:
                        events += self._slot(person, row, topic.topic, CLEARED)
            pinned = tuple(dict.fromkeys(w for t in (kept, *rest) for w in t.pinned))[:MOST_WORDS]
            banned = tuple(w for w in kept.banned if w not in pinned)
            new = replace(kept, pinned=pinned, banned=banned)
            events += [] if new == kept else [_topic_event(kept, new)]
            events += [_topic_event(t, replace(t, gone=True)) for t in rest]
            names = ", ".join(t.name for t in rest)
            return self._do(who, events, request, f"merge {names} into {kept.name}")

    def split_topic(
        self, who: str, *, topic: int, name: str, documents: Sequence[int], request: str | None = None
    ) -> Change:
        """Move documents from a topic to a new one of their own, whoever labelled them."""
        with self.lock:
            old = self._check_topic(topic)
            rows = self._check_rows(documents)
            if not rows:
                raise Refused("Choose the documents that the new topic takes with it.")
            new = self._new(name, len(self.live))
            events = [Event(None, None, new.topic, new.dump(), "")]
            for row in rows:
                people = [p for p, slots in self._said[row].items() if slots.get(topic, ("", 0))[0] == PERMITTED]
                for person in dict.fromkeys([*people, who]):
                    if person in people:
                        events += self._slot(person, row, topic, CLEARED)
                    events += self._slot(person, row, new.topic, PERMITTED) + self._slot(person, row, WHOLE, CLEARED)
            return self._do(who, events, request, f"split {new.name} off {old.name}")

    def order_topics(self, who: str, *, topics: Sequence[int], request: str | None = None) -> Change:
        """Put the topics into another order; those not named keep theirs, behind."""
        with self.lock:
            first = [self._check_topic(t).topic for t in dict.fromkeys(topics)]
            order = first + [t.topic for t in self.live if t.topic not in first]
            events = [
                _topic_event(self.topics[t], replace(self.topics[t], position=place))
                for place, t in enumerate(order)
                if self.topics[t].position != place
            ]
            return self._do(who, events, request, "order of topics")

    # --- settings ---

    def change_settings(self, who: str, *, request: str | None = None, **values: Any) -> Change:
        """Set the target, the number of labels after which to fit again, free topics, and what a label means."""
        for name, value in values.items():
            whole = isinstance(value, int) and not isinstance(value, bool)
            good = {
                "target": value is None or (whole and 1 <= value <= 10_000_000),
                "refit after": whole and 0 <= value <= 100_000,
                "free topics": whole and 0 <= value <= 500,
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

    def _do(
        self,
        who: str,
        events: Sequence[Event],
        request: str | None,
        note: str,
        *,
        kind: str = "do",
        target: int | None = None,
        keep_empty: bool = False,
    ) -> Change:
        """Put events on disk, then into the state. Under the lock."""
        if request is not None and (before := self.project.answered(request)) is not None:
            return Change(before, again=True)
        if not events and not keep_empty and request is None:
            return Change(0)
        batch, first = self.project.append(who, events, kind=kind, target=target, request=request, note=note)
        documents: dict[int, None] = {}
        lost = False
        for seq, event in enumerate(events, start=first):
            self.seq = seq
            if event.document is None:
                topic = Topic.parse(event.state)
                old = self.topics.get(event.topic)
                if topic is None and old is not None:
                    topic = replace(old, gone=True)
                if topic is not None:
                    lost |= (old is None or old.gone) != topic.gone
                    self.topics[event.topic] = replace(topic, born=topic.born or seq)
            else:
                self._said[event.document][str(event.person)][event.topic] = (event.state, seq)
                self.touched[event.document] = seq
                self._alter(event)
                documents[event.document] = None
        self._stack(who, batch, kind, target, not events)
        self._decide(list(self._said) if lost else list(documents))
        return Change(batch, tuple(documents), any(e.document is None for e in events), note=note)

    def _stack(self, who: str, batch: int, kind: str, target: int | None, empty: bool) -> None:
        """Keep account of what a person can take back and bring back."""
        if kind == "do" and not empty:
            self._done[who].append(batch)
            self._undone[who].clear()
        elif kind != "do" and target is not None:
            away, to = (self._done, self._undone) if kind == "undo" else (self._undone, self._done)
            if target in away[who]:
                away[who].remove(target)
            to[who].append(target)

    def _decide(self, rows: Iterable[int]) -> None:
        """Work out anew what is held of some documents."""
        live = {t.topic: t.born for t in self.topics.values() if not t.gone}
        complete = self.settings["complete"]
        for row in rows:
            views = {p: view for p, slots in self._said[row].items() if (view := _view(slots, live, complete))}
            for person, slots in self._said[row].items():
                stand = (s != CLEARED for t, (s, _) in slots.items() if t == WHOLE or t in live)
                self.spoken[person][row] = any(stand)
            people = [view for p, view in views.items() if not p.startswith(FILE)] or list(views.values())
            votes: Counter[int] = Counter()
            said: set[int] = set()
            differing = set()
            for view in people:
                for topic, has in view.items():
                    votes[topic] += 1 if has else -1
                    said.add(topic)
            for topic in said:
                if abs(votes[topic]) < sum(topic in view for view in people):
                    differing.add(topic)
            new = Decision(
                frozenset(t for t in said if votes[t] > 0),
                frozenset(t for t in said if votes[t] < 0),
                frozenset(differing),
            )
            old = self.decisions.get(row, Decision())
            self.counts.subtract(old.permitted)
            self.counts.update(new.permitted)
            self.decisions[row] = new
            self.labelled[row] = bool(said)
            self.differing[row] = bool(differing)

    def _slot(self, person: str, row: int, topic: int, state: str) -> list[Event]:
        """The event that brings a slot to a state, if it is not there."""
        before = self._state(person, row, topic)
        return [] if before == state else [Event(person, row, topic, state, before)]

    def _state(self, person: str, row: int, topic: int) -> str:
        people = self._said.get(row)
        slots = people.get(person) if people else None
        found: tuple[str, int] | None = slots.get(topic) if slots else None
        return CLEARED if found is None else found[0]

    def _is_live(self, topic: int) -> bool:
        return topic in self.topics and not self.topics[topic].gone

    # --- checks ---

    def _new(self, name: str, position: int, description: str = "") -> Topic:
        key = max(self.topics, default=0) + 1
        topic = Topic(
            key, self._free_name(name), _description(description), COLOURS[(key - 1) % len(COLOURS)], position
        )
        self.topics.setdefault(key, replace(topic, gone=True))  # the number is taken from here on
        return topic

    def _free_name(self, name: Any, own: int | None = None) -> str:
        tidy = _name(name)
        for topic in self.live:
            if topic.name.casefold() == tidy.casefold() and topic.topic != own:
                raise Refused(f"There is a topic {topic.name!r} already; use another name, or merge the two.")
        return tidy

    def _check_topic(self, topic: Any) -> Topic:
        if not isinstance(topic, int) or not self._is_live(topic):
            raise Refused("This topic is no longer there; somebody may have deleted or merged it.")
        return self.topics[topic]

    def _check_rows(self, documents: Any) -> list[int]:
        if not isinstance(documents, list | tuple) or len(documents) > MOST_DOCUMENTS:
            raise Refused(f"Expected a list of at most {MOST_DOCUMENTS:,} documents.")
        for row in documents:
            if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < self.n:
                raise Refused(f"There is no document number {row!r}.")
        return list(dict.fromkeys(documents))


def _view(slots: Mapping[int, tuple[str, int]], live: Mapping[int, int], complete: bool) -> dict[int, bool]:
    """What one person holds of a document, topic by topic.

    A complete label speaks of all topics that were there when it was given, and not of those made later.
    """
    view = {t: s == PERMITTED for t, (s, _) in slots.items() if t in live and s in (PERMITTED, FORBIDDEN)}
    none = slots.get(WHOLE, (CLEARED, 0))[0] == NONE
    if none or (complete and any(view.values())):
        last = max(seq for _, seq in slots.values())
        for topic, born in live.items():
            if born <= last:
                view.setdefault(topic, False)
    return view


def _topic_event(old: Topic, new: Topic) -> Event:
    return Event(None, None, old.topic, new.dump(), old.dump())


def _same(topic: Topic, text: str) -> bool:
    """Whether a topic is still as the log has it; when it was born does not matter."""
    logged = Topic.parse(text)
    return logged is not None and replace(logged, born=0) == replace(topic, born=0)


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def _name(name: Any) -> str:
    if not isinstance(name, str) or not (name := " ".join(_CONTROL.sub(" ", name).split())):
        raise Refused("A topic needs a name.")
    if len(name) > LONGEST_NAME:
        raise Refused(f"A name has at most {LONGEST_NAME} characters; put the rest into the description.")
    return visible(name, LONGEST_NAME)


def _description(text: Any) -> str:
    if not isinstance(text, str) or len(text) > LONGEST_DESCRIPTION:
        raise Refused(f"A description is a text of at most {LONGEST_DESCRIPTION:,} characters.")
    return text.strip()


def _colour(text: Any) -> str:
    if not isinstance(text, str) or not re.fullmatch(r"#[0-9a-f]{6}", text):
        raise Refused("A colour is written as #3b7dd8.")
    return text


def _words(words: Any) -> tuple[str, ...]:
    if not isinstance(words, list | tuple) or len(words) > MOST_WORDS or not all(isinstance(w, str) for w in words):
        raise Refused(f"Expected a list of at most {MOST_WORDS} words.")
    tidy = (" ".join(_CONTROL.sub(" ", w).split())[:LONGEST_NAME] for w in words)
    return tuple(dict.fromkeys(w for w in tidy if w))


def person(name: Any) -> str:
    """A person's name, checked."""
    if not isinstance(name, str) or not (name := " ".join(_CONTROL.sub(" ", name).split())):
        raise Refused("Say who you are: a name is missing.")
    if len(name) > LONGEST_PERSON or name.startswith(FILE):
        raise Refused(f"Choose a name of at most {LONGEST_PERSON} characters that does not begin with {FILE!r}.")
    return visible(name, LONGEST_PERSON)
