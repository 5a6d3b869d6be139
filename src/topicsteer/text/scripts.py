"""Writing systems without spaces between words, as ranges of code points (first, last)."""

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
