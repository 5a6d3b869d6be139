import codecs
import csv
import gzip
import io
import json
from contextlib import suppress

import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from topicsteer.corpora import BadRow, Documents, ReadError, ReadOptions, TableStream, UnclearLabels, read_table
from topicsteer.corpora.columns import StringSummary, split_labels
from topicsteer.corpora.readers import BUFFER, MAX_RECORD

ROWS = [
    {"key": "a", "body": "rain at noon, says the office", "topics": "weather", "year": "1999"},
    {"key": "b", "body": 'shares "fell"\nagain', "topics": "money;trade", "year": "2000"},
    {"key": "c", "body": "snö och kyla", "topics": "", "year": "2001"},
]
LABELS = [["weather"], ["money", "trade"], []]


def as_csv(delimiter=","):
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(ROWS[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(ROWS)
    return stream.getvalue()


def as_jsonl():
    return "".join(json.dumps(row) + "\n" for row in ROWS)


def as_parquet():
    stream = io.BytesIO()
    pl.DataFrame(ROWS).write_parquet(stream)
    return stream.getvalue()


FILES = {
    "a.csv": as_csv().encode(),
    "a.tsv": as_csv("\t").encode(),
    "semicolons.csv": as_csv(";").encode(),
    "a.jsonl": as_jsonl().encode(),
    "a.ndjson": as_jsonl().encode(),
    "a.json": json.dumps(ROWS).encode(),
    "a.parquet": as_parquet(),
    "bom.csv": codecs.BOM_UTF8 + as_csv().encode(),
    "bom.jsonl": codecs.BOM_UTF8 + as_jsonl().encode(),
    "wide.csv": as_csv().encode("utf-16"),
    "wide.jsonl": as_jsonl().encode("utf-16"),
    "wider.tsv": as_csv("\t").encode("utf-32"),
    "windows.csv": as_csv().encode("cp1252"),
    "UPPER.CSV": as_csv().encode(),
}


# Every kind of file, and those that may be packed.
FORMS = [(name, packed) for name in FILES for packed in (False, True) if not (packed and name.endswith(".parquet"))]


def write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def bad(documents):
    return [str(row) for row in documents.report.bad_rows]


@pytest.mark.parametrize(("name", "packed"), FORMS)
def test_every_kind_of_file_gives_the_same_documents(tmp_path, name, packed):
    content = gzip.compress(FILES[name]) if packed else FILES[name]
    documents = read_table(write(tmp_path / (name + ".gz" * packed), content), id="key")
    assert documents.ids == ["a", "b", "c"]
    assert [text.split() for text in documents.texts] == [row["body"].split() for row in ROWS]
    assert documents.labels == LABELS
    assert documents.columns == {"year": ["1999", "2000", "2001"]}
    assert not documents.report.bad_rows


@pytest.mark.parametrize(
    "source",
    [pd.DataFrame(ROWS), pl.DataFrame(ROWS), pl.DataFrame(ROWS).to_arrow(), ROWS],
    ids=["pandas", "polars", "arrow", "records"],
)
def test_tables_in_memory_give_the_same_documents(source):
    documents = read_table(source, id="key")
    assert documents.ids == ["a", "b", "c"]
    assert documents.texts == [row["body"] for row in ROWS]
    assert documents.labels == LABELS
    assert documents.columns == {"year": ["1999", "2000", "2001"]}


@pytest.mark.parametrize("make", [list, tuple, pd.Series, pl.Series, iter])
def test_a_list_of_texts_is_a_table(make):
    documents = read_table(make(["one text", "another text"]))
    assert documents.ids == [0, 1]
    assert documents.texts == ["one text", "another text"]
    assert documents.labels == [[], []]
    assert documents.report.guesses == ()


def test_a_dict_of_tables_is_refused():
    with pytest.raises(ReadError, match="a dict of 'train', 'test': pass one of its values"):
        read_table({"train": ["rain at noon"], "test": []})


def test_lazy_frames_and_arrow_columns():
    frame = pl.DataFrame({"text": ["rain at noon", "shares fell"], "label": ["weather", None]})
    assert read_table(frame.lazy()).labels == [["weather"], []]
    assert read_table(frame.to_arrow()["text"]).texts == ["rain at noon", "shares fell"]


def test_guesses_are_reported(tmp_path):
    documents = read_table(write(tmp_path / "w.csv", as_csv().encode("cp1252")))
    assert documents.report.guesses == (
        "encoding is cp1252",
        "text is column 'body'",
        "labels are column 'topics', separated by ';'",
    )
    assert documents.ids == [0, 1, 2]
    named = read_table(tmp_path / "w.csv", text="body", labels="topics", separator=";", encoding="cp1252")
    assert named.report.guesses == ()


def test_text_is_guessed_by_length_when_no_name_helps(tmp_path):
    long = "A sentence that goes on for quite a while, as texts do."
    path = write(tmp_path / "a.csv", f"kuerzel,inhalt\nx,{'z' * 60}\ny,{long.replace(',', ' ')}\n")
    nothing = "no labels found in 'kuerzel': if there are labels, pass their column as --labels (labels= in Python)"
    assert read_table(path).report.guesses == ("text is column 'inhalt'", nothing)
    assert read_table(path, labels=False).report.guesses == ("text is column 'inhalt'",)


def test_signs_of_a_missing_label_are_no_labels(tmp_path):
    cells = ["tea", "NA", "n/a", " - ", "?", "-1", "none", "null", "tea;NA"]
    path = write(tmp_path / "a.csv", "text,label\n" + "".join(f"text {k},{c}\n" for k, c in enumerate(cells)))
    documents = read_table(path)
    assert documents.labels == [["tea"], [], [], [], [], [], ["none"], [], ["tea", "NA"]]
    assert documents.report.guesses[-1] == "'-', '?', 'NA', 'n/a', 'null' in column 'label' read as no label"
    listed = read_table([{"text": "a", "label": ["NA"]}])
    assert listed.labels == [["NA"]]
    with pytest.raises(ReadError, match=r"which column holds the texts\?.*'one', 'two'"):
        read_table([{"one": "short", "two": "words"}])


def test_an_id_column_that_repeats_is_not_an_id():
    rows = [{"id": "same", "text": f"text {n}"} for n in range(4)]
    documents = read_table(rows)
    assert documents.ids == [0, 1, 2, 3]
    assert documents.columns == {"id": ["same"] * 4}
    assert len(bad(read_table(rows, id="id"))) == 3


@pytest.mark.parametrize("options", [{}, {"delimiter": ";"}])
def test_a_header_may_be_longer_than_the_csv_module_permits(tmp_path, options):
    name = "x" * 200_000
    documents = read_table(write(tmp_path / "a.csv", f"{name}\nrain at noon\n".encode()), **options)
    assert documents.texts == ["rain at noon"]


def test_broken_rows_are_listed_together_and_good_rows_are_kept(tmp_path):
    path = write(
        tmp_path / "a.csv",
        b"id,text,label\n"
        b"1,good one,x\n"
        b"2,too,many,fields\n"
        b"3,caf\xe9,x\n"
        b"4,caf\xc3\xa9 noir,x\n"
        b'5,"two\nlines",x\n'
        b"6,,x\n"
        b"1,same id,x\n"
        b"7,short\n"
        b"\n"
        b",no id,x\n"
        b"8,good two,x,,\n"
        b"9,caf\xc3\xa9 au lait,x\n",
    )
    documents = read_table(path)
    assert documents.ids == ["1", "4", "5", "8", "9"]
    assert bad(documents) == [
        "line 3: 4 fields, the header has 3",
        "line 4: cannot be decoded as utf-8; if the file has another encoding, pass --encoding (encoding= in Python)",
        "line 8: empty text",
        "line 9: the id '1' occurs a second time",
        "line 10: 2 fields, the header has 3",
        "line 12: missing id",
    ]


def test_an_open_quote_does_not_swallow_the_lines_below(tmp_path):
    lines = [
        "id,text",
        '1,"never closed',
        "2,good",
        "3,good too",
        '4,"he said "no" to it"',
        '5,"fine"',
        '6,"open',
    ]
    documents = read_table(write(tmp_path / "a.csv", "\n".join(lines)))
    assert documents.ids == ["1", "2", "3", "4", "5", "6"]
    assert documents.texts[:3] == ["never closed", "good", "good too"]
    assert documents.texts[4:] == ["fine", "open"]
    assert not documents.report.bad_rows
    three = [line + ",x" for line in lines]
    documents = read_table(write(tmp_path / "b.csv", "\n".join(three)))
    assert {"2", "3", "5"} <= set(documents.ids)
    assert len(documents) + len(documents.report.bad_rows) == 6


def test_long_texts_and_old_line_ends(tmp_path):
    documents = read_table(write(tmp_path / "a.csv", f"id,text\r1,{'word ' * 50_000}\r2,short\r"))
    assert [len(text) for text in documents.texts] == [250_000, 5]
    assert csv.field_size_limit() == 131_072
    documents = read_table(write(tmp_path / "b.csv", "id,text\n1,a\rb\n2,c\n"))
    assert documents.texts == ["a b", "c"]


def test_headers_without_names_or_with_the_same_name(tmp_path):
    documents = read_table(write(tmp_path / "a.csv", "text,,note,note\nhello,1,2,3\n"))
    assert documents.columns == {"column 2": ["1"], "note": ["2"], "note (column 4)": ["3"]}


def test_broken_json_lines_are_listed(tmp_path):
    lines = [
        '{"text": "good"}',
        '{"text": ',
        "[1]",
        "",
        '{"text": {"a": 3}}',
        '{"text": "\\ud800"}',
        '{"text": "\\ud83d\\ude00"}',
    ]
    lines += ["[" * 100_000, '{"text": "end", "id": ["x"]}']
    documents = read_table(write(tmp_path / "a.jsonl", "\n".join(lines)))
    assert documents.texts == ["good", "😀", "end"]
    assert bad(documents) == [
        "line 2: not valid JSON (Expecting value at character 9)",
        "line 3: JSON of type list, expected an object with named values",
        "line 5: text of type dict, expected a string",
        "line 6: contains half of a surrogate pair, which is not a character",
        "line 8: nested too deeply",
    ]


def test_missing_values_of_pandas_are_missing():
    frame = pd.DataFrame(
        {
            "id": [1, 2, 3, 4],
            "text": ["one", None, float("nan"), "four"],
            "label": pd.array([7, pd.NA, 8, pd.NA], dtype="Int64"),
        }
    )
    documents = read_table(frame)
    assert documents.ids == [1, 4]
    assert documents.labels == [["7"], []]
    assert bad(documents) == ["row 2: empty text", "row 3: empty text"]
    assert read_table(pd.DataFrame({"text": ["a", "b"], "label": [3, None]})).labels == [["3"], []]


def test_ids_that_are_no_ids():
    rows = [{"id": key, "text": "x"} for key in (["a"], ("a", []), {"b": 1}, 7, "c")]
    documents = read_table(rows)
    assert documents.ids == [7, "c"]
    assert bad(documents)[0] == "row 1: id of type list, expected a string or a number"


def test_the_index_of_a_pandas_frame_is_kept():
    frame = pd.DataFrame({"text": ["a", "b", "", "d"]}, index=["w", "x", "y", "z"])
    assert read_table(frame).ids == ["w", "x", "z"]
    assert read_table(frame.reset_index(drop=True)[1:]).ids == [1, 3]
    assert read_table(pd.concat([frame, frame])).ids == [0, 1, 3, 4, 5, 7]


def test_odd_names_of_pandas_columns():
    assert read_table(pd.DataFrame({0: ["a", "b"], 1: [1, 2]}), text="0").columns == {"1": [1, 2]}
    assert read_table([{0: "a", 1: 2}], text="0").columns == {"1": [2]}
    with pytest.raises(ReadError, match="two columns of the DataFrame have the same name"):
        read_table(pd.DataFrame([["a", "b"]], columns=["text", "text"]))


def test_lists_of_labels_and_minus_one():
    frame = pl.DataFrame({"text": ["a", "b", "c"], "labels": [["x", "y", "x"], [], None]})
    assert read_table(frame).labels == [["x", "y"], [], []]
    assert read_table(frame.to_pandas()).labels == [["x", "y"], [], []]
    assert read_table(pd.DataFrame({"text": ["a", "b"], "labels": [-1, 0]})).labels == [[], ["0"]]
    documents = read_table([{"text": "a", "labels": [{"x": 1}]}, {"text": "b", "labels": "x"}])
    assert bad(documents) == ["row 1: label of type dict, expected a name"]


def test_forbidden_topics_have_their_own_column():
    documents = read_table(
        [{"text": "a", "label": "x", "forbidden": "y;z"}, {"text": "b", "label": "", "forbidden": ""}]
    )
    assert documents.forbidden == [["y", "z"], []]
    assert documents.topic_names == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["a;b", "c, d;e", "f"], ";"),
        (["a|b", "c"], "|"),
        (["a,b", "c"], ","),
        (["a, b", "b, c", "a, c", "a"], ","),
        (["Korea, South", "Korea, North", "Japan"], None),
        (["a", "b", "", None], None),
        (['["a", "b"]', "[]"], "json"),
        (["['a', 'b']", ""], "json"),
        ([], None),
        ([3, None], None),
    ],
)
def test_separators_are_guessed(cells, separator):
    assert StringSummary(cells).separator == separator


