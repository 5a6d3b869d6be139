"""Plan and perform the runs of `make paper`; a run is a configuration, and its result is a row."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

from experiments.paper import descents
from experiments.shared.corpora import SOURCES, Corpus, load, prepare
from experiments.shared.fingerprints import codes, meaning
from experiments.shared.internals import factorisation_sources, fitting_sources
from experiments.shared.measures import compare_topics
from experiments.shared.scoring import precision_on
from topicsteer import TSNMF, TopicModel
from topicsteer.corpora import Documents

# Supervision rates of the authors; they are probabilities of a label. Their sixteenth rate is 0, which is NMF.
RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# Rates of the third figure of the paper, and of Table 1.
FIGURE_3, TABLE_1 = (0.05, 0.2, 0.5, 0.8), (0.2, 0.5, 0.8)
# Rates of the runs with the sign-offs of the stories, and of the runs without an early end.
SIGN_OFFS, LATE = (0.05, 0.1, 0.2, 0.5), (0.7, 0.8, 0.9, 0.95)
# The three documents of Table 1, by Reuters' NEWID. They are never labelled.
EXAMPLES = (14913, 14885, 14854)
# Runs per method and rate with topics of these documents on their rows.
SHOWN_SEEDS = 5

# Settings of the authors' program.
PROGRAM: dict[str, Any] = {"solver": "mu", "init": "authors", "tol": "authors", "max_iter": 30}
# Variants of TS-NMF. Without "TS-", and without labels, they are variants of NMF.
TS_NMF = {
    "TS-NMF": PROGRAM,
    "TS-NMF unweighted": PROGRAM | {"label_weight": None},
    "TS-NMF, Random Acol": PROGRAM | {"init": "acol"},
    "TS-NMF, uniform": PROGRAM | {"init": "random"},
    "TS-NMF, 30 iterations": PROGRAM | {"tol": 0.0},
}
NMF = {f"NMF{start}": TS_NMF[f"TS-NMF{start}"] for start in ("", ", Random Acol", ", uniform")}
# Passes of scikit-learn's LDA: as in the authors' program, and its default.
LDA = {"LDA": 25, "LDA, 10 passes": 10}
# Our model with its defaults, from the texts themselves.
TOPIC_MODEL = "TopicModel"
# The convergence of a small problem, and the sizes of a corpus.
DESCENT, SIZES = "descent", "sizes"

# Corpus, method, rates and seeds of the whole study, and seeds of the smaller version; the first ones run first.
PLAN = (
    ("reuters", SIZES, (0.0,), 1, 1),
    ("pubmed", SIZES, (0.0,), 1, 1),
    ("reuters with sign-offs", SIZES, (0.0,), 1, 1),
    ("reuters", "TS-NMF", RATES, 30, 2),
    ("reuters", "NMF", (0.0,), 30, 2),
    ("reuters", "TS-NMF unweighted", RATES, 5, 1),
    ("reuters", "TS-NMF, Random Acol", RATES, 5, 1),
    ("reuters", "NMF, Random Acol", (0.0,), 5, 1),
    ("reuters", "TS-NMF, uniform", RATES, 5, 1),
    ("reuters", "NMF, uniform", (0.0,), 5, 1),
    ("reuters", "TS-NMF, 30 iterations", LATE, 10, 0),
    ("reuters", "LDA", (0.0,), 30, 1),
    ("reuters", "LDA, 10 passes", (0.0,), 3, 0),
    ("reuters", TOPIC_MODEL, FIGURE_3, 3, 1),
    ("reuters with sign-offs", "TS-NMF", SIGN_OFFS, 10, 0),
    ("pubmed", "TS-NMF", FIGURE_3, 10, 1),
    ("pubmed", "NMF", (0.0,), 10, 1),
    ("pubmed", "TS-NMF, Random Acol", FIGURE_3, 3, 0),
    ("pubmed", "NMF, Random Acol", (0.0,), 3, 0),
    ("pubmed", "TS-NMF, uniform", FIGURE_3, 3, 0),
    ("pubmed", "NMF, uniform", (0.0,), 3, 0),
    ("pubmed", TOPIC_MODEL, FIGURE_3, 3, 0),
    ("pubmed", "LDA", (0.0,), 3, 0),
)
# Rates of the smaller version.
QUICK_RATES = (0.05, 0.2, 0.5, 0.9)


@dataclass(frozen=True, order=True)
class Run:
    """Configuration of a run; a rate of 0 is no supervision, and ``version`` changes with the code of the method."""

    corpus: str
    method: str
    rate: float
    seed: int
    version: str

    @property
    def key(self) -> str:
        """The configuration as text, the same in any process."""
        return json.dumps(asdict(self), sort_keys=True)


@lru_cache
def fingerprint(method: str) -> str:
    """A hash of the code that makes the rows of a method, with its settings."""
    function, settings = perform_parts(method)
    library = fitting_sources() if method == TOPIC_MODEL else [] if method in LDA else factorisation_sources()
    parts = sorted(codes(function) | codes(labelled_rows) | codes(prepare))
    return sha256("\n".join([*parts, *map(meaning, library), repr(settings)]).encode()).hexdigest()[:12]


def perform_parts(method: str) -> tuple[Any, Any]:
    """The function that makes the rows of a method, and its settings."""
    if method.startswith(DESCENT):
        return descents.descent, descents.WAYS[method.removeprefix(f"{DESCENT}: ")]
    if method in OTHERS:
        return OTHERS[method], None
    return score, (TS_NMF | NMF | LDA)[method]


def plan(corpora: list[str], quick: bool = False) -> list[Run]:
    """All runs of some corpora, seed by seed within each line of the plan."""
    found = dict.fromkeys(_plan("toy" if "toy" in corpora else "", quick))
    return [run for run in found if run.corpus in corpora or run.corpus.split()[0] in corpora]


def _plan(instead: str, quick: bool) -> Iterator[Run]:
    for corpus, method, rates, seeds, few in PLAN:
        some = [rate for rate in rates if not quick or not rate or rate in QUICK_RATES]
        for seed in range(few if quick else seeds):
            yield from (Run(instead or corpus, method, rate, seed, fingerprint(method)) for rate in some)
    for corpus in ("reuters",) if quick or instead else ("reuters", "pubmed"):
        for way in descents.WAYS:
            method = f"{DESCENT}: {way}"
            for seed in range(1 if quick else descents.SEEDS):
                yield Run(instead or corpus, method, descents.QUICK if quick else 0, seed, fingerprint(method))


def perform(run: Run) -> dict[str, Any]:
    """Do a run; the same run gives the same row."""
    corpus = load(run.corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # topics without labels and few iterations are intended
        if run.method.startswith(DESCENT):
            return descents.descent(corpus, run.method.removeprefix(f"{DESCENT}: "), run.seed, int(run.rate))
        rows = labelled_rows(corpus, run.rate, run.seed)
        return OTHERS.get(run.method, score)(run, corpus, rows)


def labelled_rows(corpus: Corpus, rate: float, seed: int) -> np.ndarray:
    """Rows of the labelled documents, each drawn with the probability ``rate``; the examples are never drawn."""
    drawn = np.random.default_rng([seed, round(1000 * rate)]).random(len(corpus.ids)) < rate
    return np.flatnonzero(drawn & ~np.isin(corpus.ids, EXAMPLES))


def score(run: Run, corpus: Corpus, rows: np.ndarray) -> dict[str, Any]:
    """Fit a method of the paper: similarity on all documents, and average precision on the unlabelled ones."""
    n_topics, row = len(corpus.topics), {}
    if run.method in LDA:
        lda = LatentDirichletAllocation(n_topics, max_iter=LDA[run.method], random_state=run.seed)
        W = scores = lda.fit_transform(corpus.counts)
        H = lda.components_
    else:
        named = run.method in TS_NMF
        options = TS_NMF[run.method] if named else NMF[run.method] | {"n_components": n_topics}
        labels = corpus.supervision(rows) if named else None
        model = TSNMF(**options, threads=1, random_state=run.seed).fit(corpus.X, labels)
        W, H, history = model.document_topics_, model.components_, model.objective_history_
        scores = W * H.sum(axis=1)
        row = {"iterations": model.n_iter_, "rise": float(f"{np.max(np.diff(history) / history[:-1]):.3g}")}
    matching = compare_topics(W, corpus.truth)
    order = np.arange(n_topics) if run.method in TS_NMF else matching.found
    row |= {"similarity": round(matching.mean, 5), "resolved": matching.resolved()}
    if len(rows):
        row["coverage"] = round(float((corpus.truth[rows].sum(axis=0) > 0).mean()), 4)
    if shown(run, corpus):
        row["examples"] = examples(corpus, W / W.max(), H, run.method in TS_NMF)
    return row | unlabelled_precision(corpus, rows, scores[:, order])


def unlabelled_precision(corpus: Corpus, rows: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Macro and micro average precision on the unlabelled documents."""
    unlabelled = np.setdiff1d(np.arange(len(corpus.ids)), rows)
    return {name: round(value, 4) for name, value in precision_on(unlabelled, corpus.truth, scores).items()}


