"""Words of single texts in plain Python: rules for words, places of terms, and TF-IDF rows of a few texts."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.text.languages import paper_words
from topicsteer.text.scripts import PAIRED

# The values of "auto" in each preset.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {"max_features": 10_000, "min_df": 2, "max_df": 0.5, "sublinear_tf": True, "min_length": 2},
    "paper": {"max_features": 2_000, "min_df": 1, "max_df": 1.0, "sublinear_tf": False, "min_length": 3},
}
# A function from a word to its base forms; none for words that are left out.
Rule = Callable[[str], Iterable[str]]

# A word in `locate`.
_WORD = re.compile(r"[^\W_]+")


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


def locate(text: str, rule: Rule, columns: Mapping[str, int], longest: int) -> list[tuple[int, int, int]]:
    """The terms of a text: first character, one after the last, column; terms may overlap."""
    words = [(match.start(), match.end(), form) for match in _WORD.finditer(text) for form in rule(match[0].lower())]
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
    text = (text if text.isascii() else unicodedata.normalize("NFC", text)).lower()
    found: list[str] = []
    word, last = "", ""
    for letter in text:
        part = (letter.isalnum() if digits else letter.isalpha()) or unicodedata.category(letter)[0] == "M"
        part = part and ord(letter) < 0x40000  # there are no letters beyond
        paired = part and pairs and any(low <= ord(letter) <= high for low, high in PAIRED)
        if word and (paired or not part):
            found.append(word)
            word = ""
        if part and not paired:
            word += letter
        if paired and last:
            found.append(last + letter)
        last = letter if paired else ""
    return [*found, word] if word else found


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
        self._split = partial(words_of, digits=given["preset"] != "paper", pairs=not given["segmented"])
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
        return locate(text, self._rule, self._columns, self._longest)

    def _row(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Columns and values of a text."""
        words = [form for word in self._split(text) for form in self._rule(word)]
        runs = (" ".join(words[i : i + n]) for n in range(1, self._longest + 1) for i in range(len(words) - n + 1))
        counts = Counter(self._columns[run] for run in runs if run in self._columns)
        columns = np.array(sorted(counts), dtype=np.int64)
        times = np.array([counts[column] for column in columns.tolist()], dtype=np.float64)
        values = (1.0 + np.log(times) if self._sublinear else times) * self._idf[columns]
        length = np.sqrt((values**2).sum()) if len(values) else 1.0
        return columns, values.astype(np.float32).astype(np.float64) / length  # rounded as in the kernel
