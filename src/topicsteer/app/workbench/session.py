"""LabelSession: the labels and topics of a project. `actions.apply` plans every change, `LabelSession.commit` makes it.

It is a plain object without HTTP. Each person has their own labels, and nobody overwrites anybody. A fit uses the
decisions of `decide`: labels of people count before labels of files, and the majority of people decides. A tie leaves
the topic open. Once a disagreement is settled, the decision counts, and the labels of people stay as they are. Undo and
redo come from the event log, so they survive a restart.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topicsteer.app.workbench.current_model import Key
from topicsteer.app.workbench.errors import (
    DECISION,
    FILE,
    Conflict,
    NotFound,
    Refused,
    is_person,
    topic_description,
    topic_name,
)
from topicsteer.app.workbench.project import NOTE, ORIGIN, WHOLE, Batch, Event, Project, ProjectSettings, State, Topic
from topicsteer.app.workbench.topic_tree import Tree, ring
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.system.values import fold

# Colours of new topics, in turn.
COLOURS = (
    "#3b7dd8", "#d9622b", "#2e9e6b", "#b0468f", "#8a7a1f", "#5a60c8",
    "#c43d4d", "#1f94a8", "#7f8c3a", "#9a5bd0", "#b8742a", "#4a8a8a",
)  # fmt: skip
# Greatest number of documents in one action.
MOST_DOCUMENTS = 20_000

# --- changes, and the way back ---


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

    def apply(self, number: int, batch: Batch, empty: bool) -> None:
        """Record a batch."""
        done, undone = self.done[batch.who], self.undone[batch.who]
        if batch.kind == "do" and not empty:
            done.append(number)
            undone.clear()
        elif batch.kind != "do" and batch.target is not None:
            source, goal = (done, undone) if batch.kind == "undo" else (undone, done)
            if batch.target in source:
                source.remove(batch.target)
            goal.append(batch.target)


# --- the decision on a document ---

# The last labels of one person for one document: for each key the state and the number of its event.
PersonLabels: TypeAlias = Mapping[int, tuple[str, int]]


class Decision(NamedTuple):
    """The keys of topics that a document has, of topics that it does not have, and of topics on which people differ."""

    permitted: frozenset[int] = frozenset()
    forbidden: frozenset[int] = frozenset()
    differing: frozenset[int] = frozenset()


class Training(NamedTuple):
    """Labels for a fit, by row; ``complete``: topics that are not among a document's labels are forbidden."""

    topics: tuple[Topic, ...]
    labels: Mapping[int, list[str]]
    forbidden: Mapping[int, list[str]]
    complete: bool
    seq: int


def decide(people: Mapping[str, PersonLabels], live: Mapping[int, int], complete: bool, tree: Tree) -> Decision:
    """Decide on the topics of a document.

    Parameters
    ----------
    people : mapping of person to labels
        The labels of each person.
    live : mapping of int to int
        The keys of existing topics, each with the number of the event that created it.
    complete : bool
        A label excludes all other topics.
    tree : Tree
        The tree of the existing topics.
    """
    settled = votes(people.get(DECISION, {}), live, False, tree)
    given = {person: votes(labels, live, complete, tree) for person, labels in people.items() if person != DECISION}
    by_people = [own for person, own in given.items() if own and not person.startswith(FILE)]
    balance: Counter[int] = Counter()
    voters: Counter[int] = Counter()
    for own in by_people or given.values():
        voters.update(own.keys())
        balance.update({key: 1 if has else -1 for key, has in own.items()})
    differing = frozenset(key for key, n in voters.items() if abs(balance[key]) < n)
    balance.update({key: (1 if has else -1) - balance[key] for key, has in settled.items()})
    return Decision(
        frozenset(key for key, value in balance.items() if value > 0),
        frozenset(key for key, value in balance.items() if value < 0),
        differing - settled.keys(),
    )


def current_states(labels: PersonLabels, live: Mapping[int, int]) -> dict[int, str]:
    """Return a person's labels without cleared ones and without deleted topics; `WHOLE` is the whole document."""
    states = {key: state for key, (state, _) in labels.items() if key == WHOLE or key in live}
    return {key: state for key, state in states.items() if state != State.CLEARED}


