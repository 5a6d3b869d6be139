"""Text of other people, made visible: escaped, and cut where it is long."""

import re
from html import escape

# What would not be seen, or would reorder or break the page: controls, overrides of direction, lone surrogates.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufdd0-\ufdef\ufeff\ufffe\uffff\ud800-\udfff]"
)


def shown(value: object, limit: int = 200) -> str:
    """HTML that displays a value as plain text, whatever it holds, and ends in … where it was cut.

    Parameters
    ----------
    value : object
        What to display.
    limit : int
        Greatest number of characters.

    Examples
    --------
    >>> shown("<script>alert(1)</script>")
    '&lt;script&gt;alert(1)&lt;/script&gt;'
    >>> shown("a very long name", limit=7)
    'a very…'
    >>> shown(chr(0x202E) + "reversed")
    '⟦U+202E⟧reversed'
    """
    return escape(visible(value, limit))


def visible(value: object, limit: int = 200) -> str:
    """A value as text in which nothing is hidden and nothing is too long, not yet escaped.

    Parameters
    ----------
    value : object
        What to display.
    limit : int
        Greatest number of characters.

    Examples
    --------
    >>> visible("a" + chr(0) + "b <c>")
    'a⟦U+0000⟧b <c>'
    """
    text = _UNSEEN.sub(_sign, str(value)[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def escaped(text: str) -> str:
    """HTML that displays all of a text, with a sign for what would not be seen."""
    return escape(_UNSEEN.sub(_sign, text))


def _sign(unseen: re.Match[str]) -> str:
    """What is shown for a character that would not be seen."""
    return f"⟦U+{ord(unseen[0]):04X}⟧"
