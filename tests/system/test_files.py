"""Atomic writes, work folders and temporary folders: nothing of others is followed, replaced or removed."""

import errno
import os
import subprocess
import sys
import time

import polars as pl
import pytest

from topicsteer.report.table_files import write_table
from topicsteer.system import files
from topicsteer.system.files import MARKER, Scratch, replacing, replacing_folder, reserve, write_text

HOLD = """
import sys, time
from pathlib import Path
from topicsteer.system.files import Scratch, replacing
scratch = Scratch(parent=sys.argv[1])
(scratch.path / "rows").write_text("half")
with replacing(Path(sys.argv[1]) / "o.csv") as part:
    part.write_text("half")
    Path(str(part) + "-wal").write_text("half")
    print("ready", flush=True)
    time.sleep(100)
"""


WRITE = "import sys; from topicsteer.system.files import write_text; write_text(sys.argv[1], 'afterwards')"


def test_planted_links_are_not_followed(tmp_path, monkeypatch):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / ".o.csv.part").symlink_to(tmp_path / "precious")
    write_text(tmp_path / "o.csv", "a")
    monkeypatch.setattr(files.uuid, "uuid4", lambda: type("Fixed", (), {"hex": "0" * 32}))
    (tmp_path / f".p.csv.{'0' * 12}.part").symlink_to(tmp_path / "precious")  # even if the name could be guessed
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "p.csv", "a")
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "p.csv").exists()


def test_an_own_link_is_written_through(tmp_path):
    target = tmp_path / "shared" / "report.html"
    target.parent.mkdir()
    target.write_text("old")
    link, dangling = tmp_path / "latest.html", tmp_path / "next.html"
    link.symlink_to(target)
    dangling.symlink_to("shared/next.html")
    for path, written in ((link, target), (dangling, target.with_name("next.html"))):
        write_text(path, "new")
        assert path.is_symlink()
        assert written.read_text() == "new"
    assert {path.name for path in target.parent.iterdir()} == {"report.html", "next.html"}


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet", ".jsonl"])
def test_tables_are_written_through_a_link(tmp_path, suffix):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    link = (tmp_path / "link").rename(tmp_path / f"link{suffix}")
    write_table(pl.DataFrame({"id": [1]}), link)
    assert link.is_symlink()
    assert (tmp_path / "target").stat().st_size


@pytest.mark.skipif(os.name == "nt", reason="users of Unix")
def test_a_link_that_another_user_planted_is_replaced(tmp_path, monkeypatch):
    open_to_all = tmp_path / "tmp"
    open_to_all.mkdir()
    open_to_all.chmod(0o1777)
    (tmp_path / "precious").write_text("mine")
    (open_to_all / "a.csv").symlink_to(tmp_path / "precious")
    if os.getuid() == 0:  # the owner of the link is never root
        os.lchown(open_to_all / "a.csv", 54321, -1)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    write_text(open_to_all / "a.csv", "new")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (open_to_all / "a.csv").read_text() == "new"


@pytest.mark.skipif(os.name == "nt", reason="modes of Unix")
@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644)])
def test_the_umask_decides_who_can_read(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "a", "a")
        with replacing_folder(tmp_path / "b") as part:
            (part / "c").write_text("c")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == mode
    assert (tmp_path / "b" / "c").stat().st_mode & 0o777 == mode
    assert (tmp_path / "b").stat().st_mode & 0o777 == mode | (mode & 0o444) >> 2


def test_a_new_file_replaces_nothing(tmp_path):
    def write_late():
        with replacing(tmp_path / "a", new=True) as part:
            part.write_text("late")
            (tmp_path / "a").write_text("first")

    with pytest.raises(FileExistsError):
        write_late()
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "first"