def merged_state(labels: PersonLabels, topics: Sequence[Topic], same_below: bool = True) -> str | None:
    """Return a person's label for several topics that become one; None without any label.

    The merged topic is forbidden only if each of them was: "not tea" does not mean "neither tea nor coffee". "Nothing
    below it" holds only if the merged topic has the ``same`` topics ``below`` it.
    """
    states = [labels.get(topic.key, (State.CLEARED, 0))[0] for topic in topics]
    if State.REST in states and not {State.PERMITTED, State.CONFIRMED} & {*states}:
        return State.REST if same_below and states[0] == State.REST else State.PERMITTED
    for state in (State.PERMITTED, State.CONFIRMED):
        if state in states:
            return state
    if State.FORBIDDEN in states:
        return State.FORBIDDEN if all(state == State.FORBIDDEN for state in states) else State.CLEARED
    return None


def training_labels(topics: Sequence[Topic], decisions: Mapping[int, Decision], seq: int, tree: Tree) -> Training:
    """Return the labels for a fit, as they are after the event ``seq``: the deepest topics of each document.

    If labels are complete, ``forbidden`` has the topics that follow from no label, such as the topics below a label
    that means "nothing below".
    """
    name = {topic.key: topic.name for topic in topics}
    rows = {row: d for row, d in sorted(decisions.items()) if d.permitted or d.forbidden}
    complete = all(tree.excluded(d.permitted) <= d.forbidden for d in rows.values() if d.permitted)
    labels = {row: sorted(name[key] for key in tree.deepest(d.permitted)) for row, d in rows.items() if d.permitted}
    lacks = {
        row: d.forbidden - (tree.excluded(d.permitted) if complete and d.permitted else frozenset())
        for row, d in rows.items()
    }
    forbidden = {row: sorted(name[key] for key in keys) for row, keys in lacks.items() if keys}
    parents = tuple(replace(topic, parent=tree.parents[topic.key]) for topic in topics)
    return Training(parents, labels, forbidden, complete, seq)


def votes(labels: PersonLabels, live: Mapping[int, int], complete: bool, tree: Tree) -> dict[int, bool]:
    """Return one person's vote per topic: True if the document has it.

    A complete label also votes against all other topics that existed at the time, but not against later topics. The
    answer to a question is a single fact: it votes on its own topic only. In a tree, a vote for a topic includes all
    topics above it. A vote against a topic includes all topics below it. Topics below a label stay open.
    """
    states = {key: state for key, (state, _) in labels.items() if key in live}
    voting = State.PRESENT | {State.FORBIDDEN}
    own = {key: state in State.PRESENT for key, state in states.items() if state in voting}
    if not tree.forest.flat and own:
        own = _in_tree(own, labels, live, tree)
    none = labels.get(WHOLE, (State.CLEARED, 0))[0] == State.NONE
    if none or (complete and any(labels[key][0] in (State.PERMITTED, State.REST) for key in own if key in labels)):
        last = max(seq for key, (_, seq) in labels.items() if key >= WHOLE)
        others = tree.keys if none else tree.excluded(frozenset(key for key, has in own.items() if has))
        own |= {key: False for key in others if live[key] <= last and key not in own}
    return own


def _in_tree(own: Mapping[int, bool], labels: PersonLabels, live: Mapping[int, int], tree: Tree) -> dict[int, bool]:
    """Add the votes that follow from the tree; "nothing below" is about topics that existed at the time."""
    has = {key for key, yes in own.items() if yes}
    has.update(*(tree.above(key) for key in tuple(has)))
    lacks = {key for key, yes in own.items() if not yes}
    lacks.update(*(tree.below(key) for key in tuple(lacks)))
    for key in own:
        state, seq = labels[key]
        lacks.update(below for below in tree.below(key) if state == State.REST and live[below] <= seq)
    return dict.fromkeys(lacks, False) | dict.fromkeys(has, True)


