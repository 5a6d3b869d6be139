"""Every exception of a command becomes a sentence and an exit code; --debug shows the traceback."""

import errno
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.cli import commands
from topicsteer.corpora import read_table
from topicsteer.system.failures import Kind, failure
from topicsteer.system.memory import in_bytes

resource = pytest.importorskip("resource", reason="Windows has no limits on processes")

ROWS = {
    "id": [f"d{i}" for i in range(24)],
    "text": ["tea leaves pot", "beans mug roast"] * 12,
    "topic": ["tea", ""] * 12,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("failures")
    pl.DataFrame(ROWS).write_csv(here / "good.csv")
    TopicModel(1).fit(read_table(here / "good.csv")).save(here / "model")
    return here


@pytest.fixture(scope="module")
def wrong(folder):
    """Tables with a mistake each."""
    frame = pl.DataFrame(ROWS)
    (folder / "empty").mkdir()
    (folder / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    (folder / "latin.csv").write_bytes("text\ncafé noir\n".encode("latin-1"))
    frame.select("id").write_csv(folder / "ids.csv")
    ids = pl.Series("id", ["other" if i == 2 else f"d{i}" for i in range(24)])
    frame.with_columns(ids).write_csv(folder / "renamed.csv")
    frame.with_columns(pl.col("text") + " again").write_csv(folder / "texts.csv")
    frame.with_columns(pl.Series("id", [f"d{i // 2 if i < 4 else i}" for i in range(24)])).write_csv(
        folder / "repeated.csv"
    )
    marks = {"tea": [1, 0] * 12, "iced coffee": [0, 1] * 12}
    frame.drop("topic").with_columns(**{name: pl.Series(cells) for name, cells in marks.items()}).write_csv(
        folder / "indicators.csv"
    )
    return folder


@pytest.mark.parametrize(
    ("command", "messages"),
    [
        ("fit {}/empty", ["no file matching *.txt could be read; expected a folder of such files, or a table"]),
        ("fit {}/model", ["model: is a saved model; expected the table or the folder with the texts"]),
        ("fit {}/old.xls", ["unknown kind of file '.xls'", "save the sheet as .xlsx first"]),
        ("fit {}/ids.csv", ["which column holds the texts? Pass --text", "the columns are 'id'"]),
        ("predict {0}/model {0}/ids.csv", ["which column holds the texts?", "the model has them in text"]),
        ("fit {}/good.csv --labels text", ["column 'text' is already used for the texts, name another one"]),
        ("fit {}/good.csv --labels id", ["column 'id' is already used for the ids, name another one"]),
        ("fit {}/latin.csv --encoding utf-8", ["cannot be decoded as utf-8; if the file has another encoding, pass"]),
        ("prevalence {}/model", ["name the table of the documents too, or fit with --keep-texts"]),
        ("prevalence {0}/model {0}/latin.csv", ["documents of the model: they are 1, and the model has 24."]),
        ("prevalence {0}/model {0}/renamed.csv", ["number 3 has the id 'other', and the id 'd2' in the model"]),
        ("prevalence {0}/model {0}/texts.csv", ["their ids are the same, but texts differ"]),
        ("prevalence {0}/model {0}/good.csv --weight topc", ["no column 'topc' of weights", "Did you mean 'topic'?"]),
        (
            "suggest {0}/model {0}/good.csv --topic te",
            ["there is no topic 'te'; the topics are 'tea'", "did you mean 'tea'?"],
        ),
    ],
)
def test_messages_name_the_problem_the_place_and_the_remedy(run, wrong, command, messages):
    arguments = command.format(wrong).split()
    if arguments[0] == "fit":
        arguments += ["--out", wrong / "new"]
    code, _, err = run(*arguments)
    assert code == 1
    for message in messages:
        assert message in re.sub(r"\s+", " ", err)


@pytest.mark.parametrize(
    ("table", "options", "note"),
    [
        ("indicators.csv", (), "no labels found in 'tea', 'iced coffee': if there are labels, pass their column as"),
        ("repeated.csv", (), "column 'id' repeats ids, and later rows are left out; if it holds no ids of rows, name"),
        ("good.csv", ("--delimiter", ";"), "';' does not occur in the header, so there is one column, 'id,text,topic'"),
    ],
)
def test_notes_on_tables_that_are_probably_read_wrongly(run, wrong, table, options, note):
    code, _, err = run("fit", wrong / table, "--out", wrong / "noted", "--free", 1, *options)
    assert code == 0
    assert note in re.sub(r"\s+", " ", err)


def start(*arguments, **options):
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "topicsteer", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=options.pop("capture_output", True), text=True, check=False, **options
    )


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("the column is missing"), 1, "error: the column is missing"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x.csv"), 1, "No such file or directory: x.csv"),
        (OSError(errno.ENOSPC, "No space left on device", "m"), 4, "No space left on device: m; make room"),
        (sqlite3.OperationalError("database is locked"), 4, "another program uses the project"),
        (sqlite3.DatabaseError("database disk image is malformed"), 4, "from a backup"),
        (MemoryError(), 4, "not enough memory"),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed"), 1, "cannot be encoded"),
        (pl.exceptions.ComputeError("could not parse"), 1, "could not parse"),
        (ZeroDivisionError("division by zero"), 3, "ZeroDivisionError: division by zero. Run it again with --debug"),
        (OverflowError("too large"), 3, "OverflowError"),
        (KeyError("x"), 3, "KeyError"),
        (IndexError("out of range"), 3, "IndexError"),
        (RecursionError("too deep"), 3, "RecursionError"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_exceptions_become_sentences_and_exit_codes(run, monkeypatch, error, code, message):
    def fail(path):
        raise error

    monkeypatch.setattr(commands, "load", fail)
    got, out, err = run("topics", "model")
    assert (got, out) == (code, "")
    assert message in err
    assert "Traceback" not in err
    for words in (("--debug", "topics", "model"), ("topics", "model", "--debug")):
        got, _, err = run(*words)
        assert got == code
        assert ("Traceback" in err) == (code != 130)


def test_messages_that_this_package_raises_on_purpose_are_sentences():
    from topicsteer.backends import on_cluster

    with pytest.raises(TypeError) as caught:
        on_cluster(None, None)
    assert failure(caught.value).kind is Kind.INPUT
    with pytest.raises(TypeError) as caught:
        len(3)
    assert failure(caught.value).kind is Kind.DEFECT


def test_the_documentation_has_the_table_of_exit_codes():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md").read_text()
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, flags=re.M)}
    assert listed == {0, 2, commands.INTERRUPTED, *commands.CODES.values()}


