"""README.md of this study, from the finished trials."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.firsthour.trials import (
    BUDGETS,
    EARLIER,
    EMBEDDED_COSINE,
    HALF,
    HALVES,
    LABELS_ALONE,
    METHODS,
    OURS,
    OURS_EMBEDDED,
    WORDS_ONLY,
    WRONG,
    Trial,
)
from experiments.firsthour.words import KEYWORDS
from experiments.shared.corpora import Corpus
from experiments.shared.store import Store
from experiments.shared.terminal import table

TITLES = {
    "newsgroups-quotes": "20 Newsgroups without headers",
    "newsgroups-6000": "20 Newsgroups without headers and quotes",
    "pubmed-8000": "PubMed",
    "pubmed-176": "PubMed with check tags",
    "reuters-100": "Reuters",
    "toy": "Toy",
}
WORDS = {"names": "names", "keywords": "names and five keywords"}
ABOUT = {
    OURS: "the guide of `TopicModel(topics=..., keywords=...)`: memberships without the factorisation",
    LABELS_ALONE: "the same without names",
    EARLIER: "memberships of the first release, from names and labels",
    OURS_EMBEDDED: "the guide with embeddings (all-MiniLM-L6-v2) of documents, names and keywords",
    EMBEDDED_COSINE: "of the embeddings (all-MiniLM-L6-v2) of a document and of all words of a topic",
    "cosine": "of a document and all words of a topic",
    "logistic regression, words as documents": "one per topic, balanced, C = 10; names and keywords are labelled "
    "documents",
    "CorEx with anchors": "the words are anchors, strength 3",
    "seeded LDA (tomotopy)": "100 iterations; prior 10 of a word in its topic, 0.01 in the others",
}


def write(folder: Path, store: Store, planned: list[Trial], loaded: Mapping[str, Corpus]) -> Path:
    """Write the page; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "README.md"
    path.write_text(text(store.results(planned), loaded, len(planned)), encoding="utf-8")
    return path


def text(results: Mapping[Trial, dict[str, Any]], loaded: Mapping[str, Any], planned: int) -> str:
    """The page."""
    parts = [HEAD.format(sizes=sizes(loaded)), counted(results, planned), "## Names and keywords, no label"]
    parts += [without_labels(results, list(loaded)), "## The first labels", LABELS_HEAD]
    full = [name for name in loaded if name not in WORDS_ONLY]
    parts += [with_labels(results, name) for name in full]
    parts += ["## One wrong label", wrong(results, full), "## Half of the names", half(results, full)]
    parts += ["## Methods", "\n".join(f"- **{name}**: {about}." for name, about in ABOUT.items()), not_run(results)]
    return "\n\n".join(parts) + "\n"


HEAD = """# The first hour: names and keywords before any label

Made by `python -m experiments.firsthour`; do not edit.

{sizes}

Users have names for their topics before they have labels. Names come from the corpora; names of newsgroups lose their
first part ("religion christian"). Keywords are the five words of a topic that differ most in mean tf-idf between its
documents and the others: true labels choose them, so they are better than the words of most users.

20 Newsgroups is taken in two variants, because quotes make it easier: without headers, and without headers and quotes.
The research that this study follows used posts without headers, quotes kept. PubMed has 154 headings on 100 or more
abstracts; with check tags such as "Humans" and "Male", which name no topic of the text, there are 176.

Scores are macro average precision on documents without a label. They are means of three draws of the labels, or of
fewer where trials are not done yet. Constants of topicsteer for names alone were chosen on Reuters and on docstrings.
Constants for labels on top of words, and for P(none) by names, were chosen on Reuters and 20 Newsgroups. PubMed showed
that keywords need their sum as well; its weight was chosen on Reuters and 20 Newsgroups. The method for half of the
names was chosen on Reuters and 20 Newsgroups without headers. The number of topics per document was looked up on
PubMed."""
LABELS_HEAD = (
    """One, three or ten documents per topic are drawn and get all their labels. Words and labels are used together."""
)


def sizes(loaded: Mapping[str, Any]) -> str:
    """The table of corpora."""
    rows = [
        [
            TITLES[name],
            f"{c.X.shape[0]:,}",
            f"{c.X.shape[1]:,}",
            len(c.topics),
            f"{c.truth.sum() / c.X.shape[0]:.2f}",
        ]
        for name, c in loaded.items()
    ]
    return table(["corpus", "documents", "terms", "topics", "labels per document"], rows)


