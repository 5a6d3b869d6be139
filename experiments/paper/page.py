"""README.md of this study: the authors' numbers next to ours, a figure, and the claims of the paper one by one."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.paper.claims import CONFIRMED, OPEN, REFUTED, SHOWN, STARTS, Board, claims, difference
from experiments.paper.descents import DOCUMENTS, FURTHER, RATE, TERMS, TOPICS, WAYS
from experiments.paper.runs import (
    DESCENT,
    FIGURE_3,
    LATE,
    PLAN,
    PROGRAM,
    RATES,
    SIGN_OFFS,
    TABLE_1,
    TOPIC_MODEL,
    Run,
)
from experiments.shared.drawing import GREY, SERIES, empty, save
from experiments.shared.terminal import table

# Corpora as they are written in titles.
TITLES = {"reuters": "Reuters", "pubmed": "PubMed", "toy": "Toy"}
# A difference of similarity is small up to this share of the authors' mean, or this number of standard errors.
NEAR, ERRORS = 0.1, 2.0
# A difference of resolved topics is small up to this.
FEW = 4
# Documents of Table 1 on the page.
DOCUMENT_TITLES = ("1: dollar, money-fx, yen", "2: sugar", "3: ipi (industrial production)")


@dataclass(frozen=True)
class Theirs:
    """Mean and standard deviation of the authors' similarity over their runs, and their mean of resolved topics."""

    method: str
    rate: float
    runs: int
    similarity: float
    sd: float
    resolved: float


@dataclass(frozen=True)
class Pair:
    """The authors' numbers and ours; ``errors`` is the difference of similarity in standard errors."""

    theirs: Theirs
    runs: int
    similarity: float
    sd: float
    resolved: float
    errors: float
    resolved_errors: float

    @property
    def near(self) -> bool:
        """Whether our similarity is near to the authors'."""
        share = abs(self.similarity / self.theirs.similarity - 1)
        return share <= NEAR or abs(self.errors) <= ERRORS

    @property
    def resolves(self) -> bool:
        """Whether our number of resolved topics is near to the authors'."""
        return abs(self.resolved - self.theirs.resolved) <= FEW


def authors() -> list[Theirs]:
    """The numbers of the paper's authors."""
    lines = Path(__file__).with_name("authors.csv").read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return [
        Theirs(
            row["method"],
            float(row["rate"]),
            int(row["runs"]),
            *(float(row[name]) for name in ("similarity", "sd", "resolved")),
        )
        for row in rows
    ]


def pair(board: Board, theirs: Theirs, corpus: str = "reuters", method: str = "") -> Pair | None:
    """Our numbers next to the authors', None with fewer than two runs. TS-NMF at a rate of 0 is NMF.

    The authors' standard deviation of resolved topics is not in the paper; ours stands for both.
    """
    method = method or (theirs.method if theirs.rate else theirs.method.removeprefix("TS-"))
    found = board.values(corpus, method, theirs.rate)
    resolved = board.values(corpus, method, theirs.rate, "resolved")
    if found.size < 2:
        return None
    mean, sd, n = float(found.mean()), float(found.std(ddof=1)), found.size
    error = np.sqrt(theirs.sd**2 / theirs.runs + sd**2 / n)
    of_resolved = np.sqrt(resolved.var(ddof=1) * (1 / theirs.runs + 1 / n))
    gap = float(resolved.mean()) - theirs.resolved
    return Pair(
        theirs,
        n,
        mean,
        sd,
        float(resolved.mean()),
        float((mean - theirs.similarity) / error) if error else 0.0,
        float(gap / of_resolved) if of_resolved else 0.0,
    )


def write(folder: Path, results: Mapping[Run, dict[str, Any]], planned: int) -> Path:
    """Draw the figure into ``folder``/figures and write ``folder``/README.md."""
    shutil.rmtree(folder / "figures", ignore_errors=True)
    (folder / "figures").mkdir(parents=True)
    save(figure(Board(results)), folder / "figures" / "reuters.svg")
    path = folder / "README.md"
    path.write_text(text(results, planned), encoding="utf-8")
    return path


