"""The way of labels in a terminal: typed by hand, suggested, filled in, and back into a model."""

import io
import random
import string
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.app.workbench.imports import read_given_labels
from topicsteer.cli.reading import late_labels, one_spelling, with_labels
from topicsteer.corpora import (
    Documents,
    ReadOptions,
    UnclearLabels,
    attach_labels,
    read_documents,
    read_labels,
    read_table,
)
from topicsteer.labels.codebook import Lineage
from topicsteer.labels.supervision import Kind
from topicsteer.report.table_files import write_table

WORDS = {"Company": "firm trade market profit shares", "School": "pupil teacher class lesson exam"}


def texts_of(n, rng):
    topics = [rng.choice(list(WORDS)) for _ in range(n)]
    words = [" ".join([*rng.sample(WORDS[topic].split(), 3), f"filler{rng.randrange(20)}"]) for topic in topics]
    return topics, words


@pytest.fixture
def table(tmp_path):
    """60 documents with ids, 20 of them with a hand-typed label in a column without a usual name, and a full column."""
    topics, words = texts_of(60, random.Random(0))
    typed = [topic if row < 20 else "" for row, topic in enumerate(topics)]
    typed[0], typed[1] = typed[0].upper(), "Copmany" if typed[1] == "Company" else "Shcool"
    columns = {"id": [f"0{row}" for row in range(60)], "text": [f"{text}. {'long ' * 40}" for text in words]}
    path = tmp_path / "table.csv"
    pl.DataFrame(columns | {"Region": ["north", "south"] * 30, "Thema": typed}).write_csv(path)
    return path, topics


class Answers(io.StringIO):
    """A person at a terminal."""

    def isatty(self):
        return True


def test_typos_are_listed_and_merged_on_request(capsys, monkeypatch, tmp_path):
    labels = [["Company"]] * 6 + [["COMPANY"], ["Copmany"], ["School"], ["School"], ["School"], ["Schol"]]
    documents = Documents(range(12), ["text"] * 12, labels)
    kept, topics = one_spelling(documents, Lineage(), None)
    assert topics == ["Company", "Copmany", "Schol", "School"]
    notes = capsys.readouterr().err
    assert kept.topic_names == documents.topic_names
    assert "Other spellings, read as one name: COMPANY (1) → Company" in notes
    assert "1. Copmany (1) → Company (7)?, 2. Schol (1) → School (3)?" in notes
    assert "--merge-similar all merges all" in notes
    assert one_spelling(documents, Lineage(), "all")[0].topic_names == ["COMPANY", "Company", "School"]
    monkeypatch.setattr("sys.stdin", Answers("2\ny\n"))
    assert "Copmany" in one_spelling(documents, Lineage(), None)[0].topic_names
    assert one_spelling(documents, Lineage(), None)[0].topic_names == ["COMPANY", "Company", "School"]
    (tmp_path / "map.csv").write_text("label,topic\nschol,School\ncopmany,Firm\n")
    assert set(one_spelling(documents, Lineage(), str(tmp_path / "map.csv"))[1]) >= {"Firm", "School"}
    (tmp_path / "map.csv").write_text("label,name\n")
    with pytest.raises(ValueError, match="there is no column 'topic'; expected the columns 'label' and 'topic'"):
        one_spelling(documents, Lineage(), str(tmp_path / "map.csv"))


def test_the_column_of_labels_is_asked_for_in_a_terminal_and_listed_in_a_script(monkeypatch, table):
    path, _ = table
    found = pl.read_csv(path).with_columns(pl.Series("Topic (hand)", ["a", "b", None] * 20))

    def read(reading):
        return read_documents(found, reading)

    with pytest.raises(UnclearLabels, match=r"It may be 'Thema' \(20 of 60 .*, 'Topic \(hand\)' \(40 of 60"):
        with_labels(ReadOptions(), read)
    monkeypatch.setattr("sys.stdin", Answers("1\n2\n3\n4\n"))
    assert "School" in with_labels(ReadOptions(), read).topic_names
    assert with_labels(ReadOptions(), read).topic_names == ["a", "b"]
    assert with_labels(ReadOptions(), read).topic_names == []
    with pytest.raises(UnclearLabels):
        with_labels(ReadOptions(), read)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".jsonl"])
