"""The related systems that the paper names, each on a small case with a known answer."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import normalize

from experiments.peers.related import pairwise, supervised_pca, supsvd, topic_in_set
from topicsteer.labels.forms import supervise

# --- pairwise constraints ---


def test_pairwise_constraints_decide_between_two_equal_groupings():
    """Documents have a colour and a shape; the words alone do not say which of the two is the topic."""
    rng = np.random.default_rng(0)
    colour, shape = np.repeat([0, 1], 40), np.tile([0, 1], 40)
    own = np.stack([colour == 0, colour == 1, shape == 0, shape == 1], axis=1)
    X = sp.csr_array(normalize(np.repeat(own, 5, axis=1) + 0.2 * rng.random((80, 20))))
    for truth in (colour, shape):
        labels = {int(i): [int(truth[i])] for i in rng.permutation(80)[:20]}
        scores = pairwise.ss_nmf(X, supervise(labels, 80, topics=[0, 1]), 0)
        assert (scores.argmax(axis=1) == truth).mean() == 1


def test_pairwise_steps_are_the_equations_and_lower_the_objective():
    rng = np.random.default_rng(1)
    X = sp.csr_array(normalize(rng.random((12, 7))))
    rows, Y = np.array([1, 4, 5, 9]), np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1.0]])
    similarity = pairwise.constrained(X, rows, Y, weight=0.5)
    A = (X @ X.T).toarray()
    for (i, a), (j, b) in itertools.permutations(zip(rows, Y, strict=True), 2):
        A[i, j] = A[i, j] + 0.5 if a @ b else max(A[i, j] - 0.5, 0)
    G, S = rng.random((12, 3)), np.eye(3) + 0.1
    np.testing.assert_allclose(similarity.times(G), A @ G)
    objective = [np.square(A - G @ S @ G.T).sum()]
    for _ in range(200):
        S_next = S * np.sqrt((G.T @ A @ G) / (G.T @ G @ S @ G.T @ G))
        G_next = G * np.sqrt((A @ G @ S_next) / (G @ S_next @ G.T @ G @ S_next))
        G, S = pairwise.step(similarity, G, S)
        np.testing.assert_allclose(G, G_next, rtol=1e-6, atol=1e-9)
        objective.append(np.square(A - G @ S @ G.T).sum())
    assert (np.diff(objective) <= 1e-9).all()


def test_pairwise_fractions_are_the_parts_of_the_gradient():
    """A derivative of the objective is zero exactly where the fraction of its rule is one."""
    rng = np.random.default_rng(2)
    A, G, S, tiny = rng.random((9, 9)), rng.random((9, 3)), rng.random((3, 3)), 1e-6
    A, S = A + A.T, S + S.T

    def derivative(change_G, change_S):
        above, below = (
            np.square(A - g @ s @ g.T).sum() for g, s in ((G + change_G, S + change_S), (G - change_G, S - change_S))
        )
        return (above - below) / (2 * tiny)

    upper, lower = A @ G @ S, G @ S @ G.T @ G @ S
    for i, k in itertools.product(range(9), range(3)):
        change = np.zeros_like(G)
        change[i, k] = tiny
        assert derivative(change, 0) == pytest.approx(4 * (lower - upper)[i, k], rel=1e-6, abs=1e-5)
    upper, lower = G.T @ A @ G, G.T @ G @ S @ G.T @ G
    for i, k in itertools.product(range(3), range(3)):
        change = np.zeros_like(S)
        change[i, k] = tiny
        assert derivative(0, change) == pytest.approx(2 * (lower - upper)[i, k], rel=1e-6, abs=1e-5)


# --- topic-in-set LDA ---


@pytest.mark.parametrize("eta", [1.0, 0.6])
def test_the_sampler_has_the_exact_posterior(eta):
    """All assignments of six tokens to two topics are summed; the first document may only use topic 0."""
    documents, terms = np.array([0, 0, 1, 1, 1, 1]), np.array([0, 1, 0, 0, 2, 2])
    allowed = np.array([[True, False], [True, True]])
    alpha, beta, total, expected = 0.5, 0.1, 0.0, np.zeros((2, 2))
    for z in itertools.product(range(2), repeat=6):
        weight, n_dv, n_vw = 1.0, np.zeros((2, 2)), np.zeros((2, 3))
        for own, word, v in zip(documents, terms, z, strict=True):  # the predictive chain is the joint probability
            weight *= (n_dv[own, v] + alpha) / (n_dv[own].sum() + 2 * alpha)
            weight *= (n_vw[v, word] + beta) / (n_vw[v].sum() + 3 * beta)
            weight *= 1.0 if allowed[own, v] else 1 - eta
            n_dv[own, v] += 1
            n_vw[v, word] += 1
        total += weight
        expected += weight * (n_dv + alpha) / (n_dv.sum(axis=1, keepdims=True) + 2 * alpha)
    found = topic_in_set.gibbs(documents, terms, allowed, 3, alpha, beta, eta, 60_000, 1000, 0)
    np.testing.assert_allclose(found, expected / total, atol=0.01)


def test_sets_of_topics_hold_for_documents_with_several_labels():
    counts = sp.csr_array(np.random.default_rng(0).poisson(1.0, (6, 8)).astype(float))
    shares = topic_in_set.topic_in_set_lda(counts, supervise({0: ["a", "b"]}, 6, topics=["a", "b", "c"]), 0)
    assert shares[0, 2] == shares.min()  # the topic without labels comes last
    assert shares[0, :2].sum() > 0.85


# --- supervised principal components ---


def test_supervised_components_are_scikit_learns_on_the_screened_terms():
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 12)), (rng.random(30) < 0.4).astype(float)
    centred = X - X.mean(axis=0)
    theirs = np.abs(centred.T @ y / np.linalg.norm(centred, axis=0))
    np.testing.assert_allclose(np.abs(supervised_pca.associations(sp.csc_array(X), y)), theirs)
    strongest = np.argsort(-theirs)[:5]
    u = PCA(1).fit_transform(X[:, strongest])
    weights, constant = supervised_pca.direction(sp.csc_array(X), y, strongest)
    np.testing.assert_allclose(X @ weights + constant, LinearRegression().fit(u, y).predict(u))
    assert np.count_nonzero(weights) == 5


def test_screening_finds_the_weaker_factor_that_matters():
    """As in the simulation of the paper: the first component of all terms is a strong factor without any relation."""
    rng = np.random.default_rng(0)
    n = 200
    strong, own = rng.random(n), rng.integers(2, size=n)
    X = 0.05 * rng.random((n, 1000))
    X[:, :500] += strong[:, None]
    X[:, 500:520] += 0.3 * own[:, None]
    supervision = supervise({i: [int(own[i])] for i in range(60)}, n, topics=[0, 1])
    scores = supervised_pca.supervised_pca(sp.csr_array(X), supervision, 0)
    assert (scores[60:].argmax(axis=1) == own[60:]).mean() > 0.95
    plain = PCA(1, random_state=0).fit_transform(X).ravel()
    assert abs(np.corrcoef(plain, own)[0, 1]) < 0.2


# --- supervised singular value decomposition ---


def fitted(X, Y, rank, iterations):
    centred, Y = supsvd.Centred(sp.csr_array(X), X.mean(axis=0)), Y - Y.mean(axis=0)
    model, solve, levels = supsvd.first_model(centred, Y, rank, 0), np.linalg.pinv(Y), []
    for _ in range(iterations):
        model = supsvd.em_step(centred, Y, solve, model)
        levels.append(supsvd.log_likelihood(centred, Y, model))
    return model, levels


def test_without_a_relation_it_is_probabilistic_pca():
    """The maximum of the likelihood is known then: Tipping & Bishop 1999, and scikit-learn's PCA."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2)) @ rng.standard_normal((2, 8)) * 2 + rng.standard_normal((400, 8))
    model, levels = fitted(X, np.zeros((400, 1)), 2, 500)
    assert (np.diff(levels) > -1e-6).all()
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    noise = values[:-2].mean()
    assert model.noise == pytest.approx(noise, rel=1e-4)
    np.testing.assert_allclose(model.variances, values[:-3:-1] - noise, rtol=1e-4)
    np.testing.assert_allclose(np.abs(model.V.T @ vectors[:, :-3:-1]), np.eye(2), atol=1e-3)