def shown(run: Run, corpus: Corpus) -> bool:
    """Whether a row has the topics of the documents of Table 1."""
    there = set(EXAMPLES) <= set(corpus.ids)
    return there and run.seed < SHOWN_SEEDS and (not run.rate or run.rate in TABLE_1)


def examples(corpus: Corpus, W: np.ndarray, H: np.ndarray, named: bool) -> dict[str, list[dict[str, Any]]]:
    """Topics of the documents in Table 1, as the authors' program prints them.

    A topic counts from half of the largest weight in its document. Its terms are the first three that have more than a
    tenth of its largest weight.
    """
    found = {}
    for document in EXAMPLES:
        weights = W[corpus.ids.index(document)]
        found[str(document)] = [
            {
                "topic": corpus.topics[k] if named else None,
                "terms": [corpus.terms[j] for j in np.argsort(-H[k])[:3] if H[k, j] > 0.1 * H[k].max()],
                "weight": round(float(weights[k]), 2),
            }
            for k in np.argsort(-weights)
            if weights[k] > weights.max() / 2
        ]
    return found


def topic_model(run: Run, corpus: Corpus, rows: np.ndarray) -> dict[str, Any]:
    """Fit `TopicModel()` to the texts: average precision, and the topics of the examples with their probabilities."""
    documents, labelled = SOURCES[corpus.name](), set(rows.tolist())
    labels = [own if i in labelled else [] for i, own in enumerate(documents.labels)]
    given = Documents(list(documents.ids), list(documents.texts), labels)
    model = TopicModel(random_state=run.seed, threads=1).fit(given)
    memberships = model.memberships()
    known = set(memberships.columns)
    scores = [np.asarray(memberships[t]) if t in known else np.zeros(len(corpus.ids)) for t in corpus.topics]
    P = np.stack(scores, axis=1)
    row: dict[str, Any] = unlabelled_precision(corpus, rows, P)
    if shown(run, corpus):
        row["examples"] = {
            str(document): [
                {"topic": corpus.topics[k], "terms": model.top_terms(corpus.topics[k], 3), "weight": round(float(p), 2)}
                for k, p in enumerate(P[corpus.ids.index(document)])
                if p > 0.5
            ]
            for document in EXAMPLES
        }
    return row


def sizes(run: Run, corpus: Corpus, rows: np.ndarray) -> dict[str, Any]:
    """Numbers of documents, terms, topics and labels per document, and the share of zeros in H of each start."""
    zeros = {}
    rows = labelled_rows(corpus, 0.2, run.seed)
    for start in ("authors", "acol"):
        model = TSNMF(init=start, solver="mu", max_iter=0, tol=0.0, random_state=run.seed, threads=1)
        zeros[start] = round(float((model.fit(corpus.X, corpus.supervision(rows)).components_ == 0).mean()), 3)
    n, terms = corpus.X.shape
    labels = round(float(corpus.truth.sum()) / n, 2)
    return {"documents": n, "terms": terms, "topics": len(corpus.topics), "labels": labels, "zeros": zeros}


# Functions of methods that are no factorisation and no LDA.
OTHERS = {TOPIC_MODEL: topic_model, SIZES: sizes}
