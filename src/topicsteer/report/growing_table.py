"""A table that is written block by block, so that memory holds one block of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from topicsteer.analysis.columns import Column
from topicsteer.report.tables import check_suffix, csv, write_table
from topicsteer.system.files import Scratch, replacing

if TYPE_CHECKING:
    import polars as pl


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
    rows = 0
    if path is None:
        for number, block in enumerate(blocks):
            print(csv(block, header=not number), end="", flush=True)
            rows += len(block)
        return rows
    check_suffix(path)
    if path.suffix == ".csv":
        with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
            for number, block in enumerate(blocks):
                file.write(csv(block, header=not number))
                rows += len(block)
        return rows
    with Scratch() as folder:
        for number, block in enumerate(blocks):
            block.write_parquet(folder / f"{number:06d}.parquet")
            rows += len(block)
        _join(sorted(folder.glob("*.parquet")), path, formats)
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
        write_table(table.collect(), path, formats)
        return
    with replacing(path) as part:
        (table.sink_parquet if path.suffix == ".parquet" else table.sink_ndjson)(part)
