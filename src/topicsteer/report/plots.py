"""Figures from finished numbers; no fitting, no printing, no global state of matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from topicsteer.analysis.prevalence import Prevalence
from topicsteer.report.breakdown import DRAWN, Breakdown, Share
from topicsteer.system.templates import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# A colour of Okabe and Ito for any colour vision, and the colour of text.
KNOWN, INK = "#0072B2", "#22262b"


def shares(found: Prevalence | Breakdown, topics: Sequence[str] | None = None) -> Figure:
    """Draw shares of topics with their intervals: bars by group, or lines over time, largest differences first.

    Parameters
    ----------
    found : Prevalence or Breakdown
        Shares, such as ``model.prevalence("region")`` or ``model.prevalence("date:month")``.
    topics : sequence of str, optional
        Topics to show, in this order. Default: the 24 with the largest differences; all of them without groups.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> table = {"topic": ["tea"] * 2, "group": ["north", "south"], "share": [0.2, 0.4], "low": [0.1, 0.3],
    ...          "high": [0.3, 0.5]}
    >>> figure = shares(Breakdown("region", ["north", "south"], None, table))
    >>> figure.axes[0].get_title(loc="left"), [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ('tea', ['north', 'south'])
    """
    if isinstance(found, Prevalence):
        found = Breakdown.of(found)
    if not found.column:
        rows = {topic: next(iter(found.shares(topic).values())) for topic in topics or found.topics}
        figure = _figure(7, 0.8 + 0.26 * len(rows))
        _share_bars(figure.add_subplot(), rows)
        return figure
    chosen = list(topics) if topics is not None else found.order()[:DRAWN]
    columns = min(max(len(chosen), 1), 3)
    rows_of_axes = max(math.ceil(len(chosen) / columns), 1)
    bars = max((len(found.drawn_shares(topic)) for topic in chosen), default=1)
    figure = _figure(3.6 * columns, rows_of_axes * (2.1 if found.period else 0.7 + 0.22 * bars))
    for place, topic in enumerate(chosen):
        axes = figure.add_subplot(rows_of_axes, columns, place + 1)
        if found.period:
            _share_line(axes, found.runs(topic))
        else:
            _share_bars(axes, found.drawn_shares(topic))
        axes.set_title(_plain(visible(topic, 40)), fontsize=9, loc="left", color=INK, weight="bold")
    return figure


def _share_bars(axes: Axes, rows: Mapping[str, Share]) -> None:
    """Horizontal bars with intervals."""
    at = np.arange(len(rows))
    values = np.array([row.share for row in rows.values()])
    ends = np.array([row.interval or (np.nan, np.nan) for row in rows.values()]).reshape(-1, 2)
    axes.barh(at, values, height=0.62, color=KNOWN, alpha=0.45)
    axes.errorbar(
        values, at, xerr=np.abs(ends - values[:, None]).T, fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.5
    )
    axes.set_yticks(at, [_plain(visible(name, 28)) for name in rows], fontsize=8)
    axes.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, None))
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.3g}%")
    _bare(axes)


def _share_line(axes: Axes, runs: Sequence[Sequence[tuple[int, str, Share]]]) -> None:
    """A line with a band, interrupted where there are no documents."""
    for run in runs:
        at, values = [place for place, _, _ in run], [share.share for *_, share in run]
        ends = np.array([share.interval or (np.nan, np.nan) for *_, share in run])
        axes.fill_between(at, ends[:, 0], ends[:, 1], color=KNOWN, alpha=0.22, linewidth=0)
        axes.plot(at, values, color=KNOWN, marker="o", markersize=2.5, linewidth=1.4)
    dated = [(place, name) for run in runs for place, name, _ in run]
    shown = [dated[k] for k in sorted({0, len(dated) // 2, len(dated) - 1})] if dated else []
    axes.set_xticks([place for place, _ in shown], [name for _, name in shown], fontsize=8)
    axes.set(ylim=(0, None))
    axes.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.3g}%")
    _bare(axes)


def _figure(width: float, height: float) -> Figure:
    """Return an empty figure, unknown to pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error

    return Figure(figsize=(width, height), facecolor="white", layout="constrained")


def _plain(text: str) -> str:
    """Text in which a dollar sign does not start a formula."""
    return text.replace("$", r"\$")


def _bare(axes: Axes) -> None:
    """Remove frames and ticks that carry no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=3, labelsize=8)
