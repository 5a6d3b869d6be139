"""The word processing of the paper equals that of NLTK."""

import os
import re
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from experiments.shared.paper_words import letters_only, paper_vectorizer, paper_words


@pytest.fixture
def nltk_data():
    pytest.importorskip("nltk", reason="the extra `paper` is not installed")
    try:
        paper_words()
    except LookupError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.usefixtures("nltk_data")
def test_the_words_of_the_paper_are_nltk_word_for_word():
    from nltk.corpus import stopwords
    from nltk.stem import WordNetLemmatizer
    from nltk.tokenize import TreebankWordTokenizer

    texts = [
        "The U.S. banks' 3.5 pct rates weren't \"raised\" in 1987; they cannot be, he does say.",
        "Gonna ship 10-tonne loads of wheat, women and children first! Gimme the geese's wolves...",
    ]
    archive = Path(os.environ.get("TOPICSTEER_DATA", "")) / "reuters21578.tar.gz"
    if archive.exists():
        with tarfile.open(archive) as tar:
            member = next(member for member in tar if member.name.endswith("reut2-000.sgm"))
            stories = tar.extractfile(member).read().decode("latin-1")
        texts += re.findall(r"<BODY>(.*?)</BODY>", stories, re.DOTALL)[:300]
    stop, lemma, tokenize = (
        set(stopwords.words("english")),
        WordNetLemmatizer().lemmatize,
        TreebankWordTokenizer().tokenize,
    )

    def words(text):
        for token in tokenize(re.sub(r"[\W\d_]+", " ", text).lower()):
            if token not in stop and lemma(token) not in stop and len(lemma(token)) >= 3:
                yield lemma(token)

    expected = TfidfVectorizer(analyzer=lambda text: list(words(text)), max_features=2000)
    vectorizer = paper_vectorizer()
    X = vectorizer.fit_transform(letters_only(texts))
    if len(texts) == 2:
        np.testing.assert_allclose(X.toarray(), expected.fit_transform(texts).toarray(), atol=1e-6)
        return
    assert X.shape[1] == 2000
    expected.set_params(max_features=None, vocabulary=vectorizer.vocabulary_)
    np.testing.assert_allclose(X.toarray(), expected.fit_transform(texts).toarray(), atol=1e-6)
    frequencies = Counter(word for text in texts for word in words(text))
    chosen = sorted(frequencies, key=lambda word: (-frequencies[word], word))[:2000]
    assert list(vectorizer.vocabulary_) == sorted(chosen)


@pytest.mark.slow
@pytest.mark.usefixtures("nltk_data")
def test_missing_data_is_named(monkeypatch):
    import nltk

    def missing() -> None:
        raise LookupError

    paper_words.cache_clear()
    monkeypatch.setattr(nltk.corpus.wordnet, "ensure_loaded", missing)
    with pytest.raises(LookupError, match=r"python -m nltk.downloader wordnet stopwords.*NLTK_DATA"):
        paper_vectorizer()
