"""Columns of tables as people have them: several texts, labels of 0 and 1, ids by other names, and no wild guesses."""

import pandas as pd
import polars as pl
import pytest

from topicsteer.corpora import ReadError, ReadOptions, TableStream, read_documents, read_labels, read_table
from topicsteer.corpora.columns import indicator
from topicsteer.corpora.label_files import read_predictions

BODY = "a long enough text about the weather in town, row {}"


def frame(n=6, **columns):
    return pl.DataFrame({"body": [BODY.format(i) for i in range(n)], **columns})


def test_several_text_columns_are_joined_and_a_row_needs_one_of_them():
    table = pl.DataFrame({"title": ["Rain", None, " "], "body": ["at noon", "shares fell", None], "n": [1, 2, 3]})
    documents = read_table(table, text=["title", "body"], labels=False)
    assert documents.texts == ["Rain\nat noon", "shares fell"]
    assert list(documents.columns) == ["n"]
    assert [str(row) for row in documents.report.bad_rows] == ["row 3: empty text"]
    with pytest.raises(ReadError, match=r"there is no column 'tilte'.*did you mean 'title'"):
        read_table(table, text=["tilte", "body"])


@pytest.mark.parametrize("labels", ["cs.LG,cs.CL", "cs.*", ["cs.LG", "cs.CL"]])
@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame])
def test_labels_in_columns_of_0_and_1(labels, make):
    cells = {"cs.LG": [1.0, 0.0, None, 1.0], "cs.CL": [0.0, 0.0, None, 1.0]}
    table = make({"text": ["a b", "c d", "e f", "g h"], **cells, "agent": ["x", "y", "x", "y"]})
    documents = read_table(table, labels=labels)
    assert documents.labels == [["cs.LG"], ["(none)"], [], ["cs.LG", "cs.CL"]]
    assert documents.forbidden == [["cs.CL"], ["cs.LG", "cs.CL"], [], []]
    assert list(documents.columns) == ["agent"]


def test_indicators_of_a_csv_file_and_of_a_label_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,text,tea,milk\na,green leaves,yes,no\nb,white,,X\nc,black,maybe,0\n")
    documents = read_table(path, labels="tea,milk")
    assert documents.labels == [["tea"], ["milk"]]
    assert str(documents.report.bad_rows[0]).startswith("line 4: the label column 'tea' has 'maybe'; expected 1, 0")
    assert read_labels(path, labels="tea,milk").records[1].labels == ["milk"]


def test_columns_of_0_and_1_are_not_guessed():
    ones = {name: [int(i % 3 == k) for i in range(12)] for k, name in enumerate(("tea", "milk", "beer"))}
    documents = read_table(frame(12, **ones))
    assert documents.topic_names == []
    assert "no labels found in 'tea', 'milk', 'beer'" in documents.report.guesses[-1]


def test_most_rows_of_zeros_are_pointed_out():
    table = frame(6, tea=[1, 0, 0, 0, 0, 0], milk=[0] * 6)
    notes = read_table(table, labels="tea,milk").report.guesses
    assert notes[-1].startswith("5 of 6 rows have 0 in every label column")


def test_labels_none_and_a_column_of_that_name():
    agents = ["Ann", "Bob", "", "", "Ann", "Bob", "", ""]
    table = frame(8, agent=agents)
    assert read_table(table).topic_names == ["Ann", "Bob"]
    for none in ("none", False):
        documents = read_table(table, labels=none)
        assert documents.topic_names == []
        assert documents.columns["agent"] == agents
    assert read_table(frame(6, none=["tea"] * 6), labels="none").topic_names == ["tea"]


@pytest.mark.parametrize("name", ["question_id", "ticket", "respondent", "TicketID", "Response ID", "case no"])
def test_ids_by_name_and_uniqueness(name):
    values = [f"Q{i}" for i in range(6)]
    documents = read_table(frame(6, **{name: values, "grid": list(range(6))}))
    assert documents.ids == values
    assert f"id is column {name!r}" in documents.report.guesses
    assert read_table(frame(6, **{name: ["Q1", *values[1:5], "Q1"]}), labels="none").ids == list(range(6))


