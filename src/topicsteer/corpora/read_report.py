"""Report of a reader: guesses, bad rows, and the error for unreadable sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from topicsteer.system.renamed import Renamed

# Whether bad rows are left out or raise an error.
OnError = Literal["skip", "raise"]
# Number of bad rows in a printed report.
SHOWN_ROWS = 20


class ReadError(ValueError):
    """A file or table could not be read as documents; the message names the problem, its place and a remedy.

    Examples
    --------
    >>> issubclass(ReadError, ValueError)
    True
    """


class EmptyTable(ReadError):
    """A table with a header, or an empty .jsonl file: it has no rows, neither good nor bad ones.

    Examples
    --------
    >>> issubclass(EmptyTable, ReadError)
    True
    """


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
    settle = Renamed("raise_for_bad_rows")

    def __str__(self) -> str:
        return "\n".join([*(f"{self.source}: {guess}" for guess in self.guesses), *self._bad()])

    def _bad(self, done: str = ", left out") -> list[str]:
        """The number of bad rows, the first of them, and the number of further ones."""
        count = len(self.bad_rows)
        lines = [f"{self.source}: {count:,} bad row{'s' * (count > 1)}{done}"] if count else []
        lines += [f"  {row}" for row in self.bad_rows[:SHOWN_ROWS]]
        return [*lines, f"  and {count - SHOWN_ROWS:,} more"] if count > SHOWN_ROWS else lines

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
