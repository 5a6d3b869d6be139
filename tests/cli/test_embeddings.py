"""Embeddings on the command line, with a real model2vec model where that package is installed."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.model.predictor import Model2Vec, embeddings_named

TEXTS = ["green tea leaves", "the engine of a car", "an automobile and its wheels", "espresso with milk"] * 6
LABELS = ["drinks", "vehicles", "vehicles", "drinks"] + [""] * 20
DRINKS = ("tea", "espresso")


def vectors(texts):
    """Beverages to the left, vehicles to the right."""
    return np.array([[any(w in t for w in DRINKS), not any(w in t for w in DRINKS)] for t in texts], dtype=np.float32)


class Result(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def command(run):
    """Run a command; its messages are on one line."""

    def command(*arguments):
        code, out, err = run(*arguments)
        return Result(code, out, " ".join(err.split()))

    return command


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with an empty row, its vectors in a file and in a column."""
    monkeypatch.chdir(tmp_path)
    texts, labels = [*TEXTS[:5], "", *TEXTS[5:]], [*LABELS[:5], "", *LABELS[5:]]
    np.save("vectors.npy", vectors(texts))
    cells = [json.dumps(row) for row in vectors(texts).tolist()]
    pl.DataFrame({"text": texts, "label": labels, "vector": cells}).write_csv("train.csv")
    pl.DataFrame({"text": ["espresso with tea", "wheels"], "vector": vectors(["tea", "car"]).tolist()}).write_parquet(
        "new.parquet"
    )
    np.save("new.npy", vectors(["tea", "car"]))


def predicted(command, *more):
    out = command("predict", "model", "new.parquet", *more).stdout
    return pl.read_csv(out.encode())["predicted"].to_list()


def test_vectors_in_a_file(command, table):
    done = command("fit", "train.csv", "--text", "text", "--free", "0", "--embeddings", "vectors.npy")
    assert done.exit_code == 0, done.stderr
    model = TopicModel.load("model")
    assert model.guide_.embedding
    assert model.state_.encoder["source"].endswith("vectors.npy")
    asked = command("predict", "model", "new.parquet")
    assert asked.exit_code == 1
    assert "was fitted with embeddings of " in asked.stderr
    assert "vectors.npy (2 columns): pass the embeddings of these texts too, as --embeddings" in asked.stderr
    assert predicted(command, "--embeddings", "new.npy") == ["drinks", "vehicles"]
    evaluation = ("report", "model", "train.csv", "--evaluate", "--out", "r.html")
    assert "pass the embeddings of these texts too, as --embeddings" in command(*evaluation).stderr
    done = command(*evaluation, "--embeddings", "vectors.npy")
    assert done.exit_code == 0, done.stderr
    wrong = command("predict", "model", "new.parquet", "--embeddings", "vectors.npy")
    assert "vectors.npy has 25 rows, and the table has 2" in wrong.stderr
    assert command("update", "model", "new.parquet").exit_code == 1
    assert command("update", "model", "new.parquet", "--embeddings", "new.npy", "--out", "later").exit_code == 0
    assert command("evaluate", "model", "train.csv").exit_code == 1
    assert command("evaluate", "model", "train.csv", "--embeddings", "vectors.npy", "--folds", "2").exit_code == 0


def test_built_in_vectors_and_none(command, table):
    fit = ("fit", "train.csv", "--text", "text", "--free", "0")
    for options, name in (((), "words"), (("--embeddings", "words"), "words"), (("--embeddings", "none"), None)):
        done = command(*fit, *options)
        assert done.exit_code == 0, done.stderr
        model = TopicModel.load("model")
        assert model.embeddings == name
        assert bool(model.guide_.features.vectors.shape[1]) == (name == "words")
        assert not model.guide_.embedding
        assert predicted(command) == predicted(command, "--embeddings", name or "none") == ["drinks", "vehicles"]
        for wrong in ("none" if name else "words", "new.npy"):
            refused = command("predict", "model", "new.parquet", "--embeddings", wrong)
            assert refused.exit_code == 1
            assert f"this model was fitted with --embeddings {name or 'none'}: leave out the option" in refused.stderr
        assert command("explain", "model", "milk with tea").exit_code == 0
        assert command("update", "model", "new.parquet", "--out", "later").exit_code == 0
        assert command("evaluate", "model", "train.csv", "--folds", "2").exit_code == 0
        assert command("report", "model", "train.csv", "--evaluate", "--out", "r.html").exit_code == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.array([{"a": 1}], dtype=object), "not a .npy file of numbers"),
        (np.zeros(3), "expected numbers with one row per document"),
        (np.array([["a"]]), "expected numbers with one row per document"),
        (None, "not a .npy file of numbers"),
    ],
)
def test_files_that_are_no_vectors(command, table, content, message):
    if content is None:
        Path("bad.npy").write_bytes(b"\x93NUMPY\x01\x00")
    else:
        np.save("bad.npy", content, allow_pickle=True)
    unknown = command("fit", "train.csv", "--embeddings", "vector")
    assert "embeddings are 'vector': expected a .npy file, or model2vec:FOLDER" in unknown.stderr
    done = command("fit", "train.csv", "--embeddings", "bad.npy")
    assert done.exit_code == 1
    assert message in done.stderr


def static_model(folder):
    """A small model of model2vec's own class, with a tokenizer of whole words."""
    model2vec = pytest.importorskip("model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    words = sorted({word for text in TEXTS for word in text.split()})
    vocabulary = {"[UNK]": 0, "[PAD]": 1} | {word: i for i, word in enumerate(words, 2)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    weights = np.random.default_rng(0).normal(size=(len(vocabulary), 8)).astype(np.float32) / 9
    for word, i in vocabulary.items():
        weights[i, int(word in ("tea", "espresso", "milk", "leaves"))] += 1
    model2vec.StaticModel(weights, tokenizer).save_pretrained(folder)


def test_a_model2vec_model_in_a_folder(command, table):
    static_model("encoder")
    done = command("fit", "train.csv", "--text", "text", "--free", "0", "--embeddings", "model2vec:encoder")
    assert done.exit_code == 0, done.stderr
    model = TopicModel.load("model")
    assert model.state_.encoder["source"].startswith("model2vec:/")
    assert predicted(command) == ["drinks", "vehicles"]  # the encoder is remembered
    assert command("explain", "model", "milk with tea").exit_code == 0
    static_model("other")
    assert predicted(command, "--embeddings", "model2vec:other") == ["drinks", "vehicles"]
    embeddings_named("model2vec:encoder").folder.rename("moved")
    gone = command("predict", "model", "new.parquet")
    assert "encoder is not the folder of a model2vec model" in gone.stderr
    assert predicted(command, "--embeddings", "model2vec:moved") == ["drinks", "vehicles"]
    with pytest.raises(ValueError, match="is another model2vec model than that of the fit"):
        Model2Vec(embeddings_named("model2vec:moved").folder, "0" * 32).check()
    Path("moved/model.safetensors").write_bytes(b"\xff" * 64)
    assert (
        "cannot be read as a model2vec model"
        in command("predict", "model", "new.parquet", "--embeddings", "model2vec:moved").stderr
    )
