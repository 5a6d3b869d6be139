"""What a reader tells its caller besides the documents: guesses, bad rows, and the one reading error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from topicsteer.system.renamed import Renamed

OnError = Literal["skip", "raise"]
SHOWN_ROWS = 20


class ReadError(ValueError):
    """A file or table could not be read as documents; the message says what, where and what to do.

    Examples
    --------
    >>> issubclass(ReadError, ValueError)
    True
    """


@dataclass(frozen=True)
class BadRow:
    """One row that could not be used.

    Parameters
    ----------
    place : str
        Where it stands: ``"line 7"`` of a text file, ``"row 7"`` of a table without lines (both counted from
        1), or the name of a file in a folder.
    problem : str
        What is wrong with it.

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
    """What was guessed and what was left out while reading.

    Parameters
    ----------
    source : str
        The file or kind of table that was read.
    guesses : tuple of str
        One phrase for each choice that the user did not make, such as ``"text is column 'body'"``.
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
        """One line of count, then the first rows, then how many more."""
        count = len(self.bad_rows)
        lines = [f"{self.source}: {count:,} bad row{'s' * (count > 1)}{done}"] if count else []
        lines += [f"  {row}" for row in self.bad_rows[:SHOWN_ROWS]]
        return [*lines, f"  and {count - SHOWN_ROWS:,} more"] if count > SHOWN_ROWS else lines

    def raise_for_bad_rows(self, on_error: OnError) -> ReadReport:
        """Return the report, or raise it if there are bad rows and the user wants them to be fatal.

        Parameters
        ----------
        on_error : {"skip", "raise"}
            What the user chose.

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
