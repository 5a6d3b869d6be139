"""Theorem 1: do the rules end in a point that satisfies the Karush-Kuhn-Tucker conditions?

The residual is the largest change that exact minimisation in one single entry of W or H would still make. It is 0 at a
stationary point and nowhere else. Rows of H are taken at length 1. A change of W is relative to the length of its
document. So the residual does not depend on the scale of W, H and X:

    W:  |w_ik - max(0, w_ik - g_ik / gram_kk)| · ‖h_k‖ / ‖x_i‖      g = W HHᵀ - X Hᵀ          gram = HHᵀ
    H:  |h_kj - max(0, h_kj - g_kj / gram_kk)| / ‖h_k‖              g = (e∘W)ᵀ(WH - X)        gram = (e∘W)ᵀW

Only permitted entries of W count. The problems are small, so that many thousand iterations are possible.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.paper import runs
from experiments.shared import corpora
from experiments.shared.internals import random_acol, supervise
from topicsteer import TSNMF

# Size of a problem: documents, topics (the most frequent ones), and terms (the most frequent ones).
DOCUMENTS, TOPICS, TERMS = 1000, 20, 1000
# Share of labelled documents.
RATE = 0.2
# Corpora, prepared as for the comparison with other systems.
CORPORA = ("reuters", "pubmed", "newsgroups")
# Rule, first H and last iteration. The multiplicative rules never change a zero, and Random Acol has many.
WAYS = {
    "multiplicative, Random Acol": ("mu", "acol", 1000),
    "multiplicative, H uniform": ("mu", "random", 100_000),
    "coordinate descent, Random Acol": ("hals", "acol", 1000),
}
# Iterations after which the residual is measured.
MARKS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
# A largest residual up to this is small. Runs with a small one end after 10,000 iterations.
SMALL, ENOUGH = 1e-3, 10_000
# Last iteration of the smaller version.
QUICK = 300
# Seeds of each problem.
SEEDS = 3
# Iterations of coordinate descent that continue from the last point, to see how much lower the objective can go.
FURTHER = 300


@dataclass(frozen=True)
class Descent:
    """Configuration of a run; the last iteration is part of it."""

    corpus: str
    way: str
    seed: int
    last: int

    @property
    def key(self) -> str:
        """The configuration as text."""
        return json.dumps(asdict(self) | {"study": "stationarity"}, sort_keys=True)


def plan(names: tuple[str, ...] = CORPORA, quick: bool = False) -> list[Descent]:
    """All runs, seed by seed."""
    return [
        Descent(name, way, seed, min(last, QUICK) if quick else last)
        for seed in range(1 if quick else SEEDS)
        for name in names
        for way, (_, _, last) in WAYS.items()
    ]


@dataclass(frozen=True, eq=False)
class Problem:
    """X in double precision, labels, the mask L, and the weights e of the documents."""

    X: sp.csr_array
    supervision: Any
    L: np.ndarray
    weight: np.ndarray


def problem(name: str, seed: int) -> Problem:
    """Random documents of a corpus with at least one of its most frequent topics, a fifth of them labelled."""
    corpus = corpora.load(name, "peers")
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


def perform(run: Descent) -> dict[str, Any]:
    """Residuals and objectives at the marks; each part continues where the last one ended."""
    rule, start, _ = WAYS[run.way]
    given = problem(run.corpus, run.seed)
    rng = np.random.RandomState(run.seed)
    n, d = given.L.shape
    W = rng.uniform(size=(n, d))
    H = random_acol(given.X, d, rng) if start == "acol" else rng.uniform(size=(d, given.X.shape[1]))
    positive = H > 0
    found: dict[str, Any] = {name: [] for name in ("iterations", "W", "H", "H_positive", "objective", "rise")}
    done = 0
    for mark in MARKS:
        if mark > run.last or (done >= ENOUGH and largest(found)[-1] <= SMALL):
            break
        W, H, history = descend(given, W, H, rule, mark - done)
        done = mark
        rise = float(np.max(np.diff(history) / history[:-1]))
        row = (mark, *residuals(given, W, H, positive), float(history[-1]), rise)
        for name, value in zip(found, row, strict=True):
            found[name].append(value)
    further = descend(given, W, H, "hals", FURTHER)[2]
    return found | {"left": float(1 - further[-1] / found["objective"][-1])}


def perform_any(run: Descent | runs.Run) -> dict[str, Any]:
    """Do a run of this or of another study of the paper, so that one pool of processes does both."""
    return perform(run) if isinstance(run, Descent) else runs.perform(run)


def descend(
    given: Problem, W: np.ndarray, H: np.ndarray, rule: str, iterations: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W, H and the objectives after some more iterations."""
    model = TSNMF(init=(W, H), solver=rule, tol=0.0, max_iter=iterations, threads=1)
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


def largest(found: dict[str, Any]) -> list[float]:
    """The larger of the residuals of W and H, at each mark."""
    return [max(pair) for pair in zip(found["W"], found["H"], strict=True)]