def test_commas_that_part_no_labels_are_said():
    documents = read_table([{"text": "a", "label": "Korea, South"}, {"text": "b", "label": "China"}])
    assert documents.labels == [["Korea, South"], ["China"]]
    assert any(guess.startswith("commas in column 'label' are part of a name") for guess in documents.report.guesses)


def test_lists_in_cells():
    assert split_labels('["a", "b;c"]', "json") == ["a", "b;c"]
    assert split_labels("['a', 'b', 'a']", "json") == ["a", "b"]
    assert split_labels(" ", "json") == []
    with pytest.raises(ValueError, match="not a JSON list"):
        split_labels("[a", "json")


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        (
            "a.csv",
            b"text\nhello\n",
            {"text": "txt"},
            "there is no column 'txt'; the columns are 'text'; did you mean",
        ),
        (
            "a.csv",
            b"text\nhello\n",
            {"text": "text", "labels": "text"},
            "'text' is already used for the texts",
        ),
        ("a.csv", b"", {}, "a.csv: is empty"),
        ("a.csv", b"text\n", {}, "there is no row with a text"),
        (
            "a.csv",
            b"text,id\n,1\n",
            {},
            "there is no row with a text\n.*text is column(.|\n)*line 2: empty text",
        ),
        ("a.csv", b"text\nhello\n", {"encoding": "utf-99"}, "unknown encoding 'utf-99'"),
        ("a.csv", b"text\nhello\n", {"encoding": "base64"}, "unknown encoding 'base64'"),
        ("a.csv", b"text\nhello\n", {"delimiter": "::"}, "delimiter is '::': expected one character"),
        ("a.docx", b"", {}, "unknown kind of file '.docx'; expected .csv"),
        ("a.json", b'{"text": "x"}', {}, "JSON of type dict, expected a list of objects"),
        ("a.json", b"[1, 2", {}, "not valid JSON"),
        ("a.json", b"[3]", {}, "is empty"),
        ("a.parquet", b"PAR1 no it is not PAR1", {}, "not a Parquet file"),
        ("a.parquet.gz", gzip.compress(b"PAR1", mtime=0), {}, "parquet files are not read from gzip; unpack it first"),
        ("a.xlsx.gz", gzip.compress(b"PK", mtime=0), {}, "xlsx files are not read from gzip; unpack it first"),
        ("a.csv.gz", gzip.compress(b"text\nhello\n" * 99, mtime=0)[:-20], {}, "damaged gzip file"),
    ],
)
def test_what_cannot_be_read_is_explained(tmp_path, name, content, options, message):
    path = write(tmp_path / name, content)
    with pytest.raises(ReadError, match=message):
        read_table(path, **options)


