"""Words that carry grammar and no subject, by language, and which of these languages a corpus is in."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_LANGUAGES = {
    "en": "english",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "pt": "portuguese",
    "nl": "dutch",
    "ru": "russian",
    "sv": "swedish",
    "pl": "polish",
}


@cache
def _words(code: str) -> frozenset[str]:
    """The list of a language, as its words are spelt once apostrophes split a token: don and t for "don't"."""
    file = files("topicsteer.text").joinpath("stop_words", f"{_LANGUAGES[code]}.txt")
    return frozenset(file.read_text(encoding="utf-8").split())


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
