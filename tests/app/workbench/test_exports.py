"""Exports of labels: what they write is what the readers read back."""

import csv
import json
import os

import pytest

from topicsteer.app.workbench.errors import Refused
from topicsteer.app.workbench.exports import Exporter
from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.views import Views
from topicsteer.corpora import Documents, attach_labels, read_labels

TEXTS = ["green tea leaves", "black coffee beans", "a cup and a saucer", "trains to the coast"]
FORMATS = ["labels", "jsonl", "doccano", "label-studio"]


@pytest.fixture
def documents():
    return Documents(list("abcd"), TEXTS)


@pytest.fixture
def session(tmp_path, documents):
    path = tmp_path / "drinks.steer"
    Project.create(path, documents)
    session = LabelSession(Project.open(path))
    session.new_topic("ann", name="tea")
    session.new_topic("ann", name="coffee")
    yield session
    session.project.close()


def exported(session, kind, documents):
    """The documents with the labels of an export."""
    return attach_labels(documents, read_labels(Exporter(Views(session)).export(kind)))


@pytest.mark.parametrize("kind", FORMATS)
def test_none_of_the_topics_comes_back(session, documents, kind):
    session.label("ann", documents=[0], key=1, state="permitted")
    session.none_of_these("ann", documents=[2])
    found = exported(session, kind, documents)
    assert list(map(list, found.labels)) == [["tea"], [], ["(none)"], []]
    assert not any(found.forbidden)

    before = dict(session.decisions)
    session.undo("ann")
    session.undo("ann")
    rows = {row: names for row, names in enumerate(found.labels) if names}
    session.import_labels("ann", rows, {}, source="labels.csv")
    assert [topic.name for topic in session.live] == ["tea", "coffee"]
    assert session.decisions[2] == before[2]
    assert session.decisions[2].forbidden == {1, 2}


@pytest.mark.parametrize("kind", FORMATS[:2])
def test_a_topic_that_came_later_is_not_excluded(session, documents, kind):
    session.none_of_these("ann", documents=[2])
    session.new_topic("ann", name="cups")
    found = exported(session, kind, documents)
    assert list(map(list, found.labels)) == [[], [], [], []]
    assert sorted(found.forbidden[2]) == ["coffee", "tea"]
    tasks = json.loads(Exporter(Views(session)).export("label-studio").read_text())
    assert [task["annotations"] for task in tasks] == [[{"result": []}]]


def test_names_with_separators_stand_in_lists_with_none(session, documents):
    session.change_topic("ann", key=1, name="tea, green")
    session.label("ann", documents=[0], key=1, state="permitted")
    session.none_of_these("ann", documents=[2])
    with open(Exporter(Views(session)).export("labels"), newline="") as file:
        assert [row[1] for row in csv.reader(file)] == ["labels", '["tea, green"]', '["(none)"]']
    assert exported(session, "labels", documents).labels == [["tea, green"], [], ["(none)"], []]


def test_people_who_differ_stay_separate(session):
    session.label("ann", documents=[0], key=1, state="permitted")
    session.none_of_these("bob", documents=[0])
    (task,) = json.loads(Exporter(Views(session)).export("label-studio").read_text())
    choices = [annotation["result"][0]["value"]["choices"] for annotation in task["annotations"]]
    assert dict(zip(task["data"]["labelled_by"], choices, strict=True)) == {"ann": ["tea"], "bob": ["(none)"]}


def test_exports_of_0_1_0_are_still_read(tmp_path, documents):
    path = tmp_path / "labels.csv"
    path.write_text("id,labels,forbidden\na,tea,\nc,,coffee; tea\n")
    found = attach_labels(documents, read_labels(path))
    assert found.labels[2] == []
    assert found.forbidden[2] == ["coffee", "tea"]


def test_a_later_import_replaces_an_earlier_one(session):
    session.import_labels("ann", {0: ["tea"], 1: ["(none)"]}, {}, source="old.csv")
    session.import_labels("ann", {0: ["(none)"], 1: ["coffee"]}, {}, source="old.csv")
    assert session.decisions[0].forbidden == {1, 2}
    assert session.decisions[0].permitted == frozenset()
    assert session.labels_of(1) == {"file: old.csv": {2: "permitted"}}


def test_no_topic_has_the_name_of_none(session):
    for change in (
        lambda: session.new_topic("ann", name=" (none) "),
        lambda: session.change_topic("ann", key=1, name="(none)"),
        lambda: session.split_topic("ann", key=1, name="(none)", documents=[0]),
    ):
        with pytest.raises(Refused, match=r"A topic cannot have the name '\(none\)'"):
            change()
    assert [topic.name for topic in session.live] == ["tea", "coffee"]


@pytest.mark.skipif(os.name == "nt", reason="modes of Unix")
def test_exports_are_as_private_as_the_user_wants(session):
    before = os.umask(0o077)
    try:
        path = Exporter(Views(session)).export("jsonl")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