def counted(results: Mapping[Trial, Any], planned: int) -> str:
    """How many trials are done."""
    return f"{len(results):,} of {planned:,} planned trials are done."


def mean(results: Mapping[Trial, Any], measure: str, **wanted: Any) -> str:
    """Mean of a measure over the trials of a cell, a dash without any."""
    found = [
        row[measure]
        for trial, row in results.items()
        if measure in row and all(getattr(trial, field) == value for field, value in wanted.items())
    ]
    return f"{np.mean(found):.3f}".lstrip("0") if found else "–"


def without_labels(results: Mapping[Trial, Any], corpora: list[str]) -> str:
    """Average precision and F1 of the likeliest topic by words alone."""
    parts = []
    for kind, title in WORDS.items():
        rows = [
            [name, *(cell(results, corpus, name, kind) for corpus in corpora)]
            for name, method in METHODS.items()
            if method.words and any((t.method, t.words, t.labels) == (name, kind, 0) for t in results)
        ]
        parts += [
            f"By {title}: average precision, and F1 of the likeliest topic (mean over topics).",
            table(["method", *(TITLES[c] for c in corpora)], rows),
        ]
    return "\n\n".join([*parts, PUBLISHED])


EMBEDDED_ALONE = "Embeddings take long to compute, so only 20 Newsgroups without headers has them."
PUBLISHED = """F1 of the likeliest topic is meant for documents with one topic each. Lbl2TransformerVec embeds documents
and keywords with a language model. Its published F1 on 20 Newsgroups is .647; posts and keywords differ from these.
Half of the stories of Reuters share no word with a name, so all their cosines are 0. Their likeliest topic is then the
first one, `acq`, whose name occurs in no story. This raises the F1 of the cosine there."""


def cell(results: Mapping[Trial, Any], corpus: str, method: str, kind: str) -> str:
    """Average precision and F1 of a cell."""
    wanted = {"corpus": corpus, "method": method, "words": kind, "labels": 0}
    return f"{mean(results, 'macro', **wanted)} · {mean(results, 'F1', **wanted)}"


def with_labels(results: Mapping[Trial, Any], corpus: str) -> str:
    """Average precision by number of labels."""
    rows = []
    for kind in KEYWORDS:
        for name, method in METHODS.items():
            if method.labels and ((method.words and method.keywords) or kind == "names"):
                shown = WORDS[kind] if method.words else "none"
                cells = [mean(results, "macro", corpus=corpus, method=name, words=kind, labels=m) for m in BUDGETS]
                if set(cells) != {"–"}:
                    rows.append([name, shown, *cells])
    head = ["method", "words", *(f"{m} per topic" for m in BUDGETS)]
    return f"### {TITLES[corpus]}\n\n{table(head, rows)}"


def wrong(results: Mapping[Trial, Any], corpora: list[str]) -> str:
    """Share of the average precision that is kept after one wrong label."""
    rows = [
        [TITLES[c], *(mean(results, m, corpus=c, method=WRONG).replace("–", "-") for m in ("kept", "least"))]
        for c in corpora
    ]
    return (
        "The only label of the corpus is wrong: a topic with a name and four keywords gets a document of another one.\n"
        "The share of its average precision that the topic keeps, over about 20 topics:\n\n"
        + table(["corpus", "mean", "least"], rows)
    )


def half(results: Mapping[Trial, Any], corpora: list[str]) -> str:
    """Measures with names for half of the topics."""
    measures = ("hidden AP", "leak", "known AP", "cosine AP", "recall", "precision", "none error")
    rows = [
        [TITLES[c], WORDS[kind], str(labels), *cells]
        for c in corpora
        for kind, labels in HALVES
        for cells in [[mean(results, m, corpus=c, method=HALF, words=kind, labels=labels) for m in measures]]
        if set(cells) != {"–"}
    ]
    return (
        'Half of the topics have a name, and the others are hidden. The world is declared open (`world="open"`), and\n'
        "there are as many free topics as hidden ones. Measures as in the [study of unnamed\n"
        "topics](../openworld/README.md); *cosine AP* is the known AP of the cosine with the same words. Rows with\n"
        "three labels per known topic show the same worlds with the first labels:\n\n"
        + table(["corpus", "words", "labels", *measures], rows)
    )


def not_run(results: Mapping[Trial, Any]) -> str:
    """Methods that were left out."""
    left = [f"- {name}." for name in METHODS if not any(trial.method == name for trial in results)]
    return "\n".join(["Not run:", "", *left]) if left else EMBEDDED_ALONE
