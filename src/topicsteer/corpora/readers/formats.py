"""Read a source: a file of text with delimiters, JSON or Parquet, a DataFrame, or a list of texts or dicts."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from topicsteer.corpora.documents import ReadError, ReadOptions
from topicsteer.corpora.readers.excel import read_excel
from topicsteer.corpora.readers.table_file import (
    ROW_COST,
    Table,
    TableBlocks,
    TableFile,
    check_bytes,
    check_cells,
    column_names,
    columns_of,
    local_copy,
    read_lines,
    read_text,
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


def read_json_lines(file: TableFile, size: float) -> Iterator[Table]:
    """Yield the blocks of a file with one object per line."""
    rows: dict[int, object] = {}
    problems: dict[int, str] = {}
    room = size
    for number, (line, decoded) in enumerate(read_lines(file.path, file.encoding), 1):
        if not decoded:
            problems[number] = undecodable(file.encoding)
        elif line.strip():
            try:
                rows[number] = json.loads(line.removeprefix("\ufeff").rstrip())
            except (ValueError, RecursionError) as error:
                problems[number] = _json_problem(error)
        room -= len(line) + ROW_COST
        if room <= 0:
            yield _table(file, rows, "line", problems)
            rows, problems, room = {}, {}, size
    yield _table(file, rows, "line", problems)


def read_json(file: TableFile, size: float) -> Iterator[Table]:
    """Yield a list of objects as one block."""
    try:
        items = json.loads(read_text(file.path, file.encoding))
    except (json.JSONDecodeError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise ReadError(
            f"{file.path}: {line}{_json_problem(error)}; a file with one object per line is .jsonl"
        ) from None
    if not isinstance(items, list):
        raise ReadError(f"{file.path}: JSON of type {type(items).__name__}, expected a list of objects")
    yield _table(file, dict(enumerate(items, 1)), "row", {})


def _table(file: TableFile, rows: Mapping[int, object], unit: str, problems: Mapping[int, str]) -> Table:
    """Make a table of the rows that are objects; other rows are problems."""
    good = {number: row for number, row in rows.items() if isinstance(row, dict)}
    bad = {
        number: f"JSON of type {type(row).__name__}, expected an object with named values"
        for number, row in rows.items()
        if number not in good
    }
    return Table(
        file.path, columns_of(list(good.values()), file.path), list(good), unit, file.guesses, {**problems, **bad}
    )


def _json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg} at character {error.colno})"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def read_parquet(file: TableFile, size: float) -> Iterator[Table]:
    """Yield slices of a Parquet file; polars loads only the row groups of a slice."""
    import polars as pl

    with local_copy(file.path, ".parquet") as local:
        try:
            scan = pl.scan_parquet(local, glob=False)
            total, low, rows = scan.select(pl.len()).collect().item(), 0, 1000.0
            schema = scan.collect_schema()
            check_cells(file.path, total, len(schema))
            # One long text may stand for a million, and one list may hold a million values.
            lengths = [pl.col(name).str.len_bytes().sum() for name, kind in schema.items() if kind == pl.String]
            lengths += [8 * pl.col(name).list.len().sum() for name, kind in schema.items() if kind == pl.List]
            if lengths:
                check_bytes(file.path, int(scan.select(pl.sum_horizontal(lengths)).collect().item() or 0))
            while True:
                frame = scan.slice(low, None if size == math.inf else int(rows)).collect()
                yield Table(file.path, frame.to_dict(as_series=False), range(low + 1, low + len(frame) + 1))
                low += len(frame)
                if low >= total:
                    return
                rows = max(1.0, size / (frame.estimated_size() / len(frame) + ROW_COST))
        except ReadError:
            raise
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
            raise ReadError(f"{file.path}: not a Parquet file that can be read ({error})") from None


# The reader of each file extension, without .gz. It yields blocks of about the given number of characters.
READERS: dict[str, Callable[[TableFile, float], Iterator[Table]]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".tab": read_delimited,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".xlsx": read_excel,
    ".xlsm": read_excel,
}
# Kinds of sheets that are not read.
OTHER_SHEETS = (".xls", ".xlsb", ".ods", ".numbers")


def load_table(source: object, options: ReadOptions) -> Table:
    """Load any supported source as one table."""
    return next(open_table(source, options)(math.inf))


def open_table(source: object, options: ReadOptions) -> TableBlocks:
    """Return a function that reads a source in blocks; a table in memory and a .json file are one block."""
    if isinstance(source, str | os.PathLike):
        file = TableFile(os.fspath(source), options.encoding, options.delimiter, options.sheet)
        if Path(file.path).is_dir():
            raise ReadError(f"{file.path}: is a folder; read its files with read_folder")
        if file.kind not in READERS:
            save = "; save the sheet as .xlsx first" if file.kind in OTHER_SHEETS else ""
            raise ReadError(
                f"{file.path}: unknown kind of file {file.kind!r}; expected .csv, .tsv, .xlsx, .jsonl, .json or "
                f".parquet, each of them also with .gz{save}"
            )
        return partial(READERS[file.kind], file)
    if hasattr(source, "partitions") and hasattr(source, "dask"):
        return partial(_dask_blocks, source)
    table = source if isinstance(source, Table) else _load_object(source)
    return lambda size: iter([table])


def _load_object(source: object) -> Table:
    """Load a table in memory: a DataFrame, or a list of texts or dicts."""
    if isinstance(source, Mapping):
        names = ", ".join(map(repr, list(source)[:5]))
        raise ReadError(f"cannot read a {type(source).__name__} of {names}: pass one of its values, or a DataFrame")
    frame = _from_frame(source)
    if frame is not None:
        return frame
    if isinstance(source, Iterable):
        rows = source.to_pylist() if hasattr(source, "to_pylist") else list(source)  # Arrow columns have to_pylist.
        records = bool(rows) and all(isinstance(row, dict) for row in rows)
        columns = columns_of(rows) if records else {"text": rows}
        return Table("list", columns, range(1, len(rows) + 1))
    raise ReadError(f"cannot read a {type(source).__name__}: expected a file name, a DataFrame or a list of strings")


def _from_frame(source: object) -> Table | None:
    """Load any DataFrame that narwhals supports, also a lazy one; None for other objects."""
    import narwhals as nw

    try:
        frame = nw.from_native(source, pass_through=True)
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    except nw.exceptions.DuplicateError:
        raise ReadError("two columns of the DataFrame have the same name: rename one of them") from None
    if not isinstance(frame, nw.DataFrame):
        return None
    columns = {str(name): frame.get_column(name).to_list() for name in frame.columns}
    index = nw.maybe_get_index(frame)
    ids = index.tolist() if index is not None and index.is_unique else None
    return Table("DataFrame", columns, range(1, len(frame) + 1), ids=ids)


def _dask_blocks(source: Any, size: float) -> Iterator[Table]:
    """Yield the partitions of a Dask DataFrame; its index restarts in each of them, so it is not an id."""
    first = 1
    for partition in source.partitions if size < math.inf else [source]:
        table = _from_frame(partition.compute())
        if table is None:
            raise ReadError(f"cannot read a {type(source).__name__}: its partitions are not DataFrames")
        places = range(first, first + len(table.places))
        first = places.stop
        yield Table("Dask DataFrame", table.columns, places)
