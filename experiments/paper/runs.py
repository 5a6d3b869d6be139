"""Plan and perform the runs of `make paper`; a run is a configuration, and its result is a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from experiments.shared import methods
from experiments.shared.corpora import EXAMPLES, SOURCES, Corpus, load
from experiments.shared.measures import coherence, compare_topics, diversity
from experiments.shared.scoring import precision_on
from topicsteer import TopicModel
from topicsteer.corpora import Documents

# Supervision rates: shares of the documents that are labelled.
RATES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.8, 0.9)
# Rates of the third figure of the paper.
FIGURE_3 = (0.05, 0.2, 0.5, 0.8)
# Our model with its defaults, which reads the texts itself; it takes part in Table 1 only.
TOPIC_MODEL = "TopicModel"
# Random samples for the coverage of the topics.
SAMPLES = 1000

# Repetitions of each method at each rate on Reuters.
REUTERS = {
    "TS-NMF": 30,
    "TS-NMF unweighted": 30,
    "TS-NMF uniform start": 10,
    "TS-NMF uniform start unweighted": 6,
    "TS-NMF default solver": 5,
    "NMF": 30,
    "NMF uniform start": 10,
    "LDA": 8,
    "nearest centroid": 10,
    "logistic regression": 5,
}
# The same on PubMed.
PUBMED = {
    "TS-NMF": 12,
    "TS-NMF uniform start": 5,
    "TS-NMF default solver": 3,
    "NMF": 12,
    "NMF uniform start": 5,
    "LDA": 3,
    "nearest centroid": 3,
    "logistic regression": 2,
}
# Rates of the smaller version.
QUICK_RATES = (0.05, 0.2, 0.5, 0.7, 0.9)
# Repetitions of the smaller version on Reuters.
QUICK_REUTERS = {
    "TS-NMF": 3,
    "TS-NMF unweighted": 3,
    "TS-NMF uniform start": 1,
    "TS-NMF default solver": 1,
    "NMF": 3,
    "LDA": 1,
    "nearest centroid": 1,
}
# Repetitions of the smaller version on PubMed.
QUICK_PUBMED = {"TS-NMF": 1, "NMF": 2, "nearest centroid": 1}


@dataclass(frozen=True, order=True)
class Run:
    """Configuration of a run; ``study`` is "score", "coverage" or "examples", and a rate of 0 is no supervision."""

    seed: int
    corpus: str
    study: str
    method: str
    rate: float

    @property
    def key(self) -> str:
        """The configuration as text, the same in any process."""
        return json.dumps(asdict(self), sort_keys=True)


def plan(corpus: str, quick: bool = False) -> list[Run]:
    """All runs of a corpus, ordered so that the first ones are a smaller version of the whole."""
    return sorted(_plan(corpus, quick))


def _plan(corpus: str, quick: bool) -> Iterator[Run]:
    if corpus == "pubmed":
        yield from _grid(corpus, FIGURE_3, QUICK_PUBMED if quick else PUBMED)
        return
    rates = QUICK_RATES if quick else RATES
    yield from _grid(corpus, rates, QUICK_REUTERS if quick else REUTERS)
    yield from (Run(0, corpus, "coverage", "samples", rate) for rate in rates)
    for seed in range(1 if quick else 3):
        for method in ("TS-NMF", "TS-NMF uniform start"):
            yield from (Run(seed, corpus, "examples", method, rate) for rate in (0.2, 0.5, 0.8))
        yield from (Run(seed, corpus, "examples", method, 0.0) for method in methods.UNSUPERVISED)
        yield from (Run(seed, corpus, "examples", TOPIC_MODEL, rate) for rate in ((0.2,) if quick else (0.2, 0.5, 0.8)))


def _grid(corpus: str, rates: tuple[float, ...], repetitions: dict[str, int]) -> Iterator[Run]:
    for method, times in repetitions.items():
        for rate in (0.0,) if method in methods.UNSUPERVISED else rates:
            yield from (Run(seed, corpus, "score", method, rate) for seed in range(times))


def perform(run: Run) -> dict[str, Any]:
    """Do a run; the same run gives the same row."""
    return STUDIES[run.study](run, load(run.corpus))


def score(run: Run, corpus: Corpus) -> dict[str, Any]:
    """Scores on all documents, as in the paper, and on the unlabelled ones."""
    rows = corpus.labelled_rows(run.rate, run.seed)
    found = methods.fit(run.method, corpus, rows, run.seed)
    unlabelled = np.setdiff1d(np.arange(corpus.X.shape[0]), rows)
    covered = np.asarray(corpus.truth[rows].sum(axis=0)).ravel() > 0
    rises = np.diff(found.history) / found.history[:-1] if found.history else np.zeros(1)
    parts = {"all": slice(None), "unlabelled": unlabelled}
    return {
        "coverage": float(covered.mean()),
        "largest_rise": float(rises.max()),
        "last_fall": float(-rises[-1]),
        "objective": found.history[-1] if found.history else None,
        **describe(found.terms, corpus),
    } | {f"{name}_{part}": value for part, rows in parts.items() for name, value in judge(found, corpus, rows).items()}


def describe(H: np.ndarray | None, corpus: Corpus) -> dict[str, float | None]:
    """Coherence and diversity of the ten heaviest terms of each topic."""
    if H is None:
        return {"npmi": None, "diversity": None}
    terms = np.argsort(-H, axis=1, kind="stable")[:, :10]
    return {"npmi": float(coherence(corpus.X, terms).mean()), "diversity": diversity(terms)}


def judge(found: methods.Fit, corpus: Corpus, rows: Any) -> dict[str, float]:
    """Scores on some documents; topics without names get the names of the best match."""
    truth = corpus.truth[rows]
    matching = compare_topics(found.weights[rows], truth)
    proportions = compare_topics(found.weights[rows], truth, "rows")
    columns = np.arange(len(corpus.topics)) if found.named else matching.found
    return {
        "similarity": matching.mean,
        "resolved": matching.resolved(),
        "similarity_rows": proportions.mean,
        "resolved_rows": proportions.resolved(),
        "own": float(np.mean(matching.found == np.arange(len(corpus.topics)))),
    } | precision_on(rows, corpus.truth, found.scores[:, columns])


def coverage(run: Run, corpus: Corpus) -> dict[str, Any]:
    """Share of the topics that occur in random samples of documents."""
    n, rng = corpus.X.shape[0], np.random.default_rng([run.seed, round(1000 * run.rate)])
    drawn = np.zeros((SAMPLES, n), dtype=np.float32)
    for sample in drawn:
        sample[rng.permutation(n)[: round(run.rate * n)]] = 1
    covered = ((drawn @ corpus.truth.astype(np.float32)) > 0).mean(axis=1)
    return {"coverage": covered.round(6).tolist()}


def examples(run: Run, corpus: Corpus) -> dict[str, Any]:
    """Topics of the documents in Table 1 of the paper, which are never labelled here."""
    wanted = tuple(EXAMPLES)
    if corpus.name != "reuters":
        wanted = tuple(corpus.ids[:3])
    rows = corpus.labelled_rows(run.rate, run.seed, wanted)
    if run.method == TOPIC_MODEL:
        return examples_of_topic_model(run, corpus, wanted, rows)
    found = methods.fit(run.method, corpus, rows, run.seed)
    shares = found.scores / found.scores.sum(axis=1, keepdims=True)
    heaviest = np.argsort(-found.terms, axis=1)[:, :3]
    return {
        str(i): [
            {
                "topic": corpus.topics[k] if found.named else None,
                "terms": [corpus.terms[j] for j in heaviest[k]],
                "share": round(float(shares[row, k]), 4),
            }
            for row in [corpus.ids.index(i)]
            for k in np.argsort(-shares[row])[:3]
            if shares[row, k] >= 0.15
        ]
        for i in wanted
    }


def examples_of_topic_model(run: Run, corpus: Corpus, wanted: tuple[int, ...], rows: np.ndarray) -> dict[str, Any]:
    """The same for `TopicModel()`: parts of the document, and the probability of the topic."""
    documents, labelled = SOURCES[corpus.name](), set(rows.tolist())
    labels = [own if i in labelled else [] for i, own in enumerate(documents.labels)]
    with methods.quiet():
        model = TopicModel(random_state=run.seed, threads=1).fit(
            Documents(list(documents.ids), list(documents.texts), labels)
        )
        parts, probable = model.document_topics, model.memberships()
    names = [name for name in parts.columns if name != "id"]
    found = {}
    for i in wanted:
        row = corpus.ids.index(i)
        own = sorted(((float(parts[name][row]), name) for name in names), reverse=True)[:3]
        found[str(i)] = [
            {
                "topic": name,
                "terms": model.top_terms(name, 3),
                "share": round(share, 4),
                "probability": round(float(probable[name][row]), 4),
            }
            for share, name in own
            if share >= 0.15
        ]
    return found


# Functions that perform a run, by its study.
STUDIES = {"score": score, "coverage": coverage, "examples": examples}
