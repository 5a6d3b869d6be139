"""Project files: copies, locks, full disks, and writes that reach the disk."""

import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing

import pytest

pytest.importorskip("msgspec")
from topicsteer.app.workbench.actions import Label, NewTopic, apply
from topicsteer.app.workbench.project import Project, ProjectError, back_up
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents

pytestmark = pytest.mark.skipif(os.name == "nt", reason="open files cannot be copied there")

N = 100


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "drinks.steer"
    Project.create(path, Documents(list(range(N)), [f"green tea {k}" for k in range(N)]))
    return path


@pytest.fixture
def session(path):
    session = LabelSession(Project.open(path))
    apply(session, "ann", NewTopic(name="tea"))
    yield session
    session.project.close()


def label(session, rows):
    for row in rows:
        apply(session, "ann", Label(documents=[row], key=1, state="permitted"))


def labels_in(path):
    """The number of labelled documents of a project."""
    with closing(Project.open(path)) as project:
        return len(LabelSession(project).training().labels)


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


# --- copies ---


def test_a_copy_of_an_open_project_has_all_labels(session, path, tmp_path):
    """The file alone, as a synchronised folder or a backup program copies it."""
    label(session, range(N))
    log = path.with_name("drinks.steer-wal")
    until(lambda: log.stat().st_size == 0, seconds=5)
    subprocess.run(["cp", path, tmp_path / "copy.steer"], check=True)
    assert labels_in(tmp_path / "copy.steer") == N


def test_a_reader_only_delays_the_copy(session, path, tmp_path):
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM events").fetchone()
        label(session, range(N))
        time.sleep(1.5)
    log = path.with_name("drinks.steer-wal")
    until(lambda: log.stat().st_size == 0, seconds=5)


def test_a_backup_is_the_project_at_one_moment(session, path, tmp_path):
    copies = [tmp_path / f"{number}.steer" for number in range(5)]
    worker = threading.Thread(target=label, args=(session, range(N)))
    worker.start()
    for copy in copies:
        back_up(path, copy)
    worker.join()
    found = [labels_in(copy) for copy in copies]
    assert found == sorted(found)
    last = tmp_path / "last.steer"
    back_up(path, last)
    assert not [name for name in os.listdir(tmp_path) if name.startswith("last.steer-")]
    assert last.stat().st_mode & 0o077 == 0
    assert labels_in(last) == N
    with pytest.raises(FileExistsError):
        back_up(path, last)
    with pytest.raises(FileExistsError):  # the open workbench would go on with a file without a name
        back_up(path, path)


def test_a_damaged_project_has_no_backup(path, tmp_path):
    data = bytearray(path.read_bytes())
    page = data.index(b"green tea 50") // 8192 * 8192
    data[page : page + 100] = bytes(100)
    path.write_bytes(data)
    with pytest.raises((ProjectError, sqlite3.DatabaseError)):
        back_up(path, tmp_path / "copy.steer")
    with pytest.raises(ProjectError, match="there is no project"):
        back_up(tmp_path / "nothing.steer", tmp_path / "copy.steer")
    (tmp_path / "text.steer").write_text("text")
    with pytest.raises(ProjectError, match="not a topicsteer project"):
        back_up(tmp_path / "text.steer", tmp_path / "copy.steer")
    assert sorted(os.listdir(tmp_path)) == ["drinks.steer", "text.steer"]


@pytest.mark.slow
def test_the_command_copies_an_open_project(session, path, tmp_path):
    pytest.importorskip("starlette")
    label(session, range(7))
    command = [sys.executable, "-m", "topicsteer", "label", path, "--backup", tmp_path / "copy.steer"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "The copy of" in done.stderr
    assert labels_in(tmp_path / "copy.steer") == 7
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "exists" in again.stderr


@pytest.mark.slow
def test_each_day_of_work_has_a_copy(path):
    copy = path.with_name("drinks.backup.steer")

    def work(name):
        session = LabelSession(Project.open(path))
        try:
            label(session, range(3)) if session.live else apply(session, "ann", NewTopic(name=name))
            until(lambda: path.with_name("drinks.steer-wal").stat().st_size == 0)
            until(copy.exists)
            time.sleep(1.5)
        finally:
            session.project.close()

    with closing(Project.open(path)):
        time.sleep(1.5)
    assert not copy.exists()  # nothing changed
    work("tea")
    assert labels_in(copy) == 0
    first = copy.stat().st_ino
    work("tea")
    assert copy.stat().st_ino == first  # it is of today
    yesterday = time.time() - 86_400
    os.utime(copy, (yesterday, yesterday))
    session = LabelSession(Project.open(path))
    label(session, range(5))
    until(lambda: copy.stat().st_ino != first)
    session.project.close()
    assert labels_in(copy) == 5


def test_a_daily_copy_needs_room(session, path, monkeypatch, caplog):
    small = shutil.disk_usage(path)._replace(free=path.stat().st_size)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: small)
    label(session, range(5))
    until(lambda: "drinks.backup.steer was not written: the disk has too little room" in caplog.text)
    label(session, range(5, 9))
    time.sleep(1.5)
    assert caplog.text.count("was not written") == 1
    assert not path.with_name("drinks.backup.steer").exists()


