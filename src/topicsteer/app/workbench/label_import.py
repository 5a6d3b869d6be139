"""Labels of a file as events: names become topics, missing topics are created, and people keep their labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from topicsteer.app.workbench.event_log import CLEARED, CONFIRMED, FORBIDDEN, PERMITTED, WHOLE, Event
from topicsteer.app.workbench.text_rules import DECISION, is_person, person, topic_name
from topicsteer.corpora import Documents, ReadError, read_labels
from topicsteer.corpora.label_files.records import Labels, incomplete_rows, match_labels
from topicsteer.system.values import NONE as NO_TOPIC

if TYPE_CHECKING:
    from topicsteer.app.workbench.session import LabelSession


class GivenLabels(NamedTuple):
    """Names of the topics that documents have and lack, by row; ``open_rows`` leave their other topics open.

    ``owner`` is the file, or a person who is named in it.
    """

    labels: Mapping[int, Iterable[str]]
    forbidden: Mapping[int, Iterable[str]]
    open_rows: Collection[int] = ()
    owner: str = ""

    @property
    def rows(self) -> set[int]:
        """The rows of documents with a label."""
        return {*self.labels, *self.forbidden}


def read_given_labels(path: Path, documents: Documents) -> list[GivenLabels]:
    """Read the labels of a file in any supported format: first without a name, then per person."""
    found = read_labels(path, on_error="skip")
    match_labels(documents, found, on_error="skip")  # refuses a file that belongs to other documents
    owners = dict.fromkeys(name for record in found.records for name in record.people)
    given = [_matched(documents, Labels([record for record in found.records if not record.people]), "")]
    for name in owners:
        owner = name if name == DECISION else person(name)
        own = Labels([record for record in found.records if name in record.people])
        given.append(_matched(documents, own, owner))
    return given


def _matched(documents: Documents, labels: Labels, owner: str) -> GivenLabels:
    """The labels of one owner by row."""
    with suppress(ReadError):  # none of them belongs to a document
        changed, _ = match_labels(documents, labels, on_error="skip")
        has, lacks = ({row: both[side] for row, both in changed.items() if both[side]} for side in (0, 1))
        return GivenLabels(has, lacks, incomplete_rows(documents, labels), owner)
    return GivenLabels({}, {}, (), owner)


def label_file_events(session: LabelSession, given: Sequence[GivenLabels]) -> list[Event]:
    """Return the events that bring the labels of a file to these states; the caller holds the lock.

    A label that a person gave here stays as it is: an import never overwrites it.
    """
    keys = {topic.name.casefold(): topic.key for topic in session.live}
    events: list[Event] = []
    names = (name for own in given for rows in (own.labels, own.forbidden) for some in rows.values() for name in some)
    for name in sorted({topic_name(name) for name in names if name != NO_TOPIC}):
        if name.casefold() not in keys:
            topic = session.unused_topic(name, len(keys))
            keys[name.casefold()] = topic.key
            events.append(Event.of_topic(None, topic))
    for own in given:
        for rows, state in ((own.labels, PERMITTED), (own.forbidden, FORBIDDEN)):
            for row, some in rows.items():
                if is_person(own.owner) and own.owner in session.votes_of(int(row)):
                    continue
                if NO_TOPIC in some:
                    states = session.none_states(own.owner, int(row))
                else:
                    single = own.owner == DECISION or row in own.open_rows
                    kept = CONFIRMED if state == PERMITTED and single else state
                    states = {keys[topic_name(name).casefold()]: kept for name in some}
                    states |= {WHOLE: CLEARED} if state == PERMITTED else {}
                events += session.label_events(own.owner, int(row), states)
    return events
