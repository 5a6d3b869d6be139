"""Answers of coders: every row is used, or has a line that names its place and a remedy."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicsteer.corpora import Documents, ReadError, ReadOptions
from topicsteer.corpora.label_files import read_predictions

DOCUMENTS = Documents(["a", "b", "=c", 4], ["green tea", "hot milk", "black coffee", "cold tea"])


def read(text, tmp_path, **options):
    path = tmp_path / "gpt.csv"
    path.write_text(text)
    return read_predictions(path, DOCUMENTS, **options)


def test_topics_and_none(tmp_path):
    labels, report = read("id,topics,score\na,tea;milk,0.9\nb,(none),\n=c,coffee,1\n4,tea,0\n", tmp_path)
    assert labels == [["tea", "milk"], ["(none)"], ["coffee"], ["tea"]]
    assert not report.bad_rows


def test_every_odd_row_has_a_line_and_a_remedy(tmp_path):
    text = "id,topics\na,tae\na,milk\nnobody,tea\nb,\n,tea\n4,tea;milk\n=c,(none);tea\n"
    labels, report = read(text, tmp_path)
    assert labels == [["tae"], [], [], ["tea", "milk"]]
    assert [(row.place, row.problem) for row in report.bad_rows] == [
        (
            "line 3",
            "a further answer to a document, whose first one counts: write several topics in one cell, and pass "
            "further runs as coders of their own",
        ),
        ("line 4", "no document has the id 'nobody': use the ids of the documents"),
        ("line 5", "no answer: write (none) for a document that has none of the topics"),
        ("line 6", "neither an id nor a text: write the id of the document"),
        ("line 8", "the label '(none)' together with 'tea': it marks a document that has none of the topics"),
    ]
    assert "gpt.csv: 5 bad rows, not used" in str(report)


@pytest.mark.parametrize("column", ["predicted", "prediction", "label", "topic", "code"])
def test_usual_names_of_the_answers(column):
    assert read_predictions(pl.DataFrame({"id": ["a"], column: ["tea"]}), DOCUMENTS)[0][0] == ["tea"]


def test_rows_are_matched_by_text_where_there_is_no_id():
    labels, _ = read_predictions([{"text": "hot  milk", "topics": "milk"}], DOCUMENTS)
    assert labels == [[], ["milk"], [], []]


def test_ids_in_a_column_of_another_name():
    """A column that numbers the rows, or the id column of the documents' own table."""
    assert read_predictions([{"ticket": "b", "topics": "milk"}], DOCUMENTS)[0][1] == ["milk"]
    own = replace(DOCUMENTS, reading=ReadOptions(id="Vorgang"))
    found = read_predictions([{"ticket": "x", "Vorgang": "b", "topics": "milk"}], own)[0]
    assert found == [[], ["milk"], [], []]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,topics\nz,tea\n", "has no answer to any of these documents"),
        ("id,other,more\na,tea,2\n", "which column holds the labels"),
        ("id,topics\n", "has no answer"),
        ("", "gpt.csv"),
    ],
)
def test_files_without_answers(tmp_path, text, message):
    with pytest.raises(ReadError, match=message):
        read(text, tmp_path)


def test_long_ids_are_cut_in_messages(tmp_path):
    _, report = read(f"id,topics\n{'x' * 5000},tea\nb,tea\n", tmp_path)
    assert len(str(report)) < 400


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from(["a", "b", 4, 4.0, None, "", "'=c"]), st.text(max_size=4)),
            st.one_of(st.sampled_from(["tea", "(none)", "tea;milk", ["tea"], -1, None]), st.text(max_size=8)),
            st.one_of(st.floats(), st.text(max_size=3), st.none(), st.just([1]), st.booleans()),
        ),
        max_size=8,
    )
)
def test_odd_tables_raise_read_errors_only(rows):
    """Every row is an answer to some document, or has a line of its own in the report."""
    table = [dict(zip(("id", "topics", "score"), row, strict=True)) for row in rows]
    try:
        labels, report = read_predictions(table, DOCUMENTS)
    except ReadError:
        return
    used = sum(map(bool, labels))
    assert used
    assert used + len(report.bad_rows) >= len(rows)
