"""Words of single texts in plain Python: rules for words, places of terms, and TF-IDF rows of a few texts."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.text.languages import paper_words
from topicsteer.text.scripts import PAIRED
from topicsteer.text.segmenters import Segment, pieces, segmenter_of, spaced

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
    """Splits single texts into words, as `topicsteer.text.kernels.split` does with many.

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

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        prepared = text if self.segment is None else spaced(text, self.segment)
        return words_of(prepared, digits=self.digits, pairs=self.pairs)

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
    """The words of a text, as `topicsteer.text.kernels.split` finds them.

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


class PlainVectorizer:
    """The fitted `topicsteer.text.TextVectorizer` for a few texts; slow for many, but quick to load.

    Parameters
    ----------
    options, terms, idf
        The result of `TextVectorizer.get_state`.
    """

    def __init__(self, options: Mapping[str, Any], terms: Sequence[str], idf: NDArray[np.float64]) -> None:
        given = options["parameters"]
        chosen = {name: value for name, value in given.items() if value != "auto"}
        settings = PRESETS[given["preset"]] | chosen
        self._longest, self._sublinear = int(given["ngram_range"][1]), bool(settings["sublinear_tf"])
        self._columns = {term: column for column, term in enumerate(terms)}
        self._idf = np.asarray(idf, dtype=np.float64)
        self._split = Splitter(given)
        self._rule = word_rule(frozenset(options["stop_words"]), settings["min_length"], None, given["preset"])

    def transform(self, texts: Sequence[str]) -> sp.csr_array:
        """TF-IDF rows of unit length."""
        rows = [self._row(text) for text in texts]
        indices, data = (np.concatenate([row[k] for row in rows]) if rows else np.zeros(0) for k in (0, 1))
        indptr = np.cumsum([0, *(len(columns) for columns, _ in rows)])
        shape = len(texts), len(self._idf)
        return sp.csr_array((data.astype(np.float32), indices.astype(np.int32), indptr), shape=shape)

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        """As `TextVectorizer.locate`."""
        return locate(text, self._split, self._rule, self._columns, self._longest)

    def _row(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Columns and values of a text."""
        words = [form for word in self._split.words(text) for form in self._rule(word)]
        runs = (" ".join(words[i : i + n]) for n in range(1, self._longest + 1) for i in range(len(words) - n + 1))
        counts = Counter(self._columns[run] for run in runs if run in self._columns)
        columns = np.array(sorted(counts), dtype=np.int64)
        times = np.array([counts[column] for column in columns.tolist()], dtype=np.float64)
        values = (1.0 + np.log(times) if self._sublinear else times) * self._idf[columns]
        length = np.sqrt((values**2).sum()) if len(values) else 1.0
        return columns, values.astype(np.float32).astype(np.float64) / length  # rounded as in the kernel
