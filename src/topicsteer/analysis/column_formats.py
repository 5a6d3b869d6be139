"""Tables for people: typed columns with one rule for the format of a value, and the cells of a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Literal

from topicsteer.system.templates import visible

Kind = Literal["text", "origin", "number", "count", "share", "flag"]
FORMATS: dict[Kind, str] = {"number": ".3f", "count": ",.0f", "share": ".1%"}
# Text for a missing value.
MISSING = "–"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        Its heading.
    kind : str
        "text"; "origin" (known or free); "number" (three decimals, whole numbers as they are); "count" (thousands are
        separated); "share" (percent); "flag" (yes or no).

    Examples
    --------
    >>> Column("share", "share").format(0.25), Column("labelled", "count").format(12345)
    ('25.0%', '12,345')
    """

    name: str
    kind: Kind = "text"

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers: aligned right, sorted by size."""
        return self.kind in FORMATS

    def format(self, value: object, limit: int = 200) -> str:
        """Return the value as people write it, with hidden characters made visible."""
        if missing(value):
            return MISSING
        if self.kind == "flag":
            return "yes" if value else "no"
        if not self.numeric or not isinstance(value, Real):
            return visible(value, limit)
        if self.kind == "number" and isinstance(value, Integral):
            return str(int(value))
        return format(float(value), FORMATS[self.kind])


def typed(table: Mapping[str, Sequence[Any]], columns: Iterable[Column] = ()) -> tuple[Column, ...]:
    """Return the columns of a table: declared ones by name, the others by the type of their values.

    Examples
    --------
    >>> table = {"topic": ["tea"], "share": [0.1], "F1": [0.5]}
    >>> [column.kind for column in typed(table, [Column("share", "share")])]
    ['text', 'share', 'number']
    """
    declared = {column.name: column for column in columns}
    return tuple(declared.get(name) or Column(name, _kind(values)) for name, values in table.items())


def missing(value: object) -> bool:
    """Return whether there is no value: None or NaN."""
    return value is None or (isinstance(value, Real) and math.isnan(value))


def _kind(values: Sequence[Any]) -> Kind:
    some = [value for value in values if value is not None]
    if some and all(type(value).__name__ in ("bool", "bool_") for value in some):  # of numpy too
        return "flag"
    return "number" if some and all(isinstance(value, Real) for value in some) else "text"


@dataclass(frozen=True)
class Cell:
    """One value of a table.

    Parameters
    ----------
    column : Column
        It decides on the format.
    value : object
        None or NaN if there is none.
    head : bool
        Whether it names its row.
    link : str
        Id of the element that it links to.
    """

    column: Column
    value: Any
    head: bool = False
    link: str = ""

    @property
    def text(self) -> str:
        """The value as people write it."""
        return self.column.format(self.value)

    @property
    def sort(self) -> str:
        """The number that a script sorts by; empty if there is none."""
        if not self.column.numeric or missing(self.value):
            return ""
        return str(int(self.value)) if isinstance(self.value, Integral) else f"{float(self.value):.6g}"


@dataclass(frozen=True)
class Grid:
    """A table of a page: its id, a caption for screen readers, columns and rows."""

    key: str
    caption: str
    columns: tuple[Column, ...]
    rows: list[list[Cell]]


def grid(
    key: str,
    caption: str,
    table: Mapping[str, Sequence[Any]],
    columns: Iterable[Column] = (),
    *,
    links: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Grid:
    """Arrange the columns of a table in rows of cells.

    Parameters
    ----------
    key, caption : str
        See `Grid`.
    table : mapping of str to sequence
        Values by column. The first column of text names the rows.
    columns : iterable of Column
        Kinds of the columns; the others follow the type of their values.
    links : mapping of str to sequence
        Links of the cells, by column.

    Examples
    --------
    >>> made = grid("t", "Labels", {"topic": ["tea"], "a": [0.5]})
    >>> [(cell.text, cell.head) for cell in made.rows[0]]
    [('tea', True), ('0.500', False)]
    """
    shown = typed(table, columns)
    head = next((column.name for column in shown if column.kind == "text"), None)
    rows = [
        [
            Cell(
                column,
                table[column.name][i],
                column.name == head,
                links[column.name][i] if column.name in links else "",
            )
            for column in shown
        ]
        for i in range(len(next(iter(table.values()), ())))
    ]
    return Grid(key, caption, shown, rows)