def test_supervision_finds_a_direction_under_noise():
    """A planted model of rank 1 whose factor is the label; the same noise hides it from plain PCA."""
    rng = np.random.default_rng(1)
    n, p = 60, 400
    y = np.repeat([-1.0, 1.0], n // 2)[:, None]
    v = rng.standard_normal((p, 1))
    v /= np.linalg.norm(v)
    X = 3 * y @ v.T + rng.standard_normal((n, p))
    model, levels = fitted(X, y, 1, 100)
    assert (np.diff(levels) > -1e-6).all()
    plain = PCA(1, random_state=0).fit(X).components_.T
    assert abs(float((model.V.T @ v).item())) > abs(float((plain.T @ v).item())) + 0.03
    np.testing.assert_allclose(model.V.T @ model.V, np.eye(1), atol=1e-9)


def test_one_label_per_document_makes_dependent_responses():
    rng = np.random.default_rng(3)
    own = rng.integers(3, size=600)
    X = rng.random((600, 30)) + 0.5 * (np.arange(30) % 3 == own[:, None])
    supervision = supervise({i: [int(own[i])] for i in range(500)}, 600, topics=[0, 1, 2])
    scores = supsvd.supsvd(sp.csr_array(X), supervision, 0)
    assert (scores[500:].argmax(axis=1) == own[500:]).mean() > 0.95
    assert np.abs(scores).max() < 1e3


def test_the_log_odds_are_those_of_the_normal_densities():
    rng = np.random.default_rng(2)
    model = supsvd.Model(np.eye(4)[:, :2], rng.standard_normal((3, 2)), np.array([2.0, 0.5]), 0.3)
    U, frequency = rng.standard_normal((5, 2)), np.array([0.2, 0.5, 0.7])
    found = supsvd.log_odds(U, model, frequency)
    for k in range(3):
        present, absent = ((value - frequency[k]) * model.B[k] for value in (1, 0))
        far = [(np.square(U - mean) / (model.variances + model.noise)).sum(axis=1) for mean in (present, absent)]
        expected = (far[1] - far[0]) / 2 + np.log(frequency[k] / (1 - frequency[k]))
        np.testing.assert_allclose(found[:, k], expected)
