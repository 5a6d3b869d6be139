"""Writing systems that put no spaces between words, by their ranges of code points (first, last)."""

# Cut into pairs of characters: kana, Chinese characters, their compatibility forms and the supplementary planes.
PAIRED = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
# Searched as written: these, Thai and Lao, and what else stands between the radicals and the end of Hangul.
SEARCHED_AS_WRITTEN = ((0x0E00, 0x0EFF), (0x2E80, 0xD7AF), *PAIRED)


def without_spaces(text: str) -> bool:
    """Tell whether a text has characters of a writing system in which a search for words would find too little.

    Examples
    --------
    >>> without_spaces("tea"), without_spaces("お茶")
    (False, True)
    """
    return any(first <= ord(letter) <= last for letter in text for first, last in SEARCHED_AS_WRITTEN)
