"""README.md of this study, from the finished trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.coders.trials import CODERS, MEASURES, SIZES, Trial, fingerprint
from experiments.shared.terminal import dated

HEAD = """\
# Coders with known errors

Five made coders on three corpora. A coder gives all topics of a document with the probability in its name; otherwise it
gives the topics of a document drawn at random. "random" does so always, and "copies a person" never. Labels are drawn
at random and complete. Only topics with a share over 1 % are judged.

`python -m experiments.coders` runs the missing trials and writes this page. `coders.jsonl` has the finished ones.
"""
ERRORS = """
## Precision, recall and agreement

Part of the 95 % intervals that contain the value of the whole corpus, and in brackets their mean width. Intervals of
precision and recall are exact, so they cover at least as often as they claim.
"""
SHARES = """
## Shares of topics

Columns: coverage of the 95 % intervals with the coder as a further predictor; mean width relative to the guide alone;
the same for the topic with the largest ratio, from mean widths over draws; the largest variance of a label relative to
the guide alone, of all topics and draws; mean width relative to labels alone. A topic with very few labels may get a
wider interval, because its estimated share rises.
"""


def write(folder: Path, results: dict[Trial, dict[str, Any]]) -> Path:
    """Write ``folder``/README.md."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "README.md"
    path.write_text(text(results))
    return path


def text(results: dict[Trial, dict[str, Any]]) -> str:
    """The page in Markdown."""
    old = any(trial.version != fingerprint(trial.method) for trial in results)
    return dated("\n".join([HEAD, *errors(results), *shares(results)]).rstrip() + "\n", old=old)


def chosen(results: dict[Trial, dict[str, Any]], method: str) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Results of a kind of trial, by corpus and number of labels."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for trial, result in results.items():
        if trial.method == method:
            found.setdefault((trial.corpus, trial.labels), []).append(result)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], SIZES.index(item[0][1]))))


def errors(results: dict[Trial, dict[str, Any]]) -> list[str]:
    """The table of intervals of errors."""
    head = f"| corpus | labels | draws | coder | {' | '.join(MEASURES)} |"
    lines = [ERRORS, head, "|---|---:|---:|---|---:|---:|---:|---:|"]
    for (corpus, labels), some in chosen(results, "errors").items():
        for name in CODERS:
            cells = [
                f"{sum(r[f'{name}: {m} covered'] for r in some) / sum(r[f'{name}: {m}'] for r in some):.1%} "
                f"({np.mean([r[f'{name}: {m} width'] for r in some]):.2f})"
                for m in MEASURES
            ]
            lines.append(f"| {corpus} | {labels:,} | {len(some)} | {name} | {' | '.join(cells)} |")
    return lines


def shares(results: dict[Trial, dict[str, Any]]) -> list[str]:
    """The table of shares."""
    lines = [
        SHARES,
        "| corpus | labels | draws | coder | coverage | to guide alone | worst topic | variance | to labels alone |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|",
    ]
    for (corpus, labels), some in chosen(results, "shares").items():
        topics = sum(r["topics"] for r in some)
        for name in CODERS:
            cells = [f"{sum(r[f'{name}: covered'] for r in some) / topics:.1%}"]
            own, other = (np.mean([r[key] for r in some], axis=0) for key in (f"{name}: widths", "without"))
            cells += [
                f"{np.mean([r[f'{name}: width'] for r in some]):.3f}",
                f"{(own / other).max():.3f}",
                f"{max(r[f'{name}: variance'] for r in some):.3f}",
                f"{np.mean([r[f'{name}: labels alone'] for r in some]):.3f}",
            ]
            lines.append(f"| {corpus} | {labels:,} | {len(some)} | {name} | {' | '.join(cells)} |")
    return lines
