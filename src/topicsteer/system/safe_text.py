"""Make text from outside safe to show: no hidden characters, and not too long."""

import re

# Characters that are invisible, or that reorder or break a page: controls, direction overrides, lone surrogates.
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufdd0-\ufdef\ufeff\ufffe\uffff\ud800-\udfff]"
)


def visible(value: object, limit: int = 200) -> str:
    """A value as text without hidden characters, shortened to end in … if it is too long. It is not escaped.

    Parameters
    ----------
    value : object
        The value to display.
    limit : int
        Maximum number of characters.

    Examples
    --------
    >>> visible("a" + chr(0) + "b <c>")
    'a⟦U+0000⟧b <c>'
    >>> visible("a very long name", limit=7)
    'a very…'
    """
    text = revealed(str(value)[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def revealed(text: str) -> str:
    """The whole text, with each hidden character replaced by its code point.

    Examples
    --------
    >>> revealed(chr(0x202E) + "reversed")
    '⟦U+202E⟧reversed'
    """
    return _HIDDEN.sub(lambda hidden: f"⟦U+{ord(hidden[0]):04X}⟧", text)
