import json
from contextlib import suppress

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicsteer.corpora import Documents, LabelRecord, Labels, ReadError, attach_labels, read_labels, read_table

DOCUMENTS = Documents(["a", "b", "c"], ["rain at noon", "shares fell", "snow and profits"])


def write(path, rows):
    path.write_text(json.dumps(rows) if path.suffix == ".json" else "".join(json.dumps(row) + "\n" for row in rows))
    return path


def said(labels):
    return [(record.labels, record.forbidden) for record in labels.records]


def test_doccano(tmp_path):
    rows = [
        {"id": 1, "text": "rain at noon", "label": ["weather"], "Comments": []},
        {"id": 2, "text": "shares fell", "label": []},
        {"id": 3, "data": "snow and profits", "label": ["weather", "money"]},
        {"id": 4, "text": "spans", "label": [[0, 3, "LOC"]]},
    ]
    labels = read_labels(write(tmp_path / "doccano.jsonl", rows))
    assert said(labels) == [(["weather"], []), (["weather", "money"], [])]
    assert [str(row) for row in labels.report.bad_rows] == ["line 4: label of type list, expected a name"]


def test_doccano_numbers_are_not_our_ids():
    documents = Documents([1, 2, 3], ["zero", "one", "two  and\nmore"])
    labels = read_labels([{"id": 1, "text": "one", "label": ["x"]}, {"id": 2, "text": "two and more", "label": ["y"]}])
    assert attach_labels(documents, labels).labels == [[], ["x"], ["y"]]


def test_our_ids_are_believed_when_the_texts_beside_them_agree():
    rows = [
        {"id": "a", "text": "rain at noon", "label": "x"},
        {"id": "b", "text": "shares fell", "label": "y"},
    ]
    rows += [{"id": "c", "text": "cut by a spreadsh", "label": "z"}]
    assert attach_labels(DOCUMENTS, read_labels(rows)).labels == [["x"], ["y"], ["z"]]


def test_the_last_word_counts():
    records = [
        LabelRecord("line 1", "a", None, ["x", "y"], []),
        LabelRecord("line 2", "a", None, [], ["x"]),
        LabelRecord("line 3", "b", None, [], ["z"]),
        LabelRecord("line 4", "b", None, ["z"], []),
    ]
    documents = attach_labels(DOCUMENTS, Labels(records))
    assert documents.labels == [["y"], ["z"], []]
    assert documents.forbidden == [["x"], [], []]


def test_labels_the_documents_have_already_are_kept():
    documents = Documents(["a"], ["rain"], [["weather"]])
    assert attach_labels(documents, read_labels([{"id": "a", "label": "news"}])).labels == [["weather", "news"]]


def test_a_table_joined_by_id(tmp_path):
    (tmp_path / "texts.csv").write_text("case,body,topics\n7,rain at noon,no\n8,shares fell,no\n9,snow,no\n")
    (tmp_path / "labels.csv").write_text("case;theme\n8;money\n8;trade\n7;weather\n10;sport\n")
    own = {"labels": "theme"}
    documents = read_table(tmp_path / "texts.csv", id="case", label_file=tmp_path / "labels.csv", label_options=own)
    assert documents.labels == [["weather"], ["money", "trade"], []]
    assert documents.columns == {"topics": ["no"] * 3}
    assert [str(row) for row in documents.report.bad_rows] == ["labels.csv line 5: no document has this id '10'"]


def test_one_row_for_each_label():
    rows = [{"document": key, "topic": topic} for key in "ab" for topic in ("x", "y", "z")]
    assert attach_labels(DOCUMENTS, read_labels(rows)).labels == [["x", "y", "z"], ["x", "y", "z"], []]


def test_ids_are_compared_as_text():
    documents = read_table(pd.DataFrame({"id": [1, 2], "text": ["one", "two"]}))
    assert attach_labels(documents, read_labels([{"id": "2", "label": "x"}])).labels == [[], ["x"]]


