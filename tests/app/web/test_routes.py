"""Routes, messages, fits in the background and exports, without a browser."""

import csv
import gzip
import json
import shutil
import sqlite3
import threading
import time
import warnings
import zipfile

import numpy as np
import pytest

from topicsteer import TopicModel
from topicsteer.analysis import map_layout as maps
from topicsteer.corpora import Documents, attach_labels, read_labels, read_table

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("msgspec")
with warnings.catch_warnings(action="ignore"):  # it would rather have another version of httpx
    from starlette.testclient import TestClient
import msgspec
from starlette.websockets import WebSocketDisconnect

from topicsteer.app.web import messages
from topicsteer.app.web.guard import Guard, check_address
from topicsteer.app.web.routes import guarded, listen
from topicsteer.app.workbench import fit_process, responses
from topicsteer.app.workbench.actions import ChangeTopic, Label, NewTopic, Undo, apply
from topicsteer.app.workbench.current_model import GroupShares
from topicsteer.app.workbench.errors import Invalid, NotFound, Refused
from topicsteer.app.workbench.progress_view import breakdowns
from topicsteer.app.workbench.project import read_documents
from topicsteer.app.workbench.views import Selection
from topicsteer.app.workbench.workbench import Workbench

WORDS = {"tea": "green leaf cup pot steam", "coffee": "bean roast cup grind dark", "rain": "cloud storm wind wet grey"}
HOME, NOTICES = "http://127.0.0.1:8765", "ws://127.0.0.1:8765/api/notices"

pytestmark = pytest.mark.slow


