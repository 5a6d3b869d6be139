"""Assign columns to roles: by the user's names, or by a guess where it is obvious."""

from __future__ import annotations

import difflib
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from topicsteer.corpora.cells import StringSummary, split_labels
from topicsteer.corpora.options import ReadOptions
from topicsteer.corpora.read_report import EmptyTable, ReadError
from topicsteer.corpora.readers.table_file import Table
from topicsteer.system.safe_text import unguarded
from topicsteer.system.values import NO_LABEL, is_missing, plain_id

# Common names of the column of texts, the most likely first; case does not matter.
TEXT_NAMES = ("text", "texts", "body", "content", "abstract", "document", "article", "message", "review", "post")
# Common names of the column of labels.
LABEL_NAMES = ("labels", "label", "topics", "topic", "categories", "category", "tags", "tag", "class", "target")
# Common names of the column of ids.
ID_NAMES = ("id", "_id", "ids", "doc_id", "document_id", "docid", "uid", "uuid", "pmid", "doi")
# Common names of the texts in a label file. A column "document" holds ids there, and old versions of doccano call the
# text "data".
LABEL_FILE_TEXT_NAMES = ("text", "texts", "body", "content", "abstract", "data")
# Common names of the ids in a label file.
LABEL_FILE_ID_NAMES = (*ID_NAMES, "document", "doc", "article")
# Common names of the column of forbidden labels.
FORBIDDEN_NAMES = ("forbidden", "forbidden_labels")
# Called with the number of rows read.
RowProgress = Callable[[int], None]
# Number of rows used to compare the lengths of columns.
SAMPLE_ROWS = 1000
# A column with repeating values is guessed to hold labels only if its cells have at most this many characters.
MAX_LABEL_LENGTH = 80


