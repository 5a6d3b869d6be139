"""Cells and columns: read texts, ids and labels in all common notations; assign columns to roles."""

from __future__ import annotations

import ast
import difflib
import fnmatch
import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time
from numbers import Number
from typing import Any, Literal

import numpy as np

from topicsteer.corpora.documents import EmptyTable, Names, ReadError, ReadOptions, UnclearLabels
from topicsteer.corpora.readers import Table
from topicsteer.system.values import NO_LABEL, NONE, check_none, is_missing, label_name, plain_id

# Characters that may separate the labels of a cell, the most reliable first.
SEPARATORS = (";", "|", ",")
_BETWEEN = re.compile("[;|,]")
# The separator of a cell that holds a list.
JSON_LIST = "json"
# Stands for a comma without a space after it.
CLOSE_COMMA = ",x"
# A column of labels has at most this many distinct cells.
MAX_DISTINCT = 100_000
# Cells of a column with one topic: the document has it, or does not.
INDICATORS: dict[object, bool] = {
    0: False,
    1: True,
    **dict.fromkeys(("0", "false", "no", "n"), False),
    **dict.fromkeys(("1", "true", "yes", "y", "x"), True),
}


def text_cell(value: object) -> str:
    """Return the text of a cell; raises ValueError if it has none.

    Numbers and dates become text, because programs for tables turn a short answer such as "42" or "3/4" into them.

    Examples
    --------
    >>> text_cell("rain"), text_cell(42.0), text_cell(date(2026, 4, 3))
    ('rain', '42', '2026-04-03')
    """
    if is_missing(value):
        raise ValueError("empty text")
    if isinstance(value, Number | np.bool_ | date | time):
        value = str(plain_id(value))
    if not isinstance(value, str):
        raise ValueError(f"text of type {type(value).__name__}, expected a string")
    return _storable(value)


def read_id(value: object) -> Hashable:
    """Return the id of a cell, as in `plain_id`; raises ValueError if it has none."""
    if is_missing(value):
        raise ValueError("missing id")
    try:
        hash(value)
    except TypeError:
        raise ValueError(f"id of type {type(value).__name__}, expected a string or a number") from None
    key = plain_id(value)
    return _storable(key) if isinstance(key, str) else key


def split_labels(cell: object, separator: str | None) -> list[str]:
    """Return the distinct names in a label cell; raises ValueError if it holds other values.

    In a list, every string is a name, and so is a whole cell. Among several names in one string, -1 is no label.
    """
    items: object
    unlabelled: tuple[object, ...] = (-1,)
    if isinstance(cell, str):
        if cell.strip() == NONE:
            items = [NONE]
        elif separator == JSON_LIST:
            items = _parse_list(cell) if cell.strip() else []
        else:
            items = [part.strip() for part in cell.split(separator)] if separator else [cell]
            unlabelled = (-1, "-1") if separator else (-1,)
    else:
        items = cell.tolist() if hasattr(cell, "tolist") else cell
    if not isinstance(items, list | tuple | set | frozenset):
        items = [items]
    given = (item for item in items if not is_missing(item) and item not in unlabelled)
    return list(dict.fromkeys(_storable(str(label_name(item))) for item in given))


def label_names(cell: object, separator: str | None) -> list[str]:
    """Return the names in a label cell of a table, as in `split_labels`; none in a cell that means "no label"."""
    if cell is None or (isinstance(cell, str) and cell.strip() in NO_LABEL):
        return []
    return split_labels(cell, separator)


def indicator(name: str, cell: object) -> bool | None:
    """Whether a document has the topic of a column of 0 and 1; None if the cell is empty.

    Examples
    --------
    >>> indicator("tea", 1.0), indicator("tea", "No"), indicator("tea", "")
    (True, False, None)
    """
    if is_missing(cell) or (isinstance(cell, str) and cell.strip() in NO_LABEL):
        return None
    key = cell.strip().lower().removesuffix(".0") if isinstance(cell, str) else cell
    found = INDICATORS.get(key) if isinstance(key, str | int | float) else None
    if found is None:
        raise ValueError(f"the label column {name!r} has {cell!r}; expected 1, 0 or an empty cell")
    return found