@pytest.mark.parametrize("memory", ["9" * 400, "1e5", "-4GB", "²", "0", "9" * 30 + "t"])
def test_impossible_amounts_of_memory(memory):
    with pytest.raises(ValueError, match="expected a number of bytes"):
        in_bytes(memory)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_full_standard_output(folder):
    with open("/dev/full", "w") as full:
        done = start("topics", folder / "model", "--json", stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert done.returncode == 4
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (("fit", "good.csv", "--free", "1", "--out", "new"), 500),
        (("predict", "model", "good.csv", "--out", "o.parquet"), 500),
        (("report", "model", "good.csv", "--out", "o.html"), 1_000),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_files_that_cannot_be_written_give_a_message(run, folder, monkeypatch, words, limit):
    """A limit on the size of files stands for a full disk."""
    monkeypatch.chdir(folder)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, usual[1]))
    try:
        code, _, err = run(*words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert code in (1, 4), err
    assert "error:" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_project_that_cannot_be_written_gives_a_message(folder):
    limit = (20_000, 20_000)
    words = ("label", "good.csv", "--no-browser", "--port", "0")
    done = start(*words, cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
    assert done.returncode in (1, 4), done.stderr
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("INSERT INTO events VALUES (NULL, 1, 'ann', 999, 1, 'permitted', 'cleared')", "unknown document"),
        ("INSERT INTO events VALUES (NULL, 1, 'ann', 1, 77, 'permitted', 'cleared')", "unknown topic"),
        ("INSERT INTO events VALUES (NULL, 1, 'ann', 1, 0, 'dancing', 'cleared')", "unknown state"),
        ("INSERT INTO events VALUES (NULL, 1, NULL, NULL, 0, '{', '')", "a topic cannot be read"),
        ("INSERT INTO settings VALUES ('x', '{')", "a setting cannot be read"),
        ("DELETE FROM documents WHERE row = 3", "documents are missing"),
    ],
)
def test_a_project_with_impossible_content_is_refused(tmp_path, damage, message):
    pytest.importorskip("starlette")
    from topicsteer.app.workbench.project import Project, ProjectError
    from topicsteer.app.workbench.workbench import Workbench
    from topicsteer.corpora import Documents

    path = tmp_path / "p.steer"
    Workbench.make(path, Documents(list("abcdefgh"), ["tea"] * 8, [["tea"], *[[]] * 7]))
    Workbench(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(ProjectError, match=message):
        Project.open(path)


def test_the_browser_is_opened_through_a_private_file(tmp_path, monkeypatch):
    import webbrowser

    from topicsteer.cli.commands import open_privately

    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    open_privately("http://127.0.0.1:8765/?token=abc", tmp_path)
    assert opened == [(tmp_path / "open.html").as_uri()]
    assert "token" not in opened[0]
    assert (tmp_path / "open.html").stat().st_mode & 0o077 == 0
    assert "url=http://127.0.0.1:8765/?token=abc" in (tmp_path / "open.html").read_text()
