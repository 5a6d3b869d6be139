"""Near-duplicates among texts: mail with another greeting, an article in two newspapers, a form letter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from topicsteer.text.words import without_spaces

# Two texts are nearly the same if they share this part of their runs of three words (Jaccard similarity).
SAME = 0.8
# Numbers per text, and numbers that must be equal for two texts to be compared. A pair with similarity 0.8 is compared
# with a probability of 98.5 %, one with 0.9 always.
NUMBERS, BAND = 32, 4
# Characters of a text that are compared.
COMPARED = 20_000
_WORD = re.compile(r"\w+")
_FACTORS = np.random.default_rng(0).integers(1, 1 << 63, (NUMBERS, 1), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_MIX = np.random.default_rng(1).integers(1, 1 << 63, 3, dtype=np.uint64)

Runs = NDArray[np.uint64]


def near_duplicates(texts: Iterable[str]) -> NDArray[np.int64]:
    """Return for each text the row of the first text that is nearly the same; its own row if there is none.

    Parameters
    ----------
    texts : iterable of str
        Case, punctuation and spaces do not matter.

    Returns
    -------
    array of int (n_texts,)

    Examples
    --------
    >>> mail = "{}, thank you for the parcel that arrived yesterday in good order and on time, as always"
    >>> near_duplicates([mail.format("Ann"), "something else", mail.format("Bob"), "Something else!"]).tolist()
    [0, 1, 0, 1]
    """
    first, buckets, kept = list[int](), dict[tuple[int, bytes], int](), dict[int, Runs]()
    for row, text in enumerate(texts):
        runs = _runs(text)
        numbers = ((_FACTORS * runs) >> np.uint64(32)).min(axis=1) if len(runs) else np.zeros(NUMBERS, np.uint64)
        keys = [(k, numbers[k : k + BAND].tobytes()) for k in range(0, NUMBERS, BAND)]
        rivals = dict.fromkeys(buckets[key] for key in keys if key in buckets)
        found = next((rival for rival in rivals if _similar(kept[rival], runs)), row)
        first.append(found)
        if found == row and len(runs):
            kept[row] = runs
            for key in keys:
                buckets.setdefault(key, row)
    return np.array(first, dtype=np.int64)


def _runs(text: str) -> Runs:
    """Runs of three words as numbers, each once; a text of fewer words is one run."""
    text = text[:COMPARED].casefold()
    words: Sequence[str] = _WORD.findall(text)
    if without_spaces(text):
        words = "".join(words)  # each letter counts as a word
    codes = np.fromiter((crc32(word.encode("utf-8", "replace")) for word in words), dtype=np.uint64, count=len(words))
    if len(codes) < 4:
        return np.array([crc32(" ".join(words).encode("utf-8", "replace"))], dtype=np.uint64) if words else codes
    return np.unique(codes[:-2] * _MIX[0] + codes[1:-1] * _MIX[1] + codes[2:] * _MIX[2])


def _similar(a: Runs, b: Runs) -> bool:
    both = len(np.intersect1d(a, b, assume_unique=True))
    return both >= SAME * (len(a) + len(b) - both)
