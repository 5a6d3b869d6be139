"""Model folders under several writers and readers."""

import errno
import subprocess
import sys
import threading
from pathlib import Path

import filelock
import numpy as np
import pytest

from topicsteer import TopicModel
from topicsteer.corpora import Documents
from topicsteer.model import state as states
from topicsteer.system.arrays import LOCK, StorageError

ROOT = Path(__file__).parents[2]
TEXTS = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3


@pytest.fixture
def folder(tmp_path):
    ids = [f"d{i}" for i in range(12)]
    model = TopicModel(0, threads=1).fit(Documents(ids, TEXTS, [["tea"], ["coffee"], *[[]] * 10]))
    model.save(tmp_path / "m", texts=True)
    return tmp_path / "m"


def test_a_model_is_not_saved_over_a_newer_version(folder, tmp_path):
    mine, other = TopicModel.load(folder), TopicModel.load(folder)
    other.update(Documents(["x"], ["milk tea"])).save(folder)
    other.update(Documents(["y"], ["more milk"])).save(folder)  # its own version
    mine.edit.rename("tea", "infusions")
    with pytest.raises(StorageError, match=r"was changed by another program .* nothing was written"):
        mine.save(folder)
    assert TopicModel.load(folder).state_.topics.ids[-2:] == ["x", "y"]
    mine.save(tmp_path / "elsewhere")
    TopicModel(2).fit(TEXTS).save(folder)  # a new model replaces any other
    assert len(TopicModel.load(folder).state_.topics.ids) == 12


def test_a_reader_gets_one_whole_version_while_another_writes(folder, monkeypatch):
    writer, steps = TopicModel.load(folder), []
    read = np.lib.format.read_magic

    def interfere(file):
        if len(steps) < 3:  # in the middle of three loads
            steps.append(file)
            writer.update(Documents([f"n{len(steps)}"], ["milk tea " * len(steps)]))
            writer.save(folder)
        return read(file)

    monkeypatch.setattr(np.lib.format, "read_magic", interfere)
    assert TopicModel.load(folder).state_.topics.ids[-3:] == ["n1", "n2", "n3"]
    assert len(steps) == 3


def test_a_reader_takes_the_lock_if_the_model_never_rests(folder, monkeypatch):
    versions = iter(range(100))
    monkeypatch.setattr(states, "version", lambda path: (next(versions),))
    assert len(TopicModel.load(folder).state_.topics.ids) == 12


def test_damage_is_still_an_error_and_a_missing_folder_stays_missing(folder, tmp_path):
    next(folder.glob("components-*")).unlink()
    with pytest.raises(StorageError, match="there is no file"):
        TopicModel.load(folder)
    with pytest.raises(StorageError, match="there is no folder"), states.writing(tmp_path / "typo"):
        TopicModel.load(tmp_path / "typo")
    assert not (tmp_path / "typo").exists()


def test_a_folder_with_only_a_lock_is_free(tmp_path):
    (tmp_path / LOCK).touch()
    TopicModel(2).fit(TEXTS).save(tmp_path)
    assert len(TopicModel.load(tmp_path).state_.topics.ids) == 12


def test_five_threads_update_one_model_in_turn(folder):
    model = TopicModel.load(folder)
    threads = [
        threading.Thread(target=model.update, args=(Documents([f"t{i}"], [f"tea number {i}"]),)) for i in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(model.state_.topics.ids[12:]) == [f"t{i}" for i in range(5)]
    assert len(model.memberships()) == 17


@pytest.mark.slow
def test_two_updates_at_once_are_both_kept(folder, tmp_path):
    commands = []
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"id,text\n{name}1,tea and milk\n{name}2,beans and milk\n")
        commands.append([sys.executable, "-m", "topicsteer", "update", folder, tmp_path / f"{name}.csv", "-q"])
    running = [subprocess.Popen(command) for command in commands]
    assert [process.wait() for process in running] == [0, 0]
    assert sorted(TopicModel.load(folder).state_.topics.ids[12:]) == ["a1", "a2", "b1", "b2"]


@pytest.mark.slow
def test_two_writers_readers_and_kills():
    """A short sample of ``make fuzz``."""
    command = [sys.executable, "-m", "tests.fuzz.writers", "--rounds", "6"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "saved" in done.stdout
    assert "read" in done.stdout


def test_a_full_disk_at_the_lock_is_explained(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(filelock.FileLock, "acquire", full)
    with pytest.raises(StorageError, match="No space left on device; make room or choose another folder"):
        TopicModel.load(folder).save(folder)
