"""The labelling queue: the next document per person and the reason for it.

The queue is the only stateful part behind the pages: a document that one person reads is kept from the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.documents_to_label import questions
from topicsteer.app.workbench.current_model import Key
from topicsteer.app.workbench.errors import Conflict
from topicsteer.app.workbench.project import State
from topicsteer.app.workbench.responses import NextDocument
from topicsteer.app.workbench.views import Rows, Views

# Seed of the random sample. It is no usual seed: data that were made with the same one would follow the sample.
SEED = 832_094_117
# Seconds for which a document is kept from the others.
HELD = 600.0
# Greatest number of documents of a topic in the queue.
STRONGEST = 5_000
# The reason for a document that another person labelled; it does not reveal the label.
SEVERAL = "This document is for several people. Label it as if you were the first."
Mode = Literal["suggested", "random", "search", "topic", "check", "question", "later"]
# Modes that show predictions, so that blind mode has none of them; its suggestions are documents at random.
BY_MODEL = ("topic", "check", "question")


class Source(NamedTuple):
    """Documents of one mode: rows in order, a reason from position and row, and a text for an empty queue.

    ``keys`` are the topics that questions are about, one per row.
    """

    rows: Rows
    reason: Callable[[int, int], str]
    empty: str
    keys: Rows | None = None


class Queue:
    """The documents to label next.

    Parameters
    ----------
    views : Views
        The session and its fitted model.
    """

    def __init__(self, views: Views) -> None:
        self.views = views
        self.session = views.session
        # A number per document: those below any limit are a random sample, also after documents were added.
        self._shuffled = np.argsort(np.random.default_rng(SEED).random(self.session.n), kind="stable")
        # The document that each person reads, and since when.
        self._held: dict[str, tuple[int, float]] = {}

    def next(
        self, who: str, mode: Mode = "random", *, query: str = "", key: Key | None = None, seen: Sequence[int] = ()
    ) -> NextDocument:
        """Return the next document for a person and the reason for it.

        Parameters
        ----------
        who : str
            The person. Documents that this person labelled or skipped do not come again.
        mode : str
            "random", "suggested", "search" (with a query), "topic" (with its key) or "check" (labels that look wrong).
            "question" asks about one topic
            at a time, or about the topic with the key. "later" has the documents that this person put aside. "random"
            is a random sample of all documents, also where "suggested" has none left, and in blind mode. Documents
            that need a further person come first in both.
        query, key
            For the modes that need them.
        seen : sequence of int
            Documents that this person has seen: they come again only by going back.
        """
        if self.session.settings.blind and mode in BY_MODEL:
            raise Conflict("In blind mode, documents come at random or from a search. See the page Settings.")
        if self.session.settings.blind and mode == "suggested":
            mode = "random"
        with self.session.lock:
            rows, reason, empty, keys = self._source(mode, query.strip(), key, who)
            self._held.pop(who, None)  # who asks for the next document has left the last one
            done, now = self._finished(who, mode, key), time.monotonic()
            due = self.session.due_rows(who) if mode in ("suggested", "random") else []
            done[due] = False
            done[[row for row in seen if 0 <= row < len(done)]] = True
            held = [row for other, (row, at) in self._held.items() if other != who and now - at < HELD]
            done[held] = True
            if first := [row for row in due if not done[row]]:
                self._held[who] = (first[0], now)
                return NextDocument(first[0], SEVERAL, len(first))
            left = np.flatnonzero(~done[rows])
            if not len(left) and mode == "suggested":
                return self.next(who, "random", seen=seen)
            if not len(left):
                return NextDocument(None, empty, 0)
            position = int(left[0])
            row = int(rows[position])
            self._held[who] = (row, now)
            self.session.origins.served[row] = State.RANDOM if mode == "random" else State.SUGGESTED
            asked = None if keys is None else int(keys[position])
            return NextDocument(row, reason(position, row), len(left), asked)

    def _source(self, mode: Mode, query: str, key: Key | None, who: str) -> Source:
        if mode == "later":
            aside = np.array(self.views.whole(who, State.LATER), dtype=np.int64)
            return Source(aside, lambda position, row: "You put it aside.", "No document is put aside.")
        if mode == "search":
            rows = self.views.search(query)
            empty = f"No more documents match “{query}”." if query else "Enter words to search for."
            return Source(rows, lambda position, row: f"Match {position + 1:,} of {len(rows):,} for “{query}”.", empty)
        if mode == "check":
            doubts: dict[int, str] = {}
            for check in self.views.checks():
                doubts.setdefault(check.row, check.why)  # the strongest doubt per document
            found = np.fromiter(doubts, dtype=np.int64)
            why = {row: _sentence(text) for row, text in doubts.items()}
            return Source(found, lambda position, row: why[row], "No label looks wrong to the model.")
        if mode == "question":
            return self._questions(key)
        if mode == "topic":
            return self._strongest(key)
        return self._suggested() if mode == "suggested" else self._at_random()

    def _suggested(self) -> Source:
        fitted, why = self.views.fitted, dict[int, str]()
        if fitted is not None and fitted.suggestions:
            why = {one.row: _sentence(one.why) for one in fitted.suggestions}
        return Source(np.fromiter(why, dtype=np.int64), lambda position, row: why[row], "")

    def _at_random(self) -> Source:
        unlabelled = int((~self.session.labelled).sum())
        text = f"At random, from {unlabelled:,} unlabelled documents."
        empty = "All documents are labelled or skipped by you." if unlabelled else "All documents are labelled."
        return Source(self._shuffled, lambda position, row: text, empty)

    def _strongest(self, key: Key | None) -> Source:
        fitted, name = self.views.fitted, ""
        strength: NDArray[np.floating] = np.zeros(0)
        proposed: list[int] = []
        if fitted is not None and isinstance(key, str):
            strength = fitted.strength(key)
            name = fitted.names[fitted.number(key)]
        elif fitted is not None:
            topic = self.session.topic(key)
            name = topic.name
            strength = fitted.strength(key) if key in fitted.column else strength
            proposed = fitted.record.proposed.get(topic.key, [])
        rows = np.argsort(-strength, kind="stable")[:STRONGEST]
        rows = rows[(strength[rows] > 0.01) & ~np.isin(rows, proposed)]
        empty = "No more documents of this topic." if fitted else "The first fit finds the documents of a topic."

        def reason(position: int, row: int) -> str:
            if position < len(proposed):
                before = " It was labelled with none of the topics." if self.session.labelled[row] else ""
                return f"Proposed for “{name}”, from a free topic.{before}"
            return f"One of the strongest documents of “{name}” ({strength[row]:.0%})."

        return Source(np.concatenate([np.array(proposed, dtype=np.int64), rows]), reason, empty)

    def _questions(self, key: Key | None) -> Source:
        """Questions about one topic at a time; a document with a known topic is not asked about others."""
        fitted, session = self.views.fitted, self.session
        if fitted is None:
            return Source(np.zeros(0, dtype=np.int64), lambda position, row: "", "Questions start with the first fit.")
        live = {topic.key for topic in session.live}
        asked = [own for own in fitted.keys if own in live and key in (None, own)]
        wanted, place = [fitted.column[own] for own in asked], {own: i for i, own in enumerate(asked)}
        yes, answers = np.zeros((2, len(wanted)), dtype=np.int64)
        finished, denied = np.zeros(session.n, dtype=np.bool_), dict[int, list[int]]()
        for row, decision in session.decisions.items():
            finished[row] = decision.permitted or decision.forbidden >= live
            for i in (place[k] for k in decision.permitted if k in place):
                yes[i] += 1
                answers[i] += 1
            if not finished[row]:  # answers to questions, not "none of these"
                for i in (place[k] for k in decision.forbidden if k in place):
                    denied.setdefault(i, []).append(row)
                    answers[i] += 1
        found = questions(fitted.memberships[:, wanted], fitted.thresholds[wanted], finished, denied, yes, answers)
        asked_about = [asked[one.topic] for one in found]
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *(one.rows for one in found)])
        keys = np.repeat(np.array(asked_about, dtype=np.int64), [len(one.rows) for one in found])

        def reason(position: int, row: int) -> str:
            about = int(keys[position])
            likely = fitted.memberships[row, fitted.column[about]]
            return f"The model gives “{session.topic(about).name}” {likely:.0%} here."

        return Source(rows, reason, "No more questions: fit again, or choose documents another way.", keys)

    def _finished(self, who: str, mode: Mode, key: Key | None) -> NDArray[np.bool_]:
        """Return the documents that a person need not see again.

        Documents with anybody's label are finished in the modes "suggested" and "random". A document can be asked about
        several topics. Proposed documents without a topic are finished when they have an answer.
        """
        session, none = self.session, np.zeros(self.session.n, dtype=np.bool_)
        if mode in ("check", "later"):
            return none
        if mode == "question":
            none[[*self.views.whole(who, State.SKIPPED), *self.views.whole(who, State.LATER)]] = True
            return none
        done = session.labelled_by.get(who, none) | (session.labelled if mode in ("suggested", "random") else none)
        if mode == "topic" and isinstance(key, int) and self.views.fitted is not None:
            done[[row for row in self.views.fitted.record.proposed.get(key, ()) if session.open_none(row, key)]] = False
        return done


def _sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
