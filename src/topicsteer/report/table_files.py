"""Tables as columns of plain values; nothing here needs polars."""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable, Iterable, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from topicsteer.analysis.column_formats import Column
from topicsteer.system import templates
from topicsteer.system.files import Scratch, replacing, through
from topicsteer.system.templates import FORMULA, NUMBER
from topicsteer.system.types import Array
from topicsteer.system.values import is_missing, plain

if TYPE_CHECKING:
    import polars as pl


# Suffixes of files with a table.
SUFFIXES = (".csv", ".xlsx", ".jsonl", ".parquet")


def check_suffix(path: Path, suffixes: Sequence[str] = SUFFIXES) -> None:
    """Raise an error unless the name of a file has one of these suffixes, and its folder exists."""
    if path.suffix not in suffixes:
        *most, last = suffixes
        names = f"{', '.join(most)} or {last}" if most else last
        raise ValueError(f"{path}: the name must end in {names}.")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}.")


def columns(ids: Sequence[Hashable], names: Sequence[str], values: Array) -> dict[str, list[Hashable] | Array]:
    """Return the columns of a table with one row per document: its id, and values by their names."""
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
    integers = all(isinstance(key, int) and abs(key) < 1 << 63 for key in found)
    return found if integers else [str(key) for key in found]


def own_column(cells: Iterable[object], *, as_text: bool) -> list[Any]:
    """Return the cells of a user's column for an output table: of one type, missing ones None, lists as JSON.

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


def guarded(table: pl.DataFrame) -> pl.DataFrame:
    """Return a polars table without cells that a spreadsheet would read as formulas.

    Examples
    --------
    >>> import polars as pl
    >>> guarded(pl.DataFrame({"id": ["=1+1", "a"], "n": [-1, 2]})).rows()
    [("'=1+1", -1), ('a', 2)]
    """
    import polars as pl

    dangerous = pl.col(pl.String).str.contains(FORMULA) & ~pl.col(pl.String).str.contains(NUMBER)
    table = table.with_columns(
        pl.when(dangerous).then("'" + pl.col(pl.String)).otherwise(pl.col(pl.String)).name.keep()
    )
    return table.rename({name: templates.guarded(name) for name in table.columns})


def csv(table: pl.DataFrame, *, header: bool = True) -> str:
    """Return a polars table as CSV, guarded."""
    return str(guarded(table).write_csv(float_precision=4, include_header=header))


def write_table(table: pl.DataFrame, path: Path, columns: Iterable[Column] = ()) -> None:
    """Write a polars table to a .csv, .xlsx, .jsonl or .parquet file; an old file stays until the new one is complete.

    Parameters
    ----------
    table : polars.DataFrame
        CSV is guarded against formulas, and Excel reads such cells as text; the other formats hold the values
        unchanged.
    path : Path
        Its suffix decides on the format.
    columns : iterable of Column
        Columns of the kind "share" are shown in percent in Excel.
    """
    write_growing([table], path, columns)


def write_growing(blocks: Iterable[pl.DataFrame], path: Path | None = None, formats: Iterable[Column] = ()) -> int:
    """Write blocks of rows as one table, and return the number of rows.

    CSV is written as the blocks come. The other formats are written at the end, from temporary files: all of their rows
    need the same types, and the ids of a later block may not be numbers.

    Parameters
    ----------
    blocks : iterable of polars.DataFrame
        At least one; all have the same columns.
    path : Path, optional
        File for the table; its suffix decides on the format. It appears when it is complete. Default: standard output.
    formats : iterable of Column
        Columns that Excel shows in percent.

    Examples
    --------
    >>> import polars as pl
    >>> write_growing([pl.DataFrame({"id": [1], "tea": [0.25]}), pl.DataFrame({"id": ["b"], "tea": [1.0]})])
    id,tea
    1,0.2500
    b,1.0000
    2
    """
    if path is None:
        return _write_csv(blocks, sys.stdout)
    check_suffix(path)
    if path.suffix == ".csv":
        with replacing(through(path)) as part, part.open("w", encoding="utf-8", newline="") as file:
            return _write_csv(blocks, file)
    rows = 0
    with Scratch() as folder:
        for number, block in enumerate(blocks):
            block.write_parquet(folder / f"{number:06d}.parquet")
            rows += len(block)
        _join(sorted(folder.glob("*.parquet")), path, formats)
    return rows


def _write_csv(blocks: Iterable[pl.DataFrame], file: TextIO) -> int:
    rows = 0
    for number, block in enumerate(blocks):
        file.write(csv(block, header=not number))
        file.flush()
        rows += len(block)
    return rows


def _join(parts: list[Path], path: Path, formats: Iterable[Column]) -> None:
    """Write all parts as one file; a column of several types becomes text."""
    import polars as pl

    frames = [pl.scan_parquet(part) for part in parts]
    schemas = [frame.collect_schema() for frame in frames]
    kinds = {name: {schema[name] for schema in schemas} - {pl.Null()} for name in schemas[0]}  # a block may be empty
    casts = [pl.col(name).cast(own.pop() if len(own) == 1 else pl.String) for name, own in kinds.items() if own]
    table = pl.concat([frame.with_columns(casts) for frame in frames])
    if path.suffix == ".xlsx":
        from topicsteer.report.workbook import write_workbook

        write_workbook(table.collect(), path, formats)
        return
    with replacing(through(path)) as part:
        (table.sink_parquet if path.suffix == ".parquet" else table.sink_ndjson)(part)
