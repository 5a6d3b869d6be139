"""People who label together, over HTTP: quotas with four people at once, agreement, decisions, codebooks."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from topicsteer.corpora import Documents

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("msgspec")
with warnings.catch_warnings(action="ignore"):  # it would rather have another version of httpx
    from starlette.testclient import TestClient

from topicsteer.app.web.routes import guarded
from topicsteer.app.workbench.actions import NewTopic, apply
from topicsteer.app.workbench.workbench import Workbench

HOME = "http://127.0.0.1:8765"


@pytest.fixture
def workbench(tmp_path):
    path = tmp_path / "drinks.steer"
    Workbench.make(path, Documents([f"d{k}" for k in range(40)], [f"text {k}" for k in range(40)]))
    workbench = Workbench(path)
    apply(workbench.session, "ann", NewTopic(name="tea"))
    workbench.session.change_settings(refit_after=0, overlap=10)
    yield workbench
    workbench.close()


@pytest.fixture
def page(workbench):
    app = guarded(workbench, "127.0.0.1", 8765, token="secret")
    with TestClient(app, base_url=HOME, follow_redirects=False) as page:
        answer = page.get("/?token=secret")
        page.headers.update({"origin": HOME, "x-topicsteer": answer.headers["x-topicsteer"]})
        yield page


def act(page, action, who="ann", **values):
    answer = page.post("/api/act", json={"who": who, "action": action, **values})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_quotas_are_exact_with_four_people_at_once(workbench, page):
    session, people = workbench.session, ["ann", "bob", "cid", "dan"]

    def finished():
        with session.lock:
            return bool(session.labelled.all()) and not any(session.due_rows(who) for who in people)

    def work(who):
        while not finished():
            row = page.get("/api/next", params={"who": who, "mode": "random"}).json()["row"]
            if row is not None:
                act(page, "label", who, documents=[row], key=1, state="permitted" if row % 3 else "forbidden")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, people))
    several = set(session.overlap.rows(10))
    assert len(several) == 4
    assert [len(session.labellers(row)) for row in range(40)] == [2 if row in several else 1 for row in range(40)]
    found = page.get("/api/agreement", params={"who": "ann"}).json()
    assert (found["overlap"], found["overlap_done"], found["differing"]) == (4, 4, 0)


def test_disagreements_are_listed_and_settled(page):
    act(page, "label", "ann", documents=[2], key=1, state="permitted")
    act(page, "label", "bob", documents=[2], key=1, state="forbidden")
    (one,) = page.get("/api/disagreements", params={"who": "eve"}).json()["disagreements"]
    assert (one["id"], one["key"], one["yes"], one["no"], one["text"]) == ("d2", 1, ["ann"], ["bob"], "text 2")
    done = act(page, "settle", "eve", document=2, key=1, state="forbidden")
    assert done["documents"]["2"]["settled"] == {"1": "forbidden"}
    assert page.get("/api/disagreements", params={"who": "eve"}).json()["total"] == 0
    assert page.get("/api/disagreements", params={"who": "eve", "start": -1}).status_code == 422
    wrong = {"who": "(decision)", "action": "label", "documents": [2], "key": 1, "state": "permitted"}
    assert page.post("/api/act", json=wrong).status_code == 422


def test_a_codebook_goes_out_and_comes_in(workbench, page):
    act(page, "new topic", name="coffee & cake", description="hot <b>")
    made = page.post("/api/export", json={"who": "ann", "kind": "codebook-refi-qda"}).json()
    data = (workbench.exporter.folder / made["name"]).read_bytes()
    act(page, "delete topic", key=2)
    answer = page.post("/api/topics?who=ann&name=codebook.qdc", content=data)
    assert answer.json()["message"] == "1 new topics from codebook.qdc."
    assert [(t.name, t.description) for t in workbench.session.live] == [("tea", ""), ("coffee & cake", "hot <b>")]
    bad = page.post("/api/topics?who=ann&name=book.qdc", content=b"<!DOCTYPE c []><CodeBook/>")
    assert bad.status_code == 422
    assert bad.json()["error"].startswith("book.qdc: it has a document type")
