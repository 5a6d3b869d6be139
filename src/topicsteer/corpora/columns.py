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
LABELS = (
    "labels",
    "label",
    "topics",
    "topic",
    "categories",
    "category",
    "tags",
    "tag",
    "classes",
    "class",
    "target",
)
IDS = ("id", "_id", "ids", "doc_id", "document_id", "docid", "uid", "uuid", "pmid", "doi")
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
        name = self._find(wanted, TEXT)
        if name is None:
            lengths = sorted(
                ((_mean_length(values), name) for name, values in self.free.items()), reverse=True
            )
            if len(lengths) == 1 or (lengths and lengths[0][0] >= max(40, 2 * lengths[1][0])):
                name = lengths[0][1]
            else:
                raise ReadError(
                    f'{self._table.source}: name the column of the texts, text="..."; {self._listed()}'
                )
        return self._take(name, f"text is column {name!r}", wanted)

    def ids(self, wanted: str | None) -> Sequence[Any] | None:
        """Take the ids; a column that only looks like ids has mostly different values."""
        name = self._find(wanted, IDS)
        if name is None or (
            wanted is None and 2 * len(set(map(str, self.free[name]))) <= len(self.free[name])
        ):
            return None
        return self._take(name, f"id is column {name!r}", wanted)

    def same_text(self) -> Sequence[Any] | None:
        """Take the texts of a label file if it has them under a usual name; doccano calls them data."""
        name = self._find(None, (*TEXT, "data"))
        return None if name is None else self.free.pop(name)

    def labels(
        self, wanted: str | None, separator: str | None, usual: Iterable[str] = LABELS, role: str = "labels"
    ) -> Callable[[int], list[str]] | None:
        """Take a column of labels, as a function from row to names; None if there is no such column."""
        name = self._find(wanted, usual)
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

    def _listed(self) -> str:
        return (
            f"the columns are {', '.join(map(repr, self._table.columns))}"
            if self._table.columns
            else "it is empty"
        )


def _mean_length(values: Sequence[Any]) -> float:
    sample = [len(value) for value in islice(values, SAMPLE) if isinstance(value, str)]
    return sum(sample) / len(sample) if sample else 0.0
