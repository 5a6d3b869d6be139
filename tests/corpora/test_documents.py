import dataclasses
import subprocess
import sys

import pytest

from topicsteer.corpora import BadRow, Documents, ReadReport

DOCUMENTS = Documents(
    ids=[7, 8, 9],
    texts=["rain at noon", "shares fell", "snow and profits"],
    labels=[["weather"], [], ["weather", "money"]],
    columns={"year": [1999, 2000, 2001]},
    forbidden=[[], ["sport"], []],
)


def test_select_keeps_every_part_and_the_given_order():
    chosen = DOCUMENTS.select([2, 0])
    assert chosen == Documents(
        [9, 7],
        ["snow and profits", "rain at noon"],
        [["weather", "money"], ["weather"]],
        {"year": [2001, 1999]},
        [[], []],
    )
    assert len(chosen) == 2


def test_topic_names_hold_permitted_and_forbidden_labels():
    assert DOCUMENTS.topic_names == ["money", "sport", "weather"]


def test_labels_are_empty_by_default():
    assert Documents(["a", "b"], ["x", "y"]).labels == [(), ()]
    assert Documents([], []).labels == []


def test_documents_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DOCUMENTS.ids = []


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("ids", [1], "ids has 1 entries and there are 3 texts"),
        ("labels", [["a"]], "labels has 1 entries"),
        ("columns", {"year": []}, "column 'year' has 0 entries"),
        ("forbidden", [["a"]] * 4, "forbidden has 4 entries"),
    ],
)
def test_unequal_lengths_are_refused(part, value, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(DOCUMENTS, **{part: value})


def test_repr_counts():
    assert repr(DOCUMENTS) == "<Documents: 3 documents, 2 labelled, 3 topics, columns year>"


def test_report_lists_the_first_bad_rows_in_one_message():
    report = ReadReport(
        "a.csv", ("text is column 'body'",), tuple(BadRow(f"line {n}", "empty text") for n in range(2, 25))
    )
    lines = str(report).splitlines()
    assert lines[:2] == ["a.csv: text is column 'body'", "a.csv: 23 bad rows, left out"]
    assert lines[2:] == ["  lines 2, 3, 4, 5, 6 and 18 more: empty text"]


@pytest.mark.slow
def test_importing_loads_no_table_or_download_package():
    code = "import sys, topicsteer.corpora; print({'polars', 'pandas'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
