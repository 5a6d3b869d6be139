"""Figures of the paper, from finished runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.paper.claims import UNIFORM
from experiments.paper.runs import FIGURE_3
from experiments.paper.scoreboard import Scoreboard, correlation, deviations
from experiments.paper.stationarity import WAYS, Descent, largest
from experiments.shared.drawing import GREY, MARKERS, SERIES, empty
from experiments.shared.methods import UNSUPERVISED

# Corpora as they are written in titles.
TITLES = {"reuters": "Reuters", "pubmed": "PubMed", "newsgroups": "20 Newsgroups", "toy": "Toy"}
# Methods that read labels, in the order of their colours.
SUPERVISED = (
    *("TS-NMF", "TS-NMF unweighted", "TS-NMF default solver", "TS-NMF uniform start"),
    *("nearest centroid", "logistic regression", "TS-NMF uniform start unweighted"),
)
# Colour, marker and line of each method.
STYLE = {method: {"color": SERIES[i], "marker": MARKERS[i]} for i, method in enumerate(SUPERVISED)} | {
    "NMF": {"color": "#000000", "marker": "X", "linestyle": "-."},
    "NMF uniform start": {"color": GREY, "marker": "P", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    "LDA": {"color": GREY, "marker": "*", "linestyle": ":"},
}


def figures(
    boards: dict[str, Scoreboard], traces: dict[str, Any] | None, descents: Mapping[Descent, dict[str, Any]]
) -> Iterator[tuple[str, Figure]]:
    """Every figure that the finished runs allow, with its name."""
    for corpus, board in boards.items():
        if len(board.rates()) > 1:
            yield f"{corpus}-rate", by_rate(board)
            yield f"{corpus}-unlabelled", on_unlabelled(board)
        if board.rates("TS-NMF unweighted"):
            yield f"{corpus}-weighting", weighting(board)
        if any(run.study == "coverage" for run in board.others):
            yield f"{corpus}-coverage", coverage(board)
    if boards:
        yield "comparison", comparison(boards)
    if traces:
        yield "convergence", convergence(traces)
    if descents:
        yield "stationarity", stationarity(descents)


def by_rate(board: Scoreboard) -> Figure:
    """Figure 2: similarity and resolved topics by supervision rate."""
    figure, panels = empty(2, height=3.6)
    for axes, score, title in zip(
        panels, ("similarity", "resolved"), ("mean similarity", "resolved topics"), strict=True
    ):
        curve(axes, board, "TS-NMF", f"{score}_all", label="TS-NMF, all documents")
        curve(axes, board, "TS-NMF", f"{score}_unlabelled", label="TS-NMF, unlabelled ones", dashed=True)
        if UNIFORM in board.methods():
            curve(axes, board, UNIFORM, f"{score}_all", label="H uniform, all documents")
            curve(axes, board, UNIFORM, f"{score}_unlabelled", label="H uniform, unlabelled ones", dashed=True)
        levels(axes, board, f"{score}_all")
        axes.set(xlabel="supervision rate", ylabel=title, ylim=(0, None))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def on_unlabelled(board: Scoreboard) -> Figure:
    """Average precision on the unlabelled documents, compared with simple classifiers."""
    figure, panels = empty(2, height=3.6)
    methods = [name for name in SUPERVISED if name in board.methods() and "unweighted" not in name]
    for axes, score in zip(panels, ("macro", "micro"), strict=True):
        for method in methods:
            curve(axes, board, method, f"{score}_unlabelled", label=method, band=False)
        levels(axes, board, f"{score}_unlabelled")
        axes.set(xlabel="supervision rate", ylabel=f"{score} average precision, unlabelled", ylim=(0, 1))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def weighting(board: Scoreboard) -> Figure:
    """Appendix: weighted against unweighted."""
    figure, panels = empty(2)
    for axes, score, title in zip(
        panels, ("similarity", "resolved"), ("mean similarity", "resolved topics"), strict=True
    ):
        curve(axes, board, "TS-NMF", f"{score}_all", label="weighted")
        curve(axes, board, "TS-NMF unweighted", f"{score}_all", label="unweighted", dashed=True)
        axes.set(xlabel="supervision rate", ylabel=title, ylim=(0, None))
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def comparison(boards: dict[str, Scoreboard]) -> Figure:
    """Figure 3: LDA, NMF and TS-NMF at four rates, from both starts; one panel per corpus."""
    figure, panels = empty(len(boards), height=3.4)
    for axes, board in zip(panels, boards.values(), strict=True):
        boxes = {("LDA", 0.0): 0.0, ("NMF", 0.0): 0.83, ("NMF uniform start", 0.0): 1.17}
        for place, rate in enumerate(FIGURE_3, start=2):
            boxes |= {("TS-NMF", rate): place - 0.17, (UNIFORM, rate): place + 0.17}
        for (method, rate), place in boxes.items():
            values = board.values(method, rate, "similarity_all")
            if values.size:
                drawn = axes.boxplot([values], positions=[place], widths=0.3, patch_artist=True, manage_ticks=False)
                colour = UNIFORM if "uniform" in method else "TS-NMF" if "NMF" in method else "LDA"
                drawn["boxes"][0].set(facecolor=STYLE[colour]["color"], alpha=0.45)
                drawn["medians"][0].set(color="black")
                drawn["fliers"][0].set(markersize=3)
        axes.set_xticks(range(6), ["LDA", "NMF", *(f"TS-NMF\n{rate:g}" for rate in FIGURE_3)], fontsize=8)
        axes.set(ylabel="mean similarity", ylim=(0, None))
        axes.set_title(TITLES[board.corpus], fontsize=10, loc="left")
    handles = [Patch(facecolor=STYLE[name]["color"], alpha=0.45) for name in ("TS-NMF", UNIFORM)]
    names = ["H by Random Acol, as in the paper", "H uniform"]
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def coverage(board: Scoreboard) -> Figure:
    """Appendix: coverage by rate, and its deviation against the deviation of the score."""
    figure, (left, right) = empty(2)
    samples = {run.rate: row["coverage"] for run, row in sorted(board.others.items()) if run.study == "coverage"}
    rates = sorted(samples)
    low, middle, high = (np.array([np.percentile(samples[rate], q) for rate in rates]) for q in (2.5, 50, 97.5))
    left.fill_between(rates, low, high, alpha=0.2, color=SERIES[0], linewidth=0, label="95 % of 1,000 samples")
    left.plot(rates, middle, color=SERIES[0], marker="o", markersize=4, label="median")
    left.set(xlabel="supervision rate", ylabel="topic coverage", ylim=(0, 1.02))
    left.legend(frameon=False, fontsize=8, loc="lower right")
    x, y = deviations(board)
    right.scatter(x, y, s=9, alpha=0.5, color=SERIES[1], linewidth=0)
    r = correlation(x, y)
    right.set(xlabel="coverage, deviation from the mean of its rate", ylabel="similarity, deviation")
    right.set_title(f"r = {r}" if r else "", fontsize=9, loc="left")
    return figure


def convergence(traces: dict[str, Any]) -> Figure:
    """Objective by iteration, and by time in units of the paper's 30 iterations."""
    figure, (left, right) = empty(2)
    unit = traces["mu"]["seconds"][min(30, len(traces["mu"]["seconds"]) - 1)]
    for i, (solver, label) in enumerate((("mu", "multiplicative (paper)"), ("hals", "coordinate descent (default)"))):
        history, seconds = traces[solver]["objective"], np.array(traces[solver]["seconds"]) / unit
        style = {"color": SERIES[i], "linestyle": ("-", "--")[i], "label": label}
        left.plot(range(1, len(history)), history[1:], **style)
        right.plot(seconds[1:], history[1:], **style)
    left.axvline(30, color=GREY, linewidth=0.7, linestyle=":")
    left.set(xlabel="iteration (dotted: 30, as in the paper)", ylabel="objective", xscale="log")
    right.set(xlabel="time (1 = 30 multiplicative iterations)", ylabel="objective", xlim=(0, 3))
    right.legend(frameon=False, fontsize=8)
    return figure


