"""Words and rows of a few texts: the same as those of the kernels, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicsteer.text import TextVectorizer
from topicsteer.text.tokens import read
from topicsteer.text.words import words_of

TEXTS = [
    "Ships carry grain, and 3 ships carry oil (1987).",
    "Grain prices fell; oil-prices rose 3x!",
    "Straße, naïve CAFÉ: ÀÉÎ and e\u0301 combining",
    "お茶を飲む and 中文 mixed",
    "İstanbul \u0130 ΑΣ ﬁne",
    "",
    "under_score's tail \U0001f600 emoji",
] * 3


def kernel_words(text, pairs):
    tokens = read([text], map, pairs=pairs)
    ((ids, _),) = tokens.chunks
    return tokens.words.words(ids)


@pytest.mark.parametrize("pairs", [True, False])
def test_words_equal_the_kernel(pairs):
    for text in TEXTS:
        assert words_of(text, pairs=pairs) == kernel_words(text, pairs)


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_words_of_any_text_equal_the_kernel(text):
    assert words_of(text, pairs=True) == kernel_words(text, True)


@pytest.mark.parametrize(
    "options",
    [{}, {"sublinear_tf": False, "min_length": 4}, {"segmented": True, "stop_words": None}],
)
def test_rows_equal_the_kernel(options):
    vectorizer = TextVectorizer(min_df=1, max_df=1.0, **options).fit(TEXTS)
    new = [*TEXTS, "Ships, ships and unknownword carry carry oil prices fell"]
    few, many = vectorizer.transform(new), vectorizer.transform(iter(new))
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name))
        assert getattr(few, name).dtype == getattr(many, name).dtype
    assert vectorizer.transform([]).shape == (0, len(vectorizer.vocabulary_))


def marked(vectorizer, text):
    return [text[start:end] for start, end, _ in vectorizer.locate(text)]


def test_pairs_are_found_in_the_text():
    vectorizer = TextVectorizer(stop_words=None).fit(["東京都のAI技術", "cafe\u0301 か\u3099くせい"])
    for one in (vectorizer, TextVectorizer.from_state(*vectorizer.get_state())):
        assert marked(one, "AI: 東京都") == ["AI", "東京", "京都"]
        # composed and decomposed characters are the same word, at their own places
        assert marked(one, "(CAFÉ) Cafe\u0301s cafe\u0301! がくせい") == ["CAFÉ", "cafe\u0301", "がく", "くせ", "せい"]
        assert marked(one, "か\u3099くせい") == ["か\u3099く", "くせ", "せい"]
