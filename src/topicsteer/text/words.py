"""Words: stop words, languages, and TF-IDF rows of a few texts.

Plain Python finds the words of single texts here. `topicsteer.text.scanner` does so in many texts, and both give
the same words and numbers, bit for bit.
"""

import math
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.system.values import composed

# Text that is split into pairs of characters: kana and Chinese characters, with their compatibility forms and
# supplementary planes.
PAIRED = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
# Text that is searched as a plain string: Thai, Lao, the paired characters, and all from the radicals to the end of
# Hangul.
SEARCHED_AS_WRITTEN = ((0x0E00, 0x0EFF), (0x2E80, 0xD7AF), *PAIRED)


def without_spaces(text: str) -> bool:
    """Whether a text has characters of a writing system in which a search for whole words would miss matches.

    Examples
    --------
    >>> without_spaces("tea"), without_spaces("お茶")
    (False, True)
    """
    return any(first <= ord(letter) <= last for letter in text for first, last in SEARCHED_AS_WRITTEN)


# Folder of the word lists.
_FOLDER = files("topicsteer.text").joinpath("stop_words")
# Names of languages by code.
LANGUAGES: dict[str, str] = tomllib.loads(_FOLDER.joinpath("languages.toml").read_text("utf-8"))


@cache
def _words(code: str) -> frozenset[str]:
    """Stop words of a language; apostrophes split words, so "don't" is listed as don and t."""
    return frozenset(_FOLDER.joinpath(f"{LANGUAGES[code]}.txt").read_text("utf-8").split())


def stop_words(*languages: str) -> frozenset[str]:
    """Words to leave out of topics, in the named languages.

    Parameters
    ----------
    *languages : str
        English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, Swedish or Polish, by name or by
        code: en, de, fr, es, it, pt, nl, ru, sv, pl.

    Returns
    -------
    frozenset of str

    Examples
    --------
    >>> from topicsteer.text import stop_words
    >>> sorted(stop_words("english", "de") & {"the", "und", "topic"})
    ['the', 'und']
    """
    named = {name: code for code, name in LANGUAGES.items()}
    codes = [named.get(language.lower(), language.lower()) for language in languages]
    for code, language in zip(codes, languages, strict=True):
        if code not in LANGUAGES:
            raise ValueError(
                f"no stop words for language {language!r}: expected one of {', '.join(LANGUAGES)}"
                f" or {', '.join(named)}. For other languages, pass a set of words."
            )
    return frozenset().union(*map(_words, codes))


def detect_languages(counts: Mapping[str, int], *, total: int | None = None, share: float = 0.02) -> list[str]:
    """Recognise languages by their stop words, the most frequent language first.

    At least three different stop words must occur, and together they must make up a share of all words. A word counts
    only for the first language that has it: the English *in* and *so* do not make a text German.

    Parameters
    ----------
    counts : mapping of str to int
        Number of occurrences of each word in the corpus; stop words are enough.
    total : int, optional
        Number of occurrences of all words. Default: the sum of ``counts``.
    share : float
        Minimum share of all occurrences.

    Returns
    -------
    list of str
        Language codes; empty if no language was recognised.

    Examples
    --------
    >>> from topicsteer.text.words import detect_languages
    >>> detect_languages({"the": 60, "of": 30, "in": 20, "so": 5, "topic": 100})
    ['en']
    """
    least = share * (sum(counts.values()) if total is None else total)
    remaining = {code: _words(code) for code in LANGUAGES}
    found: list[str] = []
    while remaining:
        totals = {code: sum(counts.get(word, 0) for word in words) for code, words in remaining.items()}
        best = max(totals, key=totals.__getitem__)
        if totals[best] < least or sum(word in counts for word in remaining[best]) < 3:
            break
        found.append(best)
        taken = remaining.pop(best)
        remaining = {code: words - taken for code, words in remaining.items()}
    return found


def all_stop_words() -> frozenset[str]:
    """The stop words of all languages."""
    return frozenset().union(*map(_words, LANGUAGES))


# The values of "auto".
AUTO: dict[str, Any] = {"max_features": 10_000, "min_df": 2, "max_df": 0.5, "sublinear_tf": True, "min_length": 2}
# Weight of a weak stop word, and a limit between it and the weights of other terms, which are 1 or more.
WEAK_IDF, WEAK_BELOW = 1e-6, 1e-3
# A function from a word to its base forms; none for words that are left out.
Rule = Callable[[str], Iterable[str]]
# A word of a text: first character, one after the last, and the word.
Place = tuple[int, int, str]

# A character with the marks that belong to it.
_CHARACTER = re.compile(r"(?s).[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u0655\u093c\u3099\u309a]*")