def test_suggest_fill_in_update_and_fit(run, table, tmp_path, suffix):
    path, topics = table
    model, out = tmp_path / "model", tmp_path / f"next{suffix}"
    code, _, notes = run(
        "fit", path, "--free", 1, "--world", "open", "--merge-similar", "all", "--out", model, "--keep-texts"
    )
    assert code == 0, notes
    assert "labels are column 'Thema'" in notes
    assert f"topicsteer suggest {model} {path} --for shares -n 50 --out next.xlsx" in notes
    assert set(TopicModel.load(model).topics["topic"].to_list()[:2]) == set(WORDS)
    code, _, notes = run("suggest", model, path, "--for", "shares", "-n", 30, "--out", out)
    assert code == 0, notes
    assert f"topicsteer update {model} --labels {out} or topicsteer fit {path} --label-file {out}" in notes
    columns = {".csv": pl.read_csv, ".xlsx": pl.read_excel, ".jsonl": pl.read_ndjson}[suffix](out)
    assert columns.columns[:4] == ["id", "text", "label", "guess"]
    assert not any(columns["label"].to_list())
    assert min(map(len, columns["text"])) > 200
    truth = {f"0{row}": topic for row, topic in enumerate(topics)}
    ids = [str(key).zfill(2) if str(key).isdecimal() else key for key in columns["id"]]
    filled = columns.with_columns(id=pl.Series([f"0{int(key)}" for key in ids]))
    filled = filled.with_columns(label=pl.Series([truth[key] for key in filled["id"]]))
    write_table(filled, out)
    code, _, notes = run(
        "fit",
        path,
        "--label-file",
        f"{out},labels=label,id=id",
        "--labels",
        "Thema",
        "--free",
        1,
        "-o",
        tmp_path / "again",
    )
    assert code == 0, notes
    assert run("update", model, "--labels", out)[0] == 0
    for folder in (tmp_path / "again", model):
        state = TopicModel.load(folder).state_
        assert state.supervision.labelled.sum() == 50
        assert (state.label_origin.kind == Kind.RANDOM).sum() == 30
        named = {str(key): k for k, key in enumerate(state.ids)}
        assert all(state.label_origin.kind[named[key]] == Kind.RANDOM for key in filled["id"])


@pytest.fixture(scope="module")
def fitted():
    """A model of 40 documents without labels of the round trips."""
    _, words = texts_of(40, random.Random(1))
    return TopicModel(0, world="closed").fit(words, ["Company", "School"] + [None] * 38)


def odd_text(rng):
    letters = string.ascii_letters + string.digits + " ,;\"'\n=@-+|<&äß→"
    return "word " + "".join(rng.choices(letters, k=rng.randrange(1, 400)))


def filled_in(seed):
    """Documents, their labels by hand, and the filled-in table of `suggest` with a row of another corpus."""
    rng = random.Random(seed)
    n = rng.randrange(3, 25)
    kinds = [str, lambda k: f"00{k}", lambda k: f"=doc {k}", lambda k: f"{k}.txt", lambda k: f"{k},{k}"]
    ids = [rng.choice(kinds)(row) for row in range(n)]
    documents = Documents(ids, [odd_text(rng) for _ in ids], [["own"] if rng.random() < 0.2 else [] for _ in ids])
    rows = sorted(rng.sample(range(n), rng.randrange(1, n + 1)))
    labels = {row: rng.choice(["tea", "tea; milk", "(none)", "(None)", " Tea ", ""]) for row in rows}
    labels[rows[0]] = "tea"
    strange = rng.randrange(2)
    table = {
        "id": [ids[row] for row in rows] + ["nobody"] * strange,
        "text": [documents.texts[row] for row in rows] + ["another text"] * strange,
        "label": [*labels.values()] + ["milk"] * strange,
        "guess": ["School; Company"] * (len(rows) + strange),
        "why": ["random"] * (len(rows) + strange),
        "chosen": ["doubt 2"] * (len(rows) + strange),
        "probability": ["0.25"] * (len(rows) + strange),
    }
    names = {row: [name.strip() for name in label.split(";") if name.strip()] for row, label in labels.items()}
    given = {row: ["(none)"] if own == ["(None)"] else own for row, own in names.items()}
    return documents, given, pl.DataFrame(table), strange


def check_draws(columns, rows):
    """Each label has its draw, and no other document has one."""
    for row, (chosen, probability) in enumerate(zip(columns["chosen"], columns["probability"], strict=True)):
        assert chosen == ("doubt 2" if row in rows else None)
        assert row not in rows or float(probability) == 0.25


