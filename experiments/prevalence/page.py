"""README.md of this study, from the finished trials."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from experiments.prevalence.trials import DRAWS, FEW, GROUPS, Trial, fingerprint, sizes
from experiments.shared.terminal import dated, table

TITLES = {"newsgroups-6000": "20 Newsgroups", "reuters-100": "Reuters", "pubmed-8000": "PubMed", "toy": "Toy"}
Rows = list[dict[str, Any]]


def write(folder: Path, results: dict[Trial, dict[str, Any]]) -> Path:
    """Write ``folder``/README.md."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "README.md"
    path.write_text(text(results))
    return path


def text(results: dict[Trial, dict[str, Any]]) -> str:
    """The page in Markdown."""
    board: dict[tuple[str, str, int], Rows] = defaultdict(list)
    for trial, row in results.items():
        board[trial.corpus, trial.method, trial.labels].append(row)
    names = [name for name in TITLES if any(key[0] == name for key in board)]
    parts = [introduction(), random(board, names), groups(board, names), designs(board, names), warnings(board, names)]
    old = any(trial.version != fingerprint() for trial in results)
    return dated("\n\n".join(part.strip() for part in parts) + "\n", old=old)


def introduction() -> str:
    return f"""# Shares of topics: do the intervals hold?

Made by `python -m experiments.prevalence` (`--quick` for two draws; `--draws 30` for fewer than {DRAWS}); do not edit.

Each draw labels some documents, estimates the share of every topic in the corpus, and compares it with the truth. Only
topics with a share over 1 % count. **Coverage** is the part of the 95 % intervals that contain the truth. **Width** is
the mean over topics of the width relative to Wilson's interval of as many random labels without predictions. Draws
share the latent directions, which do not depend on labels; all guides are learnt again. Results are over all draws that
are done: the column *draws* has their number, and {DRAWS} are planned. A coverage of 95 % over 20 topics and 20 draws
has a standard error of about one percentage point.

20 Newsgroups is 6,000 posts without headers and quotes. Reuters is 7,507 stories, with topics that have at least 100 of
them. PubMed is 8,000 abstracts with 154 headings, 106 of them over 1 %.

The pseudo-counts of the method were chosen on 300 labels of these three corpora, so look at the other rows first."""


def ratio(rows: Rows, part: str, whole: str) -> str:
    """A share of counts in percent, over all draws."""
    total = sum(row[whole] for row in rows)
    return f"{100 * sum(row[part] for row in rows) / total:.1f}" if total else "–"


def mean(rows: Rows, name: str, digits: int = 2) -> str:
    return f"{np.mean([row[name] for row in rows]):.{digits}f}" if rows else "–"


def random(board: dict[tuple[str, str, int], Rows], names: list[str]) -> str:
    lines = []
    for name in names:
        for labels in sizes(name):
            rows, plain = board[name, "random", labels], board[name, "plain", labels]
            found = [ratio(rows, "covered", "topics"), mean(rows, "ratio"), mean(rows, "worth", 1)]
            lines.append(
                [TITLES[name], f"{labels:,}", len(rows), *found, ratio(plain, "covered", "topics"), len(plain)]
            )
    head = ["corpus", "labels", "draws", "coverage in %", "width", "worth", "plain average: coverage in %", "draws"]
    return f"""## Random labels

*Worth* 1.9 means: as if 1.9 times the labels; it is the median over topics. The *plain average* is the mean membership
of all documents with the usual interval of a mean, as in a spreadsheet.

{table(head, lines)}"""


def groups(board: dict[tuple[str, str, int], Rows], names: list[str]) -> str:
    lines = []
    for name in names:
        for labels in sizes(name):
            rows = board[name, "random", labels]
            cells = [
                [ratio(rows, f"{g} {what} covered", f"{g} {what}") for what in ("groups", "differences")]
                for g in GROUPS
            ]
            lines.append([TITLES[name], f"{labels:,}", len(rows), *(cell for pair in cells for cell in pair)])
    head = ["corpus", "labels", "draws", *(f"{g} groups, {what}" for g in GROUPS for what in ("shares", "differences"))]
    return f"""## Groups

Coverage in percent of shares in made-up groups, and of the differences of all pairs of groups. Half of the documents
belong to a group that their topic prefers, the others to any group. Twelve groups have 25 or 83 labels each on average.

{table(head, lines)}"""


def designs(board: dict[tuple[str, str, int], Rows], names: list[str]) -> str:
    lines = []
    about = {
        "doubt": "a random third, then by doubt",
        "suggested": "a random half, then suggested",
        "unnamed": "random, half of the topics unnamed",
    }
    for method, title in about.items():
        for name in names:
            for labels in sizes(name):
                rows = board[name, method, labels]
                if not rows:
                    lines.append([title, TITLES[name], f"{labels:,}", 0, "–", "–", "–"])
                    continue
                none = [row["none covered"] for row in rows]
                shown = f"{100 * np.mean(none):.0f}" if method == "unnamed" else ""
                width = mean(rows, "ratio")
                lines.append(
                    [title, TITLES[name], f"{labels:,}", len(rows), ratio(rows, "covered", "topics"), width, shown]
                )
    head = ["labels", "corpus", "number", "draws", "coverage in %", "width", "*none*: coverage in %"]
    return f"""## Other choices of documents

*By doubt*: `suggest --for prevalence`. *Suggested*: `suggest`. *Unnamed*: a random half of the topics is not known, and
documents without a known topic are labelled `(none)`; their share counts like a topic, and its own coverage is in the
last column (one interval per draw).

{table(head, lines)}"""


def warnings(board: dict[tuple[str, str, int], Rows], names: list[str]) -> str:
    lines = []
    for name in names:
        few = board[name, "few", 0]
        random = [row for labels in sizes(name) for row in board[name, "random", labels]]
        alarms = f"{sum(row['warned'] for row in random)} of {len(random)}"
        noticed = f"{sum(row['warned'] for row in few)} of {len(few)}"
        lines.append([TITLES[name], alarms, noticed, ratio(few, "covered", "topics"), mean(few, "labels", 0)])
    head = ["corpus", "random labels", f"{FEW} per topic", "its coverage in %", "its labels"]
    return f"""## Labels that are not random

Draws with the warning that labelled documents do not look like the others: for random labels it is a false alarm. {FEW}
documents per topic, taken for random ones, should raise it where they distort the shares.

{table(head, lines)}"""
