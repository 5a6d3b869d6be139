"""Text to matrix: against scikit-learn and against a plain Python twin."""

import json
import re
import unicodedata
from collections import Counter
from hashlib import sha256
from importlib.resources import files

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from topicsteer.text import TextVectorizer, stop_words
from topicsteer.text.words import LANGUAGES, PAIRED, detect_languages, without_spaces

PATTERN = r"(?!\d+(?![^\W_]))[^\W_]{2,}"  # our words, as scikit-learn spells it
ALL = {"min_df": 1, "max_df": 1.0, "max_features": None, "sublinear_tf": False, "stop_words": None}
ARTICLE_1 = {
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience"
    " and should act towards one another in a spirit of brotherhood.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt"
    " und sollen einander im Geist der Brüderlichkeit begegnen.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de"
    " conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y"
    " conciencia, deben comportarse fraternalmente los unos con los otros.",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di ragione e di"
    " coscienza e devono agire gli uni verso gli altri in spirito di fratellanza.",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de consciência,"
    " devem agir uns para com os outros em espírito de fraternidade.",
    "nl": "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd met verstand en"
    " geweten, en behoren zich jegens elkander in een geest van broederschap te gedragen.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и"
    " должны поступать в отношении друг друга в духе братства.",
    "sv": "Alla människor är födda fria och lika i värde och rättigheter. De är utrustade med förnuft och samvete och"
    " bör handla gentemot varandra i en anda av broderskap.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i"
    " sumieniem i powinni postępować wobec innych w duchu braterstwa.",
}


def corpus(n: int = 200, distinct: int = 6000, seed: int = 0) -> list[str]:
    """Texts of Zipf-distributed words in two scripts, with digits, punctuation, capitals and empty texts."""
    rng = np.random.default_rng(seed)
    letters = list("abcdefghijklmnopqrstuvwxyzäöüéñßабвгдежз0123456789_")
    words = ["".join(rng.choice(letters, rng.integers(1, 9))) for _ in range(distinct)]
    gaps = [" ", ", ", ". ", "\n", "-", "'", "… "]
    texts = []
    for _ in range(n):
        ranks = np.minimum(rng.zipf(1.2, rng.integers(0, 120)), distinct) - 1
        chosen = [words[rank].title() if rng.random() < 0.1 else words[rank] for rank in ranks]
        texts.append("".join(word + rng.choice(gaps) for word in chosen))
    return texts


def plain_words(text: str) -> list[str]:
    """Slow and obvious: words of a text, character by character."""
    words, word, previous = [], "", ""
    for character in unicodedata.normalize("NFC", text).lower() + " ":
        letter = character.isalnum() or unicodedata.category(character)[0] == "M"
        unspaced = letter and any(low <= ord(character) <= high for low, high in PAIRED)
        if unspaced and previous:
            words.append(previous + character)
        previous = character if unspaced else ""
        if letter and not unspaced:
            word += character
        elif word:
            words.append(word)
            word = ""
    return [word for word in words if not word.isdecimal()]


def plain_matrix(texts: list[str], shortest: int, stop: set[str], sublinear: bool) -> tuple[list[str], np.ndarray]:
    """Slow and obvious: terms and dense TF-IDF."""
    counts = []
    for text in texts:
        words = [word for word in plain_words(text) if len(word) >= shortest and word not in stop]
        counts.append(Counter(words))
    terms = sorted(set().union(*counts))
    X = np.array([[count[term] for term in terms] for count in counts], float).reshape(len(texts), len(terms))
    df = (X > 0).sum(axis=0)
    if sublinear:
        X[X > 0] = 1 + np.log(X[X > 0])
    X *= 1 + np.log((1 + len(texts)) / (1 + df))
    lengths = np.sqrt((X**2).sum(axis=1, keepdims=True))
    return terms, X / np.where(lengths > 0, lengths, 1)


class SmallChunks(TextVectorizer):
    chunk_size = 300


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sublinear_tf": True},
        {"min_df": 3, "max_df": 0.2},
        {"min_df": 0.01, "max_df": 50},
        {"stop_words": ["the", "ab", "a"]},
    ],
    ids=str,
)
def test_equals_scikit_learn(options):
    texts = corpus()
    options = ALL | options
    if options["stop_words"]:
        options["stop_words"] = [*options["stop_words"], *re.findall(PATTERN, texts[1].lower())[:3]]
    ours, theirs = SmallChunks(**options), TfidfVectorizer(**options, token_pattern=PATTERN)
    X, expected = ours.fit_transform(texts), theirs.fit_transform(texts)
    assert ours.vocabulary_ == theirs.vocabulary_
    np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
    np.testing.assert_allclose(ours.idf_, theirs.idf_)
    np.testing.assert_allclose(X.toarray(), expected.toarray(), atol=1e-6)
    new = corpus(50, seed=1)
    np.testing.assert_allclose(ours.transform(new).toarray(), theirs.transform(new).toarray(), atol=1e-6)


