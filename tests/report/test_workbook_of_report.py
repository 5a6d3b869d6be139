"""The report as a workbook with shares."""

import numpy as np
import openpyxl
import pandas as pd
import pytest
from problems import make_shares, make_topics

from topicsteer.report import workbook
from topicsteer.report.page import Example, ReportData

HOSTILE = ["<script>alert(1)</script>", "$x^2$ & more", "=1+1"]


def make_data():
    topics = make_topics(known=3, free=1, names=(*HOSTILE, "free"))
    months = ["2024-01", "2024-02", "2024-05", "(missing)"]
    difference = {"topic": HOSTILE[:1], "group": ["north"], "other": ["south"], "difference": [0.1]}
    ends = {"low": [0.05], "high": [0.15], "clear": [True]}
    shares = [
        make_shares([*topics.names, "(none)"], ["(all)"], "", notes=["An assumption."]),
        make_shares(topics.names, ["north", "south"], "a/b region", differences=difference | ends),
        make_shares(topics.names, months, "a b region", "month"),
    ]
    examples = {0: [Example("=1", "text " * 9000)], 1: [Example(7, "short")]}
    codebook = {"topic": HOSTILE, "description": ["", "-", "half \ud800"], "keywords": [""] * 3, "banned": [""] * 3}
    return ReportData("Title", topics, examples, codebook=codebook, shares=shares)


def test_the_workbook_has_all_tables(tmp_path):
    data, path = make_data(), tmp_path / "report.xlsx"
    with pytest.warns(UserWarning, match=r"cut in 1 cell of column 'text' \(sheet 'examples'\)"):
        workbook.write(data, path)
    book = pd.read_excel(path, sheet_name=None, engine="openpyxl", keep_default_na=False)
    assert list(book) == [
        *("topics", "shares", "assumptions", "by a b region", "by a b region, differences"),
        *("by a b region (2)", "examples", "codebook"),
    ]
    assert book["shares"]["topic"].tolist() == [*data.topics.names, "(none)"]
    assert book["shares"]["share"].tolist() == pytest.approx(data.shares[0].table["share"], rel=1e-15)
    assert book["by a b region"]["low"].tolist()[0] == pytest.approx(data.shares[1].table["low"][0], rel=1e-15)
    assert book["by a b region"]["low"].tolist()[1] == ""  # no interval
    assert book["assumptions"]["assumption"].tolist() == ["An assumption."]
    assert book["examples"]["id"].tolist() == ["=1", 7] or book["examples"]["id"].tolist() == ["=1", "7"]
    assert book["codebook"]["description"].tolist() == ["", "-", "half ⟦U+D800⟧"]
    sheets = openpyxl.load_workbook(path)
    assert {cell.data_type for sheet in sheets for row in sheet.iter_rows() for cell in row} <= {"s", "n", "b"}
    assert sheets["shares"]["B2"].number_format == "0.0%"


def test_sheets_without_rows_are_left_out():
    data = ReportData("Title", make_topics(), {})
    assert list(workbook.sheets(data)) == ["topics"]
    assert np.isclose(workbook.sheets(data)["topics"]["mean membership"].sum(), data.topics.mean_memberships.sum())
