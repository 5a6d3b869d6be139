"""LabelSession: the labels and topics of a project, and every action that people can take on them.

It is a plain object without HTTP. Each person has their own labels, and nobody overwrites anybody. A fit uses the
decisions of `label_state.decide`. Undo and redo come from the event log, so they survive a restart.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topicsteer.app.workbench import label_state, text_rules, topic_actions
from topicsteer.app.workbench.actions import ACTIONS, Plan, action
from topicsteer.app.workbench.changes import Change, ChangedLabels, UndoStacks, UndoState
from topicsteer.app.workbench.definitions import Definitions
from topicsteer.app.workbench.errors import Conflict, Invalid, NotFound, TooLarge
from topicsteer.app.workbench.event_log import (
    CLEARED,
    CONFIRMED,
    FORBIDDEN,
    NONE,
    NOTE,
    PERMITTED,
    PRESENT,
    REST,
    SKIPPED,
    WHOLE,
    Batch,
    Event,
    Topic,
)
from topicsteer.app.workbench.label_import import GivenLabels, label_file_events
from topicsteer.app.workbench.label_state import Decision, Training
from topicsteer.app.workbench.origins import Origins
from topicsteer.app.workbench.overlap import Overlap
from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.settings import STORED, ProjectSettings, renamed_settings
from topicsteer.app.workbench.text_rules import DECISION, FILE, topic_name
from topicsteer.app.workbench.tree import Tree, ring
from topicsteer.system.renamed import Renamed

# Colours of new topics, in turn.
COLOURS = (
    "#3b7dd8", "#d9622b", "#2e9e6b", "#b0468f", "#8a7a1f", "#5a60c8",
    "#c43d4d", "#1f94a8", "#7f8c3a", "#9a5bd0", "#b8742a", "#4a8a8a",
)  # fmt: skip
# Greatest number of documents in one action.
MOST_DOCUMENTS = 20_000


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
    >>> change = session.label("ann", documents=[0], key=1, state="permitted")
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
        self.settings = ProjectSettings.restored(project.settings())
        self.decisions: dict[int, Decision] = {}
        # Labelled documents per key.
        self.counts: Counter[int] = Counter()
        self.labelled = np.zeros(self.n, dtype=np.bool_)
        self.differing = np.zeros(self.n, dtype=np.bool_)
        # Number of the last event of each document; 0 without one.
        self.last_event = np.zeros(self.n, dtype=np.int64)
        # Documents with a label of this person.
        self.labelled_by: dict[str, NDArray[np.bool_]] = defaultdict(lambda: np.zeros(self.n, dtype=np.bool_))
        self.origins, self.overlap, self.definitions = Origins(), Overlap(), Definitions()
        # Number of the last event.
        self.seq = 0
        # For each existing topic the number of the event that created it, and their tree.
        self._born: dict[int, int] = {}
        self.tree = Tree({})
        # Whether topics changed since then.
        self._replanted = True
        self._changed = ChangedLabels()
        # Last labels: {document: {person: {key: (state, number of the event)}}}; only events change them.
        self.labels: dict[int, dict[str, dict[int, tuple[str, int]]]] = defaultdict(lambda: defaultdict(dict))
        self._stacks = UndoStacks()
        for seq, event in project.log.events():
            self._apply(seq, event)
        for number, batch, empty in project.log.batches():
            self._stacks.apply(number, batch, empty)
        self._decide(self.labels)

    # --- state ---

    @property
    def live(self) -> list[Topic]:
        """The existing topics, in the user's order."""
        with self.lock:
            return sorted((t for t in self.topics.values() if not t.gone), key=lambda t: (t.position, t.key))

    @property
    def people(self) -> list[str]:
        """Everybody with a label, files last."""
        found = {person for people in self.labels.values() for person in people if person != DECISION}
        return sorted(found, key=lambda person: (person.startswith(FILE), person))

    def labels_of(self, document: int) -> dict[str, dict[int, str]]:
        """Return the labels of a document per person: states by key, the whole document under `WHOLE`."""
        with self.lock:
            people = self.labels.get(document, {}).items()
            found = {person: label_state.current_states(labels, self._born) for person, labels in people}
            return {person: states for person, states in found.items() if states}

    def outsider_for(self, document: int) -> list[str]:
        """Return the people according to whom a document has none of the topics."""
        with self.lock:
            people = self.labels.get(document, {}).items()
            return [person for person, labels in people if label_state.denies_all(labels, self._born, self.tree)]

    def votes_of(self, document: int) -> dict[str, dict[int, bool]]:
        """Return the votes on a document per person: whether it has a topic, by key."""
        with self.lock:
            complete, people = self.settings.complete, self.labels.get(document, {}).items()
            tree = self.tree
            found = {p: label_state.votes(own, self._born, complete and p != DECISION, tree) for p, own in people}
            return {person: votes for person, votes in found.items() if votes}

    def notes_of(self, document: int) -> dict[str, str]:
        """Return the notes on a document per person."""
        found = {person: labels.get(NOTE, (CLEARED, 0))[0] for person, labels in self.labels.get(document, {}).items()}
        return {person: json.loads(text) for person, text in found.items() if text != CLEARED}

    def older_labels(self, document: int) -> set[int]:
        """Return the keys of a document's labels that were given under an older definition of their topic."""
        found = (item for labels in self.labels.get(document, {}).values() for item in labels.items())
        return {key for key, (state, seq) in found if state != CLEARED and self.definitions.older(key, seq)}

    said = Renamed("labels_of")
    fresh = Renamed("changed_since")

    def training(self) -> Training:
        """Return the labels for a fit, by row."""
        with self.lock:
            return label_state.training_labels(self.live, self.decisions, self.seq, self.tree)

    def chosen(self) -> dict[int, str]:
        """Return how labelled documents were chosen, where it is known."""
        return self.origins.chosen(self.labelled)

    def changed_since(self, seq: int) -> int:
        """Return the number of labelled documents with other labels than after an event."""
        with self.lock:
            if seq != self._changed.since:
                self._changed.restart(seq, self.project.log.events(seq))
            return int(self.labelled[list(self._changed.altered)].sum())

    def undo_state(self, who: str) -> UndoState:
        """Return whether a person can undo and redo."""
        return self._stacks.state(who)

    # --- labels ---

    @action("label")
    def label(self, who: str, *, documents: Sequence[int], key: int, state: str) -> Plan:
        """Label documents: they have a topic ("permitted") or not ("forbidden"), or the label goes ("cleared").

        The state "rest" means the topic, and none of the topics below it.
        """
        if state not in (PERMITTED, FORBIDDEN, REST, CLEARED):
            raise Invalid(f"The state of a label is permitted, forbidden, rest or cleared, not {state!r}.")
        batch = Batch(who, f"{state} {self.topic(key).name}")
        states = {key: state} | ({WHOLE: CLEARED} if state in PRESENT else {})
        return batch, [event for row in self.check_rows(documents) for event in self.first_events(who, row, states)]

    @action("answer")
    def answer(self, who: str, *, document: int, key: int, state: str) -> Plan:
        """Answer a question about one topic of a document, yes ("permitted") or no ("forbidden").

        The answer is a single fact. Topics that nobody asked about stay open, also if labels are complete.
        """
        if state not in (PERMITTED, FORBIDDEN):
            raise Invalid(f"The answer to a question is permitted or forbidden, not {state!r}.")
        (row,) = self.check_rows([document])
        if state == PERMITTED and self._state(who, row, key) != PERMITTED:  # a complete label stays complete
            state = CONFIRMED
        batch = Batch(who, f"{'no' if state == FORBIDDEN else 'yes'}, {self.topic(key).name}")
        return batch, self.first_events(who, row, {key: state, WHOLE: CLEARED})

    @action("none")
    def none_of_these(self, who: str, *, documents: Sequence[int]) -> Plan:
        """Label documents with none of the topics; permitted topics are cleared."""
        rows = self.check_rows(documents)
        return Batch(who, NONE), [e for row in rows for e in self.first_events(who, row, self.none_states(who, row))]

    def none_states(self, person: str, row: int) -> dict[int, str]:
        """Return the states of a document that has none of the topics."""
        labels = self.labels.get(row, {}).get(person, {})
        return {key: CLEARED for key, (state, _) in labels.items() if state in PRESENT} | {WHOLE: NONE}

    @action("skip")
    def skip(self, who: str, *, documents: Sequence[int]) -> Plan:
        """Skip documents: they get no label and do not come up again."""
        rows = self.check_rows(documents)
        return Batch(who, SKIPPED), [e for row in rows for e in self.label_events(who, row, {WHOLE: SKIPPED})]

    def import_labels(
        self,
        who: str,
        labels: Mapping[int, Iterable[str]],
        forbidden: Mapping[int, Iterable[str]],
        *,
        source: str,
        open_rows: Collection[int] = (),
        people: Sequence[GivenLabels] = (),
        separator: str | None = None,
    ) -> Change:
        """Import the labels of a file by topic name and create missing topics; one undo removes them all.

        The label "(none)" marks a document with none of the topics. Documents in ``open_rows`` leave their other topics
        open. ``people`` have labels of their own in the file. With a ``separator``, names are paths through a tree; it
        becomes the separator of a project that has none.
        """
        with self.lock:
            if separator is not None and self.settings.path_separator is None and self.tree.forest is None:
                self.change_settings(who, path_separator=separator)
            given = GivenLabels(labels, forbidden, open_rows, FILE + source, separator)
            return self.commit(Batch(who, f"labels of {source}"), label_file_events(self, [given, *people]))

    # --- undo and redo ---

    @action("undo")
    def undo(self, who: str) -> Plan:
        """Undo the last action of this person."""
        return self._revert(who, "undo", self._stacks.done[who])

    @action("redo")
    def redo(self, who: str) -> Plan:
        """Redo the last action that this person undid."""
        return self._revert(who, "redo", self._stacks.undone[who])

    def _revert(self, who: str, kind: str, stack: Sequence[int]) -> Plan:
        if not stack:
            raise Conflict(f"There is nothing to {kind}.")
        events = self.project.log.events_of(stack[-1])
        if kind == "undo":
            events = [event._replace(state=event.before, before=event.state) for event in reversed(events)]
        return Batch(who, kind, kind=kind, target=stack[-1]), [event for event in events if self._unchanged(event)]

    def _unchanged(self, event: Event) -> bool:
        """Return whether the label or topic still is as it was before an event, apart from its number of birth."""
        if event.document is not None:
            return self._state(str(event.person), event.document, event.key) == event.before
        topic, before = self.topics.get(event.key), Topic.parse(event.before)
        if topic is None or before is None:
            return before is None and (topic is None or topic.gone)
        return replace(before, born=0) == replace(topic, born=0)

    # --- topics ---

    new_topic, change_topic = topic_actions.new_topic, topic_actions.change_topic
    move_topic, order_topics = topic_actions.move_topic, topic_actions.order_topics
    delete_topic, merge_topics = topic_actions.delete_topic, topic_actions.merge_topics
    split_topic = topic_actions.split_topic

    # --- settings ---

    def change_settings(self, who: str, *, request: str | None = None, **values: object) -> Change:
        """Change fields of `ProjectSettings`."""
        values = renamed_settings(values)
        with self.lock:
            settings = self.settings.changed(values)
            self.project.set({STORED[name]: value for name, value in values.items()})
            self.settings = settings
            if "complete" in values:
                self._decide(self.labels)
        return Change(0, topics=True)

    @property
    def current_settings(self) -> ProjectSettings:
        """The settings with the target in effect."""
        return replace(self.settings, target=self.target)

    @property
    def target(self) -> int:
        """Number of documents to label: as set, or ten per topic and at least fifty."""
        return min(self.settings.target or max(50, 10 * len(self.live)), max(self.n, 1))

    # --- the only way to change the state ---

    def commit(self, batch: Batch, events: Sequence[Event]) -> Change:
        """Write events to disk, then apply them to the state; the caller holds the lock."""
        if not events and batch.kind == "do" and batch.request is None:
            return Change(0)
        self._check_tree(events)
        number, first = self.project.log.append(batch, events)
        for seq, event in enumerate(events, start=first):
            self._apply(seq, event)
        self._stacks.apply(number, batch, not events)
        rows = tuple(dict.fromkeys(event.document for event in events if event.document is not None))
        self._decide(rows)
        return Change(number, rows, any(event.document is None for event in events), note=batch.note)

    def _apply(self, seq: int, event: Event) -> None:
        """Apply one event to the labels or the topics."""
        self.seq = seq
        for part in (self.origins, self.overlap, self.definitions, self._changed):
            part.apply(seq, event)
        if event.document is not None:
            self.labels[event.document][str(event.person)][event.key] = (event.state, seq)
            if event.key != NOTE:
                self.last_event[event.document] = seq
        else:
            self._replanted = True
            topic = Topic.parse(event.state) or self.topics[event.key]
            self.topics[event.key] = replace(topic, born=topic.born or seq, gone=topic.gone or not event.state)

    def _check_tree(self, events: Sequence[Event]) -> None:
        """Refuse events after which topics would be below each other, such as a redo after moves of others."""
        changed = {e.key: t for e in events if e.document is None and (t := Topic.parse(e.state)) is not None}
        if changed and (names := ring(self.topics | changed)):
            both = " and ".join(f"“{name}”" for name in names)
            raise Conflict(f"{both} would be below each other: a tree of topics has no cycles. Nothing was changed.")

    def _decide(self, rows: Iterable[int]) -> None:
        """Update the decisions of some documents, or of all after topics were created, deleted or moved."""
        born, parents = self._born, self.tree.parents
        if self._replanted:
            self._born, self.tree = {t.key: t.born for t in self.topics.values() if not t.gone}, Tree(self.topics)
            self._replanted = False
        for row in rows if born.keys() == self._born.keys() and parents == self.tree.parents else self.labels:
            for person, labels in self.labels[row].items():
                self.labelled_by[person][row] = bool(label_state.current_states(labels, self._born))
            new = label_state.decide(self.labels[row], self._born, self.settings.complete, self.tree)
            self.counts.subtract(self.decisions.get(row, Decision()).permitted)
            self.counts.update(new.permitted)
            self.decisions[row] = new
            self.labelled[row] = any(new)
            self.differing[row] = bool(new.differing)

    def label_events(self, person: str, row: int, states: Mapping[int, str]) -> list[Event]:
        """Return the events that bring a person's labels for a document to these states.

        The same label again confirms one that was given under an older definition of its topic.
        """
        labels, events = self.labels.get(row, {}).get(person, {}), []
        for key, state in states.items():
            before, seq = labels.get(key, (CLEARED, 0))
            if state != before or (state != CLEARED and self.definitions.older(key, seq)):
                events.append(Event(person, row, key, state, before))
        return events

    def first_events(self, person: str, row: int, states: Mapping[int, str]) -> list[Event]:
        """Return the same; the first label of a document also stores how it was chosen."""
        events = self.label_events(person, row, states)
        return events and events + self.label_events(person, row, self.origins.states(row, self.labelled))

    def _state(self, person: str, row: int, key: int) -> str:
        return self.labels.get(row, {}).get(person, {}).get(key, (CLEARED, 0))[0]

    # --- checks ---

    def unused_topic(self, name: str, position: int, description: str = "") -> Topic:
        """Return a new topic with an unused name and a reserved key."""
        key = max(self.topics, default=0) + 1
        colour = COLOURS[(key - 1) % len(COLOURS)]
        unused, about = self.unused_name(name), text_rules.description(description)
        topic = Topic(key, unused, description=about, colour=colour, position=position)
        self.topics.setdefault(key, replace(topic, gone=True))  # reserves the key
        return topic

    def unused_name(self, name: object, own: int | None = None) -> str:
        """Return the name of a topic, or refuse one that another topic has."""
        tidy = topic_name(name, self.settings.path_separator)
        for topic in self.live:
            if topic.name.casefold() == tidy.casefold() and topic.key != own:
                raise Conflict(f"There already is a topic {topic.name!r}. Use another name, or merge the two.")
        return tidy

    def topic(self, key: object) -> Topic:
        """Return an existing topic."""
        found = self.topics.get(key) if isinstance(key, int) else None
        if found is None or found.gone:
            raise NotFound("This topic no longer exists. It may have been deleted or merged.")
        return found

    def check_rows(self, documents: Sequence[int]) -> list[int]:
        """Return rows, each once, or refuse them."""
        if len(documents) > MOST_DOCUMENTS:
            raise TooLarge(f"One action changes at most {MOST_DOCUMENTS:,} documents. Choose fewer.")
        for row in documents:
            if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < self.n:
                raise NotFound(f"There is no document number {row!r}.")
        return list(dict.fromkeys(documents))


ACTIONS["settings"] = LabelSession.change_settings
