"""Which column is which: named by the user, or guessed when it is obvious."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from topicsteer.corpora.cells import guess_separator, split_labels
from topicsteer.corpora.reports import ReadError
from topicsteer.corpora.sources import Table

# Usual names in order of trust; case does not matter.
TEXT = ("text", "texts", "body", "content", "abstract", "document", "article", "message", "review", "post")
LABELS = ("labels", "label", "topics", "topic", "categories", "category", "tags", "tag", "class", "target")
IDS = ("id", "_id", "ids", "doc_id", "document_id", "docid", "uid", "uuid", "pmid", "doi")
# In a label file a column "document" rather holds ids; doccano once called the text "data".
LABEL_FILE_TEXT = ("text", "texts", "body", "content", "abstract", "data")
LABEL_FILE_IDS = (*IDS, "document", "doc", "article")
FORBIDDEN = ("forbidden", "forbidden_labels")
SAMPLE = 1000


class Columns:
    """Gives the columns of a table to their roles, each to one at most, and writes down every guess."""

    def __init__(self, table: Table) -> None:
        self.free: dict[str, Sequence[Any]] = dict(table.columns)
        self.guesses = list(table.guesses)
        self._table = table

    def text(self, wanted: str | None) -> Sequence[Any]:
        """Take the texts: by name, or else the column whose strings are much longer than all others."""
        name = self._find(wanted, TEXT) or self._longest()
        if name is None:
            raise ReadError(f'{self._table.source}: name the column of the texts, text="..."; {self._listed()}')
        only = len(self._table.columns) == 1
        return self._take(name, f"text is column {name!r}", name if only else wanted)

    def ids(self, wanted: str | None, usual: Iterable[str] = IDS) -> Sequence[Any] | None:
        """Take the ids, if there are any."""
        name = self._find(wanted, usual)
        return None if name is None else self._take(name, f"id is column {name!r}", wanted)

    def unique_ids(self, wanted: str | None) -> Sequence[Any] | None:
        """Take the ids, but do not guess them to be in a column where most values repeat."""
        name = self._find(wanted, IDS)
        repeats = name is not None and 2 * len(set(map(str, self.free[name]))) <= len(self.free[name])
        return None if wanted is None and repeats else self.ids(wanted)

    def texts_beside(self) -> Sequence[Any] | None:
        """Take the texts of a label file, if it has them under a name that cannot mean an id."""
        name = self._find(None, LABEL_FILE_TEXT)
        return None if name is None else self.free.pop(name)

    def labels(
        self, wanted: str | None, separator: str | None, usual: Iterable[str] = LABELS, role: str = "labels"
    ) -> Callable[[int], list[str]] | None:
        """Take a column of labels, as a function from row to names; None if there is no such column."""
        name = self._find(wanted, usual) or (self._repeating() if usual is LABELS else None)
        if name is None:
            return None
        between = separator or guess_separator(self.free[name])
        how = "" if between is None else f", separated by {between!r}" if between != "json" else ", as lists"
        cells = self._take(name, f"{role} are column {name!r}{how}", wanted if separator or not how else None)
        return lambda row: split_labels(cells[row], between)

    def _find(self, wanted: str | None, usual: Iterable[str]) -> str | None:
        """Name of the column that the user named, or else of the first that has one of the usual names."""
        if wanted is None:
            lower = {name.strip().lower(): name for name in reversed(self.free)}
            return next((lower[name] for name in usual if name in lower), None)
        if wanted in self.free:
            return wanted
        near = difflib.get_close_matches(wanted, self.free, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        taken = "already taken" if wanted in self._table.columns else "not there"
        raise ReadError(f"{self._table.source}: column {wanted!r} is {taken}; {self._listed()}{hint}")

    def _take(self, name: str, guess: str, wanted: str | None) -> Sequence[Any]:
        if wanted is None:
            self.guesses.append(guess)
        return self.free.pop(name)

    def _longest(self) -> str | None:
        """Name of the column whose strings are much longer than all others, or the only column."""
        lengths = sorted(((_mean_length(values), name) for name, values in self.free.items()), reverse=True)
        if len(lengths) == 1 or (lengths and lengths[0][0] >= max(40, 2 * lengths[1][0])):
            return lengths[0][1]
        return None

    def _repeating(self) -> str | None:
        """Name of the only column left, if it holds short strings of which most occur several times."""
        if len(self.free) != 1:
            return None
        name, values = next(iter(self.free.items()))
        filled = [value for value in values if isinstance(value, str) and value.strip()]
        short = bool(filled) and max(map(len, filled)) <= 80
        return name if short and 1 < len(set(filled)) <= len(filled) / 3 else None

    def _listed(self) -> str:
        names = ", ".join(map(repr, self._table.columns))
        return f"the columns are {names}" if names else "it is empty"


def _mean_length(values: Sequence[Any]) -> float:
    sample = [len(value) for value in islice(values, SAMPLE) if isinstance(value, str)]
    return sum(sample) / len(sample) if sample else 0.0
