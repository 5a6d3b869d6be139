"""Learn a guide from the labelled documents, with the others for company."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, logit

from topicsteer.guidance.calibration import (
    ENOUGH,
    FIXED,
    SHARED,
    Calibration,
    features,
    pooled_regression,
    prior_shift,
    unshifted_odds,
)
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.latent import dense_features, latent_directions
from topicsteer.guidance.ridge import Examples, Ridge, choose_ridge
from topicsteer.guidance.word_round import Background
from topicsteer.labels.folds import assign_folds
from topicsteer.labels.supervision import PERMITTED, UNKNOWN, Supervision
from topicsteer.nmf import kernels
from topicsteer.nmf.protocols import Rows
from topicsteer.system.threads import workers
from topicsteer.system.types import Array

BACKGROUND = 20_000  # unlabelled documents that frequencies and the words of topics are learnt from, at most
FOLDS = 3  # in which labels are hidden
RENEWED = 1.1  # times as many labelled documents as at the last choice of settings, from which they are chosen again


def guide(
    X: Rows,
    supervision: Supervision,
    *,
    names: sp.csr_array | None = None,
    embeddings: Array | None = None,
    confidence: Array | None = None,
    directions: Array | None = None,
    before: Guide | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Guide | None:
    """Learn from the labelled documents, with all others for company; None if there is no label to learn from.

    Parameters
    ----------
    X : Rows (n_documents, n_terms)
        Rows of unit length. Of rows that are not in memory, only those that are learnt from are read.
    supervision : Supervision
        The labels: permitted and forbidden topics are learnt from, what is unknown is left open.
    names : CSR (n_known, n_terms), optional
        The words of each topic's name or description, as a document.
    embeddings : array (n_documents, any), optional
        Of the documents, from elsewhere.
    confidence : array (n_documents,), optional
        How far a document's labels can be trusted, above 0; 1 = as any other.
    directions : array, optional
        From :func:`latent_directions`, if they are at hand.
    before : Guide, optional
        Of the same documents, topics and names under a few labels less: what it chose and calibrated is taken over, and
        the work of the labels alone is done, until a tenth of the labels are new.
    seed : int, default=0
        For the decomposition and the samples.
    threads : int, optional
        None = all cores.

    Returns
    -------
    Guide or None

    Examples
    --------
    >>> from topicsteer.labels.forms import supervise
    >>> from topicsteer.backends import as_rows
    >>> X = sp.csr_array(np.kron(np.eye(2), np.full((4, 3), 3**-0.5)).astype(np.float32))
    >>> found = guide(as_rows(X), supervise({0: "a", 4: "b"}, 8)).probabilities(X)
    >>> found.argmax(axis=1)
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """
    kernels.prepare(X.dtype)
    rows = np.flatnonzero(supervision.labelled & (X.sizes > 0))
    states = supervision.patterns[supervision.pattern[rows]]
    if not (states == PERMITTED).any():
        return None
    directions = latent_directions(X, seed) if directions is None else directions
    document_weight = np.ones(len(rows)) if confidence is None else np.asarray(confidence, dtype=np.float64)[rows]
    background = np.concatenate([rows, background_rows(supervision, seed)])  # the labelled ones first
    X_background = X.take(background)
    E, E_background = (None, None) if embeddings is None else (embeddings[rows], embeddings[background])
    with workers(threads):
        examples = Examples.of(X.take(rows), states, document_weight, names, E, directions)
        if before is not None and len(rows) <= RENEWED * before.chosen_from:
            name = before.choice.name if examples.named.size else 0.0
            trainer = GuideTrainer.of(
                X_background, examples, examples.ridge(replace(before.choice, name=name)), rows, directions
            )
            if np.array_equal(trainer.covered, before.covered):
                said = before.probabilities(X_background, threads, embeddings=E_background)[:, trainer.covered]
                return trainer.renew(before, logit(np.clip(said, 1e-6, 1 - 1e-6)))
        ridge = examples.ridge(choose_ridge(examples))
        D = dense_features(X_background, directions, E_background, ridge.choice.embedding)
        return GuideTrainer.of(X_background, examples, ridge, rows, directions).learn(D, states.shape[1])


def background_rows(supervision: Supervision, seed: int) -> NDArray[np.intp]:
    """The unlabelled documents that frequencies and the words of topics are learnt from: all, or a sample."""
    unlabelled = np.flatnonzero(~supervision.labelled)
    if len(unlabelled) > BACKGROUND:
        unlabelled = np.sort(np.random.default_rng(seed).choice(unlabelled, BACKGROUND, replace=False))
    return unlabelled


@dataclass(frozen=True, eq=False)
class GuideTrainer:
    """What both rounds learn from: the labelled documents, and behind them those that keep them company."""

    background: Background
    ridge: Ridge
    covered: NDArray[np.int64]
    rows: NDArray[np.intp]
    directions: Array

    @classmethod
    def of(
        cls, X: sp.csr_array, examples: Examples, ridge: Ridge, rows: NDArray[np.intp], directions: Array
    ) -> GuideTrainer:
        """The topics that have labels, or a name that helps."""
        covered = np.flatnonzero((examples.labels > 0) | np.isin(np.arange(len(examples.labels)), ridge.names))
        background = Background(X, examples.states[:, covered], examples.document_weight, directions.dtype)
        return cls(background, ridge, covered, rows, directions)

    def learn(self, D: Array, n_known: int) -> Guide:
        """Both rounds; ``D`` holds the latent semantics and the weighed embeddings of the company."""
        states, ridge, n, X = self.background.states, self.ridge, len(self.rows), self.background.X
        given = states == PERMITTED
        positive = given.sum(axis=0)
        target, mean = ridge.target(states, self.covered)
        part = assign_folds(sp.csr_array(given), FOLDS, seed=0)
        words, dense = self._weights(target)
        scale = (1 / np.maximum(1 - mean, 0.1)).astype(np.float32)
        kept = [np.concatenate([part != fold, ridge.document_weight[n:] > 0]) for fold in range(part.max() + 1)]
        in_folds = [self._scores(D, target, np.flatnonzero(inside)) * scale for inside in kept]
        scores = (X @ words + D @ dense) * scale
        if ridge.kernel is None:
            left_out = scores[:n].copy()
            for inside, hidden in zip(kept, in_folds, strict=True):
                left_out[~inside[:n]] = hidden[:n][~inside[:n]]
        else:
            left_out = ridge.left_out(target)[:n] * scale
        rarity = np.log(np.maximum(positive, 0.5) / n)
        taught = (states != UNKNOWN) & ~(given & (positive == 1))  # the only document of a topic says nothing left out
        fitted = given[taught].sum() >= ENOUGH and (positive[positive > 0] > 1).mean() >= SHARED and part.max() > 0
        fitted = fitted and not given[taught].all()  # one topic, and nothing known not to have it
        weights = FIXED
        if fitted:
            document_weight = np.broadcast_to(self.background.document_weight[:, None], taught.shape)[taught]
            weights = pooled_regression(features(left_out, rarity)[taught], given[taught], document_weight)

        first = partial(unshifted_odds, rarity=rarity, weights=weights)
        shift = prior_shift(first(scores[n:]), first(left_out))
        odds, folds = first(scores) + shift, [first(s) + shift for s in in_folds]
        second = self.background.learn_words(odds, folds, part, fitted)
        hidden = np.where(given & (positive == 1), np.nan, first(left_out) + shift)
        if second is not None and second.hidden is not None:
            hidden = np.where(np.isnan(second.hidden), hidden, second.hidden)
        return Guide(
            basis=self._basis(words, None if second is None else second.ratios),
            dense=dense,
            scale=scale,
            calibration=Calibration(weights, rarity, shift),
            word_round=None if second is None else second.round,
            choice=ridge.choice,
            chosen_from=n,
            covered=self.covered,
            rows=self.rows,
            left_out=expit(hidden).astype(np.float32),
            seen=self._seen(D if not ridge.choice.embedding else None),
            n_known=n_known,
        )

    def renew(self, before: Guide, odds: Array) -> Guide:
        """The same with more labels: weights of the words anew, choices and calibrations as they were.

        ``odds`` are those that the earlier guide gave to the company.
        """
        n, given = len(self.rows), self.background.states == PERMITTED
        target, mean = self.ridge.target(self.background.states, self.covered)
        words, dense = self._weights(target)
        ratios = None if before.word_round is None else self.background.log_ratios(odds, np.ones(n, dtype=np.bool_))
        left_out = expit(odds[:n]).astype(np.float32)  # of a new label: what was said before it was given
        _, old, now = np.intersect1d(before.rows, self.rows, return_indices=True)
        left_out[now] = before.left_out[old]
        return replace(
            before,
            basis=self._basis(words, ratios),
            dense=dense,
            scale=(1 / np.maximum(1 - mean, 0.1)).astype(np.float32),
            calibration=replace(before.calibration, rarity=np.log(np.maximum(given.sum(axis=0), 0.5) / n)),
            rows=self.rows,
            left_out=left_out,
            seen=self._seen(None),
        )

    def _weights(self, target: Array, inside: NDArray[np.intp] | slice = slice(None)) -> tuple[Array, Array]:
        """Weights of the words, and of latent semantics and embeddings, learnt from some of the examples."""
        B = self.ridge.solve(target, inside)
        words, dense = self.ridge.words[inside], self.ridge.dense[inside]
        return (words.T @ B).astype(np.float32), (dense.T @ B).astype(np.float32)

    def _scores(self, D: Array, target: Array, inside: NDArray[np.intp]) -> Array:
        """First-round scores of everybody when only some labels are seen."""
        words, dense = self._weights(target, inside)
        return np.asarray(self.background.X @ words + D @ dense)

    def _basis(self, words: Array, ratios: Array | None) -> Array:
        parts = [self.directions, words] if ratios is None else [self.directions, words, ratios]
        return np.ascontiguousarray(np.hstack(parts), dtype=self.directions.dtype)

    def _seen(self, D: Array | None) -> Array:
        """DᵀD of the labelled documents; ``D`` are the latent semantics of the company, if they are at hand."""
        n = len(self.rows)
        Z = dense_features(self.background.X[:n], self.directions) if D is None else D[:n]
        return np.asarray(Z.T @ Z)
