import json
import re

import numpy as np
import polars as pl
import pytest
from problems import make_open_corpus
from sklearn.manifold import trustworthiness

from topicsteer import TopicModel
from topicsteer.analysis import map_layout as maps
from topicsteer.corpora import Documents
from topicsteer.model.findings import document_map
from topicsteer.system.values import NONE

pytestmark = pytest.mark.slow

needs_umap = pytest.mark.skipif(not maps.can_lay_out(), reason="no umap-learn")
SUBJECTS = np.repeat(["tea", "coffee", "chess", "boat", "violin"], 80)


@pytest.fixture(scope="module")
def model():
    texts, labels = make_open_corpus()
    documents = Documents([f"d{i}" for i in range(len(texts))], texts, [[one] if one else [] for one in labels])
    return TopicModel(4, world="open", threads=1).fit(documents)


@pytest.fixture(scope="module")
def table(model):
    return model.findings.document_map()


def test_the_map_has_every_document_with_its_main_topic(model, table):
    assert table.columns == ["id", "x", "y", "topic", "kind", "membership", "labelled", "text"]
    assert table["id"].to_list() == model.state_.topics.ids
    P = model.memberships()
    for row in table.iter_rows(named=True):
        own = P.row(by_predicate=pl.col("id") == row["id"], named=True)
        assert row["membership"] == pytest.approx(own[row["topic"]], abs=1e-6)
    found = table["topic"].to_numpy()
    for subject in ("tea", "coffee"):
        assert (found[subject == SUBJECTS] == subject).mean() > 0.9
    others = table.filter(~pl.Series(np.isin(SUBJECTS, ["tea", "coffee"])))
    assert (others["kind"] != "known").mean() > 0.9
    assert set(table["topic"]) <= {*model.state_.topics.names, NONE}
    assert table["labelled"].sum() == 16


@needs_umap
def test_similar_documents_are_close(model, table):
    XY = table.select("x", "y").to_numpy()
    assert trustworthiness(model.matrix_, XY, n_neighbors=10, metric="cosine") > 0.75
    square = ((XY[:, None] - XY[None]) ** 2).sum(axis=2)
    np.fill_diagonal(square, np.inf)
    assert (SUBJECTS[square.argmin(axis=1)] == SUBJECTS).mean() > 0.95


def test_a_loaded_model_has_the_same_map(model, table, tmp_path):
    model.save(tmp_path / "model")
    loaded = TopicModel.load(tmp_path / "model").attach(model.documents_)
    assert loaded.findings.document_map().equals(table)


@needs_umap
def test_labelled_documents_are_not_set_apart(model):
    mapped = document_map(model).map
    labelled = np.flatnonzero(mapped.labelled)
    places = mapped.layout.places
    square = ((places[labelled][:, None] - places[None]) ** 2).sum(axis=2)
    square[np.arange(len(labelled)), labelled] = np.inf
    assert mapped.labelled[square.argmin(axis=1)].mean() < 0.6


def test_without_umap_or_texts_documents_lie_around_their_topics(model, monkeypatch, tmp_path):
    model.save(tmp_path / "model")
    bare = TopicModel.load(tmp_path / "model")
    without_texts = document_map(bare)
    assert without_texts.map.layout.how == "topics"
    assert without_texts.texts is None
    assert "text" not in bare.findings.document_map().columns
    monkeypatch.setattr(maps, "can_lay_out", lambda: False)
    without_umap = document_map(model)
    assert without_umap.map.layout.how == "topics"
    assert np.array_equal(without_umap.map.layout.places, without_texts.map.layout.places)
    assert np.array_equal(without_umap.map.topic, without_texts.map.topic)


def test_a_sample_of_a_large_corpus_has_all_labelled_documents(model):
    mapped = document_map(model, most=60)
    assert len(mapped.map) == len(mapped.ids) == len(mapped.texts) == 60
    assert mapped.map.labelled.sum() == 16
    assert mapped.map.layout.documents == 400
    rows = mapped.map.layout.rows
    assert np.array_equal(mapped.map.topic, model.state_.judged.main()[rows])


def test_a_given_layout_is_used(model, tmp_path):
    places = np.random.default_rng(0).random((400, 2)).astype(np.float32)
    layout = maps.Layout(np.arange(400), places, 1.0, "umap", 400)
    assert document_map(model, layout).map.layout is layout
    model.report(tmp_path / "r.html", map=layout)
    points = re.search(r'id="map-points">(.*?)</script>', (tmp_path / "r.html").read_text())[1]
    assert len(json.loads(points)["topics"]) == len(model.state_.topics.names) + 1


def test_a_report_without_the_map_contains_no_further_documents(model, tmp_path):
    model.report(tmp_path / "with.html")
    model.report(tmp_path / "without.html", map=False)
    with_map, without = ((tmp_path / f"{name}.html").read_text() for name in ("with", "without"))
    held = [sum(text[:40] in page for text in model.documents_.texts) for page in (with_map, without)]
    assert held[0] == 400
    assert held[1] < 40
    assert 'id="documents"' not in without


def test_a_model_without_labels_has_a_map():
    texts, _ = make_open_corpus(n=20)
    mapped = document_map(TopicModel(3, threads=1).fit(texts))
    assert len(mapped.map) == 100
    assert mapped.map.n_known == 0
    assert np.isfinite(mapped.map.layout.places).all()


def test_a_tiny_corpus_has_a_map():
    model = TopicModel(0).fit(["green tea", "black coffee", "tea again"], ["tea", "coffee", None])
    assert len(model.findings.document_map()) == 3