def test_wrong_places_are_explained(tmp_path):
    with pytest.raises(ReadError, match=r"no\.csv: there is no such file"):
        read_table(tmp_path / "no.csv")
    with pytest.raises(ReadError, match="is a folder; read its files with read_folder"):
        TableStream(str(tmp_path))
    with pytest.raises(ReadError, match="cannot read a int: expected a file name, a DataFrame"):
        read_table(3)


def test_a_named_encoding_is_used(tmp_path):
    path = write(tmp_path / "a.csv", "text\nこんにちは\n".encode("shift_jis"))
    assert read_table(path, encoding="shift_jis").texts == ["こんにちは"]


def test_bad_rows_are_values():
    assert read_table(["", "x"]).report.bad_rows == (BadRow("row 1", "empty text"),)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(st.text(min_size=1), st.lists(st.sampled_from(["red", "green", "blue sky"]))), min_size=1),
    delimiter=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_csv_writes_is_read_back(tmp_path_factory, rows, delimiter, encoding):
    rows = [(text.replace("\r", " "), labels) for text, labels in rows]
    rows = [(text if text.strip() else "x", labels) for text, labels in rows]
    rows = [(text.encode("utf-8", "replace").decode(), labels) for text, labels in rows]
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["text", "labels"])
    writer.writerows((text, json.dumps(labels)) for text, labels in rows)
    path = write(tmp_path_factory.mktemp("csv") / "a.csv", stream.getvalue().encode(encoding))
    documents = read_table(path, text="text", labels="labels", separator="json")
    assert documents.texts == [text for text, _ in rows]
    assert documents.labels == [list(dict.fromkeys(labels)) for _, labels in rows]
    assert not documents.report.bad_rows


