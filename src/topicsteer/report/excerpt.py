"""The part of a document that a report shows, with its strongest words marked."""

from collections.abc import Iterable
from dataclasses import dataclass

from topicsteer.analysis.explain import merged

# First character, one after the last, strength from 0 to 1.
Span = tuple[int, int, float]


@dataclass(frozen=True)
class Excerpt:
    """Pieces of a text in order.

    Parameters
    ----------
    before, after : int
        Number of characters that were left out.
    pieces : tuple of (str, int)
        Text, and how strongly it is marked: 0 (not at all) to 4.
    """

    before: int
    pieces: tuple[tuple[str, int], ...]
    after: int


def excerpt(text: str, spans: Iterable[Span], limit: int = 700) -> Excerpt:
    """Mark some words of a document; a long document is cut to the part with the strongest ones.

    Parameters
    ----------
    text : str
        The document.
    spans : iterable of (start, end, strength)
        Characters to mark, with a strength from 0 to 1. A span that leaves the text is ignored.
        Overlapping ones are merged.
    limit : int
        Number of characters. A text that is at most a fifth longer is not cut.

    Examples
    --------
    >>> excerpt("Rain & wind at noon", [(0, 4, 1.0), (7, 11, 0.3)]).pieces
    (('Rain', 4), (' & ', 0), ('wind', 2), (' at noon', 0))
    >>> excerpt("word " * 100, [], limit=9)
    Excerpt(before=0, pieces=(('word word', 0),), after=491)
    """
    marks = _tidy(spans, len(text))
    begin, end = _window(text, marks, limit)
    pieces, at = [], begin
    for start, stop, strength in marks:
        if start >= at and stop <= end:
            pieces += [(text[at:start], 0), (text[start:stop], min(max(int(strength * 4) + 1, 1), 4))]
            at = stop
    pieces.append((text[at:end], 0))
    return Excerpt(begin, tuple(piece for piece in pieces if piece[0]), len(text) - end)


def _tidy(spans: Iterable[Span], length: int) -> list[Span]:
    """Spans in order, inside the text, with a strength above 0; overlapping ones are merged."""
    marks = merged(((start, stop, strength, 0) for start, stop, strength in spans if strength > 0), length)
    return [(start, stop, strength) for start, stop, strength, _ in marks]


def _window(text: str, spans: list[Span], limit: int) -> tuple[int, int]:
    """Begin and end of the part to show: the beginning, or a part with far stronger marks."""
    if len(text) <= 1.2 * limit:  # a note on a hidden line is worse than the line
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
