"""From keywords to a first look in one command."""

import re

import polars as pl
import pytest

from topicsteer import TopicModel

TEXTS = [
    "green tea leaves in a pot",
    "roast coffee beans ground",
    "the knight takes a bishop",
    "tea with milk in a cup",
    "an espresso of roast beans",
] * 6


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "answers.csv"
    pl.DataFrame({"text": TEXTS}).write_csv(path)
    return path


def test_a_model_from_keywords_and_back_to_a_file(run, corpus, tmp_path):
    themes, model, back = tmp_path / "themes.csv", tmp_path / "model", tmp_path / "topics.csv"
    themes.write_bytes("topic;keywords\ntea;leaves, pot\nCafé;coffee, beans, cup, qqq\n;\n".encode("cp1252"))
    code, _, err = run("fit", corpus, "--topics", themes, "--out", model, "--free", "1")
    assert code == 0, err
    assert "The encoding is cp1252." in err
    assert "line 4 has no topic and is empty." in err
    assert "'qqq'" in err  # occurs in no document
    assert "The keyword 'cup' of 'Café' fits 'tea' as well" in err.replace("\n", " ")
    fitted = TopicModel.load(model)
    assert fitted.codebook.topics[1].keywords == ("coffee", "beans", "cup", "qqq")
    assert fitted.predict(["tea leaves", "coffee beans"]) == [["tea"], ["Café"]]
    assert fitted.belief.startswith("Without labels it is unknown how many documents have none of your 2 topics.")
    assert run("topics-file", model, "--out", back)[0] == 0
    code, _, err = run("topics-file", model, "--out", back)
    assert code == 2
    assert "--force" in err
    assert run("topics-file", model, "--out", back, "--force")[0] == 0
    table = pl.read_csv(back)
    assert table["keywords"].to_list() == ["leaves; pot", "coffee; beans; cup; qqq"]
    assert "roast" in table["proposed"][1]
    assert run("fit", corpus, "--topics", back, "--out", tmp_path / "again", "--free", "1")[0] == 0
    assert TopicModel.load(tmp_path / "again").codebook == fitted.codebook


def test_labels_add_topics_to_those_of_the_file(run, tmp_path):
    path, themes = tmp_path / "answers.csv", tmp_path / "themes.csv"
    labels = ["", "", "chess", "", ""] + [""] * 25
    pl.DataFrame({"text": TEXTS, "label": labels}).write_csv(path)
    themes.write_text("topic,description\ntea,hot water with leaves\n", encoding="utf-16")
    code, _, err = run("fit", path, "--topics", themes, "--out", tmp_path / "model", "--free", "1")
    assert code == 0, err
    book = TopicModel.load(tmp_path / "model").codebook
    assert book.names == ("tea", "chess")
    assert book.topics[0].description == "hot water with leaves"
    themes.write_text("a,b\n1,2\n")
    code, _, err = run("fit", path, "--topics", themes, "--out", tmp_path / "model")
    assert code == 1
    assert "there is no column 'topic', only 'a', 'b'" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty: expected a table with a column 'topic'"),
        ("topic,keywords\n", "no row has a topic: write one row per topic"),
        ("topic,keywords\nprice\n", "no row has a topic: .* line 2: 1 field, the header has 2. It is not used."),
        ("topic,keywords\n,cheap\n", "no row has a topic: .* line 2 has no topic, so this is not used: cheap."),
    ],
)
def test_a_topics_file_without_topics(run, corpus, tmp_path, text, message):
    themes = tmp_path / "themes.csv"
    themes.write_text(text)
    code, _, err = run("fit", corpus, "--topics", themes, "--out", tmp_path / "model")
    assert code == 1
    assert re.search(message, err.replace("\n", " ")), err
