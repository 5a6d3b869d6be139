"""Read JSON: one object per line, or one list of objects."""

import json
from collections.abc import Iterator, Mapping

from topicsteer.corpora.documents import ReadError
from topicsteer.corpora.readers.table_file import (
    ROW_COST,
    Table,
    TableFile,
    columns_of,
    read_lines,
    read_text,
    undecodable,
)


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
