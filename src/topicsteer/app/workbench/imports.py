"""Imports: labels and topics of files as events. Missing topics are created, and people keep their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from topicsteer.app.workbench.errors import (
    DECISION,
    FILE,
    is_person,
    person_name,
    topic_description,
    topic_name,
    topic_words,
)
from topicsteer.app.workbench.project import ORIGIN, WHOLE, Batch, Event, State, Topic
from topicsteer.app.workbench.session import Change, LabelSession
from topicsteer.corpora import Documents, ReadError, read_labels
from topicsteer.corpora.label_files import Labels, incomplete_rows, match_labels, match_records
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.spelling import names_by_fold
from topicsteer.labels.supervision import CHOSEN, PROBABILITY, Kind, Origin
from topicsteer.system.values import NONE as NO_TOPIC
from topicsteer.system.values import fold


class GivenLabels(NamedTuple):
    """Names of the topics that documents have and lack, by row; ``open_rows`` leave their other topics open.

    ``owner`` is the file, or a person who is named in it. With a ``separator``, names are paths through a tree.
    ``draws`` are the choices of documents, in the order of their rounds.
    """

    labels: Mapping[int, Iterable[str]]
    forbidden: Mapping[int, Iterable[str]]
    open_rows: Collection[int] = ()
    owner: str = ""
    separator: str | None = None
    draws: Mapping[int, str] = {}

    @property
    def rows(self) -> set[int]:
        """The rows of documents with a label."""
        return {*self.labels, *self.forbidden}


def read_given_labels(path: Path, documents: Documents) -> tuple[list[GivenLabels], list[str]]:
    """Read the labels of a file in any supported format: first without a name, then per person; and the bad rows."""
    found = read_labels(path)
    _, report = match_labels(documents, found)  # refuses a file that belongs to other documents
    owners = dict.fromkeys(name for record in found.records for name in record.people)
    nameless = Labels([record for record in found.records if not record.people], separator=found.separator)
    given = [_matched(documents, nameless, "")]
    for name in owners:
        owner = name if name == DECISION else person_name(name)
        own = Labels([record for record in found.records if name in record.people], separator=found.separator)
        given.append(_matched(documents, own, owner))
    left_out = [str(row).removeprefix(f"{path.name} ") for row in report.bad_rows]
    return given, left_out + [f"{name}: no label" for name in found.empty]


def _matched(documents: Documents, labels: Labels, owner: str) -> GivenLabels:
    """The labels of one owner by row."""
    with suppress(ReadError):  # none of them belongs to a document
        changed, _ = match_labels(documents, labels)
        has, lacks = ({row: both[side] for row, both in changed.items() if both[side]} for side in (0, 1))
        return GivenLabels(
            has, lacks, incomplete_rows(documents, labels), owner, labels.separator, _draws(documents, labels)
        )
    return GivenLabels({}, {}, (), owner, labels.separator)


def _draws(documents: Documents, labels: Labels) -> dict[int, str]:
    """The choices of documents in a label file."""
    matched = zip(labels.records, match_records(documents, labels.records), strict=True)
    found = [(row, record.draw) for record, rows in matched for row in rows]
    columns = {CHOSEN: [one[0] for _, one in found], PROBABILITY: [one[1] for _, one in found]}
    return draws_of([row for row, _ in found], columns)


def draws_of(rows: Sequence[int], columns: Mapping[str, Sequence[Any]]) -> dict[int, str]:
    """The choices of documents as states, in the order of their rounds, from columns with a value per row."""
    origin = Origin.of(columns, len(rows))
    if origin is None:
        return {}
    states = {}
    for place in np.argsort(origin.draw, kind="stable").tolist():
        kind = Kind(origin.kind[place])
        if kind != Kind.UNKNOWN:
            chance = f" {origin.probability[place]:.6g}" if kind == Kind.DOUBT else ""
            states[rows[place]] = f"{kind.name.lower()}{chance}"
    return states


def kept_labels(session: LabelSession, given: Sequence[GivenLabels]) -> list[str]:
    """Return a line per document for which a person has a label here, which an import leaves as it is."""
    ids, found = session.project.ids(), list[str]()
    for own in given:
        mine = [row for row in sorted(own.rows) if is_person(own.owner) and own.owner in session.votes_of(row)]
        found += [f"{ids[row]}: the label that {own.owner} gave here stays" for row in mine]
    return found


def import_labels(session: LabelSession, who: str, given: Sequence[GivenLabels], *, source: str) -> Change:
    """Import the labels of a file by topic name and create missing topics; one undo removes them all.

    The label "(none)" marks a document with none of the topics. The separator of a file with paths becomes the
    separator of a project that has none.
    """
    with session.lock:
        separator = given[0].separator
        if separator is not None and session.settings.path_separator is None and session.tree.forest.flat:
            session.change_settings(path_separator=separator)
        owned = [own if own.owner else own._replace(owner=FILE + source) for own in given]
        return session.commit(Batch(who, f"labels of {source}"), label_file_events(session, owned))


class Names:
    """Topics by the names and paths that files use; missing topics are created, parents first.

    Parameters
    ----------
    session : LabelSession
        The session; its lock is held.
    stated : str, optional
        The separator of paths, according to the file. Default: that of the project.
    """

    def __init__(self, session: LabelSession, stated: str | None) -> None:
        self._session, self._own = session, session.settings.path_separator
        self.separator = stated or self._own
        self._keys: dict[tuple[str, ...], int] = {}
        self._names = {}
        for topic in session.live:
            self._names[topic.key] = topic.name
            self._keys[(fold(topic.name),)] = topic.key
        self._keys |= session.tree.by_path(self._own)
        self.events: list[Event] = []

    def key(self, name: str) -> int:
        """Return the key of a topic."""
        return self._key(self._path(name))

    def ends_here(self, name: str) -> bool:
        """Return whether a label means a topic and nothing below it."""
        path = self._path(name)
        return len(path) > 1 and fold(path[-1]) == NO_TOPIC

    def _path(self, name: str) -> tuple[str, ...]:
        parts = name.split(self.separator) if self.separator is not None else [name]
        return tuple(part.strip() for part in parts)

    def _key(self, path: tuple[str, ...]) -> int:
        path = path[: -1 if len(path) > 1 and fold(path[-1]) == NO_TOPIC else None]
        tidy = tuple(topic_name(part) for part in path)
        folded = tuple(map(fold, tidy))
        if folded not in self._keys:
            parent = self._key(path[:-1]) if len(path) > 1 else None
            joined = (self._own or self.separator or "").join(tidy)
            topic = self._session.unused_topic(joined, len(self._keys))
            self._keys[folded] = topic.key
            self.events.append(Event.of_topic(None, replace(topic, parent=parent)))
        return self._keys[folded]


def label_file_events(session: LabelSession, given: Sequence[GivenLabels]) -> list[Event]:
    """Return the events that bring the labels of a file to these states; the caller holds the lock.

    A label that a person gave here stays as it is: an import never overwrites it.
    """
    names = Names(session, next((own.separator for own in given if own.separator), None))
    every = (name for own in given for rows in (own.labels, own.forbidden) for some in rows.values() for name in some)
    for name in sorted(names_by_fold(Counter(every), names.separator).values()):
        if name != NO_TOPIC:
            names.key(name)
    events: list[Event] = []
    for own in given:
        for rows, state in ((own.labels, State.PERMITTED), (own.forbidden, State.FORBIDDEN)):
            for row, some in rows.items():
                if is_person(own.owner) and own.owner in session.votes_of(int(row)):
                    continue
                if NO_TOPIC in some:
                    states = session.none_states(own.owner, int(row))
                else:
                    single = own.owner == DECISION or row in own.open_rows
                    kept = State.CONFIRMED if state == State.PERMITTED and single else state
                    states = {names.key(name): State.REST if names.ends_here(name) else kept for name in some}
                    states |= {WHOLE: State.CLEARED} if state == State.PERMITTED else {}
                events += session.label_events(own.owner, int(row), states)
        for row, choice in own.draws.items():
            if not session.labelled[row]:
                events += session.label_events(own.owner, row, {ORIGIN: choice})
    return names.events + events


# --- topics ---


def import_topics(session: LabelSession, who: str, topics: Codebook, *, source: str) -> Change:
    """Create missing topics, and add descriptions and words to existing ones; one undo takes all back.

    An existing topic keeps its own description and parent. A word that is banned and a keyword stays a keyword.
    """
    with session.lock:
        by_name = {fold(topic.name): topic for topic in session.live}
        events, before = list[Event](), dict[str, Topic | None]()
        for given in topics:
            name = topic_name(str(given.name))
            old = by_name.get(fold(name))
            start = old or session.unused_topic(name, len(by_name))
            keywords = topic_words((*start.keywords, *given.keywords))
            banned = tuple(w for w in topic_words((*start.banned, *given.banned)) if w not in keywords)
            about = start.description or topic_description(given.description)
            by_name[fold(name)] = replace(start, description=about, keywords=keywords, banned=banned)
            before[fold(name)] = old
        parents = topics.parent_names
        for given in topics:
            name = fold(topic_name(str(given.name)))
            new, old = by_name[name], before[name]
            if new.parent is None and (above := parents.get(str(given.name))) is not None:
                new = replace(new, parent=by_name[fold(topic_name(str(above)))].key)
            events += [Event.of_topic(old, new)] if new != old else []
        return session.commit(Batch(who, f"topics of {source}"), events)
