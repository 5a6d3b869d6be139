"""Languages: stop words, recognition, writing systems without spaces, and their segmenters."""

import os
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import permutations
from pathlib import Path

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


def paired(text: str) -> bool:
    """Whether all characters of a text belong to a writing system that is split into pairs."""
    return all(any(first <= ord(letter) <= last for first, last in PAIRED) for letter in text)


def join_pairs(terms: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Terms, with overlapping pairs of characters joined to the words that the texts have.

    Two terms are joined if at least half of the occurrences of the rarer one are part of the whole.

    Examples
    --------
    >>> join_pairs(["机器", "学习", "tea", "器学"], ["机器学习"])
    ['机器学习', 'tea']
    >>> join_pairs(["中国", "国家"], ["中国的国家"])
    ['中国', '国家']
    """

    def many(term: str) -> int:
        return sum(text.count(term) for text in texts)

    found = list(terms)
    while True:
        for a, b in permutations(range(len(found)), 2):
            whole = found[a] + found[b][1:]
            overlap = found[a][-1:] == found[b][:1] and paired(whole)
            if overlap and 2 * many(whole) >= min(many(found[a]), many(found[b])) > 0:
                found[min(a, b)] = whole
                del found[max(a, b)]
                break
        else:
            return found


# From a run of Chinese or Japanese characters to its words, which together are the run.
Segment = Callable[[str], list[str]]

# Two or more characters, among them the iteration mark 々.
_RUN = re.compile("[々" + "".join(f"{chr(first)}-{chr(last)}" for first, last in PAIRED) + "]{2,}")


def _jieba() -> Segment:
    """Chinese words by jieba, without its cache in a folder that other users can write to."""
    with warnings.catch_warnings(action="ignore"):  # of its own imports
        import jieba

    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return lambda run: list(tokenizer.cut(run))


def _fugashi() -> Segment:
    """Japanese words by fugashi, with the dictionary unidic-lite."""
    import fugashi
    import unidic_lite

    tagger = fugashi.Tagger(f'-d "{unidic_lite.DICDIR}"')
    return lambda run: [word.surface for word in tagger(run)]


# Segmenters by name, and the packages that they need.
SEGMENTERS: dict[str, tuple[Callable[[], Segment], str]] = {
    "jieba": (_jieba, "jieba"),
    "fugashi": (_fugashi, "fugashi unidic-lite"),
}


@cache
def segmenter_of(name: str) -> Segment:
    """A segmenter by its name.

    Raises
    ------
    ValueError
        If there is no such segmenter.
    ImportError
        If its package is not installed.
    """
    if name not in SEGMENTERS:
        raise ValueError(
            f"there is no segmenter {name!r}: use jieba for Chinese or fugashi for Japanese."
            " For another tool, put spaces between the words yourself, and set segmented=True."
        )
    make, packages = SEGMENTERS[name]
    try:
        return make()
    except ImportError as error:
        raise ImportError(
            f"the segmenter {name} is not installed ({error}): pip install {packages}", name=error.name
        ) from error


def pieces(text: str, segment: Segment) -> Iterator[str]:
    """The text in pieces: words of Chinese and Japanese runs, and all between the runs as it is."""
    at = 0
    for run in _RUN.finditer(text):
        yield from filter(None, (text[at : run.start()], *segment(run[0])))
        at = run.end()
    yield text[at:]


def spaced(text: str, segment: Segment) -> str:
    """The text with spaces between the words of its Chinese and Japanese runs.

    Examples
    --------
    >>> spaced("tea 緑茶です 3", lambda run: [run[:2], run[2:]])
    'tea  緑茶 です  3'
    """
    return text if text.isascii() else " ".join(pieces(text, segment))


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
    >>> from topicsteer.text.languages import detect_languages
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
