"""What a cell says: missing values, and labels in any of the ways people write them."""

import ast
import json
import re
from collections.abc import Hashable, Iterable

from topicsteer.system.values import NO_LABEL, is_missing, label_name

SEPARATORS = (";", "|", ",")
JSON_LIST = "json"
CLOSE_COMMA = ",x"  # a comma without a space after it
MAX_DISTINCT = 100_000  # distinct cells of a column of labels


def read_text(value: object) -> str:
    """Return a text; raises ValueError with the problem if the cell holds none."""
    if is_missing(value):
        raise ValueError("empty text")
    if not isinstance(value, str):
        raise ValueError(f"text of type {type(value).__name__}, expected a string")
    return _storable(value)


def read_id(value: object) -> Hashable:
    """Return an id as the user has it; raises ValueError with the problem if the cell holds none."""
    if is_missing(value):
        raise ValueError("missing id")
    try:
        hash(value)
    except TypeError:
        raise ValueError(f"id of type {type(value).__name__}, expected a string or a number") from None
    return _storable(value) if isinstance(value, str) else value


def split_labels(cell: object, separator: str | None) -> list[str]:
    """Names in a label cell, each once; raises ValueError with the problem if it holds something else."""
    items: object
    if isinstance(cell, str):
        if separator == JSON_LIST:
            items = _parse_list(cell) if cell.strip() else []
        else:
            items = cell.split(separator) if separator else [cell]
    elif isinstance(cell, dict) and isinstance(cell.get("choices"), list):  # a Label Studio value
        items = cell["choices"]
    else:
        items = cell.tolist() if hasattr(cell, "tolist") else cell
    if not isinstance(items, list | tuple | set | frozenset):
        items = [items]
    names = dict.fromkeys(_storable(str(label_name(item))) for item in items if not is_missing(item))
    return [name for name in names if name != "-1"]


class StringSummary:
    """What is known of the strings of a column, gathered piece by piece: how they repeat, what parts them.

    Distinct strings are counted, as hashes, until there are more than `MAX_DISTINCT`: labels are fewer.
    """

    def __init__(self, cells: Iterable[object] = ()) -> None:
        self.filled = self.longest = 0
        self.distinct: set[int] | None = set()  # None: too many
        self.absent: set[str] = set()  # of NO_LABEL, those that occur
        self._names: set[int] = set()  # the same if a comma parts them
        self._lists = True
        self.found: set[str] = set()  # of the separators, those that occur
        self.add(cells)

    def add(self, cells: Iterable[object]) -> None:
        """Look at more cells."""
        for cell in cells:
            if not isinstance(cell, str) or not (text := cell.strip()):
                continue
            if text in NO_LABEL:
                self.absent.add(text)
                continue
            self.filled += 1
            self.longest = max(self.longest, len(cell))
            if self.distinct is not None:
                key = hash(text)
                if key in self.distinct:
                    continue
                self.distinct.add(key)
                self._names.update(hash(name.strip()) for name in text.split(","))
                if len(self.distinct) > MAX_DISTINCT:
                    self.distinct = None
            self._lists = self._lists and text[0] == "[" and text[-1] == "]"
            self.found.update(separator for separator in SEPARATORS if separator in text)
            if CLOSE_COMMA not in self.found and re.search(r",\S", text):
                self.found.add(CLOSE_COMMA)

    @property
    def separator(self) -> str | None:
        """What stands between the labels of a cell, a guess; None if each cell holds one label.

        A semicolon or a bar is believed at once. A comma may be part of a name ("Korea, South"): it is believed
        if no space follows it, or if splitting there gives fewer distinct names than there were distinct cells.
        """
        if self.filled and self._lists:
            return JSON_LIST
        for separator in SEPARATORS[:-1]:
            if separator in self.found:
                return separator
        fewer = self.distinct is not None and len(self._names) < len(self.distinct)
        return "," if "," in self.found and (fewer or CLOSE_COMMA in self.found) else None


def _parse_list(cell: str) -> list[object]:
    """Items of a list written as JSON, or as Python prints it."""
    for parse in (json.loads, ast.literal_eval):
        try:
            items = parse(cell)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        if isinstance(items, list):
            return items
    raise ValueError("the labels are not a JSON list")


def _storable(value: str) -> str:
    """Refuse half of a surrogate pair, which broken JSON gives and no file can hold."""
    try:
        if not value.isascii():
            value.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair, which is not a character") from None
    return value
