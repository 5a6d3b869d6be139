"""Whatever holds a table (a file, a DataFrame, a list of texts) to one plain `Table` of columns."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from topicsteer.corpora.delimited import long_fields, read_records
from topicsteer.corpora.files import check_encoding, find_encoding, open_bytes, read_lines, read_text
from topicsteer.corpora.reports import BadRow, ReadError, ReadReport


@dataclass(frozen=True)
class Table:
    """Columns of equal length, where each row stands in its source, and what could not become a row.

    ``ids`` are those that the rows have without a column for it, such as the index of a pandas DataFrame.
    """

    source: str
    columns: Mapping[str, Sequence[Any]]
    places: Sequence[int]
    unit: str = "row"
    guesses: tuple[str, ...] = ()
    problems: Mapping[int, str] = field(default_factory=dict)
    ids: Sequence[Hashable] | None = None

    def report(self, guesses: Iterable[str], problems: Mapping[int, str]) -> ReadReport:
        """Say what was guessed and what was found wrong, in the order of the source."""
        bad = (BadRow(f"{self.unit} {place}", problems[place]) for place in sorted(problems))
        return ReadReport(self.source, tuple(guesses), tuple(bad))


def load_table(source: Any, *, encoding: str | None, delimiter: str | None) -> Table:
    """Load any supported source; the kind of a file is told by its name."""
    if isinstance(source, Table):
        return source
    if isinstance(source, str | os.PathLike):
        return _load_file(Path(source), encoding, delimiter)
    if isinstance(source, Mapping):
        parts = ", ".join(map(repr, list(source)[:5]))
        raise ReadError(f"cannot read a {type(source).__name__} of {parts}: pass one of its parts, or a DataFrame")
    if getattr(source, "features", None) and hasattr(source, "column_names"):
        return _from_hugging_face(source)
    frame = _from_frame(source)
    if frame is not None:
        return frame
    if isinstance(source, Iterable):
        rows = list(source)
        records = bool(rows) and all(isinstance(row, dict) for row in rows)
        columns = _columns(rows) if records else {"text": rows}
        return Table("list", columns, range(1, len(rows) + 1))
    raise ReadError(
        f"cannot read a {type(source).__name__}: expected a file name, a DataFrame, a Hugging Face Dataset "
        "or a list of strings"
    )


def _load_file(path: Path, encoding: str | None, delimiter: str | None) -> Table:
    if path.is_dir():
        raise ReadError(f"{path}: is a folder; read its files with read_folder")
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    if kind in (".parquet", ".pq"):
        return _from_parquet(path)
    if kind not in (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json"):
        raise ReadError(
            f"{path}: unknown kind of file {kind!r}; expected .csv, .tsv, .jsonl, .json or .parquet, each of "
            "them also with .gz"
        )
    found = find_encoding(path) if encoding is None else check_encoding(encoding)
    guesses = (f"encoding is {found}",) if encoding is None and not found.startswith("utf-8") else ()
    if kind == ".json":
        return _from_json(path, found, guesses)
    if kind in (".jsonl", ".ndjson"):
        return _from_json_lines(path, found, guesses)
    return _from_delimited(path, found, guesses, delimiter or ("\t" if kind in (".tsv", ".tab") else None))


def _from_delimited(path: Path, encoding: str, guesses: tuple[str, ...], delimiter: str | None) -> Table:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ReadError(f"delimiter is {delimiter!r}: expected one character such as ',' or ';'")
    rows, places, problems = [], [], {}
    with long_fields():
        records = read_records(read_lines(path, encoding), delimiter, encoding)
        _, header, _ = next(records, (0, [], None))
        for line, fields, problem in records:
            if problem is None:
                rows.append(fields)
                places.append(line)
            else:
                problems[line] = problem
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    return Table(str(path), dict(zip(_names(header), columns, strict=True)), places, "line", guesses, problems)


def _names(header: Sequence[str]) -> list[str]:
    """Name nameless columns by their number, and tell apart those that share a name."""
    names: dict[str, None] = {}
    for number, cell in enumerate(header, 1):
        name = cell.strip() or f"column {number}"
        names[name if name not in names else f"{name} (column {number})"] = None
    return list(names)


def _from_json_lines(path: Path, encoding: str, guesses: tuple[str, ...]) -> Table:
    rows: dict[int, Any] = {}
    problems = {}
    for number, (line, decoded) in enumerate(read_lines(path, encoding), 1):
        if not decoded:
            problems[number] = f"cannot be decoded as {encoding}"
        elif line.strip():
            try:
                rows[number] = json.loads(line.removeprefix("\ufeff").rstrip())
            except (ValueError, RecursionError) as error:
                problems[number] = _json_problem(error)
    return _from_objects(path, rows, "line", guesses, problems)


def _from_json(path: Path, encoding: str, guesses: tuple[str, ...]) -> Table:
    try:
        items = json.loads(read_text(path, encoding))
    except (json.JSONDecodeError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise ReadError(f"{path}: {line}{_json_problem(error)}; a file of one object a line is .jsonl") from None
    if not isinstance(items, list):
        raise ReadError(f"{path}: JSON of type {type(items).__name__}, expected a list of objects")
    return _from_objects(path, dict(enumerate(items, 1)), "row", guesses, {})


def _from_objects(
    path: Path, rows: Mapping[int, Any], unit: str, guesses: tuple[str, ...], problems: Mapping[int, str]
) -> Table:
    """Table of the rows that are objects; the others join the problems."""
    good = {number: row for number, row in rows.items() if isinstance(row, dict)}
    bad = {
        number: f"JSON of type {type(row).__name__}, expected an object with named values"
        for number, row in rows.items()
        if number not in good
    }
    return Table(str(path), _columns(list(good.values())), list(good), unit, guesses, {**problems, **bad})


def _json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg} at character {error.colno})"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Columns of all names that occur, None where a row lacks one."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {str(name): [row.get(name) for row in rows] for name in names}


def _from_parquet(path: Path) -> Table:
    import polars as pl

    with open_bytes(path) as stream:
        try:
            frame = pl.read_parquet(stream.read())
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
            raise ReadError(f"{path}: not a Parquet file that can be read ({error})") from None
    return Table(str(path), frame.to_dict(as_series=False), range(1, len(frame) + 1))


def _from_frame(source: Any) -> Table | None:
    """Any DataFrame that narwhals knows; None if it is something else."""
    import narwhals as nw

    try:
        frame = nw.from_native(source, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise ReadError("two columns of the DataFrame have the same name: rename one of them") from None
    if not isinstance(frame, nw.DataFrame):
        return None
    columns = {str(name): frame.get_column(name).to_list() for name in frame.columns}
    index = nw.maybe_get_index(frame)
    ids = index.tolist() if index is not None and index.is_unique else None
    return Table("DataFrame", columns, range(1, len(frame) + 1), ids=ids)


def _from_hugging_face(source: Any) -> Table:
    """Read a Dataset of the datasets package; classes stored as numbers get their names back."""
    columns: dict[str, list[Any]] = {}
    for name in source.column_names:
        values, kind = list(source[name]), source.features[name]
        if hasattr(kind, "names"):
            values = [_class_name(kind, value) for value in values]
        elif hasattr(getattr(kind, "feature", None), "names"):
            values = [[_class_name(kind.feature, item) for item in value or ()] for value in values]
        columns[name] = values
    rows = len(next(iter(columns.values()), ()))
    return Table("Dataset", columns, range(1, rows + 1))


def _class_name(kind: Any, number: int | None) -> str | None:
    return None if number is None or number < 0 else kind.names[number]
