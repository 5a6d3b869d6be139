"""The comparison of a model with the baselines, worded once for terminal, report and JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

Scores = Mapping[str, Sequence[Any]]
# Measures that rank the methods: their sum decides the headline.
RANKED_BY = ("macro average precision", "micro average precision")
# More topics without enough labels are counted, not named.
NAMED = 8


@dataclass(frozen=True)
class Standing:
    """One measure: the score of the first method, and the best score of the others with its method."""

    measure: str
    ours: float
    rival: str
    best: float

    @property
    def lead(self) -> float:
        """Lead of the first method at three decimals; negative where it is behind."""
        return round(self.ours, 3) - round(self.best, 3)


@dataclass(frozen=True)
class Finding:
    """One statement of a verdict, good or bad for the first method."""

    tone: Literal["good", "bad", "neutral"]
    text: str


@dataclass(frozen=True)
class Verdict:
    """Who finds the hidden labels best, where a baseline is ahead, and which topics could not be judged.

    Examples
    --------
    >>> print(Verdict((Finding("good", "topicsteer is best."), Finding("bad", "A baseline is ahead in F1."))))
    topicsteer is best. A baseline is ahead in F1.
    """

    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return " ".join(finding.text for finding in self.findings)


def compare(summary: Scores, topics: Scores, not_judged: Sequence[str] = ()) -> Verdict:
    """Compare the first method with the others.

    Parameters
    ----------
    summary : mapping of str to sequence
        Names of the measures, and one column per method; see `Evaluation.summary`.
    topics : mapping of str to sequence
        Average precision per topic, one column per method; other columns are ignored.
    not_judged : sequence of str
        Topics with too few labels.

    Examples
    --------
    >>> summary = {"measure": [*RANKED_BY, "F1"], "topicsteer": [0.9, 0.9, 0.5], "centroid": [0.8, 0.7, 0.6]}
    >>> print(compare(summary, {"topicsteer": [0.9], "centroid": [0.8]}, ["tea"]))
    By average precision, topicsteer finds the hidden labels best. Centroid is ahead in F1 (0.600 against 0.500).
    Not judged, too few labels: tea.
    """
    ours, *rivals = list(summary)[1:]
    rows = [summary["measure"].index(measure) for measure in RANKED_BY]
    ranks = {name: sum(_number(summary[name][row]) for row in rows) for name in (ours, *rivals)}
    findings = [_headline(ranks, ours)]
    if math.isfinite(ranks[ours]):
        ahead: dict[str, list[str]] = {}
        for row in standings(summary):
            if row.lead < 0:
                ahead.setdefault(row.rival, []).append(f"{row.measure} ({row.best:.3f} against {row.ours:.3f})")
        findings += [Finding("bad", f"{_start(name)} is ahead in {', '.join(v)}.") for name, v in ahead.items()]
        each = [[_number(value) for value in row] for row in zip(*(topics[name] for name in ranks), strict=True)]
        lost = sum(any(rival > row[0] for rival in row[1:]) for row in each)
        if lost:
            findings.append(Finding("neutral", f"A baseline is ahead in {lost:,} of {len(each):,} topics."))
    if not_judged:
        more = [f"{len(not_judged) - NAMED} more"] if len(not_judged) > NAMED else []
        names = ", ".join([*not_judged[:NAMED], *more])
        findings.append(Finding("neutral", f"Not judged, too few labels: {names}."))
    return Verdict(tuple(findings))


def too_few_labels(names: Sequence[str]) -> Verdict:
    """The verdict where nothing can be compared, with the only topics that have labels to hide."""
    text = (
        "There are too few labels for an evaluation: at least two topics need two labelled documents each, not all of "
        f"them the same. Topics with enough labels so far: {', '.join(names)}."
    )
    return Verdict((Finding("neutral", text),))


def standings(summary: Scores) -> list[Standing]:
    """The standing in each measure for which all methods have a score.

    Parameters
    ----------
    summary : mapping of str to sequence
        Names of the measures, and one column per method; see `Evaluation.summary`.

    Examples
    --------
    >>> standings({"measure": ["F1", "recall"], "topicsteer": [0.5, None], "nearest centroid": [0.6, 0.7]})
    [Standing(measure='F1', ours=0.5, rival='nearest centroid', best=0.6)]
    """
    rivals = list(summary)[2:]
    return [
        Standing(str(measure), ours, *max(zip(rivals, others, strict=True), key=itemgetter(1)))
        for measure, ours, *others in (zip(*summary.values(), strict=True) if rivals else ())
        if all(math.isfinite(_number(value)) for value in (ours, *others))
    ]


def _headline(ranks: Mapping[str, float], ours: str) -> Finding:
    if math.isnan(ranks[ours]):
        return Finding(
            "neutral",
            "No hidden document is known to lack a topic, so only recall can be judged. Mark topics that documents do "
            "not have, or declare their labels complete if they are.",
        )
    best = max((name for name in ranks if name != ours), key=lambda name: ranks[name])
    if round(ranks[ours], 6) == round(ranks[best], 6):
        return Finding("neutral", f"{ours} and {best} find the hidden labels equally well.")
    if ranks[ours] > ranks[best]:
        return Finding("good", f"By average precision, {ours} finds the hidden labels best.")
    text = f"By average precision, {best} finds the hidden labels better than {ours} on these documents."
    return Finding("bad", text)


def _start(name: str) -> str:
    return name[:1].upper() + name[1:]


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
