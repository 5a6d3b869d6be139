"""Actions of people on labels, topics and settings: one type per action, and `apply`, which plans it and commits it.

A page sends the same types as JSON; the field ``action`` names the type. A new action is a type, a member of `Action`
and a case of `plan`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from topicsteer.app.workbench.errors import (
    DECISION,
    MOST_WORDS,
    Conflict,
    Invalid,
    document_note,
    person_name,
    topic_description,
    topic_words,
)
from topicsteer.app.workbench.project import NOTE, WHOLE, Batch, Event, State, Topic
from topicsteer.app.workbench.session import Change, LabelSession, merged_state

Row: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 40)]
Plan: TypeAlias = tuple[Batch, Sequence[Event]]
# Rules for the fields of a topic except its name.
TOPIC_RULES: dict[str, Callable[[Any], Any]] = {
    "description": topic_description,
    "keywords": topic_words,
    "banned": topic_words,
}


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A message of a page, with the name of the person who uses it."""

    who: str = ""

    @property
    def person(self) -> str:
        """The name of the person on one line."""
        return person_name(self.who)


class AnAction(Message, frozen=True, tag_field="action"):
    """An action. A repeated request of the same name acts once."""

    request: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


class Label(AnAction, frozen=True, kw_only=True, tag="label"):
    """Label documents: they have a topic ("permitted") or not ("forbidden"), or the label goes ("cleared").

    The state "rest" means the topic, and none of the topics below it.
    """

    documents: Sequence[Row]
    key: int
    state: Literal["permitted", "forbidden", "rest", "cleared"]


class Answer(AnAction, frozen=True, kw_only=True, tag="answer"):
    """Answer a question about one topic of a document, yes ("permitted") or no ("forbidden").

    The answer is a single fact. Topics that nobody asked about stay open, also if labels are complete.
    """

    document: Row
    key: int
    state: Literal["permitted", "forbidden"]


class NoneOfThese(AnAction, frozen=True, kw_only=True, tag="none"):
    """Label documents with none of the topics; permitted topics are cleared."""

    documents: Sequence[Row]


class Skip(AnAction, frozen=True, kw_only=True, tag="skip"):
    """Skip documents: they get no label and do not come up again."""

    documents: Sequence[Row]


class Later(AnAction, frozen=True, kw_only=True, tag="later"):
    """Put documents aside: they get no label now, and come again when this person asks for them."""

    documents: Sequence[Row]


class Settle(AnAction, frozen=True, kw_only=True, tag="settle"):
    """Settle whether a document has a topic ("permitted" or "forbidden"), or open the question again ("cleared").

    The labels of people stay as they are. The decision counts instead of the majority, for this topic alone.
    """

    document: Row
    key: int
    state: Literal["permitted", "forbidden", "cleared"]


class WriteNote(AnAction, frozen=True, kw_only=True, tag="note"):
    """Write a note on a document; an empty one removes it."""

    document: Row
    text: str


class Undo(AnAction, frozen=True, tag="undo"):
    """Undo the last action of this person."""


class Redo(AnAction, frozen=True, tag="redo"):
    """Redo the last undone action of this person."""


class NewTopic(AnAction, frozen=True, kw_only=True, tag="new topic"):
    """Create a topic, at the top or under another one, and label documents with it."""

    name: str
    description: str = ""
    documents: Sequence[Row] = ()
    parent: int | None = None


class ChangeTopic(AnAction, frozen=True, kw_only=True, tag="change topic"):
    """Change the name, description, keywords or banned words of a topic.

    Names below it that are paths follow its new name.
    """

    key: int
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    keywords: Sequence[str] | UnsetType = UNSET
    banned: Sequence[str] | UnsetType = UNSET


class MoveTopic(AnAction, frozen=True, kw_only=True, tag="move topic"):
    """Put a topic, and all topics below it, under another one, or at the top.

    Labels stay, and their meaning follows the new tree. A name that is a path becomes its new path.
    """

    key: int
    parent: int | None = None


