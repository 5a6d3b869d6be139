"""README.md of this study, from the finished trials."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from experiments.shared.terminal import dated, table
from experiments.trees.trials import BUDGETS, SEEDS, Trial, fingerprint

TITLES = {"newsgroups-6000": "20 Newsgroups", "reuters-tree": "Reuters", "toy": "Toy"}
# Columns of the tables, and the methods of the columns.
COLUMNS = {
    "tree": "tree",
    "flat": "flat",
    "full": "all at the leaf",
    "logistic regression": "logistic regression",
    "hiclass": "hiclass",
}
# Draws below this number are much like the ones that the rules were chosen with.
SEEN = 4
Scores = dict[tuple[str, str, str], dict[int, dict[str, float]]]


def write(folder: Path, results: dict[Trial, dict[str, Any]]) -> Path:
    """Write ``folder``/README.md."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "README.md"
    path.write_text(text(results))
    return path


def text(results: dict[Trial, dict[str, Any]]) -> str:
    """The page in Markdown."""
    scores: Scores = defaultdict(dict)
    for trial, row in results.items():
        scores[trial.corpus, trial.budget, trial.method][trial.seed] = row
    parts = [introduction(), level(scores, "leaves"), level(scores, "parents"), consistency(results)]
    old = any(trial.version != fingerprint(trial.method) for trial in results)
    return dated("\n\n".join(part.strip() for part in parts) + "\n", old=old)


def introduction() -> str:
    return f"""# Topic trees: what are labels above the leaves worth?

Made by `python -m experiments.trees` (`--quick` for two draws); do not edit.

Half of the labelled documents have their leaves as labels, the others only the parents of their leaves. Scores are on
documents without any label: average precision, the mean over topics (macro), over {SEEDS} draws of labels.

20 Newsgroups is 6,000 posts without headers and quotes, with 20 leaves below 7 first names, such as `rec` for
`rec.autos`. Reuters is 5,000 stories with 36 leaves: nine groups of topics that we made, and `ship` without a group. A
story has all groups of its topics. Every document has a leaf, so nothing here tests the rest of a parent.

The rules of the tree were chosen on these two corpora, among about fifteen variants with up to four draws each. These
are much like the draws 0 to 3 here; the other six were new. Below, *gain, new draws* has these six alone.

Tree, flat and *all at the leaf* also read the names of the topics; logistic regression and hiclass do not.

- **tree**: the guide of all topics, in which only topics of the same level exclude each other. These are the
  memberships of `TopicModel(parents=..., embeddings=None)` in a closed world.
- **flat**: the guide of the leaves, learnt from documents with leaves as labels. A parent is the noisy-or of its
  leaves.
- **all at the leaf**: the same, if every labelled document had its leaves. It knows more than the others.
- **logistic regression**: of the leaves with documents that have leaves as labels; of the parents with all labels.
- **hiclass**: `LocalClassifierPerParentNode` with logistic regression and labels at both levels.

*Gain* is tree minus flat, with its standard error over draws."""


def level(scores: Scores, name: str) -> str:
    lines, gains = [], []
    for corpus in TITLES:
        for budget in BUDGETS:
            cells = {method: scores.get((corpus, budget, method), {}) for method in COLUMNS}
            if not cells["tree"]:
                continue
            shared = sorted(cells["tree"].keys() & cells["flat"].keys())
            gain = [cells["tree"][seed][f"{name} macro"] - cells["flat"][seed][f"{name} macro"] for seed in shared]
            means = [mean(list(own.values()), f"{name} macro") for own in cells.values()]
            gains += [float(np.mean(gain))] if gain else []
            new = [value for seed, value in zip(shared, gain, strict=True) if seed >= SEEN]
            lines.append([TITLES[corpus], budget, len(shared), *means, with_error(gain), with_error(new)])
    head = ["corpus", "labels", "draws", *COLUMNS.values(), "gain", "gain, new draws"]
    mean_gain = f"{np.mean(gains):+.3f}" if gains else "–"
    return f"""## {name.capitalize()}

{table(head, lines)}

Mean gain over the rows: {mean_gain}."""


def mean(rows: list[dict[str, float]], name: str) -> str:
    return f"{np.mean([row[name] for row in rows]):.3f}" if rows else "–"


def with_error(gain: list[float]) -> str:
    """Mean and standard error."""
    if not gain:
        return "–"
    error = f" ± {np.std(gain, ddof=1) / np.sqrt(len(gain)):.3f}" if len(gain) > 1 else ""
    return f"{np.mean(gain):+.3f}{error}"


def consistency(results: dict[Trial, dict[str, Any]]) -> str:
    counts = {
        method: sum(row["contradictions"] for trial, row in results.items() if trial.method == method)
        for method in ("tree", "logistic regression")
    }
    return f"""## Consistency

Pairs of document and leaf with a leaf above its parent, over all draws: {counts["tree"]:,} in the tree, and
{counts["logistic regression"]:,} in the logistic regressions of leaves and parents."""
