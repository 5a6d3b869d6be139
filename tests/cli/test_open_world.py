"""Commands where documents may have none of the known topics; the corpus has two known and three unknown subjects."""

import io
import json
import re
import shutil

import numpy as np
import polars as pl
import pytest
from problems import make_open_corpus

from topicsteer import TopicModel

pytestmark = pytest.mark.slow

UNKNOWN = ["boat", "chess", "violin"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    texts, labels = make_open_corpus(seed=6)
    path = tmp_path_factory.mktemp("corpus") / "subjects.csv"
    pl.DataFrame({"id": [f"d{i}" for i in range(len(texts))], "text": texts, "label": labels}).write_csv(path)
    return path


@pytest.fixture(scope="module")
def fitted(table, tmp_path_factory):
    """Folder of a model without texts; tests only read it."""
    folder = tmp_path_factory.mktemp("fitted") / "model"
    TopicModel(3).fit(table, "label").save(folder)
    return folder


@pytest.fixture
def model(fitted, tmp_path):
    """A copy of the model, to edit."""
    return shutil.copytree(fitted, tmp_path / "model")


def subjects(model):
    """The subject of each free topic, from its first term."""
    found = TopicModel.load(model)
    return sorted(re.match("boat|chess|violin", name).group() for name in found.state_.free_names)


def test_fit_and_evaluate_take_the_world(run, table, tmp_path):
    for world, belief in (("open", "Some documents have none of your 2 topics."), ("closed", "as declared")):
        code, out, err = run("fit", table, "--world", world, "--free", 3, "--out", tmp_path / world)
        assert code == 0
        assert belief in err.replace("\n", " ")
        assert ("(none)" in out) == (world == "open")
        assert TopicModel.load(tmp_path / world).world == world
    code, _, err = run("fit", table, "--world", "flat", "--out", tmp_path / "model")
    assert code == 2
    assert "open" in err
    code, out, err = run("evaluate", tmp_path / "open", table)
    assert code == 0
    assert err.startswith("This is no estimate for the corpus: 0 hidden labels are known to be drawn at random")
    assert "No precision is known" in err.replace("\n", " ")


def test_label_stores_the_world_in_the_project(run, table, tmp_path, monkeypatch):
    routes = pytest.importorskip("topicsteer.app.web.routes")
    worlds = []

    class Server:
        """Nobody connects."""

        def __init__(self, workbench, *_):
            worlds.append(workbench.session.settings.world)

        def run(self):
            """End at once."""

    monkeypatch.setattr(routes, "Server", Server)
    project = tmp_path / "subjects.steer"
    for options in ((), ("--world", "open"), (), ("--world", "closed")):
        assert run("label", table, "--project", project, "--no-browser", *options)[0] == 0
    assert worlds == [None, "open", "open", "closed"]


def test_the_table_of_topics_ends_with_none(run, fitted):
    code, out, err = run("topics", fitted)
    assert code == 0
    found = TopicModel.load(fitted)
    none = found.memberships()["(none)"].mean()
    assert 0.5 < none < 0.7  # 240 of 400 documents
    last = [line for line in out.splitlines() if "│" in line][-1]
    assert re.search(r"\(none\) +│ none +│ +0 │", last)
    assert found.belief.partition(": ")[0] in err.replace("\n", " ")
    assert "--for shares -n 50" in err.replace("\n", " ")
    whole = json.loads(run("topics", fitted, "--json")[1])
    assert [row["topic"] for row in whole] == [*found.state_.topics.names, "(none)"]
    assert whole[-1]["kind"] == "none"
    assert whole[-1]["mean membership"] is None  # without random labels, P(none) only ranks


def test_predict_has_a_column_for_every_topic_and_for_none(run, fitted, table):
    code, out, _ = run("predict", fitted, table, "-q")
    assert code == 0
    frame, found = pl.read_csv(io.StringIO(out)), TopicModel.load(fitted)
    own = pl.read_csv(table).columns
    assert frame.columns == [*own, "predicted", *found.state_.topics.names, "(none)"]
    truth = ["tea"] * 80 + ["coffee"] * 80 + ["(none)"] * 240
    assert sum(a == b for a, b in zip(frame["predicted"], truth, strict=True)) >= 390
    decided = found.predict(make_open_corpus()[0])
    assert [each for each in frame["predicted"] if each != "(none)"] == ["; ".join(names) for names in decided if names]
    assert 0 < frame["predicted"].to_list().count("(none)") == decided.count([])
    likelier = [name == "(none)" for name in truth]
    assert np.mean((frame["(none)"].to_numpy() > 0.5) == likelier) > 0.97


@pytest.mark.filterwarnings("ignore:The topics .* are empty")
@pytest.mark.parametrize("many", [1, 4])
def test_predictions_have_no_empty_topics(run, tmp_path, many):
    """A few texts take another way than many."""
    texts = ["green tea leaves", "roast coffee beans", "milk cheese cow", "train late rail"] * 6
    frame = pl.DataFrame({"text": texts, "label": ["tea", "coffee", None, None] * 2 + [None] * 16})
    frame.write_csv(tmp_path / "texts.csv")
    code, _, err = run("fit", tmp_path / "texts.csv", "--free", 8, "--world", "closed", "--out", tmp_path / "model")
    assert code == 0, err
    empty = TopicModel.load(tmp_path / "model").state_.topics.empty
    assert len(empty) > 1
    assert all(name.startswith("empty") for name in empty)
    pl.concat([frame] * many).write_csv(tmp_path / "new.csv")
    code, out, err = run("predict", tmp_path / "model", tmp_path / "new.csv")
    assert code == 0, err
    found = pl.read_csv(io.StringIO(out))
    assert found.columns[:5] == ["id", "text", "label", "predicted", "coffee"]
    assert not set(empty) & set(found.columns)
    assert found["tea"][0] > 0.9


def test_explain_gives_the_reason_for_no_topic(run, fitted):
    code, _, err = run("explain", fitted, "boataa boatab boatac boatad")
    assert code == 0
    assert "reaches its threshold and is likelier than none" in err.replace("\n", " ")


def test_update_prints_the_belief(run, model, tmp_path):
    (tmp_path / "late.csv").write_text("id,label\nd20,tea\n")
    code, out, err = run("update", model, "--label-file", tmp_path / "late.csv")
    assert code == 0
    assert "tea" in out
    assert TopicModel.load(model).belief.partition(": ")[0] in err.replace("\n", " ")


def test_adopt_proposes_labels_for_an_update(run, model, table, tmp_path):
    free = TopicModel.load(model).state_.free_names[0]
    code, out, err = run("edit", model, table, "--adopt", "free 1 = new one")
    assert code == 0
    assert "Some documents have none of your 3 topics." in err.replace("\n", " ")
    proposals = pl.read_csv(io.StringIO(out))
    assert proposals.columns == ["id", "membership", "text", "label"]
    assert set(proposals["label"]) == {"new one"}
    assert all(text.startswith(free[:4]) for text in proposals["text"])
    found = TopicModel.load(model)
    assert found.state_.topics.names[:3] == ("coffee", "tea", "new one")
    assert found.documents_ is None  # attached texts are not stored
    (tmp_path / "proposals.csv").write_text(out)
    assert run("update", model, "--label-file", tmp_path / "proposals.csv", "--labels", "label", "-q")[0] == 0
    assert TopicModel.load(model).state_.supervision.counts.tolist() == [8, 8, 10]


def test_an_edited_model_may_go_to_another_folder(run, model, tmp_path):
    before = TopicModel.load(model).state_.topics.names
    code, out, err = run("edit", model, "--rename", "free 2=boats = ships", "--out", tmp_path / "other")
    assert code == 0
    assert "boats = ships" in out
    assert "Saved in" in err
    assert TopicModel.load(model).state_.topics.names == before
    assert TopicModel.load(tmp_path / "other").state_.topics.names[3] == "boats = ships"


@pytest.mark.parametrize("separator", [", ", ";"])
def test_merge_free_topics(run, model, separator):
    names = TopicModel.load(model).state_.free_names[:2]
    given = names if separator == ";" else ("free 1", "free 2")
    assert run("edit", model, "--merge", separator.join(given), "-q") == (0, "", "")
    assert len(TopicModel.load(model).state_.free_names) == 2


def test_an_edit_keeps_texts_and_stores_no_more_than_before(run, table, tmp_path):
    model = TopicModel(3).fit(table, "label")
    model.save(tmp_path / "final", texts=True, updatable=False)
    assert run("edit", tmp_path / "final", "--rename", "free 1=boats", "-q")[0] == 0
    found = TopicModel.load(tmp_path / "final")
    assert found.documents_ is not None
    assert found.state_.reservoir is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "choose one of --adopt, --rename, --merge, --move"),
        (("--rename", "free 1=b", "--move", "free 1=a"), "choose one of"),
        (("--adopt", "free 1"), 'not of the form "name=value"'),
        (("--adopt", "tea=other"), "it is a known topic"),
        (("--adopt", "free 9=other"), "there is no topic"),
    ],
)
def test_edits_that_are_refused_change_nothing(run, model, arguments, message):
    before = TopicModel.load(model).state_.topics.names
    code, _, err = run("edit", model, *arguments)
    assert code == 1
    assert message in err.replace("\n", " ")
    assert TopicModel.load(model).state_.topics.names == before