def check_round_trip(seed, path):
    """Each label of a filled-in table comes back by fit, update and import with its draw, or its row is named."""
    documents, given, table, strange = filled_in(seed)
    write_table(table, path)
    ids, labelled = documents.ids, {row: own for row, own in given.items() if own}
    refused = {row for row, own in labelled.items() if own == ["(none)"] and documents.labels[row]}
    places = [table["id"].to_list().index(ids[row]) for row in sorted(refused)] + [table.height - 1] * strange
    source = pl.DataFrame({"id": ids, "text": documents.texts, "label": [";".join(own) for own in documents.labels]})
    joined = read_table(source, label_file=path, id="id", text="text", labels="label")
    numbers = [int(row.place.split()[-1]) for row in joined.report.bad_rows]
    first = 1 if path.suffix == ".jsonl" else 2
    if path.suffix != ".csv":  # a text of several lines moves the lines below it
        assert sorted(numbers) == sorted(first + place for place in places)
    assert len(numbers) == len(places)
    taken = {row: own for row, own in labelled.items() if row not in refused}
    assert joined.labels == [[*own, *taken.get(row, [])] for row, own in enumerate(documents.labels)]
    if taken:
        check_draws(joined.columns, taken)
    late = late_labels(SimpleNamespace(state_=SimpleNamespace(topics=documents)), ReadOptions(label_file=path))
    assert dict(zip(late.ids, late.labels, strict=True)) == {ids[row]: own for row, own in labelled.items()}
    assert len(late.report.bad_rows) == strange
    check_draws(late.columns, range(len(late)))
    (imported,), left_out = read_given_labels(path, Documents(ids, documents.texts))
    assert imported.labels == labelled
    assert imported.draws == dict.fromkeys(labelled, "doubt 0.25")
    assert [line for line in left_out if "nobody" in line] == left_out[:strange]
    empty = [f"{ids[row]}: no label" for row, own in given.items() if not own]
    assert left_out[strange:] == empty


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".jsonl"])
@pytest.mark.parametrize("seeds", [range(200), pytest.param(range(200, 500), marks=pytest.mark.slow)], ids=len)
def test_round_trips_lose_no_label(tmp_path, suffix, seeds):
    for seed in seeds:
        check_round_trip(seed, tmp_path / f"next{suffix}")


def test_rows_return_by_id_unless_the_ids_are_of_other_documents():
    rng = random.Random(3)
    texts = [f"{' '.join(rng.choices(string.ascii_lowercase, k=40))} {row}" for row in range(20)]
    cut = [{"id": row, "text": texts[row][:60] if row % 4 else "", "label": f"l{row}"} for row in range(20)]
    documents = Documents(range(20), texts)
    assert attach_labels(documents, read_labels(cut)).labels == [[f"l{row}"] for row in range(20)]
    moved = Documents(range(20), texts[::-1])  # row numbers of a table in another order
    whole = [{"id": row, "text": texts[row], "label": f"l{row}"} for row in range(20)]
    assert attach_labels(moved, read_labels(whole)).labels == [[f"l{row}"] for row in reversed(range(20))]


def test_a_label_file_joins_the_labels_of_the_table_and_conflicts_are_listed(tmp_path):
    rows = {"id": ["a", "b", "c", "d"], "text": ["rain", "snow", "sun", "fog"], "label": ["tea", "Milk", "", "tea"]}
    (tmp_path / "more.csv").write_text("Nr;Code\na;coffee\nb;milk\nc;water\nd;(none)\n")
    given = {"labels": "Code", "id": "Nr"}
    found = read_table(pl.DataFrame(rows), label_file=tmp_path / "more.csv", label_options=given)
    assert found.labels == [["tea", "coffee"], ["Milk", "milk"], ["water"], ["tea"]]
    assert "1 document has other labels than in the table, and the labels of both count: 'a' (tea / coffee)" in str(
        found.report
    )
    assert [row.place for row in found.report.bad_rows] == ["more.csv line 5"]
    with pytest.raises(ValueError, match="a label file has no option 'label'; its options are labels, id, forbidden"):
        read_table(pl.DataFrame(rows), label_file=tmp_path / "more.csv", label_options={"label": "Code"})


def test_a_folder_takes_ids_with_and_without_suffix(tmp_path):
    for name in ("a.txt", "b.txt", "same.txt"):
        (tmp_path / name).write_text(f"rain in {name}")
    (tmp_path / "labels.csv").write_text("id,label\na,weather\nb.txt,sport\nnobody,sport\n")
    found = read_documents(tmp_path, ReadOptions(label_file=tmp_path / "labels.csv"))
    assert dict(zip(found.ids, found.labels, strict=True)) == {
        "a.txt": ["weather"],
        "b.txt": ["sport"],
        "same.txt": [],
    }
    assert [row.problem for row in found.report.bad_rows] == ["no document has this id 'nobody'"]


def test_predict_says_unsure_and_that_counts_are_no_shares(run, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    texts = ["firm trade", "pupil class", "zebra"]
    pl.DataFrame({"text": [*texts, "firm pupil"]}).write_csv(tmp_path / "new.csv")
    code, _, notes = run("predict", tmp_path / "model", tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert code == 0
    assert "Counting the column predicted gives no share of a topic: topicsteer prevalence estimates shares." in notes
    found = pl.read_csv(tmp_path / "out.csv")["predicted"].to_list()
    assert found[:2] == ["Company", "School"]
    decisions = fitted.predict([*texts, "firm pupil"])
    assert found == ["; ".join(each) or "unsure" for each in decisions]
    assert "unsure" in found
    assert not np.array([each is None for each in found]).any()
