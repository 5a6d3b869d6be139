"""Theorem 1: do the rules end in a point that satisfies the Karush-Kuhn-Tucker conditions?

The residual is the largest change that exact minimisation in one single entry of W or H would still make. It is 0 at a
stationary point and nowhere else. Rows of H are taken at length 1. A change of W is relative to the length of its
document. So the residual does not depend on the scale of W, H and X:

    W:  |w_ik - max(0, w_ik - g_ik / gram_kk)| · ‖h_k‖ / ‖x_i‖      g = W HHᵀ - X Hᵀ          gram = HHᵀ
    H:  |h_kj - max(0, h_kj - g_kj / gram_kk)| / ‖h_k‖              g = (e∘W)ᵀ(WH - X)        gram = (e∘W)ᵀW

Only permitted entries of W count. The problems are small, so that many thousand iterations are possible.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.shared.corpora import Corpus
from experiments.shared.internals import supervise
from topicsteer import TSNMF

# Size of a problem: documents, topics and terms (the most frequent ones). A fifth of the documents are labelled.
DOCUMENTS, TOPICS, TERMS, RATE = 1000, 20, 1000, 0.2
# Rule, start and last iteration of each way. The multiplicative rules never change a zero.
WAYS = {
    "multiplicative, authors' start": ("mu", "authors", 10_000),
    "multiplicative, Random Acol": ("mu", "acol", 1000),
    "multiplicative, uniform": ("mu", "random", 10_000),
    "coordinate descent, authors' start": ("hals", "authors", 1000),
}
# Iterations of coordinate descent that continue from the last point, to see how much lower the objective can go.
FURTHER = 300
# Seeds of each problem, and the last iteration of the smaller version.
SEEDS, QUICK = 3, 300


@dataclass(frozen=True, eq=False)
class Problem:
    """X in double precision, labels, the mask L, and the weights e of the documents."""

    X: sp.csr_array
    supervision: Any
    L: np.ndarray
    weight: np.ndarray


def problem(corpus: Corpus, seed: int) -> Problem:
    """Random documents of a corpus with at least one of its most frequent topics, a fifth of them labelled."""
    rng = np.random.default_rng(seed)
    topics = np.argsort(-np.asarray(corpus.truth.sum(axis=0)).ravel(), kind="stable")[:TOPICS]
    truth = corpus.truth[:, topics].toarray() > 0
    rows = np.sort(rng.permutation(np.flatnonzero(truth.any(axis=1)))[:DOCUMENTS])
    X = corpus.X[rows].astype(np.float64)
    terms = np.argsort(-np.asarray((X > 0).sum(axis=0)).ravel(), kind="stable")[:TERMS]
    X = sp.csr_array(X[:, np.sort(terms)])
    filled = np.flatnonzero(np.diff(X.indptr) > 0)
    X, truth = sp.csr_array(X[filled]), truth[rows[filled]]
    labelled = np.zeros(X.shape[0], dtype=bool)
    labelled[rng.permutation(X.shape[0])[: round(RATE * X.shape[0])]] = True
    states = np.where(labelled[:, None], truth.astype(float), np.nan)
    supervision = supervise(states, X.shape[0], topics=[corpus.topics[k] for k in topics])
    L = np.where(labelled[:, None], truth, True)
    return Problem(X, supervision, L, np.where(labelled, X.shape[0] / labelled.sum(), 1.0))


def descent(corpus: Corpus, way: str, seed: int, quick: int = 0) -> dict[str, Any]:
    """Residuals after the last iteration, the largest rise of the objective, and how much lower it can still go."""
    rule, start, last = WAYS[way]
    given = problem(corpus, seed)
    W, H, _ = descend(given, start, rule, 0, seed)
    positive = H > 0
    W, H, history = descend(given, (W, H), rule, min(last, quick or last))
    further = descend(given, (W, H), "hals", FURTHER)[2]
    found = dict(zip(("W", "H", "H_positive"), residuals(given, W, H, positive), strict=True))
    found |= {"rise": np.max(np.diff(history) / history[:-1]), "left": 1 - further[-1] / history[-1]}
    return {"iterations": len(history) - 1} | {name: float(f"{value:.3g}") for name, value in found.items()}


def descend(given: Problem, init: Any, rule: str, iterations: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """W, H and the objectives after some iterations."""
    model = TSNMF(init=init, solver=rule, tol=0.0, max_iter=iterations, threads=1, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the iterations are meant to end before convergence
        model.fit(given.X, given.supervision)
    return model.document_topics_, model.components_, model.objective_history_


def residuals(given: Problem, W: np.ndarray, H: np.ndarray, positive: np.ndarray) -> tuple[float, float, float]:
    """Largest residual of W, of H, and of the entries of H that were positive at the start."""
    X, e = given.X, given.weight[:, None]
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    gram = H @ H.T
    of_W = changes(W, W @ gram - X @ H.T, np.diag(gram)) * np.sqrt(np.diag(gram)) / lengths[:, None]
    gram_W = (e * W).T @ W
    of_H = changes(H.T, H.T @ gram_W - X.T @ (e * W), np.diag(gram_W)) / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    return float(of_W[given.L].max()), float(of_H.max()), float(of_H.T[positive].max())


def changes(values: np.ndarray, gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """Change of each entry if it alone moved to its minimum; 0 where the objective does not depend on it."""
    alive = curvature > 0
    return np.where(alive, np.abs(values - np.maximum(values - gradient / np.where(alive, curvature, 1), 0)), 0)
