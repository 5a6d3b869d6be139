"""A small file that unpacks to gigabytes is refused, quickly and in little memory."""

import gzip
import json
import os
import subprocess
import sys
import textwrap
import time

import polars as pl
import pytest

from topicsteer.corpora import ReadError, ReadOptions, read_documents, read_labels
from topicsteer.corpora.readers import limit_of, limited

resource = pytest.importorskip("resource", reason="Windows has no limits on processes")

ROWS = "".join(f"{i},text number {i},tea\n" for i in range(2000))


def zeros(path, size, head=b""):
    """A gzip file of this many equal bytes; each part is packed by itself."""
    part = gzip.compress(b"0" * (1 << 24))
    with open(path, "wb") as target:
        target.write(gzip.compress(head))
        for _ in range(size >> 24):
            target.write(part)
    return path


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.jsonl.gz", "bomb.json.gz", "bomb.tsv.gz"])
def test_gzip(tmp_path, name):
    path = zeros(tmp_path / name, 256 << 20, b"id,text,label\n")
    assert path.stat().st_size < 1 << 19
    with limited(32 << 20), pytest.raises(ReadError, match=r"TOPICSTEER_UNPACKED"):
        read_documents(path, ReadOptions(text="text"))
    with limited(32 << 20), pytest.raises(ReadError, match=r"more than 0.0336 GB"):
        read_labels(path)


def test_parquet_of_equal_texts_and_of_many_rows(tmp_path):
    wide, long = tmp_path / "wide.parquet", tmp_path / "long.parquet"
    pl.DataFrame({"text": pl.repeat("word " * 2000, 20_000, eager=True)}).write_parquet(wide)
    pl.select(id=pl.repeat(1, 20_000_000), text=pl.repeat("a", 20_000_000)).write_parquet(long)
    for path in (wide, long):
        assert path.stat().st_size < 1 << 20
        with limited(128 << 20), pytest.raises(ReadError, match="fill the memory"):
            read_documents(path, ReadOptions(text="text"))


def test_parquet_of_one_row_with_many_values(tmp_path):
    path = tmp_path / "list.parquet"
    pl.select(id=pl.lit(1), label=pl.repeat(7, 20_000_000).implode()).write_parquet(path)
    assert path.stat().st_size < 1 << 20
    with limited(128 << 20), pytest.raises(ReadError, match="fill the memory"):
        read_labels(path)


def test_rows_with_names_of_their_own(tmp_path):
    path = tmp_path / "names.jsonl"
    path.write_text("".join(f'{{"k{i}": 1}}\n' for i in range(30_000)))
    with limited(128 << 20), pytest.raises(ReadError, match="fill the memory"):
        read_documents(path, ReadOptions(text="k1"))
    path = tmp_path / "columns.csv"
    path.write_text("," * 3_000_000 + "\n1\n")
    with pytest.raises(ReadError, match="3,000,001 columns"):
        read_documents(path, ReadOptions(text="column 1"))


def test_honest_files_are_read_and_users_can_raise_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "honest.csv.gz"
    path.write_bytes(gzip.compress(b"id,text,label\n" + ROWS.encode()))
    assert len(read_documents(path, ReadOptions()).texts) == 2000
    monkeypatch.setenv("TOPICSTEER_UNPACKED", "1KB")
    with pytest.raises(ReadError, match="more than"):
        read_documents(path, ReadOptions())
    monkeypatch.setenv("TOPICSTEER_UNPACKED", "1MB")
    assert len(read_documents(path, ReadOptions()).texts) == 2000
    assert limit_of("x.csv.gz") == 1_000_000
    monkeypatch.setenv("TOPICSTEER_UNPACKED", "much")
    with pytest.raises(ValueError, match="expected a number of bytes"):
        read_documents(path, ReadOptions())


def test_the_limit_follows_the_size_of_the_file(tmp_path, monkeypatch):
    """As `threats.md` says: a hundred times the size, and at least 1 GB."""
    monkeypatch.delenv("TOPICSTEER_UNPACKED", raising=False)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(b"0" * 1000)
    assert limit_of(path) == 1 << 30
    with open(path, "r+b") as file:
        file.truncate(1 << 30)  # without using the disk
    assert limit_of(path) == 100 << 30


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gzip", "parquet", "names"])
def test_a_bomb_is_refused_under_a_memory_limit(tmp_path, kind):
    """The files of the attack: 4 GB in 294 kB of gzip, 3.9 GB in 72 kB of Parquet."""
    if kind == "gzip":
        path = zeros(tmp_path / "bomb.csv.gz", 4 << 30, b"id,text,label\n")
    elif kind == "parquet":
        path = tmp_path / "bomb.parquet"
        pl.select(id=pl.int_range(40_000), label=pl.repeat("x" * 10_000, 40_000)).select(
            pl.lit(1).alias("id"), "label"
        ).write_parquet(path)
    else:
        path = tmp_path / "bomb.jsonl"
        path.write_text("".join(json.dumps({f"k{i}": 1}) + "\n" for i in range(500_000)))
    code = textwrap.dedent(
        f"""
        import resource
        from topicsteer.corpora import read_labels
        from topicsteer.corpora.readers import limited
        import polars
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
        with limited(128 << 20):
            try:
                read_labels({str(path)!r})
            except ValueError as error:
                print(error)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"POLARS_MAX_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert "fill the memory" in done.stdout or "columns; at most" in done.stdout


def test_spaces_between_labels_take_linear_time(tmp_path):
    cells = {"id": ["a", "b"], "label": ["tea" + " " * 40_000 + "x", "tea" + " " * 40_000 + ";milk"]}
    began = time.perf_counter()
    found = read_labels(pl.DataFrame(cells))
    assert found.records[1].labels == ["tea", "milk"]
    assert time.perf_counter() - began < 2  # a quadratic pattern took 11 s
