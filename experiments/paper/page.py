"""README.md of this study: figures, tables, and the claims of the paper one by one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.paper.claims import CONFIRMED, OPEN, REFUTED, UNIFORM, Claim, beyond, claims
from experiments.paper.convergence import compare
from experiments.paper.plots import STYLE, TITLES, figures
from experiments.paper.runs import FIGURE_3, SAMPLES, TOPIC_MODEL, Run, plan
from experiments.paper.scoreboard import Scoreboard
from experiments.paper.stationarity import DOCUMENTS, FURTHER, RATE, SMALL, TERMS, TOPICS, WAYS, Descent, largest
from experiments.shared.corpora import EXAMPLES, Corpus
from experiments.shared.drawing import save
from experiments.shared.internals import ACOL_DOCUMENTS, random_acol
from experiments.shared.methods import ITERATIONS, LDA
from experiments.shared.store import Store
from experiments.shared.terminal import table

# Beginnings of the documents in Table 1 of the paper.
SENTENCES = {
    14913: "The Bank of Japan bought a small amount of dollars shortly after the opening at around 145.30 yen ...",
    14885: "The outcome of today's European Community (EC) white sugar tender is extremely difficult to predict ...",
    14854: "China's industrial output rose 14.1 pct in the first quarter of 1987 against the same 1986 period ...",
}
# Captions by kind of figure.
CAPTIONS = {
    "rate": "Figure 2 of the paper: mean similarity and resolved topics by rate. Bands hold nine runs in ten.",
    "unlabelled": "Average precision on the unlabelled documents alone, with simple classifiers for comparison.",
    "weighting": "Appendix: weighted against unweighted TS-NMF, all documents.",
    "coverage": f"Appendix: topic coverage of {SAMPLES:,} random samples by rate; deviation of coverage and of score.",
    "comparison": "Figure 3 of the paper: LDA, NMF and TS-NMF at four supervision rates, and the same with H uniform.",
    "stationarity": "Largest residual of the KKT conditions by iteration; one line per seed.",
    "convergence": "Objective by iteration and by time, from the same start, labels on a fifth of Reuters, weighted.",
}


# The methods, on the page.
METHODS = """**Methods**

- *TS-NMF*: the multiplicative rules of the paper, {iterations} iterations, H by Random Acol, W uniform. Labelled
  documents are weighted by the inverse of the supervision rate.
- *TS-NMF unweighted*: without that weight.
- *TS-NMF uniform start*: H is uniform too.
- *TS-NMF default solver*: `TSNMF()` with the defaults of the library (coordinate descent; topics start at their
  labelled documents, and the fit stops while they are close to them).
- *TopicModel*: `TopicModel()` with the defaults of the library, from the texts themselves; in Table 1 only.
- *NMF*: the same rules without labels, from either start.
- *LDA*: scikit-learn's with its defaults (variational, {passes} passes), on counts.
- *Logistic regression* (balanced, one per topic) and *nearest centroid* (cosine) learn from the same labelled documents
  and see no others."""
# The scores, on the page.
SCORES = """**Scores**

- *Similarity*: weighted Jaccard similarity of weights and 0/1 labels, best one-to-one match, mean over the topics. The
  weights are divided by the largest weight of the matrix; weights under 0.001 are dropped.
- *By proportions*: the weights of each document are divided by their sum instead.
- *Resolved*: topics with a similarity above 0.1.
- *Average precision* (AP): documents are ranked by the contribution of the topic with that name. Topics of NMF and LDA
  have no names; they get the names of the best match, which reads the labels.
- *NPMI* and *diversity*: coherence of the ten heaviest terms of each topic in these documents, and the share of
  distinct terms among them.

Every score is measured on all documents, as in the paper, and on the unlabelled documents alone, because a labelled
document scores well for free. Intervals are 95 %. A seed draws the labelled documents and the start. The same seed
gives every method the same labelled documents."""
# Rules of the verdicts, on the page.
VERDICTS = """Each claim is judged twice. Under the multiplicative rules a zero in H stays zero. Random Acol (the mean
of {documents} documents) leaves most of H at zero: {zeros}. The column with H uniform was added after the
first scores had been seen, and it has fewer repetitions.

- *Confirmed*: the 95 % interval lies on the side of the claim.
- *Not confirmed*: the interval lies on the other side.
- *Undecided*: the interval covers both sides, or there are too few runs.