def corpus(n=60):
    rng = np.random.default_rng(0)
    names = list(WORDS)
    texts = [" ".join(rng.choice(WORDS[names[k % 3]].split(), 8)) + f" number{k % 7}" for k in range(n)]
    return Documents([f"=d{k}" for k in range(n)], texts, columns={"group": ["a", "b", "c", "d"] * (n // 4)})


def make(folder):
    path = folder / "drinks.steer"
    Workbench.make(path, corpus())
    return Workbench(path)


def until(what, seconds=90):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


@pytest.fixture
def workbench(tmp_path):
    workbench = make(tmp_path)
    yield workbench
    workbench.close()


def client(workbench, **options):
    app = guarded(workbench, "127.0.0.1", 8765, token="secret", **options)
    return TestClient(app, base_url=HOME, follow_redirects=False)


@pytest.fixture
def page(workbench):
    with client(workbench) as page:
        answer = page.get("/?token=secret")
        assert answer.status_code == 200
        page.headers["origin"] = HOME
        page.headers["x-topicsteer"] = answer.headers["x-topicsteer"]
        yield page


def act(page, action, who="ann", request=None, **values):
    return page.post("/api/act", json={"who": who, "action": action, "request": request, **values})


# --- access ---


def test_nothing_without_the_token(workbench):
    with client(workbench) as page:
        for path in ("/", "/?token=wrong", "/pages/app.js", "/api/state?who=ann", "/exports/labels.csv", "/login"):
            answer = page.get(path)
            assert answer.status_code == 403
            assert "token" in answer.text
        assert page.get("/api/state?who=ann&token=secret").status_code == 403  # in the address of the page only
        answer = page.get("/?token=secret")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert page.get("/api/state?who=ann").status_code == 403  # the cookie alone is not enough
        secret = {"x-topicsteer": answer.headers["x-topicsteer"]}
        assert page.get("/api/state?who=ann", headers=secret).status_code == 200
        assert page.get("/pages/../server.py").status_code == 404
        assert page.get("/pages/login.html").status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8765"},
        {"host": "127.0.0.1:9999"},
        {"host": "127.0.0.1.evil.example:8765"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "https://127.0.0.1:8765"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_pages_are_refused(page, headers):
    assert page.get("/api/state?who=ann", headers=headers).status_code == 403
    assert page.post("/api/act", json={}, headers=headers).status_code == 403
    with pytest.raises(WebSocketDisconnect), page.websocket_connect(NOTICES, headers=headers):
        pass


@pytest.mark.parametrize("host", ["127.0.0.1:²", "127.0.0.1:٣", "127.0.0.1:" + "9" * 5000, "[::1", ":", "²"])
def test_an_odd_host_is_refused_before_anything_else(workbench, host):
    with client(workbench) as page:
        assert page.get("/", headers={"host": host.encode("utf-8")}).status_code == 403


def test_an_endless_address_is_refused(page):
    assert page.get("/api/documents?who=ann&query=" + "a" * 61_000).status_code == 414


def test_changes_need_an_origin(workbench):
    with client(workbench) as page:
        secret = page.get("/?token=secret").headers["x-topicsteer"]
        page.headers["x-topicsteer"] = secret
        assert act(page, "new topic", name="tea").status_code == 403
        with pytest.raises(WebSocketDisconnect), page.websocket_connect(NOTICES):
            pass
        bearer = {"authorization": f"Bearer {secret}"}  # no other way around the cookie
        assert page.post("/api/act", json={"who": "a", "action": "undo"}, headers=bearer).status_code == 403
        visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        assert page.get("/", headers=visit).status_code == 200  # a link in a mail may lead here


def test_headers_permit_only_the_files_of_the_page(page):
    policy = page.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert page.get("/").headers["x-frame-options"] == "DENY"
    assert page.get("/pages/app.js").headers["x-content-type-options"] == "nosniff"
    html = page.get("/").text
    assert "<style" not in html
    assert "onclick" not in html
    assert "//" not in html.replace("<!doctype", "")


def test_other_machines_need_a_password(workbench):
    for host in ("0.0.0.0", "192.168.0.7", "example.org"):
        with pytest.raises(ValueError, match="password"):
            check_address(host, None)
        with pytest.raises(ValueError, match="password"):
            Guard(None, host, 1)
    with client(workbench, password="open sesame") as page:
        page.headers["origin"] = HOME
        assert page.get("/").headers["location"] == "/login"
        assert page.get("/login").status_code == 200
        assert page.get("/pages/app.js").status_code == 403
        assert page.post("/login", json={"password": ["open sesame"]}).status_code == 422
        assert page.post("/login", json={"password": "sesame"}).status_code == 403
        assert page.post("/login", json={"password": "open sesame"}).status_code == 200
        assert page.get("/").status_code == 200


def test_passwords_cannot_be_guessed_for_ever_and_lock_nobody_else_out():
    guard = Guard(None, "0.0.0.0", 1, "right")
    assert [guard.try_password("wrong", "10.0.0.1") for _ in range(10)] == [None] * 10
    for address in ("10.0.0.1", "10.0.0.1"):
        with pytest.raises(Refused, match="Wait a minute"):
            guard.try_password("right", address)
    assert guard.try_password("right", "10.0.0.2") is not None
    for k in range(10):
        guard.try_password("wrong", f"2001:db8::{k}")
    with pytest.raises(Refused, match="Wait a minute"):  # one subscriber has many addresses
        guard.try_password("right", "2001:db8::ffff")
    assert guard.try_password("right", "2001:db9::1") is not None
    assert guard.try_password("\ud800", "10.0.0.3") is None
    assert guard.own_host("10.0.0.4:1")
    assert guard.own_host("[::1]:1")
    assert not guard.own_host("evil.example:1")


def test_wrong_passwords_are_forgotten_after_a_minute(monkeypatch):
    clock = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    guard = Guard(None, "0.0.0.0", 1, "right")
    for _ in range(5):
        guard.try_password("wrong", "10.0.0.1")
    clock[0] += 40
    for _ in range(5):
        guard.try_password("wrong", "10.0.0.1")
    with pytest.raises(Refused, match="Wait a minute"):
        guard.try_password("right", "10.0.0.1")
    clock[0] += 21  # the first five are too old, the others are not
    for _ in range(5):
        assert guard.try_password("wrong", "10.0.0.1") is None
    with pytest.raises(Refused, match="Wait a minute"):
        guard.try_password("right", "10.0.0.1")
    clock[0] += 61
    assert guard.try_password("right", "10.0.0.1") is not None


def test_clients_of_ipv4_do_not_share_their_wrong_passwords_on_a_socket_of_ipv6():
    guard = Guard(None, "::", 1, "right")
    for _ in range(10):
        guard.try_password("wrong", "::ffff:10.0.0.1")
    for address in ("::ffff:10.0.0.1", "10.0.0.1"):
        with pytest.raises(Refused, match="Wait a minute"):
            guard.try_password("right", address)
    assert guard.try_password("right", "::ffff:10.0.0.2") is not None


def test_a_numeric_host_is_only_accepted_where_other_machines_may_ask():
    local = Guard(None, "127.0.0.1", 1)
    assert [local.own_host(host) for host in ("127.0.0.1:1", "localhost:1", "[::1]:1")] == [True] * 3
    assert not any(local.own_host(host) for host in ("10.0.0.4:1", "127.0.0.2:1", "[fe80::1]:1", "0.0.0.0:1"))
    assert Guard(None, "0.0.0.0", 1, "right").own_host("10.0.0.4:1")


def test_people_who_only_look_end_no_session_of_people_who_edit():
    stored = []
    guard = Guard(None, "0.0.0.0", 1, "right", keep=stored.append)
    editor, look = guard.sessions.exchange(guard.sessions.token), guard.sessions.look_token
    first = guard.sessions.exchange(look)
    for _ in range(1_005):
        assert guard.sessions.exchange(look) is not None
    assert guard.sessions.of_cookie(editor.cookie) is editor
    assert guard.sessions.of_cookie(first.cookie) is None  # they are limited too
    assert len(stored[-1]) < 100
    restarted = Guard(None, "0.0.0.0", 1, "right", kept=stored[-1])
    assert restarted.sessions.of_cookie(editor.cookie).role == "edit"


def test_wrong_passwords_are_slowed_down_and_stopped(workbench):
    with client(workbench, password="open sesame") as page:
        page.headers["origin"] = HOME
        for _ in range(10):
            page.app.try_password("wrong", "testclient")
        answer = page.post("/login", json={"password": "open sesame"})
        assert answer.status_code == 429
        assert "Wait a minute" in answer.json()["error"]
        assert "set-cookie" not in answer.headers


def test_an_error_of_the_workbench_is_reported(workbench, monkeypatch, caplog):
    app = guarded(workbench, "127.0.0.1", 8765, token="secret")
    with TestClient(app, base_url=HOME, raise_server_exceptions=False) as page:
        page.headers["x-topicsteer"] = page.get("/?token=secret").headers["x-topicsteer"]
        monkeypatch.setattr(workbench.views, "progress", lambda: 1 / 0)
        answer = page.get("/api/state?who=ann")
    assert answer.status_code == 500
    assert answer.json()["error"] == "The workbench failed with an error: ZeroDivisionError: division by zero"
    assert "GET /api/state failed" in caplog.text


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (sqlite3.OperationalError("database is locked"), 503, "another program uses the project"),
        (sqlite3.OperationalError("database or disk is full"), 507, "make room"),
        (OSError(28, "No space left on device"), 507, "make room"),
        (MemoryError(), 503, "not enough memory"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), 400, "cannot be encoded"),
    ],
)
def test_exceptions_become_a_status(page, workbench, monkeypatch, error, status, reason):
    def fail():
        raise error

    monkeypatch.setattr(workbench.views, "progress", fail)
    answer = page.get("/api/state?who=ann")
    assert answer.status_code == status
    assert reason in answer.json()["error"]


def test_the_token_serves_once_and_the_cookie_alone_opens_nothing(workbench):
    renewed = []
    app = guarded(workbench, "127.0.0.1", 8765, token="secret", renewed=renewed.append)
    with TestClient(app, base_url=HOME) as page:
        first = page.get("/?token=secret")
        assert f'content="{first.headers["x-topicsteer"]}"' in first.text
        assert "secret=" not in first.headers["set-cookie"]
        assert first.headers["set-cookie"].startswith("topicsteer-8765=")
        assert page.get("/").status_code == 200  # by its cookie, without the secret
        assert 'name="topicsteer-secret" content=""' in page.get("/").text
        assert "x-topicsteer" not in page.get("/").headers
        stolen = dict(page.cookies)
    with TestClient(app, base_url=HOME, cookies=stolen) as thief:  # another server on this machine saw the cookie
        thief.headers["origin"] = HOME
        assert thief.get("/api/state?who=ann").status_code == 403
        assert thief.get("/exports/labels.csv").status_code == 403
        assert act(thief, "new topic", name="tea").status_code == 403
        assert thief.get("/api/state?who=ann", headers={"x-topicsteer": next(iter(stolen.values()))}).status_code == 403
        with pytest.raises(WebSocketDisconnect), thief.websocket_connect(NOTICES):
            pass
    with TestClient(app, base_url=HOME) as late:
        assert late.get("/?token=secret").status_code == 403
        assert len(renewed) == 1
        assert late.get(f"/?token={renewed[0]}").status_code == 200
        other = late.get("/").headers.get("x-topicsteer", "")
        assert other != first.headers["x-topicsteer"]


def test_a_restarted_workbench_lets_the_open_tab_in_again(workbench):
    with TestClient(guarded(workbench, "127.0.0.1", 8765, token="secret"), base_url=HOME) as page:
        secret = page.get("/?token=secret").headers["x-topicsteer"]
        cookies = dict(page.cookies)
    stored = json.dumps(workbench.project.settings())
    assert secret not in stored
    assert not any(value in stored for value in cookies.values())  # hashes only
    again = guarded(workbench, "127.0.0.1", 8765)
    with TestClient(again, base_url=HOME, cookies=cookies) as page:
        assert page.get("/").status_code == 200
        assert page.get("/api/state?who=ann", headers={"x-topicsteer": secret}).status_code == 200
        assert page.get("/api/state?who=ann").status_code == 403  # the cookie alone opens nothing
        assert page.get("/api/state?who=ann", headers={"x-topicsteer": "other"}).status_code == 403
    changed = guarded(workbench, "127.0.0.1", 8765, password="new")
    with TestClient(changed, base_url=HOME, cookies=cookies) as page:
        assert page.get("/api/state?who=ann", headers={"x-topicsteer": secret}).status_code == 403


def test_the_socket_takes_the_secret_as_a_protocol(workbench):
    app = guarded(workbench, "127.0.0.1", 8765, token="secret")
    with TestClient(app, base_url=HOME) as page:
        secret = page.get("/?token=secret").headers["x-topicsteer"]
        page.headers["origin"] = HOME
        with page.websocket_connect(NOTICES, subprotocols=["topicsteer", secret]) as socket:
            assert socket.accepted_subprotocol == "topicsteer"
        with pytest.raises(WebSocketDisconnect), page.websocket_connect(NOTICES, subprotocols=["topicsteer", "x"]):
            pass


def test_a_link_for_people_who_only_look(workbench):
    app = guarded(workbench, "127.0.0.1", 8765)
    for _ in range(2):  # it serves several people
        with TestClient(app, base_url=HOME) as page:
            answer = page.get(f"/?token={app.sessions.look_token}")
            assert '<body class="look">' in answer.text
            page.headers.update({"origin": HOME, "x-topicsteer": answer.headers["x-topicsteer"]})
            assert page.get("/api/state?who=ann").status_code == 200
            assert page.get("/api/documents?who=ann").status_code == 200
            actions = (
                "act",
                "fit",
                "adopt",
                "split",
                "cancel",
                "export",
                "import?who=ann",
            )
            for path in (f"/api/{action}" for action in actions):
                refused = page.post(path, json={"who": "ann", "action": "new topic", "name": "tea"})
                assert refused.status_code == 403
                assert "looking only" in refused.text
    assert not workbench.session.topics


def test_a_busy_port_is_replaced_unless_it_was_asked_for():
    with listen("127.0.0.1", 0) as busy:
        port = busy.getsockname()[1]
        with listen("127.0.0.1", None, usual=port) as other:
            assert other.getsockname()[1] != port
        with pytest.raises(ValueError, match=f"cannot listen on 127.0.0.1, port {port}: .*; try another --port"):
            listen("127.0.0.1", port)


def test_a_refusal_carries_its_status(page, workbench):
    act(page, "new topic", name="tea")
    found = {
        404: page.get("/exports/none.csv"),
        409: act(page, "new topic", name="tea"),
        422: act(page, "change topic", key=1, name="more than the 404" * 9),  # whatever the words of the message are
    }
    assert [answer.status_code for answer in found.values()] == list(found)
    assert all(answer.json()["error"] for answer in found.values())


def test_uploads_have_a_limit(page):
    answer = page.post("/api/act", content=b"x" * (2 << 20))
    assert (answer.status_code, "1 MB" in answer.json()["error"]) == (413, True)
    lie = page.post("/api/act", content=(b"x" * 65536 for _ in range(40)), headers={"content-length": "10"})
    assert lie.status_code in (400, 413)
    assert page.post("/api/import?who=ann&name=a.csv", content=b"x" * (33 << 20)).status_code == 413


def test_an_upload_that_unpacks_to_much_more_is_refused(page, workbench):
    act(page, "new topic", name="tea")
    bomb = gzip.compress(b"id,label\n") + gzip.compress(b"0" * (1 << 24)) * 40
    assert len(bomb) < 1 << 20
    answer = page.post("/api/import?who=ann&name=labels.csv.gz", content=bomb)
    assert answer.status_code == 422
    assert "fill the memory" in answer.json()["error"]


# --- answers and refusals ---


def test_labels_reach_every_window(page):
    with page.websocket_connect(NOTICES) as socket:
        assert act(page, "new topic", name="tea").status_code == 200
        assert socket.receive_json()["topics"] is True
        assert socket.receive_json() == {"kind": "advised"}  # memberships followed
        done = act(page, "label", documents=[3], key=1, state="permitted", request="r1").json()
        assert done["documents"]["3"]["mine"] == {"1": "permitted"}
        assert socket.receive_json() | {"progress": 0} == {
            "kind": "changed",
            "who": "ann",
            "documents": [3],
            "many": False,
            "topics": False,
            "progress": 0,
        }
    assert act(page, "label", documents=[3], key=1, state="permitted", request="r1").json()["repeated"]
    act(page, "label", who="ben", documents=[3], key=1, state="forbidden")
    shown = page.get("/api/documents/3?who=ann").json()["labels"]
    assert shown["differing"] == [1]
    assert shown["others"] == {"ben": {"1": "forbidden"}}
    assert page.get("/api/state?who=ann").json()["progress"]["differing"] == 1


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/api/state", 422, "Enter your name"),
        ("/api/state?who=%20", 422, "Enter your name"),
        ("/api/agreement?who=file:%20a.csv", 422, "does not begin with 'file: '"),
        ("/api/state?who=ann&extra=1", 422, "unknown field `extra`"),
        ("/api/documents/999?who=ann", 404, "no document number 999"),
        ("/api/documents/1?who=ann&start=-1", 422, "`int` >= 0 - at `$.start`"),
        ("/api/documents?who=ann&filter=x", 422, "Invalid enum value 'x' - at `$.filter`"),
        ("/api/documents?who=ann&sort=x", 422, "at `$.sort`"),
        ("/api/documents?who=ann&page=x", 422, "Expected `int`, got `str` - at `$.page`"),
        ("/api/documents?who=ann&page=²", 422, "at `$.page`"),
        ("/api/documents?who=ann&page=" + "9" * 5000, 422, "GET /api/documents"),
        ("/api/documents/" + "9" * 5000 + "?who=ann", 422, "GET /api/documents"),
        ("/api/documents/x?who=ann", 422, "at `$.row`"),
        ("/api/documents?who=ann&key=x", 422, "at `$.key`"),
        ("/api/documents?who=ann&key=9", 404, "no longer exists"),
        ("/api/documents?who=ann&key=free-0", 409, "no fitted model yet"),
        ("/api/documents?who=ann&key=none", 409, "no fitted model yet"),
        ("/api/documents?who=ann&query=" + 501 * "a", 422, "length <= 500 - at `$.query`"),
        ("/api/next?who=ann&mode=x", 422, "at `$.mode`"),
        ("/api/next?who=ann&seen=1,x", 422, "at `$.seen`"),
        ("/api/beginnings?who=ann", 422, "missing required field `rows`"),
        ("/exports/nothing.csv", 404, "not in the export folder"),
    ],
)
def test_a_bad_question_is_refused_with_its_reason(page, path, status, reason):
    answer = page.get(path)
    assert answer.status_code == status
    assert reason in answer.json()["error"]


