"""Shares of topics in a report: overall, by group and over time, as charts with their tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple

from topicsteer.analysis.column_formats import Grid, grid, missing
from topicsteer.analysis.prevalence import COLUMNS, WARNING, Prevalence
from topicsteer.system.templates import visible
from topicsteer.system.values import ALL

# Topics that are drawn per column; the table has all.
DRAWN = 24
# Groups per chart; the table has all.
GROUPS = 16
# Rows of a table on the page; `prevalence` has all.
ROWS = 5_000
# Differences that a page lists; `prevalence` has all.
DIFFERENCES = 100


@dataclass(frozen=True)
class Breakdown:
    """Shares of topics in the groups of a column.

    Parameters
    ----------
    column : str
        Name of the column; empty for the whole corpus.
    groups : sequence of str
        Names of the groups in order.
    period : str or None
        "day", "week", "month", "quarter" or "year" if the groups are periods of time.
    table : mapping of str to sequence
        One row per topic and group, with the columns of `COLUMNS`.
    notes : sequence of str
        Sentences about guesses and assumptions.
    differences : mapping of str to sequence
        Differences between groups, or the change per period, as in `Prevalence.differences` and `Prevalence.trend`.

    Examples
    --------
    >>> table = {"topic": ["tea"], "group": ["north"], "share": [0.2], "low": [0.1], "high": [0.3]}
    >>> Breakdown("region", ["north"], None, table).topics
    ['tea']
    """

    column: str
    groups: Sequence[str]
    period: str | None
    table: Mapping[str, Sequence[Any]]
    notes: Sequence[str] = ()
    differences: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Prevalence, known: Sequence[str] = ()) -> Breakdown:
        """Return the shares of a result without the row of all documents, unless it has no groups.

        Parameters
        ----------
        found : Prevalence
        known : sequence of str
            Sentences that the report has already.
        """
        table, notes = found.table(), [note for note in found.sentences if note not in known]
        if found.by is None:
            return cls("", [ALL], None, table, notes)
        inside = [row for row, group in enumerate(table["group"]) if group != ALL]
        table = {name: [values[row] for row in inside] for name, values in table.items()}
        timed = found.by.period is not None
        differences = found.trend() if timed else found.differences()
        return cls(found.by.column, found.groups[1:], found.by.period, table, notes, differences)

    @property
    def topics(self) -> list[str]:
        """The topics, in the order of the table."""
        return list(dict.fromkeys(self.table["topic"]))

    def shares(self, topic: str) -> dict[str, Share]:
        """Return shares of a topic by group, in the order of the groups."""
        found = self._by_topic.get(topic, {})
        return {group: found[group] for group in self.groups if group in found}

    @cached_property
    def _by_topic(self) -> dict[str, dict[str, Share]]:
        found: dict[str, dict[str, Share]] = {}
        columns = (self.table[name] for name in ("topic", "group", "share", "low", "high"))
        for topic, group, *numbers in zip(*columns, strict=True):
            if not missing(numbers[0]):
                found.setdefault(topic, {})[group] = Share(*numbers)
        return found

    def drawn_shares(self, topic: str) -> dict[str, Share]:
        """Return shares of a topic in the groups with most documents, in the order of the groups."""
        return {group: share for group, share in self.shares(topic).items() if group in self._drawn}

    @cached_property
    def _drawn(self) -> set[str]:
        sizes = dict.fromkeys(self.groups, 0.0)
        for group, size in zip(self.table["group"], self.table.get("documents", self.table["share"]), strict=True):
            sizes[group] = max(sizes.get(group, 0.0), 0.0 if missing(size) else float(size))
        return set(sorted(self.groups, key=lambda group: -sizes[group])[:GROUPS])

    def order(self) -> list[str]:
        """Return the topics, the largest differences between groups first."""
        return sorted(self.topics, key=lambda topic: separation(list(self.shares(topic).values())), reverse=True)

    def runs(self, topic: str) -> list[list[tuple[int, str, Share]]]:
        """Return shares over time: number and name of each period; a period without documents begins another run."""
        runs: list[list[tuple[int, str, Share]]] = []
        for group, share in self.shares(topic).items():
            place = ordinal(group, self.period or "year")
            if place is None:  # not dated
                continue
            if not runs or place != runs[-1][-1][0] + 1:
                runs.append([])
            runs[-1].append((place, group, share))
        return runs


class Share(NamedTuple):
    """A share with its interval; NaN or None without one."""

    share: float
    low: float | None
    high: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends, if there are any."""
        return None if missing(self.low) or missing(self.high) else (float(self.low or 0), float(self.high or 0))

    @property
    def text(self) -> str:
        """The share and its interval in percent, such as "8.1% (6.0–10.4%)"."""
        ends = self.interval
        return f"{self.share:.1%}" + ("" if ends is None else f" ({100 * ends[0]:.1f}–{ends[1]:.1%})")


