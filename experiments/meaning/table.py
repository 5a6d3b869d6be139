"""The table of the study: 0.2.0, the best rival and the package per cell, misses of the goals, and mean gains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.meaning import results
from experiments.meaning.cells import CELLS, CLOSED, HIDDEN
from experiments.meaning.corpora import NAMES
from experiments.meaning.intents import CORPUS
from experiments.meaning.rivals import UNEQUAL
from experiments.meaning.vectors import EMBEDDINGS

INTENT_METHODS = ("k-means", "before", "ours")
# Largest losses: known topics against rivals and 0.2.0 with embeddings off, hidden topics against k-means and 0.2.0.
KNOWN_LOSS, HIDDEN_LOSS = 0.005, 0.02
# Least mean gains of known topics over 0.2.0 with the same embeddings.
GAINS = {"builtin": 0.02, "minilm": 0.04}
# Largest leak and least recall, on average over cells with hidden topics.
LEAK, RECALL = 0.20, 0.70
# Largest errors of the share without a known topic: mean and maximum with hidden topics, maximum without.
NONE_MEAN, NONE_MOST, NONE_CLOSED = 0.06, 0.12, 0.03
# Goals of single cells.
GOALS: dict[tuple[str, str, str, str], float] = {
    ("banking77", "names", "builtin", "known"): 0.70,
    ("banking77", "5", "builtin", "known"): 0.85,
    ("banking77", "10%", "builtin", "known"): 0.86,
    ("banking77", "names", "minilm", "known"): 0.76,
    ("banking77", "5", "minilm", "known"): 0.89,
    ("banking77", "10%", "minilm", "known"): 0.90,
    ("agnews_test", "names", "builtin", "accuracy"): 0.65,
    ("agnews_test", "names", "minilm", "accuracy"): 0.76,
    ("cap_nyt", "names", "builtin", "known"): 0.40,
    ("cap_nyt", "described", "builtin", "known"): 0.50,
    **{("banking77", cell, "builtin", "hidden"): 0.62 for cell in HIDDEN},
    **{("banking77", cell, "minilm", "hidden"): 0.72 for cell in HIDDEN},
    ("banking77_all", "25% known", "builtin", "accuracy"): 0.55,
    ("banking77_all", "50% known", "builtin", "accuracy"): 0.61,
    ("banking77_all", "75% known", "builtin", "accuracy"): 0.66,
    ("banking77_all", "25% known", "minilm", "accuracy"): 0.62,
    ("banking77_all", "50% known", "minilm", "accuracy"): 0.68,
    ("banking77_all", "75% known", "minilm", "accuracy"): 0.73,
}

Run = dict[str, Any]
# A cell, and the runs of all cells by method and seed.
Cell = tuple[str, str, str]
Runs = dict[Cell, dict[str, dict[int, Run]]]


def lines(runs: Runs) -> Iterator[str]:
    """The whole table in Markdown; methods are compared on the seeds that all of them have."""
    for measure, cells in (("known", CELLS), ("hidden", HIDDEN)):
        for embedding in EMBEDDINGS:
            yield f"\n### {measure} topics, macro AP, embeddings: {embedding}\n"
            yield "| cell | corpus | seeds | 0.2.0 | best rival | ours | misses |"
            yield "|---|---|---|---|---|---|---|"
            for cell in cells:
                for corpus in NAMES:
                    if (corpus, cell, embedding) in runs:
                        yield row(runs, (corpus, cell, embedding), measure)
    yield "\n### Means\n"
    yield from summary(runs)
    yield "\n### Open intents, all of banking77, accuracy\n"
    yield from intent_lines(runs)


def read(*paths: Path) -> Runs:
    """Runs of all files by cell, method and seed."""
    found: Runs = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        for run in results.read(path):
            found[run["corpus"], run["cell"], run["embedding"]][run["method"]][run["seed"]] = run
    return found


def row(runs: Runs, key: Cell, measure: str) -> str:
    """A line of the table."""
    methods = runs[key]
    seeds = common_seeds(methods)
    before, ours = (value(methods, method, measure, seeds) for method in ("before", "ours"))
    name, best = best_rival(methods, measure, seeds)
    cells = [key[1], key[0], str(len(seeds)), show(before), f"{show(best)} {name}", show(ours)]
    return f"| {' | '.join([*cells, '; '.join(misses(methods, key, measure, seeds))])} |"


def common_seeds(methods: dict[str, dict[int, Run]]) -> list[int]:
    """Seeds of the runs of the package, or of 0.2.0 if there are none, that all rivals have."""
    seeds = set(methods.get("ours") or methods.get("before") or {})
    for name, runs in methods.items():
        if is_rival(name):
            seeds &= runs.keys()
    return sorted(seeds)


def value(methods: dict[str, dict[int, Run]], method: str, measure: str, seeds: list[int]) -> float | None:
    """Mean of a measure over seeds; None if a run lacks."""
    own = [methods.get(method, {}).get(seed, {}).get(measure) for seed in seeds]
    return None if not own or None in own else float(np.mean(own))


def best_rival(methods: dict[str, dict[int, Run]], measure: str, seeds: list[int]) -> tuple[str, float | None]:
    """The rival with the best mean."""
    means = {name: value(methods, name, measure, seeds) for name in methods if is_rival(name)}
    found = {name: mean for name, mean in means.items() if mean is not None}
    name = max(found, key=found.__getitem__, default="")
    return name, found.get(name)


def is_rival(method: str) -> bool:
    """Whether a method sets a goal: no version of the package, and no more columns than hidden topics."""
    return method.split()[0] not in ("before", "ours") and method not in UNEQUAL


def misses(methods: dict[str, dict[int, Run]], key: Cell, measure: str, seeds: list[int]) -> list[str]:
    """Goals that the package misses in a cell."""
    ours, before = (value(methods, method, measure, seeds) for method in ("ours", "before"))
    rival = best_rival(methods, measure, seeds)[1]
    if ours is None:
        return []
    loss = KNOWN_LOSS if measure == "known" else HIDDEN_LOSS
    found = []
    if rival is not None and ours < rival - loss:
        found.append(f"rival {ours - rival:+.3f}")
    if before is not None and ours < before - loss:
        held = measure == "hidden" or key[2] == "off"
        found.append(f"0.2.0 {ours - before:+.3f}" if held else f"(0.2.0 {ours - before:+.3f})")
    for goal in ("accuracy", measure):
        least = GOALS.get((*key, goal))
        own = value(methods, "ours", goal, seeds)
        if least is not None and own is not None and own < least and (goal != "accuracy" or measure == "known"):
            found.append(f"{goal} {own:.3f}, goal {least:.2f}")
    return found


def summary(runs: Runs) -> Iterator[str]:
    """Mean gains, leak, recall and errors of P(none), each with its goal."""
    yield "| | off | builtin | minilm | goal |"
    yield "|---|---|---|---|---|"
    for method in ("before", "ours"):
        for measure, cells in (("known", CELLS), ("hidden", HIDDEN)):
            means = [mean_over(runs, e, cells, method, measure) for e in EMBEDDINGS]
            yield f"| {measure} AP, {method} | {' | '.join(map(show, means))} | |"
    for measure, cells in (("known", CELLS), ("hidden", HIDDEN)):
        gains = [gain(runs, e, cells, measure) for e in EMBEDDINGS]
        goal = ", ".join(f"{name} {least:+.2f}" for name, least in GAINS.items()) if measure == "known" else ""
        yield f"| {measure} AP, ours over 0.2.0 | {' | '.join(map(show, gains))} | {goal} |"
    for method in ("before", "ours"):
        for measure, goal in (("leak", f"at most {LEAK:.2f}"), ("recall", f"at least {RECALL:.2f}")):
            means = [mean_over(runs, e, HIDDEN, method, measure) for e in EMBEDDINGS]
            yield f"| {measure}, {method} | {' | '.join(map(show, means))} | {goal} |"
    for method in ("before", "ours", "ours half", "ours double", "ours ten"):
        for name, cells, goal in (
            ("hidden", HIDDEN, f"mean {NONE_MEAN:.2f}, most {NONE_MOST:.2f}"),
            ("closed", CLOSED, f"most {NONE_CLOSED:.2f}"),
        ):
            errors = [none_errors(runs, e, cells, method) for e in EMBEDDINGS]
            if any(errors):
                shown = [f"{np.mean(own):.3f} · {max(own):.3f}" if own else "" for own in errors]
                yield f"| error of P(none), {name}, {method}: mean · most | {' | '.join(shown)} | {goal} |"
    changes = [known_changes(runs, e) for e in EMBEDDINGS]
    if any(changes):
        shown = [f"{min(own):+.3f} to {max(own):+.3f}" if own else "" for own in changes]
        yield f"| known AP, nothing hidden, ours against a closed world | {' | '.join(shown)} | within 0.005 |"


def mean_over(runs: Runs, embedding: str, cells: tuple[str, ...], method: str, measure: str) -> float | None:
    """Mean over cells of a measure."""
    own = [value(runs[key], method, measure, common_seeds(runs[key])) for key in keys(runs, embedding, cells)]
    present = [one for one in own if one is not None]
    return float(np.mean(present)) if present else None


def gain(runs: Runs, embedding: str, cells: tuple[str, ...], measure: str) -> float | None:
    """Mean gain of the package over 0.2.0 in cells that both have."""
    found = []
    for key in keys(runs, embedding, cells):
        seeds = common_seeds(runs[key])
        ours, before = (value(runs[key], method, measure, seeds) for method in ("ours", "before"))
        if ours is not None and before is not None:
            found.append(ours - before)
    return float(np.mean(found)) if found else None


def none_errors(runs: Runs, embedding: str, cells: tuple[str, ...], method: str) -> list[float]:
    """Error of the mean of P(none) of each run."""
    own = [run for key in keys(runs, embedding, cells) for run in runs[key].get(method, {}).values()]
    return [abs(run["none"] - run["true_none"]) for run in own]


def known_changes(runs: Runs, embedding: str) -> list[float]:
    """Differences of known AP between the decision of the package and a closed world, where nothing is hidden."""
    found = []
    for key in keys(runs, embedding, CLOSED):
        closed = runs[key].get("ours closed", {})
        for decided in (runs[key].get("ours", {}), runs[key].get("ours ten", {})):
            found += [decided[seed]["known"] - closed[seed]["known"] for seed in sorted(decided.keys() & closed.keys())]
    return found


def keys(runs: Runs, embedding: str, cells: tuple[str, ...]) -> list[Cell]:
    """Cells of the study's own corpora that have runs."""
    return [key for key in runs if key[0] in NAMES and key[1] in cells and key[2] == embedding]


def intent_lines(runs: Runs) -> Iterator[str]:
    """Open intents: accuracy of each method."""
    yield "| cell | embeddings | k-means | 0.2.0 | ours | goal |"
    yield "|---|---|---|---|---|---|"
    for key, methods in sorted(runs.items()):
        if key[0] == CORPUS:
            means = [value(methods, name, "accuracy", sorted(methods.get(name, {}))) for name in INTENT_METHODS]
            yield f"| {key[1]} | {key[2]} | {' | '.join(map(show, [*means, GOALS.get((*key, 'accuracy'))]))} |"


def show(number: float | None) -> str:
    """Three digits."""
    return "" if number is None else f"{number:.3f}"