def stationarity(descents: Mapping[Descent, dict[str, Any]]) -> Figure:
    """Largest residual by iteration, one panel per corpus and one line per run."""
    names = list(dict.fromkeys(run.corpus for run in descents))
    figure, panels = empty(len(names), height=3.4)
    for axes, name in zip(panels, names, strict=True):
        for i, way in enumerate(WAYS):
            rows = [row for run, row in descents.items() if (run.corpus, run.way) == (name, way)]
            for n, row in enumerate(rows):
                style = {"color": SERIES[i], "linestyle": ("-", "--", ":")[i], "linewidth": 1.3}
                axes.plot(row["iterations"], np.maximum(largest(row), 1e-12), label=way if n == 0 else None, **style)
        axes.set(xlabel="iteration", ylabel="largest residual", xscale="log", yscale="log")
        axes.set_title(TITLES[name], fontsize=10, loc="left")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def curve(axes: Axes, board: Scoreboard, method: str, score: str, *, label: str, dashed=False, band=True) -> None:
    """Mean by rate, with a band that holds nine runs in ten."""
    rates, mean, low, high = board.curve(method, score)
    style = STYLE[method] | {"linestyle": "--" if dashed else "-"}
    if dashed:
        style |= {"markerfacecolor": "white"}
    axes.plot(rates, mean, label=label, markersize=4, linewidth=1.4, **style)
    if band:
        axes.fill_between(rates, low, high, alpha=0.15, linewidth=0, color=style["color"])


def levels(axes: Axes, board: Scoreboard, score: str) -> None:
    """Horizontal lines for NMF and LDA, which have no rate."""
    for method in UNSUPERVISED:
        level, style = board.mean(method, 0.0, score), STYLE[method]
        if np.isfinite(level):
            axes.axhline(level, color=style["color"], linestyle=style["linestyle"], linewidth=1.2, label=method)
