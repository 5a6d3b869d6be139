import numpy as np
import pytest
from problems import planted_texts
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import trustworthiness

from topicsteer.analysis import map_layout as maps

needs_umap = pytest.mark.skipif(bool(maps.obstacle(99)), reason="no umap-learn")


@pytest.fixture(scope="module")
def latent():
    """Latent semantics, by scikit-learn, of texts about six subjects, and the subjects."""
    X = TfidfVectorizer().fit_transform(planted_texts(6, 60))
    return TruncatedSVD(12, random_state=0).fit_transform(X).astype(np.float32), np.repeat(np.arange(6), 60)


def separation(places, subject):
    """Share of the documents whose nearest document on the map has the same subject."""
    square = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    np.fill_diagonal(square, np.inf)
    return float((subject[square.argmin(axis=1)] == subject).mean())


@needs_umap
def test_the_layout_keeps_neighbours_and_fills_the_square(latent):
    points, subject = maps.features(latent[0]), latent[1]
    places, aspect = maps.lay_out(points)
    assert trustworthiness(points, places, n_neighbors=10) > 0.9
    assert separation(places, subject) > 0.95
    assert np.allclose(places.min(axis=0), 0)
    assert np.allclose(places.max(axis=0), 1)
    assert aspect >= 1
    from umap import layouts, umap_

    entered = [one for one in vars(umap_).values() if getattr(one, "signatures", ()) and one.__module__ == "umap.umap_"]
    assert len(entered) == 2
    entered.append(layouts._nb_optimize_layout_euclidean_single_epoch)
    assert all(one.stats.cache_path for one in entered)  # UMAP itself compiles them in every process


@needs_umap
def test_the_layout_is_the_same_each_time_and_with_any_number_of_threads(latent):
    points = maps.features(latent[0])
    first, others = maps.lay_out(points, 3, 1), [maps.lay_out(points, 3, threads) for threads in (1, 2)]
    for places, aspect in others:
        assert np.array_equal(places, first[0])
        assert aspect == first[1]
    assert not np.array_equal(maps.lay_out(points, 4, 1)[0], first[0])


@needs_umap
def test_documents_beyond_the_laid_out_ones_are_placed_among_their_neighbours(latent):
    points, calls = maps.features(latent[0]), []
    places, _ = maps.lay_out(points, progress=lambda *call: calls.append(call), laid_out=120)
    assert separation(places, latent[1]) > 0.9
    assert trustworthiness(points, places, n_neighbors=10) > 0.85
    assert calls[0] == ("map", 0, 360, "neighbours")
    assert calls[-1] == ("map", 360, 360, "places")


def test_nearest_neighbours_are_exact(latent):
    points = maps.features(latent[0])
    square = ((points[:, None].astype(np.float64) - points[None]) ** 2).sum(axis=2)
    found = list(maps.nearest(points, points, 5, map))
    distances = np.concatenate([distance for _, distance in found])
    near = np.concatenate([near for near, _ in found])
    assert np.allclose(distances, np.sort(square, axis=1)[:, :5], atol=1e-5)
    assert np.allclose(np.take_along_axis(square, near, axis=1), distances, atol=1e-5)


def test_memberships_bring_documents_of_a_topic_together(latent):
    topic = np.hstack([np.eye(2)[np.arange(360) % 2], np.zeros((360, 1))])
    plain, points = maps.features(latent[0]), maps.features(latent[0], topic)
    assert np.allclose((plain**2).sum(axis=1), 1, atol=1e-5)
    for other, more in ((2, 0.0), (1, 2 * maps.WEIGHT**2)):  # a document of the same topic, and one of another topic
        square = ((plain[0] - plain[other]) ** 2).sum()
        assert ((points[0] - points[other]) ** 2).sum() == pytest.approx(square + more, abs=1e-5)


def test_a_sample_contains_all_labelled_documents():
    labelled = np.zeros(1000, dtype=bool)
    labelled[::50] = True
    rows = maps.chosen_rows(1000, labelled, most=100)
    assert len(set(rows.tolist())) == 100
    assert set(np.flatnonzero(labelled)) <= set(rows.tolist())
    assert (np.diff(rows) > 0).all()
    assert np.array_equal(rows, maps.chosen_rows(1000, labelled, most=100))
    assert np.array_equal(maps.chosen_rows(1000, labelled), np.arange(1000))
    assert len(maps.chosen_rows(1000, ~labelled, most=100)) == 100


def test_the_reason_why_there_is_no_map(monkeypatch):
    monkeypatch.setattr(maps, "find_spec", lambda name: name)
    assert maps.obstacle(50) == ""
    assert maps.obstacle(49) == "A document map needs 50 documents or more."
    monkeypatch.setattr(maps, "find_spec", lambda name: None)
    assert maps.obstacle(50) == "The document map needs umap-learn: pip install umap-learn."
