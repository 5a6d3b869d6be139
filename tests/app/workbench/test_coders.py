"""Coders of a project: stored, compared with people, never labels."""

import sqlite3

import pytest

from topicsteer.corpora import Documents

pytest.importorskip("msgspec")
from topicsteer.app.workbench.actions import ChangeTopic, NewTopic, apply
from topicsteer.app.workbench.errors import Conflict, Invalid, NotFound
from topicsteer.app.workbench.project import ProjectError
from topicsteer.app.workbench.workbench import Workbench


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "drinks.steer"
    labels = [["tea"], ["tea"], ["coffee"], ["(none)"], [], []]
    Workbench.make(path, Documents([f"d{i}" for i in range(6)], [f"text {i}" for i in range(6)], labels))
    return path


@pytest.fixture
def workbench(project):
    workbench = Workbench(project)
    yield workbench
    workbench.close()


def answers(tmp_path, *rows):
    path = tmp_path / "upload.csv"
    path.write_text("\n".join(["id,topics,score", *rows]))
    return path


GPT = ("d0,tea,0.9", "d1,coffee,0.8", "d2,coffee,0.7", "d3,tea,0.95", "d4,tea,0.5")


def test_a_coder_is_compared_with_people(workbench, tmp_path):
    before = workbench.session.training()
    message = workbench.coders.add(answers(tmp_path, *GPT, "nobody,tea,1"), "gpt.csv", "gpt")
    assert message == (
        "gpt has answers to 5 documents. They are not labels. 1 rows were not used as they are: "
        "line 7: no document has the id 'nobody': use the ids of the documents."
    )
    assert workbench.session.training() == before
    (coder,) = workbench.coders.page().coders
    assert (coder.name, coder.source, coder.answered, coder.compared, coder.differ) == ("gpt", "gpt.csv", 5, 4, 2)
    coffee, tea = sorted(coder.topics, key=lambda topic: topic.topic)
    assert (tea.labels, tea.predicted, tea.precision.value, tea.recall.value) == (2, 2, 0.5, 0.5)
    assert (coffee.labels, coffee.predicted, coffee.precision.value, coffee.recall.value) == (1, 2, 0.5, 1)
    assert coffee.precision.low < 0.5 < coffee.precision.high
    assert [(doc.row, doc.id, doc.people, doc.answer) for doc in coder.documents] == [
        (3, "d3", ["(none)"], ["tea"]),
        (1, "d1", ["tea"], ["coffee"]),
    ]
    assert coder.documents[0].text == "text 3"


def test_coders_survive_a_restart_and_renaming(project, tmp_path):
    workbench = Workbench(project)
    workbench.coders.add(answers(tmp_path, *GPT), "gpt.csv", "gpt")
    key = next(topic.key for topic in workbench.session.live if topic.name == "tea")
    apply(workbench.session, "ann", ChangeTopic(key=key, name="Tee"))
    apply(workbench.session, "ann", NewTopic(name="milk"))
    workbench.close()
    workbench = Workbench(project)
    try:
        topics = {topic.topic: topic for topic in workbench.coders.page().coders[0].topics}
        assert topics["Tee"].predicted == 2
        assert topics["milk"].documents == 0  # it did not exist when the coder answered
    finally:
        workbench.close()


def test_replace_and_remove(workbench, tmp_path):
    workbench.coders.add(answers(tmp_path, *GPT), "gpt.csv", "gpt")
    workbench.coders.add(answers(tmp_path, "d0,tea,"), "gpt2.csv", "gpt")
    workbench.coders.add(answers(tmp_path, "d0,coffee,"), "old.csv", "old")
    assert [(coder.name, coder.answered) for coder in workbench.coders.page().coders] == [("gpt", 1), ("old", 1)]
    workbench.coders.remove("gpt")
    assert [coder.name for coder in workbench.coders.page().coders] == ["old"]
    with pytest.raises(NotFound):
        workbench.coders.remove("gpt")


@pytest.mark.parametrize("name", ["", "people", "a\x00b", "x" * 200])
def test_wrong_names(workbench, tmp_path, name):
    with pytest.raises(Invalid):
        workbench.coders.add(answers(tmp_path, *GPT), "gpt.csv", name)


def test_wrong_files_name_the_file(workbench, tmp_path):
    with pytest.raises(Invalid, match=r"gpt\.csv: .*has no answer"):
        workbench.coders.add(answers(tmp_path, "z,tea,"), "gpt.csv", "gpt")
    assert workbench.coders.page().coders == []


def test_at_most_twenty(workbench, tmp_path):
    path = answers(tmp_path, *GPT)
    for i in range(20):
        workbench.coders.add(path, "gpt.csv", f"gpt {i}")
    with pytest.raises(Conflict, match="at most 20"):
        workbench.coders.add(path, "gpt.csv", "one more")
    workbench.coders.add(path, "gpt.csv", "gpt 3")


def test_without_topics_or_labels(tmp_path):
    path = tmp_path / "empty.steer"
    Workbench.make(path, Documents(["d0"], ["text"]))
    workbench = Workbench(path)
    try:
        with pytest.raises(Invalid, match="Create the topics first"):
            workbench.coders.add(answers(tmp_path, "d0,tea,"), "gpt.csv", "gpt")
        apply(workbench.session, "ann", NewTopic(name="tea"))
        workbench.coders.add(answers(tmp_path, "d0,tea,"), "gpt.csv", "gpt")
        (coder,) = workbench.coders.page().coders
        assert (coder.answered, coder.compared, coder.topics, coder.documents) == (1, 0, [], [])
    finally:
        workbench.close()


@pytest.mark.parametrize("answers", ["[]", '{"keys": 3}', '{"keys": ["a"], "topics": {}, "scores": {}}'])
def test_forged_answers_are_listed_with_a_remedy(project, answers):
    with sqlite3.connect(project) as connection:
        connection.execute("INSERT INTO coders VALUES ('gpt', '', '', ?)", (answers,))
    connection.close()
    workbench = Workbench(project)
    try:
        (coder,) = workbench.coders.page().coders
        assert "remove it, and add it again" in coder.source
        workbench.coders.remove("gpt")
        assert workbench.coders.page().coders == []
    finally:
        workbench.close()


def test_damaged_answers_are_noticed_when_the_project_opens(project):
    with sqlite3.connect(project) as connection:
        connection.execute("INSERT INTO coders VALUES ('gpt', '', '', 'no json')")
    connection.close()
    with pytest.raises(ProjectError, match="a coder cannot be read"):
        Workbench(project)