# --- locks ---


def test_a_lock_that_cannot_be_had_is_refused(path, monkeypatch):
    import fcntl

    def none(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(ProjectError, match=r"cannot be locked \(No locks available\).* move it to a local disk"):
        Project.open(path)


def test_the_lock_is_had_where_only_writers_may_lock(path, monkeypatch):
    """Network drives refuse an exclusive lock of a file that is open for reading."""
    import fcntl

    real = fcntl.flock

    def flock(descriptor, operation):
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(9, "Bad file descriptor")
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with closing(Project.open(path)), pytest.raises(ProjectError, match="open in another workbench"):
        Project.open(path)


def test_the_lock_holds_under_other_names(session, path, tmp_path):
    os.link(path, tmp_path / "second.steer")
    (tmp_path / "third.steer").symlink_to(path)
    for name in ("second.steer", "third.steer"):
        with pytest.raises(ProjectError, match="open in another workbench"):
            Project.open(tmp_path / name)


# --- new projects ---

FULL = """
import resource, signal, sqlite3, sys
from pathlib import Path
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents

folder = Path(sys.argv[1])
texts, labels = [f"green tea {i}" for i in range(300)], [[f"topic {i % 7}"] for i in range(300)]
documents = Documents(list(range(300)), texts, labels)
Workbench.make(folder / "whole.steer", documents)
whole = (folder / "whole.steer").stat().st_size
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
for number in range(31):
    limit = int(whole * (0.2 + number / 32))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        Workbench.make(folder / f"{number}.steer", documents)
    except (OSError, ValueError, sqlite3.Error):
        print("refused")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
"""


@pytest.mark.slow
def test_a_project_is_made_whole_or_not_at_all_on_a_full_disk(tmp_path):
    """Files may not grow over a limit, for 31 limits around the size of the whole project."""
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", FULL, tmp_path], capture_output=True, text=True, check=True)
    made = sorted(tmp_path.glob("*.steer"))
    assert 3 < len(made) < 31
    assert len(made) + done.stdout.count("refused") == 32
    assert sorted(os.listdir(tmp_path)) == [path.name for path in made]
    assert [labels_in(path) for path in made] == [300] * len(made)


def test_a_new_project_is_on_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    """A kill cannot show this, a power cut would: the calls show it."""
    path, calls = tmp_path / "a.steer", []
    fsync, link = os.fsync, os.link

    def recorded_sync(descriptor):
        fsync(descriptor)
        calls.append(os.fstat(descriptor).st_ino)

    def recorded_link(source, target):
        link(source, target)
        calls.append("named")

    monkeypatch.setattr(os, "fsync", recorded_sync)
    monkeypatch.setattr(os, "link", recorded_link)
    Workbench.make(path, Documents([0], ["tea"], [["tea"]]))
    named = calls.index("named")
    assert path.stat().st_ino in calls[:named]
    assert tmp_path.stat().st_ino in calls[named:]


def test_labels_wait_for_the_disk(session):
    """Nothing but the setting differs until the power is cut: SQLite is asked for it."""
    with session.project.transaction() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


@pytest.mark.slow
def test_labels_are_synced_before_they_are_reported(path):
    """The same, as the system sees it."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    code = f"""
        from pathlib import Path
        from topicsteer.app.workbench.actions import NewTopic, apply
        from topicsteer.app.workbench.project import Project
        from topicsteer.app.workbench.session import LabelSession
        session = LabelSession(Project.open(Path({str(path)!r})))
        print("before", flush=True)
        apply(session, "ann", NewTopic(name="tea"))
        print("after", flush=True)
        session.project.close()
        """
    command = ["strace", "-f", "-e", "trace=write,fdatasync,fsync", sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    between = done.stderr.partition('"before')[2].partition('"after')[0]
    assert "sync(" in between


# --- queries ---


def test_texts_never_become_sql(session, path):
    for text in ("'; DROP TABLE documents; --", '" OR "tea', "x' UNION SELECT 1; --", "*", "%", "_", "NEAR(tea)"):
        assert session.project.search(text) == []
        apply(session, "ann'; --", NewTopic(name=text, description=text))
        assert session.live[-1].name == text
    assert session.project.search("^tea* 7") == [7, *range(70, 80)]
    assert len(session.project) == N
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        session.project.read("DELETE FROM documents")
