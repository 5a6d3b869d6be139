"""Plan and run the trials: one draw of labels in one corpus each, and five made coders."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np

from experiments.prevalence.trials import LEAST_SHARE, World, drawn, evidence, guide_fingerprint, prepared
from experiments.shared import internals
from experiments.shared.fingerprints import codes, meaning
from experiments.shared.internals import Coder, coder_of, compare_coders, estimates, predictor_of

# Draws of labels. Shares have the draws and predictions of the study of shares, and other made coders.
DRAWS = {"errors": 10, "shares": 20}
# Numbers of labelled documents.
SIZES = (300, 1000)
# Probability that a made coder gives all topics of a document right; otherwise it gives the topics of another one.
CODERS = {"copies a person": 1.0, "90 %": 0.9, "70 %": 0.7, "50 %": 0.5, "random": 0.0}
# Measures with intervals.
MEASURES = ("precision", "recall", "kappa", "alpha")


@dataclass(frozen=True)
class Trial:
    """Configuration of a trial; ``version`` changes with the code, which makes old results stale."""

    corpus: str
    method: str
    labels: int
    seed: int
    version: str

    @property
    def key(self) -> str:
        """The configuration as text, the same in any process."""
        return json.dumps(asdict(self), sort_keys=True)


@lru_cache
def fingerprint(method: str) -> str:
    """A hash of the code of the comparisons and, for shares, of the guide and of the estimates."""
    parts = sorted(codes(errors if method == "errors" else shares))
    sources = internals.coder_sources(method)
    if method == "shares":
        sources += internals.share_sources()
        parts.append(guide_fingerprint())
    return sha256("\n".join([*parts, *map(meaning, sources)]).encode()).hexdigest()[:12]


def plan(corpora: list[str]) -> list[Trial]:
    """All trials, seed by seed."""
    return [
        Trial(corpus, method, labels, seed, fingerprint(method))
        for method, draws in DRAWS.items()
        for seed in range(draws)
        for corpus in corpora
        for labels in SIZES
    ]


def made(truth: np.ndarray, right: float, rng: np.random.Generator) -> np.ndarray:
    """Answers of a made coder: the topics of the document, or of another one."""
    n = len(truth)
    return truth[np.where(rng.random(n) < right, np.arange(n), rng.integers(n, size=n))]


def perform(trial: Trial) -> dict[str, Any]:
    """Run a trial."""
    rng, corpus = np.random.default_rng([trial.seed, trial.labels, 7]), prepared(trial.corpus)
    labels = min(trial.labels, len(corpus.truth) // 2)
    if trial.method == "shares":
        return shares(*drawn(trial.corpus, "random", labels, trial.seed), rng)
    rows = np.sort(rng.choice(len(corpus.truth), labels, replace=False))
    world = World(corpus.task, corpus.truth, corpus.topics, rng)
    return errors(world, rows, rng)


def as_coder(world: World, name: str, answers: np.ndarray, rows: Any = slice(None)) -> Coder:
    """Answers as a coder; rows without an answer are unlabelled."""
    given: list[list[str]] = [[] for _ in range(world.n)]
    for row in np.arange(world.n)[rows]:
        given[row] = [world.names[k] for k in np.flatnonzero(answers[row])] or ["(none)"]
    return coder_of(name, given, world.n, world.names)


def errors(world: World, rows: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """How often the intervals of precision, recall, κ and α contain the values in the whole corpus."""
    people = as_coder(world, "anna", world.truth, rows)
    judged = np.flatnonzero(world.truth.mean(axis=0) > LEAST_SHARE)
    result: dict[str, float] = {"topics": len(judged)}
    for name, right in CODERS.items():
        answers = made(world.truth, right, rng)
        found = compare_coders(as_coder(world, name, answers, rows), people)
        true = true_values(answers > 0, world.truth > 0)
        for measure in MEASURES:
            values = true[measure]
            some = [(getattr(found[k], measure), values[k]) for k in judged if not np.isnan(values[k])]
            result[f"{name}: {measure}"] = len(some)
            result[f"{name}: {measure} covered"] = sum(bool(low <= value <= high) for (_, low, high), value in some)
            result[f"{name}: {measure} width"] = float(np.mean([high - low for (_, low, high), _ in some]))
    return result


def true_values(said: np.ndarray, true: np.ndarray) -> dict[str, np.ndarray]:
    """Precision, recall, κ and α (without its correction for small samples) of all documents, from counts alone."""
    with np.errstate(invalid="ignore", divide="ignore"):
        both, f, y = (part.mean(axis=0) for part in (said & true, said, true))
        observed, half = 1 - f - y + 2 * both, (f + y) / 2
        by_chance = {"kappa": f * y + (1 - f) * (1 - y), "alpha": half**2 + (1 - half) ** 2}
        beyond = {name: (observed - chance) / (1 - chance) for name, chance in by_chance.items()}
        return {"precision": both / f, "recall": both / y, **beyond}


def shares(world: World, found: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, Any]:
    """Coverage and width of the shares with each coder, relative to shares without it, and to labels alone."""
    sample, own = evidence(world, found)
    share = world.truth.mean(axis=0)
    judged = share > LEAST_SHARE
    # With weights, the size of the corpus is known without predictions.
    alone = width(estimates.estimate(sample, [], weights=np.ones(world.n)), judged)
    plain = estimates.estimate(sample, [own])
    without = width(plain, judged)
    result: dict[str, Any] = {"topics": int(judged.sum()), "guide": float((without / alone).mean())}
    result["without"] = without.round(5).tolist()
    for name, right in CODERS.items():
        more, note = predictor_of(as_coder(world, name, made(world.truth, right, rng)), sample)
        if more is None:
            raise ValueError(note)
        both = estimates.estimate(sample, [own, more])
        inside = (both.low[0, :-1] <= share) & (share <= both.high[0, :-1])
        result |= {
            f"{name}: covered": int(inside[judged].sum()),
            f"{name}: width": float((width(both, judged) / without).mean()),
            f"{name}: widths": width(both, judged).round(5).tolist(),
            f"{name}: variance": float((both.variance / plain.variance)[0, :-1][judged].max()),
            f"{name}: labels alone": float((width(both, judged) / alone).mean()),
        }
    return result


def width(found: estimates.Estimates, judged: np.ndarray) -> np.ndarray:
    """Widths of the intervals of some topics."""
    return (found.high - found.low)[0, :-1][judged]
