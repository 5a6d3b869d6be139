"""Commands on tables as people have them: Excel, several columns, empty rows; columns are named once."""

import datetime as dt
import io

import openpyxl
import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.cli import commands

WORDS = {"tea": "green leaves cup kettle brew", "coffee": "roast beans espresso filter mill"}


def rows(n=24):
    for i in range(n):
        topic = ("tea", "coffee")[i % 2]
        words = WORDS[topic].split()
        body = None if i == 5 else " ".join(words[j % 5] for j in range(i % 3, i % 3 + 4))
        marks = [int(topic == name) for name in WORDS] if i < 8 else [None, None]
        title = None if i in (5, 7) else words[i % 5]
        yield [f"R{i}", dt.date(2024, 1, 1 + i), "Ann" if i % 2 else "Bob", title, body, *marks, -1.25 + i]


@pytest.fixture
def survey(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["respondent", "day", "agent", "title", "body", "tea", "coffee", "weight"])
    for row in rows():
        book.active.append(row)
    book.save(tmp_path / "survey.xlsx")
    return tmp_path / "survey.xlsx"


@pytest.fixture
def fitted(run, survey, tmp_path):
    columns = ("--text", "title", "--text", "body", "--labels", "tea,coffee")
    code, _, err = run("fit", survey, *columns, "--out", tmp_path / "model", "--free", 0, "--world", "closed")
    assert code == 0, err
    assert "id is column 'respondent'" in err
    return tmp_path / "model"


def test_an_excel_survey_is_fitted_and_its_columns_are_remembered(run, survey, fitted, tmp_path):
    model = TopicModel.load(fitted)
    assert model.state_.supervision.counts.tolist() == [3, 4]  # row 5 has no text
    assert dict(model.state_.reading) == {"text": ["title", "body"], "labels": ["tea", "coffee"], "id": "respondent"}
    assert list(model.state_.topics.ids)[:6] == ["R0", "R1", "R2", "R3", "R4", "R6"]
    for command in (
        ("report", "--no-map", "--out", tmp_path / "r.html"),
        ("audit",),
        ("report", "--out", tmp_path / "r.md"),
    ):
        code, _, err = run(command[0], fitted, survey, *command[1:])
        assert code == 0, err
    more = tmp_path / "more.csv"
    more.write_text("title,body,respondent,tea,coffee,text\nkettle,green cup,R90,1,0,not this\n")
    code, _, err = run("update", fitted, more)
    assert code == 0, err
    updated = TopicModel.load(fitted)
    assert updated.state_.supervision.counts.tolist() == [3, 5]
    assert "text is column" not in err


def test_every_row_of_the_table_has_its_answer(run, survey, fitted, tmp_path):
    for name in ("p.csv", "p.xlsx", "p.parquet", "p.jsonl"):
        code, _, err = run("predict", fitted, survey, "--out", tmp_path / name)
        assert code == 0, err
        assert "row 7: empty text" in err
    table = pl.read_parquet(tmp_path / "p.parquet")
    own = ["respondent", "day", "agent", "title", "body", "tea (table)", "coffee (table)", "weight"]
    assert table.columns == [*own, "predicted", "coffee", "tea", "(none)"]
    assert table["respondent"].to_list() == [f"R{i}" for i in range(24)]
    assert table["day"][3] == dt.date(2024, 1, 4)
    assert table["weight"].to_list() == [-1.25 + i for i in range(24)]
    empty = table.row(5, named=True)
    assert [empty[name] for name in ("predicted", "coffee", "tea", "(none)")] == [None] * 4
    assert table["predicted"].to_list()[6:8] == ["tea", "coffee"]
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[1].startswith("R0,2024-01-01,Bob,green,green leaves cup kettle,1,0,-1.25,tea,")
    assert lines[6] == "R5,2024-01-06,Ann,,,0,1,3.75,,,,"
    sheet = openpyxl.load_workbook(tmp_path / "p.xlsx").active
    assert [cell.value for cell in sheet["A"]] == ["respondent", *(f"R{i}" for i in range(24))]
    assert sheet["H2"].value == -1.25
    assert [sheet[cell].number_format for cell in ("H2", "J2", "L2")] == ["General", "0.0%", "0.0%"]
    assert sheet["B5"].value == dt.datetime(2024, 1, 4)


