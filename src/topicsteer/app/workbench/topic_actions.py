"""Actions on topics: create, change, move, merge, split off, delete and reorder them. The tree stays whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from topicsteer.app.workbench import label_state, text_rules
from topicsteer.app.workbench.actions import Plan, action
from topicsteer.app.workbench.errors import Conflict, Invalid
from topicsteer.app.workbench.event_log import CLEARED, PERMITTED, PRESENT, WHOLE, Batch, Event, Topic
from topicsteer.app.workbench.text_rules import MOST_WORDS

if TYPE_CHECKING:
    from topicsteer.app.workbench.session import LabelSession


@action("new topic")
def new_topic(
    session: LabelSession,
    who: str,
    *,
    name: str,
    description: str = "",
    documents: Sequence[int] = (),
    parent: int | None = None,
) -> Plan:
    """Create a topic, at the top or under another one, and label documents with it."""
    above = None if parent is None else session.topic(parent).key
    topic = replace(session.unused_topic(name, len(session.live), description), parent=above)
    events = [Event.of_topic(None, topic)]
    for row in session.check_rows(documents):
        events += session.first_events(who, row, permit(topic.key))
    return Batch(who, f"new topic {topic.name}"), events


@action("change topic")
def change_topic(
    session: LabelSession,
    who: str,
    *,
    key: int,
    name: str | None = None,
    description: str | None = None,
    colour: str | None = None,
    keywords: Sequence[str] | None = None,
    banned: Sequence[str] | None = None,
) -> Plan:
    """Change the name, description, colour, keywords or banned words of a topic; None leaves a field as it is.

    Names below it that are paths follow its new name.
    """
    old = session.topic(key)
    values: dict[str, Any] = {
        "name": None if name is None else session.unused_name(name, key),
        "description": None if description is None else text_rules.description(description),
        "colour": None if colour is None else text_rules.colour(colour),
        "keywords": None if keywords is None else text_rules.words(keywords),
        "banned": None if banned is None else text_rules.words(banned),
    }
    values = {field: value for field, value in values.items() if value is not None}
    new = replace(old, **values)
    # A word is never both: the list given now wins, and keywords win over banned words.
    if keywords is not None:
        new = replace(new, banned=tuple(w for w in new.banned if w not in new.keywords))
    else:
        new = replace(new, keywords=tuple(w for w in new.keywords if w not in new.banned))
    paths = _renamed_paths(session, key, new.name)
    return Batch(who, f"topic {new.name}: {', '.join(values)}"), _topic_events((old, new), *paths)


@action("move topic")
def move_topic(session: LabelSession, who: str, *, key: int, parent: int | None = None) -> Plan:
    """Put a topic, and all topics below it, under another one, or at the top.

    Labels stay, and their meaning follows the new tree. A name that is a path becomes its new path.
    """
    old, above = session.topic(key), None if parent is None else session.topic(parent)
    if above is not None and (above.key == key or above.key in session.tree.below(key)):
        below = "it" if above.key == key else f"“{above.name}”, which is below it"
        raise Conflict(f"“{old.name}” cannot be put under {below}: a tree of topics has no cycles.")
    separator = session.settings.path_separator
    own = session.tree.own_name(key, separator)
    name = old.name
    if separator is not None and own != old.name:
        name = session.unused_name(own if above is None else f"{above.name}{separator}{own}", key)
    new = replace(old, parent=None if above is None else above.key, name=name)
    where = "to the top" if above is None else f"under {above.name}"
    return Batch(who, f"move {old.name} {where}"), _topic_events((old, new), *_renamed_paths(session, key, name))


@action("delete topic")
def delete_topic(session: LabelSession, who: str, *, key: int) -> Plan:
    """Delete a topic; its labels stay in the log and return with it. Topics below it go up one level."""
    old = session.topic(key)
    up = [(t, replace(t, parent=session.tree.parents[key])) for t in _children(session, [key])]
    return Batch(who, f"delete topic {old.name}"), _topic_events((old, replace(old, gone=True)), *up)


@action("merge topics")
def merge_topics(session: LabelSession, who: str, *, keys: Sequence[int], into: int) -> Plan:
    """Merge topics into one: it takes over their labels, their keywords and the topics below them."""
    rest = [session.topic(key) for key in dict.fromkeys(keys) if key != into]
    kept, tree = session.topic(into), session.tree
    if not rest:
        raise Invalid("Choose at least two topics to merge.")
    group, below = [into, *(t.key for t in rest)], _children(session, [t.key for t in rest])
    events = []
    for row, people in session.labels.items():
        for person, labels in people.items():
            if (state := label_state.merged_state(labels, (kept, *rest), not below)) is not None:
                events += session.label_events(person, row, {into: state, **{t.key: CLEARED for t in rest}})
    keywords = tuple(dict.fromkeys(w for t in (kept, *rest) for w in t.keywords))[:MOST_WORDS]
    # The topmost of them has the place in the tree, as in `Codebook.merge`.
    parent = tree.parents[min(group, key=tree.level)]
    new = replace(kept, keywords=keywords, banned=tuple(w for w in kept.banned if w not in keywords), parent=parent)
    events += _topic_events((kept, new), *((t, replace(t, gone=True)) for t in rest))
    events += _topic_events(*((t, replace(t, parent=into)) for t in below if t.key != into))
    return Batch(who, f"merge {', '.join(t.name for t in rest)} into {kept.name}"), events


@action("split topic")
def split_topic(session: LabelSession, who: str, *, key: int, name: str, documents: Sequence[int]) -> Plan:
    """Move documents from a topic to a new one below the same parent, for everybody who labelled them."""
    old = session.topic(key)
    rows = session.check_rows(documents)
    if not rows:
        raise Invalid("Choose the documents of the new topic.")
    new = replace(session.unused_topic(name, len(session.live)), parent=session.tree.parents[key])
    events = [Event.of_topic(None, new)]
    for row in rows:
        given = session.labels[row].items()
        people = {p: state for p, own in given if (state := own.get(key, (CLEARED, 0))[0]) in PRESENT}
        for person, state in (people | {who: people.get(who, PERMITTED)}).items():
            cleared = {key: CLEARED} if person in people else {}
            events += session.label_events(person, row, cleared | permit(new.key) | {new.key: state})
    return Batch(who, f"split {new.name} off {old.name}"), events


@action("order topics")
def order_topics(session: LabelSession, who: str, *, keys: Sequence[int]) -> Plan:
    """Reorder the topics; unnamed topics follow in their present order."""
    first = [session.topic(key) for key in dict.fromkeys(keys)]
    order = [*first, *(t for t in session.live if t not in first)]
    return Batch(who, "order of topics"), _topic_events(*((t, replace(t, position=k)) for k, t in enumerate(order)))


def permit(key: int) -> dict[int, str]:
    """Return the states of a document with a topic."""
    return {key: PERMITTED, WHOLE: CLEARED}


def _children(session: LabelSession, keys: Sequence[int]) -> list[Topic]:
    """Return the topics directly below some topics, without these topics themselves."""
    parents = session.tree.parents
    return [session.topics[key] for key, parent in parents.items() if parent in keys and key not in keys]


def _renamed_paths(session: LabelSession, key: int, name: str) -> list[tuple[Topic, Topic]]:
    """Return pairs of old and new topics below a topic, whose names are paths that begin with its name."""
    separator, old = session.settings.path_separator, session.topics[key].name
    if separator is None or old == name:
        return []
    below = [session.topics[other] for other in session.tree.below(key)]
    found = [t for t in below if t.name.startswith(old + separator)]
    return [(t, replace(t, name=session.unused_name(name + t.name[len(old) :], t.key))) for t in found]


def _topic_events(*topics: tuple[Topic, Topic]) -> list[Event]:
    """Return the events of changed topics, from pairs of old and new."""
    return [Event.of_topic(old, new) for old, new in topics if new != old]
