import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition._nmf import _initialize_nmf

from topicsteer.backends import as_rows
from topicsteer.labels.forms import supervise
from topicsteer.nmf.protocols import Parameters, Problem
from topicsteer.nmf.start import ACOL_DOCUMENTS, label_profiles, nndsvd, random_acol, start


def posed(X, supervision, d, **parameters):
    free = [f"free {k}" for k in range(d - len(supervision.topics))]
    settings = Parameters(d, label_weight=None, random_state=0, **parameters)
    return Problem(as_rows(X), supervision, free, settings)


def rng():
    return np.random.RandomState(0)


def test_profiles_are_weighted_means_of_labelled_documents(problem):
    X, y, _ = problem
    weight = np.random.default_rng(1).random(len(y))
    profiles = label_profiles(as_rows(X), supervise(y, len(y)), weight)
    for k in range(4):
        rows = [i for i, labels in enumerate(y) if k in labels]
        np.testing.assert_allclose(profiles[k], np.average(X.toarray()[rows], axis=0, weights=weight[rows]))


def test_random_acol_averages_documents_and_skips_empty_ones():
    X = sp.csr_array(np.diag(np.arange(60.0)))  # row 0 is empty; every other row has a single term
    H = random_acol(as_rows(X), 7, rng())
    assert H.shape == (7, 60)
    assert ((H > 0).sum(axis=1) == ACOL_DOCUMENTS).all()
    assert (H[:, 0] == 0).all()
    terms = np.flatnonzero(H[0])
    np.testing.assert_allclose(H[0, terms], terms / ACOL_DOCUMENTS)


def test_labels_start_uses_profiles_and_acol_for_the_rest(problem):
    X, y, _ = problem
    supervision = supervise(y, len(y), topics=[0, 1, 2, 3, "nobody"])
    W, H = start(posed(X, supervision, 7))
    assert W is None
    np.testing.assert_allclose(H[:4], label_profiles(as_rows(X), supervision, np.ones(len(y)))[:4])
    assert (H[4:].sum(axis=1) > 0).all()


@pytest.mark.parametrize("init", ["labels", "acol", "random", "nndsvd"])
def test_multiplicative_rules_get_a_start_that_can_move(problem, init):
    X, y, _ = problem
    W, H = start(posed(X, supervise(y, len(y)), 6, init=init, solver="mu"))
    W = W(slice(0, 60))
    assert W.shape == (60, 6)
    assert (W > 0).mean() > 0.9
    if init != "acol":  # means of documents keep their zeros, as in the paper
        assert (H > 0).all()


def test_paper_start_is_acol_and_uniform(problem):
    X, y, _ = problem
    W, H = start(posed(X, supervise(y, len(y)), 6, init="acol"))
    W = W(slice(0, 60))
    assert 0 <= W.min() < W.max() <= 1
    assert abs(W.mean() - 0.5) < 0.1
    np.testing.assert_array_equal(H, random_acol(as_rows(X), 6, rng()))


def test_nndsvd_agrees_with_scikit_learn(problem):
    X, _, _ = problem
    W, H = nndsvd(X, 5, np.random.RandomState(3))
    W_theirs, H_theirs = _initialize_nmf(X, 5, init="nndsvda", random_state=np.random.RandomState(3))
    np.testing.assert_allclose(W, W_theirs, atol=1e-6)
    np.testing.assert_allclose(H, H_theirs, atol=1e-6)


def test_nndsvd_gives_each_known_topic_the_component_nearest_its_documents():
    X = sp.csr_array(np.kron(np.eye(3), np.ones((5, 4))) * np.repeat([3.0, 2.0, 1.0], 5)[:, None])
    y = {0: "first", 14: "last"}
    W, H = start(posed(X, supervise(y, 15), 3, init="nndsvd"))
    assert H[0, :4].mean() > 5 * H[0, 4:].mean()  # "first" are the first terms
    assert H[1, 8:].mean() > 2 * H[1, :8].mean()
    W = W(slice(0, 15))
    assert W[0].argmax() == 0
    assert W[14].argmax() == 1


def test_more_components_than_the_matrix_has_rank(problem):
    X, _, _ = problem
    W, H = nndsvd(X[:4], 9, rng())
    assert W.shape == (4, 9)
    assert (H > 0).all()
