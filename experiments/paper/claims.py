"""The claims of the paper, each with a verdict and the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from experiments.paper.descents import WAYS
from experiments.paper.runs import DESCENT, RATES, TABLE_1, Run

# Starts that the claims are judged with: the end of a method's name, and the start's name.
STARTS = {"": "authors' start", ", Random Acol": "Random Acol", ", uniform": "uniform"}
# Verdicts.
CONFIRMED, REFUTED, OPEN = "confirmed", "not confirmed", "undecided"
# A largest residual up to the first is small; a point with one above the second is not stationary.
SMALL, LARGE = 1e-3, 0.1
# Single precision explains a rise of the objective up to this.
ROUNDING = 1e-6
# Documents of Table 1, and the words that their topics should show.
SHOWN = ((1, "14913", {"yen", "dollar"}), (2, "14885", {"sugar"}), (3, "14854", {"industrial", "production"}))


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, the verdict, and the numbers behind it."""

    text: str
    verdict: str
    number: str


class Board:
    """Rows of the finished runs."""

    def __init__(self, rows: Mapping[Run, dict[str, Any]]) -> None:
        self.rows = dict(rows)

    def of(self, corpus: str, method: str, rate: float = 0.0) -> list[dict[str, Any]]:
        """Rows by seed."""
        runs = sorted(run for run in self.rows if (run.corpus, run.method, run.rate) == (corpus, method, rate))
        return [self.rows[run] for run in runs]

    def values(self, corpus: str, method: str, rate: float = 0.0, score: str = "similarity") -> np.ndarray:
        """One number per seed."""
        return np.array([row[score] for row in self.of(corpus, method, rate)], dtype=np.float64)

    def rates(self, corpus: str, method: str) -> list[float]:
        """Rates of a method."""
        return sorted({run.rate for run in self.rows if (run.corpus, run.method) == (corpus, method)})

    def sizes(self, corpus: str) -> dict[str, Any] | None:
        """Sizes of a corpus, None before they are measured."""
        return next(iter(self.of(corpus, "sizes")), None)


def difference(a: np.ndarray, b: np.ndarray) -> Interval | None:
    """Mean of a minus mean of b with Welch's interval; None if either has fewer than two values."""
    if min(a.size, b.size) < 2:
        return None
    gap, parts = float(a.mean() - b.mean()), np.array([a.var(ddof=1) / a.size, b.var(ddof=1) / b.size])
    if not parts.any():
        return Interval(gap, gap, gap)
    freedom = parts.sum() ** 2 / (parts**2 / (a.size - 1, b.size - 1)).sum()
    half = float(stats.t.ppf(0.975, freedom) * np.sqrt(parts.sum()))
    return Interval(gap, gap - half, gap + half)


def mean_interval(values: np.ndarray) -> Interval | None:
    """Mean with Student's interval; None with fewer than two values."""
    if values.size < 2:
        return None
    half = float(stats.t.ppf(0.975, values.size - 1) * stats.sem(values))
    return Interval(float(values.mean()), float(values.mean()) - half, float(values.mean()) + half)


def correlation(x: np.ndarray, y: np.ndarray) -> Interval | None:
    """Pearson's r with Fisher's interval; None with fewer than ten points."""
    if x.size < 10 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    result = stats.pearsonr(x, y)
    low, high = result.confidence_interval(0.95)
    return Interval(float(result.statistic), float(low), float(high))


def sign(interval: Interval | None) -> str:
    """Confirmed if the interval lies above 0, not confirmed if it lies below, else undecided."""
    if interval is None:
        return OPEN
    return CONFIRMED if interval.low > 0 else REFUTED if interval.high < 0 else OPEN


def both(*verdicts: str) -> str:
    """Verdict of a claim with several parts: refuted if one part is, confirmed if all are."""
    return REFUTED if REFUTED in verdicts else CONFIRMED if set(verdicts) == {CONFIRMED} else OPEN


def claims(board: Board, start: str = "") -> list[Claim]:
    """All claims, with TS-NMF from this start."""
    return [theorem(board, start), convergence(board, start), *reuters(board, start), *pubmed(board, start)]


def theorem(board: Board, start: str) -> Claim:
    methods = (f"TS-NMF{start}", f"TS-NMF{start} unweighted", f"NMF{start}")
    rises = [row["rise"] for run, row in board.rows.items() if run.method in methods]
    verdict = OPEN if not rises else CONFIRMED if max(rises) <= ROUNDING else REFUTED
    number = f"{len(rises)} fits, largest relative change {max(rises):.1e}" if rises else "no runs"
    return Claim("The rules never raise the objective (Theorem 1).", verdict, number)


