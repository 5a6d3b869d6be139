"""Pieces of HTML: tables with values as people write them, bars, documents with words highlighted."""

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from numbers import Integral, Real
from typing import Any

import numpy as np

from topicsteer.system.safe_text import escaped, shown

Table = Mapping[str, Sequence[Any]]
Span = tuple[int, int, float]
SHARES = re.compile("share|obeyed|from labels")  # in the names of columns whose numbers are shown in percent


def resource(name: str) -> str:
    """A file that the report is made with."""
    return files("topicsteer.report").joinpath(name).read_text("utf-8")


@cache
def passages() -> dict[str, Any]:
    """Passages of the report in which nothing changes."""
    return tomllib.loads(resource("passages.toml"))


def render_table(
    table: Table, key: str, caption: str, *, best: Sequence[str] = (), ready: Mapping[str, Sequence[str]] | None = None
) -> str:
    """A table as HTML.

    Parameters
    ----------
    table : mapping of str to sequence
        Column -> values. The first column that is no number names the rows.
    key, caption : str
        The table's id, and what it is for those who cannot see it.
    best : sequence of str
        Columns of scores; the best of each row is bold.
    ready : mapping of str to sequence of str, optional
        Columns whose cells are HTML already; `table` has what they sort by.

    Examples
    --------
    >>> page = render_table({"topic": ["tea & cake"], "obeyed": [1.0]}, "t", "Labels")
    >>> "tea &amp; cake" in page, '<td class="n" data-value="1.0">100.0%</td>' in page
    (True, True)
    """
    numeric = {name: all(v is None or _is_number(v) for v in values) for name, values in table.items()}
    named = next((name for name in table if not numeric[name]), None)
    mark = {name: ' class="n"' if numeric[name] else "" for name in table}
    head = "".join(f'<th scope="col"{mark[name]}>{shown(words(name), 60)}</th>' for name in table)
    rows = []
    for i in range(len(next(iter(table.values()), ()))):
        top = max((score(table[name][i]) for name in best), default=math.inf)
        cells = []
        for name, values in table.items():
            percent = SHARES.search(words(name)) is not None
            text = ready[name][i] if ready and name in ready else cell(values[i], percent=percent)
            if name in best and -math.inf < top == score(values[i]):
                text = f"<b>{text}</b>"
            sort = f' data-value="{float(values[i])!r}"' if _is_number(values[i]) else ""
            tag, scope = ("th", ' scope="row"') if name == named else ("td", "")
            cells.append(f"<{tag}{scope}{mark[name]}{sort}>{text}</{tag}>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(rows)
    return (
        f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0"><table id="{key}">'
        f'<caption class="unseen">{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def cell(value: object, *, percent: bool = False) -> str:
    """A value of a table, as people write it.

    Examples
    --------
    >>> [cell(value) for value in (12345, 0.25, None)]
    ['12,345', '0.250', '–']
    """
    if isinstance(value, bool | np.bool_):
        return '<span class="yes">yes</span>' if value else '<span class="no">no</span>'
    if value is None or (isinstance(value, Real) and math.isnan(value)):
        return "–"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        number = float(value)
        return f"{number:.1%}" if percent else f"{number:,.3f}" if abs(number) < 100 else f"{number:,.0f}"
    return f"<bdi>{shown(value)}</bdi>"


def bar(strength: float) -> str:
    """A bar from 0 to 1 times its full length."""
    return (
        '<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{100 * strength:.1f}" height="1"/></svg>'
    )


def measured(strength: float, text: str) -> str:
    """A bar and its number, which is as wide in each row, so that bars line up; no bar where there is no number."""
    return f'{bar(strength)}<span class="measured">{text}</span>' if math.isfinite(strength) else text


def kind(known: bool) -> str:
    """A known or a free topic, told apart by word, shape and colour."""
    return '<span class="kind known">known</span>' if known else '<span class="kind free">free</span>'


def words(name: object) -> str:
    """A column's or an option's name as words."""
    return str(name).replace("_", " ")


def score(value: object) -> float:
    """A score as a number; what is missing is below all others."""
    return float(value) if isinstance(value, Real) and not math.isnan(value) else -math.inf


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


# --- documents ---


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
