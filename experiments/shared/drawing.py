"""Figures of all studies: colours, empty panels, and SVG files that do not change from run to run."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can distinguish.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
# Colour of lines in the background.
GREY = "#6b737d"


def empty(panels: int, height: float = 3.1) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side and without frames."""
    figure = Figure(figsize=(4.4 * max(panels, 1), height), facecolor="white", layout="constrained")
    all_axes = [figure.add_subplot(1, panels, i + 1) for i in range(panels)]
    for axes in all_axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    return figure, all_axes


def save(figure: Figure, path: Path) -> None:
    """Write SVG with text as text and without a date."""
    with mpl.rc_context({"svg.hashsalt": "topicsteer", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})
