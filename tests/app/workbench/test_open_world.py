"""Documents with none of the topics, and free topics, in a workbench with its own worker process."""

import time

import numpy as np
import pytest

pytest.importorskip("msgspec")

from problems import planted_texts

from topicsteer import TopicModel
from topicsteer.app.workbench.actions import Label, NewTopic, NoneOfThese, apply
from topicsteer.app.workbench.errors import Invalid
from topicsteer.app.workbench.progress_view import breakdowns
from topicsteer.app.workbench.project import Project, ProjectSettings
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.views import Selection
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents
from topicsteer.guidance.apply import FREE_THRESHOLD
from topicsteer.metrics import average_precision

pytestmark = pytest.mark.slow

SIZE, KNOWN, ALL = 40, 3, 6
TOPIC = np.repeat(np.arange(ALL), SIZE)
GROUPS = [("a", "b")[row % 2] for row in range(ALL * SIZE)]


def documents(**words):
    ids = [f"d{row}" for row in range(ALL * SIZE)]
    return Documents(ids, planted_texts(ALL, SIZE, **words), columns={"group": GROUPS})


def until(what, seconds=120):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def fit(workbench):
    """Fit, and wait until nothing is left to do."""
    before = workbench.views.fitted
    assert workbench.fit()
    until(lambda: workbench.status.error or (workbench.views.fitted is not before and workbench.status.state == "idle"))
    assert workbench.status.error == ""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A project with three of six topics labelled, fitted."""
    path = tmp_path_factory.mktemp("open") / "planted.steer"
    Workbench.make(path, documents())
    workbench = Workbench(path)
    for k in range(KNOWN):
        apply(workbench.session, "ann", NewTopic(name=f"t{k}"))
        rows = [int(row) for row in np.flatnonzero(k == TOPIC)[:10]]
        apply(workbench.session, "ann", Label(documents=rows, key=k + 1, state="permitted"))
    workbench.session.change_settings(free_topics=3, refit_after=0)
    fit(workbench)
    workbench.close()
    return path


@pytest.fixture(scope="module")
def shown(source, tmp_path_factory):
    """A copy that is only read."""
    yield from opened_copy(source, tmp_path_factory.mktemp("shown"))


@pytest.fixture
def workbench(source, tmp_path):
    yield from opened_copy(source, tmp_path)


def opened_copy(source, folder):
    path = folder / source.name
    path.write_bytes(source.read_bytes())
    workbench = Workbench(path)
    yield workbench
    workbench.close()


def free_of(workbench, topic):
    """Key of the free topic that most documents of a planted topic have."""
    fitted = workbench.views.fitted
    return f"free-{fitted.values[topic == TOPIC, fitted.n_known : -1].mean(axis=0).argmax()}"


def test_documents_with_none_of_the_topics_are_counted_and_listed(shown):
    lists, fitted = shown.views.topics(), shown.views.fitted
    outside = shown.views.rows(Selection("ann", key="none"))
    assert lists.none
    assert len(outside) == fitted.documents[-1]
    assert (TOPIC[outside] >= KNOWN).mean() > 0.9
    assert [topic.fit.documents for topic in lists.free] == sorted((t.fit.documents for t in lists.free), reverse=True)
    for topic in lists.free:
        planted = TOPIC[shown.views.rows(Selection("ann", key=topic.key))]
        assert len(planted) == topic.fit.documents
        assert np.bincount(planted).max() / len(planted) > 0.8


def test_a_document_shows_the_probability_of_none(shown):
    fitted = shown.views.fitted
    row = int(fitted.none.argmax())
    document, entry = shown.views.document(row, "ann"), shown.views.documents(Selection("ann", key="none")).documents[0]
    assert document.none == pytest.approx(fitted.none[row], abs=1e-3)
    assert document.outside
    assert not any(likely.yes for likely in document.likely)
    assert entry.outside
    labelled = shown.views.document(0, "ann")
    assert (labelled.none, labelled.outside) == (0, False)
    # What a document has is the decision of the model itself.
    names = fitted.model.state_.judged.decisions(fitted.result.names)
    assert [bool(some) for some in names] == fitted.has[:, : fitted.n_known].any(axis=1).tolist()


def test_groups_of_documents_have_no_shares_without_random_labels(shown):
    assert shown.views.fitted.record.shares["group"].keys
    assert breakdowns(shown.views) == []


def test_a_free_topic_becomes_known_and_no_document_is_labelled(workbench):
    planted, before = 4, workbench.session.labelled.copy()
    free = free_of(workbench, planted)
    fitted = workbench.views.fitted
    strength = fitted.strength(free)
    key = workbench.adopt("ann", free, name="robotics")
    np.testing.assert_array_equal(workbench.session.labelled, before)
    assert workbench.session.counts[key] == 0
    assert key not in workbench.views.fitted.column  # before the next fit
    proposed = []
    for _ in range(10):
        found = workbench.queue.next("ann", "topic", key=key, seen=proposed)
        assert found.why == "Proposed for “robotics”, from a free topic."
        proposed.append(found.row)
    right = TOPIC[proposed] == planted
    assert right[:3].all()
    assert right[4::2].all()
    distance = np.abs(strength[proposed] - FREE_THRESHOLD)
    others = np.abs(strength[(strength > 0) & ~fitted.model.state_.supervision.labelled] - FREE_THRESHOLD)
    assert (distance[3::2] <= np.sort(others)[len(proposed)]).all()  # between them are documents near the threshold
    rows = np.array(proposed)
    workbench.act("ann", Label(documents=rows[right].tolist(), key=key, state="permitted"))
    workbench.act("ann", Label(documents=rows[~right].tolist(), key=key, state="forbidden"))
    fit(workbench)
    column = workbench.views.fitted.has[:, workbench.views.fitted.column[key]]
    assert (column == (planted == TOPIC)).mean() > 0.95
    assert not workbench.views.fitted.record.proposed


def test_proposals_survive_a_fit_without_labels_and_a_restart(workbench):
    key = workbench.adopt("ann", free_of(workbench, 3), name="late")
    first = workbench.queue.next("ann", "topic", key=key)
    fit(workbench)
    path = workbench.project.path
    again = workbench.queue.next("ann", "topic", key=key)
    assert (again.row, again.why) == (first.row, first.why)
    workbench.close()
    restarted = Workbench(path)
    assert restarted.queue.next("ann", "topic", key=key).row == first.row
    restarted.close()


def test_during_a_fit_a_free_topic_is_adopted(workbench):
    free = free_of(workbench, 4)
    assert workbench.fit()
    key = workbench.adopt("ann", free, name="meanwhile")
    until(lambda: workbench.status.state == "idle")
    assert TOPIC[workbench.queue.next("ann", "topic", key=key).row] == 4


def test_the_world_is_a_setting_of_the_project(workbench):
    with pytest.raises(Invalid, match=r"Invalid enum value 'round' - at `\$.world`. Nothing"):
        workbench.session.change_settings(world="round")
    workbench.session.change_settings(world="closed")
    fit(workbench)
    assert workbench.views.topics().none is False
    assert workbench.views.fitted.model.belief == "Every document has one of your 3 topics, as declared."
    key = workbench.adopt("ann", "free-0", name="without groups")
    assert not workbench.fitter.busy
    assert workbench.queue.next("ann", "topic", key=key).row is not None
    path = workbench.project.path
    workbench.close()
    project = Project.open(path)
    assert LabelSession(project).settings.world == "closed"
    project.close()


def test_marked_documents_are_shown_as_none_of_these(workbench):
    rows = [int(row) for row in np.flatnonzero(TOPIC == 5)[:3]]
    workbench.act("ann", NoneOfThese(documents=rows))
    fit(workbench)
    assert workbench.views.fitted.none[rows].tolist() == [1, 1, 1]
    assert workbench.views.document(rows[0], "ann").outside
    assert set(rows) <= set(workbench.views.rows(Selection("ann", key="none")))


@pytest.mark.parametrize("world", [None, "open", "closed"])
def test_topics_that_are_made_one_after_the_other_are_all_found(tmp_path, world):
    """A label given before a topic existed leaves that topic open; the last topic has no document without it."""
    own = documents(own=3, shared=15)  # topics that are hard to tell apart
    Project.create(tmp_path / "order.steer", own)
    session = LabelSession(Project.open(tmp_path / "order.steer"))
    rows = [[int(row) for row in np.flatnonzero(k == TOPIC)[:3]] for k in range(ALL)]
    for k in range(ALL):
        apply(session, "ann", NewTopic(name=f"t{k}"))
        apply(session, "ann", Label(documents=rows[k], key=k + 1, state="permitted"))
    training = session.training()
    session.project.close()
    assert not training.complete

    def scores(forbidden, complete):
        given = [training.labels.get(row, []) for row in range(len(own))]
        lacks = [forbidden.get(row, []) for row in range(len(own))]
        names = [f"t{k}" for k in range(ALL)]
        model = TopicModel(ProjectSettings().free_topics, world=world, topics=names, complete=complete)
        model.fit(Documents(own.ids, own.texts, given, forbidden=lacks))
        hidden = ~model.state_.supervision.labelled
        return average_precision(np.eye(ALL)[TOPIC[hidden]], model.state_.known_memberships[hidden])

    natural, complete = scores(training.forbidden, training.complete), scores({}, complete=True)
    assert natural.topics.min() > 0.85
    np.testing.assert_allclose(natural.topics, complete.topics, atol=0.03)
    assert natural.micro == pytest.approx(complete.micro, abs=0.03)  # probabilities of different topics are comparable
