"""The report's part on evaluation: verdicts, tables, and two charts as SVG."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from topicsteer.analysis.evaluate import standings
from topicsteer.report.markup import Table, cell, measured, passages, render_table, score, words
from topicsteer.system.safe_text import shown

# A chart's field inside its margins, in the units of its viewBox.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 344, 62, 14, 14, 48
# One marker a method, so that colour is not all that tells them apart.
MARKERS = ("M-4-4h8v8h-8z", "M0-5.5L5.5 0L0 5.5L-5.5 0z", "M0-5.5L5 4H-5z", "M-5-4H5L0 5.5z")


def scorecard(evaluation: Mapping[str, Any] | None) -> str:
    """The section as HTML.

    Parameters
    ----------
    evaluation : mapping or None
        "summary": a table with one row a measure, of which more is better, and one column a method, ours first.
        "topics": a table with one row a topic; columns named like methods are compared. Optional are "reliability", a
        table of bins with the columns pairs, said and right; "calibration", a table with one row a method; "confusion",
        a table with the columns topic, taken for, documents, of; "curve", tables by "macro" and "micro" with the column
        labelled and one a method; "advice", a sentence on the curve; "judged", if that is false only "verdict" is
        shown, which says why.
        None: not evaluated.

    Examples
    --------
    >>> "Not evaluated" in scorecard(None)
    True
    >>> page = scorecard({"summary": {"measure": ["F1"], "topicsteer": [0.5], "nearest centroid": [0.6]}})
    >>> "a baseline wins" in page
    True
    """
    if evaluation is None:
        return str(passages()["not evaluated"])
    if not evaluation.get("judged", True):
        return f'<p class="note">{shown(evaluation["verdict"], 600)}</p>'
    summary, by_topic = evaluation.get("summary") or {}, evaluation.get("topics") or {}
    methods = list(summary)[1:]  # the first column names the measures
    parts = [f'<div class="verdict">{"".join(verdicts(summary, by_topic, methods))}</div>']
    if summary:
        parts.append(render_table(summary, "evaluation-table", "Scores of each method", best=methods))
    charts = [_learning(evaluation), _reliability(evaluation)]
    if any(charts):
        parts.append(f'<div class="charts">{"".join(charts)}</div>')
    if by_topic:
        parts.append(f"<h3>By topic</h3>{_topics(by_topic, methods)}")
    if evaluation.get("confusion"):
        parts.append(f"<h3>Topics taken for each other</h3>{_confusion(evaluation['confusion'])}")
    return "\n".join(parts)


def verdicts(summary: Table, by_topic: Table, methods: Sequence[str]) -> list[str]:
    """One sentence a measure: whether ours, the first method, is the best, and which is if not."""
    rows, a = standings(summary), shown(methods[0]) if methods else ""
    told: list[str] = []
    best_of: list[str] = []
    for row in rows:
        mine, best = f"<b>{cell(row.ours)}</b>", f"<b>{cell(row.best)}</b>"
        b, what = shown(row.rival), f"<b>{shown(words(row.measure))}</b>"
        if row.lead > 0:
            best_of.append(what)
        elif row.lead < 0:
            told.append(f'<p class="note bad">{what}: <b>a baseline wins</b>, {b} with {best}; {a} has {mine}.</p>')
        else:
            told.append(f'<p class="note">{what}: {a} and {b} are equal with {mine}.</p>')
    if best_of:
        count = f"all {len(rows)}" if len(best_of) == len(rows) else f"{len(best_of)} of {len(rows)}"
        told.insert(0, f'<p class="note good">{a} is best in {count} measures: {", ".join(best_of)}.</p>')
    compared = [by_topic[name] for name in methods if name in by_topic]
    if len(compared) > 1 and methods[0] in by_topic:
        scores = [[score(value) for value in row] for row in zip(*compared, strict=True)]
        lost = sum(max(row) > row[0] for row in scores)
        plural = "" if len(scores) == 1 else "s"
        told.append(f'<p class="note">A baseline is ahead in {lost:,} of {len(scores):,} topic{plural}.</p>')
    return told


def _topics(table: Table, methods: Sequence[str]) -> str:
    """The table of topics, with a bar for how often what was said is right and what is there was found."""
    bars = [name for name in ("precision", "recall", "F1") if name in table and name not in methods]
    ready = {name: [measured(score(v), cell(v)) for v in table[name]] for name in bars}
    compared = [name for name in methods if name in table]
    shown_table = render_table(table, "evaluation-topics", "Scores of each topic", best=compared, ready=ready)
    return f"{passages()['scores of topics']}{shown_table}" if compared and bars else shown_table


def _confusion(table: Table) -> str:
    """Which topics were mistaken for which."""
    if not len(next(iter(table.values()), ())):
        return '<p class="note good">No hidden document was given a topic that it does not have.</p>'
    rows = zip(table["documents"], table["of"], strict=True)
    ready = {"documents": [measured(a / max(b, 1), cell(a)) for a, b in rows]}
    shown_table = render_table(table, "confusion-table", "Topics taken for each other", ready=ready)
    return f"{passages()['confusion']}{shown_table}"


# --- charts ---


def _learning(evaluation: Mapping[str, Any]) -> str:
    """Average precision by the number of labels."""
    table = (evaluation.get("curve") or {}).get("macro") or {}
    counts = [float(n) for n in table.get("labelled", ())]
    lines = {
        name: [(x, score(y)) for x, y in zip(counts, values, strict=True) if math.isfinite(score(y))]
        for name, values in table.items()
        if name != "labelled"
    }
    if len(counts) < 2 or not any(lines.values()):
        return ""
    low, high = math.log(counts[0]), math.log(counts[-1])
    across = {n: _x((math.log(n) - low) / max(high - low, 1e-9)) for n in counts}
    marks = [_axes({f"{n:,.0f}": across[n] for n in counts}, "labelled documents", "macro average precision")]
    for i, points in enumerate(lines.values()):
        places = [(across[n], _y(value)) for n, value in points]
        dots = "".join(f'<path transform="translate({x:.1f} {y:.1f})" d="{MARKERS[min(i, 3)]}"/>' for x, y in places)
        marks.append(f'<g class="s{min(i, 3)}">{_line(places)}{dots}</g>')
    legend = "".join(
        f'<li class="s{min(i, 3)}"><svg viewBox="-14 -7 28 14" aria-hidden="true"><path class="line" d="M-14 0H14"/>'
        f'<path d="{MARKERS[min(i, 3)]}"/></svg>{shown(name, 40)}</li>'
        for i, name in enumerate(lines)
    )
    told = "; ".join(f"{name} from {line[0][1]:.3f} to {line[-1][1]:.3f}" for name, line in lines.items() if line)
    advice = f'<p class="fine">{shown(evaluation["advice"], 600)}</p>' if evaluation.get("advice") else ""
    return _figure("More labels", marks, f"Learning curve: {told}", f'<ul class="key">{legend}</ul>{advice}')


def _reliability(evaluation: Mapping[str, Any]) -> str:
    """How often what was said with a probability is right; larger squares are more pairs."""
    table = evaluation.get("reliability") or {}
    bins = [
        (score(said), score(right), int(pairs))
        for pairs, said, right in zip(*(table.get(c, ()) for c in ("pairs", "predicted", "observed")), strict=True)
        if pairs
    ]
    if not bins:
        return ""

    marks = [_axes({f"{p / 5:g}": _x(p / 5) for p in range(6)}, "probability said", "share that is right")]
    marks.append(f'<path class="even" d="M{_x(0):.1f} {_y(0):.1f}L{_x(1):.1f} {_y(1):.1f}"/>')
    largest = max(pairs for _, _, pairs in bins)
    dots = ""
    for said, right, pairs in bins:
        size = 4 + 8 * math.sqrt(math.log1p(pairs) / math.log1p(largest))
        dots += f'<path d="M{_x(said) - size / 2:.1f} {_y(right) - size / 2:.1f}h{size:.1f}v{size:.1f}h-{size:.1f}z">'
        dots += f"<title>said {said:.2f}, right {right:.2f}, {pairs:,} pairs</title></path>"
    places = [(_x(said), _y(right)) for said, right, _ in bins]
    marks.append(f'<g class="s0">{_line(places)}{dots}</g>')
    errors = evaluation.get("calibration") or {}
    each = [
        f"{shown(method, 40)} <b>{cell(error)}</b>, where a topic was likely <b>{cell(likely)}</b>"
        for method, error, likely in zip(*list(errors.values())[:3], strict=True)
    ]
    text = "On the dashed line, of the pairs said to be 80 % probable 80 % are right."
    text += f" Mean distance (expected calibration error): {'; '.join(each)}." if each else ""
    below = f'<p class="fine">{text}</p>'
    return _figure("Do the probabilities hold?", marks, "Reliability of the probabilities", below)


def _figure(title: str, marks: Sequence[str], label: str, below: str) -> str:
    return (
        f'<figure class="chart plate"><h3>{title}</h3><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{shown(label, 400)}">{"".join(marks)}</svg><figcaption>{below}</figcaption></figure>'
    )


def _axes(ticks: Mapping[str, float], across: str, up: str) -> str:
    """Grid lines and their numbers: 0 to 1 upwards, ticks across."""
    bottom = HEIGHT - BOTTOM
    marks = [
        f'<path class="grid" d="M{LEFT} {_y(v / 5):.1f}H{WIDTH - RIGHT}"/>'
        f'<text class="up" x="{LEFT - 8}" y="{_y(v / 5):.1f}">{v / 5:g}</text>'
        for v in range(6)
    ]
    last = max(ticks.values(), default=0)
    for text, x in ticks.items():
        end = " end" if x == last and len(text) > 2 else ""
        marks.append(f'<text class="across{end}" x="{min(x, WIDTH - 2):.1f}" y="{bottom + 18}">{text}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    marks.append(f'<text class="across name" x="{middle:.1f}" y="{HEIGHT - 11}">{across}</text>')
    turned = f'transform="translate(13 {(TOP + bottom) / 2:.1f}) rotate(-90)"'
    marks.append(f'<text class="across name" {turned}>{up}</text>')
    return "".join(marks)


def _x(value: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value


def _y(value: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value)


def _line(places: Sequence[tuple[float, float]]) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline class="line" points="{points}"/>'
