"""Whatever holds a table to `Table`s: which reader reads which file, and what is in memory.

In memory are DataFrames of any kind, Hugging Face Datasets, lists of texts or of dicts.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from topicsteer.corpora.options import ReadOptions
from topicsteer.corpora.read_report import ReadError
from topicsteer.corpora.readers.delimited import read_delimited
from topicsteer.corpora.readers.json import read_json, read_json_lines
from topicsteer.corpora.readers.parquet import read_parquet
from topicsteer.corpora.readers.table_file import Table, TableBlocks, TableFile, columns_of

# How the name of a file ends, before .gz, and what reads it in pieces of so many characters.
READERS: dict[str, Callable[[TableFile, float], Iterator[Table]]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".tab": read_delimited,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".parquet": read_parquet,
    ".pq": read_parquet,
}


def load_table(source: object, options: ReadOptions) -> Table:
    """Load any supported source; the kind of a file is told by its name."""
    return next(open_table(source, options)(math.inf))


def open_table(source: object, options: ReadOptions) -> TableBlocks:
    """Find out how to read a source piece by piece; what is in memory, and a .json file, has one piece only."""
    if isinstance(source, str | os.PathLike):
        file = TableFile(os.fspath(source), options.encoding, options.delimiter)
        if Path(file.path).is_dir():
            raise ReadError(f"{file.path}: is a folder; read its files with read_folder")
        if file.kind not in READERS:
            raise ReadError(
                f"{file.path}: unknown kind of file {file.kind!r}; expected .csv, .tsv, .jsonl, .json or .parquet, "
                "each of them also with .gz"
            )
        return partial(READERS[file.kind], file)
    if hasattr(source, "partitions") and hasattr(source, "dask"):
        return partial(_dask_blocks, source)
    table = source if isinstance(source, Table) else _load_object(source)
    return lambda size: iter([table])


def _load_object(source: object) -> Table:
    """Load what is in memory: a DataFrame, a Hugging Face Dataset, or a list of texts or of dicts."""
    if isinstance(source, Mapping):
        parts = ", ".join(map(repr, list(source)[:5]))
        raise ReadError(f"cannot read a {type(source).__name__} of {parts}: pass one of its parts, or a DataFrame")
    if getattr(source, "features", None) and hasattr(source, "column_names"):
        return _from_hugging_face(source)
    frame = _from_frame(source)
    if frame is not None:
        return frame
    if isinstance(source, Iterable):
        rows = source.to_pylist() if hasattr(source, "to_pylist") else list(source)  # an Arrow column
        records = bool(rows) and all(isinstance(row, dict) for row in rows)
        columns = columns_of(rows) if records else {"text": rows}
        return Table("list", columns, range(1, len(rows) + 1))
    raise ReadError(
        f"cannot read a {type(source).__name__}: expected a file name, a DataFrame, a Hugging Face Dataset "
        "or a list of strings"
    )


def _from_frame(source: object) -> Table | None:
    """Any DataFrame that narwhals knows, a lazy one collected; None if it is something else."""
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
    """A Dask DataFrame, each partition a piece; its index counts anew in each of them, so it is no id."""
    first = 1
    for part in source.partitions if size < math.inf else [source]:
        table = _from_frame(part.compute())
        if table is None:
            raise ReadError(f"cannot read a {type(source).__name__}: its partitions are no DataFrames")
        places = range(first, first + len(table.places))
        first = places.stop
        yield Table("Dask DataFrame", table.columns, places)


def _from_hugging_face(source: Any) -> Table:
    """Read a Dataset or IterableDataset of the datasets package; classes stored as numbers get their names back."""
    source = source.with_format(None)  # Python's own strings and numbers, whatever was set
    sized = hasattr(source, "__len__")  # what is not is gone through once, and not once a column
    columns = {name: list(source[name]) for name in source.column_names} if sized else columns_of(list(source))
    columns = {name: _class_names(source.features.get(name), values) for name, values in columns.items()}
    rows = len(next(iter(columns.values()), ()))
    return Table("Dataset", columns, range(1, rows + 1))


def _class_names(kind: Any, values: Any) -> list[object]:
    """Values of a column, with names for the classes that are stored as numbers, alone or in lists."""
    if hasattr(kind, "names"):
        return [None if value is None or value < 0 else kind.names[value] for value in values]
    if hasattr(getattr(kind, "feature", None), "names"):
        return [_class_names(kind.feature, value or ()) for value in values]
    return list(values)