A claim of no relation or no difference counts as confirmed if the interval contains 0, which is no proof. Differences
are of mean similarity over all documents. The thresholds "less than half as steep" and "nearly all" are ours, because
the paper gives no number. Nothing is corrected for the number of claims."""


def convergence_key(corpus: str) -> str:
    """Key of the traces of the solvers in the store."""
    return json.dumps({"corpus": corpus, "study": "convergence"})


def write(
    folder: Path, store: Store, runs: dict[str, list[Run]], loaded: dict[str, Corpus], planned: list[Descent]
) -> Path:
    """Draw the figures into ``folder``/figures and write ``folder``/README.md."""
    boards = {name: Scoreboard(store.results(runs[name]), name, len(loaded[name].topics)) for name in runs}
    boards = {name: board for name, board in boards.items() if board.rows}
    traces = next((found for name in boards if (found := store.get(convergence_key(name)))), None)
    descents = store.results(planned)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, figure in figures(boards, traces, descents):
        save(figure, folder / "figures" / f"{name}.svg")
        drawn.append(name)
    missing = {name: len(store.missing(runs[name])) for name in runs}
    parts = [
        introduction(runs, loaded, missing),
        claims_table(boards, loaded, descents),
        *(corpus_section(board, drawn) for board in boards.values()),
        *(["## Both corpora\n\n" + image("comparison", "comparison")] if "comparison" in drawn else []),
        *(examples(board) for board in boards.values() if any(run.study == "examples" for run in board.others)),
        *([convergence(traces)] if traces else []),
        *([stationarity(descents)] if descents else []),
        differences(loaded),
    ]
    path = folder / "README.md"
    path.write_text("\n\n".join(part.strip() for part in parts) + "\n")
    return path


def smaller(runs: dict[str, list[Run]]) -> list[str]:
    """A notice on pages with fewer runs than planned."""
    parts = {name: (len(runs[name]), len(plan(name))) for name in runs}
    if all(some == whole for some, whole in parts.values()):
        return []
    counts = " and ".join(f"{some:,} of {whole:,} runs on {TITLES[name]}" for name, (some, whole) in parts.items())
    return [
        f"**This is the smaller version**: {counts}. Many claims need more runs. The whole page is "
        "`experiments/paper/README.md`."
    ]


def introduction(runs: dict[str, list[Run]], loaded: dict[str, Corpus], missing: dict[str, int]) -> str:
    lines = [
        "# The experiments of the paper, run again",
        "Made by `make paper` (`make paper QUICK=1` for a smaller version); do not edit. MacMillan & Wilson, *Topic "
        "Supervised Non-negative Matrix Factorization*, 2017.",
        *smaller(runs),
        table(
            ["corpus", "documents", "terms", "topics", "labels per document", "runs", "not done"],
            [
                [
                    TITLES[name],
                    f"{corpus.X.shape[0]:,}",
                    f"{corpus.X.shape[1]:,}",
                    len(corpus.topics),
                    f"{corpus.truth.sum() / corpus.X.shape[0]:.2f}",
                    len(runs[name]),
                    missing[name],
                ]
                for name, corpus in loaded.items()
            ],
        ),
        METHODS.format(iterations=ITERATIONS, passes=LDA["max_iter"]),
        SCORES,
        "**Repetitions** per rate (NMF and LDA have no rate):",
        table(["method", *(TITLES[name] for name in runs)], list(repetitions(runs))),
    ]
    return "\n\n".join(lines)


def repetitions(runs: dict[str, list[Run]]) -> Iterator[list[Any]]:
    seeds = {
        name: Counter(run.method for run in planned if run.study == "score" and run.rate in (0.0, 0.2))
        for name, planned in runs.items()
    }
    for method in STYLE:
        if any(count[method] for count in seeds.values()):
            yield [method, *(count[method] or "–" for count in seeds.values())]


def claims_table(
    boards: dict[str, Scoreboard], loaded: dict[str, Corpus], descents: Mapping[Descent, dict[str, Any]]
) -> str:
    stated, uniform = claims(boards, descents=descents), claims(boards, UNIFORM, descents)
    rows = [
        [claim.text, f"**{claim.verdict}**", claim.number, f"**{other.verdict}**", numbers(other.number)]
        for claim, other in zip(stated, uniform, strict=True)
    ]
    zeros = ", ".join(f"{TITLES[name]} {100 * share_of_zeros(loaded[name]):.0f} %" for name in boards)
    asked = [[claim.text, f"**{claim.verdict}**", claim.number] for board in boards.values() for claim in beyond(board)]
    return f"""## Claims of the paper

With H by Random Acol, as the paper states: {tally(stated)}. With H uniform: {tally(uniform)}.

