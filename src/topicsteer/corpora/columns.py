"""Which column is which: named by the user, or guessed when it is obvious."""

from __future__ import annotations

import difflib
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from topicsteer.corpora.cells import StringSummary, split_labels
from topicsteer.corpora.options import ReadOptions
from topicsteer.corpora.read_report import ReadError
from topicsteer.corpora.readers.table_file import Table
from topicsteer.system.values import NO_LABEL, is_missing

# Usual names in order of trust; case does not matter.
TEXT_NAMES = ("text", "texts", "body", "content", "abstract", "document", "article", "message", "review", "post")
LABEL_NAMES = ("labels", "label", "topics", "topic", "categories", "category", "tags", "tag", "class", "target")
ID_NAMES = ("id", "_id", "ids", "doc_id", "document_id", "docid", "uid", "uuid", "pmid", "doi")
# In a label file a column "document" rather holds ids; doccano once called the text "data".
LABEL_FILE_TEXT_NAMES = ("text", "texts", "body", "content", "abstract", "data")
LABEL_FILE_ID_NAMES = (*ID_NAMES, "document", "doc", "article")
FORBIDDEN_NAMES = ("forbidden", "forbidden_labels")
RowProgress = Callable[[int], None]  # told the number of rows seen
SAMPLE_ROWS = 1000
MAX_LABEL_LENGTH = 80  # characters, of a column that is taken for labels because its values repeat


