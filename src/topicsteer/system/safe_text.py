"""Make text from outside safe to show: no hidden characters, not too long, and no formula in a spreadsheet."""

import re

# Characters that are invisible, or that reorder or break a page: controls, direction overrides, lone surrogates.
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufdd0-\ufdef\ufeff\ufffe\uffff\ud800-\udfff]"
)
# Beginning of a cell that a spreadsheet would read as a formula, after any quotes that guard it.
FORMULA = r"^'*[=+\-@\t\r]"
_FORMULA = re.compile(FORMULA)
# A negative number, which begins like a formula and is none.
NUMBER = r"^-[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_NUMBER = re.compile(NUMBER)


def guarded(cell: str) -> str:
    """A cell of a CSV file with a quote in front if a spreadsheet would read it as a formula.

    A cell that looks guarded already gets another quote, so that :func:`unguarded` always restores the cell.

    Examples
    --------
    >>> guarded("=1+1"), guarded("'=1+1"), guarded("a-b"), guarded("'tis"), guarded("-1.5"), guarded("-1+1")
    ("'=1+1", "''=1+1", 'a-b', "'tis", '-1.5', "'-1+1")
    """
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.match(cell) else cell


def unguarded(cell: str) -> str:
    """The cell without the quote of :func:`guarded`.

    Examples
    --------
    >>> unguarded("'=1+1"), unguarded("''=1+1"), unguarded("=1+1"), unguarded("'tis")
    ('=1+1', "'=1+1", '=1+1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def visible(value: object, limit: int = 200) -> str:
    """A value as text without hidden characters, shortened to end in … if it is too long. It is not escaped.

    Parameters
    ----------
    value : object
        The value to display.
    limit : int
        Maximum number of characters.

    Examples
    --------
    >>> visible("a" + chr(0) + "b <c>")
    'a⟦U+0000⟧b <c>'
    >>> visible("a very long name", limit=7)
    'a very…'
    """
    text = revealed(str(value)[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def revealed(text: str) -> str:
    """The whole text, with each hidden character replaced by its code point.

    Examples
    --------
    >>> revealed(chr(0x202E) + "reversed")
    '⟦U+202E⟧reversed'
    """
    return _HIDDEN.sub(lambda hidden: f"⟦U+{ord(hidden[0]):04X}⟧", text)
