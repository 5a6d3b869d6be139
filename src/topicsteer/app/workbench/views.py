"""Read-only answers to the pages about documents and topics."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from topicsteer.analysis.suggest import Doubt, doubt_sentence
from topicsteer.app.workbench.answers import (
    Beginning,
    DocumentEntry,
    DocumentLabels,
    DocumentPage,
    DocumentView,
    FreeTopic,
    KnownTopic,
    LabelEffect,
    Likely,
    Neighbour,
    NoTopic,
    Piece,
    Progress,
    Term,
    TextPart,
    TopicLists,
    TopicPart,
    TopicSummary,
)
from topicsteer.app.workbench.copies import Copies
from topicsteer.app.workbench.current_model import CurrentModel
from topicsteer.app.workbench.errors import NotFound
from topicsteer.app.workbench.event_log import PERMITTED, PRESENT, Topic
from topicsteer.app.workbench.label_state import Decision
from topicsteer.app.workbench.selection import Rows, Selection, Selector, Sort
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.text_rules import DECISION
from topicsteer.system.safe_text import visible

# Characters of a document in the first answer.
SHOWN = 20_000
# Characters of a document in each further answer.
PART = 200_000
# Documents per page of a list.
PAGE = 50
# Strength from which a word is marked.
WEAK = 0.12


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
        self.selector = Selector(session)
        # Near-duplicates; None: they are not looked for.
        self.copies: Copies | None = None

    @property
    def shown(self) -> CurrentModel | None:
        """The model whose predictions are shown: none in blind mode."""
        return None if self.session.settings.blind else self.fitted

    def checks(self) -> list[Doubt]:
        """Return labels that look wrong and still stand, most doubtful first, explained with current names."""
        topics, found = self.session.topics, []
        for check in self.shown.checks if self.shown else ():
            decision = self.session.decisions.get(check.row, Decision())
            keys = decision.permitted if check.given == PERMITTED else decision.forbidden
            if check.topic in keys and not topics[check.topic].gone:
                rival = None if check.rival is None else topics[check.rival].name
                facts = (check.given, topics[check.topic].name, check.probability, rival, check.rival_probability)
                found.append(replace(check, why=check.why or doubt_sentence(*facts, check.only)))
        return found

    def progress(self) -> Progress:
        """Return the numbers of the bar on every page."""
        session = self.session
        with session.lock:
            labelled = int(session.labelled.sum())
            fresh = session.changed_since(self.fitted.meta["seq"]) if self.fitted else labelled
            return Progress(labelled, int(session.differing.sum()), fresh, session.n, session.target)

    # --- one document ---

    def document(self, row: int, who: str) -> DocumentView:
        """Return a document with marked words, labels and likely topics."""
        name, text, extra = self._document(row)
        head, fitted = text[:SHOWN], self.shown
        pieces, parts = [Piece(visible(head, 8 * SHOWN))], list[TopicPart]()
        if fitted is not None:
            explanation = fitted.model.explain_row(row, head)
            keys = [fitted.key_of(fitted.result.names.index(name)) for name in explanation.names]
            marked = (part for part in explanation.marked(WEAK) if part[0])
            pieces = [
                Piece(visible(piece, 8 * SHOWN), None if k is None else keys[k], round(strength, 2))
                for piece, k, strength in marked
            ]
            found = zip(keys, map(float, explanation.shares), strict=True)
            parts = [TopicPart(key, round(part, 3)) for key, part in found if part >= 0.01][:8]
        return DocumentView(
            row,
            visible(name, 200),
            {visible(column, 60): visible(value, 300) for column, value in extra.items() if value is not None},
            len(head),
            len(text),
            pieces,
            parts,
            self._likely(row, 6),
            *self._none(row),
            self.labels(row, who),
            0 if self.copies is None else self.copies.number(row),
        )

    def text(self, row: int, start: int) -> TextPart:
        """Return a further part of a long document, without marks."""
        _, text, _ = self._document(row)
        start = min(start, len(text))
        return TextPart(visible(text[start : start + PART], 8 * PART), min(start + PART, len(text)))

    def labels(self, row: int, who: str) -> DocumentLabels:
        """Return the labels of a document: of this person, of others, and the topics on which people differ.

        In blind mode they are the labels of this person alone.
        """
        session = self.session
        with session.lock:
            others, notes, older = session.labels_of(row), session.notes_of(row), sorted(session.older_labels(row))
            decision = session.decisions.get(row, Decision())
            mine, settled = others.pop(who, {}), others.pop(DECISION, {})
            if session.settings.blind:
                own = sorted(key for key, state in mine.items() if state in PRESENT)
                return DocumentLabels(mine, {}, [], own, {}, {who: notes[who]} if who in notes else {}, [])
            permitted, differing = sorted(decision.permitted), sorted(decision.differing)
            return DocumentLabels(mine, others, differing, permitted, settled, notes, older)

    def _document(self, row: int) -> tuple[Hashable, str, dict[str, Any]]:
        if not 0 <= row < self.session.n:
            raise NotFound(f"There is no document number {row}.")
        return self.project.document(row)

    def _likely(self, row: int, n: int) -> list[Likely]:
        """Return the most probable known topics of a document."""
        fitted = self.shown
        if fitted is None or not fitted.n_known:
            return []
        P, has = fitted.memberships[row], fitted.has[row]
        strongest = ((fitted.key_of(int(k)), k) for k in np.argsort(-P, kind="stable") if P[k] >= 0.01)
        found = ((key, k) for key, k in strongest if isinstance(key, int) and not self.session.topics[key].gone)
        return [Likely(key, round(float(P[k]), 3), bool(has[k])) for key, k in islice(found, n)]

    def _none(self, row: int) -> tuple[float, bool]:
        """Return the probability that a document has none of the known topics, and whether that is predicted."""
        fitted = self.shown
        if fitted is None or not fitted.n_known:
            return 0.0, False
        return round(float(fitted.none[row]), 3), bool(fitted.outside[row])

    # --- many documents ---

    def documents(self, chosen: Selection, *, sort: Sort = "order", page: int = 0) -> DocumentPage:
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
            rows = self.selector.sorted(self._rows(chosen), chosen.key, sort, self.shown)
            checks = self.checks() if chosen.filter == "disagreement" and self.shown else []
            pages = max(-(-len(rows) // PAGE), 1)
            page = min(max(page, 0), pages - 1)
            shown = [int(row) for row in rows[page * PAGE : (page + 1) * PAGE]]
            labels = {row: self.labels(row, chosen.who) for row in shown}
        topics = self.session.topics
        reasons = {c.row: f"{topics[c.topic].name}: label {c.given}, model {c.probability:.0%}" for c in checks}
        listed = []
        for row, (name, text) in self.project.beginnings(shown).items():
            beginning = visible(" ".join(text.split()), 240)
            likely, reason = self._likely(row, 3), reasons.get(row)
            listed.append(
                DocumentEntry(row, visible(name, 80), beginning, likely, *self._none(row), reason, labels[row])
            )
        return DocumentPage(listed, len(rows), page, pages)

    def beginnings(self, rows: Sequence[int]) -> list[Beginning]:
        """Return id and beginning of some documents."""
        if not all(0 <= row < self.session.n for row in rows):
            raise NotFound("There is no document with one of these numbers.")
        found = self.project.beginnings(list(dict.fromkeys(rows))).items()
        return [Beginning(row, visible(name, 80), visible(" ".join(text.split()), 400)) for row, (name, text) in found]

    def rows(self, chosen: Selection) -> list[int]:
        """Return all rows of a selection, to label them together."""
        with self.session.lock:
            return [int(row) for row in self._rows(chosen)]

    def _rows(self, chosen: Selection) -> Rows:
        return self.selector.rows(chosen, self.shown, lambda: [check.row for check in self.checks()])

    # --- topics ---

    def topics(self) -> TopicLists:
        """Return known and free topics with the numbers of the last fit; in blind mode only the known ones."""
        fitted = self.shown
        with self.session.lock:
            older = Counter(key for row in self.session.decisions for key in self.session.older_labels(row))
        known = [self._known(self.session.topics[key], older[key]) for key in self.session.tree.order]
        if fitted is None:
            return TopicLists(known, [])
        free = [
            FreeTopic(
                key := str(fitted.key_of(k)),
                self._name(fitted, k),
                self._summary(fitted, k),
                int(fitted.members(key).sum()),
                fitted.in_groups[i],
                None if (above := fitted.parents[i]) is None else int(fitted.key_of(above)),
            )
            for i, k in enumerate(fitted.free_columns)
        ]
        outside = int(fitted.outside.sum()) if fitted.n_known else 0
        none = NoTopic(round(float(fitted.none.mean()), 4), outside) if outside or fitted.open else None
        return TopicLists(known, free, none)

    def _known(self, topic: Topic, older: int) -> KnownTopic:
        tree = self.session.tree
        place = (tree.parents[topic.key], tree.level(topic.key))
        about = (topic.key, topic.name, topic.description, topic.colour, topic.keywords, topic.banned, *place)
        fitted, labels = self.shown, (self.session.counts[topic.key], older)
        if fitted is None or topic.key not in fitted.column:
            return KnownTopic(*about, *labels)
        k = fitted.column[topic.key]
        took, followed = bool(fitted.effects["took effect"][k]), float(fitted.effects["followed"][k])
        reason = visible(fitted.effects["reason"][k], 300)
        effect = LabelEffect(fitted.documents[k], took, round(followed, 3), reason)
        return KnownTopic(*about, *labels, self._summary(fitted, k), effect)

    def _summary(self, fitted: CurrentModel, k: int) -> TopicSummary:
        """Return terms, share and similar topics of a column."""
        similarity = fitted.result.similarity[k].copy()
        similarity[k] = -1
        near = [int(other) for other in np.argsort(-similarity)[:12] if similarity[other] > 0.05]
        near = [other for other in near if not self._gone(fitted, other) and not _related(fitted, k, other)]
        return TopicSummary(
            [Term(visible(term, 60), round(float(strength), 3)) for term, strength in fitted.terms[k]],
            round(float(fitted.result.share[k]), 4),
            [Neighbour(self._name(fitted, other), round(float(similarity[other]), 2)) for other in near[:2]],
        )

    def _gone(self, fitted: CurrentModel, k: int) -> bool:
        """Return whether a column is a known topic that was deleted."""
        key = fitted.key_of(k)
        return isinstance(key, int) and self.session.topics[key].gone

    def _name(self, fitted: CurrentModel, k: int) -> str:
        """Return the current name of a column."""
        key = fitted.key_of(k)
        return self.session.topics[key].name if isinstance(key, int) else visible(fitted.result.names[k], 100)


def _related(fitted: CurrentModel, k: int, other: int) -> bool:
    """Return whether one column is above the other in the tree."""
    forest = fitted.forest
    if forest is None or max(k, other) >= len(forest):
        return False
    return k in forest.ancestors(other) or other in forest.ancestors(k)
