"""What a reader tells its caller besides the documents: guesses, bad rows, and the one reading error."""

from __future__ import annotations

from dataclasses import dataclass

SHOWN_ROWS = 10


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
    line : int
        Line of the file, or row number of a table that has no lines, counted from 1.
    problem : str
        What is wrong with it, such as ``"empty text"``.

    Examples
    --------
    >>> print(BadRow(7, "empty text"))
    line 7: empty text
    """

    line: int
    problem: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.problem}"


@dataclass(frozen=True)
class ReadReport:
    """What was guessed and what was left out while reading.

    Parameters
    ----------
    source : str
        The file or kind of table that was read.
    guesses : tuple of str
        One sentence for each choice the user did not make, such as ``"text is column 'body'"``.
    bad_rows : tuple of BadRow
        The rows that were left out, in the order of the file.

    Examples
    --------
    >>> print(ReadReport("a.csv", ("text is column 'body'",), (BadRow(7, "empty text"),)))
    a.csv: text is column 'body'
    a.csv: 1 row left out
      line 7: empty text
    """

    source: str = ""
    guesses: tuple[str, ...] = ()
    bad_rows: tuple[BadRow, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.source}: {guess}" for guess in self.guesses]
        if self.bad_rows:
            count = len(self.bad_rows)
            lines.append(f"{self.source}: {count:,} row{'s' if count > 1 else ''} left out")
            lines += [f"  {row}" for row in self.bad_rows[:SHOWN_ROWS]]
        if len(self.bad_rows) > SHOWN_ROWS:
            lines.append(f"  and {len(self.bad_rows) - SHOWN_ROWS:,} more")
        return "\n".join(lines)
