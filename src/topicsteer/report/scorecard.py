"""The evaluation in a report: verdict and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topicsteer.analysis.evaluation import COLUMNS, Evaluation, Verdict
from topicsteer.analysis.table_columns import Column, Grid, grid


@dataclass(frozen=True)
class Scorecard:
    """An evaluation as a report shows it; without tables if nothing could be judged."""

    verdict: Verdict
    summary: Grid | None = None
    topics: Grid | None = None
    confusion: Grid | None = None
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
        [[name, *map(score.format, errors)] for name, *errors in zip(*evaluation.calibration().values(), strict=True)],
    )
