"""JSON to tables: one object a line, or one list of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial

from topicsteer.corpora.options import ReadOptions
from topicsteer.corpora.read_report import ReadError
from topicsteer.corpora.readers.files import choose_encoding, read_lines, read_text
from topicsteer.corpora.readers.table import ROW, Pieces, Table, columns_of


def open_json_lines(path: str, options: ReadOptions) -> Pieces:
    """Find out how to read a file of one object a line."""
    return partial(_json_lines_pieces, path, *choose_encoding(path, options.encoding))


def open_json(path: str, options: ReadOptions) -> Pieces:
    """Find out how to read a list of objects, which is one piece."""
    return partial(_json_pieces, path, *choose_encoding(path, options.encoding))


def _json_lines_pieces(path: str, encoding: str, guesses: tuple[str, ...], size: float) -> Iterator[Table]:
    rows: dict[int, object] = {}
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
            yield _table(path, rows, "line", guesses, problems)
            rows, problems, room = {}, {}, size
    yield _table(path, rows, "line", guesses, problems)


def _json_pieces(path: str, encoding: str, guesses: tuple[str, ...], size: float) -> Iterator[Table]:
    try:
        items = json.loads(read_text(path, encoding))
    except (json.JSONDecodeError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise ReadError(f"{path}: {line}{_json_problem(error)}; a file of one object a line is .jsonl") from None
    if not isinstance(items, list):
        raise ReadError(f"{path}: JSON of type {type(items).__name__}, expected a list of objects")
    yield _table(path, dict(enumerate(items, 1)), "row", guesses, {})


def _table(
    path: str, rows: Mapping[int, object], unit: str, guesses: tuple[str, ...], problems: Mapping[int, str]
) -> Table:
    """Table of the rows that are objects; the others join the problems."""
    good = {number: row for number, row in rows.items() if isinstance(row, dict)}
    bad = {
        number: f"JSON of type {type(row).__name__}, expected an object with named values"
        for number, row in rows.items()
        if number not in good
    }
    return Table(path, columns_of(list(good.values())), list(good), unit, guesses, {**problems, **bad})


def _json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg} at character {error.colno})"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
