"""Sizes from footer and page headers of Parquet, compared with pyarrow; forged files get a message."""

import random

import polars as pl
import pytest

from topicsteer.corpora import ReadError, read_labels
from topicsteer.corpora.readers import parquet_sizes
from topicsteer.corpora.readers.limits import limited
from topicsteer.corpora.readers.parquet_sizes import FOOTER, PAGE, VALUE, Malformed, sizes

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TABLE = {
    "id": list(range(5000)),
    "label": [f"tea {i % 7}" if i % 3 else None for i in range(5000)],
    "many": [["a", "b"][: i % 3] for i in range(5000)],
}


def write(path, **options):
    pq.write_table(pa.table(TABLE), path, **options)
    return path


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize(
    "options",
    [{}, {"data_page_version": "2.0", "row_group_size": 900}, {"use_dictionary": False, "data_page_size": 500}],
)
def test_sizes_are_those_of_pyarrow(tmp_path, codec, options, monkeypatch):
    path = write(tmp_path / "t.parquet", compression=codec, **options)
    footer = pq.read_metadata(path)
    chunks = [footer.row_group(i).column(j) for i in range(footer.num_row_groups) for j in range(footer.num_columns)]
    first, *rest = sizes(path)
    assert first == FOOTER * footer.serialized_size
    seen = []
    read = parquet_sizes._page
    monkeypatch.setattr(parquet_sizes, "_page", lambda file: seen.append(read(file)) or seen[-1])
    assert list(sizes(path))[1:] == rest
    assert sum(page.unpacked + page.header for page in seen) == sum(chunk.total_uncompressed_size for chunk in chunks)
    assert sum(page.packed + page.header for page in seen) == sum(chunk.total_compressed_size for chunk in chunks)
    assert sum(page.values for page in seen) >= sum(chunk.num_values for chunk in chunks)  # dictionaries have values
    assert sum(rest) == sum(page.unpacked + VALUE * page.values + PAGE for page in seen)


def test_files_of_polars_and_empty_ones(tmp_path):
    frame = pl.DataFrame(TABLE)
    frame.write_parquet(tmp_path / "full.parquet")
    frame.head(0).write_parquet(tmp_path / "empty.parquet")
    assert sum(sizes(tmp_path / "full.parquet")) > 5000 * 3 * VALUE
    assert sum(sizes(tmp_path / "empty.parquet")) < 1 << 17


def test_a_page_header_that_understates_its_size(tmp_path):
    """polars refuses such a page without unpacking the rest."""
    for codec in ("snappy", "gzip", "zstd", "brotli", "lz4"):
        path = tmp_path / f"{codec}.parquet"
        texts = pa.table({"id": ["a"], "label": ["x" * (48 << 20)]})
        pq.write_table(texts, path, compression=codec, use_dictionary=False, write_statistics=False)
        start = pq.read_metadata(path).row_group(0).column(1).data_page_offset
        data = bytearray(path.read_bytes())
        assert data[start : start + 3] == b"\x15\x00\x15"  # its kind, then its unpacked size in four bytes
        data[start + 3 : start + 7] = b"\xd0\x8f\x80\x00"
        with limited(32 << 20), pytest.raises(ReadError, match="fill the memory"):
            read_labels(path)
        path.write_bytes(data)
        assert sum(sizes(path)) < 1 << 20
        with limited(32 << 20), pytest.raises(ReadError, match="not a Parquet file that can be read"):
            read_labels(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not end with a footer"),
        (b"PAR1", "does not end with a footer"),
        (b"PAR1 nothing PAR1", "does not end with a footer"),
        (b"PAR1" + b"\x15" + b"\x01\0\0\0PAR1", "its footer does not end"),
        (b"PAR1" + b"\x1c" * 40 + b"\x28\0\0\0PAR1", "nested too deeply"),
        (b"PAR1" + b"\x1b\x00" + b"\x02\0\0\0PAR1", "kind 11 do not occur"),
        (b"PAR1" + b"\x16" + b"\xff" * 12 + b"\x0d\0\0\0PAR1", "a number is too long"),
        (b"PAR1" + b"\x49\x15\x02\x00" + b"\x04\0\0\0PAR1", "no list of structures"),
        (b"PAR1" + b"\x49\x1c\x19\x1c\x00\x00\x00" + b"\x07\0\0\0PAR1", "in another file"),
        (b"PAR1" + b"\x49\xfc\xff\xff\xff\x7f" + b"\x06\0\0\0PAR1", "its footer does not end"),
    ],
)
def test_forged_footers(tmp_path, data, message):
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    with pytest.raises(Malformed, match=message):
        list(sizes(path))
    with pytest.raises(ReadError, match="not a Parquet file that can be read"):
        read_labels(path)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({9: 4, 7: 10**9}, "longer than the file"),
        ({9: 4, 7: -1}, "no size"),
        ({7: 4}, "no size"),
        ({9: 4, 11: 8, 7: 4}, "a dictionary follows its data"),
    ],
)
def test_forged_columns(tmp_path, column, message):
    path = write(tmp_path / "t.parquet")
    with open(path, "rb") as file, pytest.raises(Malformed, match=message):
        list(parquet_sizes._pages(file, path.stat().st_size, column))


def test_a_header_that_does_not_end(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\x18\xff\xff\xff\x7f" + bytes(3 << 20))
    with open(path, "rb") as file, pytest.raises(Malformed, match="does not end"):
        parquet_sizes._page(file)


def test_damaged_files_are_malformed_or_have_sizes(tmp_path):
    whole = write(tmp_path / "t.parquet").read_bytes()
    path, rng, refused = tmp_path / "damaged.parquet", random.Random(0), 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(3):
            data[rng.randrange(len(data) - 3000, len(data) - 8)] = rng.randrange(256)
        path.write_bytes(data)
        try:
            assert all(size >= 0 for size in sizes(path))
        except Malformed:
            refused += 1
    assert refused > 20
