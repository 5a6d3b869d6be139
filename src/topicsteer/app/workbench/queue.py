"""Which document comes next for a person, and why; a document that one person reads is kept from the others."""

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from topicsteer.app.workbench.decisions import Refused
from topicsteer.app.workbench.views import Rows, Views

HELD = 600.0  # seconds for which a document is kept from the others
STRONGEST = 5_000  # documents of a topic that come one after the other
MODES = ("suggested", "random", "search", "topic", "free", "check")
# Rows in their order; why one comes, from its place in the queue and the row; and what is said when none is left
Source = tuple[Rows, Callable[[int, int], str], str]


class Queue:
    """What to label next.

    Parameters
    ----------
    views : Views
        The session and its fitted model.
    """

    def __init__(self, views: Views) -> None:
        self.views = views
        self.session = views.session
        self._shuffled = np.random.default_rng(0).permutation(self.session.n)
        self._held: dict[str, tuple[int, float]] = {}

    def next(
        self, who: str, mode: str = "suggested", *, query: str = "", topic: int | None = None, seen: Sequence[int] = ()
    ) -> dict[str, object]:
        """The next document for a person and why; ``row`` is None with a reason when there is none.

        Parameters
        ----------
        who : str
            Documents that this person labelled or skipped do not come again.
        mode : str
            "suggested", "random", "search" (with a query), "topic" (with its number), "free" (the same for free
            topics) or "check" (labels that look wrong).
        query, topic
            For the modes that need them.
        seen : sequence of int
            Documents that are on the person's own pile: they come again only by going back.
        """
        if mode not in MODES:
            raise Refused(f"documents come in one of the ways {', '.join(MODES)}.")
        with self.session.lock:
            rows, reason, nothing = self._source(mode, query.strip(), topic)
            done, now = self._finished(who, mode), time.monotonic()
            done[[row for row in seen if 0 <= row < len(done)]] = True
            done[[row for other, (row, at) in self._held.items() if other != who and now - at < HELD]] = True
            left = np.flatnonzero(~done[rows])
            if not len(left):
                return {"row": None, "why": nothing, "left": 0}
            place = int(left[0])
            row = int(rows[place])
            self._held[who] = (row, now)
            return {"row": row, "why": reason(place, row), "left": len(left)}

    def _source(self, mode: str, query: str, topic: int | None) -> Source:
        if mode == "search":
            rows = self.views.search(query)
            nothing = f"No more documents match “{query}”." if query else "Type what to search for."
            return rows, lambda place, row: f"Match {place + 1:,} of {len(rows):,} for “{query}”.", nothing
        if mode == "check":
            doubts: dict[int, str] = {}
            for check in self.views.checks():
                doubts.setdefault(check.row, check.why)  # the strongest one of each document
            found = np.fromiter(doubts, dtype=np.int64)
            why = {row: f"{text[0].upper()}{text[1:]}." for row, text in doubts.items()}
            return found, lambda place, row: why[row], "No label looks wrong to the model."
        return self._strongest(mode, topic) if mode in ("topic", "free") else self._suggested(mode)

    def _suggested(self, mode: str) -> Source:
        fitted, nothing = self.views.fitted, "All documents are labelled."
        if mode == "suggested" and fitted is not None and fitted.meta.get("suggestions"):
            why = {s["row"]: s["why"] for s in fitted.meta["suggestions"]}
            rows = np.fromiter(why, dtype=np.int64)
            rest = self._shuffled[~np.isin(self._shuffled, rows)]
            spent = "At random: the suggestions of the last fit are used up; fit again for new ones."
            return np.concatenate([rows, rest]), lambda place, row: why.get(row, spent), nothing
        unlabelled = int((~self.session.labelled).sum())
        waiting = "Suggestions come with the first fit." if fitted is None else "Suggestions are being worked out."
        first = f" {waiting}" if mode == "suggested" else ""
        return self._shuffled, lambda place, row: f"At random, of {unlabelled:,} without a label.{first}", nothing

    def _strongest(self, mode: str, topic: int | None) -> Source:
        fitted, name = self.views.fitted, ""
        strength: NDArray[np.floating] = np.zeros(0)
        if fitted is not None and mode == "free":
            strength = self.views.free_share(topic)
            name = fitted.result.names[fitted.n_known + (topic or 0)]
        elif fitted is not None:
            name = self.session.live_topic(topic).name
            strength = fitted.strength(topic) if topic in fitted.column else strength
        rows = np.argsort(-strength, kind="stable")[:STRONGEST]
        rows = rows[strength[rows] > 0.01]
        nothing = "No more documents of this topic." if fitted else "Topics have documents after the first fit."
        return rows, lambda place, row: f"One of the strongest documents of “{name}” ({strength[row]:.0%}).", nothing

    def _finished(self, who: str, mode: str) -> NDArray[np.bool_]:
        """Documents a person need not see again: theirs, or (suggested and random) with anybody's label."""
        session, none = self.session, np.zeros(self.session.n, dtype=np.bool_)
        if mode == "check":
            return none
        return session.spoken.get(who, none) | (session.labelled if mode in ("suggested", "random") else none)
