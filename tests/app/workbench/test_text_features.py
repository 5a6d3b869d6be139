"""Projects with embeddings."""

import io
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("msgspec")

from topicsteer.app.web.routes import model_summary
from topicsteer.app.workbench.current_model import CurrentModel, ModelRecord
from topicsteer.app.workbench.errors import Conflict
from topicsteer.app.workbench.workbench import Workbench, vector_file
from topicsteer.app.workbench.worker import Worker
from topicsteer.corpora import Documents

TEXTS = ["green tea leaves", "the engine of a car", "an automobile and its wheels", "espresso with milk"] * 6
LABELS = [["drinks"], ["vehicles"], ["vehicles"], ["drinks"]] + [[]] * 20


def test_a_project_with_vectors(tmp_path):
    vectors = [[float("tea" in t or "milk" in t), float("car" in t or "auto" in t)] for t in TEXTS]
    path = tmp_path / "drinks.steer"
    np.save(tmp_path / "vectors.npy", np.array(vectors))
    documents = Documents(range(24), TEXTS, LABELS, {"year": list(range(24))})
    Workbench.make(path, documents, embeddings=str(tmp_path / "vectors.npy"))
    bench = Workbench(path)
    try:
        assert bench.features.embeddings == str(vector_file(path))
        sent = []
        bench.session.change_settings(world="open")
        bench.fitter.start = lambda order: sent.append(order) or True
        bench.fit()
        worker = Worker(io.StringIO())
        worker.work(sent[0])
        assert '"failed"' not in worker.out.getvalue(), worker.out.getvalue()
        bench.views.fitted = fitted = CurrentModel(Path(sent[0].folder), ModelRecord([1, 2]), bench.features.vectors)
        assert fitted.model.guide_.embedding
        assert fitted.model.state_.encoder["source"] == str(vector_file(path))
        assert "".join(piece.text for piece in bench.views.document(3, "ann").pieces) == TEXTS[3]
        check_blind_mode(bench)
        with pytest.raises(Conflict, match="too few documents for 2 groups"):  # the vectors were read again
            bench.split(1, 2)
    finally:
        bench.close()
    np.save(vector_file(path), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="has 3 rows, and the table has 24"):
        Workbench(path)


def check_blind_mode(bench):
    """No page shows anything of the model."""
    shown = bench.views.topics()
    assert shown.known
    assert all(topic.fit is not None for topic in shown.known)
    bench.session.change_settings(blind=True)
    hidden = bench.views.topics()
    assert (hidden.free, hidden.none, [topic.fit for topic in hidden.known]) == ([], False, [None, None])
    assert len(bench.views.document(3, "ann").pieces) == 1
    assert bench.views.checks() == []
    assert model_summary(bench.views.fitted, blind=True).notes == []
    with pytest.raises(Conflict, match="Blind mode hides the map"):
        bench.document_map()
    bench.session.change_settings(blind=False)


@pytest.mark.parametrize(("name", "built_in"), [(None, "words"), ("words", "words"), ("none", None)])
def test_a_project_with_word_vectors_or_without(tmp_path, name, built_in):
    path = tmp_path / "drinks.steer"
    Workbench.make(path, Documents(range(24), TEXTS, LABELS), embeddings=name)
    bench = Workbench(path)
    try:
        sent = []
        bench.fitter.start = lambda order: sent.append(order) or True
        bench.fit()
        worker = Worker(io.StringIO())
        worker.work(sent[0])
        assert '"failed"' not in worker.out.getvalue(), worker.out.getvalue()
        bench.views.fitted = CurrentModel(Path(sent[0].folder), ModelRecord([1, 2]))
        fitted = bench.views.fitted.model
        assert fitted.embeddings == built_in
        assert bool(fitted.guide_.features.vectors.shape[1]) == bool(built_in)
        assert bench.split(1, 2)
    finally:
        bench.close()


def test_settings_of_a_project_name_no_other_files(tmp_path):
    path = tmp_path / "drinks.steer"
    Workbench.make(path, Documents(range(24), TEXTS, LABELS))
    bench = Workbench(path)
    assert bench.features.embeddings is None
    bench.project.set({"embeddings": "/etc/passwd"})
    bench.close()
    with pytest.raises(ValueError, match="not the folder of a model2vec model"):
        Workbench(path)