{VERDICTS.format(documents=ACOL_DOCUMENTS, zeros=zeros)}

{table(["claim", "as stated", "number", "with H uniform", "number"], rows)}

Questions beyond the paper, on the unlabelled documents alone:

{table(["question", "answer", "number"], asked)}"""


def tally(found: list[Claim]) -> str:
    """Number of claims by verdict."""
    count = Counter(claim.verdict for claim in found)
    return ", ".join(f"{count[verdict]} {verdict}" for verdict in (CONFIRMED, REFUTED, OPEN))


def share_of_zeros(corpus: Corpus) -> float:
    """Share of zeros in H under Random Acol."""
    return float((random_acol(corpus.X, len(corpus.topics), np.random.RandomState(0)) == 0).mean())


def numbers(text: str) -> str:
    """The same text without the name of the method, which the column has."""
    return text.replace("NMF uniform start", "NMF")


def corpus_section(board: Scoreboard, drawn: list[str]) -> str:
    parts = [f"## {TITLES[board.corpus]}"]
    for kind in ("rate", "weighting", "coverage", "unlabelled"):
        if f"{board.corpus}-{kind}" in drawn:
            parts.append(image(f"{board.corpus}-{kind}", kind))
    for part in ("all", "unlabelled"):
        title = {"all": "All documents, as in the paper", "unlabelled": "Unlabelled documents alone"}[part]
        scores = ["similarity", "resolved", "similarity_rows", "resolved_rows", "macro", "micro"]
        head = ["method", "rate", "similarity", "resolved", "by proportions", "resolved", "macro AP", "micro AP"]
        scores = [f"{score}_{part}" for score in scores]
        if part == "all":
            scores, head = [*scores, "npmi", "diversity"], [*head, "NPMI", "diversity"]
        rows = [
            [method, f"{rate:g}" if rate else "–", *(cell(board, method, rate, score) for score in scores)]
            for method in STYLE
            for rate in board.rates(method)
            if not rate or rate in (*FIGURE_3, 0.01, 0.9)
        ]
        parts.append(f"{title}, means over the seeds:\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def cell(board: Scoreboard, method: str, rate: float, score: str) -> str:
    mean = board.mean(method, rate, score)
    return "–" if np.isnan(mean) else f"{mean:.1f}" if score.startswith("resolved") else f"{mean:.3f}"


def examples(board: Scoreboard) -> str:
    done = {run: row for run, row in board.others.items() if run.study == "examples" and run.seed == 0}
    order = sorted(done, key=lambda run: ([*STYLE, TOPIC_MODEL].index(run.method), run.rate))
    parts = [
        "## Example documents (Table 1 of the paper)\n\nTopics that make up at least 0.15 of a document, with their "
        "three heaviest terms and their share; seed 0. The three documents are never labelled. A TS-NMF topic is shown "
        "with its label. For TopicModel the probability *p* of the topic follows."
    ]
    for i in sorted(next(iter(done.values())), key=lambda i: EXAMPLES.get(int(i), i)):
        heading = f"**{EXAMPLES.get(int(i), i)}** (`{i}`)"
        if int(i) in SENTENCES:
            heading += f": *{SENTENCES[int(i)]}*"
        names = [f"{run.method} ({run.rate:g})" if run.rate else run.method for run in order]
        cells = ["; ".join(map(topic, done[run][i])) or "none" for run in order]
        parts.append(f"{heading}\n\n{table(['method', 'topics'], list(map(list, zip(names, cells, strict=True))))}")
    return "\n\n".join(parts)


def topic(found: dict[str, Any]) -> str:
    label = f"**{found['topic']}** " if found["topic"] else ""
    probable = f", p = {found['probability']:.2f}" if "probability" in found else ""
    return f"{label}`{', '.join(found['terms'])}` ({found['share']:.2f}{probable})"


def convergence(traces: dict[str, Any]) -> str:
    compared = compare(traces)
    rows = [
        [
            row["mu_iterations"],
            f"{row['objective']:.1f}",
            row["hals_iterations"] if row["hals_iterations"] is not None else "not reached",
            f"{row['time_ratio']:.1f}" if row["time_ratio"] else "–",
        ]
        for row in compared["rows"]
    ]
    rises = ", ".join(f"{name} {rise:.1e}" for name, rise in compared["rises"].items())
    head = ["multiplicative iterations", "objective", "coordinate descent iterations to reach it", "times as fast"]
    return f"""## Convergence

{image("convergence", "convergence")}

{table(head, rows)}

