"""How documents were chosen: stored with their first label, undone with it, exported, and passed to the fit."""

import csv
import json
import sqlite3
from contextlib import closing

import pytest

from topicsteer.app.workbench.actions import Label, NewTopic, NoneOfThese, Redo, Skip, Undo, apply
from topicsteer.app.workbench.project import ORIGIN, Project, ProjectError
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents


@pytest.fixture
def path(tmp_path):
    texts = [f"{drink} with {word}" for drink in ("tea", "coffee") for word in ("milk", "sugar", "lemon", "ice")]
    Project.create(tmp_path / "drinks.steer", Documents([f"d{i}" for i in range(8)], texts))
    return tmp_path / "drinks.steer"


@pytest.fixture
def bench(path):
    bench = Workbench(path)
    apply(bench.session, "ann", NewTopic(name="tea"))
    yield bench
    bench.close()


def test_random_documents_and_own_choices(bench, path):
    session = bench.session
    row = bench.queue.next("ann", "random").row
    apply(session, "ann", Label(documents=[row], key=1, state="permitted"))
    found = bench.queue.next("ann", "search", query="coffee").row
    apply(session, "ann", Label(documents=[found], key=1, state="forbidden"))
    other = next(i for i in range(8) if i not in (row, found))
    apply(session, "ben", NoneOfThese(documents=[other]))  # from the list of documents
    assert session.chosen() == {row: "random", found: "suggested 2", other: "suggested 2"}
    before = session.chosen()
    bench.close()
    again = LabelSession(Project.open(path))
    assert again.chosen() == before
    again.project.close()


def test_a_skipped_document_is_no_draw_if_somebody_labels_it_later(bench):
    session, row = bench.session, bench.queue.next("ann", "random").row
    apply(session, "ann", Skip(documents=[row]))
    apply(session, "ann", Label(documents=[row], key=1, state="permitted"))
    assert session.chosen() == {row: "suggested"}


def test_a_second_label_does_not_change_the_choice(bench):
    session, row = bench.session, bench.queue.next("ann", "random").row
    apply(session, "ann", Label(documents=[row], key=1, state="permitted"))
    bench.queue.next("ben", "search", query="tea")
    session.origins.served[row] = "suggested"
    apply(session, "ben", Label(documents=[row], key=1, state="permitted"))
    assert session.chosen() == {row: "random"}
    assert sum(event.key == ORIGIN for _, event in session.project.log.events()) == 1


def test_the_choice_is_undone_with_the_label(bench):
    session, row = bench.session, bench.queue.next("ann", "random").row
    apply(session, "ann", Label(documents=[row], key=1, state="permitted"))
    apply(session, "ann", Undo())
    assert session.chosen() == {}
    apply(session, "ann", Redo())
    assert session.chosen() == {row: "random"}


def test_a_topic_made_from_a_random_document_keeps_the_choice(bench):
    """The first document of each topic is part of the random sample."""
    session, row = bench.session, bench.queue.next("ann", "random").row
    apply(session, "ann", NewTopic(name="coffee", documents=[row]))
    other = next(i for i in range(8) if i != row)
    apply(session, "ann", NewTopic(name="milk", documents=[other]))
    assert session.chosen() == {row: "random", other: "suggested 2"}
    apply(session, "ann", Undo())
    apply(session, "ann", Undo())
    assert session.chosen() == {}


def test_before_the_first_fit_suggestions_are_random(bench):
    row = bench.queue.next("ann", "suggested").row
    apply(bench.session, "ann", Label(documents=[row], key=1, state="permitted"))
    assert bench.session.chosen() == {row: "random"}


def test_exports_have_the_choice(bench):
    row = bench.queue.next("ann", "random").row
    apply(bench.session, "ann", Label(documents=[row], key=1, state="permitted"))
    table = list(csv.DictReader(bench.exporter.export("labels").read_text().splitlines()))
    assert [(line["id"], line["chosen"]) for line in table] == [(f"d{row}", "random")]
    assert json.loads(bench.exporter.export("jsonl").read_text())["chosen"] == "random"
    log = list(csv.DictReader(bench.exporter.export("log").read_text().splitlines()))
    assert [line["state"] for line in log if line["topic"] == "(its choice)"] == ["random"]


def test_the_choice_reaches_the_model(bench, monkeypatch):
    orders = []
    monkeypatch.setattr(bench.fitter, "start", lambda order: orders.append(order) or True)
    row = bench.queue.next("ann", "random").row
    apply(bench.session, "ann", Label(documents=[row], key=1, state="permitted"))
    bench.fit()
    assert orders[0].chosen == {row: "random"}


def test_a_forged_choice_is_refused(bench, path):
    row = bench.queue.next("ann", "random").row
    apply(bench.session, "ann", Label(documents=[row], key=1, state="permitted"))
    bench.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        values = (1, "ann", row, ORIGIN, "magic", "cleared")
        insert = "INSERT INTO events (batch, person, document, topic, state, before) VALUES (?, ?, ?, ?, ?, ?)"
        connection.execute(insert, values)
    with pytest.raises(ProjectError, match="unknown origin"):
        Project.open(path)
