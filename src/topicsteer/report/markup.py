"""Documents as HTML, cut where they are long, with words highlighted."""

from __future__ import annotations

from collections.abc import Iterable

from topicsteer.system.safe_text import escaped

Span = tuple[int, int, float]


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
            parts.append(escaped(text[at:start]))
            level = min(max(int(strength * 4) + 1, 1), 4)
            parts.append(f'<mark class="m{level}">{escaped(text[start:stop])}</mark>')
            at = stop
    parts.append(escaped(text[at:end]))
    if end < len(text):
        parts.append(f' <span class="cut">… {len(text) - end:,} more characters</span>')
    return "".join(parts)


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
