"""Weak stop words: against scikit-learn's counts, against the vectoriser without them, and in a fitted model."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from topicsteer import TopicModel
from topicsteer.text import TextVectorizer, stop_words
from topicsteer.text.vectorizer import SHORT_TEXT
from topicsteer.text.words import WEAK_IDF, is_weak, without_weak

STOP = ["how", "do", "i", "why", "is", "my", "not", "what", "the", "a"]
WORDS = ["card", "cards", "bank", "rate", "fee", "tea", "cup", "Grain", "ship", "3d", "42", "中国的", "ж"]
OPTIONS = [
    {},
    {"sublinear_tf": False, "min_df": 20},
    {"max_features": 5, "max_df": 0.3},
    {"min_df": 0.0},
    {"lemmatizer": lambda word: word.rstrip("s") if word != "the" else "tea cup"},
    {"lemmatizer": lambda word: "how" if word == "fee" else word, "stop_words": {"HOW", "中国", "a b"}},
    {"segmented": True, "stop_words": ["中国的", "how"], "min_length": 3},
]


def named(options: dict) -> str:
    """Name of a test."""
    return "-".join(options) or "default"


def questions(n: int = 300, seed: int = 0) -> list[str]:
    """Short texts with stop words among the words; some have nothing else, and some are empty."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(n):
        words = [*rng.choice(STOP, rng.integers(0, 7)), *rng.choice(WORDS, rng.integers(0, 5))]
        texts.append(" ".join(rng.permutation(words)))
    return [*texts, "how do i", "", "why?"]


def pair(options: dict) -> tuple[TextVectorizer, TextVectorizer]:
    """The same vectoriser with and without weak stop words."""
    options = {"stop_words": "en"} | options
    return TextVectorizer(weak_stop_words=True, **options), TextVectorizer(**options)


def assert_same(X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
    """Two matrices are equal bit for bit."""
    assert X.dtype == Y.dtype == np.float32
    assert X.shape == Y.shape
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, part), getattr(Y, part))


@pytest.mark.parametrize("sublinear", [True, False])
def test_counts_are_those_of_scikit_learn(sublinear):
    texts = questions()
    vectorizer = TextVectorizer(weak_stop_words=True, stop_words="en", sublinear_tf=sublinear, min_df=5)
    X = vectorizer.fit_transform(texts)
    terms = list(vectorizer.get_feature_names_out())
    weak = is_weak(vectorizer.idf_)
    assert terms[-weak.sum() :] == sorted(STOP)
    assert set(vectorizer.idf_[weak]) == {WEAK_IDF}
    counts = CountVectorizer(vocabulary=terms, token_pattern=r"\w+").transform(texts).toarray()
    chinese = terms.index("中国")
    counts[:, chinese : chinese + 2] = [[text.count("中国的")] * 2 for text in texts]  # pairs of characters
    times = counts.astype(float)
    if sublinear:
        times[counts > 0] = 1 + np.log(counts[counts > 0])
    length = np.linalg.norm(times[:, ~weak] * vectorizer.idf_[~weak], axis=1)[:, None]
    expected = np.divide(times, length, out=np.zeros_like(times), where=length > 0)
    np.testing.assert_allclose(X.toarray() / vectorizer.idf_, expected, rtol=1e-6)


@pytest.mark.parametrize("options", OPTIONS, ids=named)
def test_other_terms_are_as_without_them(options):
    texts, new = questions(), questions(150, seed=1)
    ours, plain = pair(options)
    X, Y = ours.fit_transform(texts), plain.fit_transform(texts)
    n = len(plain.vocabulary_)
    assert len(ours.vocabulary_) > n
    assert list(ours.vocabulary_)[:n] == list(plain.vocabulary_)
    assert set(list(ours.vocabulary_)[n:]) <= ours.stop_words_
    np.testing.assert_array_equal(ours.idf_[:n], plain.idf_)
    assert_same(without_weak(X, ours.idf_)[:, :n], Y)
    np.testing.assert_array_equal(X.getnnz(axis=1) == 0, Y.getnnz(axis=1) == 0)
    assert_same(ours.transform(new)[:, :n], plain.transform(new))
    assert [ours.locate(text) for text in new] == [plain.locate(text) for text in new]
    X, Y = ours.grow([*new, "apples how apples", "apples why"]), plain.grow([*new, "apples how apples", "apples why"])
    weak = is_weak(ours.idf_)
    assert [term for term, one in zip(ours.vocabulary_, weak, strict=True) if not one] == list(plain.vocabulary_)
    np.testing.assert_array_equal(ours.idf_[~weak], plain.idf_)
    assert_same(X[:, ~weak], Y)


