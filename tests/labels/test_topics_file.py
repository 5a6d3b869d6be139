"""The topics file: every odd row has a message, and no word is lost."""

import pytest

from topicsteer.labels.codebook import Codebook, Topic, topic_columns
from topicsteer.labels.codebook_files import parse_topics


def parse(**columns):
    size = len(next(iter(columns.values())))
    return parse_topics(columns, [f"line {row + 2}" for row in range(size)])


def test_topics_with_descriptions_and_words():
    found = parse(
        Topic=["price", " delivery ", 3.0],
        Definition=["cost of\nthings", None, ""],
        keywords=["cheap; too much; cheap", "late, courier", ["a", "b;c"]],
        banned=["", "on time|early", '["x", "y, z"]'],
    )
    assert found.codebook.topics == (
        Topic(1, "price", description="cost of things", keywords=("cheap", "too much")),
        Topic(2, "delivery", keywords=("late", "courier"), banned=("on time", "early")),
        Topic(3, "3", keywords=("a", "b;c"), banned=("x", "y, z")),
    )
    assert not found.notes
    assert parse(anything=["tea", "coffee"]).codebook.names == ("tea", "coffee")


def test_a_message_for_each_odd_row():
    found = parse(
        topic=["tea", "", "tea", "", "(none)", "milk"],
        keywords=["leaf", "lost; words", "pot", None, "x", "Leaf"],
        colour=["green"] * 6,
    )
    assert found.codebook.topics == (Topic(1, "tea", keywords=("leaf", "pot")), Topic(2, "milk", keywords=("Leaf",)))
    assert list(found.notes) == [
        "The column 'colour' is not read.",
        "line 3 has no topic, so this is not used: lost; words.",
        "line 4 names the topic 'tea' again: its words are added to the earlier ones.",
        "line 5 has no topic and is empty.",
        "line 6 has the name '(none)', which marks documents without a topic. It is not used.",
        "The keyword 'leaf' belongs to two topics: 'tea' and 'milk'. It does not separate them.",
    ]


def test_tables_without_topics():
    with pytest.raises(ValueError, match="there is no column 'topic', only 'a', 'b'"):
        parse(a=["x"], b=["y"])
    with pytest.raises(ValueError, match=r"no row has a topic: .* line 2 has no topic and is empty"):
        parse(topic=[""])


def test_a_written_file_is_read_again():
    book = Codebook(
        (
            Topic(1, "price", description="cost", keywords=("too much", "cheap"), banned=("free",)),
            Topic(2, "=odd", keywords=("semi;colon", "bar|and, comma")),
        )
    )
    columns = topic_columns(book)
    columns["topic"][1] = "'=odd"  # as in a CSV file that spreadsheets open
    assert parse(**columns).codebook == book
    assert not parse(**columns).notes


def test_parents_of_a_file():
    found = parse(topic=["sport", "tennis", "tennis", "arts"], Parent=["", "sport", "sport", None])
    assert found.codebook.parent_names == {"tennis": "sport"}
    columns = topic_columns(found.codebook)
    assert columns["parent"] == ["", "sport", ""]
    assert parse_topics(columns, ["2", "3", "4"]).codebook == found.codebook
    assert "parent" not in topic_columns(Codebook.of_names(["tea"]))


@pytest.mark.parametrize(
    ("topics", "parents", "message"),
    [
        (["a", "b"], ["", "x"], "line 3 puts 'b' under 'x', which is not a topic of this file. Add a row for it."),
        (["sport", "b"], ["", "sports"], "line 3 puts 'b' under 'sports'.* Did you mean 'sport'?"),
        (["a", "b", "c", "c"], ["", "", "a", "b"], r"'c' has two parents, 'a' \(line 4\) and 'b' \(line 5\)"),
        (["a", "b"], ["b", "a"], r"below themselves: 'a' is under 'b' \(line 2\), 'b' is under 'a' \(line 3\)"),
        (["a"], ["a"], r"'a' is under 'a' \(line 2\)"),
    ],
)
def test_impossible_parents_of_a_file_name_the_line(topics, parents, message):
    with pytest.raises(ValueError, match=message):
        parse(topic=topics, parent=parents)


@pytest.mark.parametrize("topic", ["topic", "name", "Theme", "LABEL"])
@pytest.mark.parametrize("description", ["description", "Definition"])
@pytest.mark.parametrize("keywords", ["keywords", "words", "terms"])
@pytest.mark.parametrize("banned", ["banned", "banned words"])
def test_every_name_of_a_column_is_read(topic, description, keywords, banned):
    found = parse(
        **{"colour": ["green"], banned: ["on time"], keywords: ["late"], description: ["post"], topic: ["mail"]}
    )
    expected = Topic(1, "mail", description="post", keywords=("late",), banned=("on time",))
    assert found.codebook.topics == (expected,)
    assert list(found.notes) == ["The column 'colour' is not read."]
