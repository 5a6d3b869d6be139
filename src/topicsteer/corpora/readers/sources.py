"""Whatever holds a table (a file, a DataFrame, a list of texts) to `Table`s: which reader reads what."""

import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from topicsteer.corpora.options import ReadOptions
from topicsteer.corpora.read_report import ReadError
from topicsteer.corpora.readers.delimited import read_delimited
from topicsteer.corpora.readers.files import Pieces, Table, TableFile
from topicsteer.corpora.readers.frames import dask_pieces, load_object
from topicsteer.corpora.readers.json import read_json, read_json_lines
from topicsteer.corpora.readers.parquet import read_parquet

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


def open_table(source: object, options: ReadOptions) -> Pieces:
    """Find out how to read a source piece by piece; what is in memory, and a .json file, has one piece only."""
    if isinstance(source, str | os.PathLike):
        return _open_file(os.fspath(source), options)
    if hasattr(source, "partitions") and hasattr(source, "dask"):
        return partial(dask_pieces, source)
    table = source if isinstance(source, Table) else load_object(source)
    return lambda size: iter([table])


def _open_file(path: str, options: ReadOptions) -> Pieces:
    if Path(path).is_dir():
        raise ReadError(f"{path}: is a folder; read its files with read_folder")
    file = TableFile(path, options.encoding, options.delimiter)
    if file.kind not in READERS:
        raise ReadError(
            f"{path}: unknown kind of file {file.kind!r}; expected .csv, .tsv, .jsonl, .json or .parquet, each of "
            "them also with .gz"
        )
    return partial(READERS[file.kind], file)
