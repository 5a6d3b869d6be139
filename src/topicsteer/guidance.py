"""How labels reach the unlabelled documents: a probability for each document and known topic.

The factorisation obeys labels on labelled documents, but nothing in its objective carries them to the others. This
readout does: a kernel ridge regression on the words and the latent semantics of documents, calibrated once for all
topics on the labelled documents, each left out in turn, and shifted to how frequent each topic is among the unlabelled.
All its settings are chosen from the labelled documents. It is linear in the words up to row norms, so that a new
document costs two small products.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import randomized_svd

from topicsteer import _kernels
from topicsteer.blocks import slices
from topicsteer.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.workers import workers

Array = NDArray[np.floating[Any]]

DIMENSIONS = 400  # of the latent semantics, fewer for small corpora and none for tiny ones
FEWEST = 16
SVD_DOCUMENTS = 50_000  # documents that the latent semantics are found from, at most
RIDGES = (0.3, 1.0, 3.0)  # the candidates; the one with the least leave-one-out error is taken
EXACT = 4_000  # labelled documents up to which the ridge is solved exactly, by conjugate gradients beyond
FOLDS = 5  # in place of leaving out one by one, beyond that
ENOUGH = 30  # labels without which the calibration cannot be fitted and a fixed one stands in
ROWS = 4_096
CUT_RANGE = (0.25, 0.4)


@dataclass(frozen=True, eq=False)
class Guide:
    """From documents to probabilities of the known topics.

    Parameters
    ----------
    basis : array (n_terms, q + n_covered)
        Directions of the latent semantics, then the weights of the words for each topic with labels.
    latent : array (3 blocks of latent dimensions, n_covered)
        Weights of the latent semantics.
    scale : array (n_covered,)
        Factor that makes a score 0 where nothing speaks for the topic and 1 where everything does.
    calibration : array (6,)
        Five weights and the intercept of the logistic calibration.
    rarity : array (n_covered,)
        log(n_k / n) of the labelled documents.
    shift : array (n_covered,)
        What is added on the scale of log odds for the frequency of each topic among all documents.
    covered : array of int (n_covered,)
        Numbers of the known topics with labels; the others have probability 0.
    n_known : int
        Number of known topics.
    """

    basis: Array
    latent: Array
    scale: Array
    calibration: Array
    rarity: Array
    shift: Array
    covered: NDArray[np.int64]
    n_known: int

    def probabilities(self, X: sp.csr_array, threads: int | None = None) -> Array:
        """Probability of each known topic in each document (n_documents, n_known), labels not looked at."""
        out = np.zeros((X.shape[0], self.n_known), dtype=np.float32)
        for rows, Z, words in _projected(X, self.basis, self._dimensions, threads):
            out[rows, self.covered] = expit(self._odds(Z, words) + self.shift)
        out[np.diff(X.indptr) == 0] = 0  # a document without terms says nothing
        return out

    @property
    def directions(self) -> Array:
        """The latent semantics of the documents (n_terms, q), which labels have no part in."""
        return np.ascontiguousarray(self.basis[:, : self._dimensions])

    @property
    def _dimensions(self) -> int:
        return int(self.basis.shape[1] - len(self.covered))

    def _odds(self, Z: Array, words: Array) -> Array:
        return _odds((words + Z @ self.latent) * self.scale, self.rarity, self.calibration)


def guide(
    X: sp.csr_array,
    supervision: Supervision,
    *,
    seed: int = 0,
    threads: int | None = None,
    directions: Array | None = None,
) -> Guide | None:
    """Learn from the labelled documents, with all others for company; None if there is no label to learn from.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
        Rows of unit length.
    supervision : Supervision
        The labels: permitted and forbidden topics are learnt from, what is unknown is left open.
    seed : int, default=0
        For the decomposition.
    threads : int, optional
        None = all cores.
    directions : array (n_terms, q), optional
        Those of an earlier guide to the same documents: labels do not change them, and finding them takes long.

    Returns
    -------
    Guide or None

    Examples
    --------
    >>> from topicsteer.supervision import supervise
    >>> X = sp.csr_array(np.kron(np.eye(2), np.full((4, 3), 3**-0.5)).astype(np.float32))
    >>> found = guide(X, supervise({0: "a", 4: "b"}, 8)).probabilities(X)
    >>> found.argmax(axis=1)
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """
    _kernels.prepare(X.dtype)
    rows = np.flatnonzero(supervision.labelled & (np.diff(X.indptr) > 0))
    states = supervision.patterns[supervision.pattern[rows]]
    covered = np.flatnonzero((states == PERMITTED).any(axis=0))
    if not covered.size:
        return None
    states = states[:, covered]
    positive = (states == PERMITTED).sum(axis=0)
    mean = positive / np.maximum((states != UNKNOWN).sum(axis=0), 1)
    target = np.where(states == UNKNOWN, 0.0, states - mean)  # the unknown pulls nowhere
    directions = _directions(X, seed) if directions is None else directions
    ((_, Z, _),) = _projected(X[rows], directions, directions.shape[1], threads, len(rows))
    solve = _exact if len(rows) <= EXACT else _iterative
    with workers(threads):
        B, left_out = solve(X[rows], Z.astype(np.float64), target)
        words = (X[rows].T @ B).astype(np.float32)
        latent = (Z.T @ B).astype(np.float32)
    rarity = np.log(positive / len(rows))
    scale = 1 / np.maximum(1 - mean, 0.1)
    left_out *= scale
    calibration = _calibrate(left_out, states, positive, rarity)
    learnt = Guide(
        basis=np.ascontiguousarray(np.hstack([directions, words]), dtype=X.dtype),
        latent=latent,
        scale=scale.astype(np.float32),
        calibration=calibration,
        rarity=rarity,
        shift=np.zeros(len(covered)),
        covered=covered,
        n_known=len(supervision.topics),
    )
    unlabelled = np.flatnonzero(~supervision.labelled)
    expected = expit(_odds(left_out, rarity, calibration)).mean(axis=0)
    shift = _prior_shift(learnt, X[unlabelled], expected, threads) if unlabelled.size else learnt.shift
    return replace(learnt, shift=shift)


def obey(probabilities: Array, supervision: Supervision) -> Array:
    """Probabilities of labelled documents replaced by what their labels say: 1 permitted, 0 forbidden."""
    states = supervision.patterns[supervision.pattern]
    return np.asarray(
        np.where(states == PERMITTED, 1, np.where(states == FORBIDDEN, 0, probabilities)), dtype=probabilities.dtype
    )


def best_cuts(probabilities: Array) -> Array:
    """For each topic the probability from which "yes" maximises the expected Jaccard index, drawn to the middle.

    Of the m most probable documents Σp are expected to be right, and the union has m plus the expected rest. Single
    topics are noisy, so each cut is averaged with that of all topics that have any probability, and kept in a range.
    """
    ranked = -np.sort(-probabilities.astype(np.float64), axis=0)
    right = np.cumsum(ranked, axis=0)
    many = np.arange(1, len(ranked) + 1)[:, None]
    best = (right / (many + right[-1:] - right)).argmax(axis=0)
    cuts = np.maximum(np.take_along_axis(ranked, best[None], axis=0)[0], 1e-3)
    typical = np.exp(np.log(cuts[ranked[0] > 0]).mean()) if ranked[0].any() else CUT_RANGE[0]
    return np.asarray(np.clip(np.sqrt(cuts * typical), *CUT_RANGE))


# --- the parts ---


def _directions(X: sp.csr_array, seed: int) -> Array:
    """Right singular vectors of the documents, or of a sample of them."""
    n, t = X.shape
    if n > SVD_DOCUMENTS:
        X = X[np.sort(np.random.default_rng(seed).choice(n, SVD_DOCUMENTS, replace=False))]
    size = min(DIMENSIONS, X.shape[0] // 5, t // 5)
    if size < FEWEST:
        return np.zeros((t, 0), dtype=X.dtype)
    _, _, Vt = randomized_svd(X, size, n_iter=3, random_state=seed)
    return np.ascontiguousarray(Vt.T, dtype=X.dtype)


def _block_sizes(q: int) -> tuple[int, int, int]:
    """An eighth, a half and all of the directions; fewer than eight of them would be little more than a sign."""
    return max(q // 8, min(8, q)), max(q // 2, min(8, q)), q


def _projected(
    X: sp.csr_array, basis: Array, q: int, threads: int | None, rows: int = ROWS
) -> Iterator[tuple[slice, Array, Array]]:
    """Documents in pieces: latent semantics Z, and their words times the rest of the basis.

    Z holds an eighth, a half and all of the q directions, each block with rows of length √½.
    """
    width = basis.shape[1]
    sizes = _block_sizes(q)
    indptr = X.indptr.astype(np.int64)
    everything = np.ones((1, width), dtype=np.bool_)

    def project(part: slice) -> tuple[slice, Array, Array]:
        out = np.empty((part.stop - part.start, width), dtype=basis.dtype)
        pattern = np.zeros(len(out), dtype=np.int32)
        _kernels.cross_rows(indptr[part.start : part.stop + 1], X.indices, X.data, basis, everything, pattern, out)
        blocks = [out[:, :k] for k in sizes]
        units = [b / np.maximum(np.linalg.norm(b, axis=1, keepdims=True), 1e-9) for b in blocks]
        return part, np.sqrt(0.5).astype(basis.dtype) * np.hstack(units), out[:, q:]

    with workers(threads) as run:
        yield from run(project, slices(X.shape[0], rows))


def _exact(X: sp.csr_array, Z: Array, target: Array) -> tuple[Array, Array]:
    """Weights of the labelled documents, and their scores with each left out in turn, in closed form."""
    K = (X @ X.T).toarray().astype(np.float64) + Z @ Z.T
    values, Q = np.linalg.eigh(K)
    rotated, squares = Q.T @ target, np.square(Q)
    answers = []
    for ridge in RIDGES:
        B = Q @ (rotated / (values + ridge)[:, None])
        residual = B / (squares @ (1 / (values + ridge)))[:, None]
        answers.append((float(np.square(residual).sum()), B, target - residual))
    _, B, left_out = min(answers, key=lambda answer: answer[0])
    return B, left_out


def _iterative(X: sp.csr_array, Z: Array, target: Array) -> tuple[Array, Array]:
    """The same for many labels: conjugate gradients, a ridge of 1, and folds in place of single documents."""

    def solve(X: sp.csr_array, Z: Array, target: Array) -> Array:
        B, R = np.zeros_like(target), target.copy()
        P, size = R.copy(), np.square(R).sum(axis=0)
        for _ in range(100):
            KP = X @ (X.T @ P) + Z @ (Z.T @ P) + P
            step = size / np.maximum((P * KP).sum(axis=0), 1e-300)
            B += step * P
            R -= step * KP
            size, before = np.square(R).sum(axis=0), size
            if (size <= 1e-8 * np.square(target).sum(axis=0)).all():
                break
            P = R + size / np.maximum(before, 1e-300) * P
        return B

    X = X.astype(np.float64)
    left_out = np.zeros_like(target)
    fold = np.random.default_rng(0).permutation(len(target)) % FOLDS
    for f in range(FOLDS):
        inside, outside = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        B = solve(X[inside], Z[inside], target[inside])
        left_out[outside] = X[outside] @ (X[inside].T @ B) + Z[outside] @ (Z[inside].T @ B)
    return solve(X, Z, target), left_out


def _features(scores: Array, rarity: Array) -> Array:
    """What the calibration sees of a score: itself, its root, the lead over the best other topic, the rarity."""
    if scores.shape[1] > 1:
        ranked = np.partition(scores, -2, axis=1)
        best, second = ranked[:, -1:], ranked[:, -2:-1]
        lead = scores - np.where(scores >= best, second, best)
    else:
        lead = scores
    rare = np.broadcast_to(rarity, scores.shape)
    return np.stack([scores, np.sqrt(np.maximum(scores, 0)), lead, rare, scores * rare], axis=-1)


def _odds(scores: Array, rarity: Array, calibration: Array) -> Array:
    return np.asarray(_features(scores, rarity) @ calibration[:5] + calibration[5])


def _calibrate(left_out: Array, states: Any, positive: Array, rarity: Array) -> Array:
    """One logistic regression for all topics; documents that are the only one of their topic teach it nothing."""
    informative = (states != UNKNOWN) & ~((states == PERMITTED) & (positive == 1))
    given = (states == PERMITTED)[informative]
    if given.sum() < ENOUGH or given.all():
        return np.array([0.0, 8.0, 2.0, 0.0, 0.0, -5.0])
    model = LogisticRegression(C=1.0, max_iter=1000).fit(_features(left_out, rarity)[informative], given)
    return np.append(model.coef_[0], model.intercept_)


def _prior_shift(learnt: Guide, X: sp.csr_array, expected: Array, threads: int | None) -> Array:
    """Half the way from how frequent topics are among labelled documents to how frequent they seem among the others.

    People label "three a topic" and not at random, so the frequencies of the labels say little of the pile's.
    """
    odds = np.empty((X.shape[0], len(learnt.covered)), dtype=np.float32)
    for rows, Z, words in _projected(X, learnt.basis, learnt._dimensions, threads):
        odds[rows] = learnt._odds(Z, words)
    shift = np.zeros(odds.shape[1])
    safe = partial(np.clip, a_min=1e-6, a_max=1 - 1e-6)
    for _ in range(5):
        shift = 0.5 * (logit(safe(expit(odds + shift).mean(axis=0))) - logit(safe(expected)))
    return shift
