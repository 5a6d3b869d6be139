"""Runs of the study: suggestions against random labels, and the audit of moved labels."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.shared import corpora, internals
from experiments.shared.fingerprints import hash_of
from experiments.shared.internals import Supervision, audit, suggest, supervise
from experiments.shared.scoring import precision_on
from topicsteer.corpora import Documents, load_docstrings
from topicsteer.text import TextVectorizer

# Loaders of the corpora.
SOURCES = {
    "reuters": corpora.reuters,
    "news": corpora.newsgroups,
    "pubmed": corpora.abstracts,
    "docstrings": load_docstrings,
}
# First share of labels, the share added at a time, and the last share.
START, STEP, END = 0.02, 0.01, 0.06
# Shares of random labels.
RANDOM = (0.02, 0.04, 0.05, 0.06, 0.08, 0.1)
# Share of the labels that are moved before the audit.
FLIPPED = 0.05


# Entry of the results with the fingerprint of the guide.
CODE = "code"


def finished(path: Path) -> dict[str, Any]:
    """Finished runs in a file; runs of other code are dropped."""
    done: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return {CODE: code()} if is_old(done) else done


def is_old(done: dict[str, Any]) -> bool:
    """Whether runs are of other code of the guide."""
    return bool(done.get(CODE) != code())


@lru_cache
def code() -> str:
    """Fingerprint of the guide."""
    return hash_of(internals.guide_sources())


class Corpus:
    """Matrix, true labels, topic names, and its features, which are made once."""

    def __init__(self, name: str, load: Callable[[], Documents] | None = None) -> None:
        documents = (load or SOURCES[name])()
        vectorizer = TextVectorizer(threads=1)
        self.X = sp.csr_array(vectorizer.fit_transform(documents.texts))
        everything = supervise(documents.labels, len(documents))
        self.topics, self.truth = everything.topics, everything.indicator().toarray().astype(np.float32)
        self.features = internals.features_of(self.X)
        self.names = internals.name_rows(self.topics, vectorizer.transform)

    def supervision(self, rows: Any, truth: Any = None) -> Supervision:
        states = np.full(self.truth.shape, np.nan, dtype=np.float32)
        states[rows] = (self.truth if truth is None else truth)[rows]
        return supervise(states, len(states), topics=self.topics)

    def guide(self, supervision: Supervision) -> Any:
        return internals.learn_guide(self.X, supervision, self.names, given=self.features)


def learn(corpus: Corpus, seed: int, test: bool) -> dict[str, dict[str, dict[str, float]]]:
    """Macro and micro average precision by the share of labels, for random and suggested labels.

    The score is of the documents left unlabelled or, with ``test``, of a half that is never labelled. Shares are of the
    documents that may be labelled.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(corpus.truth))
    held, order = (order[: len(order) // 2], order[len(order) // 2 :]) if test else (order[:0], order)
    out: dict[str, dict[str, dict[str, float]]] = {"random": {}, "suggested": {}}
    for share in RANDOM:
        rows = order[: round(share * len(order))]
        out["random"][f"{share:g}"] = measure(corpus, rows, order, held)[0]
    rows = order[: round(START * len(order))]
    for share in np.arange(START, END + STEP / 2, STEP):
        scores, learnt, P, given = measure(corpus, rows, order, held)
        out["suggested"][f"{share:g}"] = scores
        n = round((share + STEP) * len(order)) - len(rows)
        left = np.setdiff1d(order, rows)
        place = lambda rows, learnt=learnt: learnt.positions(corpus.X[rows], 1)  # noqa: E731
        rows = np.concatenate([rows, [s.row for s in suggest(place, P, given, learnt.seen, n, rows=left)]])
    return out


def measure(corpus: Corpus, rows: Any, order: Any, held: Any) -> tuple[dict[str, float], Any, Any, Supervision]:
    """Fit the guide to the labels of these rows; score on the held documents, or on the documents left."""
    given = corpus.supervision(rows)
    learnt = corpus.guide(given)
    P = learnt.probabilities(corpus.X, 1)
    return precision_on(held if len(held) else np.setdiff1d(order, rows), corpus.truth, P), learnt, P, given


def flipped(corpus: Corpus, seed: int, share: float) -> dict[str, float]:
    """Share of the moved labels among the first entries of the audit."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(corpus.truth))[: round(share * len(corpus.truth))])
    truth = corpus.truth.copy()
    pairs = np.argwhere(truth[rows])
    moved = set()
    for i, k in pairs[rng.permutation(len(pairs))[: round(FLIPPED * len(pairs))]]:
        to = rng.choice(np.flatnonzero(truth[rows[i]] == 0))
        truth[rows[i], k], truth[rows[i], to] = 0, 1
        moved.add((int(rows[i]), int(to)))
    given = corpus.supervision(rows, truth)
    learnt = corpus.guide(given)
    left_out = np.zeros((len(learnt.rows), len(corpus.topics)))
    left_out[:, learnt.covered] = learnt.left_out
    listed = [(d.row, d.topic) for d in audit(left_out, learnt.rows, given)]
    found = {f"first {p} %": len(moved & set(listed[: len(listed) * p // 100])) / len(moved) for p in (5, 10)}
    return {"labels": len(pairs), "listed": len(listed), "flipped": len(moved)} | found
