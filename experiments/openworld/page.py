"""README.md of this study, from the finished trials."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from experiments.openworld.trials import (
    BUDGETS,
    COLUMNS,
    FORM_BUDGETS,
    LIMIT,
    METHODS,
    OURS,
    OURS_W,
    QUICK_SHARE,
    SEEDS,
    SHARES,
    Trial,
    missing,
)
from experiments.openworld.worlds import FORMS
from experiments.shared.corpora import Corpus
from experiments.shared.store import Store
from experiments.shared.terminal import table

TITLES = {
    "newsgroups-headers": "20 Newsgroups with headers",
    "newsgroups-6000": "20 Newsgroups",
    "reuters-100": "Reuters",
    "pubmed-8000": "PubMed",
    "toy": "Toy",
}
LABELS = {"k3": "3 per topic", "k10": "10 per topic", "k30": "30 per topic", "3 %": "3 %", "10 %": "10 %"}
# Measures in the order of the tables, and whether more is better.
MEASURES = {
    "hidden AP": True,
    "leak": False,
    "known AP": True,
    "recall": True,
    "precision": True,
    "none error": False,
    "share error": False,
}
# Measures of the tables by share of hidden topics.
MAIN = ("hidden AP", "leak", "known AP")
# Measures in which our method is compared with each other method.
CONTESTED = ("hidden AP", "known AP")
ABOUT = {
    OURS: "`TopicModel(free_topics=..., topics=known)`; at 3 per topic it is declared that topics are hidden "
    '(`world="open"`); known topics and *none* by `memberships`, decisions by `decide`',
    OURS_W: "the same fit; topic shares of the factorisation (`document_topics`), without decisions",
    "NMF": "scikit-learn's, of all documents, start nndsvda, at most 200 iterations; without labels, so without "
    "known topics",
    "NMF of doubt": "the same NMF of the documents whose largest probability by logistic regression is below the "
    "median; weights of all documents times one minus that probability",
    "k-means with labels": "100 latent directions; labelled documents stay in their cluster (generalised category "
    "discovery, Vaze et al. 2022); best of 3 starts; score: lead of the cosine; decision: nearest centre",
    "naive Bayes EM": "tf-idf rows times 5, smoothing 0.1, one class per free column, labelled documents clamped, "
    "started at softened k-means, 10 rounds; score: log odds; decision: one half",
    "LabeledLDA (topica)": "free topics are labels that no labelled document has; 50 iterations of CVB0; decision: "
    "largest topic",
    "PLDA (tomotopy)": "latent topics, which labelled documents may use too; an unlabelled document may have any "
    "label; 100 iterations; decision: largest topic",
    "CorEx with anchors": "five anchor words per known topic from its labelled documents, strength 3; decision: one "
    "half",
    "logistic regression": "one per known topic, balanced, C = 10; decision: one half; no free columns",
}
NOT_RUN = """Not run:

- topicsteer 0.1.0.
- Semi-supervised HDBSCAN (fast_hdbscan 0.3.2 and 0.2.2, numba 0.68.1 and 0.61.2): its semi-supervised mode ends with
  a typing error of numba.
