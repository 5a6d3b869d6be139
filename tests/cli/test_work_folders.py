"""Folders of the user next to the files of a command stay as they are."""

import os

import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.system.files import MARKER, Scratch

pytestmark = pytest.mark.slow


@pytest.fixture
def table(tmp_path):
    texts = ["green tea leaves in a pot", "roast coffee beans ground", "tea with milk in it"] * 8
    pl.DataFrame({"text": texts, "labels": ["tea", "coffee", ""] * 8}).write_csv(tmp_path / "drinks.csv")
    return tmp_path / "drinks.csv"


def fill(folder):
    folder.mkdir(parents=True)
    (folder / "thesis.txt").write_text("years")
    return folder / "thesis.txt"


@pytest.mark.parametrize("memory", [(), ("--memory", "1kB")])
def test_a_folder_with_the_name_of_the_work_folder(run, table, tmp_path, memory):
    mine = fill(tmp_path / "m.work")
    code, _, err = run("fit", table, "-o", tmp_path / "m", "--free", 1, "-q", *memory)
    assert code == (1 if memory else 0)  # in memory there is nothing to put there
    assert ("files that topicsteer did not write, such as 'thesis.txt'" in err) == bool(memory)
    assert mine.read_text() == "years"


def test_folders_inside_the_work_folder(run, table, tmp_path):
    mine = [fill(tmp_path / "w" / name) for name in ("corpus.old", "corpus.partial")]
    code, _, err = run("fit", table, "-o", tmp_path / "m", "--work", tmp_path / "w", "--memory", "1kB", "-q")
    assert code == 1
    assert "choose a new or empty folder" in err
    assert [path.read_text() for path in mine] == ["years", "years"]


def test_our_own_work_folder_is_removed_and_a_named_one_stays(run, table, tmp_path):
    ours = Scratch(tmp_path / "m.work").claim()  # of an interrupted fit
    (ours.path / "weights").mkdir()
    for more in ((), ("--memory", "1kB"), ("--memory", "1kB", "--work", tmp_path / "w")):
        code, _, err = run("fit", table, "-o", tmp_path / "m", "--free", 1, "-q", *more)
        assert (code, err) == (0, "")
        assert not ours.path.exists()
    assert (tmp_path / "w" / MARKER).exists()
    assert sorted(os.listdir(tmp_path)) == ["drinks.csv", "m", "w"]
    assert len(TopicModel.load(tmp_path / "m").state_.topics.ids) == 24


def test_two_fits_do_not_share_a_work_folder(run, table, tmp_path):
    with Scratch(tmp_path / "w").in_use():
        import threading

        result = []
        arguments = ("fit", table, "-o", tmp_path / "m", "--work", tmp_path / "w", "--memory", "1kB", "-q")
        thread = threading.Thread(target=lambda: result.append(run(*arguments)))
        thread.start()
        thread.join()
    ((code, _, err),) = result
    assert code == 1
    assert "is in use by another program" in err
