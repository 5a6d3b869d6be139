"""Words of single texts in plain Python: rules for words, places of terms, and TF-IDF rows of a few texts.

`topicsteer.text.scanner` does the same with many texts, and both give the same words and numbers, bit for bit.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.text.languages import PAIRED, Segment, paper_words, pieces, segmenter_of, spaced

# The values of "auto" in each preset.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {"max_features": 10_000, "min_df": 2, "max_df": 0.5, "sublinear_tf": True, "min_length": 2},
    "paper": {"max_features": 2_000, "min_df": 1, "max_df": 1.0, "sublinear_tf": False, "min_length": 3},
}
# A function from a word to its base forms; none for words that are left out.
Rule = Callable[[str], Iterable[str]]
# A word of a text: first character, one after the last, and the word.
Place = tuple[int, int, str]

# A character with the marks that belong to it.
_CHARACTER = re.compile(r"(?s).[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u0655\u093c\u3099\u309a]*")


def word_rule(
    leave_out: frozenset[str], shortest: int, lemmatizer: Callable[[str], str] | None, preset: str = "default"
) -> Rule:
    """The rule of a vectoriser: no numbers, no stop words, and no words of fewer than ``shortest`` letters."""
    lemma: Callable[[str], str] = lemmatizer or (paper_words()[0] if preset == "paper" else str)

    def rule(word: str) -> Iterable[str]:
        if word.isdecimal() or word in leave_out:
            return ()
        return (form for form in lemma(word).split() if len(form) >= shortest and form not in leave_out)

    return rule


class Splitter:
    """Splits single texts into words, as `topicsteer.text.scanner.split` does with many.

    Parameters
    ----------
    options : mapping
        Parameters of a vectoriser: its preset, whether texts are segmented, and a segmenter.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        segmenter = options.get("segmenter")
        self.digits = options["preset"] != "paper"
        self.pairs = not (options.get("segmented") or segmenter)
        self.segment: Segment | None = None if segmenter is None else segmenter_of(segmenter)

    def spaced(self, text: str) -> str:
        """Return the text, with spaces between its words if there is a segmenter."""
        return text if self.segment is None else spaced(text, self.segment)

    def words(self, text: str) -> list[str]:
        """Return the words of a text."""
        return words_of(self.spaced(text), digits=self.digits, pairs=self.pairs)

    def places(self, text: str) -> list[Place]:
        """The words of a text with their places in it."""
        parts = [text] if self.segment is None or text.isascii() else pieces(text, self.segment)
        found, at = [], 0
        for part in parts:
            lower, starts = _aligned(part)
            for start, end, word in places_of(lower, digits=self.digits, pairs=self.pairs):
                found.append((at + starts[start], at + starts[end], word))
            at += len(part)
        return found


def locate(
    text: str, split: Splitter, rule: Rule, columns: Mapping[str, int], longest: int
) -> list[tuple[int, int, int]]:
    """The terms of a text: first character, one after the last, column; terms may overlap."""
    words = [(start, end, form) for start, end, word in split.places(text) for form in rule(word)]
    runs = (words[i : i + n] for i in range(len(words)) for n in range(1, longest + 1) if i + n <= len(words))
    named = ((run[0][0], run[-1][1], columns.get(" ".join(form for _, _, form in run))) for run in runs)
    return [(start, end, column) for start, end, column in named if column is not None]


def words_of(text: str, *, digits: bool, pairs: bool) -> list[str]:
    """The words of a text, as `topicsteer.text.scanner.split` finds them.

    Examples
    --------
    >>> words_of("Tea, 2 cups: お茶だ", digits=True, pairs=True)
    ['tea', '2', 'cups', 'お茶', '茶だ']
    """
    return [word for _, _, word in places_of(_normal(text), digits=digits, pairs=pairs)]


def places_of(text: str, *, digits: bool, pairs: bool) -> Iterator[Place]:
    """The words of a text in normal form, with their places."""
    begin, last = -1, False
    for at, letter in enumerate(text):
        part = (letter.isalnum() if digits else letter.isalpha()) or unicodedata.category(letter)[0] == "M"
        part = part and ord(letter) < 0x40000  # there are no letters beyond
        paired = part and pairs and any(low <= ord(letter) <= high for low, high in PAIRED)
        if begin >= 0 and (paired or not part):
            yield begin, at, text[begin:at]
            begin = -1
        if part and not paired and begin < 0:
            begin = at
        if paired and last:
            yield at - 1, at + 1, text[at - 1 : at + 1]
        last = paired
    if begin >= 0:
        yield begin, len(text), text[begin:]


def _normal(text: str) -> str:
    """The text in lower case, with composed characters."""
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).lower()


def _aligned(text: str) -> tuple[str, Sequence[int]]:
    """The normal form of a text, and the place in the text of each of its characters and of its end."""
    normal = _normal(text)
    if len(normal) == len(text):
        return normal, range(len(text) + 1)
    parts = [(match.start(), _normal(match[0])) for match in _CHARACTER.finditer(text)]
    starts = [start for start, part in parts for _ in part]
    return "".join(part for _, part in parts), [*starts, len(text)]


def few_rows(
    texts: Iterable[str],
    split: Splitter,
    rule: Rule,
    columns: Mapping[str, int],
    idf: NDArray[np.float64],
    ngram_range: tuple[int, int],
    *,
    sublinear: bool,
) -> sp.csr_matrix:
    """TF-IDF rows of unit length of a few texts; no compiled kernel has to be loaded for them.

    Parameters
    ----------
    texts : iterable of str
    split, rule
        The words of a text, and the base forms of a word.
    columns : mapping of str to int
        Column of each term.
    idf : array (n_terms,)
        Weight of each term.
    ngram_range : (int, int)
        Least and largest number of words in a term.
    sublinear : bool
        Whether a count c becomes 1 + log c.

    Returns
    -------
    csr_matrix of float32, shape (n_texts, n_terms)
    """
    indices: list[int] = []
    data: list[float] = []
    indptr = [0]
    forms = cache(lambda word: tuple(rule(word)))
    for text in texts:
        words = [form for word in split.words(text) for form in forms(word)]
        orders = range(1, ngram_range[1] + 1)
        runs = (" ".join(words[i : i + n]) for n in orders for i in range(len(words) - n + 1))
        counts = Counter(columns[run] for run in runs if run in columns)
        own = sorted(counts)
        times = [1.0 + math.log(counts[column]) if sublinear else float(counts[column]) for column in own]
        values = [time * float(idf[column]) for time, column in zip(times, own, strict=True)]
        square = 0.0
        for value in values:  # one after the other, as in the kernel; `sum` would be more exact
            square += value * value
        length = math.sqrt(square)
        indices += own
        data += [float(np.float32(value)) / length for value in values]  # rounded as in the kernel
        indptr.append(len(indices))
    arrays = np.array(data, np.float32), np.array(indices, np.int32), np.array(indptr, np.int32)
    return sp.csr_matrix(arrays, shape=(len(indptr) - 1, len(idf)))