def test_guesses_of_both_files_are_reported(tmp_path):
    (tmp_path / "texts.csv").write_text("id,body\na,rain at noon\n")
    (tmp_path / "labels.tsv").write_text("id\ttopic\na\tweather|news\n")
    documents = read_table(tmp_path / "texts.csv", label_file=tmp_path / "labels.tsv")
    assert documents.report.guesses == (
        "text is column 'body'",
        "id is column 'id'",
        "in labels.tsv, id is column 'id'",
        "in labels.tsv, labels are column 'topic', separated by '|'",
    )


def test_forbidden_labels_in_a_table():
    labels = read_labels([{"id": "a", "label": "x", "forbidden": "y|z"}])
    assert said(labels) == [(["x"], ["y", "z"])]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "a", "theme": "x"}], r"which column holds the labels\? Pass --labels"),
        ([{"id": "a", "label": ""}], "list: has no labels"),
        ([{"label": "x"}], r"has no labels(.|\n)*row 1: neither an id nor a text"),
    ],
)
def test_what_is_no_label_file_is_explained(rows, message):
    with pytest.raises(ReadError, match=message):
        read_labels(rows)


def test_labels_of_other_documents_are_refused():
    with pytest.raises(ReadError, match="no record of the label file matches any of these documents"):
        attach_labels(DOCUMENTS, read_labels([{"id": "z", "label": "x"}]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just("rain at noon"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "text", "x"]), inner),
    max_leaves=6,
)
RESULT = st.fixed_dictionaries({}, optional={"type": st.just("choices") | JSON, "value": JSON})
ANNOTATION = st.fixed_dictionaries({}, optional={"result": st.lists(RESULT | JSON) | JSON, "was_cancelled": JSON})
ROW = st.one_of(
    st.dictionaries(st.sampled_from(["id", "text", "label", "labels", "forbidden", "data"]), JSON),
    st.fixed_dictionaries(
        {"answer": st.just("accept") | JSON},
        optional=dict.fromkeys(["text", "label", "accept", "meta"], JSON),
    ),
    st.fixed_dictionaries({"data": JSON, "annotations": st.lists(ANNOTATION | JSON) | JSON}),
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=4))
def test_no_label_file_gives_another_exception(rows):
    documents = None
    with suppress(ReadError):
        documents = attach_labels(DOCUMENTS, read_labels(rows))
    assert documents is None or documents.ids == DOCUMENTS.ids
    assert documents is None or not any(
        set(a) & set(b) for a, b in zip(documents.labels, documents.forbidden, strict=True)
    )


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": "a", "labels": "tea"}, {"id": "b", "labels": "(none)"}],
        [{"id": "a", "labels": "tea; milk"}, {"id": "b", "labels": " (none) "}],
        [{"id": "a", "labels": '["tea"]'}, {"id": "b", "labels": '["(none)"]'}],
        [{"id": "a", "labels": '["tea"]'}, {"id": "b", "labels": "(none)"}],
        [{"id": "a", "label": ["tea"]}, {"id": "b", "label": ["(none)"]}],
    ],
)
def test_none_of_the_topics_in_every_format(rows):
    documents = attach_labels(Documents(["a", "b", "c"], ["x", "y", "z"]), read_labels(rows))
    assert documents.labels[1:] == [["(none)"], []]
    assert documents.labels[0][0] == "tea"
    assert "(none)" not in documents.topic_names
    assert "3 documents, 2 labelled" in repr(documents)


def test_none_of_the_topics_stands_alone():
    for cell in ("tea;(none)", ["(none)", "tea"]):
        with pytest.raises(ReadError, match=r"row 1: the label '\(none\)' together with 'tea'"):
            read_labels([{"id": "a", "labels": cell}])
    with pytest.raises(ReadError, match=r"row 1: forbids '\(none\)', which is not a topic"):
        read_labels([{"text": "x", "label": "", "forbidden": "(none)"}])


@pytest.mark.parametrize(("first", "second"), [("tea", "(none)"), ("(none)", "tea")])
def test_a_record_that_contradicts_an_earlier_one_is_reported(first, second):
    found = read_labels([{"id": "a", "label": name} for name in (first, second)])
    documents = attach_labels(Documents(["a"], ["x"]), found)
    assert documents.labels == [[first]]
    (row,) = documents.report.bad_rows
    assert row.place.endswith("row 2")
    assert row.problem.startswith("with its earlier labels, the document has the label '(none)' together with 'tea'")
