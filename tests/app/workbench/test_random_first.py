"""From random labels to shares: new rows of the table, tables of suggestions, and labels that outlive an adoption."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from topicsteer import TopicModel
from topicsteer.app.workbench.actions import Label, NewTopic, NoneOfThese, Undo, apply
from topicsteer.app.workbench.current_model import EVERYTHING, CurrentModel, GroupShares, ModelRecord
from topicsteer.app.workbench.label_queue import Queue
from topicsteer.app.workbench.responses import Share
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents, read_table

WORDS = {"tea": "leaf kettle pot steep", "coffee": "bean roast grind espresso", "rain": "cloud storm wind wet"}


def documents(n=90):
    """Documents on three topics, in turn."""
    rng, words = np.random.default_rng(1), list(WORDS.values())
    return Documents([f"d{k}" for k in range(n)], [" ".join(rng.choice(words[k % 3].split(), 6)) for k in range(n)])


@pytest.fixture
def bench(tmp_path):
    Workbench.make(tmp_path / "drinks.steer", documents())
    bench = Workbench(tmp_path / "drinks.steer")
    bench.session.change_settings(refit_after=0)
    for name in ("tea", "coffee"):
        apply(bench.session, "ann", NewTopic(name=name))
    yield bench
    bench.close()


def fitted(bench, folder):
    """Fit the labels of a session in this process."""
    training = bench.session.training()
    n = bench.session.n
    labels, lacks = ([names.get(row, []) for row in range(n)] for names in (training.labels, training.forbidden))
    own = documents(n)
    model = TopicModel(3, topics=[topic.name for topic in training.topics], world="open", embeddings=None)
    model.fit(Documents(own.ids, own.texts, labels, forbidden=lacks)).save(folder)
    return CurrentModel(folder, ModelRecord([topic.key for topic in training.topics]))


def test_the_default_list_is_a_random_sample(bench):
    for _ in range(30):
        row = bench.queue.next("ann").row
        apply(bench.session, "ann", Label(documents=[row], key=1, state="permitted"))
    assert set(bench.session.chosen().values()) == {"random"}
    progress = bench.views.progress()
    assert (progress.drawn, progress.wanted) == (30, 50)


def test_shares_need_random_labels_and_an_interval(bench, tmp_path):
    for row in range(30):
        state = Label(documents=[row], key=1 + row % 3, state="permitted") if row % 3 < 2 else None
        apply(bench.session, "ann", state or NoneOfThese(documents=[row]))
    bench.views.fitted = fitted(bench, tmp_path / "model")
    keys = bench.views.fitted.column_keys
    one = {"share": 0.3, "low": 0.2, "high": 0.4, "drawn": 30}
    arrays = {name: [[value] * len(keys)] for name, value in one.items()}
    arrays["low"][0][0] = arrays["high"][0][0] = None  # no interval
    arrays["drawn"][0][1] = 9  # few labels
    bench.views.fitted.record.shares[EVERYTHING] = GroupShares(keys, 0.95, [], arrays)
    assert bench.views.topics().none is True
    assert bench.views.topics().shares == {}  # all documents were chosen by a person
    apply(bench.session, "ann", Label(documents=[bench.queue.next("ann").row], key=1, state="permitted"))
    assert bench.views.topics().shares == dict.fromkeys(keys[2:], Share(0.3, 0.2, 0.4))


def test_an_adopted_topic_keeps_labels_with_none_of_the_topics(bench, tmp_path):
    session = bench.session
    for row in range(48):
        if row % 3 < 2:
            apply(session, "ann", Label(documents=[row], key=1 + row % 3, state="permitted"))
        else:
            apply(session, "ann", NoneOfThese(documents=[row]))
    bench.views.fitted = fitted(bench, tmp_path / "model")
    free = next(key for key in bench.views.fitted.column_keys if str(key).startswith("free"))
    strength, has = bench.views.fitted.strength(free), bench.views.fitted.has[:, bench.views.fitted.number(free)]
    none = [row for row in range(48) if row % 3 == 2]
    asked = sorted((row for row in none if has[row]), key=lambda row: -strength[row])
    assert 0 < len(asked) <= len(none)
    last = session.seq
    key = bench.adopt("ann", free, name="rain")
    open_rows = [row for row in none if key not in session.decisions[row].forbidden]
    assert sorted(open_rows) == sorted(asked)
    assert session.changed_since(last) == 0  # no new label
    queue, seen = Queue(bench.views), []
    for _ in asked:  # each is asked about once, the most probable one first
        found = queue.next("ann", "topic", key=key)
        seen.append(found.row)
        assert "none of the topics" in found.why
        state = "permitted" if len(seen) % 2 else "forbidden"
        apply(session, "ann", Label(documents=[found.row], key=key, state=state))
        assert session.decisions[found.row].permitted == (frozenset({key}) if state == "permitted" else frozenset())
    assert seen == asked
    assert queue.next("ann", "topic", key=key).row not in none
    for _ in asked:
        apply(session, "ann", Undo())
    apply(session, "ann", Undo())  # the adoption
    assert all(session.decisions[row].forbidden == {1, 2} for row in none)


def test_new_rows_of_the_table_become_documents(tmp_path):
    table, path = tmp_path / "a.csv", tmp_path / "a.steer"
    old = "".join(f"{k},text {k} about tea,\n" for k in range(40))
    table.write_text("id,text,label\n" + old)
    Workbench.make(path, read_table(table, labels="label"), source=table)
    bench = Workbench(path, source=table)
    apply(bench.session, "ann", NewTopic(name="tea"))
    for _ in range(20):
        apply(bench.session, "ann", Label(documents=[bench.queue.next("ann").row], key=1, state="permitted"))
    before = bench.session.decisions
    bench.close()
    new = "".join(f"{k},text {k} about coffee,{'coffee' if k == 50 else ''}\n" for k in range(40, 80))
    table.write_text("id,text,label\n" + old.replace("0,text 0 about tea,\n", "0,other words,\n", 1) + new)
    bench = Workbench(path, source=table, read=lambda path: read_table(path, labels="label"))
    try:
        assert bench.notice.startswith("40 new documents of a.csv are in the project. 1 known ones have another text")
        assert len(bench.session.labelled) == len(bench.project) == 80
        assert bench.project.document(0)[1] == "text 0 about tea"
        assert {row: bench.session.decisions[row].permitted for row in before} == {
            row: one.permitted for row, one in before.items()
        }
        assert bench.session.labels_of(50) == {"file: a.csv": {2: "permitted"}}
        assert bench.project.search("coffee") == list(range(40, 80))
        first = []
        while len(first) < 20:
            first.append(bench.queue.next("ann").row)
            apply(bench.session, "ann", Label(documents=first[-1:], key=1, state="permitted"))
        assert sum(row >= 40 for row in first) > 12  # the sample catches up on the new documents
    finally:
        bench.close()
    again = Workbench(path, source=table)
    assert again.notice == ""
    again.close()


def test_a_table_whose_ids_belong_to_other_texts_is_not_taken(tmp_path):
    table, path = tmp_path / "a.csv", tmp_path / "a.steer"
    table.write_text("text\n" + "".join(f"text {k}\n" for k in range(9)))
    Workbench.make(path, read_table(table), source=table)
    table.write_text("text\nnew\n" + "".join(f"text {k}\n" for k in range(9)))
    bench = Workbench(path, source=table)
    assert "most ids belong to other texts" in bench.notice
    assert len(bench.project) == 9
    bench.close()


def test_a_filled_in_table_of_suggestions_is_imported_by_id(bench, tmp_path):
    file = tmp_path / "next.csv"
    rows = [f"d{k},the beginning of a text …,{'tea' if k % 2 else '(none)'},doubt,0.{k + 10}" for k in range(20)]
    rows += ["d30,x,coffee,random,", "d99,x,tea,random,", "d98,x,tea,random,", "d31,x,,random,", "d32,x, ,random,"]
    file.write_text("id,text,label,chosen,probability\n" + "\n".join(rows) + "\n")
    sentence, title, *left_out = bench.import_labels("ann", file, "next.csv").split("\n")
    assert sentence == "Imported labels of 21 documents from next.csv."
    assert title == "4 rows were not taken:"
    assert [line.split(":")[0] for line in left_out] == ["line 23", "line 24", "d31", "d32"]
    assert all("d9" in line for line in left_out[:2])
    assert left_out[2:] == ["d31: no label", "d32: no label"]
    chosen, probability = bench.session.chosen(), bench.session.origins.probabilities(bench.session.labelled)
    assert {name.split()[0] for row, name in chosen.items() if row < 20} == {"doubt"}
    assert chosen[30].startswith("random")
    assert probability[7] == 0.17
    export = bench.exporter.export("labels").read_text().splitlines()
    assert export[0].endswith("chosen,probability")
    assert "d7,tea" in "\n".join(export)
    path = bench.project.path
    bench.close()
    again = Workbench(path)
    assert again.session.origins.probabilities(again.session.labelled) == probability
    again.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)


def test_a_table_brings_the_origin_of_its_labels(tmp_path):
    given = documents()
    labels = [["tea"] if k % 3 == 0 and k < 60 else ["(none)"] if k < 60 else [] for k in range(90)]
    columns = {"chosen": ["random" if k < 50 else "suggested 2" if k < 60 else None for k in range(90)]}
    table = Documents(given.ids, given.texts, labels, columns)
    Workbench.make(tmp_path / "drawn.steer", table)
    bench = Workbench(tmp_path / "drawn.steer")
    try:
        assert bench.session.origins.drawn(bench.session.labelled) == 50
        assert bench.views.progress().drawn == 50
        assert bench.session.chosen() == {k: "random" if k < 50 else "suggested 2" for k in range(60)}
    finally:
        bench.close()