@pytest.mark.parametrize("path", ["/exports/..%2f..%2fetc%2fpasswd", "/api/nothing", "/pages/nothing.js"])
def test_an_unknown_address_is_not_found(page, path):
    assert page.get(path).status_code == 404


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("state?who=ann", messages.State),
        ("next?who=ann&seen=1,2", responses.NextDocument),
        ("documents/3?who=ann", responses.DocumentView),
        ("documents/3?who=ann&start=4", responses.TextPart),
        ("documents?who=ann&query=cup&page=1", responses.DocumentPage),
        ("documents?who=ann&all_rows=true", responses.DocumentRows),
        ("agreement?who=ann", responses.AgreementPage),
    ],
)
def test_an_answer_has_its_type(page, path, kind):
    act(page, "new topic", name="tea", documents=[3])
    answer = page.get(f"/api/{path}")
    assert answer.status_code == 200
    fields = set(kind.__struct_fields__)
    assert set(answer.json()) == fields
    assert msgspec.json.decode(answer.content, type=kind)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"[1]", "Expected `object`, got `array`"),
        (b"[" * 100_000, "Expected `object`, got `array`"),
        (b'{"who": "ann"}', "missing required field `action`"),
        (b'{"who": "ann", "action": "dance"}', "Invalid value 'dance' - at `$.action`"),
        (b'{"who": "ann", "action": "label", "x": 1}', "field"),
        (b'{"who": "ann", "action": "undo", "topic": 1}', "unknown field `topic`"),
        (b'{"who": ["ann"], "action": "undo"}', "Expected `str`, got `array` - at `$.who`"),
        (b'{"who": "ann", "action": "undo", "request": ""}', "at `$.request`"),
        (b'{"who": "ann", "action": "skip", "documents": [0, "1"]}', "Expected `int`, got `str` - at `$.documents[1]`"),
        (b'{"who": "ann", "action": "skip", "documents": [true]}', "Expected `int`, got `bool`"),
        (b'{"who": "ann", "action": "label", "documents": [0], "key": 1, "state": "maybe"}', "at `$.state`"),
        (b'{"who": "ann", "action": "change topic", "key": 1, "gone": true}', "unknown field `gone`"),
    ],
)
def test_a_bad_action_is_refused_with_its_reason(page, workbench, body, reason):
    answer = page.post("/api/act", content=body)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("POST /api/act: ")
    assert reason in answer.json()["error"]
    assert workbench.session.seq == 0


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"who": "\xff", "action": "undo"}'])
def test_a_request_that_is_no_json_is_refused(page, body):
    answer = page.post("/api/act", content=body)
    assert answer.status_code == 400
    assert "Reload the page" in answer.json()["error"]


