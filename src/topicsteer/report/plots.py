"""Figures from finished numbers; no fitting, no printing, no global state of matplotlib."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from topicsteer.analysis.document_map import DocumentMap
from topicsteer.analysis.prevalence import Prevalence
from topicsteer.analysis.topics import Topics
from topicsteer.metrics import Calibration
from topicsteer.report.breakdown import DRAWN, Breakdown, Share
from topicsteer.report.topic_layout import lay_out
from topicsteer.system.safe_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, for any colour vision; dashes, hatches and markers repeat the distinction.
KNOWN, FREE, PALE, INK, SOFT = "#0072B2", "#D55E00", "#fbeee3", "#22262b", "#6b737d"
# One colour per method of a learning curve, from the same palette.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
# Points of a document map, and named topics, from which points are drawn as pixels and names are left out.
PIXELS, NAMED = 5000, 30
# One marker per method of a learning curve.
MARKERS = "osD^vPX*"


def topic_map(topics: Topics) -> Figure:
    """Draw topics as circles, near each other if they share terms; known ones filled, free ones with a dashed edge.

    A larger circle is a larger share of the documents. Names without room are left out; the numbers stay.

    Parameters
    ----------
    topics : Topics
        The topics of a fit.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.eye(2), np.eye(2), ["a", "b"], np.array([1]))
    >>> figure = topic_map(topics)
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['1', 'tea', '2', 'free']
    """
    figure = _figure(10, 6, constrained=False)
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle

    width, height = 720.0, 432.0  # points, so that letters have the size that the layout assumes
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
    axes.axis("off")
    drawn = lay_out(topics, width, height - 20, font=9)
    sides = {"start": "left", "middle": "center", "end": "right"}
    looks: dict[str, Any] = {"known topic": (KNOWN, KNOWN, "-", "white"), "free topic": (PALE, FREE, (0, (3, 2)), FREE)}
    for k in range(len(topics)):
        known, (x, y), radius, label = topics.known(k), drawn.centres[k], float(drawn.radii[k]), drawn.labels[k]
        inside, edge, dashes, colour = looks["known topic" if known else "free topic"]
        axes.add_patch(Circle((x, y), radius, facecolor=inside, edgecolor=edge, linewidth=1.2, linestyle=dashes))
        size = min(8.0, 1.5 * radius / len(str(k + 1)))
        axes.text(x, y, str(k + 1), ha="center", va="center", fontsize=size, color=colour, weight="bold")
        if label:
            axes.text(label.x, label.y, _plain(label.text), ha=sides[label.anchor], va="center", fontsize=9, color=INK)
            if label.line:
                x1, y1, x2, y2 = label.line
                axes.plot([x1, x2], [y1, y2], color=SOFT, linewidth=0.6)
    handles = [
        Line2D([], [], marker="o", linestyle="", markersize=9, label=name, markerfacecolor=inside, markeredgecolor=edge)
        for name, (inside, edge, *_) in looks.items()
    ]
    axes.legend(handles=handles, loc="lower right", ncols=2, frameon=False, fontsize=9)
    return figure


def term_bars(topics: Topics, topic_names: Sequence[Hashable] | None = None, n_terms: int = 8) -> Figure:
    """Draw the most distinctive terms of each topic as bars; free topics are hatched.

    Parameters
    ----------
    topics : Topics
        The topics of a fit.
    topic_names : sequence, optional
        Names or numbers of the topics to show. Default: all.
    n_terms : int
        Number of terms per topic.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.eye(2), np.eye(2), ["a", "b"], np.array([1]))
    >>> figure = term_bars(topics, ["tea"])
    >>> figure.axes[0].get_title(loc="left"), [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ('1  tea', ['cup'])
    """
    chosen = range(len(topics)) if topic_names is None else [topics.index(name) for name in topic_names]
    columns = min(max(len(chosen), 1), 4)
    rows = max(math.ceil(len(chosen) / columns), 1)
    figure = _figure(3.1 * columns, (0.55 + 0.19 * n_terms) * rows)
    for place, k in enumerate(chosen):
        axes = figure.add_subplot(rows, columns, place + 1)
        pairs, known = topics.term_strengths(k, n_terms), topics.known(k)
        at = np.arange(len(pairs))
        look: dict[str, Any] = {"color": KNOWN} if known else {"color": "white", "edgecolor": FREE, "hatch": "////"}
        axes.barh(at, [strength for _, strength in pairs], height=0.62, **look)
        axes.set_yticks(at, [_plain(visible(term, 24)) for term, _ in pairs], fontsize=8)
        axes.set(xlim=(0, 1.02), ylim=(n_terms - 0.4, -0.6), xticks=[])
        kind = "" if known else " (free)"
        title = _plain(visible(topics.names[k], 34 - len(kind)))
        axes.set_title(f"{k + 1}  {title}{kind}", fontsize=9, loc="left", color=INK, weight="bold")
        _bare(axes, left=False)
    return figure


def topics_by_group(topics: Topics, groups: Sequence[Hashable]) -> Figure:
    """Draw the share of each topic in each group of documents, such as a year: darker is more, ○ is a free topic.

    Parameters
    ----------
    topics : Topics
        The topics of a fit.
    groups : sequence (n_documents,)
        The group of each document.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.eye(2), np.eye(2), ["a", "b"], np.array([1]))
    >>> figure = topics_by_group(topics, [2019, 2020])
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['2019', '2020']
    """
    if len(groups) != len(topics.W):
        sizes = f"groups has {len(groups):,} entries for {len(topics.W):,} documents"
        raise ValueError(f"{sizes}: pass one per document")
    names = _in_order(groups)
    number = {name: g for g, name in enumerate(names)}
    rows = np.array([number[group] for group in groups])
    shares = np.zeros((len(topics), len(names)))
    for g in range(len(names)):
        shares[:, g] = topics.share_among(rows == g)

    figure = _figure(min(3.6 + 0.55 * len(names), 24), 1.2 + 0.24 * len(topics))
    axes = figure.add_subplot()
    image = axes.imshow(shares, aspect="auto", cmap="Blues", vmin=0)
    labels = [_plain(visible(name, 36)) + (" ●" if topics.known(k) else " ○") for k, name in enumerate(topics.names)]
    axes.set_yticks(range(len(topics)), labels, fontsize=8)
    step = max(math.ceil(len(names) / 40), 1)
    shown = range(0, len(names), step)
    turned = max(len(str(name)) for name in names) > 5
    texts = [_plain(visible(names[g], 20)) for g in shown]
    axes.set_xticks(list(shown), texts, fontsize=8, rotation=45 if turned else 0, ha="right" if turned else "center")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, format=lambda x, _: f"{x:.0%}", fraction=0.05, pad=0.02)
    bar.set_label("share (● known, ○ free)", fontsize=8)
    bar.ax.tick_params(labelsize=8, length=0)
    bar.outline.set_visible(False)
    return figure


def objective(history: Sequence[float]) -> Figure:
    """Draw the objective at each iteration.

    Parameters
    ----------
    history : sequence of float
        For example ``objective_history_`` of a fitted estimator.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> objective([3.0, 2.0, 1.5]).axes[0].get_xlabel()
    'iteration'
    """
    figure = _figure(6, 3.2)
    from matplotlib.ticker import MaxNLocator

    axes = figure.add_subplot()
    axes.plot(range(len(history)), history, color=KNOWN, marker="o" if len(history) <= 40 else "", markersize=3)
    axes.set(xlabel="iteration", ylabel="objective")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _bare(axes)
    return figure


def learning_curve(rows: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Figure:
    """Draw the scores of methods by the number of labels, each with its own colour, marker and dashes.

    Parameters
    ----------
    rows : mapping of str to (numbers of labels, scores)
        One entry per method.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = learning_curve({"topicsteer": ([5, 50], [0.6, 0.8]), "nearest centroid": ([5, 50], [0.5, 0.7])})
    >>> [text.get_text() for text in figure.axes[0].get_legend().texts]
    ['topicsteer', 'nearest centroid']
    """
    figure = _figure(6.5, 4)
    axes = figure.add_subplot()
    dashes: list[Any] = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)), (0, (8, 2)), (0, (3, 3))]
    for i, (name, (labels, scores)) in enumerate(rows.items()):
        style = {"color": SERIES[i % 8], "marker": MARKERS[i % 8], "linestyle": dashes[(i + i // 8) % 8]}
        axes.plot(labels, scores, label=_plain(visible(name, 40)), markersize=5, **style)
    counts = sorted({count for labels, _ in rows.values() for count in labels})
    if counts and counts[0] > 0 and counts[-1] / counts[0] > 20:
        axes.set_xscale("log")
        axes.set_xticks(counts, [f"{count:,}" for count in counts], minor=False)
        axes.minorticks_off()
    axes.set(xlabel="labelled documents", ylabel="score")
    if rows:
        axes.legend(frameon=False, fontsize=9)
    _bare(axes)
    return figure


def reliability(found: Calibration) -> Figure:
    """Draw the observed share of pairs by their predicted probability; larger markers stand for more pairs.

    Parameters
    ----------
    found : Calibration
        The result of `topicsteer.metrics.calibration`, or ``evaluation.scores["topicsteer"].calibration``.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from topicsteer.metrics import calibration
    >>> figure = reliability(calibration([[1, 0], [1, 1]], [[0.9, 0.3], [0.7, 0.7]]))
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_title(loc="left")
    ('predicted probability', 'calibration error 0.250')
    """
    figure = _figure(4.6, 4.4)
    axes = figure.add_subplot()
    some = found.pairs > 0
    predicted, observed, pairs = found.predicted[some], found.observed[some], found.pairs[some]
    axes.plot([0, 1], [0, 1], color=SOFT, linestyle="--", linewidth=1)
    axes.plot(predicted, observed, color=KNOWN, linewidth=1.2)
    if some.any():
        sizes = 12 + 60 * np.log1p(pairs) / np.log1p(pairs.max())
        axes.scatter(predicted, observed, s=sizes, color=KNOWN, zorder=3)
    axes.set(xlabel="predicted probability", ylabel="observed share", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_title(f"calibration error {found.error:.3f}", fontsize=9, loc="left", color=INK)
    _bare(axes)
    return figure


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


def document_map(found: DocumentMap) -> Figure:
    """Draw documents as points in the colour of their likeliest topic; names stand at the middle of a topic.

    Free topics and documents with none of the topics are hollow. More than some thousand points become pixels.

    Parameters
    ----------
    found : DocumentMap
        The map of a report: ``report_data.documents.map``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    width = 9.0
    figure = _figure(width, max(width / max(found.layout.aspect, 0.4), 3.0), constrained=False)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-0.02, 1.02), ylim=(1.02, -0.02))
    axes.axis("off")
    pixels = len(found) > PIXELS
    size = float(np.clip(4e4 / max(len(found), 1), 1.5, 14))
    order = np.argsort(-np.bincount(found.topic, minlength=len(found.names)), kind="stable")
    for rank, k in enumerate(order):
        places = found.layout.places[found.topic == k]
        if not len(places):
            continue
        known, colour = k < found.n_known, SERIES[rank % 7] if k < len(found.names) - 1 else SOFT
        look: dict[str, Any] = {"color": colour} if known else {"facecolors": "none", "edgecolors": colour}
        look |= {"s": size, "linewidths": 0 if known else 0.5, "alpha": 0.6, "rasterized": pixels}
        axes.scatter(places[:, 0], places[:, 1], **look)
    for k in order[:NAMED]:
        places = found.layout.places[found.topic == k]
        if len(places):
            x, y = np.median(places, axis=0)
            name = _plain(visible(found.names[k], 30))
            halo = {"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
            axes.text(x, y, name, ha="center", va="center", fontsize=8, color=INK, bbox=halo)
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


def require() -> None:
    """Raise an error with the remedy if matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error


def _figure(width: float, height: float, *, constrained: bool = True) -> Figure:
    """An empty figure, unknown to pyplot."""
    require()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), facecolor="white", layout="constrained" if constrained else None)


def _plain(text: str) -> str:
    """Text in which a dollar sign does not start a formula."""
    return text.replace("$", r"\$")


def _bare(axes: Axes, left: bool = True) -> None:
    """Remove frames and ticks that carry no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_visible(left)
    axes.tick_params(length=3 if left else 0, labelsize=8)


def _in_order(groups: Sequence[Hashable]) -> list[Hashable]:
    """Each group once: sorted if they can be compared, else in the order of their texts."""
    names: set[Any] = set(groups)
    try:
        return sorted(names)
    except TypeError:
        return sorted(names, key=lambda name: (type(name).__name__, str(name)))
