"""Excel workbooks are read like any other table, and hostile ones are refused."""

import datetime as dt
import random
import zipfile
from contextlib import suppress

import pandas as pd
import polars as pl
import pytest

from topicsteer.corpora import ReadError, ReadOptions, TableStream, read_documents, read_labels, read_table
from topicsteer.corpora.readers import limited, load_table
from topicsteer.report.workbook import write_workbook

openpyxl = pytest.importorskip("openpyxl")

SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>'
)
HEAD = '<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c></row>'


def survey():
    """Rows of a survey with every type of cell."""
    moment, day = dt.datetime(2024, 2, 29, 13, 45, 30), dt.date(1987, 6, 5)
    return [
        ["respondent", "answer", "topics", "age", "weight", "when", "born", "agreed", "at"],
        [101, "The bus is late; again", "transport", 41, 0.123456789, moment, day, True, dt.time(8, 30)],
        [102, "=1+1 is a formula\nand a second line", "prices", -7, 1e-9, moment, day, False, dt.time(0, 0, 1)],
        [103, None, None, None, None, None, None, None, None],
        [104, "Preise <steigen> & fallen – ständig 雨", None, 10**12, -2.5, moment, day, True, dt.time(23, 59)],
    ]


def book(path, sheets, first_1904=False):
    made = openpyxl.Workbook()
    made.remove(made.active)
    if first_1904:
        made.epoch = openpyxl.utils.datetime.CALENDAR_MAC_1904
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for number, row in enumerate(rows, 1):
            for column, value in enumerate(row, 1):
                cell = sheet.cell(number, column, value)
                if isinstance(value, str):
                    cell.data_type = "s"  # a text that looks like a formula
    made.save(path)
    return path


def forged(path, sheet, extra=""):
    """A workbook of hand-made XML."""
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(
            "_rels/.rels",
            f'<Relationships><Relationship Id="r0" Type="{kind}/officeDocument" Target="xl/workbook.xml"/>'
            "</Relationships>",
        )
        made.writestr(
            "xl/workbook.xml", f'<workbook xmlns:r="{kind}"><sheets><sheet name="a" r:id="r1"/></sheets></workbook>'
        )
        made.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships><Relationship Id="r1" Type="{kind}/worksheet" Target="worksheets/sheet1.xml"/>{extra}'
            "</Relationships>",
        )
        made.writestr("xl/worksheets/sheet1.xml", sheet)
    return path


@pytest.mark.parametrize("first_1904", [False, True])
def test_cells_are_those_of_openpyxl_and_pandas(tmp_path, first_1904):
    path = book(tmp_path / "survey.xlsx", {"data": survey()}, first_1904)
    table = load_table(path, ReadOptions())
    frame = pd.read_excel(path)
    assert list(table.columns) == list(frame.columns)
    assert list(table.places) == [2, 3, 4, 5]
    for row, given in zip(zip(*table.columns.values(), strict=True), survey()[1:], strict=True):
        assert list(row) == given
        assert [type(cell) for cell in row] == [type(cell) for cell in given]
    for name, cells in table.columns.items():
        expected = [None if pd.isna(cell) else cell for cell in frame[name]]
        if name == "born":
            expected = [None if cell is None else cell.date() for cell in expected]
        assert cells == expected
    documents = read_table(path, text="answer")
    assert documents.ids == [101, 102, 104]
    assert documents.labels == [["transport"], ["prices"], []]
    assert documents.columns["when"][0] == dt.datetime(2024, 2, 29, 13, 45, 30)
    assert [str(row) for row in documents.report.bad_rows] == ["row 4: empty text"]


def test_a_number_or_date_in_a_text_column_is_a_text(tmp_path):
    """Excel turns short answers into numbers and dates; pandas has numpy's numbers."""
    answers = ["The bus is late", 42, 3.5, True, dt.date(2026, 4, 3), dt.time(8, 30), 42.0]
    texts = ["The bus is late", "42", "3.5", "true", "2026-04-03", "08:30:00", "42"]
    path = book(tmp_path / "a.xlsx", {"a": [["respondent", "text"], *enumerate(answers)]})
    documents = read_table(path)
    assert (documents.texts, documents.report.bad_rows) == (texts, ())
    assert read_table(pd.DataFrame({"text": [1.5, 2.0]})).texts == ["1.5", "2"]
    assert read_table([{"text": 7}, {"text": "a"}]).texts == ["7", "a"]


