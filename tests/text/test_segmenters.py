"""Words of Chinese and Japanese: where they are, and segmenters, which are optional packages."""

import sys

import numpy as np
import pytest

from topicsteer.text import TextVectorizer
from topicsteer.text.words import SEGMENTERS, pieces, segmenter_of

CHINESE = ["我来到北京清华大学。", "北京 has 3 universities: 清华大学", "我爱喝绿茶，绿茶很好", "plain English text"]


@pytest.fixture
def two_by_two(monkeypatch):
    """A segmenter without a package: words of two characters."""
    monkeypatch.setitem(SEGMENTERS, "jieba", (lambda: lambda run: [run[i : i + 2] for i in range(0, len(run), 2)], ""))
    segmenter_of.cache_clear()
    yield
    segmenter_of.cache_clear()


def marked(vectorizer, text):
    return [text[start:end] for start, end, _ in vectorizer.locate(text)]


def test_pairs_are_found_in_the_text():
    vectorizer = TextVectorizer(stop_words=None).fit(["東京都のAI技術", "cafe\u0301 か\u3099くせい"])
    for one in (vectorizer, TextVectorizer.from_state(*vectorizer.get_state())):
        assert marked(one, "AI: 東京都") == ["AI", "東京", "京都"]
        # composed and decomposed characters are the same word, at their own places
        assert marked(one, "(CAFÉ) Cafe\u0301s cafe\u0301! がくせい") == ["CAFÉ", "cafe\u0301", "がく", "くせ", "せい"]
        assert marked(one, "か\u3099くせい") == ["か\u3099く", "くせ", "せい"]


def test_a_segmenter_divides_only_its_scripts(two_by_two):
    vectorizer = TextVectorizer(segmenter="jieba", stop_words=None).fit(CHINESE)
    words = "我来 到北 京清 华大 北京 has universities 清华 大学 我爱 喝绿 绿茶 很好 plain english text"
    assert list(vectorizer.vocabulary_) == sorted(words.split())
    again = TextVectorizer.from_state(*vectorizer.get_state())
    many = vectorizer.transform(iter(CHINESE))
    np.testing.assert_array_equal(vectorizer.transform(CHINESE).toarray(), many.toarray())
    for one in (vectorizer, again):
        assert marked(one, CHINESE[1]) == ["北京", "has", "universities", "清华", "大学"]
    assert "".join(pieces(CHINESE[1], segmenter_of("jieba"))) == CHINESE[1]


def test_a_missing_package_and_an_unknown_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "fugashi", None)
    segmenter_of.cache_clear()
    with pytest.raises(ImportError, match=r"fugashi is not installed .*: pip install fugashi unidic-lite"):
        TextVectorizer(segmenter="fugashi").fit(["お茶"])
    with pytest.raises(ValueError, match="'segmenter' parameter"):
        TextVectorizer(segmenter="mecab").fit(["お茶"])
    with pytest.raises(ValueError, match="there is no segmenter 'mecab': use jieba for Chinese"):
        segmenter_of("mecab")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("jieba", "我来到北京清华大学", ["我", "来到", "北京", "清华大学"]),
        ("fugashi", "人々は緑茶を飲む", ["人々", "は", "緑茶", "を", "飲む"]),
    ],
)
def test_real_segmenters(name, text, words):
    pytest.importorskip(name)
    segmenter_of.cache_clear()
    assert segmenter_of(name)(text) == words
    assert list(TextVectorizer(segmenter=name).fit([text]).vocabulary_) == sorted(w for w in words if len(w) > 1)
