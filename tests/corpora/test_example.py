"""The table of messages: 300 rows, 60 random labels that agree with the truth, and topics that a model finds."""

import csv
from pathlib import Path

from topicsteer import TopicModel
from topicsteer.corpora import example_table, read_table

TRUTH = Path(__file__).parents[1] / "data" / "messages_truth.csv"
UNNAMED = {"availability", "other"}


def truth():
    """The topics of each message by its id."""
    with TRUTH.open(encoding="utf-8", newline="") as file:
        return {row["id"]: row["topic"].split("; ") for row in csv.DictReader(file)}


def test_rows_and_labels():
    documents = read_table(example_table())
    true = truth()
    assert list(documents.ids) == list(true)
    assert len(set(documents.texts)) == 300
    labelled = [(name, labels) for name, labels in zip(documents.ids, documents.labels, strict=True) if labels]
    assert len(labelled) == 60
    for name, labels in labelled:
        assert labels == ([topic for topic in true[name] if topic not in UNNAMED] or ["(none)"])
    assert documents.columns["chosen"] == ["random" if labels else "" for labels in documents.labels]


def test_shares_of_the_example_have_intervals_with_the_truth():
    table = TopicModel(free_topics=3).fit(example_table()).findings.prevalence()
    true = [set(topics) - UNNAMED or {"(none)"} for topics in truth().values()]
    known = {row["topic"]: (row["low"], row["high"]) for row in table.to_dicts() if row["low"] is not None}
    assert known.keys() == set().union(*true)
    for topic, (low, high) in known.items():
        assert low <= sum(topic in own for own in true) / 300 <= high


def test_a_copy(tmp_path):
    path = example_table(tmp_path / "messages.csv")
    assert path.read_bytes() == example_table().read_bytes()


def test_the_unnamed_topic_is_found():
    model = TopicModel(free_topics=3).fit(example_table())
    true = truth()
    assert "stock" in model.top_terms("free 1") + model.top_terms("free 2") + model.top_terms("free 3")
    known = sum(not UNNAMED.intersection(topics) for topics in true.values()) / 300
    assert abs(model.memberships()["(none)"].mean() - (1 - known)) < 0.2
