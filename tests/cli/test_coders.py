"""The command ``coders``, and odd files given to it."""

import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.corpora import Documents

TEXTS = ["green tea leaves in a pot", "roast coffee beans ground", "hot tea leaves", "black coffee beans"] * 6
TOPICS = ["tea", "coffee"] * 12


@pytest.fixture(scope="module")
def fitted():
    labels = [[topic] if i < 16 else [] for i, topic in enumerate(TOPICS)]
    return TopicModel(free_topics=0).fit(Documents([f"d{i}" for i in range(24)], TEXTS, labels))


@pytest.fixture(scope="module")
def model(fitted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted") / "model"
    fitted.save(folder)
    return folder


@pytest.fixture
def articles(tmp_path):
    path = tmp_path / "articles.csv"
    pl.DataFrame({"id": [f"d{i}" for i in range(24)], "text": TEXTS}).write_csv(path)
    return path


@pytest.fixture
def gpt(tmp_path):
    """A coder that is wrong about two labelled documents."""
    path = tmp_path / "gpt.csv"
    answers = ["tea" if i in (1, 3) else topic for i, topic in enumerate(TOPICS)]
    pl.DataFrame({"id": [f"d{i}" for i in range(24)], "topics": answers, "score": [0.9] * 24}).write_csv(path)
    return path


def test_tables_and_files(run, fitted, model, articles, gpt, tmp_path):
    code, out, err = run(
        "coders", model, articles, "--coder", f"gpt={gpt}", "--coder", f"old={gpt}", "--disagreements",
        tmp_path / "differ.csv", "--out", tmp_path / "table.csv",
    )  # fmt: skip
    assert (code, out) == (0, "")
    assert "gpt: 16 labelled documents have an answer; people and coder disagree on 2." in err
    table = pl.read_csv(tmp_path / "table.csv")
    tea = table.row(
        by_predicate=(pl.col("topic") == "tea") & (pl.col("against") == "people") & (pl.col("coder") == "gpt"),
        named=True,
    )
    assert (tea["documents"], tea["labels"], tea["predicted"], tea["recall"]) == (16, 8, 10, 1)
    assert tea["precision"] == 0.8
    assert tea["precision_low"] == pytest.approx(0.4439, abs=1e-4)  # Clopper and Pearson, 8 of 10
    assert set(zip(table["coder"], table["against"], strict=True)) == {
        ("gpt", "people"), ("old", "people"), ("gpt", "old"),
    }  # fmt: skip
    differ = pl.read_csv(tmp_path / "differ.csv")
    assert differ.filter(pl.col("coder") == "gpt")["id"].to_list() == ["d1", "d3"]
    assert differ["answer"].unique().to_list() == ["tea"]
    assert differ["text"][0] == TEXTS[1]
    same = fitted.findings.coders({"gpt": gpt, "old": pl.read_csv(gpt)})
    assert same["kappa"].to_list() == pytest.approx(table["kappa"].to_list(), abs=1e-4)


def test_answers_are_never_labels(fitted, gpt):
    before = fitted.state_.supervision.pattern.copy()
    fitted.findings.coders({"gpt": gpt})
    assert (fitted.state_.supervision.pattern == before).all()
    assert int(fitted.state_.supervision.labelled.sum()) == 16


def test_python_takes_any_form_of_labels(fitted, gpt):
    answers = ["tea" if i in (1, 3) else topic for i, topic in enumerate(TOPICS)]
    by_file, by_list = (fitted.findings.coders({"gpt": given}).drop("coder") for given in (gpt, answers))
    assert by_file.equals(by_list)
    assert fitted.findings.disagreements({"gpt": answers})["id"].to_list() == ["d1", "d3"]


def test_without_answers_to_labelled_documents(run, model, tmp_path):
    (tmp_path / "gpt.csv").write_text("id,topics\nd20,tea\n")
    code, out, err = run("coders", model, "--coder", f"gpt={tmp_path / 'gpt.csv'}")
    assert code == 0
    assert "its errors are not known" in err
    assert out.startswith("coder,against,topic,documents")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (None, "name a coder"),
        ("gpt", '"name=value"'),
        ("gpt=", '"name=value"'),
        ("=a.csv", '"name=value"'),
        ("people={gpt}", "stands for the labels"),
        ("gpt=nowhere.csv", "there is no such file"),
        ("gpt=.", "is a folder"),
    ],
)
def test_wrong_options(run, model, gpt, option, message):
    given = () if option is None else ("--coder", option.format(gpt=gpt))
    code, _, err = run("coders", model, *given)
    assert code == 1
    assert message in err


def test_the_same_name_twice(run, model, gpt):
    code, _, err = run("coders", model, "--coder", f"gpt={gpt}", "--coder", f"gpt={gpt}")
    assert code == 1
    assert "two coders have the name 'gpt'" in err


@pytest.mark.parametrize(
    "content",
    [
        b"", b"id,topics", b"\x00\xff" * 50, b"id,topics\nd1,\xff\xfe\n", b"{}", b"id;topics\nd1;tea\n\n;;;\n",
        b"id,topics,score\nd1,tea,nan\nd2,tea,1e999\n", b"id,id\nd1,tea\n", b"topics\ntea\n",
        b'id,topics\nd1,tea\nd2,tea,1,2,3\nd3\n"d4', "id,topics\nd1,=cmd|' /C calc'!A0\nd2,\u202eaet\n".encode(),
    ],
)  # fmt: skip
def test_odd_files_never_give_a_traceback(run, model, tmp_path, content):
    (tmp_path / "odd.csv").write_bytes(content)
    code, _, err = run("coders", model, "--coder", f"odd={tmp_path / 'odd.csv'}")
    assert code in (0, 1)
    assert "Traceback" not in err
    assert "--debug" not in err


def test_wrong_values_in_python(fitted):
    with pytest.raises(TypeError, match="expected a dict of names"):
        fitted.findings.coders([["tea"]])
    with pytest.raises(ValueError, match="coder gpt: y has labels for 1 documents"):
        fitted.findings.coders({"gpt": ["tea"]})


def test_coders_in_shares(run, model, articles, gpt):
    code, out, err = run("prevalence", model, articles, "--coder", f"gpt={gpt}")
    assert code == 0
    assert "The answers of the coder gpt take part in the shares." in err
    code, alone, _ = run("prevalence", model, articles)
    labels = pl.read_csv(out.encode())["labels"].to_list()
    assert labels == pl.read_csv(alone.encode())["labels"].to_list()  # answers are never labels