class DeleteTopic(AnAction, frozen=True, kw_only=True, tag="delete topic"):
    """Delete a topic; its labels stay in the log and return with it. Topics below it go up one level."""

    key: int


class MergeTopics(AnAction, frozen=True, kw_only=True, tag="merge topics"):
    """Merge topics into one: it takes over their labels, their keywords and the topics below them."""

    keys: Sequence[int]
    into: int


class OrderTopics(AnAction, frozen=True, kw_only=True, tag="order topics"):
    """Reorder the topics; unnamed topics follow in their present order."""

    keys: Sequence[int]


class ChangeSettings(AnAction, frozen=True, kw_only=True, tag="settings"):
    """Change fields of `ProjectSettings`, which checks the values; nobody undoes that."""

    values: dict[str, Any]


Action: TypeAlias = (
    Label | Answer | NoneOfThese | Skip | Later | Settle | WriteNote | Undo | Redo | NewTopic | ChangeTopic | MoveTopic
    | DeleteTopic | MergeTopics | OrderTopics | ChangeSettings
)  # fmt: skip


def apply(session: LabelSession, who: str, action: Action) -> Change:
    """Apply the action of a person, once per request."""
    with session.lock:
        earlier = None if action.request is None else session.project.log.batch_of(action.request)
        if earlier is not None:
            return Change(earlier, repeated=True)
        if isinstance(action, ChangeSettings):
            return session.change_settings(**action.values)
        batch, events = plan(session, who, action)
        return session.commit(batch._replace(request=action.request), events)


def plan(session: LabelSession, who: str, action: Action) -> Plan:
    """Return the events of an action; the caller holds the lock."""
    match action:
        case Label(documents=documents, key=key, state=state):
            batch = Batch(who, f"{state} {session.topic(key).name}")
            states = {key: state} | ({WHOLE: State.CLEARED} if state in State.PRESENT else {})
            rows = session.check_rows(documents)
            return batch, [event for row in rows for event in session.first_events(who, row, states)]
        case Answer(document=document, key=key, state=state):
            (row,) = session.check_rows([document])
            answer: str = state
            note = f"no, {session.topic(key).name}"
            if state == State.PERMITTED:  # a complete label stays complete
                answer = State.PERMITTED if session.state_of(who, row, key) == State.PERMITTED else State.CONFIRMED
                note = f"yes, {session.topic(key).name}"
            return Batch(who, note), session.first_events(who, row, {key: answer, WHOLE: State.CLEARED})
        case NoneOfThese(documents=documents):
            events = list[Event]()
            for row in session.check_rows(documents):
                events += session.first_events(who, row, session.none_states(who, row))
            return Batch(who, State.NONE), events
        case Skip(documents=documents) | Later(documents=documents):
            aside = State.SKIPPED if isinstance(action, Skip) else State.LATER
            rows = session.check_rows(documents)
            return Batch(who, aside), [e for row in rows for e in session.label_events(who, row, {WHOLE: aside})]
        case Settle(document=document, key=key, state=state):
            (row,) = session.check_rows([document])
            # A single fact: the other topics stay as they are.
            decision = State.CONFIRMED if state == State.PERMITTED else state
            batch = Batch(who, f"settled {session.topic(key).name}")
            return batch, session.label_events(DECISION, row, {key: decision})
        case WriteNote(document=document, text=text):
            (row,) = session.check_rows([document])
            kept = document_note(text)
            stored = json.dumps(kept, ensure_ascii=False) if kept else State.CLEARED
            return Batch(who, "note"), session.label_events(who, row, {NOTE: stored})
        case Undo() | Redo():
            kind = "undo" if isinstance(action, Undo) else "redo"
            target, events = session.revert_events(who, kind)
            return Batch(who, kind, kind=kind, target=target), events
        case NewTopic():
            return _new_topic(session, who, action)
        case ChangeTopic():
            return _change_topic(session, who, action)
        case MoveTopic():
            return _move_topic(session, who, action)
        case DeleteTopic(key=key):
            old = session.topic(key)
            up = [(t, replace(t, parent=session.tree.parents[key])) for t in _children(session, [key])]
            return Batch(who, f"delete topic {old.name}"), _topic_events((old, replace(old, gone=True)), *up)
        case MergeTopics():
            return _merge_topics(session, who, action)
        case OrderTopics(keys=keys):
            first = [session.topic(key) for key in dict.fromkeys(keys)]
            order = [*first, *(t for t in session.live if t not in first)]
            moved = ((t, replace(t, position=k)) for k, t in enumerate(order))
            return Batch(who, "order of topics"), _topic_events(*moved)
    raise Invalid(f"There is no action {action!r}.")