class Origins:
    """The choice of each labelled document; it is stored with the first label, as an event of the log.

    ``served`` has the documents that people read now, and how they were chosen.
    """

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self.served: dict[int, str] = {}

    def apply(self, seq: int, event: Event) -> None:
        """Record an event, if it is about the choice of a document."""
        if event.key == ORIGIN and event.document is not None:
            self._known.pop(event.document, None)  # the order is that of the events
            self._known[event.document] = event.state
        elif event.key == WHOLE and event.state == State.SKIPPED and event.document is not None:
            self.served.pop(event.document, None)  # whoever labels it later chose it

    def states(self, row: int, labelled: NDArray[np.bool_]) -> Mapping[int, str]:
        """Return the choice of a document as a further state of its first label; a person's own choice is no draw."""
        new = not labelled[row] and self._known.get(row, State.CLEARED) == State.CLEARED
        return {ORIGIN: self.served.get(row, State.SUGGESTED)} if new else {}

    def drawn(self, labelled: NDArray[np.bool_]) -> int:
        """Return the number of labelled documents that were drawn at random."""
        return sum(how == State.RANDOM and bool(labelled[row]) for row, how in list(self._known.items()))

    def chosen(self, labelled: NDArray[np.bool_]) -> dict[int, str]:
        """Return how labelled documents were chosen, where it is known; documents of files are missing.

        Rounds of equal choices in a row are numbered: "random", "suggested 2", "random 3".
        """
        found: dict[int, str] = {}
        number, last = 0, ""
        for row, state in list(self._known.items()):
            how = state.partition(" ")[0]
            if how != State.CLEARED and labelled[row]:
                number, last = (number, how) if how == last else (number + 1, how)
                found[row] = how if number == 1 else f"{how} {number}"
        return found

    def probabilities(self, labelled: NDArray[np.bool_]) -> dict[int, float]:
        """Return the probability with which labelled documents were drawn by doubt."""
        drawn = ((row, state.split()) for row, state in list(self._known.items()) if labelled[row])
        return {row: float(state[1]) for row, state in drawn if state[0] == State.DOUBT}


class Overlap:
    """The documents in the order of their first label by a person.

    The order comes from the event log. So the choice is the same after a restart, and an undone label does not move it.
    """

    def __init__(self) -> None:
        self._order: dict[int, None] = {}

    def apply(self, seq: int, event: Event) -> None:
        """Record a first label; files, decisions and skipped documents do not count."""
        label = event.key >= WHOLE and event.state not in (State.CLEARED, State.SKIPPED, State.LATER)
        if event.document is not None and label and is_person(str(event.person)):
            self._order.setdefault(event.document)

    def rows(self, every: int) -> list[int]:
        """Return every n-th of these documents.

        Examples
        --------
        >>> overlap = Overlap()
        >>> for seq, row in enumerate([7, 3, 7, 5, 1]):
        ...     overlap.apply(seq, Event("ann", row, 1, "permitted", "cleared"))
        >>> overlap.rows(2)
        [3, 1]
        """
        return list(self._order)[every - 1 :: every] if every else []


