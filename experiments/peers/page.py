"""README.md of this study and its figure, from the finished trials."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.peers.trials import (
    BUDGETS,
    LIMIT,
    METHODS,
    OURS,
    OURS_EMBEDDED,
    OURS_NAMED,
    SEEDS,
    SLOW_BUDGETS,
    Trial,
    belongs,
    fingerprint,
    missing,
)
from experiments.shared.corpora import Corpus
from experiments.shared.drawing import MARKERS, SERIES, save
from experiments.shared.store import Store
from experiments.shared.terminal import dated, table

TITLES = {
    "reuters": "Reuters",
    "newsgroups": "20 Newsgroups",
    "pubmed": "PubMed",
    "newsgroups-6000": "20 Newsgroups, 6,000 posts",
    "toy": "Toy",
}
SCORES = ("macro", "micro")
# Methods with a colour of their own in the figure; the others are grey.
DRAWN = (
    *(
        OURS,
        OURS_NAMED,
        OURS_EMBEDDED,
        "logistic regression",
        "self-trained logistic regression",
        "LSI + logistic regression",
    ),
    *("embeddings + logistic regression", "nearest centroid", "naive Bayes EM on tf-idf", "label propagation"),
    *("TS-NMF, uniform start", "TS-NMF as published"),
)
# Methods without embeddings and topic names.
PLAIN = tuple(name for name in METHODS if not name.startswith(OURS) and "embeddings" not in name)
# Each variant of our method is compared with these methods.
RIVALRY = {
    OURS: PLAIN,
    OURS_NAMED: PLAIN,
    OURS_EMBEDDED: (*PLAIN, "embeddings + logistic regression", OURS),
}
# Our variants have the first three colours. The others share four, because yellow is too faint for a line.
STYLES: dict[str, dict[str, Any]] = {
    name: {
        "color": SERIES[i if i < 3 else 3 + (i - 3) % 4],
        "marker": MARKERS[i % 8],
        "linestyle": "-" if i < 7 else "--" if i < 11 else ":",
    }
    for i, name in enumerate(DRAWN)
}
ABOUT = {
    OURS: "memberships of the guide (`topicsteer.guidance`), which chooses every setting itself",
    OURS_NAMED: "the same with the words of each topic's name, which no other method sees",
    OURS_EMBEDDED: "the same with sentence embeddings",
    "TS-NMF as published": "multiplicative rules, H by Random Acol, labelled documents weighted, 30 iterations; "
    "score: contribution of the topic",
    "TS-NMF, uniform start": "the same with H uniform, which is better; not in the paper",
    "NMF": "the same rules without labels; each component gets a topic by the best one-to-one match (cosine over the "
    "labelled documents)",
    "LDA": "scikit-learn's, 10 passes over the counts; matched in the same way",
    "logistic regression": "one per topic, balanced, C = 10",
    "self-trained logistic regression": "three rounds; in round r each topic adds pseudo-labels for its most "
    "certain documents, 2^r − 1 times as many as its labels",
    "nearest centroid": "cosine of the document and the mean labelled document",
    "naive Bayes EM": "multinomial, on counts, add-one smoothing, 10 rounds of EM; score: log odds",
    "naive Bayes EM on tf-idf": "tf-idf rows times 5, smoothing 0.1, 5 rounds",
    "label propagation": "Zhou et al. (scikit-learn's LabelSpreading, for several labels) over the 15 nearest "
    "neighbours by LSI, reach 0.9",
    "LSI + logistic regression": "200 singular vectors, rows of unit length",
    "SSNMF": "own code for sparse matrices, tested against the package ssnmf; λ = 10, 100 iterations",
    "CNMF": "constrained NMF of Liu & Wu; documents with several labels get the sum; score: cosine with the row of "
    "the topic; 100 iterations",
    "SS-NMF with pairs": "semi-supervised NMF of Chen et al., rules derived from its objective; labelled documents "
    "with a common topic must be together, others must not; similarity: cosine, which pairs change by 1; labelled "
    "documents start close to their clusters; clusters matched like NMF; 50 iterations",
    "topic-in-set LDA": "Andrzejewski & Zhu; all tokens of a labelled document have the set of its labels (η = 1); "
    "Gibbs sampling, α = .5, β = .1, mean of sweeps 51 to 100",
    "supervised PCA": "Bair et al., one per topic on the labelled documents; 25, 100 or 400 terms by three folds (100 "
    "below six labels), first component",
    "supervised SVD": "Li et al., EM on the labelled documents, one response per topic, 50 iterations; rank: labelled "
    "topics, at most 100 and half of the labelled documents; score: log odds of its normal densities",
    "PLDA (tomotopy)": "one topic per label and one for all documents; 100 iterations",
    "LabeledLDA (topica)": "unlabelled documents unconstrained; 50 iterations of CVB0 (its Gibbs sampler is slow)",
    "CorEx with anchors": "five anchor words per topic from its labelled documents, strength 3",
    "embeddings + logistic regression": "all-MiniLM-L6-v2, the same logistic regression",
}

# Settings of other methods that were chosen with the scores in view.
TRIED = """Some settings of other methods were chosen by their scores on this page, which favours them. The scores
were of seed 0: Reuters k3 and 5 %, 20 Newsgroups k3.

