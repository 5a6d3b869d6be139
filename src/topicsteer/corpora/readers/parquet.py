"""Read Parquet."""

import math
from collections.abc import Iterator

from topicsteer.corpora.read_report import ReadError
from topicsteer.corpora.readers.limits import check_bytes, check_cells
from topicsteer.corpora.readers.parquet_sizes import sizes
from topicsteer.corpora.readers.table_file import ROW_COST, Table, TableFile, local_copy


def read_parquet(file: TableFile, size: float) -> Iterator[Table]:
    """Yield slices of a Parquet file; polars loads only the row groups of a slice."""
    import polars as pl

    with local_copy(file.path, ".parquet") as local:
        try:
            _check_sizes(file.path, local)
            scan = pl.scan_parquet(local, glob=False)
            total, low, rows = scan.select(pl.len()).collect().item(), 0, 1000.0
            schema = scan.collect_schema()
            check_cells(file.path, total, len(schema))
            texts = [name for name, kind in schema.items() if kind == pl.String]
            if texts:  # one long text may stand for a million
                sizes = scan.select(pl.sum_horizontal(pl.col(texts).str.len_bytes().sum())).collect().item()
                check_bytes(file.path, int(sizes or 0))
            while True:
                frame = scan.slice(low, None if size == math.inf else int(rows)).collect()
                yield Table(file.path, frame.to_dict(as_series=False), range(low + 1, low + len(frame) + 1))
                low += len(frame)
                if low >= total:
                    return
                rows = max(1.0, size / (frame.estimated_size() / len(frame) + ROW_COST))
        except ReadError:
            raise
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
            raise ReadError(f"{file.path}: not a Parquet file that can be read ({error})") from None


def _check_sizes(path: str, local: str) -> None:
    """Raise ReadError if the content takes too much memory; stop at the first page that exceeds the limit."""
    total = 0
    for part in sizes(local):
        total += part
        check_bytes(path, total)