def test_a_subject_per_row_is_not_read_as_labels():
    subjects = [f"subject of mail {i}" for i in range(40)]
    documents = read_table(frame(40, topic=subjects, from_=["a", "b"] * 20))
    assert documents.topic_names == []
    assert any("column 'topic' has another value in most rows" in guess for guess in documents.report.guesses)
    assert len(read_table(frame(40, topic=subjects), labels="topic").topic_names) == 40
    assert read_table(frame(40, target=[i / 7 for i in range(40)])).topic_names == []
    few = [f"topic {i}" if i < 15 else None for i in range(40)]  # one example of each topic
    assert len(read_table(frame(40, topic=few)).topic_names) == 15


@pytest.mark.parametrize("none", ["none", False])
def test_a_column_of_ids_can_be_ruled_out(none):
    """The choice is remembered with the columns, and a column of that name comes first."""
    table = pl.DataFrame({"id": ["a", "a", "b"], "text": [BODY.format(i) for i in range(3)]})
    found = read_documents(table, ReadOptions(id=none))
    assert (found.ids, found.numbered, list(found.columns)) == ([0, 1, 2], True, ["id"])
    like = ReadOptions.from_json(found.reading.to_json())
    assert read_documents(table, ReadOptions(like=like)).ids == [0, 1, 2]
    assert read_documents(table, ReadOptions(id="id", like=like)).ids == ["a", "b"]
    answers = {"id": [2], "topics": ["x"]}
    assert read_predictions(pl.DataFrame(answers), found)[0] == [[], [], ["x"]]
    if none:
        assert read_documents(table.rename({"id": "none"}), ReadOptions(id=none)).ids == ["a", "b"]


def test_columns_of_an_earlier_source_come_first():
    first = read_table(
        frame(6, nr=list(range(10, 16)), text=["x y"] * 6, agent=["a", "b"] * 3), text="body", labels="none"
    )
    assert first.reading.to_json() == {"text": "body", "labels": False, "id": "nr"}
    like = ReadOptions.from_json(first.reading.to_json())
    again = read_documents(frame(6, nr=[1] * 6, text=["x y"] * 6, agent=["a", "b"] * 3), ReadOptions(like=like))
    assert again.texts == [BODY.format(0)]
    (note,) = again.report.guesses
    assert note.startswith("column 'nr' repeats ids, and later rows are left out; if it holds no ids of rows, name")
    other = read_documents(pl.DataFrame({"text": ["x y"]}), ReadOptions(like=like))
    assert other.texts == ["x y"]


def test_every_row_is_kept_in_order(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,text,n\na,rain,1\nb,,2\na,twice,3\nd,one,field,too,many\n,no id,5\nf,end,6\n")
    documents = read_documents(path, ReadOptions(labels=False), keep_all=True)
    assert documents.texts == ["rain", "", "twice", "", "no id", "end"]
    assert documents.columns["n"] == ["1", "2", "3", None, "5", "6"]
    assert documents.columns["id"] == ["a", "b", "a", None, "", "f"]
    assert len(documents.report.bad_rows) == 4
    assert TableStream(path, ReadOptions(labels=False), keep_all=True).rows == 6
    (block,) = TableStream(path, ReadOptions(labels=False))
    assert block.report.left_out == (1, 2, 3, 4)  # numbers of rows in a file of embeddings
    whole = TableStream(path, ReadOptions(labels=False), size=1)
    assert [text for part in whole for text in part.texts] == block.texts
    assert whole.report.left_out == block.report.left_out
    assert block.texts == ["rain", "end"]


@pytest.mark.parametrize("has", ["1", "true", "yes", "y", "x", "Y", " Yes ", "1.0", 1, 1.0, True])
def test_cells_of_a_topic_that_a_document_has(has):
    assert indicator("tea", has) is True


@pytest.mark.parametrize("lacks", ["0", "false", "no", "n", "N", " No ", "0.0", 0, 0.0, False])
def test_cells_of_a_topic_that_a_document_does_not_have(lacks):
    assert indicator("tea", lacks) is False


@pytest.mark.parametrize("wrong", ["2", "maybe", "ny", "nn", 2, 0.5, [1]])
def test_other_cells_of_a_topic_are_refused(wrong):
    with pytest.raises(ValueError, match="expected 1, 0 or an empty cell"):
        indicator("tea", wrong)
