import json
import re

import numpy as np
import pytest
from problems import make_open_corpus
from sklearn.manifold import trustworthiness

from topicsteer import TopicModel
from topicsteer.analysis import map_layout as maps
from topicsteer.corpora import Documents
from topicsteer.model.findings import document_map
from topicsteer.system.values import NONE

pytestmark = pytest.mark.slow

needs_umap = pytest.mark.skipif(bool(maps.obstacle(99)), reason="no umap-learn")
SUBJECTS = np.repeat(["tea", "coffee", "chess", "boat", "violin"], 80)


@pytest.fixture(scope="module")
def model():
    texts, labels = make_open_corpus()
    documents = Documents([f"d{i}" for i in range(len(texts))], texts, [[one] if one else [] for one in labels])
    return TopicModel(4, world="open", threads=1).fit(documents)


@pytest.fixture(scope="module")
def mapped(model):
    return document_map(model)


@needs_umap
def test_the_map_has_every_document_with_its_main_topic(model, mapped):
    assert mapped.ids == model.state_.topics.ids
    assert mapped.texts == model.documents_.texts
    found, P = mapped.map, model.state_.judged.values
    np.testing.assert_allclose(found.membership, P[np.arange(400), found.topic], atol=1e-6)
    names = np.array(found.names)[found.topic]
    for subject in ("tea", "coffee"):
        assert (names[subject == SUBJECTS] == subject).mean() > 0.9
    assert (found.topic[~np.isin(SUBJECTS, ["tea", "coffee"])] >= 2).mean() > 0.9
    assert found.names == (*model.state_.topics.names, NONE)
    assert found.labelled.sum() == 16


@needs_umap
def test_similar_documents_are_close(model, mapped):
    XY = mapped.map.layout.places * [mapped.map.layout.aspect, 1]
    assert trustworthiness(model.matrix_, XY, n_neighbors=10, metric="cosine") > 0.75
    square = ((XY[:, None] - XY[None]) ** 2).sum(axis=2)
    np.fill_diagonal(square, np.inf)
    assert (SUBJECTS[square.argmin(axis=1)] == SUBJECTS).mean() > 0.95


@needs_umap
def test_a_loaded_model_has_the_same_map(model, mapped, tmp_path):
    model.save(tmp_path / "model")
    loaded = document_map(TopicModel.load(tmp_path / "model").attach(model.documents_))
    assert np.array_equal(loaded.map.layout.places, mapped.map.layout.places)
    assert np.array_equal(loaded.map.topic, mapped.map.topic)


@needs_umap
def test_labelled_documents_are_not_set_apart(model):
    mapped = document_map(model).map
    labelled = np.flatnonzero(mapped.labelled)
    places = mapped.layout.places
    square = ((places[labelled][:, None] - places[None]) ** 2).sum(axis=2)
    square[np.arange(len(labelled)), labelled] = np.inf
    assert mapped.labelled[square.argmin(axis=1)].mean() < 0.6


def test_without_umap_a_report_has_a_note_in_place_of_the_map(model, monkeypatch, tmp_path):
    monkeypatch.setattr(maps, "find_spec", lambda name: None)
    model.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "The document map needs umap-learn" in page
    assert 'id="documents"' not in page


@needs_umap
def test_a_sample_of_a_large_corpus_has_all_labelled_documents(model):
    mapped = document_map(model, most=60)
    assert len(mapped.map) == len(mapped.ids) == len(mapped.texts) == 60
    assert mapped.map.labelled.sum() == 16
    assert mapped.map.layout.documents == 400
    rows = mapped.map.layout.rows
    assert np.array_equal(mapped.map.topic, model.state_.judged.main()[rows])


def test_a_given_layout_is_used(model, tmp_path):
    places = np.random.default_rng(0).random((400, 2)).astype(np.float32)
    layout = maps.Layout(np.arange(400), places, 1.0, 400)
    assert document_map(model, layout).map.layout is layout
    model.report(tmp_path / "r.html", map=layout)
    points = re.search(r'id="map-points">(.*?)</script>', (tmp_path / "r.html").read_text())[1]
    assert len(json.loads(points)["topics"]) == len(model.state_.topics.names) + 1


@needs_umap
def test_a_report_without_the_map_contains_no_further_documents(model, tmp_path):
    model.report(tmp_path / "with.html")
    model.report(tmp_path / "without.html", map=False)
    with_map, without = ((tmp_path / f"{name}.html").read_text() for name in ("with", "without"))
    held = [sum(text[:40] in page for text in model.documents_.texts) for page in (with_map, without)]
    assert held[0] == 400
    assert held[1] < 40
    assert 'id="documents"' not in without


@needs_umap
def test_a_model_without_labels_has_a_map():
    texts, _ = make_open_corpus(n=20)
    mapped = document_map(TopicModel(3, threads=1).fit(texts))
    assert len(mapped.map) == 100
    assert mapped.map.n_known == 0
    assert np.isfinite(mapped.map.layout.places).all()


def test_a_tiny_corpus_has_no_map(tmp_path):
    model = TopicModel(0).fit(["green tea", "black coffee", "tea again"], ["tea", "coffee", None])
    model.report(tmp_path / "r.html")
    assert maps.obstacle(3) in (tmp_path / "r.html").read_text()