def separation(shares: Sequence[Share]) -> tuple[float, float]:
    """Return the difference between the largest and the smallest share, beyond their intervals, and as estimated.

    Examples
    --------
    >>> separation([Share(0.1, 0.05, 0.15), Share(0.5, 0.4, 0.6)])
    (0.25, 0.4)
    """
    if not shares:
        return -math.inf, 0.0
    ends = [share.interval for share in shares]
    values = [share.share for share in shares]
    known = [end for end in ends if end is not None]
    sure = max(low for low, _ in known) - min(high for _, high in known) if known else -math.inf
    return round(sure, 12), round(max(values) - min(values), 12)


# --- charts, in the units of their viewBox ---


class TopicLink(NamedTuple):
    """Id of the card of a topic, and whether the topic is known or free; "none" is neither."""

    key: str = ""
    origin: str = "none"


NO_LINK = TopicLink()


@dataclass(frozen=True)
class Bar:
    """A bar with its interval: a horizontal line from ``low`` to ``high``."""

    label: str
    y: float
    end: float
    low: float | None
    high: float | None
    text: str
    about: str
    origin: str


@dataclass(frozen=True)
class Chart:
    """What all charts have: id, title, the card of the topic, a description, size, and both ends of the field."""

    key: str
    title: str
    link: TopicLink
    label: str
    width: int
    height: int
    left: float
    right: float


@dataclass(frozen=True)
class BarChart(Chart):
    """Bars to the right of their labels."""

    bars: list[Bar]


@dataclass(frozen=True)
class Dot:
    """The share in one period, with the ends of its interval."""

    x: float
    y: float
    low: float | None
    high: float | None
    about: str


@dataclass(frozen=True)
class LineChart(Chart):
    """A line over time with a band; a period without documents interrupts it."""

    bottom: float
    levels: list[tuple[str, float]]
    ticks: list[tuple[str, float, str]]
    runs: list[list[Dot]]

    @property
    def bands(self) -> list[list[tuple[float, float]]]:
        """Corners of the band of each run with intervals."""
        some = [[dot for dot in run if dot.low is not None and dot.high is not None] for run in self.runs]
        return [
            [(dot.x, dot.high or 0.0) for dot in run] + [(dot.x, dot.low or 0.0) for dot in reversed(run)]
            for run in some
            if len(run) > 1
        ]


def share_part(found: Breakdown, number: int, links: Mapping[str, TopicLink]) -> dict[str, Any]:
    """Arrange a breakdown for a page: title, notes, charts, a sentence on topics that are not drawn, and tables.

    Parameters
    ----------
    found : Breakdown
        The shares.
    number : int
        Number of the part, for unique ids.
    links : mapping of str to TopicLink
        Cards of topics.
    """
    key = f"shares-{number}"
    order = [topic for topic in found.order() if found.shares(topic)]
    bars, lines = [], []
    if not found.column:
        known = {topic: share for topic in found.topics for share in found.shares(topic).values()}
        rows = dict(sorted(known.items(), key=lambda pair: -pair[1].share))
        title = "Share of each topic"
        origins = {topic: links.get(topic, NO_LINK).origin for topic in rows}
        bars = [bar_chart(f"{key}-all", title, NO_LINK, rows, width=460, left=160, origins=origins)]
    elif found.period is not None:
        lines = [
            line_chart(f"{key}-{k}", topic, links.get(topic, NO_LINK), found) for k, topic in enumerate(order[:DRAWN])
        ]
    else:
        for k, topic in enumerate(order[:DRAWN]):
            rows = found.drawn_shares(topic)
            bars.append(bar_chart(f"{key}-{k}", topic, links.get(topic, NO_LINK), rows, about=found.column))
    shown = {name: values[:ROWS] for name, values in found.table.items() if found.column or name != "group"}
    return {
        "key": key,
        "title": _title(found),
        "column": found.column,
        "notes": found.notes,
        "warnings": [note for note in found.notes if note.startswith(WARNING)],
        "bars": bars,
        "lines": lines,
        "left_out": _left_out(found, len(order)),
        "table": grid(f"{key}-table", _title(found), shown, COLUMNS),
        "differences": _differences(found, key),
    }


def _differences(found: Breakdown, key: str) -> Grid | None:
    """Return the differences that are clear, most certain first."""
    table = found.differences
    clear = [row for row, yes in enumerate(table.get("clear", ())) if yes][:DIFFERENCES]
    if not clear:
        return None
    title = f"Change per {found.period}" if found.period else f"Clear differences by {found.column}"
    shown = {name: [values[row] for row in clear] for name, values in table.items() if name not in ("clear", "per")}
    return grid(f"{key}-differences", title, shown, COLUMNS)


