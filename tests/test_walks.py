"""Walks through the code: the files of the package that one row, one label and one prediction meet."""

import sys
import threading
import warnings
from pathlib import Path

import pytest

import topicsteer
from topicsteer import TopicModel
from topicsteer.cli.commands import app as command_line
from topicsteer.corpora import Documents

SOURCE = str(Path(topicsteer.__file__).parent)
TEXTS = ["green tea leaves in a pot", "roast coffee beans", "a tea with leaves", "coffee of roast beans", "milk"] * 8
LABELS = ["tea", "coffee", "", "", ""] * 8


class Walk:
    """Files of the package whose functions are called inside the ``with`` block, in any thread."""

    def __init__(self):
        self.files = set()

    def _note(self, frame, event, argument):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(SOURCE) and name.endswith(".py"):
            self.files.add(name[len(SOURCE) + 1 :])

    def __enter__(self):
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("walks") / "texts.csv"
    rows = [f"{number},{text},{label}" for number, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))]
    path.write_text("\n".join(["id,text,topic", *rows]))
    return path


def test_a_row_of_a_table_to_a_report(table):
    model = table.parent / "model"
    order = ["fit", table, "--labels", "topic", "--free", 0, "--out", model, "--report", table.parent / "report.html"]
    command_line([str(word) for word in order], standalone_mode=False)  # imports
    with Walk() as walk:
        command_line([str(word) for word in order], standalone_mode=False)
    assert "nmf/loop.py" in walk.files
    assert len(walk.files) <= 65, sorted(walk.files)


def test_a_model_on_disk_to_a_prediction(tmp_path):
    labels = [label or None for label in LABELS]
    TopicModel(free_topics=0).fit(TEXTS, labels).save(tmp_path / "model")
    TopicModel.load(tmp_path / "model").predict(TEXTS)  # imports
    with Walk() as walk:
        assert TopicModel.load(tmp_path / "model").predict(["green tea"]) == [["tea"]]
    assert "model/state.py" in walk.files
    assert len(walk.files) <= 25, sorted(walk.files)


def test_a_label_of_the_page(tmp_path):
    pytest.importorskip("starlette")
    with warnings.catch_warnings(action="ignore"):  # it would rather have another version of httpx
        from starlette.testclient import TestClient

    from topicsteer.app.web.routes import guarded
    from topicsteer.app.workbench.workbench import Workbench

    home = "http://127.0.0.1:8765"
    Workbench.make(tmp_path / "drinks.steer", Documents(list(range(len(TEXTS))), TEXTS))
    workbench = Workbench(tmp_path / "drinks.steer")
    try:
        app = guarded(workbench, "127.0.0.1", 8765, token="secret")
        with Walk() as walk, TestClient(app, base_url=home) as page:  # threads of the server start inside the walk
            answer = page.get("/?token=secret")
            page.headers["origin"] = home
            page.headers["x-topicsteer"] = answer.headers["x-topicsteer"]

            def act(**message):
                done = page.post("/api/act", json={"who": "ann", "request": None, **message})
                assert done.status_code == 200, done.text

            act(action="new topic", name="tea")
            act(action="label", documents=[0], key=1, state="permitted")  # imports
            walk.files.clear()
            act(action="label", documents=[2], key=1, state="permitted")
            assert page.get("/api/next?who=ann").status_code == 200
            assert page.get("/api/state?who=ann").status_code == 200
            met = set(walk.files)
    finally:
        workbench.close()
    assert any(name.endswith("session.py") for name in met)
    assert len(met) <= 22, sorted(met)
