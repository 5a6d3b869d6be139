"""What every reader gives: a table of plain columns, whole or in pieces."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from topicsteer.corpora.read_report import BadRow, ReadReport

PIECE = 1 << 22  # characters of a piece, about
ROW = 100  # what a row costs besides, in characters


@dataclass(frozen=True)
class Table:
    """Columns of equal length, where each row stands in its source, and what could not become a row.

    It may be one piece of a larger table. ``ids`` are those that the rows have without a column for it, such as the
    index of a pandas DataFrame.
    """

    source: str
    columns: Mapping[str, Sequence[object]]
    places: Sequence[int]
    unit: str = "row"
    guesses: tuple[str, ...] = ()
    problems: Mapping[int, str] = field(default_factory=dict)
    ids: Sequence[Hashable] | None = None

    def column(self, name: str | None) -> Sequence[object]:
        """Cells of a column; None in all rows if this table, or this piece of one, does not have it."""
        return [None] * len(self.places) if name is None or name not in self.columns else self.columns[name]

    def report(self, guesses: Iterable[str], problems: Mapping[int, str]) -> ReadReport:
        """Say what was guessed and what was found wrong, in the order of the source."""
        bad = (BadRow(f"{self.unit} {place}", problems[place]) for place in sorted(problems))
        return ReadReport(self.source, tuple(guesses), tuple(bad))


Pieces = Callable[[float], Iterator[Table]]  # a table in pieces of so many characters, any number of times


def columns_of(rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    """Columns of all names that occur, None where a row lacks one."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {str(name): [row.get(name) for row in rows] for name in names}