class Columns:
    """Assigns columns to roles, each to one at most, and records every guess.

    One pass over the blocks of the table collects the statistics for the guesses.

    Parameters
    ----------
    blocks : iterable of Table
        The blocks of the table.
    options : ReadOptions
        Names of columns. Other columns are examined only if they may have a role.
    progress : callable, optional
        Called with the number of rows read.
    """

    def __init__(self, blocks: Iterable[Table], options: ReadOptions, progress: RowProgress | None = None) -> None:
        self.source, self.guesses, self.rows, self.unreadable = "", list[str](), 0, 0
        self._options = options
        # Lengths of the strings in the first cells of each column.
        self._lengths: dict[str, list[int]] = {}
        self._strings: dict[str, StringSummary] = {}
        # Hashes of the cells, eight bytes each, to find repeated ids.
        self._hashes: dict[str, array[int]] = {}
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
            # In a table of more than three columns, labels are found by the name of their column only.
            alone = len(self._lengths) <= 3 and usual not in ID_NAMES and self._short(name)
            if alone or usual in (*wanted, *LABEL_NAMES, *FORBIDDEN_NAMES):
                self._strings.setdefault(name, StringSummary()).add(cells)
            if usual in (*wanted, *ID_NAMES):
                hashes = (_hash(cell) for cell in cells if not is_missing(cell))
                self._hashes.setdefault(name, array("q")).extend(hashes)
        self.rows += len(table.places)
        self.unreadable += len(table.problems)

    def refuse_empty(self) -> None:
        """Raise an error if the table has no rows, neither good nor bad ones."""
        if not self.rows and not self.unreadable:
            raise EmptyTable(f"{self.source}: there is no row with a text: the table is empty")

    def mean_length(self, name: str) -> float:
        """Mean length of the strings in the first cells of a column."""
        lengths = self._lengths[name]
        return sum(lengths) / len(lengths) if lengths else 0.0

    def repeated(self, name: str | None) -> set[int]:
        """Hashes of repeated ids in a column."""
        hashes = np.sort(np.array(self._hashes[name] if name is not None else []))
        return set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())

    def text(self) -> str:
        """Choose the column of texts: by name, or the column with much longer strings than all others."""
        name = self._find(self._options.text, TEXT_NAMES) or self._longest()
        if name is None:
            if not self._lengths:
                raise ReadError(f"{self.source}: is empty; expected a table with a column of texts")
            raise ReadError(
                f"{self.source}: which column holds the texts? Pass --text (text= in Python); {self._listed()}"
            )
        return self._take(name, f"text is column {name!r}", self._options.text is None and len(self._lengths) > 1)

    def ids(self, usual: Iterable[str] = ID_NAMES, *, unique: bool = False) -> str | None:
        """Choose the column of ids, or None; with ``unique``, a column of mostly repeated values is not guessed."""
        name, guessed = self._find(self._options.id, usual), self._options.id is None
        if name is not None and guessed and unique:
            hashes = self._hashes[name]
            # Missing values count as one more distinct value.
            distinct = len(np.unique(np.array(hashes))) + (len(hashes) < self.rows)
            if 2 * distinct <= self.rows:
                return None
        return None if name is None else self._take(name, f"id is column {name!r}", guessed)

    def label_file_texts(self) -> str | None:
        """Choose the column of texts of a label file, if it has an unmistakable name."""
        name = self._find(None, LABEL_FILE_TEXT_NAMES)
        self.free.pop(name or "", None)
        return name

    def labels(self) -> LabelColumn:
        """Choose the column of labels, if there is one and the user did not rule it out."""
        wanted = self._options.labels
        name = self._find(wanted, LABEL_NAMES) or (self._repeating() if wanted is None else None)
        if name is None and wanted is None and self.free:
            left = ", ".join(map(repr, self.free))
            self.guesses.append(
                f"no labels found in {left}: if there are labels, pass their column as --labels (labels= in Python)"
            )
        return self._take_labels(name, "labels", wanted is None)

    def forbidden(self) -> LabelColumn:
        """Choose the column of forbidden labels, if there is one and the user did not rule it out."""
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
            self.guesses.append(f"commas in column {name!r} are part of a name; to split there: separator ','")
        if absent := ", ".join(map(repr, sorted(strings.absent - {"-1"}))):
            self.guesses.append(f"{absent} in column {name!r} read as no label")
        return LabelColumn(name, between)

    def _find(self, wanted: str | Literal[False] | None, usual: Iterable[str]) -> str | None:
        """Return the column named by the user, or the first with a common name."""
        if wanted is False:
            return None
        if wanted is None:
            lower = {name.strip().lower(): name for name in reversed(self.free)}
            return next((lower[name] for name in usual if name in lower), None)
        if wanted in self.free:
            return wanted
        near = difflib.get_close_matches(wanted, self.free, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        problem = "{} is already used" if wanted in self._lengths else "there is no {}"
        raise ReadError(f"{self.source}: {problem.format(f'column {wanted!r}')}; {self._listed()}{hint}")

    def _take(self, name: str, guess: str, guessed: bool) -> str:
        if guessed:
            self.guesses.append(guess)
        del self.free[name]
        return name

    def _longest(self) -> str | None:
        """Return the column with much longer strings than all others, or the only column."""
        lengths = sorted(((self.mean_length(name), name) for name in self.free), reverse=True)
        if len(lengths) == 1 or (lengths and lengths[0][0] >= max(40, 2 * lengths[1][0])):
            return lengths[0][1]
        return None

    def _repeating(self) -> str | None:
        """Return the only remaining column, if it holds short strings and most of them repeat."""
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
    """A column of labels and their separator; both may be None."""

    name: str | None = None
    separator: str | None = None

    def reader(self, table: Table) -> Callable[[int], list[str]]:
        """Return a function from a row of a table to its labels."""
        cells = table.column(self.name)

        def read(row: int) -> list[str]:
            cell = cells[row]
            if cell is None or (isinstance(cell, str) and cell.strip() in NO_LABEL):
                return []
            return split_labels(unguarded(cell) if table.guarded and isinstance(cell, str) else cell, self.separator)

        return read


def _hash(cell: object) -> int:
    """Hash of an id as text."""
    return hash(str(plain_id(cell)))
