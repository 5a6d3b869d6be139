"""Ctrl-C during a fit: exit code 130, and the old model stays."""

import os
import signal

import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.nmf import loop

TEXTS = ["green tea leaves in a pot", "roast coffee beans ground", "tea with milk in it", "beans and a pot"] * 6


@pytest.fixture
def table(tmp_path):
    pl.DataFrame({"text": TEXTS, "labels": ["tea", "coffee", "", ""] * 6}).write_csv(tmp_path / "drinks.csv")
    return tmp_path / "drinks.csv"


@pytest.fixture
def ctrl_c(monkeypatch):
    """Press Ctrl-C in the first iteration of each fit."""
    advance = loop.update_block

    def press(*args, **kwargs):
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # not yet pressed
            os.kill(os.getpid(), signal.SIGINT)
        return advance(*args, **kwargs)

    monkeypatch.setattr(loop, "update_block", press)


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_fit_saves_nothing(run, table, tmp_path):
    code, _, err = run("fit", table, "-o", tmp_path / "m", "--free", 2)
    assert code == 130
    assert "Interrupted: nothing was saved" in err
    assert not (tmp_path / "m").exists()


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.filterwarnings("ignore:Interrupted")
def test_python_keeps_an_interrupted_fit(table, tmp_path):
    model = TopicModel(2).fit(table)
    assert model.state_.interrupted
    model.edit.rename("tea", "infusions")
    model.save(tmp_path / "m")
    model = TopicModel.load(tmp_path / "m")
    assert model.state_.interrupted
    assert "infusions" in model.state_.topics.names
    model.report(tmp_path / "r.html")
    assert "the fit was interrupted" in (tmp_path / "r.html").read_text()


def test_an_interrupted_command_leaves_the_old_model(run, table, tmp_path, request):
    assert run("fit", table, "-o", tmp_path / "m", "--free", 2, "-q")[0] == 0
    (tmp_path / "more.csv").write_text("text\ngreen beans and milk\n")
    before = bytes_of(tmp_path / "m")
    request.getfixturevalue("ctrl_c")
    for command in (("fit", table, "-o", tmp_path / "m"), ("update", tmp_path / "m", tmp_path / "more.csv")):
        assert run(*command, "-q")[0] == 130
        assert bytes_of(tmp_path / "m") == before
