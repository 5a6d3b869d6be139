"""Shares of topics by group in the workbench, when the worker has estimated them."""

import time

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="the workbench needs the extra app")

from problems import planted_texts

from topicsteer import TopicModel
from topicsteer.app.workbench.actions import ChangeTopic, DeleteTopic, Label, NewTopic, Undo, apply
from topicsteer.app.workbench.progress_view import breakdowns, stored_shares
from topicsteer.app.workbench.project import State, read_documents
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents

HOSTILE = "<b onclick=alert(1)>north</b> \u202e"


def until(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def workbench(tmp_path_factory):
    """Two topics of 60 documents each; the first is more frequent in the first region and early."""
    path = tmp_path_factory.mktemp("groups") / "texts.steer"
    texts = planted_texts(2, size=60)
    rng = np.random.default_rng(0)
    first = np.arange(120) < 60
    region = np.where(rng.random(120) < np.where(first, 0.8, 0.2), HOSTILE, "south").tolist()
    months = (rng.integers(1, 7, 120) + np.where(first, 0, 6)).tolist()
    columns = {
        "region": region,
        "date": [f"2024-{month:02}-05" for month in months],
        "note": [f"n{k}" for k in range(120)],
    }
    Workbench.make(path, Documents([f"d{k}" for k in range(120)], texts, columns=columns))
    bench = Workbench(path)
    for name in ("tea", "coffee"):
        apply(bench.session, "ann", NewTopic(name=name))
    for k in range(2):
        rows = list(range(60 * k, 60 * k + 15))
        bench.session.origins.served |= dict.fromkeys(rows, State.RANDOM)  # as the queue of random documents does
        apply(bench.session, "ann", Label(documents=rows, key=k + 1, state="permitted"))
    bench.session.change_settings(free_topics=0)
    yield bench
    bench.close()


@pytest.mark.slow
def test_shares_have_intervals_after_a_fit(workbench):
    assert list(workbench.project.groups) == ["region", "date"]
    assert breakdowns(workbench.views) == []  # nothing is fitted
    notices = []
    workbench.listeners.append(notices.append)
    assert workbench.fit()
    until(lambda: workbench.views.fitted is not None)
    until(lambda: workbench.views.fitted.record.shares)
    until(lambda: workbench.status.state == "idle")
    assert "shares" in {notice.status.stage for notice in notices if notice.kind == "fit"}
    _, found, over_time = breakdowns(workbench.views)
    assert list(found.groups) == [HOSTILE.strip(), "south"]
    tea = found.shares("tea")
    assert all(share.low <= share.share <= share.high for share in tea.values())
    assert tea[HOSTILE.strip()].low > tea["south"].high  # a clear difference
    assert over_time.period == "month"
    keys, shares = stored_shares(workbench.views, "region")
    assert keys[:2] == [1, 2]
    assert any("30 drawn at random" in note for note in shares.sentences)


@pytest.mark.slow
def test_they_equal_the_shares_of_the_model(workbench):
    until(lambda: workbench.views.fitted and workbench.views.fitted.record.shares)
    documents = read_documents(workbench.project.path)
    model = TopicModel.load(workbench.views.fitted.folder).attach(documents)
    expected = model.findings.shares(workbench.project.groups["region"])
    keys, found = stored_shares(workbench.views, "region")
    for key in workbench.views.fitted.keys:
        k = workbench.views.fitted.keys.index(key)
        for name in ("share", "low", "high"):
            own = getattr(found, name)[:, keys.index(key)]
            np.testing.assert_allclose(own, getattr(expected, name)[:, k], atol=2e-5)


@pytest.mark.slow
def test_they_are_stored_and_follow_renamed_and_deleted_topics(workbench):
    until(lambda: workbench.views.fitted and workbench.views.fitted.record.shares)
    _, record = workbench.project.models.last()
    assert set(record.shares) == {"", "region", "date"}  # "": all documents
    assert np.array(record.shares["region"].arrays["share"]).shape == (3, len(record.shares["region"].keys))
    apply(workbench.session, "ann", ChangeTopic(key=1, name="Tea!"))
    assert {*stored_shares(workbench.views, "region")[1].topics} >= {"Tea!", "coffee"}
    apply(workbench.session, "ann", DeleteTopic(key=1))
    assert 1 not in stored_shares(workbench.views, "region")[0]
    apply(workbench.session, "ann", Undo())
    apply(workbench.session, "ann", Undo())


@pytest.mark.slow
def test_reports_have_the_shares(workbench):
    until(lambda: workbench.views.fitted and workbench.views.fitted.record.shares)
    page = workbench.exporter.export("report").read_text()
    assert 'id="shares-1-table"' in page
    assert "&lt;b onclick=alert(1)&gt;north&lt;/b&gt; ⟦U+202E⟧" in page
    assert 'id="shares-2-table"' in page