def bar_chart(
    key: str,
    title: str,
    link: TopicLink,
    rows: Mapping[str, Share],
    *,
    width: int = 340,
    left: int = 112,
    about: str = "",
    origins: Mapping[str, str] | None = None,
) -> BarChart:
    """Bars with intervals on a scale from 0 to the largest end of an interval."""
    step, top = 24, 6
    right = width - 52
    most = max((max(row.share, (row.interval or (0, 0))[1]) for row in rows.values()), default=0) or 1.0
    longest = int((left - 10) / 6.6)

    def x(value: float) -> float:
        return left + (right - left) * min(value / most, 1.0)

    bars = []
    for k, (name, share) in enumerate(rows.items()):
        low, high = share.interval or (None, None)
        bars.append(
            Bar(
                visible(name, longest),
                top + step * (k + 0.5),
                x(share.share),
                None if low is None else x(low),
                None if high is None else x(high),
                f"{share.share:.1%}",
                f"{visible(name, 80)}: {share.text}",
                link.origin if origins is None else origins[name],
            )
        )
    spoken = "; ".join(bar.about for bar in bars)
    label = f"Share of {visible(title, 80)} by {visible(about, 60)}: {spoken}" if about else f"{title}: {spoken}"
    height = 2 * top + step * len(bars)
    return BarChart(key, title, link, label, width, height, left, right, bars)


def line_chart(key: str, topic: str, link: TopicLink, found: Breakdown) -> LineChart:
    """The share of a topic over time, on a scale from 0 to the largest end of an interval; the topic is the title."""
    width, height, left, right, top, bottom = 340, 190, 44.0, 330.0, 12.0, 160.0
    runs = found.runs(topic)
    dated = [point for run in runs for point in run]
    most = nice(max((max(share.share, (share.interval or (0, 0))[1]) for *_, share in dated), default=0))
    first, last = (dated[0][0], dated[-1][0]) if dated else (0, 1)

    def x(place: int) -> float:
        return (left + right) / 2 if first == last else left + (right - left) * (place - first) / (last - first)

    def y(value: float) -> float:
        return bottom + (top - bottom) * min(value / most, 1.0)

    def dot(place: int, name: str, share: Share) -> Dot:
        low, high = (None, None) if share.interval is None else map(y, share.interval)
        return Dot(x(place), y(share.share), low, high, f"{name}: {share.text}")

    label = f"Share of {visible(topic, 80)} over time: " + "; ".join(f"{name}: {s.text}" for _, name, s in dated)
    return LineChart(
        key,
        topic,
        link,
        label,
        width,
        height,
        left,
        right,
        bottom,
        levels=[(f"{100 * value:.3g}%", y(value)) for value in (0, most / 2, most)],
        ticks=_ticks([name for _, name, _ in dated], [x(place) for place, *_ in dated]),
        runs=[[dot(*point) for point in run] for run in runs],
    )


def nice(value: float) -> float:
    """Return the smallest round number that is not smaller: 1, 2, 4, 5, 6 or 8 times a power of ten, or 1 for a share.

    Examples
    --------
    >>> nice(0.031), nice(0.6), nice(0.95)
    (0.04, 0.6, 1.0)
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    step = next(step for step in (1, 2, 4, 5, 6, 8, 10) if step * power >= value * (1 - 1e-9))
    return min(round(step * power, 12), 1.0)


def ordinal(name: str, period: str) -> int | None:
    """Return the number of a period of time; neighbours differ by 1. None if the name is no period.

    Examples
    --------
    >>> ordinal("2025-01", "month") - ordinal("2024-12", "month")
    1
    >>> ordinal("(missing)", "year") is None
    True
    """
    try:
        match period:
            case "year":
                return int(name)
            case "quarter":
                return 4 * int(name[:4]) + int(name.partition("Q")[2])
            case "month":
                return 12 * int(name[:4]) + int(name[5:7])
            case "week":
                return date.fromisocalendar(int(name[:4]), int(name.partition("W")[2]), 1).toordinal() // 7
        return date.fromisoformat(name).toordinal()
    except ValueError:
        return None


def _ticks(names: Sequence[str], places: Sequence[float]) -> list[tuple[str, float, str]]:
    """First, middle and last period, with the side on which their names are aligned."""
    if len(names) < 2:
        return [(name, place, "middle") for name, place in zip(names, places, strict=True)]
    ticks = [(names[0], places[0], "start"), (names[-1], places[-1], "end")]
    middle = min(range(len(names)), key=lambda k: abs(places[k] - (places[0] + places[-1]) / 2))
    if 0 < middle < len(names) - 1:
        ticks.insert(1, (names[middle], places[middle], "middle"))
    return ticks


def _left_out(found: Breakdown, topics: int) -> str:
    """Return a sentence about topics and groups that are only in the table."""
    parts = []
    if found.column and topics > DRAWN:
        parts.append(f"the {DRAWN} topics with the largest differences of {topics:,}")
    if found.column and found.period is None and len(found.groups) > GROUPS:
        parts.append(f"the {GROUPS} groups with most documents of {len(found.groups):,}")
    rows = len(found.table["topic"])
    cut = f" The table has {ROWS:,} of {rows:,} rows, and prevalence --out has all." if rows > ROWS else ""
    return (f"The charts show {' and '.join(parts)}; the table has {'more' if cut else 'all'}." if parts else "") + cut


def _title(found: Breakdown) -> str:
    if not found.column:
        return "All documents"
    return f"Over time, by {found.period} of {found.column}" if found.period else f"By {found.column}"
