"""The document map of the workbench without HTTP: one layout per project, in the colours of labels and model."""

import base64
import time

import numpy as np
import pytest
from problems import make_open_corpus

from topicsteer.analysis import map_layout as maps
from topicsteer.app.workbench.actions import DeleteTopic, Label, NewTopic, NoneOfThese, Undo
from topicsteer.app.workbench.errors import NotFound
from topicsteer.app.workbench.fit_process import Ended, Failed
from topicsteer.app.workbench.map_view import STORED, map_points, restored_layout, stored_layout
from topicsteer.app.workbench.responses import Mapped, MapStatus
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents

pytestmark = pytest.mark.slow

needs_umap = pytest.mark.skipif(bool(maps.obstacle(99)), reason="no umap-learn")
SUBJECTS = np.repeat(["tea", "coffee", "chess", "boat", "violin"], 16)


@pytest.fixture
def path(tmp_path):
    texts, _ = make_open_corpus(n=16)
    made = tmp_path / "hobbies.steer"
    Workbench.make(made, Documents([f"d{k}" for k in range(len(texts))], texts))
    return made


@pytest.fixture
def workbench(path):
    workbench = Workbench(path)
    yield workbench
    workbench.close()


def until(what, seconds=240):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def made(workbench):
    """The page when the map is ready."""
    until(lambda: workbench.document_map().status.state not in ("making",))
    page = workbench.document_map()
    assert page.status.state == "ready"
    return page.points


