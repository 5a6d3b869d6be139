"""Read-only answers to the pages about documents and topics, and the selections of documents."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.documents_to_label import FIRST_AT_RANDOM, Doubt, doubt_sentence
from topicsteer.analysis.prevalence import FEW_LABELS
from topicsteer.app.workbench import responses
from topicsteer.app.workbench.current_model import EVERYTHING, CurrentModel, Key
from topicsteer.app.workbench.errors import DECISION, Conflict, NotFound
from topicsteer.app.workbench.project import WHOLE, State, Topic
from topicsteer.app.workbench.session import Decision, LabelSession
from topicsteer.system.templates import visible

# A membership from which the model is sure.
STRONG = 0.8
# Characters of a document in the first answer, and in each further answer.
SHOWN, PART = 20_000, 200_000
# Documents shown per group of a split.
EXAMPLES = 3
# Documents per page of a list.
PAGE = 50
# Strength from which a word is marked.
WEAK = 0.12
Filter = Literal[
    "all", "labelled", "unlabelled", "strong", "uncertain", "disagreement", "people", "settled", "skipped", "later",
    "notes",
]  # fmt: skip
# Filters by predictions or by the labels of others, which blind mode has not.
REVEALING = ("strong", "uncertain", "disagreement", "people", "settled")
Sort = Literal["order", "strength", "uncertainty", "recent"]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Selection(NamedTuple):
    """A selection of documents.

    Parameters
    ----------
    who : str
        The person who asks.
    query : str
        Words that must occur.
    filter : str
        "all", "labelled", "unlabelled", "strong", "uncertain", "disagreement" (of label and model), "people" (with
        differing labels), "settled" (with a decision), "skipped" or "later" (by this person). "notes": with a note.
    key : int or str, optional
        Only documents of this known or free topic, by label or by the model; "none" for documents without a topic.
    """

    who: str
    query: str = ""
    filter: Filter = "all"
    key: Key | None = None


class Views:
    """Read-only answers about a session and its fitted model.

    Parameters
    ----------
    session : LabelSession
        The labels and topics.
    """

    def __init__(self, session: LabelSession) -> None:
        self.session = session
        self.project = session.project
        self.fitted: CurrentModel | None = None
        self.search = lru_cache(maxsize=32)(lambda query: np.asarray(session.project.search(query), dtype=np.int64))

    @property
    def shown(self) -> CurrentModel | None:
        """The model whose predictions are shown: none in blind mode."""
        return None if self.session.settings.blind else self.fitted

    def fitted_or_refuse(self) -> CurrentModel:
        """Return the model, or refuse without one."""
        if self.fitted is None:
            raise Conflict("There is no fitted model yet. Fit first.")
        return self.fitted

    def checks(self) -> list[Doubt]:
        """Return labels that look wrong and still stand, most doubtful first, explained with current names."""
        topics, found = self.session.topics, []
        for check in self.shown.record.checks if self.shown else ():
            decision = self.session.decisions.get(check.row, Decision())
            keys = decision.permitted if check.given == State.PERMITTED else decision.forbidden
            if check.topic in keys and not topics[check.topic].gone:
                rival = None if check.rival is None else topics[check.rival].name
                facts = (check.given, topics[check.topic].name, check.probability, rival, check.rival_probability)
                found.append(replace(check, why=doubt_sentence(*facts, check.only)))
        return found

    def progress(self) -> responses.Progress:
        """Return the numbers of the bar on every page."""
        session = self.session
        with session.lock:
            labelled = int(session.labelled.sum())
            fresh = session.changed_since(self.fitted.record.seq) if self.fitted else labelled
            drawn, wanted = session.origins.drawn(session.labelled), min(FIRST_AT_RANDOM, session.n)
            about = int(session.differing.sum()), fresh, session.n, session.seq
            return responses.Progress(labelled, drawn, wanted, *about)

    # --- one document ---

    def document(self, row: int, who: str) -> responses.DocumentView:
        """Return a document with marked words, labels and likely topics."""
        name, text, extra = self._document(row)
        head, fitted = text[:SHOWN], self.shown
        pieces = [responses.Piece(visible(head, 8 * SHOWN))]
        if fitted is not None:
            explanation = fitted.model.explain(head, row=row)
            keys = [fitted.column_keys[fitted.names.index(name)] for name in explanation.names]
            marked = (part for part in explanation.marked(WEAK) if part[0])
            pieces = [
                responses.Piece(visible(piece, 8 * SHOWN), None if k is None else keys[k], round(strength, 2))
                for piece, k, strength in marked
            ]
        return responses.DocumentView(
            row,
            visible(name, 200),
            {visible(column, 60): visible(value, 300) for column, value in extra.items() if value is not None},
            len(head),
            len(text),
            pieces,
            self._likely(row, 6),
            *self._none(row),
            self.labels(row, who),
        )

    def text(self, row: int, start: int) -> responses.TextPart:
        """Return a further part of a long document, without marks."""
        _, text, _ = self._document(row)
        start = min(start, len(text))
        return responses.TextPart(visible(text[start : start + PART], 8 * PART), min(start + PART, len(text)))

    def labels(self, row: int, who: str) -> responses.DocumentLabels:
        """Return the labels of a document: of this person, of others, and the topics on which people differ.

        In blind mode they are the labels of this person alone.
        """
        session = self.session
        with session.lock:
            others, notes = session.labels_of(row), session.notes_of(row)
            decision = session.decisions.get(row, Decision())
            mine, settled = others.pop(who, {}), others.pop(DECISION, {})
            if session.settings.blind:
                own = sorted(key for key, state in mine.items() if state in State.PRESENT)
                return responses.DocumentLabels(mine, {}, [], own, {}, {who: notes[who]} if who in notes else {})
            permitted, differing = sorted(decision.permitted), sorted(decision.differing)
            return responses.DocumentLabels(mine, others, differing, permitted, settled, notes)

    def _document(self, row: int) -> tuple[Hashable, str, dict[str, Any]]:
        if not 0 <= row < self.session.n:
            raise NotFound(f"There is no document number {row}.")
        return self.project.document(row)

    def _likely(self, row: int, n: int) -> list[responses.Likely]:
        """Return the most probable known topics of a document."""
        fitted = self.shown
        if fitted is None or not fitted.n_known:
            return []
        P, has = fitted.memberships[row], fitted.has[row]
        strongest = ((fitted.keys[k], k) for k in np.argsort(-P, kind="stable") if P[k] >= 0.01)
        found = ((key, k) for key, k in strongest if not self.session.topics[key].gone)
        return [responses.Likely(key, round(float(P[k]), 3), bool(has[k])) for key, k in islice(found, n)]

    def _none(self, row: int) -> tuple[float, bool]:
        """Return the probability that a document has none of the known topics, and whether that is predicted."""
        fitted = self.shown
        if fitted is None or not fitted.n_known:
            return 0.0, False
        return round(float(fitted.none[row]), 3), bool(fitted.has[row, -1])

    # --- many documents ---

    def documents(self, chosen: Selection, *, sort: Sort = "order", page: int = 0) -> responses.DocumentPage:
        """Return a page of documents, with the labels of the person who asks.

        Parameters
        ----------
        chosen : Selection
            The selection.
        sort : str
            "order" (of the table), "strength", "uncertainty" or "recent" (labels first).
        page : int
            Counted from 0.
        """
        with self.session.lock:
            rows = self._sorted(self._rows(chosen), chosen.key, sort)
            pages = max(-(-len(rows) // PAGE), 1)
            page = min(max(page, 0), pages - 1)
            shown = [int(row) for row in rows[page * PAGE : (page + 1) * PAGE]]
            labels = {row: self.labels(row, chosen.who) for row in shown}
        listed = []
        for row, (name, text) in self.project.beginnings(shown).items():
            beginning = visible(" ".join(text.split()), 240)
            about = (visible(name, 80), beginning, self._likely(row, 3), *self._none(row), labels[row])
            listed.append(responses.DocumentEntry(row, *about))
        return responses.DocumentPage(listed, len(rows), page, pages)

    def beginnings(self, rows: Sequence[int]) -> list[responses.Beginning]:
        """Return id and beginning of some documents."""
        if not all(0 <= row < self.session.n for row in rows):
            raise NotFound("There is no document with one of these numbers.")
        found = self.project.beginnings(list(dict.fromkeys(rows))).items()
        return [
            responses.Beginning(row, visible(name, 80), visible(" ".join(text.split()), 400))
            for row, (name, text) in found
        ]

    def rows(self, chosen: Selection) -> list[int]:
        """Return all rows of a selection, to label them together."""
        with self.session.lock:
            return [int(row) for row in self._rows(chosen)]

    def _rows(self, chosen: Selection) -> Rows:
        """Return the rows of a selection in the order of the table."""
        blind = self.session.settings.blind
        if blind and (chosen.filter in REVEALING or isinstance(chosen.key, str)):
            raise Conflict("Blind mode hides predictions and the labels of others. The page Settings has the setting.")
        keep = self._filtered(chosen)
        if query := chosen.query.strip():
            keep = keep & self._mask(self.search(query))
        if isinstance(chosen.key, str):
            fitted = self.fitted_or_refuse()
            keep = keep & fitted.has[:, fitted.number(chosen.key)]
        elif chosen.key is not None:
            key = self.session.topic(chosen.key).key
            keep = keep & (self._mask(self._own(chosen.who, key)) if blind else self._of_topic(key))
        return np.flatnonzero(keep)

    def _sorted(self, rows: Rows, key: Key | None, sort: Sort) -> Rows:
        fitted = self.shown
        rank: NDArray[np.floating | np.integer]
        if sort == "recent":
            rank = self.session.last_event
        elif sort == "order" or fitted is None:
            return rows
        else:
            rank = fitted.doubt if sort == "uncertainty" else fitted.strength(key)
        return rows[np.argsort(-rank[rows], kind="stable")]

    def _mask(self, rows: Rows | list[int]) -> Mask:
        mask = np.zeros(self.session.n, dtype=np.bool_)
        mask[rows] = True
        return mask

    def _own(self, who: str, key: int) -> list[int]:
        """Return the documents that a person labelled with a topic."""
        return [row for row in self._touched() if self.session.labels_of(row).get(who, {}).get(key) in State.PRESENT]

    def _of_topic(self, key: int) -> Mask:
        own = self._mask([])
        fitted = self.shown
        if fitted is not None and key in fitted.column:
            own |= fitted.has[:, fitted.column[key]]
        for row, decision in self.session.decisions.items():
            own[row] = key in decision.permitted or (own[row] and key not in decision.forbidden)
        return own

    def _filtered(self, chosen: Selection) -> Mask:
        session, fitted = self.session, self.shown
        known = chosen.key if isinstance(chosen.key, int) else None
        touched = self._touched()
        # Without a model no document is strong, and none is uncertain.
        strength = np.zeros(session.n) if fitted is None else fitted.strength(known)
        filters: dict[Filter, Callable[[], Mask]] = {
            "all": lambda: ~self._mask([]),
            "labelled": lambda: session.labelled,
            "unlabelled": lambda: ~session.labelled,
            "strong": lambda: np.asarray(strength >= STRONG),
            "uncertain": lambda: (np.abs(strength - 0.5) <= 0.25) & ~session.labelled,
            "disagreement": lambda: self._mask([check.row for check in self.checks()]),
            "people": lambda: session.differing,
            "settled": lambda: self._mask([row for row in touched if DECISION in session.votes_of(row)]),
            "skipped": lambda: self._mask(self.whole(chosen.who, State.SKIPPED)),
            "later": lambda: self._mask(self.whole(chosen.who, State.LATER)),
            "notes": lambda: self._mask([row for row in session.decisions if session.notes_of(row)]),
        }
        return filters[chosen.filter]()

    def whole(self, who: str, state: str) -> list[int]:
        """Return the documents that a person skipped, or put aside."""
        return [row for row in self._touched() if self.session.labels_of(row).get(who, {}).get(WHOLE) == state]

    def _touched(self) -> list[int]:
        """Return the documents with a label, now or earlier."""
        rows: list[int] = np.flatnonzero(self.session.last_event).tolist()
        return rows

    # --- topics ---

    def topics(self) -> responses.TopicLists:
        """Return known and free topics with the numbers of the last fit; in blind mode only the known ones."""
        fitted = self.shown
        with self.session.lock:
            known = [self._known(self.session.topics[key]) for key in self.session.tree.order]
        if fitted is None:
            return responses.TopicLists(known, [])
        free = [
            responses.FreeTopic(
                str(fitted.column_keys[k]),
                visible(fitted.names[k], 100),
                self._summary(fitted, k),
            )
            for k in range(fitted.n_known, len(fitted.result))
        ]
        none = fitted.n_known > 0 and (fitted.open or fitted.documents[-1] > 0)
        return responses.TopicLists(known, free, none, self._shares(fitted))

    def _shares(self, fitted: CurrentModel) -> dict[Key, responses.Share]:
        """Return shares of all documents with their intervals, if enough labels were drawn at random."""
        stored = fitted.record.shares.get(EVERYTHING)
        if stored is None or not self.session.origins.drawn(self.session.labelled):
            return {}
        arrays = (stored.arrays[name][0] for name in ("share", "low", "high", "drawn"))
        found = zip(stored.keys, *arrays, strict=True)
        known = ((key, numbers) for key, *numbers, drawn in found if numbers[1] is not None and drawn >= FEW_LABELS)
        return {key: responses.Share(*numbers) for key, numbers in known}

    def group(self, terms: Sequence[str], rows: Sequence[int], n: int) -> responses.GroupView:
        """Return a group of the documents of a topic; n of them are proposed as labels."""
        shown = [visible(term, 60) for term in terms]
        return responses.GroupView(shown, len(rows), list(rows[:n]), self.beginnings(rows[:EXAMPLES]))

    def _known(self, topic: Topic) -> responses.KnownTopic:
        tree = self.session.tree
        place = (tree.parents[topic.key], tree.level(topic.key))
        about = (topic.key, topic.name, topic.description, topic.colour, topic.keywords, topic.banned, *place)
        fitted, fit = self.shown, None
        if fitted is not None and topic.key in fitted.column:
            fit = self._summary(fitted, fitted.column[topic.key])
        return responses.KnownTopic(*about, self.session.counts[topic.key], fit)

    def _summary(self, fitted: CurrentModel, k: int) -> responses.TopicSummary:
        """Return terms and documents of a column."""
        terms = [responses.Term(visible(term, 60), round(float(strength), 3)) for term, strength in fitted.terms[k]]
        return responses.TopicSummary(terms, fitted.documents[k], fitted.result.kind(k) != "not found")