FUZZ = st.one_of(
    st.binary(),
    st.text(alphabet='ab,;\t|"\n\r[]{}:\\0 é').map(lambda text: text.encode()),
    st.text(alphabet='a,"\n').map(lambda text: b"text,label\n" + text.encode()),
    st.text(alphabet='a,"\n').map(lambda text: b'{"text": "good"}\n' + text.encode()),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(content=FUZZ, name=st.sampled_from(["a.csv", "a.tsv", "a.jsonl", "a.json", "a.csv.gz"]))
@example(content=b'"\r\x00"', name="a.csv")
def test_no_file_gives_another_exception(tmp_path_factory, content, name):
    path = write(tmp_path_factory.mktemp("fuzz") / name, content)
    documents = None
    with suppress(ReadError):
        documents = read_table(path)
    assert documents is None or (len(documents) > 0 and all(text.strip() for text in documents.texts))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(rows=st.lists(st.dictionaries(st.sampled_from(["text", "label", "id", "forbidden", "x"]), JSON), min_size=1))
def test_no_record_gives_another_exception(rows):
    documents = None
    with suppress(ReadError):
        documents = read_table(rows)
    assert documents is None or len(documents) + len(documents.report.bad_rows) == len(rows)
    assert documents is None or all(isinstance(name, str) for names in documents.labels for name in names)


def test_the_only_other_column_holds_labels_if_its_values_repeat():
    texts = [f"a longer text with the number {i} in it, long enough to be one" for i in range(12)]
    frame = pl.DataFrame({"post": texts, "group": ["sport", "", "trade", "sport", "", None] * 2})
    documents = read_table(frame)
    assert documents.labels[0] == ["sport"]
    assert documents.labels[1] == []
    assert "labels are column 'group'" in str(documents.report)
    names = frame.with_columns(pl.Series("group", [f"name {i}" for i in range(12)]))
    assert read_table(names).columns.keys() == {"group"}  # distinct names are not labels
    assert read_table(frame.with_columns(year=pl.lit("1987"))).labels[0] == ["sport"]  # a full column holds groups
    region = frame.with_columns(pl.Series("group", ["north", "south"] * 6))
    assert read_table(region).topic_names == []
    assert read_table(region.rename({"group": "category"})).topic_names == []
    assert read_table(region.rename({"group": "label"})).topic_names == ["north", "south"]
    with pytest.raises(UnclearLabels, match=r"It may be 'group' \(6 of 12 .*, 'Thema' \(4 of 12") as two:
        read_table(frame.with_columns(Thema=pl.Series(["a", None, "b", None, None, None] * 2)))
    assert two.value.choices == ["group", "Thema"]
    with pytest.raises(UnclearLabels, match="'group'"):  # most rows have a value, but not all
        read_table(frame.with_columns(pl.Series("group", ["sport", "trade", None] * 4)))


def together(stream):
    """Join the documents of all blocks."""
    blocks = list(stream)
    names = dict.fromkeys(name for block in blocks for name in block.columns)
    return Documents(
        *([value for block in blocks for value in getattr(block, part)] for part in ("ids", "texts", "labels")),
        {name: [value for block in blocks for value in block.columns[name]] for name in names},
        [value for block in blocks for value in block.forbidden],
        numbered=blocks[0].numbered,
    )


def assert_same(path, size, **options):
    """Documents, report and error are the same with and without blocks."""
    whole = problem = None
    try:
        whole = read_table(path, **options)
    except ReadError as error:
        problem = str(error)
    if whole is None:
        with pytest.raises(ReadError) as caught:
            list(TableStream(path, ReadOptions(**options), size=size))
        assert str(caught.value) == problem
        return
    stream = TableStream(path, ReadOptions(**options), size=size)
    for _ in range(2):  # it can be read any number of times
        assert together(stream) == whole
        assert stream.report == whole.report


@pytest.mark.parametrize(("name", "packed"), FORMS)
def test_a_stream_gives_what_the_table_holds(tmp_path, name, packed):
    content = gzip.compress(FILES[name]) if packed else FILES[name]
    path = write(tmp_path / (name + ".gz" * packed), content)
    for size in (1, 150, 10**9):
        assert_same(path, size)
        assert_same(path, size, id="key", text="body", labels=False)
    assert len(list(TableStream(path, size=1))) == (1 if name.endswith((".json", ".parquet")) else 3)


@settings(max_examples=200, deadline=None)
@given(content=FUZZ, name=st.sampled_from(["a.csv", "a.tsv", "a.jsonl", "a.csv.gz"]), size=st.integers(1, 500))
def test_where_blocks_end_changes_nothing(tmp_path_factory, content, name, size):
    assert_same(write(tmp_path_factory.mktemp("fuzz") / name, content), size)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.dictionaries(st.sampled_from(["text", "label", "id", "forbidden", "x"]), JSON | st.just("a, b"))),
    size=st.integers(1, 500),
)
def test_where_blocks_end_changes_no_record(tmp_path_factory, rows, size):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    assert_same(write(tmp_path_factory.mktemp("fuzz") / "a.jsonl", lines), size)


