"""Report of a reader: guesses, bad rows, and the error for unreadable sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from topicsteer.system.renamed import Renamed

# Whether bad rows are left out or raise an error.
OnError = Literal["skip", "raise"]
# Number of problems in a printed report, each with the first of its rows.
SHOWN_ROWS = 20
# Number of rows with the same problem that are named.
SHOWN_PLACES = 5


class ReadError(ValueError):
    """A file or table could not be read as documents; the message names the problem, its place and a remedy.

    Examples
    --------
    >>> issubclass(ReadError, ValueError)
    True
    """


class EmptyTable(ReadError):
    """A table with a header, or an empty .jsonl file: it has no rows, neither good nor bad ones.

    Parameters
    ----------
    message : str
    columns : sequence of str
        Names of the columns.
    id : str, optional
        The column of ids, by its name.

    Examples
    --------
    >>> EmptyTable("a.csv: the table is empty", ["id", "text"], "id").columns
    ('id', 'text')
    """

    def __init__(self, message: str, columns: Sequence[str] = (), id: str | None = None) -> None:
        super().__init__(message)
        self.columns, self.id = tuple(columns), id


@dataclass(frozen=True)
class BadRow:
    """A row that could not be used.

    Parameters
    ----------
    place : str
        ``"line 7"`` of a text file, ``"row 7"`` of a table without lines (both counted from 1), or the name of a file
        in a folder.
    problem : str
        The reason.

    Examples
    --------
    >>> print(BadRow("line 7", "empty text"))
    line 7: empty text
    """

    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


@dataclass(frozen=True)
class ReadReport:
    """Guesses of a reader, and the rows that it left out.

    Parameters
    ----------
    source : str
        The file or kind of table that was read.
    guesses : tuple of str
        One phrase per guess, such as ``"text is column 'body'"``.
    bad_rows : tuple of BadRow
        The rows that were left out, in the order of the source.
    left_out : tuple of int
        Numbers of the rows of the table that were left out, from 0.
    kept : bool
        Whether bad rows are documents too, such as an empty text for `predict`.

    Examples
    --------
    >>> print(ReadReport("a.csv", ("text is column 'body'",), (BadRow("line 7", "empty text"),)))
    a.csv: text is column 'body'
    a.csv: 1 bad row, left out
      line 7: empty text
    """

    source: str = ""
    guesses: tuple[str, ...] = ()
    bad_rows: tuple[BadRow, ...] = ()
    left_out: tuple[int, ...] = ()
    kept: bool = False
    settle = Renamed("raise_for_bad_rows")

    def __str__(self) -> str:
        bad = self._bad(f", {self._treatment()}")
        return "\n".join([*(f"{self.source}: {guess}" for guess in self.guesses), *bad])

    def _treatment(self) -> str:
        """What became of the bad rows."""
        return "kept" if self.kept else "left out"

    def _bad(self, done: str) -> list[str]:
        """The number of bad rows, the first of them, and the number of further ones."""
        count = len(self.bad_rows)
        lines = [f"{self.source}: {count:,} bad row{'s' * (count > 1)}{done}"] if count else []
        places: dict[str, list[str]] = {}
        for row in self.bad_rows:
            places.setdefault(row.problem, []).append(row.place)
        lines += [f"  {_joined(own)}: {problem}" for problem, own in list(places.items())[:SHOWN_ROWS]]
        rest = sum(map(len, list(places.values())[SHOWN_ROWS:]))
        return [*lines, f"  and {rest:,} more"] if rest else lines

    def raise_for_bad_rows(self, on_error: OnError) -> ReadReport:
        """Return the report, or raise it as an error if there are bad rows and ``on_error`` is "raise".

        Parameters
        ----------
        on_error : {"skip", "raise"}
            Leave bad rows out, or raise an error.

        Returns
        -------
        ReadReport
            The report itself.

        Examples
        --------
        >>> ReadReport("a.csv").raise_for_bad_rows("raise").source
        'a.csv'
        """
        if on_error not in ("skip", "raise"):
            raise ValueError(f"on_error is {on_error!r}: expected 'skip' or 'raise'")
        if on_error == "raise" and self.bad_rows:
            advice = "Repair these rows, or leave them out (on_error, --on-error: skip)."
            raise ReadError("\n".join([*self._bad(""), advice]))
        return self


def _joined(places: list[str]) -> str:
    """Places with the same problem in a few words.

    Examples
    --------
    >>> _joined(["line 7"]), _joined(["line 7", "line 9"]), _joined([f"row {i}" for i in range(8)])
    ('line 7', 'lines 7, 9', 'rows 0, 1, 2, 3, 4 and 3 more')
    """
    if len(places) == 1:
        return places[0]
    units = {place.rpartition(" ")[0] for place in places}
    shown = places[:SHOWN_PLACES]
    if units in ({"line"}, {"row"}):
        shown = [place.rpartition(" ")[2] for place in shown]
        shown[0] = f"{units.pop()}s {shown[0]}"
    more = len(places) - SHOWN_PLACES
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")
