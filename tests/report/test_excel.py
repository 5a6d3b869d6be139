"""Workbooks, read back by openpyxl and by pandas."""

import os
import zipfile
from datetime import UTC, date, datetime, time

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicsteer.analysis.column_formats import Column
from topicsteer.report import workbook
from topicsteer.report.table_files import write_table

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "'=1", '=HYPERLINK("http://a.b","c")', "=cmd|' /C calc'!A0"]


def cells(path, sheet=None):
    """The rows of a sheet as openpyxl reads them: its values, and their types."""
    book = openpyxl.load_workbook(path)
    rows = list((book[sheet] if sheet else book.active).iter_rows())
    return [[cell.value for cell in row] for row in rows], [[cell.data_type for cell in row] for row in rows]


def read_with_pandas(path, **options):
    return pd.read_excel(path, engine="openpyxl", keep_default_na=False, **options)


def test_values_of_all_types_are_read_back_the_same(tmp_path):
    table = pl.DataFrame(
        {
            "text": ["plain", "<b>&\"'", "émile 😀", "  two\nlines ", "http://example.org", "0012", "1", "TRUE", ""],
            "whole": [0, -1, 2, 999_999_999_999_999, -999_999_999_999_999, 5, 6, 7, None],
            "part": [0.0, -1.5, 1e-300, 1 / 3, 0.1, 1e300, 2.5, None, float("nan")],
            "yes": [True, False, None, True, True, True, False, True, False],
            "day": [date(1900, 3, 1), date(2026, 12, 31), None, *[date(2020, 2, 29)] * 6],
            "moment": [datetime(2020, 2, 29, 23, 59, 58), None, *[datetime(1999, 1, 1, 12)] * 7],
            "hour": [time(13, 30), None, *[time(0, 0, 1)] * 7],
        }
    )
    path = tmp_path / "values.xlsx"
    write_table(table, path)
    (head, *rows), (_, *types) = cells(path)
    assert head == table.columns
    for name, found in zip(head, zip(*rows, strict=True), strict=True):
        expected = table[name].cast(pl.Datetime).to_list() if name == "day" else table[name].to_list()
        empty = [value is None or value != value for value in expected]  # NaN too
        assert [value is None for value in found] == empty
        pairs = [pair for pair, none in zip(zip(found, expected, strict=True), empty, strict=True) if not none]
        assert all(one == other if name != "part" else one == pytest.approx(other, rel=1e-15) for one, other in pairs)
    assert types[0] == ["s", "n", "n", "b", "d", "d", "d"]
    assert {row[0] for row in types[:-1]} == {"s"}  # "1", "0012" and "TRUE" are text
    frame = read_with_pandas(path, dtype={"text": str})
    assert frame["text"].tolist() == table["text"].to_list()
    assert frame["whole"].tolist()[:-1] == table["whole"].to_list()[:-1]
    assert frame["day"].iloc[1] == pd.Timestamp(2026, 12, 31)
    assert frame["moment"].iloc[0] == pd.Timestamp(2020, 2, 29, 23, 59, 58)


def test_formula_like_cells_are_text(tmp_path):
    path = tmp_path / "formulas.xlsx"
    write_table(pl.DataFrame({"id": FORMULAS, "=column": FORMULAS}), path)
    rows, types = cells(path)
    assert rows == [["id", "=column"], *[[text, text] for text in FORMULAS]]
    assert {kind for row in types for kind in row} == {"s"}
    assert read_with_pandas(path)["id"].tolist() == FORMULAS
    with zipfile.ZipFile(path) as archive:
        inside = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".xml")}
    assert not any("<f>" in text or "<f " in text for text in inside.values())
    # A person who edits such a cell still has text.
    assert 'quotePrefix="1"' in inside["xl/styles.xml"]
    assert not any("hyperlink" in text for name, text in inside.items() if "sheet" in name)