@pytest.mark.parametrize("path", ["fit", "cancel", "export"])
def test_other_requests_are_typed_too(page, path):
    answer = page.post(f"/api/{path}", json={"who": "ann", "kind": "labels", "more": 1})
    assert answer.status_code == 422
    assert "unknown field" in answer.json()["error"]
    assert page.post("/api/export", json={"who": "ann", "kind": "x"}).status_code == 422
    assert page.post("/api/fit", json={"who": " "}).status_code == 422
    assert page.post("/api/fit", json={"who": "ann", "wrong": "yes"}).status_code == 422
    assert page.post("/api/import?who=ann&nam=a.csv", content=b"").status_code == 422


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("adopt", {"source": "1", "name": "x"}, 422, "at `$.source`"),
        ("adopt", {"source": [-1], "name": "x"}, 422, "at `$.source"),
        ("adopt", {"source": [10_000], "name": "x"}, 404, "no document number"),
        ("adopt", {"source": "free-0", "name": "x"}, 409, "no fitted model yet"),
        ("adopt", {"source": [0], "name": "x", "number": 1}, 422, "number"),
        ("split", {"key": "free-0"}, 422, "at `$.key`"),
        ("split", {"key": 1}, 409, "no fitted model yet"),
    ],
)
def test_a_bad_edit_of_free_topics_is_refused_with_its_reason(page, workbench, path, body, status, reason):
    answer = page.post(f"/api/{path}", json={"who": "ann"} | body)
    assert answer.status_code == status
    assert reason in answer.json()["error"]
    assert workbench.session.live == []
    assert workbench.session.settings.free_topics == 10


