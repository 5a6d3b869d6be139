"""Features of documents against slow loops; the same documents have the same features everywhere."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from problems import planted_rows
from sklearn.decomposition import PCA

from topicsteer.backends import as_rows
from topicsteer.backends.block_folder import write_blocks
from topicsteer.guidance import features
from topicsteer.guidance.features import Features, Sample, background_rows, block_sizes, each_product, joint, unit_rows
from topicsteer.labels.forms import supervise
from topicsteer.text import TextVectorizer

KINDS = ["terms", "word vectors", "embeddings"]


@pytest.fixture(scope="module", params=KINDS)
def sample(request):
    """Learnt from 90 documents, of which one is empty; labels of every fifth."""
    X, which = planted_rows(3)
    X = sp.csr_array(sp.diags_array((np.arange(90) != 7).astype(np.float32)) @ X)
    X.eliminate_zeros()
    X.sort_indices()
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(24, 5)).astype(np.float32) if request.param == "word vectors" else None
    E = rng.normal(size=(90, 4)).astype(np.float32) if request.param == "embeddings" else None
    if E is not None:
        E[11] = 0
    labels = supervise({i: int(which[i]) for i in range(0, 90, 5)}, 90)
    return Sample(as_rows(X), labels, E, vectors)


def test_latent_semantics_are_three_blocks_of_equal_length(sample):
    found, Z = sample.features, sample.latent
    coordinates = sample.terms.toarray().astype(float) @ found.directions
    for i, row in enumerate(coordinates):
        expected = []
        for size in block_sizes(len(row)):
            length = np.sqrt(sum(value**2 for value in row[:size]))
            expected += [value / length / np.sqrt(3) if length else 0 for value in row[:size]]
        np.testing.assert_allclose(Z[i], expected, atol=1e-5)
    empty = list(sample.rows).index(7)
    lengths = np.linalg.norm(Z, axis=1)
    assert lengths[empty] == 0
    np.testing.assert_allclose(np.delete(lengths, empty), 1, rtol=1e-5)
    assert block_sizes(4) == (4, 4, 4)
    assert block_sizes(40) == (8, 20, 40)
    assert block_sizes(400) == (50, 200, 400)


def test_meaning_is_a_unit_vector_without_the_mean(sample):
    if not len(sample.features.centre):
        assert sample.meaning.shape == (90, 0)
        return
    raw = []
    for i in sample.rows:
        if sample.embeddings is not None:
            vector = sample.embeddings[i].astype(float)
        else:
            row = sample.X.take([i]).toarray()[0].astype(float)
            vector = sum(value * sample.vectors[j] for j, value in enumerate(row))
        length = np.linalg.norm(vector)
        raw.append(vector / length if length else None)
    centre = np.mean([vector for vector in raw if vector is not None], axis=0)
    np.testing.assert_allclose(sample.features.centre, centre, atol=1e-6)
    for found, vector in zip(sample.meaning, raw, strict=True):
        if vector is None:
            assert not found.any()  # no evidence stays no evidence
        else:
            np.testing.assert_allclose(found, (vector - centre) / np.linalg.norm(vector - centre), atol=1e-5)


def test_meaning_of_terms_comes_from_their_counts():
    """The entries of tf-idf over the weights of terms are counts, up to the length of the row."""
    vectorizer = TextVectorizer(min_df=1)
    X = sp.csr_array(vectorizer.fit_transform(["tea tea milk", "milk boat", "boat"]))
    terms = vectorizer.get_feature_names_out().tolist()
    meaning = {"tea": [1.0, 0, 0], "milk": [0, 1.0, 0], "boat": [0, 0, 1.0]}
    vectors = np.array([meaning[term] for term in terms], dtype=np.float32) / vectorizer.idf_[:, None]
    own = Features(np.zeros((3, 0)), vectors.astype(np.float32), np.eye(3, dtype=np.float32), np.zeros(3, np.float32))
    found = own.of(X)[1]
    if vectorizer.sublinear_tf:
        counts = np.array([[1 + np.log(2), 1, 0], [0, 1, 1], [0, 0, 1]])
    else:
        counts = np.array([[2, 1, 0], [0, 1, 1], [0, 0, 1]])
    np.testing.assert_allclose(found, counts / np.linalg.norm(counts, axis=1)[:, None], atol=1e-6)


def test_new_documents_have_the_features_of_the_fit(sample):
    E = sample.own_embeddings
    Z, M = sample.features.of(sample.terms, 1, E)
    np.testing.assert_array_equal(Z, sample.latent)
    np.testing.assert_allclose(M, sample.meaning, atol=1e-6)
    for i in (0, 30, 89):
        one = sample.features.of(sample.terms[[i]], 1, None if E is None else E[[i]])
        np.testing.assert_array_equal(one[0][0], Z[i])
        np.testing.assert_array_equal(one[1][0], M[i])


def test_given_features_are_not_computed_again(sample):
    again = Sample(sample.X, sample.supervision, sample.embeddings, None, sample.features)
    assert again.features is sample.features
    np.testing.assert_array_equal(again.latent, sample.latent)
    np.testing.assert_allclose(again.meaning, sample.meaning, atol=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_disk_and_threads_do_not_matter(sample, tmp_path, threads):
    X = sample.X.matrix
    folder = write_blocks(tmp_path / "X", [X[a:b] for a, b in itertools.pairwise([0, 20, 20, 55, 90])])
    other = Sample(folder, sample.supervision, sample.embeddings, sample.vectors, threads=threads)
    np.testing.assert_array_equal(other.rows, sample.rows)
    for name in ("directions", "vectors", "rotation", "centre"):
        np.testing.assert_array_equal(getattr(other.features, name), getattr(sample.features, name))
    np.testing.assert_array_equal(other.latent, sample.latent)
    np.testing.assert_array_equal(other.meaning, sample.meaning)


def test_kinds_of_features(sample):
    found = sample.features
    assert found.given == (sample.embeddings is not None)
    assert found.width == sample.latent.shape[1]
    assert found.basis.shape[1] == found.directions.shape[1] + (0 if sample.vectors is None else 5)
    products = sample.terms @ found.basis
    Z, M = found.parts(products, sample.own_embeddings)
    np.testing.assert_allclose(Z, sample.latent, atol=1e-5)
    np.testing.assert_allclose(M, sample.meaning, atol=1e-5)


def test_labelled_documents_without_terms_teach_nothing():
    X = sp.csr_array(np.diag([1.0, 0, 1, 1]).astype(np.float32))
    X.eliminate_zeros()
    found = Sample(as_rows(X), supervise(["a", "a", None, "b"], 4))
    assert found.labelled.tolist() == [0, 3]
    assert found.rows.tolist() == [0, 3, 2]
    np.testing.assert_array_equal(found.terms.toarray(), X.toarray()[[0, 3, 2]])


@pytest.mark.parametrize("kind", ["word vectors", "embeddings"])
@pytest.mark.parametrize("many", [True, False])
def test_vectors_with_many_numbers_are_reduced_to_principal_components(kind, many):
    size = 150 if many else features.COMPONENTS
    rng = np.random.default_rng(0)
    X, which = planted_rows(200 if many else 3)
    n, t = X.shape
    numbers = rng.normal(size=(t if kind == "word vectors" else n, size)) * np.arange(size, 0, -1)
    given = numbers.astype(np.float32)
    E, vectors = (None, given) if kind == "word vectors" else (given, None)
    sample = Sample(as_rows(X), supervise({i: int(which[i]) for i in range(6)}, n), E, vectors)
    found = sample.features
    raw = unit_rows(sample.terms @ given if E is None else sample.own_embeddings)
    if many:
        theirs = PCA(features.COMPONENTS, svd_solver="full").fit(raw.astype(np.float64)).components_.T
        signs = np.sign((found.rotation * theirs).sum(axis=0))
        np.testing.assert_allclose(found.rotation * signs, theirs, atol=1e-4)
    else:  # few numbers stay as they are
        np.testing.assert_array_equal(found.rotation, np.eye(size))
        assert E is not None or found.vectors is vectors
    rows = unit_rows(raw @ found.rotation)
    np.testing.assert_allclose(found.centre, rows.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(sample.meaning, unit_rows(rows - rows.mean(axis=0)), atol=1e-4)
    np.testing.assert_allclose(found.reduced(given), given @ found.rotation, atol=1e-5)
    again = found.of(sample.terms, 1, sample.own_embeddings)[1]  # new documents have the features of the fit
    np.testing.assert_allclose(again, sample.meaning, atol=1e-5)


def test_many_background_documents_are_sampled():
    labels = supervise({3: "a", 50: "a"}, 100)
    assert background_rows(labels, 0).tolist() == [i for i in range(100) if i not in (3, 50)]
    labels = supervise({3: "a", 50: "a"}, features.BACKGROUND + 100)
    found = background_rows(labels, 0)
    assert len(set(found.tolist())) == features.BACKGROUND
    assert (np.diff(found) > 0).all()
    assert not {3, 50} & set(found.tolist())
    np.testing.assert_array_equal(background_rows(labels, 0), found)
    assert background_rows(labels, 1).tolist() != found.tolist()


def test_joint_features_have_length_one_and_the_share_of_meaning():
    rng = np.random.default_rng(0)
    Z, M = unit_rows(rng.normal(size=(6, 4))), unit_rows(rng.normal(size=(6, 3)))
    for share in (0.0, 0.25, 0.9):
        D = joint(Z, M, share)
        assert D.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(D, axis=1), 1, rtol=1e-5)
        np.testing.assert_allclose(D @ D.T, (1 - share) * Z @ Z.T + share * M @ M.T, atol=1e-6)
    assert joint(Z, M[:, :0], 0.5) is Z


@pytest.mark.parametrize("plain", [False, True])
def test_products_cover_all_blocks_in_order(plain):
    X = sp.csr_array(np.tile(planted_rows(2)[0].toarray(), (80, 1)))  # blocks have 4,096 rows
    basis, out = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32), np.full((4800, 3), np.nan)
    each_product(X, basis, out.__setitem__, 2, plain=plain)
    np.testing.assert_allclose(out, X @ basis, atol=1e-5)
    each_product(X[:0], basis, out.__setitem__, 1, plain=plain)  # nothing to do


def test_unit_rows_keep_zeros():
    assert unit_rows([[3, 4], [0, 0]]).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]


def test_rounding_errors_are_no_features():
    """Documents that are all alike differ by rounding only."""
    X = sp.csr_array(np.tile(unit_rows(np.random.default_rng(0).random((1, 20))), (8, 1)))
    vectors = np.random.default_rng(1).normal(size=(20, 4)).astype(np.float32)
    found = Sample(as_rows(X), supervise({0: "a"}, 8), None, vectors)
    assert not found.meaning.any()
    directions = np.eye(20, 4, dtype=np.float32)
    directions[10, :] = 1e-8
    own = Features(directions, np.zeros((20, 0)), np.zeros((0, 0)), np.zeros(0))
    Z, _ = own.of(sp.csr_array(np.eye(20, dtype=np.float32)[[0, 10, 15]]))
    assert Z.any(axis=1).tolist() == [True, False, False]