- Naive Bayes EM on tf-idf is one of about ten forms that were tried: rows times 1, 5 or 10, smoothing 1 or 0.1, a
  uniform prior, lighter unlabelled documents. Rows times 10 with smoothing 1 were better on 20 Newsgroups k3
  (.565 / .569) and worse in macro average precision on Reuters.
- Label propagation: reach 0.9, of 0.5, 0.9 and 0.99.
- SSNMF: λ = 10, of 1, 10 and 100.
- LabeledLDA: its variational form.
- SS-NMF with pairs: the start close to the labels. From a uniform start it was near chance on Reuters 5 %. On a part of
  these documents pairs of weight 0.1 instead of 1 were lower in macro and higher in micro average precision.

All other methods were run as first written, among them self-training, CNMF, CorEx and PLDA. With more care they may do
better."""


class Board:
    """Results by corpus, method and budget; ``old``: some of our own are of an earlier guide."""

    def __init__(self, results: dict[Trial, dict[str, Any]]) -> None:
        self.old = any(t.version != fingerprint(t.method) for t in results if t.method.startswith(OURS))
        self.rows: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
        for trial, row in results.items():
            self.rows[trial.corpus, trial.method, trial.budget][trial.seed] = row

    def mean(self, corpus: str, method: str, budget: str, score: str, common: str | None = None) -> float:
        """Mean over the seeds, or over those also done by ``common``; NaN if none is done or one took too long."""
        rows = self.rows.get((corpus, method, budget), {})
        others = rows if common is None else self.rows.get((corpus, common, budget), {})
        values = [row.get(score, np.nan) for seed, row in rows.items() if seed in others]
        return float(np.mean(values)) if values else float("nan")

    def gave_up(self, corpus: str, method: str, budget: str) -> bool:
        """Whether a trial was stopped at the time limit."""
        return any("failed" in row for row in self.rows.get((corpus, method, budget), {}).values())

    def methods(self, corpus: str) -> list[str]:
        """Methods with a result, ours first."""
        return [name for name in METHODS if any(self.rows.get((corpus, name, budget)) for budget in BUDGETS)]


def write(folder: Path, store: Store, planned: list[Trial], loaded: dict[str, Corpus]) -> Path:
    """Draw the figure into ``folder`` and write ``folder``/README.md."""
    results = store.results(planned)
    board = Board(results)
    corpora = [name for name in loaded if board.methods(name)]
    folder.mkdir(parents=True, exist_ok=True)
    if corpora:
        save(curves(board, corpora), folder / "peers.svg")
    path = folder / "README.md"
    path.write_text(text(board, loaded, len(planned), len(planned) - len(results)))
    return path


def text(board: Board, loaded: dict[str, Corpus], planned: int, left: int) -> str:
    """The page in Markdown."""
    corpora = [name for name in loaded if board.methods(name)]
    parts = [
        introduction(loaded, planned, left),
        verdict(board, corpora),
        *(["## Learning curves\n\n" + CAPTION] if corpora else []),
        *(section(board, name) for name in corpora),
        seconds(board, corpora),
        about(),
    ]
    return dated("\n\n".join(part.strip() for part in parts if part) + "\n", old=board.old)


CAPTION = (
    "![Average precision on unlabelled documents by the number of labels](peers.svg)\n\n*Average precision on "
    "the unlabelled documents. Left of the gap: labelled documents per topic. Right of the gap: labelled share of all "
    "documents. Thin grey lines: the other methods of the tables.*"
)


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
    done = "All of them are done." if not left else f"{left:,} of them are not done yet; their cells have a dash."
    return f"""# Comparison with other systems

