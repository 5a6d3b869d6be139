"""Read delimited text (CSV, TSV); a broken line costs one row and never its neighbours."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from topicsteer.corpora.documents import ReadError
from topicsteer.corpora.readers.table_file import (
    ROW_COST,
    Table,
    TableFile,
    check_cells,
    column_names,
    read_lines,
    undecodable,
)

# Delimiters that are tried on the header.
DELIMITERS = ",\t;|"
# Characters of the header in which the delimiter is counted.
LONG_HEADER = 1 << 20
# Maximum number of characters in a record of several lines. A longer one has a quote that is never closed.
MAX_RECORD = 1 << 24


def read_delimited(file: TableFile, size: float, notes: list[str] | None = None) -> Iterator[Table]:
    """Yield the blocks of a file of delimited text.

    With a list of ``notes``, rows with the wrong number of fields are not problems: see `read_records`.
    """
    delimiter = file.delimiter or ("\t" if file.kind in (".tsv", ".tab") else None)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ReadError(f"delimiter is {delimiter!r}: expected one character such as ',' or ';'")
    records = read_records(read_lines(file.path, file.encoding), delimiter, file.encoding, notes)
    with long_fields():
        _, header, _ = next(records, (0, [], None))
    if not header:
        raise ReadError(f"{file.path}: is empty; expected a header with the names of the columns")
    check_cells(file.path, 1, len(header))
    names = column_names(header)
    guesses = file.guesses
    if file.delimiter and len(header) == 1 and set(DELIMITERS) & set(header[0]):
        one = f"{delimiter!r} does not occur in the header, so there is one column, {header[0][:60]!r}"
        guesses = (*guesses, f"{one}; to split it, pass another --delimiter (delimiter= in Python)")
    while True:
        rows: list[list[str]] = []
        places: list[int] = []
        problems: dict[int, str] = {}
        room = size
        # The limit of the csv module is global, so it is raised only while this code runs.
        with long_fields():
            for line, fields, problem in records:
                if problem is None:
                    rows.append(fields)
                    places.append(line)
                else:
                    problems[line] = problem
                room -= sum(map(len, fields)) + ROW_COST
                if room <= 0:
                    break
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        named = dict(zip(names, columns, strict=True))
        yield Table(file.path, named, places, "line", guesses, problems, guarded=True)
        if room > 0:
            return


class Lines:
    """Decoded lines, with a memory of the current record, so that some of its lines can be read again."""

    def __init__(self, lines: Iterable[tuple[str, bool]]) -> None:
        self._lines = iter(lines)
        # Lines to read again, the next one last.
        self._waiting: list[tuple[str, bool]] = []
        self.number = 0
        self.record: list[tuple[str, bool]] = []
        self._length = 0

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        line = self._waiting.pop() if self._waiting else next(self._lines)
        self.number += 1
        self.record.append(line)
        self._length += len(line[0])
        if self._length > MAX_RECORD and len(self.record) > 1:
            raise csv.Error("an open quote")
        return line[0]

    def begin(self) -> None:
        """Begin a new record."""
        self.record = []
        self._length = 0

    def unread(self, keep: int) -> None:
        """Return the lines of this record after the first ``keep``, so that they are read again."""
        rest = self.record[keep:]
        self._waiting += reversed(rest)
        self.number -= len(rest)
        del self.record[keep:]


def read_records(
    source: Iterable[tuple[str, bool]], delimiter: str | None, encoding: str, notes: list[str] | None = None
) -> Iterator[tuple[int, list[str], str | None]]:
    """Yield line number, fields, and problem or None, of each record; the first one is the header.

    An open quote can join a line with the lines below it. A record with wrong quotes is therefore read again as one
    line. So is a record of several lines with the wrong number of fields.

    With a list of ``notes``, a short record gets empty fields, and further fields of a long one join its last field.
    Each gets a note.
    """
    lines = Lines(source)
    if delimiter is None:
        first = next(lines, "")
        delimiter = guess_delimiter(first[:LONG_HEADER])
        lines.unread(0)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    width = 0
    while True:
        lines.begin()
        fields: list[str] | None
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error:
            fields = None
        if fields is None or (len(lines.record) > 1 and len(fields) != (width or len(fields))):
            lines.unread(1)
            fields = split_line(lines.record[0][0], delimiter)
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
        if not fields:
            continue  # An empty line has no fields.
        width = width or len(fields)
        while len(fields) > width and not fields[-1]:
            fields.pop()
        problem = None
        line = lines.number - len(lines.record) + 1
        if not all(decoded for _, decoded in lines.record):
            problem = undecodable(encoding)
        elif notes is None:
            if len(fields) != width:
                problem = f"{len(fields)} field{'s' if len(fields) != 1 else ''}, the header has {width}"
        elif len(fields) < width:
            notes.append(f"Line {line} has {len(fields)} of {width} fields: the others are empty.")
            fields += [""] * (width - len(fields))
        elif len(fields) > width:
            notes.append(
                f"Line {line} has {len(fields)} fields, and the header {width}: the last ones are read as one."
            )
            fields[width - 1 :] = [delimiter.join(fields[width - 1 :])]
        yield line, fields, problem


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the fields of a single line, even if its quotes are not closed."""
    plain = line.rstrip("\r\n").replace("\r", " ").replace("\n", " ")
    return next(csv.reader([plain], delimiter=delimiter), [])


def guess_delimiter(header: str) -> str:
    """Return the delimiter that gives the most fields in the header; a comma if none splits it."""
    return max(DELIMITERS, key=lambda delimiter: len(split_line(header, delimiter)))


@contextmanager
def long_fields() -> Iterator[None]:
    """Allow fields of any length; by default, the csv module refuses more than 131,072 characters."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