def is_plain_name(name: str) -> bool:
    """Whether a name can be written in a table as it is; otherwise it belongs into a list.

    Examples
    --------
    >>> [is_plain_name(name) for name in ("tea", "tea, green", "N/A", "[draft]")]
    [True, False, False, False]
    """
    return name not in NO_LABEL and name.isprintable() and name[:1] != "[" and not set(SEPARATORS) & set(name)


def check_labels(labels: Sequence[str], forbidden: Sequence[str]) -> None:
    """Raise ValueError unless `NONE` is the only label of a document, and never forbidden."""
    check_none(labels)
    if NONE in forbidden:
        raise ValueError(f"forbids {NONE!r}, which is not a topic")


class StringSummary:
    """Summary of the strings of a column, updated block by block; it guesses the separator of labels.

    Distinct strings are counted by their hashes, up to `MAX_DISTINCT`.
    """

    def __init__(self, cells: Iterable[object] = ()) -> None:
        self.filled = 0
        # Hashes of the distinct cells; None if there are too many.
        self.distinct: set[int] | None = set()
        # Values of NO_LABEL in the column.
        self.absent: set[str] = set()
        # Whether all cells look like lists.
        self._lists = True
        # Separators in the column.
        self.found: set[str] = set()
        # Number of cells with a value, number of names in them, and hashes of the distinct names; numbers included.
        self._values, self._written, self._names = 0, 0, set[int]()
        self.add(cells)

    def add(self, cells: Iterable[object]) -> None:
        """Add cells to the summary."""
        for cell in cells:
            if isinstance(cell, int | float) and cell == cell:
                self._count([str(cell)])
            if not isinstance(cell, str) or not (text := cell.strip()):
                continue
            if text in NO_LABEL:
                self.absent.add(text)
                continue
            self.filled += 1
            self._count([name.strip() for name in _BETWEEN.split(text)])
            if self.distinct is not None:
                key = hash(text)
                if key in self.distinct:
                    continue
                self.distinct.add(key)
                if len(self.distinct) > MAX_DISTINCT:
                    self.distinct = None
            if text == NONE:  # written alone, whatever separates the labels of other cells
                continue
            self._lists = self._lists and text[0] == "[" and text[-1] == "]"
            self.found.update(separator for separator in SEPARATORS if separator in text)
            if CLOSE_COMMA not in self.found and re.search(r",\S", text):
                self.found.add(CLOSE_COMMA)

    def _count(self, names: Sequence[str]) -> None:
        self._values, self._written = self._values + 1, self._written + len(names)
        if len(self._names) <= MAX_DISTINCT:
            self._names.update(map(hash, names))

    def mostly_single(self, rows: int, many: int) -> bool:
        """Whether most rows have a value, there are many names, and more than half of the names are distinct."""
        distinct = 2 * len(self._names) > min(self._written, 2 * MAX_DISTINCT)
        return distinct and self._written >= many and 2 * self._values > rows

    @property
    def separator(self) -> str | None:
        """Guess the separator of the labels in a cell; None if each cell holds one label.

        A semicolon or a bar is always a separator. A comma may be part of a name ("Korea, South"). It is a separator
        if no space follows it, or if splitting gives fewer distinct names than distinct cells.
        """
        if self.filled and self._lists:
            return JSON_LIST
        for separator in SEPARATORS[:-1]:
            if separator in self.found:
                return separator
        fewer = self.distinct is not None and len(self._names) < len(self.distinct)
        return "," if "," in self.found and (fewer or CLOSE_COMMA in self.found) else None


def _parse_list(cell: str) -> list[object]:
    """Return the items of a list in JSON or Python notation."""
    for parse in (json.loads, ast.literal_eval):
        try:
            items = parse(cell)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        if isinstance(items, list):
            return items
    raise ValueError("the labels are not a JSON list")


