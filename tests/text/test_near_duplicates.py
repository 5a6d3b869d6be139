"""Near-duplicates, against all pairs compared by hand."""

import random

import numpy as np

from topicsteer.text.near_duplicates import SAME, near_duplicates


def slow(texts):
    """The first text with at least this Jaccard similarity of runs of three words, by comparison of all pairs."""
    runs = [{tuple(words[i : i + 3]) for i in range(len(words) - 2)} for words in map(str.split, texts)]
    first = []
    for row, own in enumerate(runs):
        earlier = (k for k in range(row) if first[k] == k and len(own & runs[k]) >= SAME * len(own | runs[k]))
        first.append(next(earlier, row))
    return first


def test_equals_the_comparison_of_all_pairs():
    generator = random.Random(0)
    texts = [" ".join(f"w{generator.randrange(400)}" for _ in range(60)) for _ in range(60)]
    for _ in range(120):  # some words changed: similarities from .5 to 1
        words = generator.choice(texts[:60]).split()
        for _ in range(generator.choice((0, 1, 1, 2, 6))):
            words[generator.randrange(60)] = "new"
        texts.append(" ".join(words))
    found, right = near_duplicates(texts).tolist(), slow(texts)
    assert sum(a != b for a, b in zip(found, right, strict=True)) <= 3  # 98.5 % of the pairs at the limit are compared
    assert 80 < sum(k != row for row, k in enumerate(found)) < 120


def test_case_spaces_scripts_and_empty_texts():
    chinese = "这是一篇关于绿茶和红茶的文章并且很长"
    texts = ["Green  TEA!", "green tea", "", "", "green", chinese, chinese + "呢", "完全不同的另一篇文章没有共同之处"]
    assert near_duplicates(texts).tolist() == [0, 0, 2, 3, 4, 5, 5, 7]
    assert near_duplicates([]).shape == (0,)
    assert near_duplicates(["\ud800 a b c d", "\x00"]).dtype == np.int64