# --- the session ---


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
    >>> from topicsteer.app.workbench.actions import Label, NewTopic, Undo, apply
    >>> tea = apply(session, "ann", NewTopic(name="tea"))
    >>> change = apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    >>> session.decisions[0].permitted, session.counts[1]
    (frozenset({1}), 1)
    >>> undone = apply(session, "ann", Undo())
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
        self.origins, self.overlap = Origins(), Overlap()
        # Number of the last event.
        self.seq = 0
        # For each existing topic the number of the event that created it, and their tree.
        self._born: dict[int, int] = {}
        self.tree = Tree({})
        # Whether topics changed since then.
        self._replanted = True
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
            found = {person: current_states(labels, self._born) for person, labels in people}
            return {person: states for person, states in found.items() if states}

    def votes_of(self, document: int) -> dict[str, dict[int, bool]]:
        """Return the votes on a document per person: whether it has a topic, by key."""
        with self.lock:
            complete, people = self.settings.complete, self.labels.get(document, {}).items()
            tree = self.tree
            found = {p: votes(own, self._born, complete and p != DECISION, tree) for p, own in people}
            return {person: votes for person, votes in found.items() if votes}

    def notes_of(self, document: int) -> dict[str, str]:
        """Return the notes on a document per person."""
        found = {person: self.state_of(person, document, NOTE) for person in self.labels.get(document, {})}
        return {person: json.loads(text) for person, text in found.items() if text != State.CLEARED}

    def labellers(self, document: int) -> set[str]:
        """Return the people with a label for a document; skipped documents have none."""
        aside = ({WHOLE: State.SKIPPED}, {WHOLE: State.LATER})
        found = self.labels_of(document).items()
        return {person for person, states in found if is_person(person) and states not in aside}

    def due_rows(self, who: str) -> list[int]:
        """Return the documents that a person labels as well, because too few people have labelled them."""
        own = self.labelled_by.get(who)
        rows = [row for row in self.overlap.rows(self.settings.overlap) if own is None or not own[row]]
        return [row for row in rows if 0 < len(self.labellers(row)) < self.settings.overlap_people]

    def training(self) -> Training:
        """Return the labels for a fit, by row."""
        with self.lock:
            return training_labels(self.live, self.decisions, self.seq, self.tree)

    def supervision(self, fit: Supervision, keys: Sequence[int]) -> Supervision:
        """Return the present labels in the columns of a fit, which have these keys."""
        place = {key: k for k, key in enumerate(keys)}
        pattern, seen = np.zeros(self.n, dtype=np.int32), dict[tuple[frozenset[int], frozenset[int]], int]()
        patterns = [np.full(len(keys), UNKNOWN, dtype=np.int8)]
        with self.lock:
            for row, decision in self.decisions.items():
                about = (decision.permitted, decision.forbidden)
                if about not in seen:
                    state = patterns[0].copy()
                    state[[place[key] for key in decision.forbidden if key in place]] = FORBIDDEN
                    state[[place[key] for key in decision.permitted if key in place]] = PERMITTED
                    seen[about] = len(patterns) if (state != UNKNOWN).any() else 0
                    patterns.append(state)
                pattern[row] = seen[about]
        return replace(fit, pattern=pattern, patterns=np.array(patterns))

    def chosen(self) -> dict[int, str]:
        """Return how labelled documents were chosen, where it is known."""
        return self.origins.chosen(self.labelled)

    def changed_since(self, seq: int) -> int:
        """Return the number of labelled documents whose labels changed after an event."""
        return int((self.labelled & (self.last_event > seq)).sum())

    def undo_state(self, who: str) -> UndoState:
        """Return whether a person can undo and redo."""
        return UndoState(bool(self._stacks.done.get(who)), bool(self._stacks.undone.get(who)))

    # --- settings ---

    def change_settings(self, **values: Any) -> Change:
        """Change fields of `ProjectSettings`."""
        with self.lock:
            settings = self.settings.changed(values)
            self.project.set(settings.stored(values))
            self.settings = settings
            if "complete" in values:
                self._decide(self.labels)
        return Change(0, topics=True)

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
        for part in (self.origins, self.overlap):
            part.apply(seq, event)
        if event.document is not None:
            self.labels[event.document][str(event.person)][event.key] = (event.state, seq)
            extended = event.key == WHOLE and event.state == event.before  # to later topics
            if event.key != NOTE and not extended:
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
                self.labelled_by[person][row] = bool(current_states(labels, self._born))
            new = decide(self.labels[row], self._born, self.settings.complete, self.tree)
            self.counts.subtract(self.decisions.get(row, Decision()).permitted)
            self.counts.update(new.permitted)
            self.decisions[row] = new
            self.labelled[row] = any(new)
            self.differing[row] = bool(new.differing)

    def label_events(self, person: str, row: int, states: Mapping[int, str]) -> list[Event]:
        """Return the events that bring a person's labels for a document to these states."""
        now = {key: self.state_of(person, row, key) for key in states}
        return [Event(person, row, key, state, now[key]) for key, state in states.items() if state != now[key]]

    def first_events(self, person: str, row: int, states: Mapping[int, str]) -> list[Event]:
        """Return the same; the first label of a document also stores how it was chosen."""
        events = self.label_events(person, row, states)
        return events and events + self.label_events(person, row, self.origins.states(row, self.labelled))

    def none_states(self, person: str, row: int) -> dict[int, str]:
        """Return the states of a document that has none of the topics."""
        labels = self.labels.get(row, {}).get(person, {})
        present = [key for key, (state, _) in labels.items() if state in State.PRESENT]
        return {**dict.fromkeys(present, State.CLEARED), WHOLE: State.NONE}

    def open_none(self, row: int, key: int) -> bool:
        """Return whether a document with none of the topics may have a topic that came later."""
        decision = self.decisions.get(row, Decision())
        decided = decision.permitted | decision.forbidden
        return key not in decided and any(self.people_with_none(row))

    def none_rows(self) -> list[int]:
        """Return the documents that somebody labelled with none of the topics."""
        return [row for row in self.decisions if any(self.people_with_none(row))]

    def people_with_none(self, row: int) -> list[str]:
        """Return the people who labelled a document with none of the topics."""
        return [person for person in self.labels[row] if self.state_of(person, row, WHOLE) == State.NONE]

    def extended_none(self, but: Collection[int]) -> list[Event]:
        """Return events that extend "none of these" to the present topics, except in some documents."""
        rows = [(row, person) for row in self.none_rows() if row not in but for person in self.people_with_none(row)]
        return [Event(person, row, WHOLE, State.NONE, State.NONE) for row, person in rows]

    def state_of(self, person: str, row: int, key: int) -> str:
        """Return a person's label for a topic of a document."""
        return self.labels.get(row, {}).get(person, {}).get(key, (State.CLEARED, 0))[0]

    # --- undo and redo ---

    def revert_events(self, who: str, kind: str) -> tuple[int, list[Event]]:
        """Return the batch that a person reverts with "undo" or "redo", and the events for it."""
        stack = self._stacks.done[who] if kind == "undo" else self._stacks.undone[who]
        if not stack:
            raise Conflict(f"There is nothing to {kind}.")
        events = self.project.log.events_of(stack[-1])
        if kind == "undo":
            events = [event._replace(state=event.before, before=event.state) for event in reversed(events)]
        return stack[-1], [event for event in events if self._unchanged(event)]

    def _unchanged(self, event: Event) -> bool:
        """Return whether the label or topic still is as it was before an event, apart from its number of birth."""
        if event.document is not None:
            return self.state_of(str(event.person), event.document, event.key) == event.before
        topic, before = self.topics.get(event.key), Topic.parse(event.before)
        if topic is None or before is None:
            return before is None and (topic is None or topic.gone)
        return replace(before, born=0) == replace(topic, born=0)

    # --- checks ---

    def unused_topic(self, name: str, position: int, description: str = "") -> Topic:
        """Return a new topic with an unused name and a reserved key."""
        key = max(self.topics, default=0) + 1
        colour = COLOURS[(key - 1) % len(COLOURS)]
        unused, about = self.unused_name(name), topic_description(description)
        topic = Topic(key, unused, description=about, colour=colour, position=position)
        self.topics.setdefault(key, replace(topic, gone=True))  # reserves the key
        return topic

    def unused_name(self, name: str, own: int | None = None) -> str:
        """Return the name of a topic, or refuse one that another topic has."""
        tidy = topic_name(name, self.settings.path_separator)
        folded = fold(tidy)
        for topic in self.live:
            if fold(topic.name) == folded and topic.key != own:
                raise Conflict(f"There already is a topic {topic.name!r}. Use another name, or merge the two.")
        return tidy

    def topic(self, key: Key | None) -> Topic:
        """Return an existing topic."""
        found = self.topics.get(key) if isinstance(key, int) else None
        if found is None or found.gone:
            raise NotFound("This topic no longer exists. It may have been deleted or merged.")
        return found

    def check_rows(self, documents: Sequence[int]) -> list[int]:
        """Return rows, each once, or refuse them."""
        if len(documents) > MOST_DOCUMENTS:
            raise Refused(f"One action changes at most {MOST_DOCUMENTS:,} documents. Choose fewer.", 413)
        for row in documents:
            if not 0 <= row < self.n:
                raise NotFound(f"There is no document number {row!r}.")
        return list(dict.fromkeys(documents))
