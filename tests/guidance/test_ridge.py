import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import normalize

from topicsteer.backends import as_rows
from topicsteer.corpora import load_docstrings
from topicsteer.guidance.keywords import TopicTexts
from topicsteer.guidance.latent import dense_features, latent_directions, leading_directions
from topicsteer.guidance.ridge import KEYWORD_SUMS, RIDGES, RIDGES_OF_WORDS, Choice, Examples, Ridge, choose_ridge
from topicsteer.guidance.train import train_guide
from topicsteer.labels.forms import supervise
from topicsteer.text import TextVectorizer


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = sp.csr_array(normalize(sp.random_array((40, 30), density=0.3, rng=rng).tocsr()))
    D = rng.random((40, 6)) * 0.3
    document_weight = rng.choice([1.0, 0.3], 40)
    kernel = (X @ X.T).toarray() + D @ D.T
    nobody, plain = np.zeros(0, dtype=np.int64), Choice(0.0, 0.0, 1.0)
    return (
        Ridge(X, D, document_weight, nobody, plain, kernel),
        Ridge(X, D, document_weight, nobody, plain),
        rng.random((40, 5)) - 0.5,
    )


def test_leave_one_out_in_closed_form(problem):
    ridge, _, target = problem
    left_out = ridge.left_out(target)
    for i in range(40):
        rest = np.delete(np.arange(40), i)
        weights = ridge.solve(target, rest)
        np.testing.assert_allclose(left_out[i], ridge.kernel[i, rest] @ weights, atol=1e-9)


def test_solutions_match_scikit_learn(problem):
    ridge, iterative, target = problem
    theirs = KernelRidge(alpha=1.0, kernel="precomputed").fit(ridge.kernel, target, sample_weight=ridge.document_weight)
    np.testing.assert_allclose(ridge.solve(target), theirs.dual_coef_, atol=1e-9)
    np.testing.assert_allclose(iterative.solve(target), theirs.dual_coef_, atol=1e-4)
    with pytest.raises(ValueError, match="too many"):
        iterative.left_out(target)


def test_directions_match_scipy():
    X = sp.csr_array(sp.random_array((300, 100), density=0.2, rng=np.random.default_rng(0)).tocsr())
    found = latent_directions(as_rows(X))
    assert found.shape == (100, 20)
    _, _, Vt = sp.linalg.svds(X, 1)
    assert abs(Vt[0] @ found[:, 0]) == pytest.approx(1, abs=1e-6)


def word_examples(topics, labels=0):
    """Examples of ten terms: texts of one term each, topic by topic, after documents with one label each."""
    X = sp.csr_array(np.eye(10, dtype=np.float32))
    names = TopicTexts(sp.csr_array(X[: len(topics)]), np.array(topics))
    states = np.tile(np.eye(2, dtype=np.int8), (labels, 1))
    documents = sp.csr_array(X[[8, 9] * labels])
    return Examples.of(documents, states, np.ones(2 * labels), names, None, np.zeros((10, 0), dtype=np.float32))


def test_the_sum_of_keywords_ranks_documents_like_the_cosine():
    examples = word_examples([0, 0, 0, 1])
    weights = examples.ridge(Choice(0.0, 1.0, 1.0)).keyword_sums(np.array([0, 1])).toarray()
    expected = np.zeros((10, 2))
    expected[:3, 0] = KEYWORD_SUMS * (1 - 1 / 3) / np.sqrt(3)  # three words of the first topic
    np.testing.assert_allclose(weights, expected, rtol=1e-6)  # the only text of the second one needs no sum
    doubted = examples.ridge(Choice(0.0, 0.1, 1.0)).keyword_sums(np.array([0, 1])).toarray()
    np.testing.assert_allclose(doubted, 0.1 * expected, rtol=1e-6)
    assert word_examples([0, 1]).ridge(Choice(0.0, 1.0, 1.0)).keyword_sums(np.array([0, 1])) is None


def test_a_word_of_two_topics_finds_documents_of_both():
    X = sp.csr_array(normalize(np.array([[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]), norm="l2"))
    words = sp.csr_array(np.eye(4)[[0, 2, 1, 2]])  # the third term belongs to both topics
    names = TopicTexts(words, np.array([0, 0, 1, 1]))
    options = {"names": names, "directions": np.zeros((4, 0)), "threads": 1}
    found = train_guide(as_rows(X), supervise({}, 4, topics=["a", "b"]), **options).probabilities(X)
    assert found[0, 0] > found[2, 0] > found[3, 0]
    assert found[1, 1] > found[2, 1] > found[3, 1]


def test_the_ridge_of_words_is_the_default_without_labels():
    assert choose_ridge(word_examples([0, 1])).ridge == RIDGES_OF_WORDS[0]
    assert not word_examples([0, 1], labels=20).words_lead
    assert word_examples([0, 1], labels=10).words_lead
    assert choose_ridge(word_examples([])).ridge == RIDGES[0]


@pytest.mark.slow
def test_conjugate_gradients_reach_the_exact_solution_in_a_few_iterations():
    X = sp.csr_array(TextVectorizer().fit_transform(load_docstrings().texts))
    n = X.shape[0]
    D = dense_features(X, leading_directions(X, 48)).astype(np.float64)
    rng = np.random.default_rng(0)
    target = rng.standard_normal((n, 40))
    target[:, 3] = 0  # a topic without labels
    weight, terms = rng.choice([0.3, 1.0], n), X.astype(np.float64)
    ridge = Ridge(terms, D, weight, np.zeros(0, dtype=np.int64), Choice(0.0, 0.0, 1.0))
    steps = []
    found = ridge.solve(target, report=steps.append)
    exact = np.linalg.solve((terms @ terms.T).toarray() + D @ D.T + np.diag(1 / weight), target)
    np.testing.assert_allclose(found, exact, atol=1e-3 * np.abs(exact).max())
    assert len(steps) <= 15