Made by `make peers` (`make peers QUICK=1` for a smaller version); do not edit.

{table(["corpus", "documents", "terms", "topics", "labels per document"], rows)}

Some documents are labelled, and the methods are judged on the others. The scores are macro average precision (mean over
topics) and micro average precision (all pairs of document and topic together). Both are measured on the **unlabelled
documents alone**, over the topics that occur there. *k3* means three labelled documents per topic; *5 %* means that
share of all documents, drawn at random.

Every method gets the same labelled documents and the same tf-idf matrix (`TextVectorizer()` with its defaults), or the
counts of the same terms. A seed draws the labelled documents and starts the method. Scores are means of {SEEDS} seeds
unless the column *seeds* differs. Methods marked ¹ are slow: they run with one seed, and only with
{", ".join(SLOW_BUDGETS)}. {planned:,} trials are planned. {done}"""


def verdict(board: Board, corpora: list[str]) -> str:
    """The cells in which another method is above ours."""
    lines = []
    for corpus in corpora:
        for ours, others in RIVALRY.items():
            cells = [(b, s) for b in BUDGETS for s in SCORES if np.isfinite(board.mean(corpus, ours, b, s))]
            if cells:
                lost = [text for b, s in cells if (text := loss(board, corpus, ours, others, b, s))]
                found = f"below in {len(lost)} of {len(cells)} cells: {'; '.join(lost)}" if lost else "above all others"
                lines.append(f"- **{TITLES[corpus]}**, {ours}: {found}.")
        if OURS not in board.methods(corpus):
            lines.append(f"- **{TITLES[corpus]}**: {OURS} has not been run.")
    return f"""## Where another method wins

Means are over the seeds that both methods have. {OURS} and {OURS_NAMED} (the default of `TopicModel`) are compared
with all methods that use neither embeddings nor topic names. {OURS_EMBEDDED} is compared with these, with the
embeddings baseline and with {OURS}.

