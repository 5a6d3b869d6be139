"""How labelled documents were chosen: drawn at random, or by the model or a person."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from topicsteer.app.workbench.event_log import CLEARED, ORIGIN, SKIPPED, SUGGESTED, WHOLE, Event


class Origins:
    """The choice of each labelled document; it is stored with the first label, as an event of the log.

    ``served`` has the documents that people read now, and how they were chosen.
    """

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self.served: dict[int, str] = {}

    def apply(self, seq: int, event: Event) -> None:
        """Take note of an event, if it is about the choice of a document."""
        if event.key == ORIGIN and event.document is not None:
            self._known.pop(event.document, None)  # the order is that of the events
            self._known[event.document] = event.state
        elif event.key == WHOLE and event.state == SKIPPED and event.document is not None:
            self.served.pop(event.document, None)  # whoever labels it later chose it

    def states(self, row: int, labelled: NDArray[np.bool_]) -> Mapping[int, str]:
        """Return the choice of a document as a further state of its first label; a person's own choice is no draw."""
        new = not labelled[row] and self._known.get(row, CLEARED) == CLEARED
        return {ORIGIN: self.served.get(row, SUGGESTED)} if new else {}

    def chosen(self, labelled: NDArray[np.bool_]) -> dict[int, str]:
        """Return how labelled documents were chosen, where it is known; documents of files are missing.

        Rounds of equal choices in a row are numbered: "random", "suggested 2", "random 3".
        """
        found: dict[int, str] = {}
        number, last = 0, ""
        for row, how in list(self._known.items()):
            if how != CLEARED and labelled[row]:
                number, last = (number, how) if how == last else (number + 1, how)
                found[row] = how if number == 1 else f"{how} {number}"
        return found
