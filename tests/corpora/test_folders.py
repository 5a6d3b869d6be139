import gzip

import pytest

from topicsteer.corpora import ReadError, ReadOptions, read_documents, read_folder, read_table


@pytest.fixture
def folder(tmp_path):
    for name, content in {
        "weather/a.txt": b"rain at noon",
        "weather/north/b.txt": "snö".encode("cp1252"),
        "money/c.txt.gz": gzip.compress(b"shares fell"),
        "money/d.txt": "\ufefftrade\r\nwar".encode("utf-16"),
        "money/e.txt": b" \n",
        "money/f.txt": b"\x81\x8d",
        "money/g.txt.gz": gzip.compress(b"cut short" * 9)[:-9],
        "money/notes.md": b"not asked for",
        "top.txt": b"alone",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_texts_ids_and_labels(folder):
    documents = read_folder(folder, labels_from_folders=True)
    assert documents.ids == [
        "money/c.txt.gz",
        "money/d.txt",
        "top.txt",
        "weather/a.txt",
        "weather/north/b.txt",
    ]
    assert documents.texts == ["shares fell", "trade\r\nwar", "alone", "rain at noon", "snö"]
    assert documents.labels == [["money"], ["money"], [], ["weather"], ["weather", "north"]]
    assert not any(read_folder(folder).labels)


def test_bad_files_are_listed(folder):
    assert [str(row) for row in read_folder(folder).report.bad_rows] == [
        "money/e.txt: empty text",
        "money/f.txt: line 1 cannot be decoded; name the encoding of the file",
        "money/g.txt.gz: damaged gzip file (Compressed file ended before the end-of-stream marker was "
        "reached); copy or download it again",
    ]


def test_pattern_and_encoding(folder):
    assert read_folder(folder, pattern="*.md").ids == ["money/notes.md"]
    assert "money/f.txt" in read_folder(folder, encoding="latin-1").ids
    with pytest.raises(ReadError, match="unknown encoding 'nonsense'"):
        read_folder(folder, encoding="nonsense")


def test_missing_folders_and_files(folder):
    with pytest.raises(ReadError, match="there is no such folder"):
        read_folder(folder / "top.txt")
    with pytest.raises(ReadError, match=r"no file matching \*.pdf could be read"):
        read_folder(folder, pattern="*.pdf")


def test_one_reader_for_folders_files_and_lists(folder):
    labelled = read_folder(folder, labels_from_folders=True)
    assert read_documents(folder, ReadOptions(labels="folders")) == labelled
    assert read_documents(str(folder)) == read_folder(folder)
    labels = folder / "labels.csv"
    labels.write_text("file,topic\ntop.txt,alone\nweather/a.txt,rain\n")
    given = ReadOptions(labels="folders", id="file", label_file=labels)
    assert read_documents(folder, given).labels == [
        ["money"],
        ["money"],
        ["alone"],
        ["weather", "rain"],
        ["weather", "north"],
    ]
    with pytest.raises(ReadError, match="there is no column 'flie'"):
        read_documents(folder, ReadOptions(label_options={"id": "flie"}, label_file=labels))
    table = folder / "table.csv"
    table.write_text("file,words,topic\ntop.txt,rain at noon,x\n")
    by_name = ReadOptions(text="words", id="file", label_file=labels)
    assert read_documents(table, by_name) == read_table(table, text="words", id="file", label_file=labels)
    assert read_documents(table, by_name).labels == [["alone"]]
    assert read_documents(["", "rain"], keep_empty=True).texts == ["", "rain"]


def test_a_folder_of_none_of_the_topics(tmp_path):
    for name in ("(none)/a.txt", "tea/b.txt", "tea/(none)/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("some words")
    documents = read_folder(tmp_path, labels_from_folders=True)
    assert documents.labels == [["(none)"], ["tea"]]
    assert [row.place for row in documents.report.bad_rows] == ["tea/(none)/c.txt"]
