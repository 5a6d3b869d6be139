"""Tables of results as a terminal of 80 columns shows them: files have all columns and rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from topicsteer.analysis.columns import MISSING, Column, missing, typed
from topicsteer.system.values import ALL

Values = dict[str, list[Any]]
# Heading of an interval.
INTERVAL = "95 % interval"
# Rows of a long list.
LONGEST_LIST = 20
# Room for terms below which a table of topics is not cut to one line per topic.
LEAST_TERMS = 16
# Room for terms, some three of them, below which the kind of a topic has no column of its own.
SOME_TERMS = 32


def shares(table: Values) -> Values:
    """Shares, differences or a trend: the interval in one column, and each topic named once.

    Groups of a topic without an interval are left out, and so are the columns for experts. Differences and changes are
    in percentage points.

    Examples
    --------
    >>> table = {"topic": ["tea", "tea"], "group": ["(all)", "north"], "share": [0.2, 0.3], "low": [0.1, 0.2]}
    >>> shares(table | {"high": [0.3, 0.4], "plain": [0.1, 0.1], "worth": [2.0, 2.0]})["95 % interval"]
    ['10.0% to 30.0%', '20.0% to 40.0%']
    >>> shares({"topic": ["tea"], "per": ["month"], "change": [0.02], "low": [-0.01], "high": [0.05]})
    {'topic': ['tea'], 'per': ['month'], 'change in points': ['+2.0'], '95 % interval': ['-1.0 to +5.0']}
    """
    low, groups = table["low"], table.get("group", [ALL] * len(table["low"]))
    none_at_all = all(map(missing, low))
    kept = [row for row, group in enumerate(groups) if none_at_all or group == ALL or not missing(low[row])]
    table = {name: [values[row] for row in kept] for name, values in table.items() if name not in ("plain", "worth")}
    found: Values = {}
    for name, values in table.items():
        if name == "low":
            cells = zip(values, table["high"], strict=True)
            in_points = "share" not in table
            found[INTERVAL] = [
                spread(100 * low, 100 * high, "+.1f") if in_points else spread(low, high, ".1%") for low, high in cells
            ]
        elif name in ("difference", "change"):
            found[f"{name} in points"] = [f"{100 * value:+.1f}" for value in values]
        elif name == "topic":
            found[name] = [once if row == 0 or once != values[row - 1] else "" for row, once in enumerate(values)]
        elif name != "high" and not (name in ("group", "documents") and set(table.get("group", [])) == {ALL}):
            found[name] = values
    return found


def comparisons(table: Values) -> Iterator[tuple[str, Values]]:
    """A title and a table for each pair of coders, with each measure and its interval in one column."""
    pairs = list(zip(table["coder"], table["against"], strict=True))
    for coder, against in dict.fromkeys(pairs):
        rows = [row for row, pair in enumerate(pairs) if pair == (coder, against)]
        found: Values = {name: [table[name][row] for row in rows] for name in ("topic", "labels")}
        for measure in ("precision", "recall", "kappa"):
            cells = ([table[f"{measure}{end}"][row] for end in ("", "_low", "_high")] for row in rows)
            found[measure] = [
                spread(value, value, ".2f", same=True) + ("" if missing(low) else f" ({spread(low, high, '.2f', '–')})")
                for value, low, high in cells
            ]
        yield f"{coder} against {against}, with 95 % intervals", found


def changes(table: Values) -> Values:
    """Topics that an update changed: values before and now in one column each.

    Examples
    --------
    >>> table = {"topic": ["tea"], "share": [0.2], "share_before": [0.1], "labelled": [3], "labelled_before": [3]}
    >>> changes(table | {"came": ["pot"], "went": [""]})
    {'topic': ['tea'], 'share': ['10.0% → 20.0%'], 'labelled': ['3'], 'new terms': ['pot'], 'former terms': ['']}
    """
    found: Values = {"topic": table["topic"]}
    for name, digits in (("share", ".1%"), ("labelled", ",")):
        pairs = zip(table[f"{name}_before"], table[name], strict=True)
        found[name] = [spread(before, now, digits, " → ", same=True) for before, now in pairs]
    return found | {"new terms": table["came"], "former terms": table["went"]}


def one_line_each(table: Values, columns: Sequence[Column], width: int) -> Values:
    """A table of topics with one line per topic: only the first terms that fit a terminal of this width.

    If there is little room, the column of labelled documents has the kinds too. If names leave too little room, nothing
    is cut.

    Examples
    --------
    >>> one_line_each({"topic": ["tea"], "terms": ["cup, leaves, kettle, pot"]}, [], 31)["terms"]
    ['cup, leaves, kettle']
    """
    room = _room(table, columns, width)
    if room < SOME_TERMS and "kind" in table:
        pairs = zip(table["kind"], table["labelled"], strict=True)
        table = table | {"labelled": [kind if kind == "free" else count for kind, count in pairs]}
        del table["kind"]
        room = _room(table, columns, width)
    if room < LEAST_TERMS:
        return table
    return table | {"terms": [_first_terms(terms, room) for terms in table["terms"]]}


def _room(table: Values, columns: Sequence[Column], width: int) -> int:
    """Characters that the other columns leave for terms."""
    shown = [column for column in typed(table, columns) if column.name != "terms"]
    own = (max(map(cell_len, (c.name, *map(c.format, table[c.name])))) for c in shown)
    return width - sum(used + 3 for used in own) - 4


def _first_terms(terms: str, room: int) -> str:
    while cell_len(terms) > room and ", " in terms:
        terms = terms.rpartition(", ")[0]
    return terms


def only(*names: str) -> Callable[[Values], Values]:
    """A function that keeps some columns, in this order."""
    return lambda table: {name: table[name] for name in names if name in table}


def spread(low: Any, high: Any, digits: str, between: str = " to ", same: bool = False) -> str:
    """Two numbers in one cell; ``same`` writes equal ones once."""
    if missing(low) and missing(high):
        return MISSING
    ends = [MISSING if missing(value) else format(value, digits) for value in (low, high)]
    return ends[0] if same and ends[0] == ends[1] else between.join(ends)


def first(table: Mapping[str, Sequence[Any]], rows: int | None) -> Values:
    """The first rows of a table; None: all."""
    return {name: list(values[:rows]) for name, values in table.items()}