def test_parquet_is_read_slice_by_slice(tmp_path):
    frame = pl.DataFrame(
        {
            "id": [*range(2999), 5],
            "text": [f"text {'long ' * (n % 7)}{n}" for n in range(3000)],
            "tags": [[f"t{n % 3}"] if n % 2 else None for n in range(3000)],
        }
    )
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=700)
    assert_same(tmp_path / "a.parquet", 50_000)
    blocks = list(TableStream(tmp_path / "a.parquet", size=50_000))
    assert len(blocks) > 4
    assert [str(row) for row in blocks[-1].report.bad_rows] == ["row 3000: the id 5 occurs a second time"]


def test_guesses_take_all_rows_into_account(tmp_path):
    lines = ["id,text,labels", *(f"{n % 3},text {n},a b" for n in range(50)), "1,last,a b;c"]
    stream = TableStream(write(tmp_path / "a.csv", "\n".join(lines)), size=100)
    assert stream.report.guesses == ("text is column 'text'", "labels are column 'labels', separated by ';'")
    assert_same(tmp_path / "a.csv", 100)
    late = [{"text": f"text {n}"} for n in range(50)] + [{"text": "last", "id": "x", "label": "a"}]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in late))
    assert_same(path, 100)
    assert_same(path, 100, id="id")


