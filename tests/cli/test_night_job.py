"""A nightly job: empty tables, mistyped labels, pipes, logs and settings in a file."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.analysis.column_formats import Column
from topicsteer.corpora import Documents, read_documents
from topicsteer.model.predictor import Predictor
from topicsteer.report.table_files import write_growing

pytestmark = pytest.mark.slow

TEXTS = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 6
LABELS = [["tea"], ["coffee"], *([[]] * 22)]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Folder of a model with the topics coffee and tea."""
    folder = tmp_path_factory.mktemp("night") / "model"
    TopicModel(free_topics=0).fit(Documents([f"d{i}" for i in range(24)], TEXTS, LABELS)).save(folder)
    return folder


@pytest.fixture
def model(fitted, tmp_path):
    """A copy of the model, to be changed."""
    TopicModel.load(fitted).save(tmp_path / "model")
    return tmp_path / "model"


def written(path, **columns):
    pl.DataFrame(columns).write_csv(path)
    return path


def test_a_mistyped_label_makes_no_topic(run, model, tmp_path):
    new = written(tmp_path / "new.csv", id=["n1", "n2"], text=["green tea", "hot milk"], label=["tee", "milk"])
    code, _, err = run("update", model, new, "--no-new-topics")
    assert code == 1
    assert "'tee' (document n1; did you mean 'tea'?)" in err
    assert "'milk' (document n2)" in err
    assert "permit new topics (--new-topics, or" in err
    assert TopicModel.load(model).codebook.names == ("coffee", "tea")
    assert len(TopicModel.load(model).state_.topics.ids) == 24


def test_known_labels_pass_without_new_topics(run, model, tmp_path):
    new = written(tmp_path / "new.csv", id=["n1"], text=["green tea"], label=["tea"])
    assert run("update", model, new, "--no-new-topics", "-q")[0] == 0
    assert len(TopicModel.load(model).state_.topics.ids) == 25


def test_a_new_topic_that_resembles_another_is_pointed_out(run, model, tmp_path):
    new = written(tmp_path / "new.csv", id=["n1", "n2"], text=["green tea", "hot milk"], label=["tee", "milk"])
    code, _, err = run("update", model, new)
    assert code == 0
    assert "new topics: milk, tee (similar to tea)" in err


EMPTY = {"a.csv": "id,text,label\n", "b.csv": "number,words\n", "c.jsonl": "", "d.json": "[]"}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_night_is_no_failure(run, model, tmp_path, name):
    (tmp_path / name).write_text(EMPTY[name])
    code, _, err = run("update", model, tmp_path / name)
    assert code == 0
    assert f"{name} has no rows" in err
    assert "no new documents. Saved in" in err
    code, out, err = run("predict", model, tmp_path / name)
    own = {"a.csv": "id,text,label", "b.csv": "number,words"}.get(name, "id")
    assert (code, out) == (0, f"{own},predicted,coffee,tea,(none)\n")
    assert f"{name} has no rows" in err
    assert len(TopicModel.load(model).state_.topics.ids) == 24


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".xlsx"])
def test_predictions_of_an_empty_night(run, fitted, tmp_path, suffix):
    (tmp_path / "a.csv").write_text("id,text\n")
    assert run("predict", fitted, tmp_path / "a.csv", "-q", "--out", tmp_path / f"p{suffix}") == (0, "", "")
    assert (tmp_path / f"p{suffix}").exists()


def test_an_empty_night_has_the_columns_of_every_other_night(run, fitted, tmp_path):
    head = "ticket,text,agent\n"
    (tmp_path / "none.csv").write_text(head)
    (tmp_path / "one.csv").write_text(head + "7,a pot of tea,Ann\n8,,Bob\n")
    none, one = (run("predict", fitted, tmp_path / f"{name}.csv") for name in ("none", "one"))
    assert none[1].strip() == one[1].splitlines()[0]
    assert "1 bad row, kept" in one[2]


def test_an_empty_file_is_no_table(run, model, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("")
    code, _, err = run("update", model, tmp_path / "a.csv")
    assert code == 1
    assert "a.csv: is empty; expected a header" in err
    with (tmp_path / "a.csv").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        code, _, err = run("update", model, "-")
    assert code == 1
    assert "standard input.csv: is empty; expected a header with the names of the columns\n" in err


@pytest.fixture
def many(tmp_path):
    """A table with more rows than are predicted without the kernels."""
    return written(
        tmp_path / "many.csv", id=[f"m{i}" for i in range(200)], text=[f"{TEXTS[i % 4]} no {i}" for i in range(200)]
    )


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".xlsx"])
def test_predictions_in_blocks_equal_those_at_once(run, fitted, tmp_path, suffix, monkeypatch):
    whole, parts = tmp_path / f"whole{suffix}", tmp_path / f"parts{suffix}"
    texts = [f"{TEXTS[i % 4]} no {i} " * 1100 for i in range(220)]
    many = written(tmp_path / "many.csv", id=[f"m{i}" for i in range(220)], text=texts)
    documents = read_documents(many)
    table = TopicModel.load(fitted).predictor_.predict(documents).table(as_text=suffix == ".csv")
    frame, sizes = pl.DataFrame(table), []
    write_growing([frame], whole, [Column(name, "share") for name in ("coffee", "tea", "(none)")])
    real = Predictor.predict
    monkeypatch.setattr(Predictor, "predict", lambda self, d, *more: sizes.append(len(d)) or real(self, d, *more))
    assert run("predict", fitted, many, "--out", parts, "-q") == (0, "", "")
    assert sum(sizes) == 220
    assert len(sizes) > 1
    readers = {".csv": pl.read_csv, ".jsonl": pl.read_ndjson, ".parquet": pl.read_parquet, ".xlsx": pd.read_excel}
    a, b = readers[suffix](whole), readers[suffix](parts)
    assert list(a["predicted"]) == list(b["predicted"])
    shares = ["coffee", "tea", "(none)"]  # 100 texts or fewer take another way, with other last digits
    np.testing.assert_allclose(a[shares].to_numpy(), b[shares].to_numpy(), atol=1e-9)
    assert len(a) == 220


@pytest.mark.parametrize("kind", [".csv", ".jsonl", ".parquet"])
def test_from_standard_input_to_standard_output(run, fitted, many, tmp_path, monkeypatch, kind):
    source = tmp_path / f"piped{kind}"
    table = pl.read_csv(many)
    {".csv": table.write_csv, ".jsonl": table.write_ndjson, ".parquet": table.write_parquet}[kind](source)
    with source.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        code, piped, _ = run("predict", fitted, "-")
    assert code == 0
    assert piped == run("predict", fitted, many)[1]
    assert len(piped.splitlines()) == 201


def test_evaluate_within_a_memory_limit(run, tmp_path):
    labels = ["tea", "coffee"] * 15 + [""] * 30
    table = written(
        tmp_path / "t.csv", id=list(range(60)), text=[TEXTS[i % 2] + f" w{i % 7}" for i in range(60)], label=labels
    )
    model = tmp_path / "model"
    assert run("fit", table, "--free", 0, "--out", model, "-q")[0] == 0
    whole = run("evaluate", model, table, "--json", "-q")
    blocks = run("evaluate", model, table, "--json", "--memory", "1KB")
    assert blocks[0] == 0
    assert "working in blocks on disk" in blocks[2]
    first, second = json.loads(whole[1]), json.loads(blocks[1])
    assert first.keys() == second.keys()
    assert second["topics"]["F1"] == pytest.approx(first["topics"]["F1"], abs=1e-4)