def test_max_features_as_scikit_learn_and_ties_by_alphabet():
    texts = ["b b b d d a a c c e", "b d"]
    assert list(TextVectorizer(**ALL | {"max_features": 3}, min_length=1).fit(texts).vocabulary_) == ["a", "b", "d"]
    texts = corpus()
    frequencies = Counter(word for text in texts for word in re.findall(PATTERN, text.lower()))
    ranked = sorted(frequencies.values(), reverse=True)
    limit = next(place for place in range(50, len(ranked)) if ranked[place] < ranked[place - 1])  # no tie here
    ours = TextVectorizer(**ALL | {"max_features": limit}).fit(texts)
    theirs = TfidfVectorizer(**ALL | {"max_features": limit}, token_pattern=PATTERN).fit(texts)
    assert ours.vocabulary_ == theirs.vocabulary_


@pytest.mark.slow
@given(
    texts=st.lists(
        st.text(st.sampled_from("abAB1 _-'\n\0éß\u0301İΣς½٣हि漢字かナー。𠀀\u3099😀\ud800"), max_size=12)
        | st.text(max_size=6),
        min_size=1,
        max_size=5,
    ),
    shortest=st.integers(1, 3),
    stop=st.sets(st.sampled_from(["a", "ab", "漢字", "é"])),
    sublinear=st.booleans(),
)
@settings(deadline=None, max_examples=200, derandomize=True)
def test_equals_plain_python(texts, shortest, stop, sublinear):
    terms, expected = plain_matrix(texts, shortest, stop, sublinear)
    vectorizer = TextVectorizer(
        **ALL | {"stop_words": stop, "sublinear_tf": sublinear},
        min_length=shortest,
        threads=1,
    )
    if not terms:
        with pytest.raises(ValueError, match="no words"):
            vectorizer.fit(texts)
        return
    X = vectorizer.fit_transform(texts)
    assert list(vectorizer.vocabulary_) == terms
    np.testing.assert_allclose(X.toarray(), expected, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"max_features": 50}])
def test_same_whatever_the_threads_chunks_and_neighbours(options):
    texts = corpus()
    first = TextVectorizer(threads=1, **options)
    X = first.fit_transform(texts)
    second = SmallChunks(threads=3, **options)
    results = [
        second.fit_transform(iter(texts)),
        first.transform(texts),
        TextVectorizer(**options).fit(texts).transform(texts),
    ]
    results.append(first.transform([*texts[:7], "zzz new words", *texts[7:]])[[*range(7), *range(8, 201)]])
    assert second.vocabulary_ == first.vocabulary_
    for result in results:
        assert result.dtype == np.float32
        assert result.has_sorted_indices
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(result, part), getattr(X, part))
    lengths = np.sqrt(X.multiply(X).sum(axis=1))
    assert np.all(np.isclose(lengths, 1, atol=1e-6) | (lengths == 0))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 60),
    chunk=st.integers(1, 3000),
    size=st.integers(1, 20_000),
    options=st.sampled_from([{}, ALL, {"max_features": 30}, {"max_df": 1.0}]),
    threads=st.sampled_from([1, 2]),
)
def test_blocks_together_are_the_matrix(tmp_path_factory, n, chunk, size, options, threads):
    texts = ["the grain and the ships", *corpus(n, seed=n)]
    whole, parts = TextVectorizer(threads=1, **options), SmallChunks(threads=threads, **options)
    X = whole.fit_transform(texts)
    folder = tmp_path_factory.mktemp("spill")
    parts.chunk_size = chunk
    blocks = list(parts.fit_blocks(iter(texts), folder, size=size))
    assert list(folder.iterdir()) == []
    assert parts.vocabulary_ == whole.vocabulary_
    assert list(parts.vocabulary_) == list(whole.vocabulary_)
    np.testing.assert_array_equal(parts.idf_, whole.idf_)
    assert (parts.languages_, parts.stop_words_) == (whole.languages_, whole.stop_words_)
    joined = sp.vstack(blocks, format="csr")
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(joined, part), getattr(X, part))
    assert all(block.has_sorted_indices and block.dtype == np.float32 for block in blocks)
    largest = max(block.nnz * 8 + block.shape[0] * 8 for block in blocks)
    assert largest < size + 8 * 3000 + 8 * 3000  # a chunk more at most


