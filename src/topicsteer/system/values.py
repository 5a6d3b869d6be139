"""The one rule for label names and missing values, for cells of files and for values in Python."""

import numpy as np

# What people write in a cell of labels that has none. In Python these are names.
NO_LABEL = ("-1", "-", "--", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")


def is_missing(value: object, *, cell: bool = True) -> bool:
    """Tell whether a value is missing: None, NaN, pandas' NA and NaT, or an empty string.

    A cell of a file is also missing if it holds only spaces. A label in Python is also missing if it is the number -1;
    of a string, its spaces count.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), " ", -1)]
    [True, True, True, False]
    >>> [is_missing(value, cell=False) for value in (None, float("nan"), " ", -1)]
    [True, True, False, True]
    """
    if isinstance(value, str):
        return not (value.strip() if cell else value)
    if isinstance(value, int | float | np.number):
        return bool(value != value or (value == -1 and not cell))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def plain(value: object) -> object:
    """A numpy scalar as a Python one."""
    return value.item() if isinstance(value, np.generic) else value


def label_name(value: object, *, cell: bool = True) -> str | int:
    """A label as a name; 3.0 is 3, because a column of integers with gaps is read as floats.

    A cell of a file gives a string without the spaces around it, also for a number. A label in Python stays the string
    or the integer that it is, and other numbers are no names.

    Raises
    ------
    ValueError
        If the value is no name.

    Examples
    --------
    >>> label_name(np.float64(3)), label_name(" tea ")
    ('3', 'tea')
    >>> label_name(np.float64(3), cell=False), label_name(" tea ", cell=False)
    (3, ' tea ')
    """
    value = plain(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if cell and isinstance(value, str | int | float):
        return str(value).strip()
    if not cell and isinstance(value, str | int):
        return value
    raise ValueError(f"label of type {type(value).__name__}, expected a name")