@pytest.mark.parametrize(
    ("action", "values"),
    [
        ("label", {"documents": [0], "state": "maybe"}),
        ("answer", {"document": 0, "state": "cleared"}),
        ("settle", {"document": 0, "state": "yes"}),
    ],
)
def test_a_state_that_no_label_has_is_refused(page, workbench, action, values):
    act(page, "new topic", name="tea")
    answer = act(page, action, key=1, **values)
    assert answer.status_code == 422
    assert "at `$.state`" in answer.json()["error"]
    assert not workbench.session.labelled.any()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("refit_after", "many", "Expected `int`, got `str`"),
        ("refit_after", None, "Expected `int`, got `null`"),
        ("free_topics", 501, "Expected `int` <= 500"),
        ("complete", 1, "Expected `bool`, got `int`"),
        ("world", "round", "Invalid enum value 'round'"),
        ("blind", "é", "Expected `bool`, got `str`"),
        ("overlap", -1, "Expected `int` >= 0"),
        ("overlap_people", 1.5, "Expected `int`, got `float`"),
        ("path_separator", {}, "Expected `str | null`, got `object`"),
    ],
)
def test_a_refused_setting_has_a_sentence(page, workbench, name, value, expected):
    before = workbench.session.settings
    answer = act(page, "settings", values={"complete": False} | {name: value})
    assert answer.status_code == 422
    assert f"{expected} - at `$.{name}`. Nothing was changed." in answer.json()["error"]
    assert workbench.session.settings == before


