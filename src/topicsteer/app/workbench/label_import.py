"""Labels of a file as events: names become topics, and missing topics are created."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from topicsteer.app.workbench.event_log import CLEARED, CONFIRMED, FORBIDDEN, PERMITTED, WHOLE, Event
from topicsteer.app.workbench.text_rules import FILE, topic_name
from topicsteer.system.values import NONE as NO_TOPIC

if TYPE_CHECKING:
    from topicsteer.app.workbench.session import LabelSession


class GivenLabels(NamedTuple):
    """Names of the topics that documents have and lack, by row; ``open_rows`` leave their other topics open."""

    labels: Mapping[int, Iterable[str]]
    forbidden: Mapping[int, Iterable[str]]
    open_rows: Collection[int] = ()


def label_file_events(session: LabelSession, given: GivenLabels, source: str) -> list[Event]:
    """Return the events that bring the labels of a file to these states; the caller holds the lock."""
    keys = {topic.name.casefold(): topic.key for topic in session.live}
    events: list[Event] = []
    names = (name for rows in (given.labels, given.forbidden) for some in rows.values() for name in some)
    for name in sorted({topic_name(name) for name in names if name != NO_TOPIC}):
        if name.casefold() not in keys:
            topic = session.unused_topic(name, len(keys))
            keys[name.casefold()] = topic.key
            events.append(Event.of_topic(None, topic))
    for rows, state in ((given.labels, PERMITTED), (given.forbidden, FORBIDDEN)):
        for row, some in rows.items():
            if NO_TOPIC in some:
                states = session.none_states(FILE + source, int(row))
            else:
                own = CONFIRMED if state == PERMITTED and row in given.open_rows else state
                states = {keys[topic_name(name).casefold()]: own for name in some}
                states |= {WHOLE: CLEARED} if state == PERMITTED else {}
            events += session.label_events(FILE + source, int(row), states)
    return events
