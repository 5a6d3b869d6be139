"""Tables to files: moved into place when complete, and without formulas for spreadsheets."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from topicsteer.analysis.columns import Column
from topicsteer.backends.dask import gather
from topicsteer.backends.weight_folder import StoredWeights, row_blocks
from topicsteer.report.excel import write_workbook
from topicsteer.report.plain_tables import all_integers as all_integers
from topicsteer.report.plain_tables import check_suffix as check_suffix
from topicsteer.report.plain_tables import columns as columns
from topicsteer.report.plain_tables import one_type as one_type
from topicsteer.system import safe_text
from topicsteer.system.files import replacing, replacing_folder, write_text
from topicsteer.system.safe_text import FORMULA, NUMBER
from topicsteer.system.types import Array

if TYPE_CHECKING:
    import polars as pl

# A function applied to the values of a block before they are written.
Change: TypeAlias = Callable[[Array], Array] | None
# Documents per file of a table in memory.
PART = 1 << 16


def guarded(table: pl.DataFrame) -> pl.DataFrame:
    """A polars table without cells that a spreadsheet would read as formulas.

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
    return table.rename({name: safe_text.guarded(name) for name in table.columns})


def csv(table: pl.DataFrame, *, header: bool = True) -> str:
    """A polars table as CSV, guarded."""
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
    check_suffix(path)
    if path.suffix == ".xlsx":
        write_workbook({path.stem: table}, path, columns)
        return
    writers: dict[str, Callable[[Path], None]] = {
        ".csv": lambda part: guarded(table).write_csv(part, float_precision=4),
        ".jsonl": lambda part: table.write_ndjson(part),
        ".parquet": lambda part: table.write_parquet(part),
    }
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
        A new or empty one, or one that this function wrote, which is replaced when the new files are complete.
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
    listing = folder.with_name(f".{folder.name}.json")  # readers of a folder of Parquet files refuse other files in it
    if folder.exists() and not _wrote(folder, listing):
        raise ValueError(
            f"{folder} holds files that topicsteer did not write: choose a new folder, or delete this one."
        )
    with replacing_folder(folder) as part:
        heads, known = [str(name) for name in names], range(len(values)) if ids is None else ids
        kind: Callable[[Any], object] = int if all_integers(known) else str  # of all parts
        tasks = [
            (part / f"{number:05d}.parquet", heads, list(map(kind, known[rows])), read, change)
            for number, (rows, read) in enumerate(row_blocks(values, PART))
        ]
        if client is None:
            for task in tasks:
                _write_part(*task)
        else:
            gather(client, [client.submit(_write_part, *task, pure=False) for task in tasks])
        write_text(listing, json.dumps(_sizes(part)))


def _wrote(folder: Path, listing: Path) -> bool:
    """Whether a folder has no other files than the listed ones, with their sizes."""
    try:
        return folder.is_dir() and _sizes(folder).items() <= (
            json.loads(listing.read_text()).items() if listing.is_file() else {}.items()
        )
    except (OSError, ValueError, AttributeError):
        return False


def _sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size if path.is_file() else -1 for path in folder.iterdir()}


def _write_part(path: Path, names: list[str], ids: list[Hashable], read: Callable[[], Array], change: Change) -> None:
    import polars as pl

    values = read() if change is None else change(read())
    pl.DataFrame(columns(ids, names, values), strict=False).write_parquet(path)
