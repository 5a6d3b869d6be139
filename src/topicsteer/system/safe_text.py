"""Make text from outside safe to show: visible, escaped and not too long."""

import re
from html import escape

# Characters that are invisible, or that reorder or break a page: controls, direction overrides, lone surrogates.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufdd0-\ufdef\ufeff\ufffe\uffff\ud800-\udfff]"
)


def shown(value: object, limit: int = 200) -> str:
    """HTML that displays any value as plain text; a shortened value ends in ….

    Parameters
    ----------
    value : object
        The value to display.
    limit : int
        Maximum number of characters.

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
    """A value as text without invisible characters, shortened but not escaped.

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
    """
    text = _INVISIBLE.sub(_code_point, str(value)[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def escaped(text: str) -> str:
    """HTML that displays a whole text, with its invisible characters as code points."""
    return escape(_INVISIBLE.sub(_code_point, text))


def _code_point(invisible: re.Match[str]) -> str:
    """Return the code point of an invisible character."""
    return f"⟦U+{ord(invisible[0]):04X}⟧"