def test_an_unknown_setting_is_refused(page, workbench):
    answer = act(page, "settings", values={"colour": "red"})
    assert answer.status_code == 422
    assert "unknown field `colour`" in answer.json()["error"]


def test_a_page_only_receives(page):
    with page.websocket_connect(NOTICES) as socket:
        socket.send_text("hello")
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_text()
    assert closed.value.code == 1003


# --- fits and exports ---


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A workbench with two topics, labels and a fit."""
    workbench = make(tmp_path_factory.mktemp("fitted"))
    session = workbench.session
    for k, name in enumerate(("tea", "coffee")):
        apply(session, "ann", NewTopic(name=name))
        apply(session, "ann", Label(documents=list(range(k, 24, 3)), key=k + 1, state="permitted"))
    apply(session, "ann", Label(documents=[2], key=1, state="forbidden"))
    session.change_settings(free_topics=2)
    notices = []
    workbench.listeners.append(notices.append)
    assert workbench.fit()
    assert not workbench.fit()  # one at a time
    until(lambda: workbench.status.state == "idle" and workbench.views.fitted.suggestions)
    workbench.notices = notices
    yield workbench
    workbench.close()


@pytest.mark.slow
def test_a_fit_reports_and_is_stored(fitted):
    stages = [notice.status.stage for notice in fitted.notices if notice.kind == "fit"]
    assert "fit" in stages
    topics = fitted.views.topics()
    terms = [term for term, _ in topics.known[0].fit.terms[:4]]
    assert len(set(terms) & set(WORDS["tea"].split())) >= 3
    assert [topic.key for topic in topics.free] == ["free-0", "free-1"]
    document = fitted.views.document(30, "ann")
    assert document.likely[0].key == 1
    assert any(key == 1 for _, key, _ in document.pieces)
    suggested = fitted.views.fitted.suggestions[0].why
    assert fitted.queue.next("zoe", "suggested").why == f"{suggested[0].upper()}{suggested[1:]}."
    assert breakdowns(fitted.views) == []  # no label was drawn at random
    free = fitted.views.documents(Selection("ann", key="free-0"), sort="strength")
    assert free.total > 0
    assert "free-9" not in {entry.key for entry in topics.free}
    with pytest.raises(Refused, match="no longer exists"):
        fitted.views.documents(Selection("ann", key="free-9"))


@pytest.mark.slow
def test_the_labels_refit_to_the_same_topics(fitted):
    path = fitted.exporter.export("labels")
    documents = attach_labels(read_documents(fitted.project.path), read_labels(path))
    complete = fitted.session.training().complete
    assert not complete  # the topic coffee was made after the documents of tea were labelled
    with warnings.catch_warnings(action="ignore"):  # the corpus is a toy, and a free topic may copy a known one
        model = TopicModel(2, topics=["tea", "coffee"], complete=complete).fit(documents)
    first = fitted.views.fitted.model
    np.testing.assert_array_equal(model.state_.known_memberships, first.state_.known_memberships)
    assert model.state_.topics.table() == first.state_.topics.table()


@pytest.mark.slow
def test_labels_go_to_other_tools_and_come_back(fitted):
    said = read_labels(fitted.exporter.export("jsonl"))
    has = {record.id: record.labels for record in said.records if record.labels}
    assert has == {f"=d{row}": names for row, names in fitted.session.training().labels.items()}


@pytest.mark.slow
def test_tables_hold_no_formulas(fitted):
    for kind in ("labels", "log", "memberships"):
        with open(fitted.exporter.export(kind), newline="") as file:
            rows = list(csv.reader(file))
        assert len(rows) > 10
        assert not any(cell.startswith(("=", "+", "@", "-")) for row in rows for cell in row)


@pytest.mark.slow
def test_the_model_and_the_pages_are_exported(fitted, tmp_path):
    apply(fitted.session, "ann", ChangeTopic(key=1, name="Tea!", description="leaves <b>"))
    try:
        with zipfile.ZipFile(fitted.exporter.export("model")) as archive:
            archive.extractall(tmp_path)
        model = TopicModel.load(tmp_path / "model")
        assert model.state_.topics.names[:2] == ("Tea!", "coffee")
        assert model.predict(["green leaf pot steam"]) == [["Tea!"]]
        assert "Tea!" in fitted.exporter.export("report").read_text()
        methods = fitted.exporter.export("methods").read_text()
        assert "ann (17)" in methods  # with the forbidden label
        assert "No label is known to be drawn at random, so no share is known" in methods
    finally:
        apply(fitted.session, "ann", Undo())


@pytest.mark.slow
def test_topics_that_swapped_names_are_exported_under_the_new_ones(fitted, tmp_path):
    for key, name in ((1, "a third name"), (2, "tea"), (1, fitted.views.topics().free[0].name)):
        apply(fitted.session, "ann", ChangeTopic(key=key, name=name))
    try:
        with zipfile.ZipFile(fitted.exporter.export("model")) as archive:
            archive.extractall(tmp_path)
        model = TopicModel.load(tmp_path / "model")
        free = fitted.views.fitted.result.names[2]
        assert model.state_.topics.names[:3] == (f"{free} (1)", "tea", free)  # a free topic had the name already
        assert model.predict(["bean roast grind dark"]) == [["tea"]]
    finally:
        for _ in range(3):
            apply(fitted.session, "ann", Undo())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["../x.csv", "a/b.csv", "..", ".x", "/etc/passwd", "x\x00.csv", "", "a" * 900, "𝔘" * 79, "methods.md"]
)
def test_names_cannot_leave_the_export_folder(fitted, name):
    fitted.exporter.folder.mkdir(exist_ok=True)
    if name == "methods.md":  # the name of an export, but a link
        (fitted.exporter.folder / name).symlink_to("/etc/passwd")
    with pytest.raises(NotFound):
        fitted.exporter.written(name)
    with pytest.raises(Invalid):
        fitted.exporter.export(name)
    (fitted.exporter.folder / "methods.md").unlink(missing_ok=True)


@pytest.mark.slow
def test_a_failed_fit_leaves_the_last_model(fitted):
    before = fitted.views.fitted
    fitted.on_message(fit_process.Failed("no memory."))
    assert fitted.views.fitted is before
    assert fitted.status.error == "no memory. The last model stays in use."
    fitted.on_message(fit_process.Finished("/nowhere", 1.0, []))
    assert "could not be loaded" in fitted.status.error
    fitted.on_message(fit_process.Ended(-11))
    assert (
        fitted.status.error == "The fit did not finish: its process ended with code -11. The last model stays in use."
    )
    fitted.on_message(fit_process.Ended(-9))
    assert "its process was killed. A likely cause is too little memory" in fitted.status.error
    assert "cancelled" not in fitted.status.error
    assert fitted.views.fitted is before


@pytest.mark.slow
def test_a_model_that_cannot_be_stored_is_in_use(fitted, tmp_path, monkeypatch):
    """Its description must not become that of the model that was stored before."""
    models, before = fitted.project.models, fitted.project.models.last()

    def finish(name):
        shutil.copytree(fitted.views.fitted.folder, tmp_path / name)
        fitted.on_message(fit_process.Finished(str(tmp_path / name), 1.0, []))
        assert fitted.views.fitted.folder == tmp_path / name
        fitted.on_message(fit_process.Learnt(shares={name: GroupShares([], 0.95, [], {})}))

    with monkeypatch.context() as full:
        full.setattr(models, "store", lambda *_: (_ for _ in ()).throw(OSError("No space left on device")))
        finish("first")
    assert "in use, but could not be stored: No space left on device" in fitted.status.error
    assert "stays in use" not in fitted.status.error
    assert models.last() == before
    finish("second")
    assert fitted.status.error == ""
    _, record = models.last()
    assert list(record.shares) == ["second"]


@pytest.mark.slow
def test_a_restart_keeps_the_model_and_fits_go_on(fitted, tmp_path):
    """Must be the last test of the fixture: it closes the workbench and opens it again."""
    fitted.close()
    assert not fitted.project.path.with_name("drinks.steer-wal").exists()
    workbench = Workbench(fitted.project.path)
    try:
        np.testing.assert_array_equal(workbench.views.fitted.memberships, fitted.views.fitted.memberships)
        apply(workbench.session, "ann", NewTopic(name="rain", documents=[2, 5, 8]))
        workbench.session.change_settings(refit_after=3)
        old = workbench.stored_model
        workbench.act("ann", Label(documents=[11, 14], key=3, state="permitted"))  # fits by itself
        assert workbench.fitter.busy
        until(lambda: workbench.stored_model > old)
        assert workbench.views.fitted.column[3] == 2
        assert workbench.fit()
        workbench.fitter.cancel()
        until(lambda: not workbench.fitter.busy)
        assert workbench.views.fitted.n_known == 3
    finally:
        workbench.close()


def test_labels_are_imported_from_a_file(page, workbench, tmp_path):
    rows = "id,labels\n=d1,tea\n=d2,coffee\nnobody,tea\n"
    answer = page.post("/api/import?who=ann&name=old.csv", content=rows.encode())
    assert answer.json()["message"].split("\n") == [
        "Imported labels of 2 documents from old.csv.",
        "1 rows were not taken:",
        "line 4: no document has this id 'nobody'",
    ]
    assert workbench.session.training().labels == {1: ["tea"], 2: ["coffee"]}
    bad = page.post("/api/import?who=ann&name=../../x.csv", content=b"a,b\n1,2\n")
    assert bad.status_code == 422
    assert "x.csv" in bad.json()["error"]


def test_rows_that_are_gone_are_noticed(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("id,text\n1,green tea\n2,black coffee\n")
    path = tmp_path / "a.steer"
    Workbench.make(path, read_table(table), source=table)
    workbench = Workbench(path, source=table)
    assert workbench.notice == ""
    workbench.close()
    table.write_text("id,text\n1,green tea\n")
    workbench = Workbench(path, source=table)
    assert "1 are not in the table any more, and stay." in workbench.notice
    assert len(workbench.project) == 2
    workbench.close()


def test_four_people_at_once_lose_nothing_and_double_nothing(workbench):
    for name in ("tea", "coffee"):
        apply(workbench.session, "boss", NewTopic(name=name))

    def work(who):
        for k in range(40):
            state = ("permitted", "cleared")[(k // 20) % 2]
            for _ in range(2):  # each asks twice, as after a lost answer
                workbench.act(who, Label(documents=[k % 20], key=1 + k % 2, state=state, request=f"{who}-{k}"))

    threads = [threading.Thread(target=work, args=(f"p{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = (event for _, event in workbench.project.log.events() if event.document is not None)
    log = [event for event in events if event.key >= 0]  # negative keys record how documents were chosen
    assert len(log) == 160
    assert all(workbench.project.log.batch_of(f"p{i}-{k}") for i in range(4) for k in range(40))


# --- the document map ---


def test_the_map_and_its_files_are_served(workbench, page):
    places = np.random.default_rng(0).random((60, 2)).astype(np.float32)
    workbench.maps.made = maps.Layout(np.arange(60), places, 1.2, 60)
    found = page.get("/api/map?who=ann").json()
    assert found["status"]["state"] in ("ready", "missing")
    assert found["points"]["topics"][-1]["kind"] == "none"
    assert len(found["points"]["x"]) == 160
    texts = page.get("/api/beginnings?who=ann&rows=3,0").json()
    assert [one["id"] for one in texts] == ["=d3", "=d0"]
    for rows in ("", "a", "1,", "-1", ",".join(["1"] * 101)):
        assert page.get("/api/beginnings", params={"who": "ann", "rows": rows}).status_code == 422
    assert page.get("/api/beginnings?who=ann&rows=60").status_code == 404
    for name in ("document_map.js", "document_map.css", "map.js"):
        assert page.get(f"/pages/{name}").status_code == 200
    assert page.get("/pages/report.js").status_code == 404


def test_the_map_needs_a_session(workbench):
    with client(workbench) as stranger:
        for address in ("/api/map?who=ann", "/api/beginnings?who=ann&rows=1", "/pages/document_map.js"):
            assert stranger.get(address).status_code == 403