def test_a_text_far_below_dates_makes_the_column_text(tmp_path):
    rows = [["id", "text", "day"], *([i, f"text {i}", dt.date(2026, 1, 1)] for i in range(1500)), [7, "b", "unknown"]]
    found = load_table(book(tmp_path / "a.xlsx", {"a": rows}), ReadOptions()).columns
    assert found["day"][-2:] == ["2026-01-01", "unknown"]
    assert found["id"][-2:] == [1499, 7]


def test_row_numbers_of_a_table_that_begins_in_the_middle_of_a_sheet(tmp_path):
    made = openpyxl.Workbook()
    for place, value in {"C4": "text", "D4": "n", "C6": "hello", "D6": 3, "E9": True}.items():
        made.active[place] = value
    made.save(tmp_path / "a.xlsx")
    table = load_table(tmp_path / "a.xlsx", ReadOptions())
    assert table.columns == {"text": ["hello", None], "n": [3, None], "column 3": [None, True]}
    assert list(table.places) == [6, 9]
    assert table.problems == dict.fromkeys([5, 7, 8], "empty row")


def test_hidden_sheets_are_passed_over(tmp_path):
    made = openpyxl.load_workbook(book(tmp_path / "a.xlsx", {"old": [["text"], ["a"]], "new": [["text"], ["b"]]}))
    made["old"].sheet_state = "hidden"
    made.save(tmp_path / "a.xlsx")
    assert read_table(tmp_path / "a.xlsx").texts == ["b"]
    assert read_table(tmp_path / "a.xlsx", sheet="old").texts == ["a"]


def test_a_part_that_states_a_false_size_is_refused(tmp_path):
    path = forged(tmp_path / "a.xlsx", SHEET.format(HEAD + "<row><c><v>1</v></c></row>" * 200_000))
    size = zipfile.ZipFile(path).getinfo("xl/worksheets/sheet1.xml").file_size
    data = path.read_bytes().replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    path.write_bytes(data)
    with limited(4 << 20), pytest.raises(ReadError, match="fill the memory"):
        read_documents(path, ReadOptions(text="text"))


def test_our_own_workbooks_come_back(tmp_path):
    table = pl.DataFrame(
        {
            "id": ["=1+1", "b\u202e", "_x0041_"],
            "text": ["a\x07 bell", "two\nlines", " spaces "],
            "n": [-1, 2, None],
            "share": [0.1, 1.0, None],
            "day": [dt.date(2020, 1, 1), None, dt.date(1900, 3, 1)],
            "ok": [True, False, None],
        }
    )
    write_workbook(table, tmp_path / "t.xlsx")
    found = load_table(tmp_path / "t.xlsx", ReadOptions()).columns
    expected = table.to_dict(as_series=False) | {
        "id": ["=1+1", "b⟦U+202E⟧", "_x0041_"],
        "text": ["a⟦U+0007⟧ bell", "two\nlines", " spaces "],
    }
    assert found == expected
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").active
    assert [cell.value for cell in sheet["C"]] == ["n", *found["n"]]


def test_sheets_blocks_and_label_files(tmp_path):
    rows = [["id", "text"], *([f"d{i}", f"text number {i} " * 20] for i in range(300))]
    path = book(tmp_path / "two.xlsx", {"empty": [], "notes": [["about"], ["nothing"]], "data": rows})
    with pytest.raises(ReadError, match=r"there is no sheet 'x'; the sheets are 'empty', 'notes', 'data'"):
        read_table(path, sheet="x")
    whole = read_table(path, sheet="data")
    assert len(whole) == 300
    assert not whole.report.guesses[0].startswith("the sheet")
    assert read_table(path, text="about").report.guesses[0] == "the sheet is 'notes'; other sheets: 'empty', 'data'"
    (block,) = TableStream(path, ReadOptions(sheet="data"), size=20_000)
    assert block.ids == whole.ids
    labels = book(tmp_path / "labels.xlsx", {"l": [["id", "label"], ["d7", "tea"]]})
    assert read_labels(labels).records[0].labels == ["tea"]
    assert read_table(path, sheet="data", label_file=labels).labels[7] == ["tea"]


