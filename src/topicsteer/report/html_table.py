"""Tables of the report: values as people write them, bars, and what the script needs to sort."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from topicsteer.system.safe_text import shown

Table = Mapping[str, Sequence[Any]]


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
    head = "".join(f'<th scope="col"{_n(numeric[name])}>{shown(words(name), 60)}</th>' for name in table)
    rows = []
    for i in range(len(next(iter(table.values()), ()))):
        top = max((score(table[name][i]) for name in best), default=math.inf)
        cells = []
        for name, values in table.items():
            text = ready[name][i] if ready and name in ready else cell(values[i], percent=_is_share(name))
            if name in best and -math.inf < top == score(values[i]):
                text = f"<b>{text}</b>"
            sort = f' data-value="{float(values[i])!r}"' if _is_number(values[i]) else ""
            tag, scope = ("th", ' scope="row"') if name == named else ("td", "")
            cells.append(f"<{tag}{scope}{_n(numeric[name])}{sort}>{text}</{tag}>")
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
    """A bar and its number, which is as wide in each row, so that bars line up."""
    return f'{bar(strength)}<span class="measured">{text}</span>'


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


def _is_share(column: object) -> bool:
    return bool(re.search("share|obeyed|from labels", words(column)))


def _n(numeric: bool) -> str:
    return ' class="n"' if numeric else ""
