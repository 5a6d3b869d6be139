import io
import json
import os
import re
import signal
import subprocess
import sys

import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.main import get_command

from topicsteer import TopicModel, __version__
from topicsteer.cli import commands as cli
from topicsteer.cli import terminal
from topicsteer.corpora import Documents, ReadError, load_docstrings
from topicsteer.report import table_files as sheets
from topicsteer.text import TextVectorizer

TEXTS = [
    "green tea leaves in a pot",
    "roast coffee beans ground",
    "the knight takes a bishop",
    "tea with milk in it",
] * 6
LABELS = ["tea", "coffee", "", ""] + [""] * 20
# Daily commands, which --help shows first, and the others.
FRONT = ("fit", "report", "evaluate", "predict", "prevalence", "suggest", "label", "coders")
MORE = ("topics", "explain", "audit", "edit", "update", "demo")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "drinks.csv"
    pl.DataFrame({"name": [f"d{i}" for i in range(24)], "body": TEXTS, "topics": LABELS}).write_csv(path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Folder of a model of the table; tests only read it."""
    documents = Documents([f"d{i}" for i in range(24)], TEXTS, [[label] if label else [] for label in LABELS])
    folder = tmp_path_factory.mktemp("fitted") / "model"
    TopicModel(free_topics=1).fit(documents).save(folder)
    return folder


def test_a_scheduler_that_does_not_answer(run, table, tmp_path):
    pytest.importorskip("distributed")  # it has its settings before the test changes one
    dask = pytest.importorskip("dask")
    with dask.config.set({"distributed.comm.timeouts.connect": "0.5s"}):
        code, _, err = run("fit", table, "--scheduler", "tcp://127.0.0.1:1", "--out", tmp_path / "model")
    assert code == 1
    assert "connecting to tcp://127.0.0.1:1" in err
    assert "use the address that 'dask scheduler' prints" in err
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there are no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_an_ended_workbench_leaves_its_project_alone_behind(table, tmp_path, name):
    room = tmp_path / "temporary"
    room.mkdir()
    command = [sys.executable, "-m", "topicsteer", "label", table, "--no-browser", "--port", "0"]
    environment = os.environ | {"TMPDIR": str(room)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        assert list(room.iterdir())
        process.send_signal(getattr(signal, name))
        assert "Error" not in process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert list(room.iterdir()) == []
    assert table.with_suffix(".steer").exists()


def test_an_option_is_given_once(run, table, tmp_path):
    code, _, err = run("fit", table, "--labels", "topics", "--labels=name", "--out", tmp_path / "model")
    assert code == 1
    assert "--labels is given twice" in err
    assert not (tmp_path / "model").exists()


def test_without_labels_that_is_said(run, table, tmp_path):
    model = tmp_path / "model"
    pl.read_csv(table).drop("topics").write_csv(table)
    assert run("fit", table, "--out", model, "--free", 2, "-q")[0] == 0
    assert run("suggest", model, table)[0] == 0
    code, out, err = run("predict", model, table)
    assert code == 0
    frame = pl.read_csv(io.StringIO(out))
    names = [*TopicModel.load(model).state_.topics.names, "(none)"]
    assert frame.columns == ["id", *pl.read_csv(table).columns, "predicted", *names]
    assert set(frame["predicted"]) <= {"", None}
    assert "has no known topics" in err


@pytest.mark.slow
def test_suggest_and_audit(run, table, tmp_path, monkeypatch):
    model = tmp_path / "model"
    assert run("fit", table, "--id", "name", "--free", 1, "--out", model, "-q")[0] == 0
    code, out, _ = run("suggest", model, table, "--id", "name", "-n", 2)
    assert code == 0
    assert out.startswith("id,text,label,guess,why,chosen,probability\n")
    assert len(out.splitlines()) == 3
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "━" in run("suggest", model, table, "--id", "name", "-n", 2)[1]
    monkeypatch.undo()
    target = tmp_path / "next.csv"
    assert run("suggest", model, table, "--out", target, "-q") == (0, "", "")
    assert "text" in pl.read_csv(target).columns
    code, out, _ = run("audit", model)
    assert out.startswith("id,topic,given,probability,why\n")
    assert len(out.splitlines()) == 3
    code, out, _ = run("audit", model, table, "--id", "name", "-n", 1)
    assert out.startswith("id,topic,given,probability,why,text\n")


def test_fit_prints_the_topics_and_names_the_columns(run, table, tmp_path):
    code, out, err = run("fit", table, "--id", "name", "--free", 1, "--out", tmp_path / "model")
    assert code == 0
    assert "coffee" in out
    assert "text is column 'body'" in err
    assert "labels are column 'topics'" in err


def test_the_number_of_free_topics_is_a_number_or_auto(run, table, tmp_path):
    assert run("fit", table, "--free", "auto", "--out", tmp_path / "model")[0] == 0
    code, _, err = run("fit", table, "--free", "many", "--out", tmp_path / "other")
    assert code == 2
    assert "auto" in err
    assert not (tmp_path / "other").exists()


def test_fit_refuses_a_file_as_folder_of_the_model(run, table):
    before = table.read_bytes()
    code, _, err = run("fit", table, "--out", table)
    assert code == 1
    assert err.splitlines()[-1].startswith("error: ")
    assert table.read_bytes() == before


def test_fit_writes_a_report(run, table, tmp_path):
    report = tmp_path / "r.html"
    assert run("fit", table, "--out", tmp_path / "model", "--report", report, "--free", 1, "--keep-texts")[0] == 0
    assert "green" in report.read_text()


def test_topics_as_json(run, model):
    code, out, _ = run("topics", model, "--json")
    assert code == 0
    found = json.loads(out)
    assert [row["topic"] for row in found][:2] == ["coffee", "tea"]
    assert "(none)" not in [row["topic"] for row in found]


def test_topics_as_a_table_for_people(run, model):
    code, out, err = run("topics", model)
    assert code == 0
    assert "Labels are too few to decide" in err
    assert "(none)" not in out
    assert "coffee" in out
    assert "roast" in out
    assert "%" not in out  # a mean membership would be read as a share


def test_predict_writes_parquet(run, model, table, tmp_path):
    target = tmp_path / "p.parquet"
    code, _, err = run("predict", model, table, "--id", "name", "--out", target)
    assert code == 0
    assert "24 rows" in err
    frame = pl.read_parquet(target)
    free = TopicModel.load(model).state_.topics.names[2]
    assert frame.columns == [*pl.read_csv(table).columns, "predicted", "coffee", "tea", free, "(none)"]
    assert frame["predicted"][1] == "coffee"
    assert frame["name"][3] == "d3"


def test_without_a_suggestion_there_is_a_reason(run, tmp_path):
    path, model = tmp_path / "t.csv", tmp_path / "model"
    pl.DataFrame({"text": TEXTS, "topics": [*LABELS[:2] * 6, *[None] * 12]}).write_csv(path)
    assert run("fit", path, "--free", 1, "--out", model, "-q")[0] == 0
    code, out, err = run("suggest", model, path, "--topic", "free 1")
    assert (code, "No unlabelled document is given the topic free 1." in err) == (0, out.count("\n") == 1)


def test_quiet_hides_warnings(run, table, tmp_path):
    themes, words = tmp_path / "themes.csv", ("--free", 1, "--out", tmp_path / "model")
    themes.write_text("topic,keywords\nqqq,zzz\n")
    code, _, err = run("fit", table, "--topics", themes, *words)
    assert (code, "warning:" in err) == (0, True)
    assert run("fit", table, "--topics", themes, *words, "--quiet") == (0, "", "")


@pytest.mark.parametrize(("suffix", "read"), [("csv", pl.read_csv), ("jsonl", pl.read_ndjson)])
def test_predict_writes_text_files_quietly(run, model, table, tmp_path, suffix, read):
    target = tmp_path / f"p.{suffix}"
    assert run("predict", model, table, "--out", target, "--quiet") == (0, "", "")
    assert read(target).height == 24


def test_predict_prints_csv(run, model, table):
    code, out, _ = run("predict", model, table, "-q")
    assert code == 0
    assert ",predicted,coffee,tea," in out.splitlines()[0]
    assert out.splitlines()[0].endswith(",(none)")
    assert len(out.splitlines()) == 25


def test_explain_a_text(run, model):
    """The words of the texts are no names of topics."""
    for text, topic, other in (("pot of leaves", "tea", "coffee"), ("ground roast", "coffee", "tea")):
        code, out, _ = run("explain", model, text)
        assert code == 0
        assert re.search(rf"100% {topic} (leaves|pot|ground|roast) 0\.\d", out)
        assert other not in out


def test_explain_as_json(run, model):
    code, out, _ = run("explain", model, "ground roast", "--json")
    assert code == 0
    found = json.loads(out)
    assert sorted(found["term"]) == ["ground", "roast"]
    assert found["coffee"] == found["explained"]
    assert min(found["coffee"]) > 0.1
    assert "tea" not in found


def test_explain_standard_input(run, model, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("pot of leaves"))
    code, out, _ = run("explain", model, "-")
    assert code == 0
    assert "100% tea" in out


def test_explain_notes_a_document_without_a_predicted_topic(run, model, monkeypatch):
    monkeypatch.setattr(TopicModel, "predict", lambda self, texts: [[] for _ in texts])
    assert "reaches its threshold" in run("explain", model, "green tea")[2]


def test_explain_refuses_a_file_in_place_of_a_text(run, model, table):
    code, _, err = run("explain", model, table)
    assert code == 1
    assert "is a file: pass a text" in err.replace("\n", " ")


def test_report_with_documents(run, model, table, tmp_path):
    assert run("report", model, table, "--id", "name", "--out", tmp_path / "r.html")[0] == 0
    assert "green" in (tmp_path / "r.html").read_text()


def test_report_without_the_map(run, model, table, tmp_path):
    for options, expected in (((), True), (("--no-map",), False)):
        assert run("report", model, table, "--id", "name", "--out", tmp_path / "r.html", *options)[0] == 0
        assert ("A document map needs 50 documents" in (tmp_path / "r.html").read_text()) == expected


def test_report_without_documents(run, model, tmp_path):
    assert run("report", model, "--out", tmp_path / "r.html")[0] == 0
    assert "coffee" in (tmp_path / "r.html").read_text()


def test_report_refuses_other_documents(run, model, tmp_path):
    (tmp_path / "other.csv").write_text("text\nsomething else\n")
    code, _, err = run("report", model, tmp_path / "other.csv", "--out", tmp_path / "r.html")
    assert code == 1
    assert "not the training documents" in err
    assert not (tmp_path / "r.html").exists()


@pytest.mark.slow
def test_evaluate(run, tmp_path):
    path = tmp_path / "all.jsonl"
    labels = [["tea"], ["coffee"], [], ["tea"]] * 6
    pl.DataFrame({"text": TEXTS, "labels": labels}).write_ndjson(path)
    assert run("fit", path, "--free", 1, "--out", tmp_path / "m", "-q")[0] == 0
    code, out, err = run("evaluate", tmp_path / "m", path, "--folds", 3)
    assert code == 0
    assert "6 of 6" in out
    assert not re.search(r"\d\.\d", out)  # without random labels, only counts
    assert "hidden labels" in err
    assert len(out.splitlines()) < 10
    code, out, _ = run("evaluate", tmp_path / "m", path, "--json", "-q")
    told = json.loads(out)
    assert {"summary", "topics", "verdict"} <= set(told)
    target = tmp_path / "topics.csv"
    code, out, err = run("evaluate", tmp_path / "m", path, "--out", target)
    assert code == 0
    assert pl.read_csv(target)["topic"].to_list() == ["coffee", "tea"]
    run("evaluate", tmp_path / "m", path, "--out", target.with_suffix(".xlsx"))
    assert pd.read_excel(target.with_suffix(".xlsx"), engine="openpyxl")["topic"].tolist() == ["coffee", "tea"]
    report = tmp_path / "r.html"
    assert run("report", tmp_path / "m", path, "--out", report, "--evaluate")[0] == 0
    assert "evaluation-topics" in report.read_text()
    assert run("report", tmp_path / "m", path, "--out", tmp_path / "r.md", "--evaluate")[0] == 0
    assert "## Evaluation on hidden labels\n\n- folds: 3" in (tmp_path / "r.md").read_text()
    assert run("report", tmp_path / "m", "--out", tmp_path / "r.md")[0] == 0
    assert "Predictions were not evaluated" in (tmp_path / "r.md").read_text()


def test_evaluate_shows_the_weakest_of_many_topics(capsys):
    labels = [["tea"], ["coffee"], None, ["tea"]] * 6
    terminal.show_evaluation(TopicModel(1).fit(TEXTS, labels).evaluate(), weakest=1)
    assert "The 1 weakest of 2" in capsys.readouterr().out


def test_folders_and_label_files(run, tmp_path):
    for i, text in enumerate(TEXTS):
        folder = tmp_path / "texts" / ("tea" if "tea" in text else "other")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.txt").write_text(text)
    code, out, _ = run("fit", tmp_path / "texts", "--labels", "folders", "--free", 1, "--out", tmp_path / "m1")
    assert code == 0
    assert "other" in out
    table = tmp_path / "texts.csv"
    pl.DataFrame({"id": range(24), "text": TEXTS}).write_csv(table)
    marks = tmp_path / "labels.csv"
    pl.DataFrame({"id": [0, 1], "label": ["tea", "coffee"]}).write_csv(marks)
    code, out, _ = run("fit", table, "--label-file", marks, "--free", 1, "--out", tmp_path / "m2")
    assert code == 0
    assert "coffee" in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("fit", "nothing.csv"), 1, "there is no such file"),
        (("topics", "nothing"), 1, "there is no folder nothing"),
        (("predict", "nothing", "nothing.csv"), 1, "there is no folder"),
        (("fit",), 2, "Missing argument"),
        (("fit", "a.csv", "--free", "-1"), 2, "--free"),
        (("nonsense",), 2, "nonsense"),
    ],
)
def test_what_goes_wrong_is_said_in_words(run, arguments, code, message):
    got, out, err = run(*arguments)
    assert got == code
    assert message in err.replace("\n", " ")
    assert "Traceback" not in out + err


def test_missing_labels_and_the_next_command_are_said(run, tmp_path):
    path = tmp_path / "my drinks.csv"
    pl.DataFrame({"Volltext": TEXTS, "Thema": LABELS, "Jahr": ["1999"] * 24}).write_csv(path)
    code, _, err = run("fit", path, "--text", "Volltext", "--free", 1, "--out", tmp_path / "m")
    assert code == 0
    said = err.replace("\n", " ")
    assert (
        "no labels found in 'Thema', 'Jahr': if there are labels, pass their column as --labels (labels= in Python)"
        in said
    )
    assert f"report {tmp_path / 'm'} '{path}' --out" in said
    code, _, err = run("suggest", tmp_path / "m", path, "-n", 1)
    assert "labels found" not in err


def test_version(run):
    assert run("--version") == (0, f"topicsteer {__version__}\n", "")


def test_wrong_output_name_is_refused_before_the_work(run, table, tmp_path):
    for command in (("predict", "none", table), ("suggest", "none", table), ("audit", "none"), ("topics", "none")):
        code, _, err = run(*command, "--out", tmp_path / "p.xls")
        assert code == 1
        assert "must end in .csv, .xlsx, .jsonl or .parquet" in err.replace("\n", " ")
        code, _, err = run(*command, "--out", tmp_path / "none" / "p.xlsx")
        assert code == 1
        assert "there is no folder" in err.replace("\n", " ")
    assert "must end in" in run("evaluate", tmp_path / "none.csv", "--out", tmp_path / "p.txt")[2]
    _, _, err = run("report", "none", "--out", tmp_path / "p.pdf")
    assert "must end in .html, .htm or .md" in err.replace("\n", " ")
    assert list(tmp_path.glob("p.*")) == []


def test_every_table_goes_to_excel(run, table, tmp_path):
    model = tmp_path / "m"
    run("fit", table, "--free", 1, "--out", model, "-q")
    commands = {
        "predict": (model, table),
        "suggest": (model, table),
        "audit": (model, table),
        "topics": (model,),
    }
    for command, arguments in commands.items():
        excel, csv = (tmp_path / f"{command}.{suffix}" for suffix in ("xlsx", "csv"))
        for path in (excel, csv):
            code, _, err = run(command, *arguments, "--out", path, "-q")
            assert (code, err) == (0, "")
        found = pl.from_pandas(pd.read_excel(excel, engine="openpyxl", keep_default_na=False))
        expected = pl.from_pandas(pd.read_csv(csv, keep_default_na=False))
        assert found.columns == expected.columns
        for column in expected.columns:
            if expected[column].dtype.is_float():
                assert found[column].to_list() == pytest.approx(expected[column].to_list(), abs=5e-5)
            else:
                assert found[column].to_list() == expected[column].to_list()


def test_bad_rows_are_listed(run, tmp_path):
    path = tmp_path / "bad.csv"
    rows = [f"{i},{text},{label}" for i, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))]
    path.write_text("id,text,topics\n" + "\n".join(rows) + "\n7,again,\n99,,\n100,a,b,c,d\n")
    code, _, err = run("fit", path, "--free", 1, "--out", tmp_path / "m")
    assert code == 0
    assert "3 bad rows" in err
    assert "line 26" in err
    assert "line 27" in err


def test_spreadsheets_get_no_formulas():
    table = pl.DataFrame({"id": ["=cmd()", "-1+1", "-1", "ok"], "x": [1.0, -2.0, 3.0, 4.0]})
    assert sheets.guarded(table)["id"].to_list() == ["'=cmd()", "'-1+1", "-1", "ok"]
    assert sheets.guarded(table)["x"].to_list() == [1.0, -2.0, 3.0, 4.0]


def test_markup_in_names_is_text(capsys):
    terminal.show({"topic": ["[red]x[/red]", "\x1b[31my"], "good": [True, False], "share": [0.5, 1]}, "[bold]t")
    out = capsys.readouterr().out
    assert "[red]x[/red]" in out
    assert "\x1b[31m" not in out
    assert "yes" in out
    terminal.show({"n": [1]}, "A title is not folded to the width of its table")
    assert capsys.readouterr().out.startswith("A title is not folded to the width of its table\n")


def all_commands(group):
    yield from group.registered_commands
    for inner in group.registered_groups:
        yield from all_commands(inner.typer_instance)


def test_names_of_the_commands():
    names = [command.callback.__name__ for command in all_commands(cli.app)]
    assert names == [*FRONT, *MORE]
    assert len(names) <= 14


def test_number_of_options_of_fit():
    options = [parameter for parameter in by_name("fit").params if parameter.opts[0].startswith("-")]
    assert len(options) <= 24


def test_help_shows_the_eight_daily_commands_first(run):
    _, out, _ = run("--help")
    front, more = out.split("More", 1)
    assert all(f" {name} " in front for name in FRONT)
    assert all(f" {name} " in more for name in MORE)


def test_every_option_has_help():
    def commands(group):
        for command in group.commands.values():
            yield from commands(command) if hasattr(command, "commands") else [command]

    for command in commands(get_command(cli.app)):
        assert command.help
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{command.name} {parameter.name}"


@pytest.mark.parametrize("command", [c for c in all_commands(cli.app) if hasattr(c.callback, "__wrapped__")])
def test_every_command_that_reads_takes_the_same_options(command):
    name = command.callback.__name__
    options = {option for p in by_name(name).params for option in p.opts}
    assert {"--text", "--id", "--encoding", "--delimiter"} <= options
    of_labels = {"--labels", "--separator", "--label-file"}
    assert of_labels & options == (of_labels if name in ("fit", "update", "label") else set())
    assert command.callback.__doc__


def by_name(name):
    return get_command(cli.app).commands[name]


def test_commands_that_read_take_the_options_of_reading():
    reading = {c.callback.__name__ for c in all_commands(cli.app) if hasattr(c.callback, "__wrapped__")}
    takes = {name for name in reading | {"demo", "topics"} if "source" in {p.name for p in by_name(name).params}}
    names = "fit update evaluate label predict report prevalence coders suggest audit edit"
    assert reading == takes == set(names.split())


def test_encoding_and_delimiter_reach_every_reader(run, tmp_path):
    rows = [f"d{i}|{text} café|{label}" for i, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))]
    table, model, late = tmp_path / "drinks.csv", tmp_path / "model", tmp_path / "late.csv"
    table.write_bytes("\n".join(["name|body|topics", *rows]).encode("cp437"))
    late.write_bytes("name|topics\nd2|café".encode("cp437"))
    how = ("--encoding", "cp437", "--delimiter", "|", "--id", "name")
    code, _, err = run("fit", table, *how, "--free", 1, "--out", model)
    assert code == 0
    assert f"report {model} {table} --out" in err.replace("\n", " ")
    assert "café" in TopicModel.load(model).state_.topics.vocabulary
    # The model remembers how its table is read.
    assert "No topic has two labelled documents" in run("evaluate", model, table, "-q")[2]
    for name, more in (("predict", ()), ("suggest", ()), ("audit", ()), ("report", ("--out", tmp_path / "r.html"))):
        assert run(name, model, table, *more)[0] == 0, name
    assert run("update", model, "--label-file", late)[0] == 0
    assert "café" in TopicModel.load(model).state_.topics.names


def test_the_label_file_of_a_new_project(tmp_path):
    from topicsteer.cli.commands import to_label
    from topicsteer.corpora import ReadOptions

    table, marks = tmp_path / "drinks.csv", tmp_path / "labels.csv"
    pl.DataFrame({"id": [0, 1], "text": TEXTS[:2], "group": ["a#b", "b"]}).write_csv(table)
    pl.DataFrame({"id": [0, 1], "label": ["tea#pot", "coffee"]}).write_csv(marks)
    named = to_label(table, ReadOptions(label_file=marks, label_options={"separator": "#"}))
    assert named.labels == [["tea", "pot"], ["coffee"]]
    assert to_label(table, ReadOptions(labels="group", separator="#")).labels == [["a", "b"], ["b"]]
    assert to_label(table, ReadOptions()).labels == [[], []]


def test_predict_reads_each_text_once(run, table, tmp_path, monkeypatch):
    model = tmp_path / "model"
    assert run("fit", table, "--free", 1, "--out", model, "-q")[0] == 0
    calls, transform = [], TextVectorizer.transform
    monkeypatch.setattr(TextVectorizer, "transform", lambda self, texts: calls.append(1) or transform(self, texts))
    assert run("predict", model, table, "-q")[0] == 0
    assert len(calls) == 1


@pytest.mark.slow
def test_demo(run, tmp_path, monkeypatch):
    """Also without tkinter, which some systems leave out: with these labels the world seems closed then."""
    whole = load_docstrings()
    rest = whole.select(i for i, name in enumerate(whole.ids) if not name.startswith("tkinter"))
    monkeypatch.setattr("topicsteer.corpora.load_docstrings", lambda: rest)
    code, out, err = run("demo", "--seed", 1, "--out", tmp_path / "report.html")
    assert code == 0, err
    assert "linear algebra" in out
    assert "header" in out  # a free topic: nobody named email
    assert "prevalence estimates how many" in " ".join(err.split())
    rows = [line for line in out.partition("Shares of the topics")[2].splitlines() if line.startswith("│")]
    known = [row for row in rows if "%" in row]
    assert len(known) > 10
    assert any("(none)" in row for row in known)
    assert len(rows) > len(known)
    assert all("–" in row for row in rows if row not in known)
    assert str(tmp_path / "report.html") in err.replace("\n", "")
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_python_dash_m():
    done = subprocess.run([sys.executable, "-m", "topicsteer", "--help"], capture_output=True, text=True, check=True)
    assert "Topics that follow your labels" in done.stdout


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.sampled_from([".csv", ".tsv", ".jsonl", ".json", ".parquet", ".csv.gz"]))
def test_fuzzed_tables_never_give_a_traceback(run, tmp_path, content, suffix):
    path = tmp_path / f"fuzz{suffix}"
    path.write_bytes(content)
    code, out, err = run("fit", path, "--free", 1, "--out", tmp_path / "fuzzed")
    assert code in (0, 1)
    assert "Traceback" not in out + err
    if code == 1:
        assert "error:" in err


@pytest.mark.slow
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.text(max_size=30), st.text(max_size=12)), min_size=1, max_size=12),
    st.sampled_from(["label", "topics", "xyz"]),
)
def test_odd_tables_never_give_a_traceback(run, tmp_path, rows, column):
    path = tmp_path / "odd.jsonl"
    path.write_text("\n".join(json.dumps({"text": a, column: b}) for a, b in rows))
    code, out, err = run("fit", path, "--free", 1, "--out", tmp_path / "odd")
    assert code in (0, 1)
    assert "Traceback" not in out + err
    label_file = tmp_path / "labels.jsonl"
    label_file.write_text("\n".join(json.dumps({"id": a, "label": b, "answer": b}) for a, b in rows))
    code, out, err = run("fit", path, "--label-file", label_file, "--free", 1, "--out", tmp_path / "odd")
    assert code in (0, 1)
    assert "Traceback" not in out + err


def test_reading_errors_are_value_errors():
    assert issubclass(ReadError, ValueError)


def test_update_takes_new_documents_and_late_labels(run, tmp_path):
    words = {"tea": "green tea leaves pot", "coffee": "roast coffee beans cup", "milk": "cow milk cream dairy"}
    kinds = ["tea", "coffee"] * 10
    files = {
        "old": [(f"d{i}", f"{words[kind]} word{i % 3}", kind if i < 6 else "") for i, kind in enumerate(kinds)],
        "new": [(f"n{i}", f"{words['milk']} word{i % 3}", "milk" if i < 2 else "") for i in range(6)],
    }
    for name, rows in files.items():
        pl.DataFrame(rows, schema=["id", "text", "label"], orient="row").write_csv(tmp_path / f"{name}.csv")
    pl.DataFrame({"id": ["d10", "n5"], "label": ["tea", "milk"]}).write_csv(tmp_path / "late.csv")
    model = tmp_path / "model"
    assert run("fit", tmp_path / "old.csv", "--out", model, "--free", 0, "-q")[0] == 0
    before = TopicModel.load(model).state_.topics.names
    code, _, err = run("update", model, tmp_path / "new.csv")
    assert code == 0
    assert "6 new documents; 4 new terms; new topics: milk" in err
    code, _, err = run("update", model, "--label-file", tmp_path / "late.csv")
    assert "2 with new labels" in err
    fitted = TopicModel.load(model)
    assert fitted.state_.topics.names == (*before, "milk")
    assert len(fitted.state_.topics.ids) == 26
    assert fitted.state_.supervision.labelled.sum() == 10
    assert "nothing to update" in run("update", model)[2]
    (tmp_path / "late.csv").write_text("id,label\nd11,coffee\nnosuch,tea\n")
    code, _, err = run("update", model, "--label-file", tmp_path / "late.csv")
    assert "late.csv: 1 bad row, left out\n  late.csv line 3: no document has this id 'nosuch'" in err
    assert (code, TopicModel.load(model).state_.supervision.labelled.sum()) == (0, 11)
    (tmp_path / "late.csv").write_text("id,label\nnosuch,tea\n")
    assert "no record of the label file matches" in run("update", model, "--label-file", tmp_path / "late.csv")[2]
    TopicModel.load(model).save(model, updatable=False)
    code, _, err = run("update", model, tmp_path / "new.csv")
    assert code == 1
    assert "updatable" in err


def test_none_of_the_topics_in_files(run, tmp_path):
    lines = ["green tea leaves,tea", "roast coffee beans,coffee", "a blue car,(none)", "tea in a cup,", "coffee cup,"]
    rows = [f"d{k},{lines[k % 5] if k < 5 else lines[k % 5].split(',')[0] + ','}" for k in range(20)]
    (tmp_path / "drinks.csv").write_text("\n".join(["id,text,topics", *rows]))
    model, late = tmp_path / "model", tmp_path / "late.csv"
    code, out, _ = run("fit", tmp_path / "drinks.csv", "--free", 1, "--out", model)
    assert code == 0
    assert "2 known and 1 free topics of 20 documents, 3 labelled" in " ".join(out.split())
    late.write_text("id,label\nd7,(none)\nd8,tea\nd8,(none)\n")
    code, _, err = run("update", model, "--label-file", late)
    assert code == 0
    assert "line 4: with its earlier labels, the document has the label '(none)' together with 'tea'" in err
    assert TopicModel.load(model).state_.supervision.outsiders.nonzero()[0].tolist() == [2, 7]


def test_fit_stores_the_seconds_of_each_stage(run, table, tmp_path):
    assert run("fit", table, "--free", 1, "--out", tmp_path / "model")[0] == 0
    stored = TopicModel.load(tmp_path / "model").state_.seconds
    assert next(iter(stored)) == "terms"
    assert {"memberships", "fit"} < set(stored)
    assert all(seconds >= 0 for seconds in stored.values())
