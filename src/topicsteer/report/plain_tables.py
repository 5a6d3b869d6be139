"""Tables as columns, and CSV of small ones without polars, equal to `topicsteer.report.tables.csv`."""

import csv
import io
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np

from topicsteer.system.safe_text import guarded
from topicsteer.system.types import Array
from topicsteer.system.values import is_missing, plain

# Suffixes of files with a table.
SUFFIXES = (".csv", ".xlsx", ".jsonl", ".parquet")


def check_suffix(path: Path, suffixes: Sequence[str] = SUFFIXES) -> None:
    """Raise an error unless the name of a file has one of these suffixes, and its folder exists."""
    if path.suffix not in suffixes:
        *most, last = suffixes
        raise ValueError(f"{path}: the name must end in {', '.join(most)} or {last}.")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}.")


def columns(ids: Sequence[Hashable], names: Sequence[str], values: Array) -> dict[str, list[Hashable] | Array]:
    """Columns of a table with one row per document: its id, and values by their names."""
    key = "id"
    while key in names:
        key = f"document {key}"
    return {key: one_type(ids)} | {name: values[:, k] for k, name in enumerate(names)}


def one_type(ids: Iterable[Hashable]) -> list[Hashable]:
    """Ids as the values of one column: all of them integers, or all of them text.

    Examples
    --------
    >>> one_type([1, 2]), one_type([1, "a"])
    ([1, 2], ['1', 'a'])
    """
    found = list(ids)
    return found if all_integers(found) else [str(key) for key in found]


def all_integers(ids: Iterable[Hashable]) -> bool:
    """Whether all ids are integers of 64 bits."""
    return all(isinstance(key, int) and abs(key) < 1 << 63 for key in ids)


def own_column(cells: Iterable[object], *, as_text: bool) -> list[Any]:
    """The cells of a user's column for an output table: of one type, missing ones None, lists as JSON.

    Parameters
    ----------
    cells : iterable
    as_text : bool
        Whether numbers become text with all their digits, for formats in which they would be rounded.

    Examples
    --------
    >>> own_column([0.123456, None, float("nan")], as_text=True), own_column([1, "a", ["b"]], as_text=False)
    (['0.123456', None, None], ['1', 'a', '["b"]'])
    """
    found = [None if is_missing(cell) and not isinstance(cell, str) else plain(cell) for cell in cells]
    kinds = {type(cell) for cell in found if cell is not None}
    if len(kinds) == 1 and kinds <= ({str, int, bool} if as_text else {str, int, float, bool, date, datetime, time}):
        return found
    return [None if cell is None else _text(cell) for cell in found]


def _text(cell: object) -> str:
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, list | dict | tuple) else str(cell)


def plain_csv(columns: Mapping[str, Sequence[Any] | Array]) -> str:
    """Columns as CSV: numbers with four decimals, and no cell that a spreadsheet would read as a formula.

    Examples
    --------
    >>> print(plain_csv({"id": ["=1", "b"], "share": [0.5, 1.0], "kept": [True, None]}), end="")
    id,share,kept
    '=1,0.5000,true
    b,1.0000,
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(guarded, columns))
    writer.writerows(_cells(row) for row in zip(*columns.values(), strict=True))
    return out.getvalue()


def _cells(row: Iterable[object]) -> list[str]:
    """Cells of a row as text."""
    return ["" if cell is None else _number(cell) if not isinstance(cell, str) else guarded(cell) for cell in row]


def _number(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.4f}" if isinstance(value, float | np.floating) else str(value)
