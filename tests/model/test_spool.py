"""A corpus on disk: the same as in memory, whole or not there."""

import errno
import gzip
import json
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from topicsteer.backends.block_folder import BlockError
from topicsteer.corpora import ReadError, ReadOptions, read_table
from topicsteer.corpora.documents import DiskSequence, DiskSequenceWriter
from topicsteer.labels.forms import forbid, supervise
from topicsteer.model.spool import spool
from topicsteer.text import TextVectorizer

WORDS = ["ship", "grain", "bank", "rate", "the", "and", "of", "snö", "price", "wheat", "loan", "fell"]


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 12))) for _ in range(n)]
    labels = [["", "trade", "money;trade"][k] for k in rng.choice(3, n, p=[0.8, 0.1, 0.1])]
    return pl.DataFrame({"id": [f"d{k}" for k in range(n)], "text": texts, "label": labels})


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "texts.csv"
    table().write_csv(path)
    return path


# Sizes of blocks and pieces.
SMALL = {"block": 2000, "piece": 700}


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(TextVectorizer, "chunk_size", 500)


def assert_same(found, source, vectorizer=None, **options):
    documents, vectorizer = read_table(source, **options), vectorizer or TextVectorizer(weak_stop_words=True)
    X = vectorizer.fit_transform(documents.texts)
    for name in ("ids", "texts", "labels", "forbidden"):
        assert list(getattr(found.documents, name)) == list(getattr(documents, name))
    assert found.documents.report == documents.report
    assert found.vectorizer.vocabulary_ == vectorizer.vocabulary_
    assert found.vectorizer.get_params() == vectorizer.get_params()
    np.testing.assert_array_equal(found.vectorizer.idf_, vectorizer.idf_)
    joined = sp.vstack(list(found.matrix), format="csr")
    assert joined.dtype == X.dtype
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(joined, part), getattr(X, part))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.csv.gz"])
def test_every_kind_of_file_is_what_it_is_in_memory(tmp_path, name):
    path, frame = tmp_path / name, table()
    plain = tmp_path / name.removesuffix(".gz")
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[plain.name[2:]](plain)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(plain.read_bytes()))
    found = spool(path, tmp_path / "spool", **SMALL)
    assert len(found.matrix) > 3
    assert_same(found, path)
    assert sorted(os.listdir(tmp_path / "spool"))[0] == "blocks"


@pytest.mark.usefixtures("small_pieces")
def test_options_are_those_of_the_parts(tmp_path, source):
    vectorizer = TextVectorizer(stop_words=["ship"], min_df=1, threads=1)
    found = spool(source, tmp_path / "spool", ReadOptions(id="id", labels=False), vectorizer=vectorizer, **SMALL)
    assert_same(found, source, vectorizer, id="id", labels=False)
    with pytest.raises(ReadError, match="there is no column 'nothing'"):
        spool(source, tmp_path / "other", ReadOptions(text="nothing"))
    assert not (tmp_path / "other").exists()


def test_bad_rows_and_forbidden_topics(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"id": k, "text": f"grain number{k} ship"} for k in range(8)]
    rows[2]["text"], rows[3]["label"], rows[4]["forbidden"] = "", ["trade", "money"], "trade"
    rows[7]["id"] = 5
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "no json\n")
    found = spool(path, tmp_path / "spool")
    assert_same(found, path)
    documents = found.documents
    assert [str(row) for row in documents.report.bad_rows] == [
        "line 3: empty text",
        "line 8: the id 5 occurs a second time",
        "line 9: not valid JSON (Expecting value at character 1)",
    ]
    assert documents.topic_names == ["money", "trade"]
    supervision = forbid(supervise(documents.labels, len(documents)), documents.forbidden)
    assert supervision.patterns[supervision.pattern].tolist() == [[-1, -1]] * 2 + [[1, 1], [-1, 0]] + [[-1, -1]] * 2
    assert documents.select([2, 0]).ids == [3, 0]


def test_a_label_file_beside_the_table(tmp_path, source):
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label,forbidden\nd3,trade,money\nd7,money;trade,\nd299,money,\nnobody,money,\n")
    found = spool(source, tmp_path / "spool", ReadOptions(label_file=labels))
    assert_same(found, source, label_file=labels)
    assert found.documents.labels[7] == ["money", "trade"]
    assert [str(row) for row in found.documents.report.bad_rows] == [
        "labels.csv line 5: no document has this id 'nobody'"
    ]
    labels.write_text("id,label\nd4,trade\n")
    assert_same(spool(source, tmp_path / "spool", ReadOptions(label_file=labels)), source, label_file=labels)
    text = table()["text"][5]
    labels.write_text(json.dumps({"text": text, "label": "", "forbidden": "trade"}) + "\n")
    labels = labels.rename(tmp_path / "labels.jsonl")
    found = spool(source, tmp_path / "spool", ReadOptions(label_file=labels))
    assert_same(found, source, label_file=labels)
    assert found.documents.forbidden[5] == ["trade"]
    with pytest.raises(ReadError, match="no such file"):
        spool(source, tmp_path / "spool", ReadOptions(label_file=tmp_path / "no.csv"))


def test_ids_of_other_kinds_become_strings(tmp_path):
    frame = pl.DataFrame({"id": pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, 5), eager=True), "text": WORDS[:5]})
    frame.write_parquet(tmp_path / "a.parquet")
    assert spool(tmp_path / "a.parquet", tmp_path / "spool").documents.ids[1] == "2020-01-02"


