"""Text from outside made safe to show, and pages from templates in which every value is escaped."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


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
    """Return a cell of a CSV file with a quote in front if a spreadsheet would read it as a formula.

    A cell that looks guarded already gets another quote, so that :func:`unguarded` always restores the cell.

    Examples
    --------
    >>> guarded("=1+1"), guarded("'=1+1"), guarded("a-b"), guarded("'tis"), guarded("-1.5"), guarded("-1+1")
    ("'=1+1", "''=1+1", 'a-b', "'tis", '-1.5', "'-1+1")
    """
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.match(cell) else cell


def unguarded(cell: str) -> str:
    """Return the cell without the quote of :func:`guarded`.

    Examples
    --------
    >>> unguarded("'=1+1"), unguarded("''=1+1"), unguarded("=1+1"), unguarded("'tis")
    ('=1+1', "'=1+1", '=1+1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def visible(value: object, limit: int = 200) -> str:
    """Return a value as text without hidden characters, shortened to end in … if it is too long. It is not escaped.

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
    """Return the whole text, with each hidden character replaced by its code point.

    Examples
    --------
    >>> revealed(chr(0x202E) + "reversed")
    '⟦U+202E⟧reversed'
    """
    return _HIDDEN.sub(lambda hidden: f"⟦U+{ord(hidden[0]):04X}⟧", text)


def render(template: str, **values: Any) -> str:
    """Fill a template.

    Parameters
    ----------
    template : str
        Path inside the package, such as "report/templates/report.html".
    **values
        Content of the template. Text is escaped; only `markupsafe.Markup` is inserted as it is.

    Examples
    --------
    >>> "1 &lt;b&gt;" in render("analysis/templates/explanation.html", topics=[], pieces=[("", "1 <b>")])
    True
    """
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """Return the template engine, loaded with the first page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    engine = Environment(
        loader=PackageLoader("topicsteer", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    engine.filters |= {
        "cut": visible,
        "thousands": "{:,}".format,
        "percent": lambda share, digits=0: f"{share:.{digits}%}",
        "px": lambda length: f"{length:.1f}".removesuffix(".0"),
        "counted": lambda number, noun: f"{number:,} {noun}{'' if number == 1 else 's'}",
    }
    return engine


def _finalize(value: Any) -> Any:
    """Return a value as a template may show it: plain text without hidden characters."""
    return value if isinstance(value, int | float) or hasattr(value, "__html__") else revealed(str(value))
