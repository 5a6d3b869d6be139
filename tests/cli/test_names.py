"""Names of free topics by a language model, from a real server on this machine."""

import sys

from tests.model.test_naming import TEXTS, said, server
from topicsteer import TopicModel
from topicsteer.cli import names


def test_names_on_the_command_line(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TopicModel(free_topics=2, guidance=None).fit(TEXTS, ["tea", "coffee"] + [None] * 30).save("model")
    (tmp_path / "texts.csv").write_text("text\n" + "\n".join(TEXTS))
    answers = ["Milk", "tea", "**Chess**"]
    with server(lambda _: said(answers.pop(0))) as (url, requests):
        asked = ("name", "model", "--server", url, "--language-model", "small")
        code, out, err = run(*asked)  # no terminal, and no yes
        assert (code, requests) == (0, [])
        assert "Names that are taken: coffee; tea" in out
        assert f"These 2 questions would go to {url}." in err
        assert "Nothing was sent" in err
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        monkeypatch.setattr(names, "confirm", lambda *_, **__: False)
        assert run(*asked)[0] == 0
        assert requests == []
        monkeypatch.setattr(names, "confirm", lambda *_, **__: True)
        monkeypatch.setenv("TOPICSTEER_CHAT_KEY", "secret")
        code, out, err = run("name", "model", "free 1", *asked[2:], "--budget", "1")
        assert (code, len(requests)) == (0, 1)
        assert requests[0][1]["Authorization"] == "Bearer secret"
        assert "Milk (proposed)" in out
        assert "secret" not in out + err
        more = ("free 2", *asked[2:], "--yes", "--examples", "1")
        assert "examples need the training documents" in run("name", "model", *more)[2]
        code, out, err = run("name", "model", *more, "--of", "texts.csv")
        assert code == 0, err
    assert "Beginning of a document: " in requests[-1][2]["messages"][0]["content"]
    assert TopicModel.load("model").result_.names[2:] == ("Milk (proposed)", "Chess (proposed)")
    code, _, err = run(*asked, "--yes", "--timeout", "1")
    assert code == 4, err
    assert "does not answer" in err


def test_names_before_a_server_stopped_are_kept(tmp_path):
    model = TopicModel(free_topics=2, guidance=None).fit(TEXTS, ["tea", "coffee"] + [None] * 30)
    answers = [said("Milk"), (500, "too busy")]
    from topicsteer.model.naming import chat_namer

    with server(lambda _: answers.pop(0)) as (url, _):
        table = model.name_free_topics(chat_namer(url, "small"), yes=True)
    assert table["name"].to_list() == ["Milk (proposed)", None]
    assert "status 500: too busy" in table["note"][1]