class Columns:
    """Gives the columns of a table to their roles, each to one at most, and writes down every guess.

    What that needs to know of all rows is gathered in one pass over the blocks of the table.

    Parameters
    ----------
    blocks : iterable of Table
        The table.
    options : ReadOptions
        Names of columns. Those that can be neither named nor guessed are looked at but briefly.
    progress : callable, optional
        Called with the number of rows seen.
    """

    def __init__(self, blocks: Iterable[Table], options: ReadOptions, progress: RowProgress | None = None) -> None:
        self.source, self.guesses, self.rows = "", list[str](), 0
        self._options = options
        self._lengths: dict[str, list[int]] = {}  # of the strings among the first cells of each column
        self._strings: dict[str, StringSummary] = {}
        self._hashes: dict[str, array[int]] = {}  # of the cells, eight bytes each: which ids may occur a second time
        for table in blocks:
            self._add(table)
            if progress is not None:
                progress(self.rows)
        self.free = dict.fromkeys(self._lengths)

    def _add(self, table: Table) -> None:
        named = (self._options.text, self._options.labels, self._options.id, self._options.forbidden)
        wanted = [name.strip().lower() for name in named if name]
        self.source, self.guesses = table.source, list(table.guesses)
        for name, cells in table.columns.items():
            sample = cells[: max(0, SAMPLE_ROWS - self.rows)]
            self._lengths.setdefault(name, []).extend(len(cell) for cell in sample if isinstance(cell, str))
        for name, cells in table.columns.items():
            usual = name.strip().lower()
            # Beside a text, an id and one more, a column is taken for labels by its name alone.
            alone = len(self._lengths) <= 3 and usual not in ID_NAMES and self._short(name)
            if alone or usual in (*wanted, *LABEL_NAMES, *FORBIDDEN_NAMES):
                self._strings.setdefault(name, StringSummary()).add(cells)
            if usual in (*wanted, *ID_NAMES):
                hashes = (_hash(cell) for cell in cells if not is_missing(cell))
                self._hashes.setdefault(name, array("q")).extend(hashes)
        self.rows += len(table.places)

    def mean_length(self, name: str) -> float:
        """Mean length of the strings among the first cells of a column."""
        lengths = self._lengths[name]
        return sum(lengths) / len(lengths) if lengths else 0.0

    def repeated(self, name: str | None) -> set[int]:
        """Hashes of the ids in a column that occur several times."""
        hashes = np.sort(np.array(self._hashes[name] if name is not None else []))
        return set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())

    def text(self) -> str:
        """Take the texts: by name, or else the column whose strings are much longer than all others."""
        name = self._find(self._options.text, TEXT_NAMES) or self._longest()
        if name is None:
            if not self._lengths:
                raise ReadError(f"{self.source}: there is no table in it: expected columns, one of them with texts")
            raise ReadError(f"{self.source}: name the column of the texts (text, --text); {self._listed()}")
        return self._take(name, f"text is column {name!r}", self._options.text is None and len(self._lengths) > 1)

    def ids(self, usual: Iterable[str] = ID_NAMES, *, unique: bool = False) -> str | None:
        """Take the ids, if there are any; unique ones are not guessed to be in a column where most values repeat."""
        name, guessed = self._find(self._options.id, usual), self._options.id is None
        if name is not None and guessed and unique:
            hashes = self._hashes[name]
            distinct = len(np.unique(np.array(hashes))) + (len(hashes) < self.rows)  # all that are missing are one more
            if 2 * distinct <= self.rows:
                return None
        return None if name is None else self._take(name, f"id is column {name!r}", guessed)

    def label_file_texts(self) -> str | None:
        """Take the texts of a label file, if it has them under a name that cannot mean an id."""
        name = self._find(None, LABEL_FILE_TEXT_NAMES)
        self.free.pop(name or "", None)
        return name

    def labels(self) -> LabelColumn:
        """Take the column of the labels, if there is one and the user does not want none."""
        wanted = self._options.labels
        name = self._find(wanted, LABEL_NAMES) or (self._repeating() if wanted is None else None)
        if name is None and wanted is None and self.free:
            left = ", ".join(map(repr, self.free))
            self.guesses.append(f"no labels found in {left}: name their column (labels, --labels) if there is one")
        return self._take_labels(name, "labels", wanted is None)

    def forbidden(self) -> LabelColumn:
        """Take the column of the forbidden labels, if there is one and the user does not want none."""
        wanted = self._options.forbidden
        return self._take_labels(self._find(wanted, FORBIDDEN_NAMES), "forbidden labels", wanted is None)

    def _take_labels(self, name: str | None, role: str, guessed: bool) -> LabelColumn:
        if name is None:
            return LabelColumn()
        strings, separator = self._strings[name], self._options.separator
        between = separator or strings.separator
        how = "" if between is None else f", separated by {between!r}" if between != "json" else ", as lists"
        self._take(name, f"{role} are column {name!r}{how}", guessed or (not separator and how != ""))
        if between is None and "," in strings.found:
            self.guesses.append(f"commas in column {name!r} are part of a name; to part labels there: separator ','")
        if absent := ", ".join(map(repr, sorted(strings.absent - {"-1"}))):
            self.guesses.append(f"no label is what {absent} in column {name!r} means")
        return LabelColumn(name, between)

    def _find(self, wanted: str | Literal[False] | None, usual: Iterable[str]) -> str | None:
        """Name of the column that the user named, or else of the first that has one of the usual names."""
        if wanted is False:
            return None
        if wanted is None:
            lower = {name.strip().lower(): name for name in reversed(self.free)}
            return next((lower[name] for name in usual if name in lower), None)
        if wanted in self.free:
            return wanted
        near = difflib.get_close_matches(wanted, self.free, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        taken = "already taken" if wanted in self._lengths else "not there"
        raise ReadError(f"{self.source}: column {wanted!r} is {taken}; {self._listed()}{hint}")

    def _take(self, name: str, guess: str, guessed: bool) -> str:
        if guessed:
            self.guesses.append(guess)
        del self.free[name]
        return name

    def _longest(self) -> str | None:
        """Name of the column whose strings are much longer than all others, or the only column."""
        lengths = sorted(((self.mean_length(name), name) for name in self.free), reverse=True)
        if len(lengths) == 1 or (lengths and lengths[0][0] >= max(40, 2 * lengths[1][0])):
            return lengths[0][1]
        return None

    def _repeating(self) -> str | None:
        """Name of the only column left, if it holds short strings of which most occur several times."""
        name = next(iter(self.free), "")
        if len(self.free) != 1 or name.strip().lower() in ID_NAMES or not self._short(name):
            return None
        strings = self._strings[name]
        repeats = strings.distinct is not None and 1 < len(strings.distinct) <= strings.filled / 3
        return name if repeats and strings.longest <= MAX_LABEL_LENGTH else None

    def _short(self, name: str) -> bool:
        """Whether the first cells of a column are short enough for labels."""
        return max(self._lengths[name], default=0) <= MAX_LABEL_LENGTH

    def _listed(self) -> str:
        return f"the columns are {', '.join(map(repr, self._lengths))}"


@dataclass(frozen=True)
class LabelColumn:
    """A column of labels, if there is one, and what stands between them."""

    name: str | None = None
    separator: str | None = None

    def reader(self, table: Table) -> Callable[[int], list[str]]:
        """From a row of a table, or of a piece of it, to the labels there."""
        cells = table.column(self.name)

        def read(row: int) -> list[str]:
            cell = cells[row]
            absent = cell is None or (isinstance(cell, str) and cell.strip() in NO_LABEL)
            return [] if absent else split_labels(cell, self.separator)

        return read


def _hash(cell: object) -> int:
    try:
        return hash(cell)
    except TypeError:  # a list
        return hash(str(cell))
