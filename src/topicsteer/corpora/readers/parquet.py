"""Read Parquet."""

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from topicsteer.corpora.read_report import ReadError
from topicsteer.corpora.readers.limits import Unpacked, check_bytes, check_cells
from topicsteer.corpora.readers.parquet_sizes import sizes
from topicsteer.corpora.readers.table_file import ROW_COST, Table, TableFile, is_address, open_bytes
from topicsteer.system.files import Scratch


def read_parquet(file: TableFile, size: float) -> Iterator[Table]:
    """Yield slices of a Parquet file; polars loads only the row groups of a slice."""
    import polars as pl

    with _local(file.path) as local:
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


@contextmanager
def _local(path: str) -> Iterator[str]:
    """Give a local, unpacked file: the file itself, or a temporary copy of a remote or packed one."""
    with open_bytes(path) as stream:
        if not is_address(path) and not isinstance(stream, Unpacked):
            yield path
            return
        with Scratch() as folder:
            copy = folder / "copy.parquet"
            with copy.open("wb") as target:
                shutil.copyfileobj(stream, target, 1 << 20)
            yield str(copy)
