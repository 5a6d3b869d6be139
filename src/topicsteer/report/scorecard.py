"""The evaluation in a report: verdict, tables and the reliability chart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topicsteer.analysis.evaluation import COLUMNS, Evaluation, Verdict
from topicsteer.analysis.table_columns import Column
from topicsteer.report.grid import Grid, grid

# Edges of the field of the chart.
LEFT, RIGHT, TOP, BOTTOM = 62, 446, 14, 296


@dataclass(frozen=True)
class Scorecard:
    """An evaluation as a report shows it; without tables if nothing could be judged."""

    verdict: Verdict
    summary: Grid | None = None
    topics: Grid | None = None
    confusion: Grid | None = None
    reliability: Mapping[str, Any] | None = None
    calibration: Sequence[Sequence[str]] = ()


def scorecard(evaluation: Evaluation) -> Scorecard:
    """Arrange an evaluation for a page."""
    if not evaluation.judged:
        return Scorecard(evaluation.judgement)
    methods, topics, confusion = list(evaluation.scores), evaluation.table(), evaluation.confusion()
    bars = {name: topics[name] for name in ("precision", "recall", "F1")}
    shares = [part / max(whole, 1) for part, whole in zip(confusion["documents"], confusion["of"], strict=True)]
    score = Column("", "number")
    return Scorecard(
        evaluation.judgement,
        grid("evaluation-table", "Scores of each method", evaluation.summary(), compared=methods),
        grid("evaluation-topics", "Scores of each topic", topics, COLUMNS, compared=methods, bars=bars),
        grid("confusion-table", "Most frequent confusions", confusion, COLUMNS, bars={"documents": shares}),
        _reliability(evaluation),
        [[name, *map(score.format, errors)] for name, *errors in zip(*evaluation.calibration().values(), strict=True)],
    )


def _reliability(evaluation: Evaluation) -> dict[str, Any] | None:
    """Draw predicted probabilities against observed shares: squares, numbers at both axes, and a table.

    None without pairs.
    """
    table = evaluation.reliability()
    bins = [row for row in zip(table["predicted"], table["observed"], table["pairs"], strict=True) if row[-1]]
    if not bins:
        return None
    largest = max(pairs for *_, pairs in bins)
    points = []
    for predicted, observed, pairs in bins:
        size = 4 + 8 * math.sqrt(math.log1p(pairs) / math.log1p(largest))
        about = f"predicted {predicted:.2f}, observed {observed:.2f}, {pairs:,} pairs"
        points.append((_x(predicted), _y(observed), size, about))
    levels = [k / 5 for k in range(6)]
    across = [(f"{level:g}", _x(level)) for level in levels]
    up = [(f"{level:g}", _y(level)) for level in levels]
    counted = grid(
        "reliability-table", "Reliability of the predicted probabilities", table, (Column("pairs", "count"),)
    )
    return {"points": points, "across": across, "up": up, "table": counted}


def _x(value: float) -> float:
    return LEFT + (RIGHT - LEFT) * value


def _y(value: float) -> float:
    return BOTTOM + (TOP - BOTTOM) * value