- BERTopic (0.17.4): its dependencies include torch."""


class Board:
    """Results by corpus, share, budget, form, method and kind of columns."""

    def __init__(self, results: dict[Trial, dict[str, Any]]) -> None:
        self.rows: dict[tuple[Any, ...], dict[int, dict[str, Any]]] = defaultdict(dict)
        for t, row in results.items():
            self.rows[t.corpus, t.share, t.budget, t.form, t.method, t.columns][t.seed] = row

    def seeds(self, cell: tuple[Any, ...], method: str, columns: str) -> dict[int, dict[str, Any]]:
        """Results of a method by seed; a cell is a corpus, a share, a budget and a form."""
        return self.rows.get((*cell, method, columns), {})

    def mean(
        self, cell: tuple[Any, ...], method: str, columns: str, measure: str, common: tuple[str, str] | None = None
    ) -> float:
        """Mean over the seeds, or over the seeds also done by ``common``; NaN if there is none."""
        rows = self.seeds(cell, method, columns)
        others = rows if common is None else self.seeds(cell, *common)
        values = [row.get(measure, np.nan) for seed, row in rows.items() if seed in others]
        return float(np.mean(values)) if values else float("nan")

    def lines(self, cell: tuple[Any, ...]) -> list[tuple[str, str]]:
        """Methods and kinds of columns with a result, fewer columns first."""
        return [
            (name, columns) for columns in (*COLUMNS, "none") for name in METHODS if self.seeds(cell, name, columns)
        ]


def write(folder: Path, store: Store, planned: list[Trial], loaded: dict[str, Corpus]) -> Path:
    """Write ``folder``/README.md."""
    results = store.results(planned)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "README.md"
    reasons = {name: reason for name in METHODS if (reason := missing(name))}
    path.write_text(text(Board(results), loaded, len(planned), len(planned) - len(results), reasons))
    return path


def text(board: Board, loaded: dict[str, Corpus], planned: int, left: int, reasons: dict[str, str]) -> str:
    """The page in Markdown; ``reasons`` explain methods that cannot run."""
    parts = [
        introduction(loaded, planned, left),
        verdict(board, list(loaded)),
        *(section(board, name, reasons) for name in loaded),
        forms(board, list(loaded)),
        seconds(board, list(loaded)),
        about(),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def introduction(loaded: dict[str, Corpus], planned: int, left: int) -> str:
    rows = [
        [
            TITLES[name],
            f"{corpus.X.shape[0]:,}",
            f"{corpus.X.shape[1]:,}",
            len(corpus.topics),
            f"{corpus.truth.sum() / corpus.X.shape[0]:.2f}",
        ]
        for name, corpus in loaded.items()
    ]
    done = "All of them are done." if not left else f"{left:,} of them are not done yet."
    return f"""# Topics that nobody named

Made by `make peers` (`make peers QUICK=1` for a smaller version); do not edit.

{table(["corpus", "documents", "terms", "topics", "labels per document"], rows)}

A seed hides some of the topics: they never get a label, and their documents stay in the corpus. The other topics are
known. The methods have free columns for the hidden topics: as many as hidden topics, or as all topics. Methods are
compared at equal numbers of columns.

20 Newsgroups is drawn at random (6,000 posts), once as posted and once without headers and quotes. Reuters has stories
of more than 250 characters and topics with at least 100 of them. PubMed is 8,000 abstracts, drawn at random.

Labels are complete lists of known topics. *3 per topic*: three documents for each known topic. *3 %* and *10 %*: that
share of the documents with a known topic. All measures are taken on the **unlabelled documents alone**:

- **hidden AP**: mean over hidden topics of the average precision of their free column. Columns and topics are matched
  one to one by the Hungarian method, which maximises this mean.
- **leak**: share of the documents without a known topic that get one. A method that gives no topics has no leak, so
  read it together with recall.
- **known AP**: mean over known topics of the average precision. Documents of hidden topics count as wrong.
- **recall** (mean over known topics) and **precision** (all pairs together) of the decisions.
- **none error**: absolute error of the estimated share of documents without a known topic.
- **share error**: mean over known topics of the relative error of their estimated share of the documents.