def convergence(board: Board, start: str) -> Claim:
    """Judged by the largest residual of the Karush-Kuhn-Tucker conditions at the end of long runs."""
    text = "The rules converge to a local minimum (Theorem 1)."
    method = f"{DESCENT}: multiplicative, {STARTS[start]}"
    ends = [max(row["W"], row["H"]) for run, row in board.rows.items() if run.method == method]
    if not ends:
        return Claim(text, OPEN, "no runs")
    verdict = CONFIRMED if max(ends) <= SMALL else REFUTED if min(ends) > LARGE else OPEN
    return Claim(text, verdict, f"residual {min(ends):.0e} to {max(ends):.0e} after {WAYS[method[9:]][2]:,} iterations")


def reuters(board: Board, start: str) -> Iterator[Claim]:
    method = f"TS-NMF{start}"
    nmf, lda = (board.values("reuters", other) for other in (f"NMF{start}", "LDA"))
    gap = difference(lda, nmf)
    yield Claim("Reuters: LDA is above NMF.", sign(gap), text_of(gap))
    gap = difference(lda, board.values("reuters", method, 0.05))
    yield Claim("Reuters: LDA is above TS-NMF at 5 %.", sign(gap), text_of(gap))
    for rate in (0.1, 0.2):
        gaps = [difference(board.values("reuters", method, rate), other) for other in (nmf, lda)]
        text = f"Reuters: TS-NMF is above NMF and LDA at {100 * rate:.0f} %."
        yield Claim(text, both(*map(sign, gaps)), f"NMF {text_of(gaps[0])}, LDA {text_of(gaps[1])}")
    gaps = [difference(board.values("reuters", method, rate), o) for rate in RATES if rate >= 0.1 for o in (nmf, lda)]
    lows = [gap.low for gap in gaps if gap]
    number = f"smallest lower end of an interval {min(lows):+.4f}" if len(lows) == len(gaps) else "not enough runs"
    text = "Reuters: TS-NMF is above NMF and LDA at every rate from 10 % on."
    yield Claim(text, both(*map(sign, gaps)), number)
    yield levelling(board, method)
    yield resolved(board, method)
    if not start:
        yield from weighting(board)
    interval = correlation(*deviations(board, method))
    verdict = OPEN if interval is None else REFUTED if interval.low > 0 or interval.high < 0 else CONFIRMED
    text = "Reuters: at a given rate, topic coverage and score are not related."
    yield Claim(text, verdict, f"correlation {text_of(interval)}")
    yield from table_1(board, start)


def text_of(interval: Interval | None) -> str:
    return "not enough runs" if interval is None else str(interval)


def levelling(board: Board, method: str) -> Claim:
    """Gain of similarity per ten points of supervision, for each seed: up to 20 %, and from 20 to 70 %."""
    low, middle, high = (board.values("reuters", method, rate) for rate in (0.05, 0.2, 0.7))
    n = min(len(low), len(middle), len(high))
    early, late = (middle[:n] - low[:n]) / 1.5, (high[:n] - middle[:n]) / 5
    number = f"gain per 10 points {early.mean():.4f}, then {late.mean():.4f}" if n > 1 else "not enough runs"
    text = "Reuters: rapid improvement up to 20 %, then levelling off until 70 % (less than half as steep)."
    return Claim(text, sign(mean_interval(early / 2 - late)), number)


def resolved(board: Board, method: str) -> Claim:
    counts, sizes = board.values("reuters", method, 0.9, "resolved"), board.sizes("reuters")
    n_topics = sizes["topics"] if sizes else 90
    interval = mean_interval(counts - 0.9 * n_topics)
    before = board.values("reuters", method, 0.7, "resolved")
    number = "not enough runs"
    if interval and before.size:
        number = f"{before.mean():.1f} of {n_topics} at 70 %, {counts.mean():.1f} at 90 %"
    text = "Reuters: above 70 % nearly all remaining topics are resolved (nine in ten at 90 %)."
    return Claim(text, sign(interval), number)


def weighting(board: Board) -> Iterator[Claim]:
    """Differences are taken seed by seed, because a seed fixes the labelled documents and the start."""
    gains: dict[float, Interval] = {}
    for rate in RATES:
        pair = [board.values("reuters", method, rate) for method in ("TS-NMF", "TS-NMF unweighted")]
        n = min(map(len, pair))
        interval = mean_interval(pair[0][:n] - pair[1][:n])
        if interval:
            gains[rate] = interval
    inside = {rate: gain for rate, gain in gains.items() if 0.2 <= rate <= 0.7}
    outside = {rate: gain for rate, gain in gains.items() if rate not in inside}

    def listed(part: dict[float, Interval]) -> str:
        return ", ".join(f"{rate:g}: {gain.mean:+.4f}" for rate, gain in part.items()) or "not enough runs"

    text = "Reuters: weighted TS-NMF is better than unweighted between 0.2 and 0.7."
    yield Claim(text, both(*map(sign, inside.values())), listed(inside))
    differs = [sign(gain) != OPEN for gain in outside.values()]
    text = "Reuters: the two are comparable at other rates (no detectable difference)."
    yield Claim(text, OPEN if not differs else REFUTED if any(differs) else CONFIRMED, listed(outside))


