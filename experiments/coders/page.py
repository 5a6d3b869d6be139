"""The page of the study, from its finished draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.coders.trials import LABELS, SIZES, complaints, counts
from experiments.shared.internals import wilson

HEAD = """# Language models as coders

Fourteen language models were asked for the product of {n:,} consumer complaints, one of five. How wrong are counts of
their answers, and do the answers help if people label {labels} of the complaints at random? `python -m
experiments.coders` writes this page from `coders.jsonl`; `--draws 20` runs fewer of 100 draws. Code: `{code}`.
{done}

*Equal*: 200 complaints per topic. *Unequal*: {sizes} of the complaints of each topic are kept.

**Counts** are the shares of a model's answers. **Intervals** come from `prevalence --coder`: the answers take part
as further predictions, and the random labels correct them. Their coverage is the part of the 95 % intervals, over
topics and draws, that contain the true share. The width is relative to Wilson's interval of the same labels alone.
"""


def text(rows: list[dict[str, Any]], draws: int, code: str) -> str:
    """The page as Markdown."""
    left = len(SIZES) * draws - len(rows)
    done = "All draws are done." if left <= 0 else f"**{left} of {len(SIZES) * draws} draws are not done.**"
    n = len(complaints("equal").texts)
    sizes = ", ".join(f"{part:.0%}" for part in SIZES["unequal"])
    parts = [HEAD.format(n=n, labels=LABELS, code=code, done=done, sizes=sizes)]
    for name in SIZES:
        own = [row["found"] for row in rows if row["sizes"] == name]
        if own:
            parts += [f"## {name.capitalize()} topics, {len(own)} draws\n", *table(name, own), ""]
    return "\n".join(parts)


def table(sizes: str, found: list[dict[str, Any]]) -> list[str]:
    """Counts and intervals of each model."""
    lines = [
        "| answers of | accuracy | error of counts: mean | largest | coverage | width | width with labels alone |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    counted, true = counts(sizes), complaints(sizes).shares
    for name in found[0]:
        values = np.array([draw[name] for draw in found])
        inside = (values[:, :, 1] <= true + 5e-5) & (true - 5e-5 <= values[:, :, 2])
        low, high = wilson(true, LABELS)
        width, alone = (values[:, :, 2] - values[:, :, 1]).mean(), float((high - low).mean())
        right, *errors = counted.get(name, (np.nan, np.nan, np.nan))
        cells = [f"{right:.1%}", *(f"{100 * error:.1f} points" for error in errors)] if name in counted else 3 * ["–"]
        row = [name, *cells, f"{inside.mean():.1%}", f"{width / alone:.2f}", f"{100 * alone:.1f} points"]
        lines.append("| " + " | ".join(row) + " |")
    return lines