def is_storable(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which broken JSON can contain and no file can store."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _storable(value: str) -> str:
    """Return the text; raises ValueError if no file can store it."""
    if not (value.isascii() or is_storable(value)):
        raise ValueError("contains half of a surrogate pair, which is not a character")
    return value


# Common names of the column of texts, the most likely first; case does not matter.
TEXT_NAMES = ("text", "texts", "body", "content", "abstract", "document", "article", "message", "review", "post")
# Common names of the column of labels.
LABEL_NAMES = ("labels", "label", "topics", "topic", "categories", "category", "tags", "tag", "class", "target")
# Usual names of labels that are groups if every row has a value.
GROUP_NAMES = ("categories", "category", "tags", "tag", "class", "target")
# Greatest number of distinct cells of a column that may hold labels under any name.
MAX_CANDIDATES = 1000
# A column with a value in a larger share of the rows holds groups.
FULL = 0.9
# Common names of the column of ids.
ID_NAMES = ("id", "_id", "ids", "doc_id", "document_id", "docid", "uid", "uuid", "pmid", "doi")
# Names of a column of ids if all its values are distinct: question_id, TicketID, case no, respondent.
_ID_LIKE = re.compile(
    r"(?i:(.*[\s_.-])?(id|ids|nr|no|num|number|uuid|guid))|.*[a-z]I[dD]"
    r"|(?i:ticket|respondent|participant|case|record|response|interview|question|answer|comment|tweet|paper)"
)
# A guessed column of ids has values of at most this many characters on average.
MAX_ID_LENGTH = 40
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
# A column with at least this many names is not guessed to hold labels if more than half of them occur once.
MANY_NAMES = 20


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
    label_file : bool, default=False
        Whether the table is a file of labels: its labels may differ in every row.
    """

    def __init__(
        self,
        blocks: Iterable[Table],
        options: ReadOptions,
        progress: RowProgress | None = None,
        *,
        label_file: bool = False,
    ) -> None:
        self.source = ""
        self.guesses: list[str] = []
        self.rows = self.unreadable = 0
        self._options = options
        self._label_file = label_file
        # Lengths of the strings in the first cells of each column.
        self._lengths: dict[str, list[int]] = {}
        self._strings: dict[str, StringSummary] = {}
        # Distinct cells of columns that may hold labels, with their numbers; None if there are too many.
        self._cells: dict[str, Counter[object] | None] = {}
        given = (options.labels, getattr(options.like, "labels", None))
        self._guesses_labels = given == (None, None)
        # Hashes of the cells, eight bytes each, to find repeated ids.
        self._hashes: dict[str, array[int]] = {}
        # Roles of the columns that are no longer free.
        self._roles: dict[str, str] = {}
        for table in blocks:
            self._add(table)
            if progress is not None:
                progress(self.rows)
        self.free = dict.fromkeys(self._lengths)

    def _add(self, table: Table) -> None:
        options = (self._options, self._options.like or self._options)
        named = [name for one in options for name in (one.text, one.labels, one.id, one.forbidden) if name]
        wanted = [name.strip().lower() for names in named for name in ([names] if isinstance(names, str) else names)]
        self.source, self.guesses = table.source, list(table.guesses)
        for name, cells in table.columns.items():
            sample = cells[: max(0, SAMPLE_ROWS - self.rows)]
            self._lengths.setdefault(name, []).extend(len(cell) for cell in sample if isinstance(cell, str))
        for name, cells in table.columns.items():
            usual = name.strip().lower()
            if usual in (*wanted, *LABEL_NAMES, *FORBIDDEN_NAMES):
                self._strings.setdefault(name, StringSummary()).add(cells)
            if self._guesses_labels and usual not in ID_NAMES:
                self._count(name, cells)
            if usual in (*wanted, *LABEL_FILE_ID_NAMES) or _ID_LIKE.fullmatch(name.strip()):
                hashes = (hash(str(plain_id(cell))) for cell in cells if not is_missing(cell))
                self._hashes.setdefault(name, array("q")).extend(hashes)
        self.rows += len(table.places)
        self.unreadable += len(table.problems)

    def _count(self, name: str, cells: Sequence[object]) -> None:
        """Count the distinct cells of a column with short strings, while there are few."""
        counts = self._cells.setdefault(name, Counter())
        if counts is None:
            return
        try:
            counts.update(cells)
        except TypeError:  # lists
            self._cells[name] = None
        if len(counts) > MAX_CANDIDATES or not self._short(name):
            self._cells[name] = None

    def refuse_empty(self) -> None:
        """Raise an error if the table has no rows, neither good nor bad ones."""
        if not self.rows and not self.unreadable:
            found = None if self.without_ids else self.ids() or self.label_file_ids()
            raise EmptyTable(f"{self.source}: there is no row with a text: the table is empty", self.names, found)

    def _wanted(self, role: str) -> Any:
        """Return the columns that the user names for a role, or else columns of an earlier source that are here."""
        given = getattr(self._options, role)
        before = getattr(self._options.like, role, None)
        if given is not None or before is None or before is False:
            return before if given is None else given
        here = [name for name in _tuple(before) if name in self.free]
        return here[0] if here and isinstance(before, str) else here or None

    @property
    def names(self) -> list[str]:
        """All columns of the table, in its order."""
        return list(self._lengths)

    def mean_length(self, *names: str) -> float:
        """Mean length of the strings in the first cells of some columns together."""
        lengths = [self._lengths[name] for name in names]
        return sum(sum(each) / len(each) for each in lengths if each)

    def repeated(self, name: str | None) -> set[int]:
        """Hashes of repeated ids in a column."""
        hashes = np.sort(np.array(self._hashes[name] if name is not None else []))
        return set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())

    def text(self) -> tuple[str, ...]:
        """Choose the columns of texts: by name, or the column with much longer strings than all others."""
        wanted, like = self._wanted("text"), self._options.like
        if wanted:
            names = [self._find(name, ()) or "" for name in _tuple(wanted)]
            for name in names:
                self._take(name, "texts", "", False)
            return tuple(names)
        longest = self._find(None, TEXT_NAMES) or self._longest()
        if longest is None:
            if not self._lengths:
                raise ReadError(f"{self.source}: is empty; expected a table with a column of texts")
            named = "" if like is None or not like.text else f"; the model has them in {', '.join(_tuple(like.text))}"
            raise ReadError(
                f"{self.source}: which column holds the texts? Pass --text (text= in Python); {self._listed()}{named}"
            )
        return (self._take(longest, "texts", f"text is column {longest!r}", len(self._lengths) > 1),)

    @property
    def without_ids(self) -> bool:
        """Whether the user, or else an earlier source, rules out a column of ids."""
        wanted = self._wanted("id")
        return wanted is False or (wanted == "none" and wanted not in self.names)

    def ids(self, usual: Iterable[str] = ID_NAMES, *, unique: bool = False) -> str | None:
        """Choose the column of ids, or None; with ``unique``, a column of mostly repeated values is not guessed."""
        wanted = self._wanted("id")
        if self.without_ids:
            return None
        name = self._find(wanted, usual)
        guessed = wanted is None
        if name is not None and guessed and unique:
            hashes = self._hashes[name]
            # Missing values count as one more distinct value.
            distinct = len(np.unique(np.array(hashes))) + (len(hashes) < self.rows)
            if 2 * distinct <= self.rows:
                name = None
        if name is None and guessed and unique:
            name = next((column for column in self.free if self._numbers_rows(column)), None)
        return None if name is None else self._take(name, "ids", f"id is column {name!r}", guessed)

    def label_file_ids(self) -> str | None:
        """Choose a column with the name of an id, such as ticket, in a label file without a usual one."""
        name = next(filter(self._id_like, self.free), None)
        return None if name is None else self._take(name, "ids", f"id is column {name!r}", True)

    def _id_like(self, name: str) -> bool:
        """Whether a column has the name of an id, and short values."""
        return _ID_LIKE.fullmatch(name.strip()) is not None and self.mean_length(name) <= MAX_ID_LENGTH

    def _numbers_rows(self, name: str) -> bool:
        """Whether a column has the name of an id, and one short value of its own in every row."""
        if not self._id_like(name):
            return False
        hashes = self._hashes[name]
        return len(hashes) == self.rows > 1 and len(np.unique(np.array(hashes))) == self.rows

    def label_file_texts(self) -> str | None:
        """Choose the column of texts of a label file, if it has an unmistakable name."""
        name = self._find(None, LABEL_FILE_TEXT_NAMES)
        self.free.pop(name or "", None)
        return name

    def labels(self) -> LabelColumn:
        """Choose the column or columns of labels, if there are some and the user did not rule them out."""
        wanted = self._wanted("labels")
        if wanted is not None:
            names = [] if wanted is False else self._named_labels(wanted)
            if len(names) != 1 or not isinstance(wanted, str):
                return self._take_indicators(names)
            return self._take_labels(names[0], "labels", False)
        name = self._find(None, LABEL_NAMES)
        many = name is not None and not self._label_file and self._strings[name].mostly_single(self.rows, MANY_NAMES)
        if many:
            self.guesses.append(
                f"column {name!r} has another value in most rows, so it is not read as labels; if it holds labels, "
                f"pass --labels {name} (labels= in Python)"
            )
            name = None
        if name is not None and not self._label_file and self._is_full(name):
            joined = self._options.label_file is not None
            name = None if joined or name.strip().lower() in GROUP_NAMES else name
        name = name or self._candidate()
        if name is None and self.free:
            left = ", ".join(map(repr, self.free))
            self.guesses.append(
                f"no labels found in {left}: if there are labels, pass their column as --labels (labels= in Python)"
            )
        return self._take_labels(name, "labels", True)

    def _named_labels(self, wanted: Names) -> list[str]:
        """The columns that the user means: one name, several with commas between them, or a pattern such as cs.*."""
        if isinstance(wanted, str) and wanted in self.free:
            return [wanted]
        if wanted == "none":
            return []
        parts = [part.strip() for part in wanted.split(",")] if isinstance(wanted, str) else wanted
        found: dict[str, None] = {}
        for part in parts:
            matches = [] if part in self.free else fnmatch.filter(self.free, part)
            found.update(dict.fromkeys(matches or [self._find(part, ()) or ""]))
        return list(found)

    def _take_indicators(self, names: Sequence[str]) -> LabelColumn:
        for name in names:
            self._take(name, "labels", "", False)
        return LabelColumn(names=tuple(names))

    def forbidden(self) -> LabelColumn:
        """Choose the column of forbidden labels, if there is one and the user did not rule it out."""
        wanted = self._wanted("forbidden")
        return self._take_labels(self._find(wanted, FORBIDDEN_NAMES), "forbidden labels", wanted is None)

    def _take_labels(self, name: str | None, role: str, guessed: bool) -> LabelColumn:
        if name is None:
            return LabelColumn()
        strings = self._strings[name]
        separator = self._options.separator
        between = separator or strings.separator
        how = ", as lists" if between == JSON_LIST else f", separated by {between!r}" * (between is not None)
        self._take(name, role, f"{role} are column {name!r}{how}", guessed or (not separator and how != ""))
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
        used = f"column {wanted!r} is already used for the {self._roles.get(wanted)}, name another one"
        problem = used if wanted in self._lengths else f"there is no column {wanted!r}"
        raise ReadError(f"{self.source}: {problem}; {self._listed()}{hint}")

    def _take(self, name: str, role: str, guess: str, guessed: bool) -> str:
        if guessed:
            self.guesses.append(guess)
        self._roles[name] = role
        del self.free[name]
        return name

    def _longest(self) -> str | None:
        """Return the column with much longer strings than all others, or the only column."""
        lengths = sorted(((self.mean_length(name), name) for name in self.free), reverse=True)
        if len(lengths) == 1 and lengths[0][1].strip().lower() in ID_NAMES:
            return None
        if len(lengths) == 1 or (lengths and lengths[0][0] >= max(40, 2 * lengths[1][0])):
            return lengths[0][1]
        return None

    def _candidate(self) -> str | None:
        """Choose a column without a usual name: sparse, with few distinct strings. A full column holds groups.

        Raises
        ------
        UnclearLabels
            If several columns may hold labels, most rows have a value, or the values are 0 and 1.
        """
        if self._options.label_file is not None:
            return None
        filled, unclear = dict[str, int](), False
        for name in self.free:
            cells = (self._cells.get(name) or {}).items()
            counts = {cell: n for cell, n in cells if not is_missing(cell) and cell not in NO_LABEL}
            n = sum(counts.values())
            both = {str(plain_id(cell)) for cell in counts} in ({"0", "1"}, {"False", "True"})
            names = 1 < len(counts) <= n / 2 and all(isinstance(cell, str) for cell in counts)
            if (names or both) and (self._label_file or n <= FULL * self.rows):
                filled[name] = n
                unclear = unclear or both or 2 * n > self.rows
                self._strings[name] = StringSummary(counts)
        if self._label_file:
            return next(iter(filled)) if len(filled) == 1 else None
        if len(filled) > 1 or unclear:
            listed = ", ".join(f"{name!r} ({n:,} of {self.rows:,} rows have a value)" for name, n in filled.items())
            raise UnclearLabels(
                f"{self.source}: which column holds the labels? It may be {listed}. Pass one as --labels, or --labels "
                "none (labels= in Python, False: none)",
                list(filled),
            )
        return next(iter(filled), None)

    def _is_full(self, name: str) -> bool:
        """Whether a column has a value in every row."""
        counts = self._cells.get(name)
        return counts is not None and not any(map(is_missing, counts))

    def _short(self, name: str) -> bool:
        """Whether the first cells of a column are short enough for labels."""
        return max(self._lengths[name], default=0) <= MAX_LABEL_LENGTH

    def _listed(self) -> str:
        return f"the columns are {', '.join(map(repr, self._lengths))}"


@dataclass(frozen=True)
class LabelColumn:
    """A column of labels and their separator, or several columns of 0 and 1, or neither."""

    name: str | None = None
    separator: str | None = None
    names: tuple[str, ...] = ()

    def reader(self, table: Table) -> Callable[[int], tuple[list[str], list[str]]]:
        """Return a function from a row of a table to its labels, and to the topics that a 0 rules out.

        A row of zeros has none of the topics.
        """
        cells = table.column(self.name)
        indicators = [(name.strip(), table.column(name)) for name in self.names]

        def read(row: int) -> tuple[list[str], list[str]]:
            if not indicators:
                return label_names(table.unguarded(cells[row]), self.separator), []
            states = {name: indicator(name, column[row]) for name, column in indicators}
            has = [name for name, state in states.items() if state]
            lacks = [name for name, state in states.items() if state is False]
            return ([NONE] if len(lacks) == len(states) else has), lacks

        return read


def _tuple(names: Names) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


# Separators of paths; the first one that no name contains is used.
PATH_SEPARATORS = ("/", " > ", " | ", "::", " → ", "//", "\\", "¦")


def free_separator(names: Iterable[str], wanted: str | None = None) -> str:
    """The first separator that no name contains.

    Examples
    --------
    >>> free_separator(["AC/DC", "jazz"])
    ' > '
    """
    names = list(names)
    for one in (*filter(None, [wanted]), *PATH_SEPARATORS):
        if not any(one.strip() in name for name in names):
            return one
    raise ValueError(
        f"names of topics contain all separators of paths: {' '.join(PATH_SEPARATORS)}. Rename some topics."
    )