def word_rule(leave_out: frozenset[str], shortest: int, lemmatizer: Callable[[str], str] | None) -> Rule:
    """The rule of a vectoriser: no numbers, no stop words, and no words of fewer than ``shortest`` letters."""
    lemma: Callable[[str], str] = lemmatizer or str

    def rule(word: str) -> Iterable[str]:
        if word.isdecimal() or word in leave_out:
            return ()
        return (form for form in lemma(word).split() if len(form) >= shortest and form not in leave_out)

    return rule


def locate(text: str, rule: Rule, columns: Mapping[str, int], *, pairs: bool) -> list[tuple[int, int, int]]:
    """The terms of a text: first character, one after the last, column."""
    lower, places = _aligned(text)
    words = ((start, end, form) for start, end, word in places_of(lower, pairs=pairs) for form in rule(word))
    return [(places[start], places[end], columns[form]) for start, end, form in words if form in columns]


def words_of(text: str, *, pairs: bool) -> list[str]:
    """The words of a text, as `topicsteer.text.scanner.split` finds them in many.

    Examples
    --------
    >>> words_of("Tea, 2 cups: お茶だ", pairs=True)
    ['tea', '2', 'cups', 'お茶', '茶だ']
    """
    return [word for _, _, word in places_of(normal(text), pairs=pairs)]


def places_of(text: str, *, pairs: bool) -> Iterator[Place]:
    """The words of a text in normal form, with their places."""
    begin, last = -1, False
    for at, letter in enumerate(text):
        part = letter.isalnum() or unicodedata.category(letter)[0] == "M"
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


def normal(text: str) -> str:
    """The text in lower case, with composed characters."""
    return composed(text).lower()


def _aligned(text: str) -> tuple[str, Sequence[int]]:
    """The normal form of a text, and the place in the text of each of its characters and of its end."""
    whole = normal(text)
    if len(whole) == len(text):
        return whole, range(len(text) + 1)
    parts = [(match.start(), normal(match[0])) for match in _CHARACTER.finditer(text)]
    starts = [start for start, part in parts for _ in part]
    return "".join(part for _, part in parts), [*starts, len(text)]


def is_weak(idf: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each term is a weak stop word, by the weights of the terms.

    Examples
    --------
    >>> is_weak(np.array([1.7, WEAK_IDF])).tolist()
    [False, True]
    """
    return idf < WEAK_BELOW


def without_weak(X: sp.csr_array, idf: NDArray[np.float64]) -> sp.csr_array:
    """Rows without the entries of weak stop words; the columns stay."""
    X = X.copy()
    X.data[is_weak(idf)[X.indices]] = 0
    X.eliminate_zeros()
    return X


def few_rows(
    texts: Iterable[str],
    rule: Rule,
    columns: Mapping[str, int],
    idf: NDArray[np.float64],
    *,
    sublinear: bool,
    pairs: bool,
) -> sp.csr_matrix:
    """TF-IDF rows of unit length of a few texts; no compiled kernel has to be loaded for them.

    Parameters
    ----------
    texts : iterable of str
    rule : function
        From a word to its base forms.
    columns : mapping of str to int
        Column of each term.
    idf : array (n_terms,)
        Weight of each term. Weak stop words do not count towards the length of a row.
    sublinear : bool
        Whether a count c becomes 1 + log c.
    pairs : bool
        Whether Chinese and Japanese text is split into pairs of characters.

    Returns
    -------
    csr_matrix of float32, shape (n_texts, n_terms)
    """
    indices: list[int] = []
    data: list[float] = []
    indptr = [0]
    forms = cache(lambda word: tuple(rule(word)))
    weak = set(np.flatnonzero(is_weak(idf)).tolist())
    for text in texts:
        found = words_of(text, pairs=pairs)
        words = [form for word in found for form in forms(word)] + [word for word in found if columns.get(word) in weak]
        counts = Counter(columns[word] for word in words if word in columns)
        own = sorted(counts)
        times = [1.0 + math.log(counts[column]) if sublinear else float(counts[column]) for column in own]
        values = [time * float(idf[column]) for time, column in zip(times, own, strict=True)]
        square = 0.0
        for value, column in zip(values, own, strict=True):  # as in the kernel; `sum` would be more exact
            if column not in weak:
                square += value * value
        if not square:
            own, values = [], []
        length = math.sqrt(square)
        indices += own
        data += [float(np.float32(value)) / length for value in values]  # rounded as in the kernel
        indptr.append(len(indices))
    arrays = np.array(data, np.float32), np.array(indices, np.int32), np.array(indptr, np.int32)
    return sp.csr_matrix(arrays, shape=(len(indptr) - 1, len(idf)))