def test_an_earlier_spool_is_replaced(tmp_path, source):
    seen = []

    def tell(stage, done, total, note):
        seen.append((stage, done, total))

    found = spool(source, tmp_path / "spool", progress=tell)
    assert seen == [("columns", 300, None), ("terms", 300, 300), ("blocks", 300, 300)]
    assert_same(found, source)
    table(200, seed=1).write_csv(source)
    assert_same(spool(source, tmp_path / "spool"), source)
    found = spool(source, tmp_path / "spool", vectorizer=TextVectorizer(lemmatizer=str.upper))
    assert found.vectorizer.transform(["grain"]).nnz == 1
    assert sorted(os.listdir(tmp_path)) == ["spool", "texts.csv"]


def test_other_files_are_left_alone(tmp_path, source):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").write_text("years")
    with pytest.raises(BlockError, match="own contains files that are not a spooled corpus"):
        spool(source, tmp_path / "own")
    with pytest.raises(BlockError, match=r"texts\.csv is a file"):
        spool(source, source)
    assert (tmp_path / "own" / "thesis.txt").read_text() == "years"


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("stage", ["columns", "terms", "blocks"])
def test_an_interruption_leaves_nothing_or_what_was_there(tmp_path, source, stage):
    def interrupt(now, done, total, note):
        if now == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spool(source, tmp_path / "spool", progress=interrupt, **SMALL)
    assert os.listdir(tmp_path) == ["texts.csv"]
    spool(source, tmp_path / "spool")
    with pytest.raises(KeyboardInterrupt):
        spool(source, tmp_path / "spool", ReadOptions(labels=False), progress=interrupt, **SMALL)
    assert_same(spool(source, tmp_path / "spool"), source)
    for name in ("spool.partial", "spool.old"):  # folders of the user
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("years")
    assert_same(spool(source, tmp_path / "spool", ReadOptions(labels=False)), source, labels=False)
    assert sorted(os.listdir(tmp_path)) == ["spool", "spool.old", "spool.partial", "texts.csv"]
    assert len(list(tmp_path.glob("spool.*/thesis.txt"))) == 2


@pytest.mark.parametrize(
    "where", ["topicsteer.corpora.documents.DiskSequenceWriter.extend", "topicsteer.text.tokens.Spill.__init__"]
)
def test_a_full_disk_is_explained(tmp_path, source, monkeypatch, where):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(where, full)
    message = r"could not write 300 documents, which take about 0.0 GB, in .*/spool: No space left on device; [\d.]+ GB"
    with pytest.raises(BlockError, match=message):
        spool(source, tmp_path / "spool")
    assert os.listdir(tmp_path) == ["texts.csv"]


def test_a_file_that_cannot_grow(tmp_path, source):
    resource = pytest.importorskip("resource")
    spool(source, tmp_path / "spool")  # compiles what has to be compiled
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(BlockError, match=r"other: File too large; [\d.]+ GB are free there\. Free some space"):
            spool(source, tmp_path / "other")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(os.listdir(tmp_path)) == ["spool", "texts.csv"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.text() | st.integers() | st.none() | st.lists(st.text())), max_size=5))
def test_a_disk_sequence_is_a_list(tmp_path_factory, parts):
    path = tmp_path_factory.mktemp("sequence") / "values"
    with DiskSequenceWriter(path) as writer:
        for part in parts:
            writer.extend(json.loads(json.dumps(part).encode("utf-8", "replace")))
    values = [value for part in parts for value in part]
    sequence = DiskSequence(path)
    assert list(sequence) == values == sequence[:]
    assert [sequence[k] for k in range(-len(values), len(values))] == values * 2
    assert sequence[::-2] == values[::-2]
    assert bool(sequence) == bool(values)
    with pytest.raises(IndexError):
        sequence[len(values)]
    with DiskSequenceWriter(path) as writer:
        writer.extend(["other"])
    assert sequence[:] == values
    assert list(DiskSequence(path)) == ["other"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_memory_does_not_grow_with_the_documents(tmp_path):
    rng = np.random.default_rng(0)
    words = np.array([f"w{k:x}x" for k in range(3000)], dtype=object)
    sizes = 5000, 40_000
    few, many = (tmp_path / f"{n}.csv" for n in sizes)
    for n, path in zip(sizes, (few, many), strict=True):
        texts = map(" ".join, words[rng.integers(0, len(words), (n, 60))])
        path.write_text(
            "id,text,label\n" + "".join(f"d{k},{text},{'a' * (k % 9 == 0)}\n" for k, text in enumerate(texts))
        )
    code = """
import re, sys
from topicsteer.corpora import read_table
from topicsteer.model.spool import spool
from topicsteer.text import TextVectorizer

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

few, many, folder = sys.argv[1:]
TextVectorizer.chunk_size = piece = 1 << 17  # so that a small file has many of them
spool(few, folder + "/few", memory=1 << 26, piece=piece)
first = peak()
spool(many, folder + "/many", memory=1 << 26, piece=piece)
second = peak()
TextVectorizer(weak_stop_words=True).fit_transform(read_table(many).texts)
print(second - first, peak() - second)
"""
    done = subprocess.run([sys.executable, "-c", code, few, many, tmp_path], capture_output=True, text=True, check=True)
    spooled, whole = map(int, done.stdout.split())
    assert spooled < whole / 4
