"""Stop words by language, which of these languages a corpus is in, and the base forms of the paper."""

import os
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

_FOLDER = files("topicsteer.text").joinpath("stop_words")
_LANGUAGES: dict[str, str] = tomllib.loads(_FOLDER.joinpath("languages.toml").read_text("utf-8"))  # names by code


@cache
def _words(code: str) -> frozenset[str]:
    """The list of a language, as its words are spelt once apostrophes split a token: don and t for "don't"."""
    return frozenset(_FOLDER.joinpath(f"{_LANGUAGES[code]}.txt").read_text("utf-8").split())


def stop_words(*languages: str) -> frozenset[str]:
    """Words to leave out of topics, in the named languages.

    Parameters
    ----------
    *languages : str
        English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, Swedish or Polish, by these names
        or by their codes en, de, fr, es, it, pt, nl, ru, sv, pl.

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
                f" or {', '.join(named)}. For others give the words themselves, as a set."
            )
    return frozenset().union(*map(_words, codes))


def detect_languages(counts: Mapping[str, int], *, share: float = 0.02) -> list[str]:
    """Languages whose stop words, three at least, make up a share of all words, the most frequent first.

    A word counts for the first language that has it: the English *in* and *so* do not make a text German.

    Parameters
    ----------
    counts : mapping of str to int
        How often each word occurs in the corpus.
    share : float
        The least share of all occurrences.

    Returns
    -------
    list of str
        Codes of languages, empty if none was recognised.

    Examples
    --------
    >>> from topicsteer.text.languages import detect_languages
    >>> detect_languages({"the": 60, "of": 30, "in": 20, "so": 5, "topic": 100})
    ['en']
    """
    least = share * sum(counts.values())
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


@cache
def paper_words() -> tuple[Callable[[str], str], frozenset[str]]:
    """What the TS-NMF paper did to words, by NLTK: base forms of the parts of a word, and the stop words.

    Applied to each distinct word, not to the text: of letters alone the Treebank tokenizer parts only contractions
    such as *cannot*, one word at a time, so the result is the same.
    """
    try:
        import nltk
        from nltk.corpus import stopwords, wordnet
        from nltk.stem import WordNetLemmatizer
        from nltk.tokenize import TreebankWordTokenizer
    except ImportError as error:
        raise ImportError('preset="paper" needs NLTK: pip install "topicsteer[paper]"') from error
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
        contracted = any(pattern.search(word) for pattern in treebank.CONTRACTIONS2)  # a fiftieth of the time
        return " ".join(map(lemma, treebank.tokenize(word) if contracted else [word]))

    return lemmas, grammar
