"""The charts of a report as SVG files, for slides and papers; needs matplotlib."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from topicsteer.report import plots
from topicsteer.report.page import ReportData
from topicsteer.system.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def charts(data: ReportData) -> dict[str, Callable[[], Figure]]:
    """Functions that draw the charts of a report, by the names of their files."""
    found: dict[str, Callable[[], Figure]] = {
        "topic-map": lambda: plots.topic_map(data.topics),
        "terms": lambda: plots.term_bars(data.topics),
    }
    documents = data.documents
    if documents is not None:
        found["document-map"] = lambda: plots.document_map(documents.map)
    for part in data.shares:
        name = "shares" if not part.column else f"shares-by-{_file_name(part.column)}"
        while name in found:
            name += "-2"
        found[name] = lambda part=part: plots.shares(part)  # type: ignore[misc]
    evaluation = data.evaluation
    if evaluation is not None and evaluation.judged:
        held = evaluation.scores["topicsteer"].calibration
        if held is not None:
            found["calibration"] = lambda: plots.reliability(held)
        if evaluation.curve is not None:
            curve = evaluation.learning_curve()
            counts = curve.pop("labelled")
            found["learning-curve"] = lambda: plots.learning_curve({n: (counts, v) for n, v in curve.items()})
    if len(data.history) > 1:
        found["objective"] = lambda: plots.objective(data.history)
    return found


def write(data: ReportData, folder: str | os.PathLike[str]) -> list[Path]:
    """Write each chart of a report as an SVG file; text stays text.

    Parameters
    ----------
    data : ReportData
        What to draw.
    folder : path
        Folder for the files; it is created. Files of the same names are replaced.

    Returns
    -------
    list of Path
        The files.
    """
    plots.require()
    from matplotlib import rc_context

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in charts(data).items():
        path = folder / f"{name}.svg"
        # Neither the date nor a random name: the same chart gives the same file.
        with replacing(path) as part, rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
            draw().savefig(part, format="svg", metadata={"Date": None})
        written.append(path)
    return written


def _file_name(column: str) -> str:
    """Letters, digits and hyphens of a column name."""
    return re.sub(r"[^\w]+", "-", column)[:60].strip("-").lower() or "column"