def test_rich_text_prefixes_and_pronunciations(tmp_path):
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    extra = f'<Relationship Id="r2" Type="{kind}/sharedStrings" Target="/xl/sharedStrings.xml"/>'
    rows = '<x:row><x:c t="s"><x:v>0</x:v></x:c></x:row><x:row r="9"><x:c t="s"><x:v>1</x:v></x:c>'
    more = '<x:c t="e"><x:v>#N/A</x:v></x:c></x:row>'
    sheet = f'<x:worksheet xmlns:x="m"><x:sheetData>{rows}{more}</x:sheetData></x:worksheet>'
    path = forged(tmp_path / "a.xlsx", sheet, extra)
    with zipfile.ZipFile(path, "a") as made:
        made.writestr(
            "xl/sharedStrings.xml",
            "<sst><si><t>te</t><t>xt</t></si><si><r><t>東</t></r><r><t>京_x000D_\n都</t></r><rPh><t>とう</t></rPh></si></sst>",
        )
    table = load_table(path, ReadOptions())
    assert table.columns == {"text": ["東京\n都"]}
    assert list(table.places) == [9]


@pytest.mark.parametrize(
    ("name", "sheet", "problem"),
    [
        ("rows", HEAD + '<row><c t="inlineStr"><is><t>aaaa</t></is></c></row>' * 100_000, "fill the memory"),
        ("wide", HEAD + '<row><c r="XFD1"><v>1</v></c></row>' * 2000, "fill the memory"),
        ("text", HEAD + f'<row><c t="inlineStr"><is><t>{"a" * (1 << 23)}</t></is></c></row>', "fill the memory"),
        ("tall", HEAD + '<row r="99999999"><c><v>1</v></c></row>', "fill the memory"),
        ("far", HEAD + '<row><c r="ZZZZ1"><v>1</v></c></row>', "at most 100,000 are read"),
    ],
)
def test_bombs_are_refused(tmp_path, name, sheet, problem):
    path = forged(tmp_path / f"{name}.xlsx", SHEET.format(sheet))
    assert path.stat().st_size < 1 << 19
    with limited(4 << 20), pytest.raises(ReadError, match=problem):
        read_documents(path, ReadOptions(text="text"))


def test_one_long_text_in_many_cells_is_refused(tmp_path):
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    cell = '<row><c t="s"><v>0</v></c></row>'
    path = forged(
        tmp_path / "a.xlsx",
        SHEET.format(HEAD + cell * 1000),
        f'<Relationship Id="r2" Type="{kind}/sharedStrings" Target="sharedStrings.xml"/>',
    )
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as made:
        made.writestr("xl/sharedStrings.xml", f"<sst><si><t>{'word ' * 6000}</t></si></sst>")
    with limited(4 << 20), pytest.raises(ReadError, match="fill the memory"):
        read_documents(path, ReadOptions(text="text"))


def test_entities_old_files_and_damage_are_refused(tmp_path):
    entity = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>' + SHEET.format(HEAD)
    with pytest.raises(ReadError, match="has a document type"):
        read_table(forged(tmp_path / "entity.xlsx", entity))
    old = tmp_path / "old.xlsx"
    old.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    with pytest.raises(ReadError, match=r"an old .xls file, or has a password"):
        read_table(old)
    whole, seeds = book(tmp_path / "a.xlsx", {"data": survey()}).read_bytes(), random.Random(1)
    for _ in range(150):  # any damage is a sentence, or harmless
        damaged = bytearray(whole)
        for _ in range(seeds.randint(1, 8)):
            damaged[seeds.randrange(len(damaged))] = seeds.randrange(256)
        old.write_bytes(damaged[: seeds.choice([len(damaged), seeds.randrange(len(damaged))])])
        with suppress(ReadError):
            read_documents(old, ReadOptions(text="answer"))
