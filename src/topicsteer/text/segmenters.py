"""Segmenters: packages that divide Chinese and Japanese text, which has no spaces, into words."""

import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache

from topicsteer.text.scripts import PAIRED

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