def numbers(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def layout_of(n, seed=0, rows=None):
    rows = np.arange(n) if rows is None else np.asarray(rows)
    places = np.random.default_rng(seed).random((len(rows), 2)).astype(np.float32)
    return maps.Layout(rows, places, 1.4, n)


@needs_umap
def test_the_map_is_made_once_before_any_label_and_kept(path):
    workbench, notices = Workbench(path), []
    workbench.listeners.append(notices.append)
    assert workbench.document_map().points is None
    assert workbench.document_map().status.state == "making"  # and not a second time
    points = made(workbench)
    assert [notice.status.state for notice in notices if isinstance(notice, Mapped)][-1] == "ready"
    assert (points.rows, points.sample) == ("", "")
    assert [topic.kind for topic in points.topics] == ["none"]
    places = np.stack([numbers(points.x, "<u2"), numbers(points.y, "<u2")], axis=1) / 65535
    square = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    np.fill_diagonal(square, np.inf)
    assert (SUBJECTS[square.argmin(axis=1)] == SUBJECTS).mean() > 0.9
    workbench.close()
    again = Workbench(path)
    later = again.document_map().points
    assert (later.x, later.y) == (points.x, points.y)
    again.close()


def test_labels_colour_the_map_at_once_and_the_model_after_a_fit(workbench):
    layout = workbench.maps.made = layout_of(80)
    tea, chess = np.flatnonzero(SUBJECTS == "tea"), np.flatnonzero(SUBJECTS == "chess")
    workbench.act("ann", NewTopic(name="tea", documents=tea[:6].tolist(), request="1"))
    workbench.act("ann", NewTopic(name="chess", documents=chess[:6].tolist(), request="2"))
    points = workbench.document_map().points
    assert [(topic.name, topic.kind) for topic in points.topics] == [
        ("tea", "known"), ("chess", "known"), ("Not fitted yet", "none"),
    ]  # fmt: skip
    topic = numbers(points.topic, "<u2")
    assert set(topic[tea[:6]]) == {0}
    assert set(topic[chess[:6]]) == {1}
    assert set(np.delete(topic, [*tea[:6], *chess[:6]])) == {2}
    assert numbers(points.labelled, "u1").sum() == 12
    workbench.fit()
    until(lambda: workbench.views.fitted is not None and not workbench.fitter.busy)
    after = workbench.document_map().points
    assert (after.x, after.y) == (points.x, points.y)
    names = np.array([one.name for one in after.topics])[numbers(after.topic, "<u2")]
    assert (names[tea] == "tea").mean() > 0.9
    assert (names[chess] == "chess").mean() > 0.9
    assert {"free", "none"} <= {one.kind for one in after.topics}
    assert map_points(workbench.views, layout) == after
    # Two topics are known: a document that lacks one of them may still have the other.
    row, key = int(tea[10]), next(one.key for one in after.topics if one.name == "chess")
    workbench.act("ann", Label(documents=[row], key=key, state="forbidden", request="3"))
    again = workbench.document_map().points
    assert numbers(again.topic, "<u2")[row] == numbers(after.topic, "<u2")[row]


def test_the_exported_report_has_the_places_of_the_workbench(workbench):
    workbench.act("ann", NewTopic(name="tea", documents=[0, 1, 2, 3], request="1"))
    workbench.act("ann", NewTopic(name="coffee", documents=[16, 17, 18, 19], request="2"))
    workbench.fit()
    until(lambda: workbench.views.fitted is not None and not workbench.fitter.busy)
    assert 'id="document-map"' not in workbench.exporter.export("report").read_text()
    workbench.maps.made = layout_of(80)
    page = workbench.exporter.export("report").read_text()
    assert f'"x":"{workbench.document_map().points.x}"' in page


def test_a_lasso_is_one_action_and_one_undo(workbench):
    workbench.maps.made = layout_of(80)
    before = workbench.document_map().points
    rows = list(range(10, 40))
    workbench.act("ann", NewTopic(name="mine", documents=rows, request="1"))
    assert numbers(workbench.document_map().points.labelled, "u1").nonzero()[0].tolist() == rows
    workbench.act("ann", NoneOfThese(documents=rows[:5], request="2"))
    points = workbench.document_map().points
    assert numbers(points.topic, "<u2")[rows[:5]].tolist() == [1] * 5  # none of these
    assert numbers(points.labelled, "u1").sum() == 30
    workbench.act("ann", Undo(request="3"))
    workbench.act("ann", Undo(request="4"))
    assert workbench.document_map().points == before


def test_a_deleted_topic_is_none(workbench):
    workbench.maps.made = layout_of(80)
    workbench.act("ann", NewTopic(name="mine", documents=[1, 2], request="1"))
    workbench.act("ann", DeleteTopic(key=1, request="2"))
    points = workbench.document_map().points
    assert [topic.kind for topic in points.topics] == ["none"]
    assert set(numbers(points.topic, "<u2")) == {0}


def test_a_sample_has_rows_and_a_note(workbench):
    workbench.maps.made = layout_of(80, rows=[3, 5, 70])
    points = workbench.document_map().points
    assert numbers(points.rows, "<u4").tolist() == [3, 5, 70]
    assert points.sample == "The map shows 3 of 80 documents: all labelled ones, and others at random."
    workbench.act("ann", NewTopic(name="mine", documents=[5, 6], request="1"))
    assert numbers(workbench.document_map().points.labelled, "u1").tolist() == [0, 1, 0]


def test_a_small_project_has_no_map(tmp_path):
    Workbench.make(tmp_path / "small.steer", Documents(["a", "b"], ["green tea", "black coffee"]))
    workbench = Workbench(tmp_path / "small.steer")
    page = workbench.document_map()
    assert (page.points, page.status.state) == (None, "missing")
    assert page.status.message == maps.obstacle(2)
    workbench.close()


@pytest.mark.parametrize(
    ("report", "why"), [(Failed("no memory"), "no memory"), (Ended(-9), "its process ended early")]
)
def test_a_failed_map_is_reported_and_harms_nothing(workbench, report, why):
    workbench.maps.on_report(report)
    page = workbench.document_map()
    assert page.points is None
    assert page.status == MapStatus("failed", message=f"The map could not be made: {why}.")
    workbench.act("ann", NewTopic(name="tea", documents=[0], request="1"))
    assert workbench.session.counts[1] == 1


@needs_umap
def test_a_corpus_without_terms_has_no_map(tmp_path):
    Workbench.make(tmp_path / "empty.steer", Documents(list(range(60)), ["the and of"] * 60))
    workbench = Workbench(tmp_path / "empty.steer")
    workbench.document_map()
    until(lambda: workbench.maps.status.state == "failed")
    assert workbench.maps.status.message.startswith("The map could not be made: ")
    assert "ended early" not in workbench.maps.status.message
    workbench.close()


@pytest.mark.parametrize("rows", [None, [0, 4, 9]])
def test_a_layout_comes_back_from_a_project(rows):
    layout = layout_of(10, rows=rows)
    back = restored_layout(stored_layout(layout), 10)
    assert np.array_equal(back.rows, layout.rows)
    assert np.abs(back.places - layout.places).max() <= 0.5 / 65535 + 1e-7
    assert (back.aspect, back.documents) == (1.4, 10)


@pytest.mark.parametrize(
    "change", [{"x": "AAA="}, {"rows": "/////w=="}, {"aspect": 0}, {"aspect": None}, {"x": 3}, {"y": "*"}]
)
def test_a_forged_layout_is_made_again(path, change):
    workbench = Workbench(path)
    workbench.project.set({STORED: stored_layout(layout_of(80)) | change})
    workbench.close()
    again = Workbench(path)
    assert again.maps.made is None
    again.close()


def test_beginnings(workbench):
    found = workbench.views.beginnings([3, 0, 3])
    assert [(one.row, one.id) for one in found] == [(3, "d3"), (0, "d0")]
    assert found[0].text == workbench.project.document(3)[1]
    with pytest.raises(NotFound):
        workbench.views.beginnings([80])
