"""Topics files in the workbench."""

import pytest

from topicsteer.app.workbench.actions import ChangeTopic, NewTopic, Undo, apply
from topicsteer.app.workbench.errors import Invalid
from topicsteer.app.workbench.imports import import_topics
from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents
from topicsteer.labels.codebook import Codebook

DOCUMENTS = Documents(["a", "b"], ["green tea", "black coffee"])


def test_topics_are_created_or_completed_and_one_undo_takes_all_back(tmp_path):
    path = tmp_path / "drinks.steer"
    Project.create(path, DOCUMENTS)
    project = Project.open(path)
    session = LabelSession(project)
    apply(session, "ann", NewTopic(name="Tea", description="hot"))
    apply(session, "ann", ChangeTopic(key=1, keywords=["pot"], banned=["milk"]))
    book = Codebook.of_names(
        ["tea", "coffee"],
        descriptions={"tea": "other", "coffee": "roast"},
        keywords={"tea": ["leaf", "milk"], "coffee": ["bean"]},
    )
    import_topics(session, "ann", book, source="themes.csv")
    tea, coffee = session.live
    assert (tea.name, tea.description, tea.keywords, tea.banned) == ("Tea", "hot", ("pot", "leaf", "milk"), ())
    assert (coffee.name, coffee.description, coffee.keywords) == ("coffee", "roast", ("bean",))
    again = import_topics(session, "ann", book, source="themes.csv")
    assert not again.topics
    apply(session, "ann", Undo())
    assert [topic.keywords for topic in session.live] == [("pot",)]
    project.close()


def test_notes_and_errors_of_a_file(tmp_path):
    path, themes = tmp_path / "drinks.steer", tmp_path / "themes.csv"
    Workbench.make(path, DOCUMENTS)
    bench = Workbench(path)
    try:
        themes.write_text("topic,keywords\ntea,leaf\n,\n")
        assert bench.import_topics("ann", themes, "themes.csv").endswith(
            "themes.csv. line 3 has no topic and is empty."
        )
        assert [topic.keywords for topic in bench.session.live] == [("leaf",)]
        themes.write_text("a,b\n1,2\n")
        with pytest.raises(Invalid, match=r"themes.csv: there is no column 'topic'"):
            bench.import_topics("ann", themes, "themes.csv")
    finally:
        bench.close()
