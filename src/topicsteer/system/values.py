"""The rule for ids, label names and missing values, in files and in Python."""

import re
import unicodedata
from collections.abc import Collection, Hashable, Iterable, Sequence
from functools import cache

import numpy as np

# Cells that mean "no label" in a file. In Python, labels with these names are ordinary labels.
NO_LABEL = ("-1", "-", "--", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")

# The label of a document that has none of the topics, in files and in Python. It is never the name of a topic.
NONE = "(none)"
# The prediction of a document that has neither a topic above its threshold nor none of them.
UNSURE = "unsure"
# Columns of a table of labels: how a document was chosen, and the probability of its draw; see `labels.supervision`.
CHOSEN, PROBABILITY = "chosen", "probability"
# Marks on one letter at most, as in the Stream-Safe Text Format of Unicode: normalisation is quadratic in their number.
MOST_MARKS = 30
# The group of all documents, in tables of shares.
ALL = "(all)"


def is_missing(value: object, *, cell: bool = True) -> bool:
    """Return whether a value is missing: None, NaN, pandas' NA and NaT, or an empty string.

    A cell of a file is also missing if it holds only spaces. A label in Python is also missing if it is the number -1,
    but a string of spaces is a label.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), " ", -1)]
    [True, True, True, False]
    >>> [is_missing(value, cell=False) for value in (None, float("nan"), " ", -1)]
    [True, True, False, True]
    """
    if isinstance(value, str):
        return not value or (cell and value.isspace())
    if isinstance(value, int | float | np.number):
        return bool(value != value or (value == -1 and not cell))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def check_none(labels: Collection[object]) -> None:
    """Raise ValueError if the labels of a document are `NONE` and others as well.

    Examples
    --------
    >>> check_none(["(none)", "tea"])
    Traceback (most recent call last):
    ValueError: the label '(none)' together with 'tea': it marks a document that has none of the topics
    """
    others = [label for label in labels if label != NONE]
    if others and len(others) < len(labels):
        raise ValueError(
            f"the label {NONE!r} together with {others[0]!r}: it marks a document that has none of the topics"
        )


def listed(names: Iterable[object], most: int = 8) -> str:
    """List names in a sentence, and count those after the first ones.

    Examples
    --------
    >>> listed("abcd", 2)
    'a, b and 2 more'
    """
    some = list(map(str, names))
    return ", ".join(some[:most]) + (f" and {len(some) - most:,} more" if len(some) > most else "")


def plain(value: object) -> object:
    """Convert a numpy scalar to a Python scalar; other values stay as they are."""
    return value.item() if isinstance(value, np.generic) else value


def whole(value: object) -> object:
    """Convert a float without a fraction to an integer, and a numpy scalar to a Python scalar."""
    value = plain(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def plain_id(value: object) -> str | int:
    """Return the id of a document: a string or an integer. 3.0 becomes 3, and other values become text.

    Ids are compared as text, so 3 and "3" are the same id.

    Examples
    --------
    >>> plain_id(np.float64(3)), plain_id("3"), plain_id(3.5), plain_id(True)
    (3, '3', '3.5', 'True')
    """
    value = whole(value)
    return value if isinstance(value, str | int) and not isinstance(value, bool) else str(value)


def check_ids(ids: Sequence[Hashable]) -> None:
    """Raise ValueError if two documents have the same id, compared as text.

    Examples
    --------
    >>> check_ids(["a", 1, "1"])
    Traceback (most recent call last):
    ValueError: documents 1 and 2 have the same id, 1 and '1': ids are compared as text...
    """
    texts = list(map(str, ids))
    if len(set(texts)) == len(texts):
        return
    first: dict[str, int] = {}
    before, row = next((first[text], row) for row, text in enumerate(texts) if first.setdefault(text, row) != row)
    both = f"{ids[row]!r}" if ids[before] == ids[row] else f"{ids[before]!r} and {ids[row]!r}"
    raise ValueError(
        f"documents {before} and {row} have the same id, {both}: ids are compared as text, and each document "
        "needs its own."
    )


def composed(text: str) -> str:
    """Return a text in composed Unicode, with at most 30 marks on a letter.

    Examples
    --------
    >>> composed("cafe\u0301"), len(composed("e" + "\u0323\u0301" * 1000))
    ('café', 30)
    """
    if text.isascii():
        return text
    if re.search(_mark(), text[::MOST_MARKS]):  # longer runs of marks are in every such sample
        text = re.sub(f"{_mark()}{{{MOST_MARKS},}}", lambda run: run[0][:MOST_MARKS], text)
    return unicodedata.normalize("NFC", text)


@cache
def _mark() -> str:
    """Return a pattern of the characters whose canonical decomposition begins with a combining mark."""
    characters = map(chr, range(0x300, 0x20000))
    marks = "".join(one for one in characters if unicodedata.combining(unicodedata.normalize("NFD", one)[0]))
    far = marks[next(k for k, mark in enumerate(marks) if mark > "\uffff") :]  # they make a set slow: tried last
    return f"(?:[{marks[: -len(far)]}]|(?=[{far[0]}-{far[-1]}])[{far}])"


def tidy(name: str) -> str:
    """Return a name in composed Unicode, with single spaces; a name of spaces only stays as it is.

    Examples
    --------
    >>> tidy(" new  york ")
    'new york'
    """
    return " ".join(composed(name).split()) or name


def fold(name: str) -> str:
    """Return the form in which names are compared: tidy, and without case.

    Examples
    --------
    >>> fold("New  York") == fold("new york"), fold("cafe\u0301") == fold("Café")
    (True, True)
    """
    return tidy(tidy(name).casefold())


def label_name(value: object, *, cell: bool = True) -> str | int:
    """Convert a label to a name; 3.0 becomes 3, because a column of integers with gaps is read as floats.

    A cell of a file becomes a string without surrounding spaces, even if it is a number, and "(None)" is `NONE`. A
    label in Python stays a string or an integer; other numbers are not names.

    Raises
    ------
    ValueError
        If the value is not a name.

    Examples
    --------
    >>> label_name(np.float64(3)), label_name(" tea ")
    ('3', 'tea')
    >>> label_name(np.float64(3), cell=False), label_name(" tea ", cell=False)
    (3, ' tea ')
    """
    value = whole(value)
    if cell and isinstance(value, str | int | float):
        name = str(value).strip()
        return NONE if fold(name) == NONE else name
    if not cell and isinstance(value, str | int):
        return value
    raise ValueError(f"label of type {type(value).__name__}, expected a name")
