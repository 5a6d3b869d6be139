"""Selections of documents: filters, search, topics and sorting."""

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topicsteer.app.workbench.answers import Key
from topicsteer.app.workbench.current_model import CurrentModel
from topicsteer.app.workbench.errors import Conflict
from topicsteer.app.workbench.event_log import LATER, PRESENT, SKIPPED, WHOLE
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.text_rules import DECISION

# A membership from which the model is sure.
STRONG = 0.8
Filter = Literal[
    "all", "labelled", "unlabelled", "strong", "uncertain", "disagreement", "people", "settled", "skipped", "later",
    "notes", "older",
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
        "older": with a label from before the present definition of its topic.
    key : int or str, optional
        Only documents of this known or free topic, by label or by the model; "none" for documents without a topic.
    """

    who: str
    query: str = ""
    filter: Filter = "all"
    key: Key | None = None


class Selector:
    """Finds the rows of a selection.

    Parameters
    ----------
    session : LabelSession
        The labels.
    """

    def __init__(self, session: LabelSession) -> None:
        self.session = session
        self.search = lru_cache(maxsize=32)(lambda query: np.asarray(session.project.search(query), dtype=np.int64))

    def rows(self, chosen: Selection, fitted: CurrentModel | None, doubtful: Callable[[], list[int]]) -> Rows:
        """Return the rows of a selection in the order of the table.

        Parameters
        ----------
        chosen : Selection
            The selection.
        fitted : CurrentModel or None
            The last model.
        doubtful : callable
            Returns the rows of labels that look wrong.
        """
        blind = self.session.settings.blind
        if blind and (chosen.filter in REVEALING or isinstance(chosen.key, str)):
            raise Conflict("Blind mode hides predictions and the labels of others. The page Export has the setting.")
        keep = self._filtered(chosen, fitted, doubtful)
        if query := chosen.query.strip():
            keep = keep & self._mask(self.search(query))
        if isinstance(chosen.key, str):
            keep = keep & fitted_or_refuse(fitted).members(chosen.key)
        elif chosen.key is not None and chosen.filter != "older":
            key = self.session.topic(chosen.key).key
            keep = keep & (self._mask(self._own(chosen.who, key)) if blind else self._of_topic(key, fitted))
        return np.flatnonzero(keep)

    def sorted(self, rows: Rows, key: Key | None, sort: Sort, fitted: CurrentModel | None) -> Rows:
        """Return rows in another order."""
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
        return [row for row in self._touched() if self.session.labels_of(row).get(who, {}).get(key) in PRESENT]

    def _of_topic(self, key: int, fitted: CurrentModel | None) -> Mask:
        own = self._mask([])
        if fitted is not None and key in fitted.column:
            own |= fitted.has[:, fitted.column[key]]
        for row, decision in self.session.decisions.items():
            own[row] = key in decision.permitted or (own[row] and key not in decision.forbidden)
        return own

    def _filtered(self, chosen: Selection, fitted: CurrentModel | None, doubtful: Callable[[], list[int]]) -> Mask:
        session = self.session
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
            "disagreement": lambda: self._mask(doubtful()),
            "people": lambda: session.differing,
            "settled": lambda: self._mask([row for row in touched if DECISION in session.votes_of(row)]),
            "skipped": lambda: self._mask(self.whole(chosen.who, SKIPPED)),
            "later": lambda: self._mask(self.whole(chosen.who, LATER)),
            "notes": lambda: self._mask([row for row in session.decisions if session.notes_of(row)]),
            "older": lambda: self._mask([row for row in touched if self._older(row, known)]),
        }
        return filters[chosen.filter]()

    def whole(self, who: str, state: str) -> list[int]:
        """Return the documents that a person skipped, or put aside."""
        return [row for row in self._touched() if self.session.labels_of(row).get(who, {}).get(WHOLE) == state]

    def _older(self, row: int, key: int | None) -> bool:
        older = self.session.older_labels(row)
        return bool(older) if key is None else key in older

    def _touched(self) -> list[int]:
        """Return the documents with a label, now or earlier."""
        rows: list[int] = np.flatnonzero(self.session.last_event).tolist()
        return rows


def fitted_or_refuse(fitted: CurrentModel | None) -> CurrentModel:
    """Return the model, or refuse without one."""
    if fitted is None:
        raise Conflict("There is no fitted model yet. Fit first.")
    return fitted
