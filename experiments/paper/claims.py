"""The claims of the paper, each with a verdict and the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from experiments.paper.runs import TOPIC_MODEL
from experiments.paper.scoreboard import Interval, Scoreboard, correlation, deviations, difference, mean_interval
from experiments.paper.stationarity import SMALL, Descent, largest
from experiments.shared.corpora import EXAMPLES

# TS-NMF from a uniform H, which the paper does not have.
UNIFORM = "TS-NMF uniform start"
# Verdicts.
CONFIRMED, REFUTED, OPEN = "confirmed", "not confirmed", "undecided"
# A point with a larger residual than this is not stationary.
LARGE = 0.1
# Score of most claims.
SCORE = "similarity_all"
# Single precision explains a rise of the objective up to this.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, the verdict, and the numbers behind it."""

    text: str
    verdict: str
    number: str


def sign(interval: Interval | None) -> str:
    """Confirmed if the interval lies above 0, not confirmed if it lies below, else undecided."""
    if interval is None:
        return OPEN
    return CONFIRMED if interval.low > 0 else REFUTED if interval.high < 0 else OPEN


def both(*verdicts: str) -> str:
    """Verdict of a claim with several parts: refuted if one part is, confirmed if all are."""
    return REFUTED if REFUTED in verdicts else CONFIRMED if set(verdicts) == {CONFIRMED} else OPEN


def above(board: Scoreboard, first: tuple[str, float], second: tuple[str, float]) -> tuple[str, str]:
    """Whether the similarity of one method is above that of another, and the difference."""
    interval = difference(board.values(*first, SCORE), board.values(*second, SCORE))
    return sign(interval), f"{name(first)} − {name(second)}: {interval or 'not enough runs'}"


def plain(method: str) -> str:
    """The name of NMF from the same start."""
    return method.removeprefix("TS-")


def name(method: tuple[str, float]) -> str:
    return f"{method[0]} {method[1]:g}" if method[1] else method[0]


def claims(
    boards: dict[str, Scoreboard], method: str = "TS-NMF", descents: Mapping[Descent, dict[str, Any]] | None = None
) -> list[Claim]:
    """All claims that the finished runs cover, with this method as TS-NMF."""
    way = "multiplicative, H uniform" if method == UNIFORM else "multiplicative, Random Acol"
    found = [theorem(list(boards.values()), method), convergence(descents or {}, way)]
    if "reuters" in boards:
        found += reuters(boards["reuters"], method)
    if "pubmed" in boards:
        found += pubmed(boards["pubmed"], method)
    return found


def convergence(descents: Mapping[Descent, dict[str, Any]], way: str) -> Claim:
    """Judged by the largest residual of the Karush-Kuhn-Tucker conditions at the end of long runs."""
    rows = [(run, row) for run, row in descents.items() if run.way == way]
    text = "The rules converge to a local minimum (Theorem 1)."
    if not rows:
        return Claim(text, OPEN, "no runs")
    ends = [largest(row)[-1] for _, row in rows]
    verdict = CONFIRMED if max(ends) <= SMALL else REFUTED if min(ends) > LARGE else OPEN
    last, left = max(row["iterations"][-1] for _, row in rows), max(row["left"] for _, row in rows)
    number = (
        f"{len(rows)} runs of up to {last:,} iterations, largest residual {min(ends):.1e} to {max(ends):.1e}, at most "
        f"{SMALL:g} in {sum(end <= SMALL for end in ends)}; coordinate descent from there lowers the objective by "
        f"up to {left:.1e} of its value"
    )
    return Claim(text, verdict, number)


def theorem(boards: list[Scoreboard], method: str = "TS-NMF") -> Claim:
    rules = (method, f"{method} unweighted")
    rises = [row["largest_rise"] for board in boards for run, row in board.rows.items() if run.method in rules]
    verdict = OPEN if not rises else CONFIRMED if np.max(rises) <= ROUNDING else REFUTED  # NaN is refuted too
    worst = f"largest relative change from one iteration to the next {np.max(rises):.1e}" if rises else "no runs"
    return Claim("The update rules never raise the objective (Theorem 1).", verdict, f"{len(rises)} fits, {worst}")


