"""Actions of people who work in a team: settle a disagreement, put a document aside, write a note."""

from __future__ import annotations

import json
from collections.abc import Sequence

from topicsteer.app.workbench import text_rules
from topicsteer.app.workbench.actions import Plan, action
from topicsteer.app.workbench.errors import Invalid
from topicsteer.app.workbench.event_log import CLEARED, CONFIRMED, FORBIDDEN, LATER, NOTE, PERMITTED, WHOLE, Batch
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.text_rules import DECISION


@action("settle")
def settle(session: LabelSession, who: str, *, document: int, key: int, state: str) -> Plan:
    """Settle whether a document has a topic ("permitted" or "forbidden"), or open the question again ("cleared").

    The labels of people stay as they are. The decision counts instead of the majority, for this topic alone.
    """
    if state not in (PERMITTED, FORBIDDEN, CLEARED):
        raise Invalid(f"A decision is permitted, forbidden or cleared, not {state!r}.")
    (row,), topic = session.check_rows([document]), session.topic(key)
    decision = CONFIRMED if state == PERMITTED else state  # a single fact: the other topics stay as they are
    return Batch(who, f"settled {topic.name}"), session.label_events(DECISION, row, {key: decision})


@action("later")
def later(session: LabelSession, who: str, *, documents: Sequence[int]) -> Plan:
    """Put documents aside: they get no label now, and come again when this person asks for them."""
    rows = session.check_rows(documents)
    return Batch(who, LATER), [event for row in rows for event in session.label_events(who, row, {WHOLE: LATER})]


@action("note")
def note(session: LabelSession, who: str, *, document: int, text: str) -> Plan:
    """Write a note on a document; an empty one removes it."""
    (row,) = session.check_rows([document])
    kept = text_rules.note(text)
    state = json.dumps(kept, ensure_ascii=False) if kept else CLEARED
    return Batch(who, "note"), session.label_events(who, row, {NOTE: state})