The estimates are mean memberships if the method has them, else counts of decisions. A dash marks a measure that the
method does not have. Scores are means of {SEEDS} seeds unless the column *seeds* differs. Methods marked ¹ are slow:
they run with one seed, and only with half of the topics hidden. {planned:,} trials are planned. {done}
[Further questions](LINES.md) are about our method alone."""


def verdict(board: Board, corpora: list[str]) -> str:
    """The cells in which another method is above ours."""
    lines = []
    for corpus in corpora:
        cells = [
            ((corpus, share, budget, "complete"), columns, measure)
            for share in SHARES
            for budget in BUDGETS
            for columns in COLUMNS
            for measure in CONTESTED
            if np.isfinite(board.mean((corpus, share, budget, "complete"), OURS, columns, measure))
        ]
        lost = [found for cell in cells if (found := loss(board, *cell))]
        result = f"below in {len(lost)} of {len(cells)} cells" if lost else "above all others"
        result = result if cells else f"{OURS} has not been run"
        lines.append(f"- **{TITLES[corpus]}**: {result}." + "".join(f"\n    - {found}" for found in lost))
    return f"""## Where another method wins

{OURS} is compared in hidden AP and known AP with every method that has as many free columns or none. Means are over the
seeds that both methods have.

Our method was developed with these measures on 20 Newsgroups and Reuters: many configurations were compared there. The
other methods were not tuned like this, so our scores on these two corpora are optimistic.

{chr(10).join(lines)}"""


def loss(board: Board, cell: tuple[Any, ...], columns: str, measure: str) -> str:
    """The method that is furthest above ours in a cell, with both scores; empty if there is none."""
    gaps = []
    for name, kind in board.lines(cell):
        if name not in (OURS, OURS_W) and kind in (columns, "none"):
            theirs = board.mean(cell, name, kind, measure, (OURS, columns))
            own = board.mean(cell, OURS, columns, measure, (name, kind))
            if theirs > own:
                gaps.append((theirs - own, f"{name} ({short(theirs)} against {short(own)})"))
    _, share, budget, _ = cell
    place = f"{share:.0%} hidden, {LABELS[budget]}, columns for {columns} topics, {measure}"
    return f"{place}: {max(gaps)[1]}" if gaps else ""


def section(board: Board, corpus: str, reasons: dict[str, str]) -> str:
    parts = [f"## {TITLES[corpus]}"]
    for budget in BUDGETS:
        half = (corpus, QUICK_SHARE, budget, "complete")
        if board.lines(half):
            best_of = "Half of the topics hidden; the best of each number of columns is bold:"
            parts += [f"### {TITLES[corpus]}, {LABELS[budget]}", best_of, measures(board, half)]
        done = [share for share in SHARES if board.lines((corpus, share, budget, "complete"))]
        if len(done) > 1:
            parts += [f"By share of hidden topics: {' / '.join(MAIN)}.", by_share(board, corpus, budget, done)]
    absent = [name for name in METHODS if not any(name == key[4] for key in board.rows if key[0] == corpus)]
    if absent:
        lines = [f"- {name}: {reasons.get(name, 'not done yet')}" for name in absent]
        parts.append("Not run here:\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def measures(board: Board, cell: tuple[Any, ...]) -> str:
    """All measures of one cell."""
    rows = []
    for name, columns in board.lines(cell):
        found = board.seeds(cell, name, columns)
        number = next(iter(found.values()))["columns"] or "–"
        rows.append(
            [name + "¹" * METHODS[name].slow, number, len(found), *values(board, cell, name, columns, MEASURES)]
        )
    return table(["method", "free columns", "seeds", *MEASURES], rows)


def by_share(board: Board, corpus: str, budget: str, shares: list[float]) -> str:
    """The main measures by share of hidden topics."""
    cells = [(corpus, share, budget, "complete") for share in shares]
    lines = dict.fromkeys(line for cell in cells for line in board.lines(cell))
    rows = [
        [name, columns, *(" / ".join(values(board, cell, name, columns, MAIN)) for cell in cells)]
        for name, columns in sorted(lines, key=lambda line: (*COLUMNS, "none").index(line[1]))
        if not METHODS[name].slow
    ]
    return table(["method", "columns for", *(f"{share:.0%} hidden" for share in shares)], rows)


def values(board: Board, cell: tuple[Any, ...], name: str, columns: str, wanted: Any) -> list[str]:
    """Measures of a method as text; the best among methods with as many columns, or none, is bold."""
    if any("failed" in row for row in board.seeds(cell, name, columns).values()):
        return [f"> {LIMIT // 60} min", *["–"] * (len(wanted) - 1)]
    rivals = {kind for _, kind in board.lines(cell)} - {"none"}
    groups = rivals if columns == "none" and rivals else {columns}
    shown = []
    for measure in wanted:
        value = short(board.mean(cell, name, columns, measure))
        wins = value != "–" and value in {best(board, cell, group, measure) for group in groups}
        shown.append(f"**{value}**" if wins else value)
    return shown


def best(board: Board, cell: tuple[Any, ...], columns: str, measure: str) -> str:
    """The best value among the methods with this kind of columns or without columns."""
    found = [board.mean(cell, name, kind, measure) for name, kind in board.lines(cell) if kind in (columns, "none")]
    finite = [value for value in found if np.isfinite(value)]
    return short((max if MEASURES[measure] else min)(finite, default=float("nan")))


def short(value: float) -> str:
    """Three decimals without the leading zero; a dash for NaN."""
    return "–" if np.isnan(value) else f"{value:.3f}".removeprefix("0")


def forms(board: Board, corpora: list[str]) -> str:
    """Known AP where no topic is hidden, by form of labels."""
    rows = []
    for corpus in corpora:
        for name in METHODS:
            for form in FORMS:
                cells = [(corpus, 0.0, budget, form) for budget in FORM_BUDGETS]
                if any(board.seeds(cell, name, "none") for cell in cells):
                    found = (values(board, cell, name, "none", ["known AP"])[0] for cell in cells)
                    rows.append([TITLES[corpus], form, name, *found])
    rows.sort(key=lambda row: (list(TITLES.values()).index(row[0]), FORMS.index(row[1])))
    if not rows:
        return ""
    return f"""## Other forms of labels

