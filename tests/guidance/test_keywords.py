"""Names, descriptions and keywords as small labelled documents."""

import numpy as np
import pytest
import scipy.sparse as sp

from topicsteer.backends import as_rows
from topicsteer.corpora import load_docstrings
from topicsteer.guidance.features import Sample
from topicsteer.guidance.keywords import TopicTexts, described, term_constraints_of, topic_texts
from topicsteer.guidance.train import learn_guide
from topicsteer.labels.codebook import Codebook, Topic
from topicsteer.labels.forms import supervise
from topicsteer.metrics import average_precision
from topicsteer.text import TextVectorizer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def docstrings():
    documents = load_docstrings()
    documents = documents.select(range(0, len(documents), 3))
    vectorizer = TextVectorizer()
    X = sp.csr_array(vectorizer.fit_transform(documents.texts))
    truth = supervise(documents.labels, len(documents)).indicator().toarray() > 0
    return X, truth, documents.topic_names, vectorizer.transform


def learn(docstrings, labels=None, **words):
    """Average precision of each topic, from names and other words."""
    X, truth, topics, transform = docstrings
    texts = topic_texts(Codebook.of_names(topics, **words), transform)
    sample = Sample(as_rows(X), supervise(labels or {}, X.shape[0], topics=topics), threads=1)
    guide = learn_guide(sample, texts, world="closed")
    return average_precision(truth, guide.probabilities(X)), texts


def distinctive(docstrings, n):
    """The words of each topic that differ most in mean tf-idf from the other documents."""
    X, truth, topics, _ = docstrings
    terms = load_terms(docstrings)
    found = {}
    for k, topic in enumerate(topics):
        difference = X[truth[:, k]].mean(axis=0) - X[~truth[:, k]].mean(axis=0)
        found[topic] = [terms[j] for j in np.argsort(-np.asarray(difference).ravel())[:n]]
    return found


def load_terms(docstrings):
    return docstrings[3].__self__.get_feature_names_out().tolist()


def test_names_alone_find_documents_better_than_the_cosine(docstrings):
    X, truth, topics, _ = docstrings
    found, texts = learn(docstrings)
    cosine = np.zeros(truth.shape)
    cosine[:, texts.topics] = (X @ texts.terms.T).toarray()
    assert found.macro > average_precision(truth, cosine).macro + 0.15
    words, texts = learn(docstrings, keywords=distinctive(docstrings, 5))
    joined = sp.csr_array((texts.topics == np.arange(len(topics))[:, None]) @ texts.terms.toarray())
    cosine = (X @ joined.T).toarray()
    assert words.macro > average_precision(truth, cosine).macro
    assert words.macro > found.macro + 0.15


def test_one_wrong_label_costs_at_most_a_third_of_the_precision_of_keywords_on_average(docstrings):
    _, truth, topics, _ = docstrings
    words = distinctive(docstrings, 4)
    before, _ = learn(docstrings, keywords=words)
    rng, kept = np.random.default_rng(0), []
    for k in range(0, len(topics), 6):
        wrong = int(rng.choice(np.flatnonzero(~truth[:, k])))
        after, _ = learn(docstrings, {wrong: [topics[k]]}, keywords=words)
        kept.append(after.topics[k] / before.topics[k])
        others = np.arange(len(topics)) != k
        assert after.topics[others].mean() > 0.98 * before.topics[others].mean()
    assert np.mean(kept) > 2 / 3


def test_a_word_of_two_topics_finds_documents_of_both():
    X = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=np.float32)
    X = sp.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True))
    words = sp.csr_array(np.array([[1, 0, 1, 0], [0, 1, 1, 0]], dtype=np.float32) * 0.5**0.5)
    sample = Sample(as_rows(X), supervise({}, 4, topics=["a", "b"]), threads=1)
    found = learn_guide(sample, TopicTexts(words, np.arange(2)), world="closed").probabilities(X)
    assert found[0, 0] > found[2, 0] > found[1, 0]
    assert found[1, 1] > found[2, 1] > found[0, 1]


