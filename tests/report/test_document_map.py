import base64
import json

import numpy as np
import pytest

from topicsteer.analysis.map_layout import DocumentMap, Layout
from topicsteer.report.map_page import (
    ID_BYTES,
    TEXT_BYTES,
    MappedDocuments,
    fitting,
    map_page,
    script_json,
    short_form,
)


def make_map(n=200, topics=3, sample=0, seed=0):
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2)).astype(np.float32)
    layout = Layout(np.arange(n), places, 1.25, n + sample)
    names = (*(f"topic {k}" for k in range(topics)), "(none)")
    return DocumentMap(layout, names, topics - 1, rng.integers(0, topics + 1, n), rng.random(n), rng.random(n) < 0.2)


def test_the_short_form_holds_the_points():
    found = make_map()
    short = short_form(found)
    x, y = (np.frombuffer(base64.b64decode(short[name]), "<u2") / 65535 for name in "xy")
    assert np.abs(np.stack([x, y], axis=1) - found.layout.places).max() <= 0.5 / 65535 + 1e-7
    assert np.array_equal(np.frombuffer(base64.b64decode(short["topic"]), "<u2"), found.topic)
    assert np.array_equal(np.frombuffer(base64.b64decode(short["labelled"]), "u1"), found.labelled)
    membership = np.frombuffer(base64.b64decode(short["membership"]), "u1") / 255
    assert np.abs(membership - found.membership).max() <= 0.5 / 255 + 1e-7


@pytest.mark.parametrize("letter", ["a", "<", '"', "\\", "日", "\u202e", "\U0001f600"])
def test_texts_are_cut_until_they_fit(letter):
    texts = [letter * 700] * 2000
    cut, length = fitting(texts, 100_000, (400, 100, 40, 10, 0))
    assert sum(len(script_json(text).encode()) for text in cut) <= 100_000
    assert all(len(text) <= length for text in cut)
    assert length in (40, 10, 0)


def test_short_texts_are_whole():
    assert fitting(["one\n two", "three"], 1000, (400, 10)) == (["one two", "three"], 400)


@pytest.mark.slow
def test_a_page_with_100000_long_documents_has_room():
    n = 100_000
    page = map_page(
        MappedDocuments(make_map(n), [f"document {i}" for i in range(n)], ["lorem ipsum <dolor> " * 40] * n)
    )
    size = len(page["points"].encode()) + len(page["texts"].encode())
    assert size < ID_BYTES + TEXT_BYTES + 1_200_000
    assert page["length"] >= 45
    assert len(json.loads(page["texts"])["texts"]) == n


def test_json_in_a_script_cannot_end_it():
    text = "</script><!-- <script>"
    assert "<" not in script_json([text])
    assert json.loads(script_json([text])) == [text]


def test_notes_on_samples_layouts_and_cut_texts():
    page = map_page(MappedDocuments(make_map(20, sample=5), list(range(20)), ["word " * 200] * 20))
    assert page["sample"] == "The map shows 20 of 25 documents: all labelled ones, and others at random."
    assert page["length"] == 400
    whole = map_page(MappedDocuments(make_map(20), list(range(20)), ["word"] * 20))
    assert (whole["sample"], whole["length"]) == ("", 0)
    assert json.loads(map_page(MappedDocuments(make_map(20), list(range(20))))["texts"])["texts"] == []


def test_the_table_counts_every_point_with_a_topic_once():
    found = make_map()
    rows = map_page(MappedDocuments(found, list(range(200))))["table"].rows
    values = {row[0].value: [cell.value for cell in row] for row in rows}
    assert sum(row[2] or 0 for row in values.values()) == 200 - (found.topic == len(found.names) - 1).sum()
    assert values[found.names[-1]][2] is None  # it would be read as the share of documents without a topic
    assert sum(row[3] for row in values.values()) == found.labelled.sum()
    for k, name in enumerate(found.names):
        assert values[name][1] == ("known", "known", "free", "none")[k]
