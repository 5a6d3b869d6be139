"""topicsteer prevalence, and suggestions for it."""

import io

import numpy as np
import polars as pl
import pytest

from topicsteer import TopicModel

WORDS = {"tea": "leaves pot kettle brew cup", "coffee": "beans roast espresso grind mug"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    topics = [str(rng.choice(list(WORDS))) for _ in range(300)]
    fillers = [f"word{i}" for i in range(120)]
    columns = {
        "id": [f"d{i}" for i in range(300)],
        "text": [" ".join([*rng.choice(WORDS[name].split(), 2), *rng.choice(fillers, 5)]) for name in topics],
        "label": [name if row % 3 == 0 else "" for row, name in enumerate(topics)],
        "region": [str(rng.choice(["north", "south"])) for _ in topics],
        "date": [f"2024-{1 + row % 4:02}-07" for row in range(300)],
        "w": rng.random(300) + 0.5,
        "author": [f"a{row % 40}" for row in range(300)],
        "chosen": ["random" if row % 3 == 0 else None for row in range(300)],
    }
    path = tmp_path_factory.mktemp("corpus") / "articles.csv"
    pl.DataFrame(columns).write_csv(path)
    return path


@pytest.fixture(scope="module")
def model(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted") / "model"
    TopicModel(1, world="closed").fit(table, "label").save(folder)
    return folder


def test_shares_by_a_column_with_weights_and_clusters(run, model, table, tmp_path):
    out = tmp_path / "shares.csv"
    options = ["--by", "date:month", "--weight", "w", "--cluster", "author", "--precision", "2"]
    code, _, notes = run("prevalence", model, table, *options, "--out", out)
    assert code == 0, notes
    found = pl.read_csv(out)
    assert found.columns == ["topic", "group", "share", "low", "high", "documents", "labels"]
    assert found["group"].n_unique() == 1 + 4
    assert "Labels: 100 drawn at random." in notes
    assert "±2 points" in notes
    known = found.filter(pl.col("topic").is_in(list(WORDS)))
    assert ((known["low"] <= known["share"]) & (known["share"] <= known["high"])).all()


def test_differences_and_trend(run, model, table):
    code, out, _ = run("prevalence", model, table, "--by", "region", "--table", "differences")
    assert code == 0
    assert pl.read_csv(io.StringIO(out)).columns == ["topic", "group", "other", "difference", "low", "high", "clear"]
    code, out, _ = run("prevalence", model, table, "--by", "date:month", "--table", "trend", "--quiet")
    assert code == 0
    assert pl.read_csv(io.StringIO(out))["per"].to_list() == ["month", "month"]


def test_a_small_memory_works_on_disk_with_the_same_result(run, model, table, tmp_path):
    for name, options in (("disk", ["--memory", "20KB"]), ("memory", [])):
        code, _, notes = run("prevalence", model, table, "--by", "region", "--out", tmp_path / f"{name}.csv", *options)
        assert code == 0, notes
        assert ("in blocks on disk" in notes) == (name == "disk")
    assert (tmp_path / "disk.csv").read_text() == (tmp_path / "memory.csv").read_text()
    assert not model.with_name("model.work").exists()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--by", "colour"], 1, "there is no column 'colour' to group by"),
        (["--weight", "region"], 1, "weights must be numbers"),
        (["--table", "trend"], 2, "--by with a column"),
        (["--precision", "0"], 2, "percentage points"),
        (["--weight", "w", "--weight", "w"], 1, "given twice"),
        (["--by", "region", "--by", "date"], 1, "given twice"),
    ],
)
def test_wrong_options(run, model, table, options, code, words):
    found, _, notes = run("prevalence", model, table, *options)
    assert found == code
    assert words in " ".join(notes.replace("│", " ").split())


def test_documents_are_drawn_for_shares(run, model, table, tmp_path):
    out = tmp_path / "next.csv"
    code, _, _ = run("suggest", model, table, "--for", "shares", "-n", "30", "--out", out)
    assert code == 0
    found = pl.read_csv(out)
    assert set(found["chosen"]) == {"doubt 2"}
    assert found["probability"].is_between(0, 1).all()
    assert found["probability"].n_unique() > 10
    code, out, _ = run("suggest", model, table, "-n", "3", "--quiet")
    assert pl.read_csv(io.StringIO(out))["chosen"].to_list() == ["suggested 2"] * 3