All topics are known here; the measure is known AP against complete lists. Documents are drawn topic by topic.
*complete*: all topics of the document. *yes-only*: only the topic it was drawn for; all others are unknown.
*incomplete*: this topic, and each other topic of the document with probability one half (`complete=False`). Logistic
regression counts unknown topics as absent. The best of each form is bold.

{table(["corpus", "labels", "method", *(LABELS[budget] for budget in FORM_BUDGETS)], rows)}"""


def seconds(board: Board, corpora: list[str]) -> str:
    def cell(name: str, corpus: str) -> str:
        columns = "hidden" if METHODS[name].free else "none"
        cells = [(corpus, QUICK_SHARE, budget, "complete") for budget in BUDGETS]
        found = [row["seconds"] for c in cells for row in board.seeds(c, name, columns).values() if "seconds" in row]
        return "–" if not found else f"{max(found):.1f}" if max(found) < 10 else f"{max(found):.0f}"

    rows = [[name, *(cell(name, corpus) for corpus in corpora)] for name in METHODS if name != OURS_W]
    return (
        "## Time\n\nSeconds of the longest trial with half of the topics hidden and as many columns as hidden topics. "
        "The machine did other work too: only the order of magnitude counts. Our method has two threads, the others "
        "one. The latent directions of k-means and naive Bayes EM are computed once per corpus.\n\n"
        + table(["method", *(TITLES[name] for name in corpora)], rows)
    )


def about() -> str:
    rows = [[name, how] for name, how in ABOUT.items()]
    return f"""## The methods

All methods get the same labelled documents and the same tf-idf matrix or counts of the same terms. Our method reads the
texts and the names of the known topics, which the others cannot.

One setting was chosen with the scores in view (seeds 0 and 1, half hidden, 20 Newsgroups and Reuters): the softness of
the start of naive Bayes EM, out of five values. All other methods were run as first written.

{table(["method", "how"], rows)}

{NOT_RUN}"""
