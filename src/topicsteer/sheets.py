"""Tables to files: moved into place when complete, and CSV that no spreadsheet takes for formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

DANGEROUS = r"^[=+\-@\t\r]"


def guarded(table: Any) -> Any:
    """A polars table whose cells no spreadsheet takes for formulas.

    Examples
    --------
    >>> import polars as pl
    >>> guarded(pl.DataFrame({"id": ["=1+1", "a"], "n": [-1, 2]})).rows()
    [("'=1+1", -1), ('a', 2)]
    """
    import polars as pl

    dangerous = pl.col(pl.String).str.contains(DANGEROUS)
    table = table.with_columns(
        pl.when(dangerous).then("'" + pl.col(pl.String)).otherwise(pl.col(pl.String)).name.keep()
    )
    return table.rename({name: f"'{name}" for name in table.columns if name[:1] in "=+-@\t\r" and name})


def csv(table: Any) -> str:
    """A polars table as CSV, guarded."""
    return str(guarded(table).write_csv(float_precision=4))


def write_table(table: Any, path: Path) -> None:
    """Write a polars table to a .csv, .jsonl or .parquet file; the file is the old one until the new one is whole.

    Parameters
    ----------
    table : polars.DataFrame
        CSV is guarded against formulas; the others hold the values as they are.
    path : Path
        Its ending says the kind.
    """
    writers = {
        ".csv": lambda part: guarded(table).write_csv(part, float_precision=4),
        ".jsonl": lambda part: table.write_ndjson(part),
        ".parquet": lambda part: table.write_parquet(part),
    }
    if path.suffix not in writers:
        raise ValueError(f"{path}: the name must end in .csv, .jsonl or .parquet.")
    part = path.with_name(f".{path.name}.part")
    writers[path.suffix](part)
    part.replace(path)
