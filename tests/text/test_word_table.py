"""The table of words: against a Python dictionary, for any seed of the hash, and for crafted words."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import numbered_words

from topicsteer.text import TextVectorizer, scanner, tokens
from topicsteer.text.tokens import WordTable

LETTERS = "abcdefghijklmnopqrstuvwxyz"
VECTORISE = """
import json, sys
from topicsteer.text import TextVectorizer, tokens
vectorizer = TextVectorizer()
X = vectorizer.fit_transform(json.load(sys.stdin))
print(json.dumps([tokens.SEEDS.tolist(), list(vectorizer.vocabulary_), X.data.tolist()]))
"""


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=60))
@settings(max_examples=100, deadline=None)
def test_equals_the_slow_twin(words):
    table, (known, ids) = WordTable(), numbered_words(words)
    data, limits = tokens.encoded(words)
    np.testing.assert_array_equal(table.add(data, limits[:-1], limits[1:]), ids)
    assert table.words() == known
    assert len(table) == len(known)
    np.testing.assert_array_equal(table.find(words), ids)
    assert table.find(["never\nthere"]).tolist() == [-1]
    lengths, kinds = table.describe()
    assert lengths.tolist() == [len(word) for word in known]
    for word, kind in zip(known, kinds.tolist(), strict=True):
        digits = all(letter in "0123456789" for letter in word)
        assert kind == (1 if digits else 0 if word.isascii() else 2)


def test_merged_tables_keep_the_order_of_appearance():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdé"), size)) for size in rng.integers(1, 24, 20_000)]
    table = WordTable()
    ids = [table.merge(part)[part.find(own)] for own in np.array_split(words, 7) for part in [WordTable.of(own)]]
    known, expected = numbered_words(words)
    assert table.words() == known
    np.testing.assert_array_equal(np.concatenate(ids), expected)
    assert table.words([3, 1]) == [known[3], known[1]]


def test_long_words_that_differ_at_one_place():
    words = ["x" * k + "y" + "x" * (40 - k) for k in range(41)]
    assert WordTable.of(words * 2).words() == words


@pytest.mark.slow
def test_no_result_depends_on_the_seeds():
    """Each process has seeds of its own."""
    rng = np.random.default_rng(1)
    vocabulary = ["".join(rng.choice(list(LETTERS), 6)) for _ in range(1_000)]
    texts = [" ".join(rng.choice(vocabulary, 40)) for _ in range(100)]
    vectorizer = TextVectorizer()
    X = vectorizer.fit_transform(texts)
    run = [sys.executable, "-c", VECTORISE]
    done = subprocess.run(run, input=json.dumps(texts), capture_output=True, text=True, check=True)
    seeds, terms, data = json.loads(done.stdout)
    assert seeds != tokens.SEEDS.tolist()
    assert terms == list(vectorizer.vocabulary_)
    assert data == X.data.tolist()


def test_short_words_never_share_a_hash():
    data, limits = tokens.encoded([a + b + c for a in LETTERS for b in LETTERS for c in LETTERS])
    groups = data.view(np.uint64)
    codes = {int(scanner.hash_of(groups, a, a + 3, tokens.SEEDS)) for a in limits[:-1]}
    assert len(codes) == 26**3


def test_crafted_words_cost_no_more_than_random_words():
    # In 0.1.0 the hash was FNV-1a with a public start. These words fill one part of its table, for all its sizes.
    letters = np.random.default_rng(2).integers(97, 123, (1_000_000, 8), dtype=np.uint64)
    codes = np.full(len(letters), 0xCBF29CE484222325, dtype=np.uint64)
    for column in letters.T:
        codes = (codes ^ column) * np.uint64(0x100000001B3)
    codes ^= codes >> np.uint64(32)
    order = np.argsort(codes & np.uint64((1 << 18) - 1), kind="stable")

    def seconds(rows):
        text = " ".join(row.tobytes().decode() for row in letters[rows].astype(np.uint8))
        best = np.inf
        for _ in range(5):
            start = time.thread_time()
            TextVectorizer(threads=1, stop_words=None).fit([text, "tea"])
            best = min(best, time.thread_time() - start)
        return best

    seconds(order[:100])
    assert seconds(order[:20_000]) < 2 * seconds(np.arange(20_000))
