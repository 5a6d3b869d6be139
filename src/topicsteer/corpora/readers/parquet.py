"""Read Parquet."""

import math
from collections.abc import Iterator

from topicsteer.corpora.documents import ReadError
from topicsteer.corpora.readers.table_file import ROW_COST, Table, TableFile, check_bytes, check_cells, local_copy


def read_parquet(file: TableFile, size: float) -> Iterator[Table]:
    """Yield slices of a Parquet file; polars loads only the row groups of a slice."""
    import polars as pl

    with local_copy(file.path, ".parquet") as local:
        try:
            scan = pl.scan_parquet(local, glob=False)
            total, low, rows = scan.select(pl.len()).collect().item(), 0, 1000.0
            schema = scan.collect_schema()
            check_cells(file.path, total, len(schema))
            # One long text may stand for a million, and one list may hold a million values.
            lengths = [pl.col(name).str.len_bytes().sum() for name, kind in schema.items() if kind == pl.String]
            lengths += [8 * pl.col(name).list.len().sum() for name, kind in schema.items() if kind == pl.List]
            if lengths:
                check_bytes(file.path, int(scan.select(pl.sum_horizontal(lengths)).collect().item() or 0))
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