def test_an_open_quote_costs_bounded_memory(tmp_path):
    texts = [f"text {n} " + "long " * (MAX_RECORD // 400) for n in range(100)]
    lines = ["text,label", '"never closed,x', *(f"{text},x" for text in texts)]
    documents = read_table(write(tmp_path / "a.csv", "\n".join(lines)))
    assert documents.texts[-100:] == texts


@pytest.mark.slow
def test_old_line_ends_in_large_files(tmp_path):
    texts = [f"text number {n}" for n in range(BUFFER // 5)]
    path = write(tmp_path / "a.csv", "\r".join(["text", *texts]))
    assert read_table(path).texts == texts
    assert_same(path, BUFFER // 2)


def test_none_of_the_topics_in_a_table(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("id,text,labels\na,rain,weather\nb,noon,(none)\nc,wind,weather;(none)\nd,snow,\n")
    documents = read_table(path)
    assert documents.ids == ["a", "b", "d"]
    assert documents.labels == [["weather"], ["(none)"], []]
    assert documents.topic_names == ["weather"]
    (row,) = documents.report.bad_rows
    assert (row.place, row.problem.partition(":")[0]) == ("line 4", "the label '(none)' together with 'weather'")
    path.write_text("text,labels,forbidden\nrain,weather,\nnoon,,(none)\n")
    assert [str(row) for row in read_table(path).report.bad_rows] == ["line 3: forbids '(none)', which is not a topic"]
