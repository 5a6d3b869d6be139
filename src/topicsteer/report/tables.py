"""Tables to files: moved into place when complete, and CSV without formulas for spreadsheets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from topicsteer.backends.dask import gather
from topicsteer.backends.weight_folder import StoredWeights, row_blocks
from topicsteer.system.files import replacing
from topicsteer.system.types import Array

if TYPE_CHECKING:
    import polars as pl

# First characters that make a spreadsheet read a cell as a formula.
DANGEROUS = r"^[=+\-@\t\r]"
# A function applied to the values of a block before they are written.
Change: TypeAlias = Callable[[Array], Array] | None
# Documents per file of a table in memory.
PART = 1 << 16


def columns(ids: Sequence[Hashable], names: Sequence[str], values: Array) -> dict[str, list[Hashable] | Array]:
    """Columns of a table with one row per document: its id, and values by their names."""
    key = "id" if "id" not in names else "document id"
    return {key: list(ids)} | {name: values[:, k] for k, name in enumerate(names)}


def guarded(table: pl.DataFrame) -> pl.DataFrame:
    """A polars table without cells that a spreadsheet would read as formulas.

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


def csv(table: pl.DataFrame) -> str:
    """A polars table as CSV, guarded."""
    return str(guarded(table).write_csv(float_precision=4))


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write a polars table to a .csv, .jsonl or .parquet file; an old file stays until the new one is complete.

    Parameters
    ----------
    table : polars.DataFrame
        CSV is guarded against formulas; the other formats hold the values unchanged.
    path : Path
        Its suffix decides on the format.
    """
    writers: dict[str, Callable[[Path], None]] = {
        ".csv": lambda part: guarded(table).write_csv(part, float_precision=4),
        ".jsonl": lambda part: table.write_ndjson(part),
        ".parquet": lambda part: table.write_parquet(part),
    }
    if path.suffix not in writers:
        raise ValueError(f"{path}: the name must end in .csv, .jsonl or .parquet.")
    with replacing(path) as part:
        writers[path.suffix](part)


def write_parts(
    folder: str | os.PathLike[str],
    values: Array | StoredWeights,
    names: Sequence[object],
    ids: Sequence[Hashable] | None = None,
    *,
    change: Change = None,
    client: Any = None,
) -> None:
    """Write the values of many documents as a folder of Parquet files, one per block of documents.

    Parameters
    ----------
    folder : path
        A new one, or one with Parquet files only, which are replaced when the new ones are complete.
    values : array (n_documents, n_columns) or StoredWeights
        Only one block of it is in memory at a time.
    names : sequence of n_columns names
    ids : sequence of n_documents ids, optional
        Default: row numbers.
    change : callable, optional
        Applied to the values of a block before they are written.
    client : distributed.Client, optional
        A Dask cluster: its workers write the files, and read blocks on disk themselves.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_parts(place + "/shares", np.eye(2), ["tea", "coffee"], ["a", "b"])
    ...     pl.read_parquet(place + "/shares/*.parquet").rows()
    [('a', 1.0, 0.0), ('b', 0.0, 1.0)]
    """
    folder = Path(folder)
    if folder.exists() and any(path.suffix != ".parquet" for path in folder.iterdir()):
        raise ValueError(f"{folder} holds files other than .parquet; choose a new folder.")
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    heads, known = [str(name) for name in names], range(len(values)) if ids is None else ids
    tasks = [
        (part / f"{number:05d}.parquet", heads, list(known[rows]), read, change)
        for number, (rows, read) in enumerate(row_blocks(values, PART))
    ]
    try:
        if client is None:
            for task in tasks:
                _write_part(*task)
        else:
            gather(client, [client.submit(_write_part, *task, pure=False) for task in tasks])
        if folder.exists():
            shutil.rmtree(folder)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write_part(path: Path, names: list[str], ids: list[Hashable], read: Callable[[], Array], change: Change) -> None:
    import polars as pl

    values = read() if change is None else change(read())
    pl.DataFrame(columns(ids, names, values), strict=False).write_parquet(path)