def test_blocks_of_texts_that_cannot_be_fitted(tmp_path):
    for texts, message in ((["fine", None], "row 1 is None"), (["12", ""], "the 2 texts have no words")):
        with pytest.raises((TypeError, ValueError), match=message):
            TextVectorizer().fit_blocks(texts, tmp_path)
    with pytest.raises(FileNotFoundError):
        TextVectorizer().fit_blocks(["fine"], tmp_path / "nowhere")
    seen = []
    blocks = TextVectorizer().fit_blocks(["fine ships", "grain"], tmp_path, progress=lambda *done: seen.append(done))
    assert seen == [(2, 2)]  # read before the first block is asked for
    assert len(list(blocks)) == 1


def test_empty_texts_give_empty_rows():
    vectorizer = TextVectorizer(stop_words="en").fit(["", "grain and ships", "  12 "])
    X = vectorizer.transform(["", "the unknown", "ships", "\ud800"])
    assert X.getnnz(axis=1).tolist() == [0, 0, 1, 0]
    assert vectorizer.transform([]).shape == (0, 2)


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["fine", None], {}, r"row 1 is None, a NoneType; expected a string.*Drop such rows"),
        (["fine", b"bytes"], {}, "row 1 is b'bytes'"),
        ("one text", {}, r"got a str\. Put a single text in a list"),
        (pl.DataFrame({"text": ["a"]}), {}, r'got a DataFrame.*table\["text"\]'),
        ([], {}, "the 0 texts have no words"),
        (["the and of", "1 2 3"], {}, "no words other than stop words.*change stop_words and min_length"),
        (["red", "blue"], {"min_df": 2}, r"at least 2 and at most 2 of the 2 texts: lower min_df \(now 2\)"),
        (["red", "red"], {"max_df": 0.5}, r"raise max_df \(now 0.5\)"),
        (["red"], {"threads": 0}, "'threads' parameter of TextVectorizer must be"),
        (["red"], {"stop_words": "klingon"}, "no stop words for language 'klingon': expected one of en, de"),
    ],
)
def test_messages_of_errors(texts, options, message):
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
        TextVectorizer(**options).fit_transform(texts)


def test_works_inside_scikit_learn():
    texts = ["ships and grain"] * 8 + ["banks and rates"] * 8
    y = ["sea"] * 8 + ["money"] * 8
    vectorizer = TextVectorizer(stop_words={"and"}, max_df=1.0)
    assert clone(vectorizer).get_params() == vectorizer.get_params()
    search = GridSearchCV(make_pipeline(vectorizer, LogisticRegression()), {"textvectorizer__min_length": [2, 3]}, cv=2)
    assert search.fit(texts, y).score(["a ship of grain", "bank rates"], ["sea", "money"]) == 1
    pipeline = make_pipeline(vectorizer, NMF(2, init="random", random_state=0, max_iter=1000))
    tables = pipeline.set_output(transform="polars").fit_transform(texts)
    assert tables.columns == ["nmf0", "nmf1"]
    assert vectorizer.fit_transform(pl.Series(texts)).shape == (16, 4)
    assert vectorizer.fit_transform(np.array(texts)).shape == (16, 4)


@pytest.mark.parametrize("words", ["auto", {"and"}, None])
def test_state_is_plain_and_complete(words):
    texts = corpus()
    vectorizer = TextVectorizer(stop_words=words, lemmatizer=lambda word: word[:4])
    X = vectorizer.fit_transform(texts)
    options, terms, idf = vectorizer.get_state()
    again = TextVectorizer.from_state(
        json.loads(json.dumps(options)), json.loads(json.dumps(terms)), idf.copy(), lemmatizer=lambda word: word[:4]
    )
    assert (again.transform(texts) != X).nnz == 0
    assert again.get_state()[:2] == (options, terms)


