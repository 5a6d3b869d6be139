"""From keywords to a first look in one command."""

import re

import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.model.settings import read_topics

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
    fitted = TopicModel.load(model)
    assert fitted.codebook.topics[1].keywords == ("coffee", "beans", "cup", "qqq")
    assert fitted.predict(["tea leaves", "coffee beans"]) == [["tea"], ["Café"]]
    assert fitted.belief.startswith("Labels are too few to decide whether some documents have none of your 2 topics.")
    assert run("topics", model, "--codebook", back)[0] == 0
    code, _, err = run("topics", model, "--codebook", back)
    assert code == 2
    assert "exists: choose another name" in err
    table = pl.read_csv(back)
    assert table["keywords"].to_list() == ["leaves; pot", "coffee; beans; cup; qqq"]
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


ODD = {
    "short rows": ("topic,description,keywords\ntea\nCafé,hot,bean; roast\n", "Line 2 has 1 of 3 fields"),
    "long rows": ("topic,keywords\ntea,leaf,pot\nCafé,bean,roast\n", "Line 2 has 3 fields, and the header 2"),
    "unknown words": ("topic,keywords\ntea,leaves; qqq\nCafé,roast\n", "'qqq'"),
    "one word for two": ("topic,keywords\ntea,cup\nCafé,cup; bean\n", "The keyword 'cup' belongs to two topics"),
    "empty rows": ("topic,keywords\ntea,leaves\n,\nCafé,bean\n", "line 3 has no topic and is empty"),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
@pytest.mark.parametrize("kind", ODD)
def test_an_odd_file_gets_a_message_and_loses_no_topic(corpus, tmp_path, kind, encoding):
    content, message = ODD[kind]
    path = tmp_path / "themes.csv"
    path.write_bytes(content.encode(encoding))
    found = read_topics(path)
    assert found.codebook.names == ("tea", "Café")
    words = {word for topic in found.codebook for word in topic.keywords}
    known = {"leaf", "pot", "bean", "roast", "leaves", "qqq", "cup"}
    assert words == known & set(re.findall(r"\w+", content))
    notes = list(found.notes)
    if encoding != "utf-8":
        assert any("encoding is" in note for note in notes)
    if kind == "unknown words":  # only a fit knows the words of the corpus
        with pytest.warns(UserWarning, match="occur in no document") as caught:
            TopicModel(0, topics=found.codebook).fit(TEXTS)
        notes += [str(warning.message) for warning in caught]
    assert any(message in note for note in notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "themes.csv: is empty; expected a header"),
        ("topic,keywords\n", "no row has a topic: write one row per topic. There are no rows below the header"),
        ("topic,keywords\n,cheap\n", "no row has a topic: .* line 2 has no topic, so this is not used: cheap."),
    ],
)
def test_a_file_without_topics_explains_itself(run, corpus, tmp_path, text, message):
    themes = tmp_path / "themes.csv"
    themes.write_text(text)
    code, _, err = run("fit", corpus, "--topics", themes, "--out", tmp_path / "model")
    assert code == 1
    assert re.search(message, err.replace("\n", " ")), err
