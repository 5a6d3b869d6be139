"""Writing systems without spaces between words, as ranges of code points (first, last)."""

from collections.abc import Sequence
from itertools import permutations

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
