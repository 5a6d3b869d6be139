"""Tables of a page: typed columns, and for each cell its text, sort key, bar and link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import Any

from topicsteer.analysis.table_columns import Column, missing, typed


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
    best : bool
        Whether it is the best score of its row.
    bar : float or None
        Length of a bar in front of it, from 0 to 1.
    link : str
        Id of the element that it links to.
    """

    column: Column
    value: Any
    head: bool = False
    best: bool = False
    bar: float | None = None
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
    compared: Sequence[str] = (),
    bars: Mapping[str, Sequence[float]] = MappingProxyType({}),
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
    compared : sequence of str
        Columns with scores of methods; the best ones of a row are marked.
    bars, links : mapping of str to sequence
        Bars and links of the cells, by column.

    Examples
    --------
    >>> made = grid("t", "Labels", {"topic": ["tea"], "a": [0.5], "b": [0.7]}, compared=["a", "b"])
    >>> [(cell.text, cell.head, cell.best) for cell in made.rows[0]]
    [('tea', True, False), ('0.500', False, False), ('0.700', False, True)]
    """
    shown = typed(table, columns)
    head = next((column.name for column in shown if column.kind == "text"), None)
    rows = []
    for i in range(len(next(iter(table.values()), ()))):
        top = max((table[name][i] for name in compared if not missing(table[name][i])), default=None)
        rows.append(
            [
                Cell(
                    column,
                    value := table[column.name][i],
                    column.name == head,
                    column.name in compared and top is not None and value == top,
                    bars[column.name][i] if column.name in bars and not missing(bars[column.name][i]) else None,
                    links[column.name][i] if column.name in links else "",
                )
                for column in shown
            ]
        )
    return Grid(key, caption, shown, rows)
