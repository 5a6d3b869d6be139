"""Whatever holds a table (a file, a DataFrame, a list of texts) to plain `Table`s of columns, whole or in pieces."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from topicsteer.corpora.options import ReadOptions
from topicsteer.corpora.read_report import BadRow, ReadError, ReadReport
from topicsteer.corpora.readers.delimited import long_fields, read_records
from topicsteer.corpora.readers.files import (
    check_encoding,
    find_encoding,
    is_address,
    is_gzip,
    open_bytes,
    read_lines,
    read_text,
)

PIECE = 1 << 22  # characters of a piece, about
ROW = 100  # what a row costs besides, in characters


@dataclass(frozen=True)
class Table:
    """Columns of equal length, where each row stands in its source, and what could not become a row.

    It may be one piece of a larger table. ``ids`` are those that the rows have without a column for it, such as the
    index of a pandas DataFrame.
    """

    source: str
    columns: Mapping[str, Sequence[Any]]
    places: Sequence[int]
    unit: str = "row"
    guesses: tuple[str, ...] = ()
    problems: Mapping[int, str] = field(default_factory=dict)
    ids: Sequence[Hashable] | None = None

    def column(self, name: str) -> Sequence[Any]:
        """Cells of a column; it may have none in this piece of a table."""
        return self.columns[name] if name in self.columns else [None] * len(self.places)

    def report(self, guesses: Iterable[str], problems: Mapping[int, str]) -> ReadReport:
        """Say what was guessed and what was found wrong, in the order of the source."""
        bad = (BadRow(f"{self.unit} {place}", problems[place]) for place in sorted(problems))
        return ReadReport(self.source, tuple(guesses), tuple(bad))


Pieces = Callable[[float], Iterator[Table]]  # a table in pieces of so many characters, any number of times


def load_table(source: object, options: ReadOptions) -> Table:
    """Load any supported source; the kind of a file is told by its name."""
    return next(open_table(source, options)(math.inf))


def open_table(source: object, options: ReadOptions) -> Pieces:
    """Find out how to read a source piece by piece; what is in memory, and a .json file, has one piece only."""
    if isinstance(source, str | os.PathLike):
        return _open_file(os.fspath(source), options.encoding, options.delimiter)
    if hasattr(source, "partitions") and hasattr(source, "dask"):
        return partial(_from_dask, source)
    table = _load_object(source)
    return lambda size: iter([table])


def _load_object(source: Any) -> Table:
    if isinstance(source, Table):
        return source
    if isinstance(source, Mapping):
        parts = ", ".join(map(repr, list(source)[:5]))
        raise ReadError(f"cannot read a {type(source).__name__} of {parts}: pass one of its parts, or a DataFrame")
    if getattr(source, "features", None) and hasattr(source, "column_names"):
        return _from_hugging_face(source)
    frame = _from_frame(source)
    if frame is not None:
        return frame
    if isinstance(source, Iterable):
        rows = source.to_pylist() if hasattr(source, "to_pylist") else list(source)  # an Arrow column
        records = bool(rows) and all(isinstance(row, dict) for row in rows)
        columns = _columns(rows) if records else {"text": rows}
        return Table("list", columns, range(1, len(rows) + 1))
    raise ReadError(
        f"cannot read a {type(source).__name__}: expected a file name, a DataFrame, a Hugging Face Dataset "
        "or a list of strings"
    )


def _open_file(path: str, encoding: str | None, delimiter: str | None) -> Pieces:
    if Path(path).is_dir():
        raise ReadError(f"{path}: is a folder; read its files with read_folder")
    kind = Path(Path(path).name.lower().removesuffix(".gz")).suffix
    if kind in (".parquet", ".pq"):
        return partial(_from_parquet, path)
    if kind not in (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json"):
        raise ReadError(
            f"{path}: unknown kind of file {kind!r}; expected .csv, .tsv, .jsonl, .json or .parquet, each of "
            "them also with .gz"
        )
    found = find_encoding(path) if encoding is None else check_encoding(encoding)
    guesses = (f"encoding is {found}",) if encoding is None and not found.startswith("utf-8") else ()
    if kind == ".json":
        return partial(_from_json, path, found, guesses)
    if kind in (".jsonl", ".ndjson"):
        return partial(_from_json_lines, path, found, guesses)
    return partial(_from_delimited, path, found, guesses, delimiter or ("\t" if kind in (".tsv", ".tab") else None))


def _from_delimited(
    path: str, encoding: str, guesses: tuple[str, ...], delimiter: str | None, size: float
) -> Iterator[Table]:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ReadError(f"delimiter is {delimiter!r}: expected one character such as ',' or ';'")
    records = read_records(read_lines(path, encoding), delimiter, encoding)
    with long_fields():
        _, header, _ = next(records, (0, [], None))
    names, more = _names(header), True
    while more:
        rows, places, problems, room = [], [], {}, size
        more = False
        with long_fields():  # not while the reader waits: the limit is one for all of Python
            for line, fields, problem in records:
                if problem is None:
                    rows.append(fields)
                    places.append(line)
                else:
                    problems[line] = problem
                room -= sum(map(len, fields)) + ROW
                if room <= 0:
                    more = True
                    break
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        yield Table(path, dict(zip(names, columns, strict=True)), places, "line", guesses, problems)


def _names(header: Sequence[str]) -> list[str]:
    """Name nameless columns by their number, and tell apart those that share a name."""
    names: dict[str, None] = {}
    for number, cell in enumerate(header, 1):
        name = cell.strip() or f"column {number}"
        names[name if name not in names else f"{name} (column {number})"] = None
    return list(names)


def _from_json_lines(path: str, encoding: str, guesses: tuple[str, ...], size: float) -> Iterator[Table]:
    rows: dict[int, Any] = {}
    problems: dict[int, str] = {}
    room = size
    for number, (line, decoded) in enumerate(read_lines(path, encoding), 1):
        if not decoded:
            problems[number] = f"cannot be decoded as {encoding}"
        elif line.strip():
            try:
                rows[number] = json.loads(line.removeprefix("\ufeff").rstrip())
            except (ValueError, RecursionError) as error:
                problems[number] = _json_problem(error)
        room -= len(line) + ROW
        if room <= 0:
            yield _from_objects(path, rows, "line", guesses, problems)
            rows, problems, room = {}, {}, size
    yield _from_objects(path, rows, "line", guesses, problems)


def _from_json(path: str, encoding: str, guesses: tuple[str, ...], size: float) -> Iterator[Table]:
    try:
        items = json.loads(read_text(path, encoding))
    except (json.JSONDecodeError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise ReadError(f"{path}: {line}{_json_problem(error)}; a file of one object a line is .jsonl") from None
    if not isinstance(items, list):
        raise ReadError(f"{path}: JSON of type {type(items).__name__}, expected a list of objects")
    yield _from_objects(path, dict(enumerate(items, 1)), "row", guesses, {})


def _from_objects(
    path: str, rows: Mapping[int, Any], unit: str, guesses: tuple[str, ...], problems: Mapping[int, str]
) -> Table:
    """Table of the rows that are objects; the others join the problems."""
    good = {number: row for number, row in rows.items() if isinstance(row, dict)}
    bad = {
        number: f"JSON of type {type(row).__name__}, expected an object with named values"
        for number, row in rows.items()
        if number not in good
    }
    return Table(path, _columns(list(good.values())), list(good), unit, guesses, {**problems, **bad})


def _json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg} at character {error.colno})"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Columns of all names that occur, None where a row lacks one."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {str(name): [row.get(name) for row in rows] for name in names}


def _from_parquet(path: str, size: float) -> Iterator[Table]:
    """By slices: polars unpacks only the row groups that a slice needs, and only while it is read."""
    import polars as pl

    with _local(path) as file:
        try:
            scan = pl.scan_parquet(file, glob=False)
            total, low, rows = scan.select(pl.len()).collect().item(), 0, 1000.0
            while True:
                frame = scan.slice(low, None if size == math.inf else int(rows)).collect()
                yield Table(path, frame.to_dict(as_series=False), range(low + 1, low + len(frame) + 1))
                low += len(frame)
                if low >= total:
                    return
                rows = max(1.0, size / (frame.estimated_size() / len(frame) + ROW))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
            raise ReadError(f"{path}: not a Parquet file that can be read ({error})") from None


@contextmanager
def _local(path: str) -> Iterator[str]:
    """A file that can be read at any place: a copy for a while if it is elsewhere or packed."""
    with open_bytes(path) as stream:
        if not is_address(path) and not is_gzip(stream):
            yield path
            return
        with tempfile.TemporaryDirectory(prefix="topicsteer-") as folder:
            copy = Path(folder) / "copy.parquet"
            with copy.open("wb") as target:
                shutil.copyfileobj(stream, target, 1 << 20)
            yield str(copy)


def _from_frame(source: Any) -> Table | None:
    """Any DataFrame that narwhals knows, a lazy one collected; None if it is something else."""
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


def _from_dask(source: Any, size: float) -> Iterator[Table]:
    """A Dask DataFrame, each partition a piece; its index counts anew in each of them, so it is no id."""
    first = 1
    for part in source.partitions if size < math.inf else [source]:
        table = _from_frame(part.compute())
        if table is None:
            raise ReadError(f"cannot read a {type(source).__name__}: its partitions are no DataFrames")
        places = range(first, first + len(table.places))
        first = places.stop
        yield Table("Dask DataFrame", table.columns, places)


def _from_hugging_face(source: Any) -> Table:
    """Read a Dataset or IterableDataset of the datasets package; classes stored as numbers get their names back."""
    source = source.with_format(None)  # Python's own strings and numbers, whatever was set
    sized = hasattr(source, "__len__")  # what is not is gone through once, and not once a column
    columns = {name: list(source[name]) for name in source.column_names} if sized else _columns(list(source))
    for name, values in columns.items():
        kind = source.features.get(name)
        if hasattr(kind, "names"):
            columns[name] = [_class_name(kind, value) for value in values]
        elif hasattr(getattr(kind, "feature", None), "names"):
            columns[name] = [[_class_name(kind.feature, item) for item in value or ()] for value in values]
    rows = len(next(iter(columns.values()), ()))
    return Table("Dataset", columns, range(1, rows + 1))


def _class_name(kind: Any, number: int | None) -> str | None:
    return None if number is None or number < 0 else kind.names[number]
