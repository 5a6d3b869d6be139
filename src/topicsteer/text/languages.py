"""Stop words by language, recognition of languages, and the word forms of the paper."""

import os
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

# Folder of the word lists.
_FOLDER = files("topicsteer.text").joinpath("stop_words")
# Names of languages by code.
_LANGUAGES: dict[str, str] = tomllib.loads(_FOLDER.joinpath("languages.toml").read_text("utf-8"))


@cache
def _words(code: str) -> frozenset[str]:
    """Stop words of a language; apostrophes split words, so "don't" is listed as don and t."""
    return frozenset(_FOLDER.joinpath(f"{_LANGUAGES[code]}.txt").read_text("utf-8").split())


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
    named = {name: code for code, name in _LANGUAGES.items()}
    codes = [named.get(language.lower(), language.lower()) for language in languages]
    for code, language in zip(codes, languages, strict=True):
        if code not in _LANGUAGES:
            raise ValueError(
                f"no stop words for language {language!r}: expected one of {', '.join(_LANGUAGES)}"
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
    >>> from topicsteer.text.languages import detect_languages
    >>> detect_languages({"the": 60, "of": 30, "in": 20, "so": 5, "topic": 100})
    ['en']
    """
    least = share * (sum(counts.values()) if total is None else total)
    remaining = {code: _words(code) for code in _LANGUAGES}
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
    return frozenset().union(*map(_words, _LANGUAGES))


@cache
def paper_words() -> tuple[Callable[[str], str], frozenset[str]]:
    """The word processing of the TS-NMF paper, from NLTK: a function to lemmas, and the stop words.

    The function is applied to each distinct word, not to whole texts. The result is the same: in text of letters only,
    the Treebank tokenizer splits nothing but contractions such as *cannot*, each on its own.
    """
    try:
        import nltk
        from nltk.corpus import stopwords, wordnet
        from nltk.stem import WordNetLemmatizer
        from nltk.tokenize import TreebankWordTokenizer
    except ImportError as error:
        raise ImportError('preset="paper" needs NLTK: pip install nltk') from error
    if folder := os.environ.get("TOPICSTEER_DATA"):
        nltk.data.path.append(str(Path(folder) / "nltk_data"))
    try:
        wordnet.ensure_loaded()
        grammar = frozenset(stopwords.words("english"))
    except LookupError as error:
        raise LookupError(
            'preset="paper" needs the NLTK data "wordnet" and "stopwords": run `python -m nltk.downloader wordnet'
            " stopwords`, or set NLTK_DATA to a folder that holds them."
        ) from error
    treebank, lemma = TreebankWordTokenizer(), WordNetLemmatizer().lemmatize

    def lemmas(word: str) -> str:
        # This check takes a fiftieth of the time of the tokenizer.
        contracted = any(pattern.search(word) for pattern in treebank.CONTRACTIONS2)
        return " ".join(map(lemma, treebank.tokenize(word) if contracted else [word]))

    return lemmas, grammar
