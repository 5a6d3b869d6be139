"""Questions with yes or no: single facts in the event log, the queue, undo, exports and imports."""

import json

import numpy as np
import pytest

from topicsteer.app.workbench.actions import (
    Answer,
    ChangeTopic,
    Label,
    MergeTopics,
    NewTopic,
    NoneOfThese,
    Redo,
    Skip,
    Undo,
    apply,
)
from topicsteer.app.workbench.current_model import CurrentModel, ModelRecord
from topicsteer.app.workbench.errors import Refused
from topicsteer.app.workbench.label_queue import Queue
from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.views import Views
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents
from topicsteer.model.topic_model import TopicModel

WORDS = {"tea": "leaf kettle pot steep", "coffee": "bean roast grind espresso", "milk": "cow dairy cream butter"}


def documents():
    """Twenty documents on each of three topics."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words.split(), 6)) for words in WORDS.values() for _ in range(20)]
    return Documents([f"d{k}" for k in range(60)], texts)


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "drinks.steer"
    Project.create(made, documents())
    return made


@pytest.fixture
def session(path):
    session = LabelSession(Project.open(path))
    for name in WORDS:
        apply(session, "ann", NewTopic(name=name))
        apply(session, "ann", ChangeTopic(key=len(session.live), keywords=WORDS[name].split()[:2]))
    yield session
    session.project.close()


@pytest.fixture
def queue(session, tmp_path):
    """The queue of a session with a model of names and keywords."""
    views = Views(session)
    texts = [session.project.document(row)[1] for row in range(session.n)]
    keywords = {topic.name: topic.keywords for topic in session.live}
    model = TopicModel(topics=list(WORDS), keywords=keywords, free_topics=0).fit(texts)
    model.save(tmp_path / "model")
    views.fitted = CurrentModel(tmp_path / "model", ModelRecord([1, 2, 3]))
    return Queue(views)


def facts(session):
    return {row: (sorted(d.permitted), sorted(d.forbidden)) for row, d in session.decisions.items() if any(d)}


def test_an_answer_is_a_single_fact(session):
    assert session.settings.complete
    apply(session, "ann", Answer(document=0, key=1, state="permitted"))
    apply(session, "ann", Answer(document=25, key=1, state="forbidden"))
    assert facts(session) == {0: ([1], []), 25: ([], [1])}
    training = session.training()
    assert (training.labels, training.forbidden, training.complete) == ({0: ["tea"]}, {25: ["tea"]}, False)
    apply(session, "ann", Label(documents=[1], key=1, state="permitted"))  # a label still excludes the other topics
    assert facts(session)[1] == ([1], [2, 3])
    apply(session, "ann", Answer(document=1, key=1, state="permitted"))  # and an answer does not open them again
    assert facts(session)[1] == ([1], [2, 3])
    states = [event.state for _, event in session.project.log.events() if event.document == 0 and event.key > 0]
    assert states == ["confirmed"]


def test_answers_are_undone_and_survive_a_restart(session, path):
    apply(session, "ann", Answer(document=0, key=1, state="permitted"))
    apply(session, "ann", Answer(document=0, key=1, state="forbidden"))
    assert facts(session) == {0: ([], [1])}
    apply(session, "ann", Undo())
    session.project.close()
    session = LabelSession(Project.open(path))
    assert facts(session) == {0: ([1], [])}
    apply(session, "ann", Undo())
    assert facts(session) == {}
    apply(session, "ann", Redo())
    assert facts(session) == {0: ([1], [])}
    session.project.close()


def test_answers_follow_their_topics(session):
    apply(session, "ann", Answer(document=0, key=1, state="permitted"))
    apply(session, "ann", MergeTopics(keys=[1], into=2))
    assert facts(session)[0] == ([2], [])
    apply(session, "ann", NoneOfThese(documents=[0]))
    assert facts(session)[0] == ([], [2, 3])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"document": 99, "key": 1, "state": "permitted"}, "no document"),
        ({"document": 0, "key": 9, "state": "permitted"}, "no longer exists"),
    ],
)
def test_a_wrong_answer_is_refused(session, values, message):
    with pytest.raises(Refused, match=message):
        apply(session, "ann", Answer(**values))
    assert facts(session) == {}


def test_questions_about_one_topic_at_a_time(session, queue):
    assert Queue(Views(session)).next("ann", "question").why == "Questions start with the first fit."
    rows = []
    for _ in range(5):
        found = queue.next("ann", "question", seen=rows)
        assert (found.key, found.row // 20) == (1, 0)
        assert found.why.startswith("The model gives “tea” ")
        rows.append(found.row)
        apply(session, "ann", Answer(document=found.row, key=1, state="permitted"))
    assert len(set(rows)) == 5
    assert queue.next("ann", "question", seen=rows).key == 2  # five answers: the next topic
    assert queue.next("ann", "question", key=3).key == 3  # or the topic that a person wants


def test_a_no_is_not_asked_again_and_a_skipped_document_neither(session, queue):
    first = queue.next("ann", "question", key=1)
    apply(session, "ann", Answer(document=first.row, key=1, state="forbidden"))
    second = queue.next("ann", "question", key=1)
    assert second.row != first.row
    apply(session, "ann", Skip(documents=[second.row]))
    assert queue.next("ann", "question", key=1).row not in (first.row, second.row)
    apply(session, "ann", Label(documents=list(range(60)), key=1, state="permitted"))
    assert queue.next("ann", "question").row is None


@pytest.mark.parametrize("kind", ["labels", "jsonl"])
def test_answers_are_exported_and_imported_as_single_facts(path, tmp_path, kind):
    first = Workbench(path)
    for name in WORDS:
        apply(first.session, "ann", NewTopic(name=name))
    apply(first.session, "ann", Answer(document=0, key=1, state="permitted"))
    apply(first.session, "ann", Answer(document=1, key=2, state="forbidden"))
    apply(first.session, "ann", Label(documents=[2], key=1, state="permitted"))
    before, file = facts(first.session), first.exporter.export(kind)
    log = first.exporter.export("log").read_text()
    assert "confirmed" in log
    first.close()
    Project.create(tmp_path / "again.steer", documents())
    second = Workbench(tmp_path / "again.steer")
    for name in WORDS:
        apply(second.session, "ben", NewTopic(name=name))
    second.import_labels("ben", file, file.name)
    assert facts(second.session) == before == {0: ([1], []), 1: ([], [2]), 2: ([1], [2, 3])}
    second.close()


def test_exports_without_answers_are_as_before(path):
    bench = Workbench(path)
    for name in WORDS:
        apply(bench.session, "ann", NewTopic(name=name))
    apply(bench.session, "ann", Label(documents=[2], key=1, state="permitted"))
    assert (
        bench.exporter.export("labels").read_text()
        == 'id,labels,forbidden,labelled_by,chosen\nd2,tea,"",ann,suggested\n'
    )
    record = json.loads(bench.exporter.export("jsonl").read_text())
    assert record.keys() == {"id", "text", "labels", "forbidden", "labelled_by", "chosen"}
    bench.close()