def draw(docstrings, per_topic, seed):
    """Labels of this many documents per topic."""
    _, truth, topics, _ = docstrings
    rng = np.random.default_rng(seed)
    rows = {int(i) for column in truth.T for i in rng.choice(np.flatnonzero(column), per_topic)}
    return {row: [topics[k] for k in np.flatnonzero(truth[row])] for row in rows}


@pytest.mark.parametrize("keywords", [0, 5])
def test_labels_on_top_of_words_do_not_lower_the_precision(docstrings, keywords):
    words = {"keywords": distinctive(docstrings, keywords)} if keywords else {}
    before = learn(docstrings, **words)[0].macro
    for per_topic in (1, 3):
        after = [learn(docstrings, draw(docstrings, per_topic, seed), **words)[0].macro for seed in range(2)]
        assert np.mean(after) > before


def test_texts_about_topics():
    vectorizer = TextVectorizer(min_df=1)
    vectorizer.fit(["green tea leaves", "roast coffee beans", "late courier"])
    book = Codebook(
        (
            Topic(1, "greenTea", description="leaves", keywords=("tea", "zzz")),
            Topic(2, 7, keywords=("courier",)),
            Topic(3, "zzz"),
            Topic(4, "12"),
        )
    )
    texts = topic_texts(book, vectorizer.transform)
    assert texts.topics.tolist() == [0, 1]  # a text without a term is left out
    assert np.diff(texts.terms.indptr).tolist() == [3, 1]
    assert texts.embeddings is None
    asked = []

    def encode(given):
        asked.append(given)
        return [[len(text), 1] if text else [0, 0] for text in given]

    embedded = topic_texts(book, vectorizer.transform, encode)
    assert asked == [["green Tea leaves tea zzz", "courier", "zzz", ""]]
    assert embedded.topics.tolist() == [0, 1, 2]  # an embedding is enough
    assert embedded.embeddings[:, 0].tolist() == [24, 7, 3]
    assert described(Topic(1, "12")).strip() == ""


def test_all_words_are_vectorised_at_once():
    vectorizer, calls = TextVectorizer(min_df=1), []
    vectorizer.fit(["green tea leaves", "roast coffee beans"])
    book = Codebook((Topic(1, "tea", keywords=("leaves", "green tea")), Topic(2, "coffee", banned=("tea",))))

    def vectorise(words):
        calls.append(words)
        return vectorizer.transform(words)

    terms = list(vectorizer.get_feature_names_out())
    found = term_constraints_of(book, len(terms), vectorise).toarray()
    assert calls == [["leaves", "green tea", "tea"]]  # a hundred topics have hundreds of words
    assert found[0].tolist() == [float(term in ("leaves", "green", "tea")) for term in terms]
    assert found[1].tolist() == [-float(term == "tea") for term in terms]
    assert term_constraints_of(Codebook((Topic(1, "tea"),)), len(terms), vectorise) is None


def test_an_embedding_ties_a_name_that_the_corpus_does_not_contain():
    rng = np.random.default_rng(0)
    which = rng.integers(0, 2, 120)
    X = sp.csr_array(np.abs(rng.normal(size=(120, 30))).astype(np.float32))
    X = sp.csr_array(X / np.sqrt(X.power(2).sum(axis=1))[:, None])
    E = np.eye(2)[which] + 0.1 * rng.normal(size=(120, 2))
    names = {"hot drinks": [1, 0], "vehicles": [0, 1]}
    texts = topic_texts(
        Codebook.of_names(["hot drinks", "vehicles"]),
        lambda texts: sp.csr_array((len(texts), 30), dtype=np.float32),
        lambda texts: [names[text] for text in texts],
    )
    sample = Sample(as_rows(X), supervise({}, 120, topics=["hot drinks", "vehicles"]), E, threads=1)
    guide = learn_guide(sample, texts, world="closed")
    assert (guide.probabilities(X, embeddings=E).argmax(axis=1) == which).all()