def text(results: Mapping[Run, dict[str, Any]], planned: int) -> str:
    """The page."""
    board = Board(results)
    pairs = [found for theirs in authors() if (found := pair(board, theirs))]
    parts = [
        "# The experiments of the paper, run again",
        done(results, planned),
        introduction(board, pairs),
        comparison(board, pairs),
        differences(board, pairs),
        judged(board),
        starts(board),
        descents(board),
        examples(board),
        pubmed(board),
        instead(board),
        settings(board),
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def done(results: Mapping[Run, Any], planned: int) -> str:
    """The number of finished runs, and the missing ones by method."""
    note = "Made by `make paper` (`make paper QUICK=1` for fewer runs); do not edit."
    if len(results) == planned:
        return f"All {planned:,} runs are done. {note}"
    return f"**{len(results):,} of {planned:,} runs are done.** {note}"


def introduction(board: Board, pairs: list[Pair]) -> str:
    weighted = [each for each in pairs if each.theirs.method == "TS-NMF"]
    near, resolves = sum(each.near for each in weighted), sum(each.resolves for each in weighted)
    count = Counter(claim.verdict for claim in claims(board))
    from_10 = next((claim for claim in claims(board) if "every rate from 10 %" in claim.text), None)
    others = {name: Counter(claim.verdict for claim in claims(board, end)) for end, name in STARTS.items() if end}
    verdicts = "; ".join(f"{tally(found)} from {start(name)}" for name, found in others.items())
    main = from_10.verdict if from_10 else OPEN
    within = f"within {100 * NEAR:.0f} % or {ERRORS:g} standard errors of theirs at {near} of {len(weighted)} rates"
    return f"""MacMillan & Wilson, *Topic Supervised Non-negative Matrix Factorization* (2017), claim: TS-NMF finds the
topics of Reuters better than NMF and LDA as soon as 10 % of the documents are labelled. The claim is **{main}**. With
the procedure of the authors' program, the similarity is {within}.
Resolved topics are within {FEW} of theirs at {resolves}.

Of the claims below, {tally(count)}. The start of **H** decides: {verdicts}.
The text of the paper names Random Acol. Its numbers come from a program that starts each topic at its labelled
documents:
`TSNMF(solver="mu", init="authors", tol="authors", max_iter={PROGRAM["max_iter"]})`."""


def start(name: str) -> str:
    return "a uniform one" if name == "uniform" else name


def tally(count: Counter[str]) -> str:
    """Number of claims by verdict."""
    return ", ".join(f"{count[verdict]} {verdict}" for verdict in (CONFIRMED, REFUTED, OPEN))


def comparison(board: Board, pairs: list[Pair]) -> str:
    head = ["", "rate", "runs", "theirs", "ours", "SE", "resolved", "ours", "SE", "Random Acol", "uniform"]
    rows = []
    for each in pairs:
        theirs = each.theirs
        method = theirs.method if theirs.rate else theirs.method.removeprefix("TS-")
        columns = ["", ""]
        if method in ("TS-NMF", "NMF"):
            columns = [brief(board, "reuters", method + end, theirs.rate) for end in STARTS if end]
        rows.append(
            [
                theirs.method,
                f"{theirs.rate:g}",
                f"{theirs.runs} / {each.runs}",
                f"{theirs.similarity:.4f} ({theirs.sd:.4f})",
                f"{each.similarity:.4f} ({each.sd:.4f})",
                f"{each.errors:+.1f}",
                f"{theirs.resolved:.1f}",
                f"{each.resolved:.1f}",
                f"{each.resolved_errors:+.1f}",
                *columns,
            ]
        )
    return f"""## Their numbers and ours, on Reuters

![Similarity and resolved topics by supervision rate, the authors' and ours](figures/reuters.svg)

*The authors' means and ours by supervision rate, with the two other starts.*

Mean similarity (standard deviation) and mean number of resolved topics. *SE*: our difference in standard errors. The
last columns are ours from the other starts: similarity / resolved topics.

{table(head, rows)}"""


def brief(board: Board, corpus: str, method: str, rate: float) -> str:
    """Mean similarity and mean number of resolved topics."""
    similar = board.values(corpus, method, rate)
    if not similar.size:
        return "–"
    return f"{similar.mean():.4f} / {board.values(corpus, method, rate, 'resolved').mean():.1f}"


def differences(board: Board, pairs: list[Pair]) -> str:
    far = [each for each in pairs if abs(each.errors) > ERRORS or abs(each.resolved_errors) > ERRORS]
    names = ", ".join(f"{each.theirs.method} {each.theirs.rate:g}".removesuffix(" 0") for each in far) or "none"
    theirs = {(each.theirs.method, each.theirs.rate): each for each in pairs}
    variants = [("sign-offs kept", "reuters with sign-offs", "TS-NMF", "TS-NMF", rate) for rate in SIGN_OFFS]
    variants += [("always 30 iterations", "reuters", "TS-NMF, 30 iterations", "TS-NMF", rate) for rate in LATE]
    variants += [("10 passes", "reuters", "LDA, 10 passes", "LDA", 0.0)]
    rows = []
    for name, corpus, method, base, rate in variants:
        ours = theirs.get((base, rate))
        other = pair(board, ours.theirs, corpus, method) if ours else None
        if ours and other:
            rows.append(
                [
                    f"{base}: {name}",
                    f"{rate:g}",
                    other.runs,
                    f"{ours.theirs.similarity:.4f}",
                    f"{ours.similarity:.4f}",
                    f"{other.similarity:.4f}",
                    difference(board.values(corpus, method, rate), board.values("reuters", base, rate)),
                    f"{ours.theirs.resolved:.1f}",
                    f"{ours.resolved:.1f}",
                    f"{other.resolved:.1f}",
                ]
            )
    head = ["change", "rate", "runs", "theirs", "ours", "changed", "effect", "resolved", "ours", "changed"]
    sizes = [board.sizes(name) for name in ("reuters", "reuters with sign-offs")]
    documents = ", ".join(f"{found['documents']:,}" for found in sizes if found) or "not measured"
    changes = f"{table(head, rows)}" if rows else ""
    return f"""### What makes a difference

More than {ERRORS:g} standard errors, of similarity or of resolved topics: {names}. With {len(pairs)} rows and two
numbers per row, about {0.05 * 2 * len(pairs):.0f} are expected by chance. Three runs without weights give rough
standard deviations. Three details of the program are not in the paper. Each was changed alone, and the table has the
effect, with its 95 % interval:

- *Documents*. The authors read NLTK's copy, as tokens joined by spaces, with more than 250 characters: 8,294 documents.
  Its stories lack the sign-off "Reuter", as the examples in the paper show. Ours are the published files without it,
  and with it: {documents}.
- *End*. The program stops when ‖V − WH‖ falls by less than 0.01 %, without weights. At high rates that is long before
  iteration 30.
- *LDA* has 25 passes in the program, and 10 by default.

{changes}"""


def judged(board: Board) -> str:
    found = claims(board)
    others = {end: {claim.text: claim.verdict for claim in claims(board, end)} for end in STARTS if end}
    rows = [
        [claim.text, f"**{claim.verdict}**", claim.number, *(other.get(claim.text, "–") for other in others.values())]
        for claim in found
    ]
    return f"""## Claims of the paper

*Confirmed*: the 95 % interval of the difference of mean similarity lies on the side of the claim. *Not confirmed*: it
lies on the other side. *Undecided*: it covers both, or there are too few runs. A claim of no relation or no difference
counts as confirmed if the interval contains 0, which is no proof. "Half as steep" and "nine in ten" are ours, because
the paper gives no number. Nothing is corrected for the number of claims.

{table(["claim", "authors' start", "number", *(STARTS[end] for end in others)], rows)}"""


def starts(board: Board) -> str:
    sizes = board.sizes("reuters")
    zeros = f" ({100 * sizes['zeros']['acol']:.0f} % of **H** on Reuters)" if sizes else ""
    own = f" ({100 * sizes['zeros']['authors']:.0f} % at 20 %)" if sizes else ""
    return f"""## Why Random Acol and the program differ

Under the multiplicative rules a zero stays zero. Random Acol, the mean of 20 random documents, has many{zeros}. Such
a topic can never get the words that it lacks, however many labels there are. The authors' start has zeros
too{own}. But they are words that no labelled document of the topic has, and the other words are its own from the
beginning. A uniform start has no zeros."""


def descents(board: Board) -> str:
    rows = []
    for corpus in ("reuters", "pubmed", "toy"):
        for way in WAYS:
            runs = [row for run, row in board.rows.items() if (run.corpus, run.method) == (corpus, f"{DESCENT}: {way}")]
            if runs:
                last = max(row["iterations"] for row in runs)
                largest = [f"{max(row[name] for row in runs):.0e}" for name in ("W", "H", "H_positive", "left")]
                rows.append([TITLES[corpus], way, len(runs), f"{last:,}", *largest])
    head = ["corpus", "rules and start", "runs", "iterations", "of W", "of H", "of H positive at the start", "left"]
    return (
        f"""## Does it end in a stationary point?

The *residual* is the largest change that exact minimisation in one single entry would still make. It is 0 where the
Karush-Kuhn-Tucker conditions hold, and nowhere else. *Left*: {FURTHER} iterations of coordinate descent lower the
objective by this share. The problems have {DOCUMENTS:,} documents, {TOPICS} topics, {TERMS:,} terms and labels on
{100 * RATE:.0f} %. Numbers are the largest over the runs.

{table(head, rows)}

The proof shows stationarity, and it needs a start without zeros. From the authors' start and from Random Acol the
conditions fail at the zeros of **H**, and coordinate descent lowers the objective further. A uniform start has no
zeros, but the rules are slow."""
        if rows
        else ""
    )


def examples(board: Board) -> str:
    methods = [("TS-NMF", rate) for rate in TABLE_1] + [("NMF", 0.0), ("LDA", 0.0), (TOPIC_MODEL, TABLE_1[0])]
    rows = []
    for method, rate in methods:
        found = next((row["examples"] for row in board.of("reuters", method, rate) if "examples" in row), None)
        if found:
            name = f"{method} ({rate:g})" if rate else method
            rows.append([name, *("; ".join(map(topic, found[document])) or "none" for _, document, _ in SHOWN)])
    if not rows:
        return ""
    return f"""## Table 1 of the paper

As in the program, a topic counts from half of the document's largest weight. Its three terms have more than a tenth
of its largest weight. The number is the weight over the largest of all. First seed. The documents (Reuters 14913, 14885
and 14854) are never labelled. TopicModel shows topics with a probability above 0.5, and that probability.

{table(["method", *DOCUMENT_TITLES], rows)}

The paper's own table has *pct, industrial, january* for document 3 at 80 %, without *production*."""


def topic(found: dict[str, Any]) -> str:
    label = f"**{found['topic']}** " if found["topic"] else ""
    return f"{label}`{', '.join(found['terms'])}` ({found['weight']:.2f})"


def pubmed(board: Board) -> str:
    rows = []
    for end, name in STARTS.items():
        cells = [brief(board, "pubmed", f"TS-NMF{end}", rate) for rate in FIGURE_3]
        rows.append([f"TS-NMF, {name}", brief(board, "pubmed", f"NMF{end}", 0.0), *cells])
    rows.append(["LDA", brief(board, "pubmed", "LDA", 0.0), *["–"] * len(FIGURE_3)])
    if all(set(row[1:]) == {"–"} for row in rows):
        return ""
    return f"""## PubMed

Similarity / resolved topics, in the same way. The paper's file is not known, so only the claims can be compared.

{table(["method", "no labels", *(f"{rate:g}" for rate in FIGURE_3)], rows)}"""


def instead(board: Board) -> str:
    rows, gains = [], []
    for corpus in ("reuters", "pubmed"):
        for method in ("TS-NMF", TOPIC_MODEL):
            values = {
                rate: [board.values(corpus, method, rate, score) for score in ("macro", "micro")] for rate in FIGURE_3
            }
            if any(each[0].size for each in values.values()):
                cells = [f"{a.mean():.3f} / {b.mean():.3f}" if a.size else "–" for a, b in values.values()]
                rows.append([TITLES[corpus], method, max(each[0].size for each in values.values()), *cells])
        gap = difference(board.values(corpus, TOPIC_MODEL, 0.2, "macro"), board.values(corpus, "TS-NMF", 0.2, "macro"))
        if gap:
            gains.append(f"{gap.mean:.3f} [{gap.low:.3f}, {gap.high:.3f}] on {TITLES[corpus]}")
    if not rows:
        return ""
    head = ["corpus", "method", "runs", *(f"{rate:g}" for rate in FIGURE_3)]
    better = f" At 20 % its macro AP is higher by {' and '.join(gains)}." if gains else ""
    return f"""## What to use instead

`TopicModel`, with its defaults.{better}
A labelled document scores well for free, so this is average precision (macro / micro) on the unlabelled documents
alone. TS-NMF ranks them by the contribution of the topic, TopicModel by membership.
*Runs* is the largest number per rate.

{table(head, rows)}"""


def settings(board: Board) -> str:
    rows = []
    for corpus in ("reuters", "pubmed"):
        found = board.sizes(corpus)
        if found:
            sizes = [f"{found['documents']:,}", f"{found['terms']:,}", found["topics"], found["labels"]]
            rows.append([TITLES[corpus], *sizes])
    seeds: dict[str, list[str]] = {}
    for corpus, method, _, runs, _ in PLAN:
        if corpus in TITLES and method != "sizes":
            seeds.setdefault(f"{TITLES[corpus]}, {runs} per rate", []).append(method)
    repeated = "; ".join(f"{name}: {' · '.join(methods)}" for name, methods in seeds.items())
    return f"""## Settings

{table(["corpus", "documents", "terms", "topics", "labels per document"], rows)}

- **Fit**: each document is labelled with probability *rate*, the documents of Table 1 never. Labelled documents are
  weighted by the inverse of their share. At most {PROGRAM["max_iter"]} iterations. A seed draws labels and start; all
  methods have the same labels. NMF is the same program without labels.
- **Score**: weights over the largest of all, without weights under 0.001. Weighted Jaccard similarity with the 0/1
  labels, best one-to-one match, mean over the topics, on all documents. *Resolved*: similarity above 0.1.
- **Terms**: letters only, NLTK's Treebank contractions, WordNet lemmas and stop words, at least three letters.
- **PubMed** is file 14 of the 2020 baseline: abstracts of more than 250 characters, headings of at least 100 abstracts.
  The paper has 15,320 abstracts and 265 headings of another file.
- **Weights**: the paper prints its objective with E inside the norm. Its rules, and so this study, minimise
  Σ E (V − WH)².
- **Planned runs**: {repeated}."""


def figure(board: Board) -> Figure:
    """The authors' means and ours by rate: similarity and resolved topics."""
    drawn, panels = empty(2, height=3.6)
    found = authors()
    lines = [("TS-NMF", SERIES[0], "-"), ("TS-NMF unweighted", SERIES[1], "--")]
    others = [("TS-NMF, Random Acol", SERIES[3], ":"), ("TS-NMF, uniform", SERIES[2], ":")]
    for axes, score, title in zip(
        panels, ("similarity", "resolved"), ("mean similarity", "resolved topics"), strict=True
    ):
        for method, colour, line in lines:
            theirs = [each for each in found if each.method == method and each.rate]
            means = [getattr(each, score) for each in theirs]
            rates = [each.rate for each in theirs]
            axes.plot(rates, means, "o", color=colour, markersize=4, label=f"{method}, theirs")
            axes.plot(*curve(board, method, score), color=colour, linestyle=line, label=f"{method}, ours")
        for method, colour, line in others:
            axes.plot(*curve(board, method, score), color=colour, linestyle=line, label=method)
        for each in found:
            if each.method in ("NMF", "LDA"):
                colour = GREY if each.method == "LDA" else "#000000"
                label = f"{each.method}, theirs"
                axes.axhline(getattr(each, score), color=colour, linestyle="-.", linewidth=0.8, label=label)
        axes.set(xlabel="supervision rate", ylabel=title, ylim=(0, None))
    handles, labels = panels[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return drawn


def curve(board: Board, method: str, score: str) -> tuple[list[float], list[float]]:
    """Rates, and the mean of a score at each."""
    rates = [rate for rate in RATES if board.of("reuters", method, rate)]
    return rates, [float(board.values("reuters", method, rate, score).mean()) for rate in rates]