def reuters(board: Scoreboard, method: str) -> Iterator[Claim]:
    ts, nmf, lda = (lambda rate: (method, rate)), (plain(method), 0.0), ("LDA", 0.0)
    yield Claim("Reuters: LDA is above NMF.", *above(board, lda, nmf))
    yield Claim("Reuters: LDA is above TS-NMF at 5 %.", *above(board, lda, ts(0.05)))
    for rate in (0.1, 0.2):
        pairs = [above(board, ts(rate), other) for other in (nmf, lda)]
        text = f"Reuters: TS-NMF is above NMF and LDA at {rate:.0%} supervision.".replace("%", " %")
        yield Claim(text, both(*(v for v, _ in pairs)), "; ".join(n for _, n in pairs))
    yield levelling(board, method)
    yield resolved(board, method)
    yield from weighting(board, method)
    interval = correlation(*deviations(board, method))
    verdict = OPEN if interval is None else REFUTED if interval.low > 0 or interval.high < 0 else CONFIRMED
    text = "Reuters: at a given rate, topic coverage and score are not related."
    yield Claim(text, verdict, f"correlation of the deviations: {interval or 'not enough runs'}")
    yield from table_1(board, method)


def levelling(board: Scoreboard, method: str) -> Claim:
    """Gain of similarity per ten points of supervision, for each seed: up to 20 %, and from 20 to 70 %."""
    low, middle, high = (board.values(method, rate, SCORE) for rate in (0.05, 0.2, 0.7))
    text = "Reuters: rapid improvement below 20 %, levelling off from 20 % to 70 % (less than half as steep)."
    n = min(len(low), len(middle), len(high))
    early, late = (middle[:n] - low[:n]) / 1.5, (high[:n] - middle[:n]) / 5
    if n < 2:
        return Claim(text, OPEN, "not enough runs")
    number = f"gain per 10 points: {early.mean():.4f} from 5 to 20 %, {late.mean():.4f} from 20 to 70 %"
    return Claim(text, sign(mean_interval(early / 2 - late)), number)


def resolved(board: Scoreboard, method: str) -> Claim:
    counts = board.values(method, 0.9, "resolved_all")
    interval = mean_interval(counts - 0.9 * board.n_topics)
    text = "Reuters: above 70 % nearly all remaining topics are resolved (nine in ten at 90 %)."
    if interval is None:
        return Claim(text, OPEN, "not enough runs")
    before = board.mean(method, 0.7, "resolved_all")
    return Claim(text, sign(interval), f"of {board.n_topics} topics {before:.1f} at 70 %, {counts.mean():.1f} at 90 %")


def weighting(board: Scoreboard, method: str) -> Iterator[Claim]:
    """Differences are taken seed by seed, because a seed fixes the labelled documents and the start."""
    gains: dict[float, Interval] = {}
    for rate in board.rates(f"{method} unweighted"):
        pair = [board.values(each, rate, SCORE) for each in (method, f"{method} unweighted")]
        n = min(map(len, pair))
        interval = mean_interval(pair[0][:n] - pair[1][:n])
        if interval:
            gains[rate] = interval
    inside = {rate: gain for rate, gain in gains.items() if 0.2 <= rate <= 0.7}
    outside = {rate: gain for rate, gain in gains.items() if rate not in inside}

    def listed(part: dict[float, Interval]) -> str:
        return "; ".join(f"{rate:g}: {gain}" for rate, gain in part.items()) or "not enough runs"

    text = "Reuters: weighted TS-NMF is better than unweighted between 0.2 and 0.7."
    yield Claim(text, both(*map(sign, inside.values())), listed(inside))
    differs = [sign(gain) != OPEN for gain in outside.values()]
    text = "Reuters: the two are comparable at other rates (no detectable difference)."
    yield Claim(text, OPEN if not differs else REFUTED if any(differs) else CONFIRMED, listed(outside))


def pubmed(board: Scoreboard, method: str) -> Iterator[Claim]:
    ts, nmf, lda = (lambda rate: (method, rate)), (plain(method), 0.0), ("LDA", 0.0)
    yield Claim("PubMed: LDA is much worse than NMF.", *above(board, nmf, lda))
    pairs = [above(board, nmf, ts(rate)) for rate in (0.05, 0.2, 0.5)]
    verdict, number = both(*(v for v, _ in pairs[:2])), "; ".join(n for _, n in pairs)
    yield Claim("PubMed: NMF is above TS-NMF up to about 50 % (judged at 5 and 20 %).", verdict, number)
    yield Claim("PubMed: at 80 % TS-NMF is above NMF.", *above(board, ts(0.8), nmf))
    yield variability(board, method)
    yield bimodality(board, method)


def variability(board: Scoreboard, method: str) -> Claim:
    """Levene's test in the form of Brown and Forsythe, at each rate."""
    text = "PubMed: NMF varies less from run to run than TS-NMF."
    nmf, parts, verdicts = board.values(plain(method), 0.0, SCORE), [], []
    for rate in board.rates(method):
        values = board.values(method, rate, SCORE)
        if min(nmf.size, values.size) < 5:
            continue
        ratio, p = values.std(ddof=1) / nmf.std(ddof=1), stats.levene(values, nmf).pvalue
        parts.append(f"{rate:g}: {ratio:.2g} (p = {p:.2g})")
        verdicts.append(OPEN if p > 0.05 else CONFIRMED if ratio > 1 else REFUTED)
    number = "standard deviation of TS-NMF over NMF's: " + "; ".join(parts) if parts else "not enough runs"
    return Claim(text, both(*verdicts), number)