def test_hidden_characters_are_shown_and_lines_end_as_in_excel(tmp_path):
    path = tmp_path / "hidden.xlsx"
    write_table(pl.DataFrame({"text": ["a\x00b", "\u202egnp", "one\r\ntwo\rthree", "\r=1", "\x0bx"]}), path)
    (_, *rows), _ = cells(path)
    assert [text for (text,) in rows] == ["a⟦U+0000⟧b", "⟦U+202E⟧gnp", "one\ntwo\nthree", "\n=1", "\nx"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1), min_size=1))
def test_any_text_is_read_back_the_same(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("any") / "any.xlsx"
    write_table(pl.DataFrame({"text": [f".{text}" for text in texts]}), path)
    (_, *rows), _ = cells(path)
    assert [text for (text,) in rows] == [f".{text}" for text in texts]


def test_values_that_excel_cannot_hold_are_text(tmp_path):
    path = tmp_path / "odd.xlsx"
    table = pl.DataFrame(
        {
            "large": [10**15, -3],
            "small": [10**15 - 1, None],
            "early": [date(1815, 6, 18), date(1900, 2, 28)],
            "zone": [datetime(2020, 1, 1, 12, tzinfo=UTC)] * 2,
            "list": [["a", "b"], ["=c"]],
            "infinite": [float("inf"), float("-inf")],
        }
    )
    write_table(table, path)
    (_, *rows), (_, *types) = cells(path)
    zone = "2020-01-01 12:00:00+00:00"
    assert rows[0] == ["1000000000000000", 10**15 - 1, "1815-06-18", zone, "a; b", "inf"]
    assert rows[1] == ["-3", None, "1900-02-28", zone, "=c", "-inf"]
    assert types[0] == ["s", "n", "s", "s", "s", "s"]


@pytest.mark.parametrize(("letter", "units"), [("x", 1), ("😀", 2)])
def test_long_texts_are_cut_with_a_warning(tmp_path, letter, units):
    path, longest = tmp_path / "long.xlsx", 32_767 // units
    table = pl.DataFrame({"id": [1, 2], "text": [letter * longest, letter * (longest + 1)]})
    with pytest.warns(UserWarning, match=r"long.xlsx: texts were cut in 1 cell of column 'text', because"):
        write_table(table, path)
    (_, first, second), _ = cells(path)
    assert first[1] == letter * longest
    assert second[1].endswith(f"{letter}…")
    assert len(second[1].encode("utf-16-le")) <= 2 * 32_767


@pytest.mark.parametrize(
    ("rows", "columns", "what"), [(workbook.ROWS, 1, "rows"), (1, workbook.MOST_COLUMNS + 1, "columns")]
)
def test_a_table_that_is_too_large_is_refused_before_writing(tmp_path, rows, columns, what):
    path = tmp_path / "large.xlsx"
    path.write_text("old")
    with pytest.raises(ValueError, match=rf"large.xlsx: the table has [\d,]+ {what}.*holds [\d,]+: write a .csv"):
        write_table(pl.DataFrame(np.zeros((rows, columns))), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["large.xlsx"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left")

    path = tmp_path / "table.xlsx"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_table(pl.DataFrame({"a": [1]}), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.xlsx"]


def test_shares_are_shown_in_percent_and_stay_numbers(tmp_path):
    path = tmp_path / "shares.xlsx"
    write_table(pl.DataFrame({"share": [0.125], "score": [0.125]}), path, [Column("share", "share"), Column("score")])
    share, score = openpyxl.load_workbook(path).active[2]
    assert (share.value, share.number_format) == (0.125, "0.0%")
    assert (score.value, score.number_format) == (0.125, "General")


def test_the_header_stays_visible_and_has_filters(tmp_path):
    path = tmp_path / "head.xlsx"
    write_table(pl.DataFrame({"a": [1], "b": [2]}), path)
    sheet = openpyxl.load_workbook(path).active
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:B2"
    write_table(pl.DataFrame({"a": []}), path)
    assert cells(path)[0] == [["a"]]
    write_table(pl.DataFrame(), path)
    assert cells(path)[0] == []
