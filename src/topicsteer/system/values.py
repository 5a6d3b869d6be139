"""The rule for ids, label names and missing values, in files and in Python."""

from collections.abc import Collection, Hashable, Sequence

import numpy as np

# Cells that mean "no label" in a file. In Python, labels with these names are ordinary labels.
NO_LABEL = ("-1", "-", "--", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")

# The label of a document that has none of the topics, in files and in Python. It is never the name of a topic.
NONE = "(none)"
# Columns of a table of labels: how a document was chosen, and the probability of its draw; see `labels.supervision`.
CHOSEN, PROBABILITY = "chosen", "probability"
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


def label_name(value: object, *, cell: bool = True) -> str | int:
    """Convert a label to a name; 3.0 becomes 3, because a column of integers with gaps is read as floats.

    A cell of a file becomes a string without surrounding spaces, even if it is a number. A label in Python stays a
    string or an integer; other numbers are not names.

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
        return str(value).strip()
    if not cell and isinstance(value, str | int):
        return value
    raise ValueError(f"label of type {type(value).__name__}, expected a name")