def test_a_new_file_without_hard_links(tmp_path, monkeypatch):
    def none(*_):
        raise OSError("not here")

    monkeypatch.setattr(os, "link", none)
    with replacing(tmp_path / "a", new=True) as part:
        part.write_text("all")
    assert (tmp_path / "a").read_text() == "all"
    with pytest.raises(FileExistsError), replacing(tmp_path / "a", new=True) as part:
        part.write_text("late")
    assert (tmp_path / "a").read_text() == "all"


@pytest.mark.skipif(os.name == "nt", reason="locks of Unix")
def test_leftovers_of_a_killed_process_are_swept(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        left = sorted(os.listdir(tmp_path))
        assert len(left) == 3
        for path in tmp_path.rglob("*"):  # long ago
            os.utime(path, (0, 0))
        write_text(tmp_path / "a", "while the owner lives")
        assert sorted(os.listdir(tmp_path)) == sorted([*left, "a"])
        process.kill()
    subprocess.run([sys.executable, "-c", WRITE, tmp_path / "a"], check=True)  # every process sweeps once
    assert os.listdir(tmp_path) == ["a"]


def test_only_our_leftovers_are_swept(tmp_path):
    for folder in ("topicsteer-notes", ".topicsteer-young", ".topicsteer-linked"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "thesis.txt").write_text("years")
    (tmp_path / ".topicsteer-young" / MARKER).touch()
    (tmp_path / "old").touch()
    os.utime(tmp_path / "old", (0, 0))
    (tmp_path / ".topicsteer-linked" / MARKER).symlink_to(tmp_path / "old")
    (tmp_path / ".o.csv.part").write_text("mine")
    os.utime(tmp_path / ".o.csv.part", (0, 0))
    before = sorted(tmp_path.rglob("*"))
    write_text(tmp_path / "a", "a")
    assert sorted({*tmp_path.rglob("*")} - {tmp_path / "a"}) == before


def test_a_temporary_folder_goes_with_its_object():
    scratch = Scratch()
    path = scratch.path
    assert (path / MARKER).is_file()
    assert abs((path / MARKER).stat().st_mtime - time.time()) < 60
    del scratch
    assert not path.exists()


def test_work_folders_of_others_are_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("years")
    with pytest.raises(ValueError, match=r"files that topicsteer did not write, such as 'thesis\.txt'"):
        Scratch(tmp_path).claim()
    with pytest.raises(ValueError, match="is a file"):
        Scratch(tmp_path / "thesis.txt").claim()
    Scratch(tmp_path).remove()
    assert (tmp_path / "thesis.txt").read_text() == "years"
    ours = Scratch(tmp_path / "new").claim()
    (ours.path / "rows").write_text("1")
    Scratch(tmp_path / "new").claim().remove()
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    for _ in range(2):
        with replacing_folder(tmp_path / "t") as part:
            (part / "a").write_text("1")

    def interrupted():
        with replacing_folder(tmp_path / "t") as part:
            (part / "b").write_text("2")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.listdir(tmp_path) == ["t"]
    assert os.listdir(tmp_path / "t") == ["a"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users of Unix")
def test_a_work_folder_of_a_stranger_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "m.work"
    Scratch(folder).claim()
    if os.getuid() == 0:  # everybody trusts folders of root
        os.chown(folder, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    Scratch(folder).claim()  # only its owner can create folders here
    tmp_path.chmod(0o777)
    with pytest.raises(ValueError, match="belongs to another user"):
        Scratch(folder).claim()


def test_room_is_reserved_where_the_file_system_can(tmp_path, monkeypatch):
    with open(tmp_path / "a", "w+b") as file:
        reserve(file, 10_000)
        assert (tmp_path / "a").stat().st_size in (0, 10_000)  # 0 on systems without the call

        def refuse(number):
            def call(*_):
                raise OSError(number, "refused")

            monkeypatch.setattr(os, "posix_fallocate", call, raising=False)

        refuse(errno.EOPNOTSUPP)
        reserve(file, 10_000)
        refuse(errno.ENOSPC)
        with pytest.raises(OSError, match="refused"):
            reserve(file, 10_000)
