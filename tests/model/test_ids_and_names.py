"""One rule for ids and names: strings or integers, compared as text; a clash is an error."""

import json

import numpy as np
import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.corpora import Documents, attach_labels, read_labels, read_table
from topicsteer.labels.forms import extend, forbid, supervise
from topicsteer.model.spool import spool

TEXTS = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3


def fitted(ids, labels=("tea", "coffee")):
    return TopicModel(0).fit(Documents(ids, TEXTS, [[labels[0]], [labels[1]], *[[]] * 10]))


# --- ids ---


def test_ids_are_strings_or_integers_from_the_start():
    ids = [0, 1.0, "2", np.int32(3), np.str_("4"), 5.5, True, None, (8,), *range(9, 12)]
    documents = Documents(ids, TEXTS)
    assert documents.ids == [0, 1, "2", 3, "4", "5.5", "True", "None", "(8,)", 9, 10, 11]
    assert [type(key) for key in documents.ids[:5]] == [int, int, str, int, str]


def test_ids_survive_a_save(tmp_path):
    model = fitted([1.0, 2.5, "3", *range(4, 13)])
    model.save(tmp_path / "m")
    assert (
        TopicModel.load(tmp_path / "m").state_.topics.ids
        == list(model.state_.topics.ids)
        == [1, "2.5", "3", *range(4, 13)]
    )


def test_a_number_and_its_text_are_one_document_in_an_update():
    model = fitted(list(range(12)))
    model.update(Documents([str(i) for i in range(12)], TEXTS))
    assert len(model.state_.topics.ids) == 12
    assert model.update_.unchanged == 12
    model.update(labels={"2": "tea"})
    assert model.state_.supervision.labelled[2]
    model.update(Documents([3.0], ["another text of tea"]))
    assert (model.update_.replaced, len(model.state_.topics.ids)) == (1, 12)
    assert "another" in model.explain(id="3").text


def test_documents_without_ids_get_unused_numbers():
    model = fitted([str(i) for i in range(1, 13)])
    model.update(["one more tea"])
    assert model.state_.topics.ids[-1] == 13
    assert model.update_.new == 1


@pytest.mark.parametrize("ids", [["a", "a"], [1, "1"], [1, 1.0], ["2", np.int64(2)]])
def test_the_same_id_twice_is_an_error(ids, tmp_path):
    message = "documents 0 and 1 have the same id"
    with pytest.raises(ValueError, match=message):
        TopicModel(2).fit(Documents([*ids, *"cdefghijkl"], TEXTS))
    model = fitted([f"d{i}" for i in range(12)])
    before = model.state_
    with pytest.raises(ValueError, match=message):
        model.update(Documents(ids, ["milk tea", "milk coffee"]))
    assert model.state_ is before


def test_the_same_id_twice_is_a_bad_row_of_a_table(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"id": i, "text": f"green tea {i}"}) + "\n" for i in (1, "1", 1.0, 2, "x")))
    for documents in (read_table(path), spool(path, tmp_path / "spool").documents):
        assert list(documents.ids) == [1, 2, "x"]
        assert [row.problem for row in documents.report.bad_rows] == [
            "the id '1' occurs a second time",
            "the id 1 occurs a second time",
        ]


def test_float_ids_of_a_table_are_integers():
    assert read_table(pl.DataFrame({"id": [1.0, 2.0], "text": ["green tea", "black tea"]})).ids == [1, 2]


def test_ids_that_look_like_formulas_match_with_and_without_their_quote(tmp_path):
    documents = Documents(["=a", "'=a", "+1", "'x"], ["one", "two", "three", "four"])
    (tmp_path / "l.csv").write_text("id,labels\n'=a,A\n''=a,B\n+1,C\n'x,D\n")
    assert attach_labels(documents, read_labels(tmp_path / "l.csv")).labels == [["A"], ["B"], ["C"], ["D"]]
    (tmp_path / "l.jsonl").write_text('{"id": "\'=a", "labels": ["B"]}\n')
    assert attach_labels(documents, read_labels(tmp_path / "l.jsonl")).labels == [[], ["B"], [], []]


def test_a_label_file_and_an_update_agree_on_ids(tmp_path, monkeypatch):
    from topicsteer.cli.reading import late_labels
    from topicsteer.corpora import ReadOptions

    (tmp_path / "l.csv").write_text("id,labels\n3,tea\n'=x,coffee\n")
    model = fitted([*range(11), "=x"])
    found = late_labels(model, ReadOptions(label_file=tmp_path / "l.csv"))
    assert found.ids == [3, "=x"]
    assert found.labels == [["tea"], ["coffee"]]


# --- names ---


def test_names_that_read_the_same_are_an_error():
    for wrong in (lambda: supervise([1, "1"], 2), lambda: supervise([[1], ["1"]], 2)):
        with pytest.raises(ValueError, match="names 1 and '1', which read the same"):
            wrong()
    with pytest.raises(ValueError, match="names 1 and '1', which read the same"):
        supervise([1], 1, topics=[1, "1"])
    with pytest.raises(ValueError, match="names 'a' twice"):
        supervise(["a"], 1, topics=["a", "a"])


def test_a_name_is_found_by_its_text():
    found = supervise(["1", None], 2, topics=[1, 2])
    assert found.topics == (1, 2)
    assert found.patterns[found.pattern[0]].tolist() == [1, 0]
    assert forbid(found, [[], ["2"]]).patterns[-1].tolist() == [-1, 0]
    assert extend([1, "tea"], ["1", "milk"], 2).topics == (1, "tea", "milk")


def test_an_update_from_a_file_knows_topics_with_numbers(tmp_path):
    model = TopicModel(0).fit(TEXTS, [1, 2] + [None] * 10)
    (tmp_path / "more.csv").write_text("id,text,label\nx,black tea leaves,1\n")
    model.update(tmp_path / "more.csv")
    assert model.codebook.names == (1, 2)
    assert model.state_.supervision.counts.tolist() == [2, 1]
    assert model.memberships().columns == ["id", "1", "2", "(none)"]
    assert model.memberships()["id"].to_list() == [*map(str, range(12)), "x"]


def test_no_topic_hides_another_column():
    model = fitted(list(range(12)), ("id", "document id"))
    assert model.memberships().columns == ["document document id", "document id", "id", "(none)"]
    assert model.document_topics.width == 3


# --- empty texts and empty lists ---


def test_no_texts_give_no_rows():
    model = TopicModel(0).fit(TEXTS, ["tea", "coffee"] + [None] * 10)
    assert model.transform([]).shape == (0, 2)
    assert model.predict([]) == []
    assert model.memberships([]).shape == (0, 4)
    assert model.memberships(Documents([], [])).shape == (0, 4)
    before = model.state_
    assert str(model.update([]).update_) == "no new documents"
    assert model.state_ is before
    with pytest.raises(ValueError, match="there are no documents"):
        TopicModel(1).fit([])


def test_an_empty_text_is_a_document_without_words(tmp_path):
    texts = [*TEXTS, ""]
    model = TopicModel(0).fit(texts, ["tea", "coffee"] + [None] * 11)
    model.update(["", "more tea"], [None, "tea"])
    assert (model.update_.new, len(model.state_.topics.ids)) == (2, 15)
    np.testing.assert_array_equal(model.state_.topics.W[[12, 13]], 0)
    assert model.state_.accepts(Documents(model.state_.topics.ids, [*texts, "", "more tea"]))
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="no document with the id 'new': give its text too"):
        TopicModel.load(tmp_path / "m").update(Documents(["new"], [""]))