def deviations(board: Board, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Coverage and similarity of each run minus the mean of its rate."""
    x, y = [np.zeros(0)], [np.zeros(0)]
    for rate in board.rates("reuters", method):
        covered = board.values("reuters", method, rate, "coverage")
        similar = board.values("reuters", method, rate)
        x.append(covered - covered.mean())
        y.append(similar - similar.mean())
    return np.concatenate(x), np.concatenate(y)


def table_1(board: Board, start: str) -> Iterator[Claim]:
    """Whether the topics of an example document show the words of the paper, over the seeds."""
    for number, document, words in SHOWN:
        methods = [f"TS-NMF{start}"] + ([] if number == 3 else [f"NMF{start}", "LDA"])
        who = "TS-NMF shows" if number == 3 else "every method shows"
        text = f"Table 1, document {number}: {who} {' and '.join(sorted(words))}."
        shown = [count for method in methods for count in words_shown(board, document, words, method)]
        share = np.mean([count == len(words) for count in shown]) if shown else 0.5
        verdict = CONFIRMED if share > 0.9 else REFUTED if share < 0.5 else OPEN
        yield Claim(text, verdict, f"in {sum(count == len(words) for count in shown)} of {len(shown)} fits")


def words_shown(board: Board, document: str, words: set[str], method: str) -> list[int]:
    """Number of the words that the topics of a document show, per fit."""
    rows = [row for rate in (0.0, *TABLE_1) for row in board.of("reuters", method, rate) if "examples" in row]
    return [len(words & {term for topic in row["examples"][document] for term in topic["terms"]}) for row in rows]


def pubmed(board: Board, start: str) -> Iterator[Claim]:
    nmf, lda = (board.values("pubmed", other) for other in (f"NMF{start}", "LDA"))
    ts = {rate: board.values("pubmed", f"TS-NMF{start}", rate) for rate in (0.05, 0.2, 0.5, 0.8)}
    gap = difference(nmf, lda)
    yield Claim("PubMed: LDA is much worse than NMF.", sign(gap), text_of(gap))
    gaps = {rate: difference(nmf, ts[rate]) for rate in (0.05, 0.2, 0.5)}
    text = "PubMed: NMF is above TS-NMF up to about 50 % (judged at 5 and 20 %)."
    number = ", ".join(f"{rate:g}: {text_of(gap)}" for rate, gap in gaps.items())
    yield Claim(text, both(sign(gaps[0.05]), sign(gaps[0.2])), number)
    gap = difference(ts[0.8], nmf)
    yield Claim("PubMed: at 80 % TS-NMF is above NMF.", sign(gap), text_of(gap))
    yield variability(nmf, ts)
    yield bimodality(ts[0.5])


def variability(nmf: np.ndarray, ts: dict[float, np.ndarray]) -> Claim:
    """Levene's test in the form of Brown and Forsythe, at each rate."""
    parts, verdicts = [], []
    for rate, values in ts.items():
        if min(nmf.size, values.size) >= 5:
            ratio, p = values.std(ddof=1) / nmf.std(ddof=1), stats.levene(values, nmf).pvalue
            parts.append(f"{rate:g}: {ratio:.2g} (p = {p:.2g})")
            verdicts.append(OPEN if p > 0.05 else CONFIRMED if ratio > 1 else REFUTED)
    text = "PubMed: NMF varies less from run to run than TS-NMF."
    number = "ratio of the standard deviations " + ", ".join(parts) if parts else "not enough runs"
    return Claim(text, both(*verdicts), number)


def bimodality(values: np.ndarray) -> Claim:
    """Sarle's coefficient: 0.56 for a uniform distribution, more for two modes; undecided with fewer than 30 runs."""
    n, text = values.size, "PubMed: the scores at 50 % have two modes."
    if n < 5:
        return Claim(text, OPEN, "not enough runs")
    skew, excess = stats.skew(values, bias=False), stats.kurtosis(values, bias=False)
    coefficient = (skew**2 + 1) / (excess + 3 * (n - 1) ** 2 / ((n - 2) * (n - 3)))
    verdict = OPEN if n < 30 else CONFIRMED if coefficient > 5 / 9 else REFUTED
    return Claim(text, verdict, f"Sarle's {coefficient:.2f} over {n} runs")