def test_progress_counts_texts():
    texts, calls = corpus(40), []
    SmallChunks().fit_transform(texts, progress=lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert len(calls) > 3
    assert calls[-1] == (40, 40)
    SmallChunks().fit(iter(texts), progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (40, None)


def test_lemmatizer_is_called_once_for_each_word():
    calls = []

    def lemma(word: str) -> str:
        calls.append(word)
        return {"dampfschiffe": "dampf schiff", "weg": "", "schiffe": "schiff", "hat": "haben"}.get(word, word)

    vectorizer = TextVectorizer(lemmatizer=lemma, stop_words="german")
    vectorizer.fit(["Dampfschiffe weg, Schiffe hat", "schiffe weg Dampfschiffe", "Korn die"])
    assert sorted(calls) == ["dampfschiffe", "korn", "schiffe", "weg"]
    assert list(vectorizer.vocabulary_) == ["dampf", "korn", "schiff"]


def test_many_scripts():
    words = lambda text, **options: list(TextVectorizer(**options).fit([text]).vocabulary_)  # noqa: E731
    assert words("हिन्दी में") == ["में", "हिन्दी"]
    assert words("東京都のAI技術、漢") == ["ai", "京都", "技術", "東京", "都の"]
    assert words("東京都 の 技術", segmented=True) == ["技術", "東京都"]
    assert words("Cafe\u0301 café ΛΌΓΟΣ l'homme covid19 snake_case 1998") == [
        "café",
        "case",
        "covid19",
        "homme",
        "snake",
        "λόγος",
    ]


def test_options_for_few_texts_and_many():
    texts = ["grain ship"] * 60 + ["rate bank"] * 39
    assert len(TextVectorizer().fit(texts).vocabulary_) == 4
    assert list(TextVectorizer().fit([*texts, "rare rate"]).vocabulary_) == ["bank", "rate"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_are_recognised(language):
    words = Counter(plain_words(ARTICLE_1[language]))
    assert detect_languages(words)[0] == language
    mixed = words + Counter(plain_words(ARTICLE_1["en"]))
    assert {language, "en"} <= set(detect_languages(mixed))
    listed = files("topicsteer.text").joinpath("stop_words", f"{LANGUAGES[language]}.txt").read_text("utf-8").split()
    assert len(set(listed)) == len(listed)
    assert all(word == unicodedata.normalize("NFC", word).lower() for word in listed)
    assert all(plain_words(word) == [word] for word in listed)


def test_stop_words_are_those_of_the_first_release():
    hashes = {code: sha256(" ".join(sorted(stop_words(code))).encode()).hexdigest()[:16] for code in LANGUAGES}
    assert hashes == {
        "en": "4feb85c848fa3abb",
        "de": "eb968af2fa156315",
        "fr": "47ded2a9486ce87f",
        "es": "6b46956831a13fc7",
        "it": "4c3d5d20c9f51ce9",
        "pt": "ba7b9b3b4c78d1f5",
        "nl": "319a248c23ca49f8",
        "ru": "d22fd65879746cf1",
        "sv": "58b2d7786ffab22f",
        "pl": "b65c6fdd81a539ef",
    }


def test_scripts_without_spaces():
    assert PAIRED == ((12352, 12543), (13312, 19903), (19968, 40959), (63744, 64255), (131072, 262143))
    assert all(map(without_spaces, ("น้ำ", "ລາວ", "茶", "a 차", "\U00020000", "ー")))
    assert not any(map(without_spaces, ("", "tea", "чай", "שלום", "चाय", "🍵")))


def test_languages_by_name_and_code():
    assert stop_words("German", "fr") == stop_words("de") | stop_words("french")
    assert detect_languages({}) == []
    assert detect_languages({"ai": 50, "技術": 50}) == []  # one word makes no language
    vectorizer = TextVectorizer().fit([ARTICLE_1["de"]])
    assert vectorizer.languages_ == ["de"]
    assert vectorizer.stop_words_ == stop_words("de")


def test_new_texts_are_weighed_as_if_all_had_been_fitted_at_once():
    first = ["ships carry grain", "grain prices fell", "the bank raised rates", "grain ships sail"]
    second = ["apples and grain fell", "apples rates", "ships"]
    grown, whole = (TextVectorizer(min_df=1, max_df=1.0, stop_words="en", threads=1) for _ in range(2))
    grown.fit(first)
    old = dict(grown.vocabulary_)
    X = grown.grow(second)
    whole.fit(first + second)
    assert list(grown.vocabulary_)[: len(old)] == list(old)
    assert set(grown.vocabulary_) == set(whole.vocabulary_)
    order = [whole.vocabulary_[term] for term in grown.vocabulary_]
    assert grown.idf_ == pytest.approx(whole.idf_[order])
    assert abs(X - whole.transform(second)[:, order]).max() < 1e-6
    assert grown.n_texts_ == 7
    again = TextVectorizer.from_state(*grown.get_state())
    assert abs(again.transform(second) - X).max() == 0
    assert again.grow(["", "the"]).nnz == 0


def test_a_full_vocabulary_takes_in_only_what_is_as_frequent_as_its_rarest_term():
    vectorizer = TextVectorizer(max_features=2, min_df=1, max_df=1.0, stop_words=None)
    vectorizer.fit(["grain grain ships", "grain ships", "ships carry"])
    vectorizer.grow(["apples", "plums", "plums", "apples pears"])
    assert list(vectorizer.vocabulary_) == ["grain", "ships", "apples", "plums"]
