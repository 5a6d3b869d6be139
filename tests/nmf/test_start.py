import numpy as np
import pytest
import reference
import scipy.sparse as sp

from topicsteer.backends import as_rows
from topicsteer.labels.forms import supervise
from topicsteer.nmf.factorisation import ACOL_DOCUMENTS, label_profiles, random_acol, start
from topicsteer.nmf.protocols import Parameters, Problem


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


@pytest.mark.parametrize("init", ["labels", "authors", "acol", "random"])
def test_multiplicative_rules_get_a_start_that_can_move(problem, init):
    X, y, _ = problem
    W, H = start(posed(X, supervise(y, len(y)), 6, init=init, solver="mu"))
    W = W(slice(0, 60))
    assert W.shape == (60, 6)
    assert (W > 0).mean() > 0.9
    if init not in ("acol", "authors"):  # means of documents keep their zeros, as in the paper
        assert (H > 0).all()


def test_paper_start_is_acol_and_uniform(problem):
    X, y, _ = problem
    W, H = start(posed(X, supervise(y, len(y)), 6, init="acol"))
    W = W(slice(0, 60))
    assert 0 <= W.min() < W.max() <= 1
    assert abs(W.mean() - 0.5) < 0.1
    np.testing.assert_array_equal(H, random_acol(as_rows(X), 6, rng()))


def test_the_authors_start_is_plain_means_of_labelled_or_random_documents(problem):
    X, y, _ = problem
    supervision = supervise(y, len(y), topics=[0, 1, 2, 3, "nobody"])
    labels = [[k for k in labels if k < 4] for labels in y]
    W, H = start(posed(X, supervision, 7, init="authors", solver="mu"))
    expected_W, expected_H = reference.authors_start(X.toarray(), labels, 7, rng())
    np.testing.assert_allclose(H, expected_H, rtol=1e-12)
    np.testing.assert_array_equal(W(slice(0, 60)), expected_W)
