"""Models and projects that 0.1.0 wrote: they load, and answer as they did, bit for bit (tests/data/0.1.0/make.py)."""

import importlib.util
import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.extmath import randomized_svd

from topicsteer import TopicModel
from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents
from topicsteer.guidance import latent, ridge, sample
from topicsteer.guidance.keywords import topic_texts
from topicsteer.labels.codebook import Codebook
from topicsteer.model import files, learning
from topicsteer.system import arrays

# The script that made them uses the names of 0.1.0.
pytestmark = pytest.mark.filterwarnings("ignore:.*the old name goes with 0.3:DeprecationWarning")
HERE = Path(__file__).parents[1] / "data" / "0.1.0"
KINDS = ("guided", "merged", "plain")


@pytest.fixture(scope="module")
def make():
    """The script that wrote the files: its documents are asked about again."""
    source = (HERE / "make.py").read_text()
    for old in ("session", "project"):
        source = source.replace(f"topicsteer.app.{old} ", f"topicsteer.app.workbench.{old} ")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("make", loader=None))
    module.__file__ = str(HERE / "make.py")
    exec(compile(source, module.__file__, "exec"), module.__dict__)
    return module


@pytest.fixture(scope="module")
def before():
    with np.load(HERE / "answers.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def same(make, before, kind, model, rtol=0.0):
    """Check that a model answers as before, bit for bit unless there is a tolerance."""
    now = make.answers(model, make.texts(30, 2)[0])
    assert {f"{kind}_{name}" for name in now} == {name for name in before if name.startswith(f"{kind}_")}
    for name, value in now.items():
        old = before[f"{kind}_{name}"]
        assert value.dtype == old.dtype, name
        assert value.shape == old.shape, name
        if rtol and value.dtype.kind == "f":
            np.testing.assert_allclose(value, old, rtol, atol=rtol, err_msg=name)
        else:
            assert value.tobytes() == old.tobytes(), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_0_1_0_answers_the_same(make, before, kind):
    same(make, before, kind, TopicModel.load(HERE / kind))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_same_after_it_was_saved_again(make, before, kind, tmp_path):
    TopicModel.load(HERE / kind).save(tmp_path / "again")
    same(make, before, kind, TopicModel.load(tmp_path / "again"))


def test_an_update_of_it_is_the_same(make, before, monkeypatch):
    """In 0.1.0, keywords were part of the description, latent semantics from scikit-learn, and names led less often."""

    def described_by_keywords(codebook, *rest):
        topics = (replace(t, description=" ".join([t.description, *t.keywords]), keywords=()) for t in codebook)
        return topic_texts(Codebook(tuple(topics)), *rest)

    def former_directions(rows, seed, threads):
        X = rows.take(np.arange(rows.shape[0]))
        size = min(latent.DIMENSIONS, X.shape[0] // 5, X.shape[1] // 5)
        if size < latent.MIN_DIMENSIONS:
            return np.zeros((X.shape[1], 0), dtype=X.dtype)
        return np.ascontiguousarray(randomized_svd(X, size, n_iter=3, random_state=seed)[2].T, dtype=X.dtype)

    monkeypatch.setattr(learning, "topic_texts", described_by_keywords)
    monkeypatch.setattr(sample, "latent_directions", former_directions)
    monkeypatch.setattr(ridge, "LEADING_LABELS", ridge.FULL_NAME_WEIGHT_LABELS)
    later, more = make.texts(20, 3)
    model = TopicModel.load(HERE / "guided")
    model.threads = 1
    model.update(Documents([f"n{row}" for row in range(20)], later), make.labels(more, 4))
    same(make, before, "updated", model, rtol=1e-5)  # an update learns again, and sums may be rounded differently


@pytest.mark.slow
def test_a_project_of_0_1_0_opens_with_its_labels_and_its_model(make, before, tmp_path):
    path = tmp_path / "project.steer"
    shutil.copy(HERE / "project.steer", path)
    expected = json.loads((HERE / "project.json").read_text())
    project = Project.open(path)
    try:
        session = LabelSession(project)
        training = session.training()
        found = {
            "labels": {str(row): list(names) for row, names in training.labels.items()},
            "forbidden": {str(row): list(names) for row, names in training.forbidden.items()},
            "seq": session.seq,
        }
        assert found == {name: expected[name] for name in found}
        assert [topic.name for topic in training.topics] == [name for _, name, *_ in expected["topics"]]
        assert session.undo("bob").documents == (5,)
    finally:
        project.close()
    workbench = Workbench(path)
    try:
        fitted = workbench.views.fitted
        assert not workbench.notice
        assert fitted.memberships.tobytes() == before["guided_memberships"].tobytes()
        assert workbench.fit()
        end = time.monotonic() + 90
        while workbench.views.fitted is fitted and not workbench.status.error:
            assert time.monotonic() < end, "it took too long"
            time.sleep(0.02)
        assert not workbench.status.error
        assert workbench.views.fitted.meta["warm"]  # it goes on from the model of 0.1.0
        assert workbench.views.fitted.keys == [topic.key for topic in training.topics]
    finally:
        workbench.close()


def test_the_default_number_of_free_topics_of_0_1_0_is_no_wish():
    meta, _ = arrays.load(HERE / "guided")
    assert files._from_first_release(meta | {"free_topics": 10})["parameters"]["free_topics"] is None
    assert files._from_first_release(meta)["parameters"]["free_topics"] == 3