{chr(10).join(lines)}"""


def loss(board: Board, corpus: str, ours: str, others: tuple[str, ...], budget: str, score: str) -> str:
    """The method that is furthest above ours in a cell, with both scores; empty if there is none."""
    gaps = {}
    for name in others:
        theirs, own = board.mean(corpus, name, budget, score, ours), board.mean(corpus, ours, budget, score, name)
        if theirs > own:
            gaps[name] = (theirs - own, f"{budget} {score} {name} ({short(theirs)} against {short(own)})")
    return max(gaps.values())[1] if gaps else ""


def section(board: Board, corpus: str) -> str:
    main = board.methods(corpus)
    parts = [f"## {TITLES[corpus]}", "Macro / micro average precision; the best is bold:", scores(board, corpus, main)]
    absent = {name: missing(name, corpus) for name in METHODS if belongs(name, corpus) and name not in main}
    if absent:
        reasons = ", ".join(f"{name} ({reason or 'not done yet'})" for name, reason in absent.items())
        parts.append(f"Not run here: {reasons}.")
    return "\n\n".join(parts)


def scores(board: Board, corpus: str, names: list[str]) -> str:
    budgets = [b for b in BUDGETS if any(board.rows.get((corpus, name, b)) for name in names)]
    best = {
        (budget, score): max(
            (v for name in names if np.isfinite(v := board.mean(corpus, name, budget, score))), default=np.nan
        )
        for budget in budgets
        for score in SCORES
    }

    def cell(name: str, budget: str) -> str:
        if board.gave_up(corpus, name, budget):
            return f"> {LIMIT // 60} min"
        values = {score: board.mean(corpus, name, budget, score) for score in SCORES}
        if not all(map(np.isfinite, values.values())):
            return "–"
        return " / ".join(
            f"**{short(value)}**" if short(value) == short(best[budget, score]) else short(value)
            for score, value in values.items()
        )

    def seeds(name: str) -> str:
        many = sorted({len(board.rows[corpus, name, b]) for b in budgets if board.rows.get((corpus, name, b))})
        return "–".join(map(str, many[:1] + many[1:][-1:]))

    rows = [
        [name + "¹" * METHODS[name].slow, seeds(name), *(cell(name, budget) for budget in budgets)] for name in names
    ]
    return table(["method", "seeds", *budgets], rows)


def short(value: float) -> str:
    """Three decimals without the leading zero."""
    return f"{value:.3f}".removeprefix("0")


def seconds(board: Board, corpora: list[str]) -> str:
    def cell(name: str, corpus: str) -> str:
        value = board.mean(corpus, name, "5 %", "seconds")
        return "–" if np.isnan(value) else f"{value:.1f}" if value < 10 else f"{value:.0f}"

    names = [name for name in METHODS if any(name in board.methods(corpus) for corpus in corpora)]
    rows = [[name, *(cell(name, corpus) for corpus in corpora)] for name in names]
    return (
        "## Time\n\nSeconds at 5 %, on one thread of a machine that did other work too: only the order of magnitude "
        "counts. The steps without labels (NMF, LDA, LSI, the graph) are included; the embeddings are not.\n\n"
        + table(["method", *(TITLES[name] for name in corpora)], rows)
    )


def about() -> str:
    rows = [[name, METHODS[name].reads, ABOUT[name]] for name in ABOUT]
    return (
        "## The methods\n\nTopics without labels get the lowest score, with two exceptions: TS-NMF fits them as free "
        "topics, and topic names give them a score.\n\n"
        f"{TRIED}\n\n"
        + table(["method", "reads", "how"], rows)
        + "\n\nAll of Reuters has embeddings, and so have 6,000 random posts of 20 Newsgroups, a corpus of its own "
        "here. PubMed has none."
    )


def curves(board: Board, corpora: list[str]) -> Figure:
    """One row per corpus, macro and micro side by side."""
    figure = Figure(figsize=(10, 2.9 * len(corpora) + 1.1), facecolor="white", layout="constrained")
    panels = figure.subplots(len(corpora), 2, squeeze=False)
    for line, corpus in zip(panels, corpora, strict=True):
        for axes, score in zip(line, SCORES, strict=True):
            panel(axes, board, corpus, score)
            axes.set_title(f"{TITLES[corpus]}, {score} average precision", fontsize=9, loc="left")
    handles = {
        label: handle for axes in panels.flat for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    order = [name for name in DRAWN if name in handles]
    figure.legend(
        [handles[name] for name in order], order, loc="outside lower center", ncols=3, frameon=False, fontsize=8
    )
    return figure


def panel(axes: Axes, board: Board, corpus: str, score: str) -> None:
    """One line per method, with a gap between budgets per topic and budgets by share."""
    groups = [[b for b in BUDGETS if b.startswith("k")], [b for b in BUDGETS if not b.startswith("k")]]
    place = {b: i + g * 0.6 for g, group in enumerate(groups) for i, b in enumerate(BUDGETS) if b in group}
    for name in sorted(board.methods(corpus), key=lambda name: not name.startswith(OURS)):
        style: dict[str, Any] = {"color": "#c4c9cf", "linewidth": 0.8, "zorder": 1}
        if name in (OURS, OURS_NAMED, OURS_EMBEDDED):
            style = STYLES[name] | {"linewidth": 2.4, "markersize": 5, "zorder": 4}
        elif name in DRAWN:
            style = STYLES[name] | {"linewidth": 1.1, "markersize": 4, "zorder": 3}
        for g, group in enumerate(groups):
            there = [b for b in group if np.isfinite(board.mean(corpus, name, b, score))]
            heights = [board.mean(corpus, name, b, score) for b in there]
            axes.plot([place[b] for b in there], heights, label=name if g == 0 else None, **style)
    axes.set_xticks(list(place.values()), list(place), fontsize=8)
    axes.set_ylim(0, 1)
    axes.grid(axis="y", linewidth=0.4, color="#e3e6e9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
