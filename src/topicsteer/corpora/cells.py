"""Read cells: texts, ids, and labels in all common notations."""

import ast
import json
import re
from collections.abc import Hashable, Iterable, Sequence
from datetime import date, time
from numbers import Number

import numpy as np

from topicsteer.system.values import NO_LABEL, NONE, check_none, is_missing, label_name, plain_id

# Characters that may separate the labels of a cell, the most reliable first.
SEPARATORS = (";", "|", ",")
_BETWEEN = re.compile(r"\s*[;|,]\s*")
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
        self.filled = self.longest = 0
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
            self._count(_BETWEEN.split(text))
            self.longest = max(self.longest, len(cell))
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
