"""Tables in memory: DataFrames of any kind, Hugging Face Datasets, lists of texts or of dicts."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from topicsteer.corpora.read_report import ReadError
from topicsteer.corpora.readers.files import Table, columns_of


def load_object(source: object) -> Table:
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


def dask_pieces(source: Any, size: float) -> Iterator[Table]:
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
