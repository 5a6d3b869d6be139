"""Names of free topics, asked from a real server on this machine that speaks the chat-completions protocol."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from topicsteer import TopicModel
from topicsteer.model.naming import chat_namer
from topicsteer.system.chat import ChatServer

TEXTS = ["green tea leaves", "roast coffee beans", "warm milk of cows", "a knight takes the bishop"] * 8


@contextmanager
def server(answer):
    """A server whose answers are made by a function of the question; yields its address and all requests."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, dict(self.headers), body))
            code, content = answer(body["messages"][-1]["content"])
            self.send_response(code)
            if code == 302:
                self.send_header("Location", content)
                content = ""
            self.end_headers()
            self.wfile.write(content.encode() if isinstance(content, str) else json.dumps(content).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/v1", requests
        running.shutdown()
        thread.join()


def said(text):
    return 200, {"choices": [{"message": {"role": "assistant", "content": text}}]}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named") / "model"
    TopicModel(free_topics=2, guidance=None).fit(TEXTS, ["tea", "coffee"] + [None] * 30).save(folder, texts=True)
    return folder


@pytest.fixture
def model(fitted):
    return TopicModel.load(fitted)


def test_nothing_is_sent_before_a_yes(model):
    before = model.result_.names
    with server(lambda _: said("Milk")) as (url, requests):
        table = model.name_free_topics(chat_namer(url, "small"))
    assert requests == []
    assert model.result_.names == before
    assert table["topic"].to_list() == list(before[2:])
    assert table["name"].to_list() == [None, None]
    assert "Names that are taken: coffee; tea; " in table["question"][0]


def test_names_are_proposed_cleaned_and_kept(model, tmp_path):
    names = {"milk": '"Milk\x00 of cows"\nBecause ...', "knight": "**Chess**"}
    with server(lambda asked: said(next(name for word, name in names.items() if word in asked.splitlines()[1]))) as (
        url,
        requests,
    ):
        table = model.name_free_topics(chat_namer(url, "small", key="secret"), yes=True)
    assert len(requests) == 2
    path, headers, body = requests[0]
    assert (path, body["model"], headers["Authorization"]) == ("/v1/chat/completions", "small", "Bearer secret")
    sent = [body["messages"][0]["content"] for _, _, body in requests]
    assert table["question"].to_list() == sent
    assert set(table["name"]) == {"Milk⟦U+0000⟧ of cows (proposed)", "Chess (proposed)"}
    assert all(terms for terms in table["terms"])
    model.save(tmp_path / "model")
    assert set(TopicModel.load(tmp_path / "model").result_.names[2:]) == set(table["name"])
    model.rename("Chess (proposed)", "chess")  # confirmed
    assert "chess" in model.result_.names


def test_only_the_chosen_topics_within_a_budget(model):
    with server(lambda _: said("Milk")) as (url, requests):
        model.name_free_topics(chat_namer(url, "small"), ["free 2"], yes=True)
        assert len(requests) == 1
        assert [name.endswith("(proposed)") for name in model.result_.names] == [False, False, False, True]
        table = model.name_free_topics(chat_namer(url, "small"), budget=1, yes=True)
    assert len(requests) == 2
    assert table["note"].to_list() == ["'Milk' is the name of another topic", "the budget is spent"]


def test_names_are_unique(model):
    answers = iter(["Tea", "milk", "Milk", "Chess"])
    with server(lambda _: said(next(answers))) as (url, requests):
        table = model.name_free_topics(chat_namer(url, "small"), yes=True)
    assert table["name"].to_list() == ["milk (proposed)", "Chess (proposed)"]
    assert "milk" in requests[2][2]["messages"][0]["content"].split("taken:")[1]
    with server(lambda _: said("coffee")) as (url, _):
        table = model.name_free_topics(chat_namer(url, "small"), yes=True)
    assert table["note"][0] == "'coffee' is the name of another topic"
    assert model.result_.names[2:] == ("milk (proposed)", "Chess (proposed)")


def test_known_topics_and_missing_examples(model):
    with pytest.raises(ValueError, match="'tea' is a known topic"):
        model.name_free_topics(lambda _: "x", ["tea"], yes=True)
    shown = []
    model.name_free_topics(lambda topic: shown.append(topic) or "x", ["free 1"], examples=2, yes=True)
    assert len(shown[0].examples) == 2
    assert shown[0].examples[0] in TEXTS


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ((401, "no key"), "refused with the status 401: no key"),
        ((200, "hello"), "did not answer in the chat-completions protocol"),
        ((200, {"choices": []}), "did not answer in the chat-completions protocol"),
        ((200, {"choices": [{"message": {"content": None}}]}), "did not answer in the chat-completions"),
        ((200, " " * (1 << 20) + "{}"), "did not answer in the chat-completions"),
    ],
)
def test_servers_that_do_not_answer(reply, message):
    with server(lambda _: reply) as (url, _), pytest.raises(ConnectionError, match=message):
        ChatServer(url, "small").ask("?")
    with pytest.raises(ConnectionError, match="does not answer"):
        ChatServer(url, "small", timeout=1).ask("?")
    with pytest.raises(ValueError, match="begins with http"):
        ChatServer("file:///etc/passwd", "small")


def test_text_and_key_are_not_sent_to_another_server():
    with (
        server(lambda _: said("stolen")) as (other, stolen),
        server(lambda _: (302, f"{other}/chat/completions")) as (url, _),
        pytest.raises(ConnectionError, match="status 302"),
    ):
        ChatServer(url, "small", key="secret").ask("?")
    assert stolen == []
