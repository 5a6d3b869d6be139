"""Documents for several people: every n-th document that gets its first label is labelled by others as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topicsteer.app.workbench.event_log import CLEARED, LATER, SKIPPED, WHOLE, Event
from topicsteer.app.workbench.text_rules import is_person

if TYPE_CHECKING:
    from topicsteer.app.workbench.session import LabelSession


class Overlap:
    """The documents in the order of their first label by a person.

    The order comes from the event log. So the choice is the same after a restart, and an undone label does not move it.
    """

    def __init__(self) -> None:
        self._order: dict[int, None] = {}

    def apply(self, seq: int, event: Event) -> None:
        """Take note of a first label; files, decisions and skipped documents do not count."""
        label = event.key >= WHOLE and event.state not in (CLEARED, SKIPPED, LATER)
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


def labellers(session: LabelSession, row: int) -> set[str]:
    """Return the people with a label for a document; skipped documents have none."""
    found = session.labels_of(row).items()
    aside = ({WHOLE: SKIPPED}, {WHOLE: LATER})
    return {person for person, states in found if is_person(person) and states not in aside}


def due_rows(session: LabelSession, who: str) -> list[int]:
    """Return the documents that a person labels as well, because too few people have labelled them."""
    every, wanted = session.settings.overlap, session.settings.overlap_people
    own = session.labelled_by.get(who)
    rows = [row for row in session.overlap.rows(every) if own is None or not own[row]]
    return [row for row in rows if 0 < len(labellers(session, row)) < wanted]
