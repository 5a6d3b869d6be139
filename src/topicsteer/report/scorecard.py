"""The evaluation in a report: verdict, tables and two charts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topicsteer.analysis.columns import Column
from topicsteer.analysis.evaluate import COLUMNS, Evaluation
from topicsteer.analysis.verdict import Verdict
from topicsteer.report.grid import Grid, grid

# One marker per method, so that lines differ by more than their colour.
MARKERS = ("M-4-4h8v8h-8z", "M0-5.5L5.5 0L0 5.5L-5.5 0z", "M0-5.5L5 4H-5z", "M-5-4H5L0 5.5z")


@dataclass(frozen=True)
class Tick:
    """A number below a chart; the last one ends at its place if it is long."""

    text: str
    x: float
    last: bool


@dataclass(frozen=True)
class Point:
    """A point of a line; one with a text is a square of its own size."""

    x: float
    y: float
    size: float = 0.0
    about: str = ""

    @property
    def corner(self) -> tuple[float, float]:
        """Upper left corner of its square."""
        return self.x - self.size / 2, self.y - self.size / 2


@dataclass(frozen=True)
class Line:
    """A line of a chart, with the style class and the marker of its method."""

    name: str
    style: str
    marker: str
    points: list[Point]


@dataclass(frozen=True)
class Chart:
    """A chart with scores from 0 to 1 upwards, in the units of its viewBox."""

    title: str
    label: str
    across: str
    up: str
    ticks: list[Tick]
    lines: list[Line]
    table: Grid
    diagonal: bool = False
    width: int = 460
    height: int = 344
    left: int = 62
    right: int = 446
    top: int = 14
    bottom: int = 296

    @property
    def middle(self) -> tuple[float, float]:
        """Centre of the field, for the names of the axes."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    @property
    def levels(self) -> list[tuple[str, float]]:
        """Grid lines with their numbers."""
        return [(f"{k / 5:g}", _y(k / 5)) for k in range(6)]


@dataclass(frozen=True)
class Scorecard:
    """An evaluation as a report shows it; without tables if nothing could be judged."""

    verdict: Verdict
    summary: Grid | None = None
    topics: Grid | None = None
    confusion: Grid | None = None
    curve: Chart | None = None
    advice: str = ""
    reliability: Chart | None = None
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
        None if evaluation.curve is None else _learning(evaluation.learning_curve()),
        evaluation.advice,
        _reliability(evaluation),
        [[name, *map(score.format, errors)] for name, *errors in zip(*evaluation.calibration().values(), strict=True)],
    )


def _learning(table: Mapping[str, Sequence[float]]) -> Chart | None:
    """Average precision by the number of labelled documents, on a logarithmic scale."""
    counts = table["labelled"]
    scores = {name: values for name, values in table.items() if name != "labelled"}
    if len(counts) < 2 or not any(math.isfinite(value) for values in scores.values() for value in values):
        return None
    low, high = math.log(counts[0]), math.log(counts[-1])
    places = [_x((math.log(n) - low) / max(high - low, 1e-9)) for n in counts]
    lines = [
        Line(
            name,
            f"s{min(i, 3)}",
            MARKERS[min(i, 3)],
            [Point(x, _y(value)) for x, value in zip(places, values, strict=True) if math.isfinite(value)],
        )
        for i, (name, values) in enumerate(scores.items())
    ]
    ends = "; ".join(f"{name} from {values[0]:.3f} to {values[-1]:.3f}" for name, values in scores.items())
    ticks = _ticks([f"{n:,.0f}" for n in counts], places)
    shown = {"labelled": [round(n) for n in counts], **scores}
    numbers = grid("curve-table", "Macro average precision by number of labelled documents", shown, COLUMNS)
    label = f"Learning curve: {ends}"
    return Chart("Learning curve", label, "labelled documents", "macro average precision", ticks, lines, numbers)


def _reliability(evaluation: Evaluation) -> Chart | None:
    """Observed share of pairs by their predicted probability; larger squares are more pairs."""
    table = evaluation.reliability()
    bins = [row for row in zip(table["predicted"], table["observed"], table["pairs"], strict=True) if row[-1]]
    if not bins:
        return None
    largest = max(pairs for *_, pairs in bins)
    points = [
        Point(
            _x(predicted),
            _y(observed),
            4 + 8 * math.sqrt(math.log1p(pairs) / math.log1p(largest)),
            f"predicted {predicted:.2f}, observed {observed:.2f}, {pairs:,} pairs",
        )
        for predicted, observed, pairs in bins
    ]
    label = "Reliability of the predicted probabilities"
    ticks = _ticks([f"{k / 5:g}" for k in range(6)], [_x(k / 5) for k in range(6)])
    lines = [Line("", "s0", MARKERS[0], points)]
    counted = grid("reliability-table", label, table, (Column("pairs", "count"),))
    return Chart("Calibration", label, "predicted probability", "observed share", ticks, lines, counted, diagonal=True)


def _ticks(texts: Sequence[str], places: Sequence[float]) -> list[Tick]:
    last = max(places)
    return [Tick(text, x, x == last and len(text) > 2) for text, x in zip(texts, places, strict=True)]


def _x(value: float) -> float:
    return Chart.left + (Chart.right - Chart.left) * value


def _y(value: float) -> float:
    return Chart.bottom + (Chart.top - Chart.bottom) * value