def _new_topic(session: LabelSession, who: str, action: NewTopic) -> Plan:
    above = None if action.parent is None else session.topic(action.parent).key
    topic = session.unused_topic(action.name, len(session.live), action.description)
    events = [Event.of_topic(None, replace(topic, parent=above))]
    for row in session.check_rows(action.documents):
        events += session.first_events(who, row, {topic.key: State.PERMITTED, WHOLE: State.CLEARED})
    return Batch(who, f"new topic {topic.name}"), events


def _change_topic(session: LabelSession, who: str, action: ChangeTopic) -> Plan:
    old = session.topic(action.key)
    fields = msgspec.structs.asdict(action).items()
    values = {name: value for name, value in fields if name not in ("who", "request", "key") and value is not UNSET}
    if "name" in values:
        values["name"] = session.unused_name(values["name"], old.key)
    for field, rule in TOPIC_RULES.items():
        if field in values:
            values[field] = rule(values[field])
    new = replace(old, **values)
    # A word is never both: the list given now wins, and keywords win over banned words.
    if "keywords" in values:
        new = replace(new, banned=tuple(w for w in new.banned if w not in new.keywords))
    else:
        new = replace(new, keywords=tuple(w for w in new.keywords if w not in new.banned))
    paths = _renamed_paths(session, old.key, new.name)
    return Batch(who, f"topic {new.name}: {', '.join(values)}"), _topic_events((old, new), *paths)


def _move_topic(session: LabelSession, who: str, action: MoveTopic) -> Plan:
    key, old = action.key, session.topic(action.key)
    above = None if action.parent is None else session.topic(action.parent)
    if above is not None and key in (above.key, *session.tree.above(above.key)):
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


def _merge_topics(session: LabelSession, who: str, action: MergeTopics) -> Plan:
    rest = [session.topic(key) for key in dict.fromkeys(action.keys) if key != action.into]
    kept, tree = session.topic(action.into), session.tree
    if not rest:
        raise Invalid("Choose at least two topics to merge.")
    below = _children(session, [t.key for t in rest])
    events = []
    for row, people in session.labels.items():
        for person, labels in people.items():
            if (state := merged_state(labels, (kept, *rest), not below)) is not None:
                events += session.label_events(person, row, {kept.key: state, **{t.key: State.CLEARED for t in rest}})
    keywords = tuple(dict.fromkeys(w for t in (kept, *rest) for w in t.keywords))[:MOST_WORDS]
    # The topmost of them has the place in the tree, as in `Codebook.merge`.
    parent = tree.parents[min([kept.key, *(t.key for t in rest)], key=tree.level)]
    new = replace(kept, keywords=keywords, banned=tuple(w for w in kept.banned if w not in keywords), parent=parent)
    events += _topic_events((kept, new), *((t, replace(t, gone=True)) for t in rest))
    events += _topic_events(*((t, replace(t, parent=kept.key)) for t in below if t.key != kept.key))
    return Batch(who, f"merge {', '.join(t.name for t in rest)} into {kept.name}"), events


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