def test_empty_rows_of_a_sheet_stay_where_they_are(run, survey, fitted, tmp_path):
    book = openpyxl.load_workbook(survey)
    book.active.insert_rows(10, 2)
    book.active.insert_rows(2)
    book.save(survey)
    code, _, err = run("predict", fitted, survey, "--out", tmp_path / "p.xlsx")
    assert code == 0, err
    assert "rows 2, 11, 12: empty row" in err
    given, found = (openpyxl.load_workbook(path).active for path in (survey, tmp_path / "p.xlsx"))
    assert [cell.value for cell in found["A"]] == [cell.value for cell in given["A"]]
    answers = {cell.row for cell in found["J"] if cell.value is not None}
    assert answers == set(range(1, 29)) - {2, 8, 11, 12}


def test_a_wrong_destination_is_refused_before_the_work(run, survey, fitted, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("the work began")

    monkeypatch.setattr(commands, "load", never)
    for target in ("p.sqlite", "nowhere/p.csv"):
        code, _, err = run("predict", fitted, survey, "--out", tmp_path / target)
        assert code == 1
        assert "the name must end in .csv" in err or "there is no folder" in err


def test_labels_none_on_the_command_line(run, survey, tmp_path):
    out = tmp_path / "none"
    code, _, err = run("fit", survey, "--text", "body", "--labels", "none", "--free", 2, "--out", out, "-q")
    assert code == 0, err
    assert TopicModel.load(out).state_.topics.n_known == 0


def test_the_same_problem_is_one_line(run, tmp_path):
    path = tmp_path / "gaps.csv"
    lines = [f"{i},{'' if i % 3 == 0 else ' '.join(WORDS['tea'].split()[: 2 + i % 3])},tea" for i in range(60)]
    path.write_text("id,text,label\n" + "\n".join(lines) + "\n")
    err = run("fit", path, "--out", tmp_path / "m", "--free", 1)[2]
    assert err.count("empty text") == 1
    assert "20 bad rows, left out" in err
    assert "lines 2, 5, 8, 11, 14 and 15 more: empty text" in err


def test_update_prints_the_topics(run, tmp_path):
    texts = [f"{words} number{k}" for k, words in enumerate([*WORDS.values()] * 8)]
    names = [f"topic {k}" for k in range(8)]
    frame = {"id": list(range(16)), "text": texts, "label": [names[k % 8] if k < 12 else None for k in range(16)]}
    pl.DataFrame(frame).write_csv(tmp_path / "a.csv")
    assert run("fit", tmp_path / "a.csv", "--out", tmp_path / "m", "--free", 0, "--world", "closed", "-q")[0] == 0
    code, out, err = run("update", tmp_path / "m", tmp_path / "a.csv")
    assert code == 0
    assert "topic 3" in out
    pl.DataFrame({"id": [99], "text": ["cold milk and milk foam"], "label": ["milk"]}).write_csv(tmp_path / "b.csv")
    code, out, err = run("update", tmp_path / "m", tmp_path / "b.csv")
    assert code == 0
    assert "milk" in out
    assert "new topics: milk" in err


def test_ids_can_be_ruled_out(run, tmp_path):
    """A case may have several rows. The model remembers that rows have numbers."""
    rows = {"id": ["A", "A", "B"] * 8, "text": ["green tea leaves", "roast coffee beans", "tea leaves"] * 8}
    pl.DataFrame(rows | {"label": ["tea", "coffee", None] * 8}).write_csv(tmp_path / "cases.csv")
    code, _, err = run("fit", tmp_path / "cases.csv", "--id", "none", "--free", 0, "--out", tmp_path / "model")
    assert code == 0, err
    assert "repeats ids" not in err
    assert TopicModel.load(tmp_path / "model").state_.topics.ids == list(range(24))
    code, out, err = run("predict", tmp_path / "model", tmp_path / "cases.csv")
    assert code == 0, err
    found = pl.read_csv(io.StringIO(out))
    assert found.columns[:4] == ["id", "id (table)", "text", "label"]
    assert found["id"].to_list() == list(range(24))
    code, _, err = run("prevalence", tmp_path / "model", tmp_path / "cases.csv")
    assert code == 0, err


def test_a_topic_may_have_the_name_of_the_column_of_predictions(run, tmp_path):
    rows = {"text": ["green tea leaves", "roast coffee beans"] * 8, "label": ["predicted", "coffee"] * 4 + [None] * 8}
    pl.DataFrame(rows).write_csv(tmp_path / "texts.csv")
    code, _, err = run("fit", tmp_path / "texts.csv", "--free", 0, "--out", tmp_path / "model")
    assert code == 0, err
    found = pl.read_csv(io.StringIO(run("predict", tmp_path / "model", tmp_path / "texts.csv")[1]))
    assert found.columns == ["id", "text", "label", "predicted", "coffee", "predicted (topic)", "(none)"]
    assert found["predicted"][:2].to_list() == ["predicted", "coffee"]
    assert found["predicted (topic)"][0] > 0.9
