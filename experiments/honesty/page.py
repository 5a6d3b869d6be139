"""The page of the study, from its finished trials."""

from __future__ import annotations

from collections import Counter
from typing import Any

from experiments.honesty.corpora import KNOWN, SIZE
from experiments.honesty.states import STATES

HEAD = """# Honesty

Are the printed numbers true? `python -m experiments.honesty` writes this page from `honesty.jsonl`; finished trials are
kept. It needs the prepared corpora of [meaning](../meaning/README.md). Code: `{code}`. {done}

{size:,} documents of each corpus: {corpora}.
A user knows {least} to {most} of their topics, and all other documents have none of them. There are three draws of
topics, documents and labels. Everything that is printed for a model is collected: the table of topics, the belief,
`evaluate`, `prevalence`, the agreement of a coder, the report and the paper trail. The workbench shows the same shares.
Digits are removed from the texts, so each number in an output is one of topicsteer.

**A number with an interval** counts as true if its 95 % interval contains the truth. The truth of a share is that of
all documents. The truth of precision and recall is that of the predictions for unlabelled documents. **A number without
an interval** is searched in the texts: any percentage or decimal, except counts of labels, settings and versions.
"""


def text(rows: list[dict[str, Any]], planned: int, code: str) -> str:
    """The page as Markdown."""
    left = planned - len(rows)
    done = f"All {planned:,} trials are done." if not left else f"**{left:,} of {planned:,} trials are not done.**"
    head = HEAD.format(
        code=code,
        done=done,
        size=SIZE,
        corpora=", ".join(KNOWN),
        least=min(KNOWN.values()),
        most=max(KNOWN.values()),
    )
    parts = [head, "## With an interval\n", *by_kind(rows), "## By state\n", *by_state(rows)]
    parts += ["## Without an interval\n", *without_interval(rows)]
    return "\n".join(parts)


def inside(figure: list[Any]) -> bool:
    """Whether the interval of a figure contains the truth, to four digits."""
    _, _, _, low, high, truth = figure
    return bool(low - 5e-5 <= truth <= high + 5e-5)


def of_interest(row: dict[str, Any]) -> list[list[Any]]:
    """Figures with an interval and a truth."""
    return [figure for figure in row["figures"] if None not in figure[3:]]


def by_kind(rows: list[dict[str, Any]]) -> list[str]:
    """Coverage of each kind of number."""
    kinds: dict[str, list[list[Any]]] = {}
    for row in rows:
        for figure in of_interest(row):
            kinds.setdefault(figure[0], []).append(figure)
    lines = ["| number | printed | interval contains the truth | mean width |", "| --- | ---: | ---: | ---: |"]
    every = [figure for figures in kinds.values() for figure in figures]
    for kind, figures in [*kinds.items(), ("**all**", every)]:
        if figures:
            width = sum(figure[4] - figure[3] for figure in figures) / len(figures)
            lines.append(f"| {kind} | {len(figures):,} | {percent(map(inside, figures))} | {width:.3f} |")
    return [*lines, ""]


def by_state(rows: list[dict[str, Any]]) -> list[str]:
    """Coverage of shares and scores in each state, and numbers without an interval."""
    lines = ["| state | trials | numbers | shares inside | scores inside | without an interval |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for state in STATES:
        own = [row for row in rows if row["state"] == state]
        figures = [figure for row in own for figure in of_interest(row)]
        shares = [figure for figure in figures if figure[0].startswith(("share", "difference"))]
        scores = [figure for figure in figures if not figure[0].startswith(("share", "difference"))]
        bare = sum(len(row["bare"]) for row in own)
        cells = [state, len(own), f"{len(figures):,}", percent(map(inside, shares)), percent(map(inside, scores)), bare]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return [*lines, ""]


def without_interval(rows: list[dict[str, Any]]) -> list[str]:
    """The most frequent numbers without an interval, with the words around them."""
    found = Counter(bare for row in rows for bare in row["bare"])
    if not found:
        return ["None is printed.", ""]
    return [*(f"- `{bare}` ({times} times)" for bare, times in found.most_common(20)), ""]


def percent(values: Any) -> str:
    """Share of true values in percent; a dash for none."""
    values = list(values)
    return f"{100 * sum(values) / len(values):.1f} %" if values else "–"
