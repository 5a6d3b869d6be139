"""Plain vectoriser: the same words and rows as the kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicsteer.text import TextVectorizer
from topicsteer.text.plain import PlainVectorizer, words_of
from topicsteer.text.tokens import read

TEXTS = [
    "Ships carry grain, and 3 ships carry oil (1987).",
    "Grain prices fell; oil-prices rose 3x!",
    "Straße, naïve CAFÉ: ÀÉÎ and e\u0301 combining",
    "お茶を飲む and 中文 mixed",
    "İstanbul \u0130 ΑΣ ﬁne",
    "",
    "under_score's tail \U0001f600 emoji",
] * 3


def kernel_words(text, digits, pairs):
    tokens = read([text], map, digits=digits, pairs=pairs)
    ((ids, _),) = tokens.chunks
    return tokens.words.words(ids)


@pytest.mark.parametrize("digits", [True, False])
@pytest.mark.parametrize("pairs", [True, False])
def test_words_equal_the_kernel(digits, pairs):
    for text in TEXTS:
        assert words_of(text, digits=digits, pairs=pairs) == kernel_words(text, digits, pairs)


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_words_of_any_text_equal_the_kernel(text):
    assert words_of(text, digits=True, pairs=True) == kernel_words(text, True, True)


@pytest.mark.parametrize(
    "options",
    [{}, {"ngram_range": (1, 2)}, {"sublinear_tf": False, "min_length": 4}, {"segmented": True, "stop_words": None}],
)
def test_rows_equal_the_kernel(options):
    vectorizer = TextVectorizer(min_df=1, max_df=1.0, **options).fit(TEXTS)
    plain = PlainVectorizer(*vectorizer.get_state())
    new = [*TEXTS, "Ships, ships and unknownword carry carry oil prices fell"]
    ours, theirs = plain.transform(new), vectorizer.transform(new)
    np.testing.assert_array_equal(ours.indptr, theirs.indptr)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.data, theirs.data, rtol=1e-6)
    assert plain.locate(new[-1]) == vectorizer.locate(new[-1])
    assert plain.transform([]).shape == (0, len(vectorizer.vocabulary_))