@pytest.mark.parametrize("options", OPTIONS, ids=named)
def test_same_on_all_paths(options, tmp_path):
    texts = questions()
    ours, _ = pair(options | {"threads": 1})
    X = ours.fit_transform(texts)
    assert X.has_sorted_indices
    few = [ours.transform(texts[at : at + 90]) for at in range(0, len(texts), 90)]
    assert_same(sp.vstack(few, format="csr"), X)  # plain Python
    assert_same(ours.transform(iter(texts)), X)  # kernels
    parts, _ = pair(options | {"threads": 2})
    parts.chunk_size = 200
    blocks = list(parts.fit_blocks(iter(texts), tmp_path, size=1000))
    assert len(blocks) > 3
    assert_same(sp.vstack(blocks, format="csr"), X)
    state, terms, idf = ours.get_state()
    assert state["parameters"]["weak_stop_words"] is True
    again = TextVectorizer.from_state(
        json.loads(json.dumps(state)), list(terms), idf.copy(), lemmatizer=options.get("lemmatizer")
    )
    assert_same(again.transform(texts), X)
    more = questions(200, seed=2)
    assert_same(again.grow(more), ours.grow(more))


def test_no_effect_on_long_texts():
    for extra, same in ((0, False), (1, True)):
        texts = ["how do grain ships " * 7 + "it is", "why " * 29 + "grain " * (1 + extra)]
        assert sum(len(text.split()) for text in texts) == 2 * SHORT_TEXT + extra
        ours, plain = pair({})
        X, Y = ours.fit_transform(texts), plain.fit_transform(texts)
        assert (ours.vocabulary_ == plain.vocabulary_) == same
        if same:
            assert_same(X, Y)
            assert_same(ours.transform(["how ships"]), plain.transform(["how ships"]))
            assert_same(ours.grow(["how apples"]), plain.grow(["how apples"]))


def test_texts_of_stop_words_cannot_be_fitted():
    with pytest.raises(ValueError, match="no words other than stop words"):
        TextVectorizer(weak_stop_words=True).fit(["how do i", "why is the"])


def asked(n: int = 60) -> list[str]:
    """Questions about tea, coffee, banks and ships, n each."""
    rng = np.random.default_rng(0)
    picked = [(own, rng.integers(0, 30, 6)) for own in ("tea", "coffee", "bank", "ship") for _ in range(n)]
    words = ([own, *(f"{own}{i}" for i in numbers)] for own, numbers in picked)
    return [" ".join(rng.permutation([*rng.choice(STOP, 6), *own])) for own in words]


def test_no_topic_of_a_model_shows_them(tmp_path):
    texts, labels = asked(), [name for name in ("drinks", "drinks", "banks", None) for _ in range(60)]
    vectorizer = TextVectorizer(weak_stop_words=True, stop_words="en")
    model = TopicModel(free_topics=1, vectorizer=vectorizer, threads=1).fit(texts, labels)
    model.save(tmp_path / "model")
    for fitted in (model, TopicModel.load(tmp_path / "model").attach(texts)):
        state, topics = fitted.state_, fitted.state_.topics
        weak = is_weak(state.idf)
        assert weak.sum() == len(STOP)
        assert state.components[:, weak].any()
        assert not topics.H[:, weak].any()
        np.testing.assert_array_equal(topics.H[:, ~weak], state.components[:, ~weak])
        shown = [topics.top_terms(k, 20) for k in range(len(topics))]
        assert sorted(fitted.explain("How do I drink my tea? Why tea1?").rows()["term"]) == ["tea", "tea1"]
        shown += [group.terms for group in fitted.edit.split("drinks", 2).groups]
        assert len(shown) == 5
        assert all(shown)
        assert not {term for terms in shown for term in terms} & stop_words("en")
    H = state.components.copy()
    H[-1, ~weak] = 0
    assert replace(state, components=H).topics.empty == [state.names[-1]]
