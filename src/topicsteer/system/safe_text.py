"""Text of other people as HTML: escaped, cut where it is long, with words highlighted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

Span = tuple[int, int, float]

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


def highlighted(text: str, spans: Iterable[Span], limit: int = 700) -> str:
    """HTML of a document with some words marked, stronger ones more; a long one shows its most telling part.

    Parameters
    ----------
    text : str
        The document.
    spans : iterable of (start, end, strength)
        Characters to mark, with a strength from 0 to 1. One that leaves the text or overlaps another is left out.
    limit : int
        Number of characters, or a fifth more if that is the whole text; what was cut is said.

    Examples
    --------
    >>> highlighted("Rain & wind at noon", [(0, 4, 1.0), (7, 11, 0.3)])
    '<mark class="m4">Rain</mark> &amp; <mark class="m2">wind</mark> at noon'
    >>> highlighted("word " * 100, [], limit=9)
    'word word <span class="cut">… 491 more characters</span>'
    """
    marks = _tidy(spans, len(text))
    begin, end = _window(text, marks, limit)
    parts = [f'<span class="cut">{begin:,} characters before …</span> '] if begin else []
    at = begin
    for start, stop, strength in marks:
        if start >= at and stop <= end:
            parts.append(_escape(text[at:start]))
            level = min(max(int(strength * 4) + 1, 1), 4)
            parts.append(f'<mark class="m{level}">{_escape(text[start:stop])}</mark>')
            at = stop
    parts.append(_escape(text[at:end]))
    if end < len(text):
        parts.append(f' <span class="cut">… {len(text) - end:,} more characters</span>')
    return "".join(parts)


def _escape(text: str) -> str:
    return escape(_UNSEEN.sub(_sign, text))


def _sign(unseen: re.Match[str]) -> str:
    """What is shown for a character that would not be seen."""
    return f"⟦U+{ord(unseen[0]):04X}⟧"


def _tidy(spans: Iterable[Span], length: int) -> list[Span]:
    """Spans in order that lie in the text and not in each other, with a strength above 0."""
    tidy: list[Span] = []
    for start, stop, strength in sorted(spans):
        if strength > 0 and (tidy[-1][1] if tidy else 0) <= start < stop <= length:
            tidy.append((start, stop, strength))
    return tidy


def _window(text: str, spans: list[Span], limit: int) -> tuple[int, int]:
    """Begin and end of the part to show: the beginning, or where there is far more to see."""
    if len(text) <= 1.2 * limit:  # a cut that hides a line is worse than the line
        return 0, len(text)
    best = 1.5 * sum(strength for _, stop, strength in spans if stop <= limit)
    begin, total, last = 0, 0.0, 0
    for start, stop, strength in spans:
        total += strength
        while stop - spans[last][0] > 0.8 * limit and spans[last][0] < start:
            total -= spans[last][2]
            last += 1
        if total > best and stop > limit:
            best, begin = total, max(spans[last][0] - limit // 10, 0)
    if begin:
        blank = text.find(" ", begin, begin + limit // 10)
        begin = blank + 1 if blank >= 0 else begin
    end = min(begin + limit, len(text))
    blank = text.rfind(" ", end - limit // 10, end) if end < len(text) else -1
    return begin, blank if blank >= 0 else end
