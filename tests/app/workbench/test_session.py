"""The workbench without HTTP: the project file, labels, undo, topics, queue and views."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings

from topicsteer.analysis.documents_to_label import Doubt
from topicsteer.app.workbench.actions import (
    ChangeSettings,
    ChangeTopic,
    DeleteTopic,
    Label,
    MergeTopics,
    NewTopic,
    NoneOfThese,
    OrderTopics,
    Redo,
    Skip,
    Undo,
    apply,
)
from topicsteer.app.workbench.current_model import CurrentModel, ModelRecord
from topicsteer.app.workbench.errors import FILE, Refused, person_name
from topicsteer.app.workbench.imports import GivenLabels, import_labels
from topicsteer.app.workbench.label_queue import Queue
from topicsteer.app.workbench.project import Database, Project, ProjectError, Topic, group_columns
from topicsteer.app.workbench.responses import NextDocument
from topicsteer.app.workbench.session import LabelSession, decide, merged_state
from topicsteer.app.workbench.topic_tree import Tree
from topicsteer.app.workbench.views import Selection, Views
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents

ROOT = Path(__file__).parents[3]
TEXTS = [
    "green tea leaves",
    "black coffee beans",
    "tea with milk",
    "coffee and a cup",
    "cup and saucer",
    "東京 の お茶",
]


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "drinks.steer"
    extra = {"place": ["north", "south"] * 3, "day": [f"2026-0{k + 1}-01" for k in range(6)]}
    Project.create(made, Documents([f"d{k}" for k in range(6)], TEXTS, columns=extra))
    return made


@pytest.fixture
def session(path):
    session = LabelSession(Project.open(path))
    apply(session, "ann", NewTopic(name="tea"))
    apply(session, "ann", NewTopic(name="coffee"))
    yield session
    session.project.close()


opened = []


@pytest.fixture(autouse=True)
def close_all():
    yield
    while opened:
        opened.pop().close()


def again(session):
    """Open the same project again."""
    session.project.close()
    opened.append(Project.open(session.project.path))
    return LabelSession(opened[-1])


def held(session):
    return {row: tuple(map(sorted, d)) for row, d in session.decisions.items() if any(d)}


def test_documents_come_back(path):
    project = Project.open(path)
    assert project.ids() == [f"d{k}" for k in range(6)]
    assert project.document(0) == ("d0", TEXTS[0], {"place": "north", "day": "2026-01-01"})
    assert project.search("tea") == [0, 2]
    assert project.search("cof cup") == [3]
    assert project.search("お茶") == [5]
    assert project.search('"); DROP TABLE documents; --') == []
    assert project.beginnings([1])[1] == ("d1", TEXTS[1])
    project.close()


def test_labels_mean_that_other_topics_are_absent(session):
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    assert held(session) == {0: ([1], [2], [])}
    training = session.training()
    assert (training.labels, training.forbidden, training.complete) == ({0: ["tea"]}, {}, True)
    session.change_settings(complete=False)
    assert held(session) == {0: ([1], [], [])}
    assert session.training().complete is False


def test_a_label_leaves_later_topics_open(session):
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    apply(session, "ann", NewTopic(name="milk"))
    assert held(session)[0] == ([1], [2], [])
    training = session.training()
    assert training.complete is False
    assert training.forbidden == {0: ["coffee"]}
    apply(session, "ann", Label(documents=[2], key=3, state="permitted"))
    assert held(session)[2] == ([3], [1, 2], [])


def test_none_of_these_clears_labels_and_a_label_clears_it(session):
    apply(session, "ann", Label(documents=[4], key=1, state="permitted"))
    apply(session, "ann", NoneOfThese(documents=[4]))
    assert held(session)[4] == ([], [1, 2], [])
    apply(session, "ann", Label(documents=[4], key=2, state="permitted"))
    assert held(session)[4] == ([2], [1], [])
    apply(session, "ann", Undo())
    assert held(session)[4] == ([], [1, 2], [])


def test_a_skipped_document_gets_no_label(session):
    apply(session, "ann", Skip(documents=[3]))
    assert not session.labelled.any()
    assert Queue(Views(session)).next("ann", "random").row != 3


def test_people_do_not_overwrite_each_other(session):
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    apply(session, "ben", Label(documents=[0], key=1, state="forbidden"))
    assert session.decisions[0].differing == {1}
    assert 1 not in session.decisions[0].permitted | session.decisions[0].forbidden
    assert session.labels_of(0) == {"ann": {1: "permitted"}, "ben": {1: "forbidden"}}
    apply(session, "cleo", Label(documents=[0], key=1, state="permitted"))
    assert session.decisions[0].permitted == {1}  # two against one, and still shown
    assert session.differing[0]


def test_people_count_before_the_file(session):
    import_labels(
        session, "ann", [GivenLabels({0: ["coffee"], 1: ["Coffee", "milk"]}, {2: ["milk"]})], source="old.csv"
    )
    assert [t.name for t in session.live] == ["tea", "coffee", "milk"]
    assert session.decisions[0].permitted == {2}
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    assert session.decisions[0].permitted == {1}
    assert set(session.labels_of(0)) == {"ann", FILE + "old.csv"}
    apply(session, "ann", Undo())
    apply(session, "ann", Undo())  # the whole import at once
    assert [t.name for t in session.live] == ["tea", "coffee"]
    assert not session.labelled.any()


def test_undo_and_redo_survive_a_restart(session):
    apply(session, "ann", Label(documents=[0, 1, 2], key=1, state="permitted"))  # many at once, one undo
    apply(session, "ann", Label(documents=[0], key=2, state="permitted"))
    apply(session, "ben", Label(documents=[5], key=2, state="permitted"))
    before = held(session)
    apply(session, "ann", Undo())
    session = again(session)
    apply(session, "ann", Undo())
    assert held(session) == {5: ([2], [1], [])}  # ben's label stays
    session = again(session)
    apply(session, "ann", Redo())
    apply(session, "ann", Redo())
    assert held(session) == before
    with pytest.raises(Refused, match="nothing to redo"):
        apply(session, "ann", Redo())
    assert held(again(session)) == before


def test_undo_keeps_later_changes_of_others(session):
    apply(session, "ann", ChangeTopic(key=1, name="Tea"))
    apply(session, "ben", ChangeTopic(key=1, name="teas"))
    apply(session, "ann", Undo())
    assert session.topics[1].name == "teas"


def test_a_repeated_request_acts_once(session):
    first = apply(session, "ann", Label(documents=[0], key=1, state="permitted", request="r1"))
    second = apply(session, "ann", Label(documents=[0], key=1, state="permitted", request="r1"))
    assert (second.batch, second.repeated) == (first.batch, True)
    apply(session, "ann", Undo(request="r2"))
    assert apply(session, "ann", Undo(request="r2")).repeated
    made = apply(session, "ann", NewTopic(name="milk", request="r3"))
    assert apply(session, "ann", NewTopic(name="milk", request="r3")) == (
        made.batch,
        (),
        False,
        True,
        "",
    )  # not refused
    apply(session, "ann", Undo())
    assert session.undo_state("ann") == (True, True)  # the topics are still to be undone


def test_topics_can_be_changed_and_everything_undone(session):
    apply(session, "ann", Label(documents=[0, 2], key=1, state="permitted"))
    apply(session, "ben", Label(documents=[1], key=2, state="permitted"))
    start, names = held(session), [t.name for t in session.live]
    apply(session, "ann", MergeTopics(keys=[2], into=1))
    assert [t.name for t in session.live] == ["tea"]
    assert session.counts[1] == 3
    apply(session, "ann", Undo())
    assert (held(session), [t.name for t in session.live]) == (start, names)
    apply(session, "ann", DeleteTopic(key=1))
    assert 0 not in held(session)
    apply(session, "ann", Undo())
    assert held(session) == start
    apply(session, "ann", OrderTopics(keys=[2, 1]))
    assert [t.name for t in session.live] == ["coffee", "tea"]
    apply(
        session,
        "ann",
        ChangeTopic(key=1, description="of leaves", keywords=["leaf"], banned=["bean"]),
    )
    apply(session, "ann", ChangeTopic(key=1, banned=["leaf"]))
    found = again(session).topics[1]
    assert (found.description, found.keywords, found.banned) == ("of leaves", (), ("leaf",))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (NewTopic(name="TEA "), "already is a topic 'tea'"),
        (NewTopic(name=" \x00"), "needs a name"),
        (NewTopic(name="x" * 81), "at most 80"),
        (Label(documents=[0], key=9, state="permitted"), "no longer exists"),
        (Label(documents=[6], key=1, state="permitted"), "no document number 6"),
        (MergeTopics(keys=[1], into=1), "at least two topics"),
        (ChangeSettings(values={"overlap": -1}), r"Expected `int` >= 0 - at `\$.overlap`. Nothing was changed"),
        (ChangeSettings(values={"path_separator": " "}), r"matching regex '\\\\S' - at `\$.path_separator`"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_refused_action_explains_itself_and_changes_nothing(session, action, message):
    before = session.seq, session.settings
    with pytest.raises(Refused, match=message):
        apply(session, "ann", action)
    assert (session.seq, session.settings) == before


@pytest.mark.parametrize("name", ["", "x" * 41, FILE + "a.csv"])
def test_people_have_names(name):
    with pytest.raises(Refused):
        person_name(name)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["ann", "ben"]), st.integers(0, 7), st.integers(0, 3)), max_size=30))
def test_the_log_restores_the_same_state(tmp_path_factory, steps):
    """After any actions, the log restores the same state, and undoing all of them leaves no label."""
    path = tmp_path_factory.mktemp("p") / "p.steer"
    Project.create(path, Documents(list(range(4)), TEXTS[:4]))
    session = LabelSession(Project.open(path))
    for name in ("tea", "coffee"):
        apply(session, "cleo", NewTopic(name=name))
    for who, what, row in steps:
        states = ("permitted", "forbidden", "cleared")
        if what < 6:
            apply(session, who, Label(documents=[row], key=1 + what % 2, state=states[what // 2]))
        elif what == 6:
            apply(session, who, NoneOfThese(documents=[row, (row + 1) % 4]))
        elif session.undo_state(who).undo:
            apply(session, who, Undo())
    other = again(session)
    assert held(other) == held(session)
    assert other.counts + other.counts.__class__() == session.counts + session.counts.__class__()
    assert [other.undo_state(w) for w in ("ann", "ben")] == [session.undo_state(w) for w in ("ann", "ben")]
    for who in ("ann", "ben"):
        while other.undo_state(who).undo:
            apply(other, who, Undo())
    assert not other.labelled.any()
    other.project.close()


# --- the file ---


def test_the_log_cannot_be_rewritten(session):
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    with sqlite3.connect(session.project.path) as connection:
        for statement in ("DELETE FROM events", "UPDATE events SET state = 'cleared'"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(("version", "advice"), [(4, "open it with topicsteer 0.2.0 first"), (6, "upgrade topicsteer")])
def test_a_project_of_another_version_is_refused(session, tmp_path, version, advice):
    session.project.close()
    path = tmp_path / "other.steer"
    shutil.copy(session.project.path, path)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ProjectError, match=f"has version {version} of the project format.*{advice}"):
        Project.open(path)
    assert path.read_bytes() == before


def test_topics_in_the_log_are_as_in_0_2_0(session):
    apply(session, "ann", ChangeTopic(key=1, description="of leaves", keywords=["leaf"], banned=["bean"]))
    stored = {"topic": 1, "name": "tea", "description": "of leaves", "colour": "#3b7dd8", "position": 0}
    stored |= {"pinned": ["leaf"], "banned": ["bean"], "born": 1, "gone": False}
    *_, (_, event) = session.project.log.events()
    assert json.loads(event.state) == stored


def damage(path, how):
    data = bytearray(path.read_bytes())
    if how == "newer":
        data[60:64] = (99).to_bytes(4, "big")
    elif how == "foreign":
        data[68:72] = bytes(4)
    elif how == "beginning":
        data[:16] = b"not a database.."
    elif how == "middle":
        data[8192 : 8192 * 4] = os.urandom(8192 * 3)
    elif how == "cut":
        del data[len(data) // 2 :]
    elif how == "empty":
        data = bytearray()
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("newer", "upgrade topicsteer"),
        ("foreign", "of another program"),
        ("beginning", "not a topicsteer project"),
        ("middle", "damaged|cannot be opened"),
        ("cut", "damaged|cannot be opened"),
        ("empty", "not a topicsteer project"),
    ],
)
def test_a_bad_project_is_refused_and_left_unchanged(path, how, message):
    damage(path, how)
    before = path.read_bytes()
    with pytest.raises(ProjectError, match=message):
        Project.open(path)
    assert path.read_bytes() == before
    with pytest.raises(ProjectError, match="already exists"):
        Project.create(path, Documents([1], ["x"]))
    assert path.read_bytes() == before


def test_one_workbench_at_a_time(path):
    project = Project.open(path)
    with pytest.raises(ProjectError, match="open in another workbench"):
        Project.open(path)
    project.close()
    Project.open(path).close()


def test_labels_of_the_table_become_labels_of_the_file(tmp_path):
    path = tmp_path / "a.steer"
    Workbench.make(path, Documents([0, 1], ["tea", "coffee"], [["tea"], []], forbidden=[[], ["tea"]]))
    session = LabelSession(Project.open(path))
    assert session.training().labels == {0: ["tea"]}
    assert session.training().forbidden == {1: ["tea"]}
    assert session.people == [FILE + "a"]
    session.project.close()


def test_a_project_gets_its_name_with_its_labels(tmp_path):
    """A crash while the labels are imported leaves no project, so the next start makes a whole one."""
    path, documents = tmp_path / "a.steer", Documents([0, 1], ["tea", "coffee"], [["tea"], []])

    def crash(project):
        import_labels(LabelSession(project), "ann", [GivenLabels({0: ["tea"]}, {})], source="a.csv")
        assert not path.exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Project.create(path, documents, prepare=crash)
    assert not path.exists()
    Workbench.make(path, documents)
    project = Project.open(path)
    assert LabelSession(project).training().labels == {0: ["tea"]}
    project.close()


@pytest.mark.slow
def test_a_project_is_made_whole_or_not_at_all_under_kills():
    """A short sample of ``make fuzz``."""
    command = [sys.executable, "-m", "tests.fuzz.projects", "--rounds", "15"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "then whole" in done.stdout


def test_of_two_new_projects_at_one_path_the_first_stays(tmp_path):
    path, documents = tmp_path / "a.steer", Documents([0, 1], ["tea", "coffee"])

    def meanwhile(_):
        Workbench.make(path, Documents([0], ["first"], [["tea"]]))

    with pytest.raises(ProjectError, match="already exists"):
        Project.create(path, documents, prepare=meanwhile)
    project = Project.open(path)
    assert project.document(0)[1] == "first"
    project.close()
    assert os.listdir(tmp_path) == ["a.steer"]


def test_models_are_kept_whole_or_not_at_all(path, tmp_path):
    project = Project.open(path)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "a.npy").write_bytes(os.urandom(1_300_000))
    (folder / "model.json").write_text("{}")
    first = project.models.store(folder, ModelRecord([]))
    project.models.describe(first, ModelRecord([], proposed={1: [4]}))
    assert project.models.last() == (first, ModelRecord([], proposed={1: [4]}))
    (folder / "a.npy").write_bytes(b"new")
    second = project.models.store(folder, ModelRecord([1], 2))
    assert project.models.last() == (second, ModelRecord([1], 2))
    out = tmp_path / "out"
    out.mkdir()
    project.models.restore(second, out)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == {"a.npy": b"new", "model.json": b"{}"}
    with project.transaction() as connection:  # one that was not finished does not count
        connection.execute("INSERT INTO models (at, whole, meta) VALUES ('', 0, '{}')")
    assert project.models.last()[0] == second
    project.close()


def test_a_record_of_another_version_has_no_keys_if_it_cannot_be_read():
    known = ModelRecord([1, 2], 7, proposed={1: [4]})
    assert ModelRecord.read(msgspec.json.encode(known).decode()) == known
    stored = {"keys": [1], "seq": 3, "proposed": {"1": [2]}, "suggestions": [{"row": 1, "why": "far"}], "split": [1, 2]}
    assert ModelRecord.read(json.dumps(stored)) == ModelRecord([1], 3, proposed={1: [2]})
    old = stored | {"checks": [{"row": 0, "topic": "tea", "why": "odd"}], "seconds": "3", "objective": [float("nan")]}
    assert ModelRecord.read(json.dumps(old)) == ModelRecord([])


@pytest.mark.slow
def test_saved_labels_survive_a_kill(path):
    """A smaller version of benchmarks/workbench.py kill."""
    code = f"""
        from pathlib import Path
        from topicsteer.app.workbench.actions import Label, NewTopic, apply
        from topicsteer.app.workbench.project import Project
        from topicsteer.app.workbench.session import LabelSession
        session = LabelSession(Project.open(Path({str(path)!r})))
        if not session.live:
            apply(session, "ann", NewTopic(name="tea"))
        k = session.seq
        while True:
            k += 1
            state = ("permitted", "cleared")[(k // 6) % 2]
            apply(session, "ann", Label(documents=[k % 6], key=1, state=state, request=f"r{{k}}"))
            print(f"r{{k}}", flush=True)
        """
    rng = np.random.default_rng(0)
    saved = []
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
        for _ in range(int(rng.integers(5, 60))):
            saved.append(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
        saved += process.stdout.read().split()
        process.wait()
        process.stdout.close()
    project = Project.open(path)
    assert saved
    assert all(project.log.batch_of(name) for name in saved)
    project.close()


def test_saved_labels_survive_a_full_disk(session, path):
    """A smaller version of benchmarks/workbench.py full: SQLite may not use another page."""
    project = session.project

    def room(pages):
        with project.transaction() as connection:
            used = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {used + pages}")

    room(2)
    saved, refused = [], {}
    for k in range(2000):
        state = ("permitted", "cleared")[(k // 6) % 2]
        try:
            apply(session, "ann", Label(documents=[k % 6], key=1, state=state, request=f"r{k}"))
        except sqlite3.OperationalError as error:
            refused[f"r{k}"] = str(error)
        else:
            saved.append(f"r{k}")
        if len(refused) == 3:
            break
    assert saved
    assert list(refused.values()) == ["database or disk is full"] * 3
    room(100)
    apply(session, "ann", Label(documents=[0], key=2, state="permitted", request="later"))
    shown = [session.labels_of(row) for row in range(6)]
    project.close()
    again = LabelSession(Project.open(path))
    assert all(again.project.log.batch_of(name) for name in [*saved, "later"])
    assert not any(again.project.log.batch_of(name) for name in refused)
    assert [again.labels_of(row) for row in range(6)] == shown
    again.project.close()


def test_a_commit_that_fails_leaves_no_open_transaction(tmp_path):
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE a (x PRIMARY KEY)")
        connection.execute("CREATE TABLE b (x REFERENCES a DEFERRABLE INITIALLY DEFERRED)")
    database = Database(path)

    def write(table):
        with database.transaction() as connection:
            connection.execute(f"INSERT INTO {table} VALUES (1)")

    with pytest.raises(sqlite3.IntegrityError):  # at the commit
        write("b")
    write("a")
    assert database.read("SELECT count(*) FROM b").fetchone() == (0,)
    database.close()


# --- queue and views ---


def test_the_next_document(session):
    queue = Queue(Views(session))
    first = queue.next("ann")
    assert "At random" in first.why
    assert queue.next("ben").row != first.row  # it is on ann's table
    apply(session, "ann", Label(documents=[first.row], key=1, state="permitted"))
    assert queue.next("ann").row != first.row
    found = queue.next("ann", "search", query="coffee")
    assert found.row in (1, 3)
    assert "of 2 for" in found.why
    assert queue.next("ann", "topic", key=1).row is None
    apply(session, "ann", Label(documents=list(range(6)), key=1, state="permitted"))
    assert queue.next("ann", "random") == NextDocument(None, "All documents are labelled.", 0)


def test_how_many_documents_are_left(session):
    queue = Queue(Views(session))
    assert queue.next("ann", "random").left == 6
    apply(session, "ben", Label(documents=[0, 2], key=1, state="permitted"))
    apply(session, "ann", Skip(documents=[1]))
    assert queue.next("ann", "random").left == 3
    assert queue.next("ann", "suggested", seen=[3, 99]).left == 2
    held = queue.next("ann", "suggested", seen=[3]).row
    assert queue.next("ben", "random").left == 3  # one is on ann's table
    assert queue.next("ann", "search", query="tea").left == 2  # ben's labels do not count there, ann's do
    apply(session, "ann", Label(documents=[2], key=1, state="permitted"))
    assert queue.next("ann", "search", query="tea") == NextDocument(0, "Match 1 of 2 for “tea”.", 1)
    session = again(session)
    assert Queue(Views(session)).next("ann", "random").left == 3
    apply(session, "ann", Undo())
    apply(session, "ann", Undo())
    assert Queue(Views(session)).next("ann", "random").left == 4
    assert held in (4, 5)


def test_a_deleted_topic_takes_its_labels_with_it(session):
    apply(session, "ann", Label(documents=[0], key=1, state="forbidden"))
    apply(session, "ann", DeleteTopic(key=1))
    assert Queue(Views(session)).next("ann", "random").left == 6
    apply(session, "ann", Undo())
    assert Queue(Views(session)).next("ann", "random").left == 5


def test_labels_since_a_fit(session):
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    fit = session.training().seq
    assert session.changed_since(fit) == 0
    apply(session, "ann", Label(documents=[0, 1], key=2, state="permitted"))
    assert session.changed_since(fit) == 2
    session = again(session)
    assert session.changed_since(fit) == 2
    apply(session, "ann", Undo())
    assert session.changed_since(fit) == 1  # the first has a label, and another one was taken back
    apply(session, "ann", Redo())
    assert session.changed_since(fit) == 2
    assert session.changed_since(session.seq) == 0
    assert session.changed_since(0) == 2


def doubting(session, *checks):
    """Return views with a model that finds labels doubtful."""
    views = Views(session)
    views.fitted = CurrentModel.__new__(CurrentModel)
    views.fitted.result = SimpleNamespace(names=["tea", "coffee"])
    views.fitted.column, views.fitted.top = {}, np.zeros(session.n)
    views.fitted.keys, views.fitted.n_known, views.fitted.record = [1, 2], 0, ModelRecord([1, 2], checks=list(checks))
    return views


def test_a_label_to_check_is_explained_once(session):
    apply(session, "ann", Label(documents=[0, 2], key=1, state="permitted"))
    check = Doubt(0, 1, "permitted", 0.06, 0.0, "", 2, 0.9)
    less = Doubt(2, 2, "forbidden", 0.7, 0.0, "")
    views = doubting(session, check, less, replace(less, row=0))
    queue = Queue(views)
    assert queue.next("ann", "check") == NextDocument(0, "Labelled tea (0.06), but reads like coffee (0.90).", 2)
    apply(session, "ann", ChangeTopic(key=1, name="chai"))
    apply(session, "ann", ChangeTopic(key=2, name="mocha"))
    assert queue.next("ann", "check").why == "Labelled chai (0.06), but reads like mocha (0.90)."
    assert queue.next("ann", "check", seen=[0]).why == "Not labelled mocha, which is probable (0.70)."
    shown = views.documents(Selection("ann", filter="disagreement")).documents
    assert [doc.row for doc in shown] == [0, 2]
    apply(session, "ann", Label(documents=[0], key=1, state="cleared"))  # the check no longer applies
    assert queue.next("ann", "check").row == 2


def test_pages_of_documents(session):
    views = Views(session)
    apply(session, "ann", Label(documents=[2], key=1, state="permitted"))
    apply(session, "ben", Label(documents=[2], key=1, state="forbidden"))
    apply(session, "ann", Skip(documents=[4]))

    def rows(**options):
        return [doc.row for doc in views.documents(Selection("ann", **options)).documents]

    assert rows() == list(range(6))
    assert rows(query="tea") == [0, 2]
    assert rows(filter="people") == [2]
    assert rows(filter="skipped") == [4]
    recent = views.documents(Selection("ann", filter="unlabelled"), sort="recent")
    assert recent.documents[0].row == 4
    assert rows(filter="strong") == []
    assert views.documents(Selection("ann"), page=99).page == 0
    assert views.rows(Selection("ann", query="cup")) == [3, 4]


def test_hostile_text_is_made_visible(tmp_path):
    path = tmp_path / "h.steer"
    text = "<script>alert(1)</script> \u202egnp.exe \x00 end " + "x" * 30_000
    Project.create(path, Documents(["<img onerror=alert(1)>"], [text]))
    session = LabelSession(Project.open(path))
    views = Views(session)
    document = views.document(0, "ann")
    shown = "".join(piece for piece, _, _ in document.pieces)
    assert shown.startswith("<script>alert(1)</script> ⟦U+202E⟧gnp.exe ⟦U+0000⟧ end")
    assert (document.shown, document.length) == (20_000, len(text))
    assert views.text(0, 20_000).end == len(text)
    assert views.documents(Selection("ann")).documents[0].text.endswith("…")
    session.project.close()


def test_groups_of_columns(session):
    views = Views(session)
    assert list(views.project.groups) == ["place", "day"]


def test_columns_with_few_values_or_dates_are_groups():
    days = [f"2026-{month:02}-{day:02}" for month in (1, 2, 3) for day in range(1, 29)]
    table = [{"day": day, "same": "x", "id": day * 2, "year": 1990 + k % 5} for k, day in enumerate(days)]
    table[0] |= {"day": None}
    found = group_columns(table)
    assert list(found) == ["day", "year"]
    assert (found["day"].period, found["year"].period) == ("week", None)
    assert (found["day"].names[0], found["day"].names[-1]) == ("2026-W01", "(missing)")
    weeks = [datetime.fromisoformat(day).isocalendar().week for day in days[1:]]
    assert found["day"].counts.tolist() == [*np.bincount(weeks)[1:], 1]
    assert group_columns([]) == {}
    long = [{"many": k % 25, "few": k % 24, "mostly missing": "ab"[k % 2] if k < 20 else None} for k in range(60)]
    assert list(group_columns(long)) == ["few"]


@pytest.mark.parametrize("form", ["%d-%b-%Y %H:%M:%S.79", "%d-%b-%Y", "%a, %d %b %Y %H:%M:%S +0100", "%d.%m.%Y"])
def test_dates_of_newswires_and_mail_are_read(form):
    days = [datetime(1980 + k, 2, 26, 15, 1, 1) for k in range(60)]
    found = group_columns([{"date": day.strftime(form)} for day in days])["date"]
    assert found.period == "year"
    assert list(found.names) == [str(day.year) for day in days]


def test_people_before_files_and_the_majority_of_people():
    yes, no = {1: ("permitted", 5)}, {1: ("forbidden", 5)}
    live = {1: 1, 2: 2, 3: 9}  # the last one was made later than all labels
    flat = Tree({key: Topic(key, str(key)) for key in live})
    assert decide({"file: a": no, "ann": yes}, live, True, flat) == ({1}, {2}, set())
    assert decide({"ann": yes, "ben": no}, live, False, flat) == (set(), set(), {1})
    assert decide({"ann": yes, "ben": no, "cleo": yes}, live, False, flat) == ({1}, set(), {1})
    assert decide({"file: a": no, "ann": {1: ("cleared", 7)}}, live, False, flat) == (set(), {1}, set())
    assert decide({"ann": {0: ("none", 5)}}, live, False, flat) == (set(), {1, 2}, set())
    topics = [Topic(1, "tea"), Topic(2, "coffee")]
    assert merged_state(no, topics) == "cleared"
    assert merged_state(no | {2: ("forbidden", 6)}, topics) == "forbidden"
    assert merged_state(no | {2: ("permitted", 6)}, topics) == "permitted"
    assert merged_state({1: ("cleared", 6)}, topics) is None


def label_at_random(session):
    for row in range(session.n):
        session.origins.served[row] = "random"
        apply(session, "ann", Label(documents=[row], key=1, state="forbidden"))


def test_random_labels_are_counted(session):
    label_at_random(session)
    assert Views(session).progress().drawn == session.n