Both solvers run in double precision, on one core, from the same H. The largest relative change of the objective from
one iteration to the next ({rises}) is negative if the objective fell every time."""


def stationarity(descents: Mapping[Descent, dict[str, Any]]) -> str:
    rows = []
    for corpus in dict.fromkeys(run.corpus for run in descents):
        for way in WAYS:
            found = [row for run, row in descents.items() if (run.corpus, run.way) == (corpus, way)]
            if found:
                ends = [[row[part][-1] for row in found] for part in ("W", "H", "H_positive")]
                ends.append([row["left"] for row in found])
                rows.append(
                    [
                        TITLES[corpus],
                        way,
                        len(found),
                        f"{max(row['iterations'][-1] for row in found):,}",
                        *(f"{max(values):.1e}" for values in ends),
                    ]
                )
    head = ["corpus", "rules and first H", "seeds", "iterations", "residual of W", "of H", "of H positive at the start"]
    uniform = [largest(row)[-1] for run, row in descents.items() if run.way == "multiplicative, H uniform"]
    small = sum(end <= SMALL for end in uniform)
    worst = max((largest(row)[-1] for run, row in descents.items() if run.way.startswith("coordinate")), default=np.nan)
    return f"""## Does it end in a stationary point?

By Theorem 1 the rules end in a local minimum. A stationary point satisfies the Karush-Kuhn-Tucker conditions: no entry
of W or H can move alone and lower the objective. The *residual* is the largest change that exact minimisation in one
single entry would still make. For W it is relative to the length of the document, for H to the length of the topic.
So it does not depend on any scale. It is 0 at a stationary point and nowhere else.

The problems are small, so that many iterations are possible: {DOCUMENTS:,} random documents, the {TOPICS} most frequent
topics, {TERMS:,} terms, labels on {100 * RATE:.0f} % of the documents, weighted, in double precision. Numbers are the
largest over the seeds. *Left*: {FURTHER} iterations of coordinate descent from the last point still lower the objective
by this share.

{image("stationarity", "stationarity")}

{table([*head, "left"], rows)}

- **Coordinate descent** ends in a stationary point: its largest residual is {worst:.1e}.
- **The multiplicative rules from a uniform H** approach one slowly. {small} of {len(uniform)} runs reach a residual of
  {SMALL:g}; the largest is {max(uniform, default=np.nan):.1e}. An entry that became tiny on the way needs many
  iterations to come back, or is lost. The objective can hardly go lower, though: see *left*.
- **From Random Acol they do not.** A zero of H stays zero, and the conditions fail at these entries however long the
  rules run. The entries that the rules can move do approach the conditions. So the theorem holds only if W and H start
  without zeros. A stationary point need not be a local minimum either; the theorem's proof shows stationarity."""


def differences(loaded: dict[str, Corpus]) -> str:
    lines = []
    if "reuters" in loaded:
        n = loaded["reuters"].X.shape[0]
        lines += [
            "Reuters is read from the published SGML: 10,789 documents and 90 topics; NLTK's copy has 10,788. "
            f"{n:,} documents have more than 250 characters; the paper has 8,294, from NLTK's copy."
        ]
    if "pubmed" in loaded:
        n, topics = loaded["pubmed"].X.shape[0], len(loaded["pubmed"].topics)
        lines += [
            "PubMed is file 14 of the 2020 baseline, because the paper does not name its file. Topics are headings on "
            "at least 100 abstracts, without check tags such as Humans, Male or Rats. There are "
            f"{topics} topics on {n:,} abstracts; the paper has 265 on 15,320. Claims about PubMed are therefore about "
            "another part of it.",
            "PubMed and the slow methods have fewer repetitions than Reuters and the fast ones; see the table above.",
        ]
    lines += [
        "Tokens are runs of letters, with NLTK's Treebank contractions and WordNet lemmas. The paper does not describe "
        "its treatment of numbers and punctuation.",
        "The paper prints its weighted objective with E inside the norm. Its update rules minimise Σ E (X − WH)², and "
        "so does this study.",
        "The paper gives neither the number of iterations, nor the settings of LDA, nor the scaling of weights. The "
        "scaling here is the authors'; the others are ours.",
        "Runs are in single precision; the comparison of solvers is in double precision.",
    ]
    return "## Differences from the paper\n\n" + "\n".join(f"- {line}" for line in lines)


def image(name: str, kind: str) -> str:
    return f"![{CAPTIONS[kind]}](figures/{name}.svg)\n\n*{CAPTIONS[kind]}*"
