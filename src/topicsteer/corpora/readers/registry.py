"""Choose the reader of a source: a file, a DataFrame, or a list of texts or dicts."""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from topicsteer.corpora.documents import ReadError, ReadOptions
from topicsteer.corpora.readers.delimited import read_delimited
from topicsteer.corpora.readers.excel import read_excel
from topicsteer.corpora.readers.json import read_json, read_json_lines
from topicsteer.corpora.readers.parquet import read_parquet
from topicsteer.corpora.readers.table_file import Table, TableBlocks, TableFile, columns_of

# The reader of each file extension, without .gz. It yields blocks of about the given number of characters.
READERS: dict[str, Callable[[TableFile, float], Iterator[Table]]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".tab": read_delimited,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".xlsx": read_excel,
    ".xlsm": read_excel,
}
# Kinds of sheets that are not read.
OTHER_SHEETS = (".xls", ".xlsb", ".ods", ".numbers")


def load_table(source: object, options: ReadOptions) -> Table:
    """Load any supported source as one table."""
    return next(open_table(source, options)(math.inf))


def open_table(source: object, options: ReadOptions) -> TableBlocks:
    """Return a function that reads a source in blocks; a table in memory and a .json file are one block."""
    if isinstance(source, str | os.PathLike):
        file = TableFile(os.fspath(source), options.encoding, options.delimiter, options.sheet)
        if Path(file.path).is_dir():
            raise ReadError(f"{file.path}: is a folder; read its files with read_folder")
        if file.kind not in READERS:
            save = "; save the sheet as .xlsx first" if file.kind in OTHER_SHEETS else ""
            raise ReadError(
                f"{file.path}: unknown kind of file {file.kind!r}; expected .csv, .tsv, .xlsx, .jsonl, .json or "
                f".parquet, each of them also with .gz{save}"
            )
        return partial(READERS[file.kind], file)
    if hasattr(source, "partitions") and hasattr(source, "dask"):
        return partial(_dask_blocks, source)
    table = source if isinstance(source, Table) else _load_object(source)
    return lambda size: iter([table])


def _load_object(source: object) -> Table:
    """Load a table in memory: a DataFrame, or a list of texts or dicts."""
    if isinstance(source, Mapping):
        names = ", ".join(map(repr, list(source)[:5]))
        raise ReadError(f"cannot read a {type(source).__name__} of {names}: pass one of its values, or a DataFrame")
    frame = _from_frame(source)
    if frame is not None:
        return frame
    if isinstance(source, Iterable):
        rows = source.to_pylist() if hasattr(source, "to_pylist") else list(source)  # Arrow columns have to_pylist.
        records = bool(rows) and all(isinstance(row, dict) for row in rows)
        columns = columns_of(rows) if records else {"text": rows}
        return Table("list", columns, range(1, len(rows) + 1))
    raise ReadError(f"cannot read a {type(source).__name__}: expected a file name, a DataFrame or a list of strings")


def _from_frame(source: object) -> Table | None:
    """Load any DataFrame that narwhals supports, also a lazy one; None for other objects."""
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


def _dask_blocks(source: Any, size: float) -> Iterator[Table]:
    """Yield the partitions of a Dask DataFrame; its index restarts in each of them, so it is not an id."""
    first = 1
    for partition in source.partitions if size < math.inf else [source]:
        table = _from_frame(partition.compute())
        if table is None:
            raise ReadError(f"cannot read a {type(source).__name__}: its partitions are not DataFrames")
        places = range(first, first + len(table.places))
        first = places.stop
        yield Table("Dask DataFrame", table.columns, places)