def bimodality(board: Scoreboard, method: str) -> Claim:
    """Sarle's coefficient: 0.56 for a uniform distribution, more for two modes; undecided with fewer than 30 runs."""
    values = board.values(method, 0.5, SCORE)
    n = values.size
    if n < 5:
        return Claim("PubMed: the scores at 50 % have two modes.", OPEN, "not enough runs")
    skew, excess = stats.skew(values, bias=False), stats.kurtosis(values, bias=False)
    coefficient = (skew**2 + 1) / (excess + 3 * (n - 1) ** 2 / ((n - 2) * (n - 3)))
    verdict = OPEN if n < 30 else CONFIRMED if coefficient > 5 / 9 else REFUTED
    return Claim("PubMed: the scores at 50 % have two modes.", verdict, f"Sarle's {coefficient:.2f} over {n} runs")


# Documents of Table 1, and the words that their topics should show.
SHOWN = (("14913", {"yen", "dollar"}), ("14885", {"sugar"}), ("14854", {"industrial", "production"}))


def table_1(board: Scoreboard, method: str = "TS-NMF") -> Iterator[Claim]:
    """Whether the topics of an example document show the words of the paper, over the seeds."""
    everyone = (method, plain(method), "LDA")
    for (document, words), methods in zip(SHOWN, (everyone, everyone, (method,)), strict=True):
        who = "TS-NMF shows" if len(methods) == 1 else "every method shows"
        text = f"Table 1, {EXAMPLES[int(document)]}: {who} {' and '.join(sorted(words))}."
        share, number = words_shown(board, document, words, methods)
        yield Claim(text, CONFIRMED if share > 0.9 else REFUTED if share < 0.5 else OPEN, number)


def words_shown(board: Scoreboard, document: str, words: set[str], methods: tuple[str, ...]) -> tuple[float, str]:
    """Share of the fits whose topics of a document show all words, and the counts in words."""
    shown = [
        len(words & {term for topic in row[document] for term in topic["terms"]})
        for run, row in board.others.items()
        if run.study == "examples" and run.method in methods and document in row
    ]
    whole, part = shown.count(len(words)), len(shown) - shown.count(0)
    either = f", at least one of the two in {part}" if len(words) > 1 else ""
    return (whole / len(shown) if shown else 0.5), f"in {whole} of {len(shown)} fits{either}"


def beyond(board: Scoreboard) -> Iterator[Claim]:
    """Questions beyond the paper: the unlabelled documents alone, and simple classifiers."""

    def compare(first: tuple[str, float], second: tuple[str, float], score: str) -> tuple[str, str]:
        interval = difference(board.values(*first, score), board.values(*second, score))
        return {CONFIRMED: "yes", REFUTED: "no"}.get(sign(interval), OPEN), (
            f"{name(first)} − {name(second)}: {interval or 'not enough runs'}"
        )

    for document, words in SHOWN if any(run.method == TOPIC_MODEL for run in board.others) else ():
        share, number = words_shown(board, document, words, (TOPIC_MODEL,))
        text = f"Table 1, {EXAMPLES[int(document)]}: does `TopicModel()` show {' and '.join(sorted(words))}?"
        yield Claim(text, "yes" if share > 0.9 else "no" if share < 0.5 else OPEN, number)
    title, ts, uniform = board.corpus.replace("reuters", "Reuters").replace("pubmed", "PubMed"), "TS-NMF", UNIFORM
    for rate in (0.2, 0.8):
        here, percent = (ts, rate), f"{100 * rate:g} %"
        text = f"is TS-NMF at {percent} more similar to the labels than NMF?"
        yield Claim(f"{title}: {text}", *compare(here, ("NMF", 0.0), "similarity_unlabelled"))
        text = f"does a uniform H give a higher macro AP than Random Acol ({percent})?"
        yield Claim(f"{title}: {text}", *compare((uniform, rate), here, "macro_unlabelled"))
        for method in ("TS-NMF default solver", "nearest centroid", "logistic regression"):
            text = f"does {method.replace('TS-NMF', 'our')} give a higher macro AP than TS-NMF ({percent})?"
            yield Claim(f"{title}: {text}", *compare((method, rate), here, "macro_unlabelled"))
        text = f"does our default solver give a higher macro AP than TS-NMF from a uniform start ({percent})?"
        yield Claim(f"{title}: {text}", *compare(("TS-NMF default solver", rate), (uniform, rate), "macro_unlabelled"))
