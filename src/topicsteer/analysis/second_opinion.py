"""Memberships with the answers of coders as a second opinion, weighted by how well they predict hidden labels.

For each topic the labels show how often a coder answers yes where the topic is present, and where it is absent. The log
of the ratio of the two is the evidence of its answer. One logistic regression over all topics weights the log odds of
the guide and the evidence of each coder. It is learnt from predictions of a guide that did not see the labels of these
documents. Coders that do not improve the prediction of hidden labels are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicsteer.system.types import Array

# Documents with the rates of all topics together that are added to the counts of each topic.
COMMON = 5.0
# Folds of the labelled documents, to measure the gain on hidden labels.
FOLDS = 5
# Probabilities are kept away from 0 and 1.
CERTAIN = 1e-4
# The gain must exceed this many standard errors.
CLEAR = 2.0
# Strength with which the weights stay at the guide alone, in pairs of document and topic.
RIDGE = 1.0
# Steps of Newton's method.
STEPS = 25


@dataclass(frozen=True, eq=False)
class Rates:
    """Evidence of the answers of one coder per topic: log odds of a yes and of a no."""

    yes: Array
    no: Array

    def evidence(self, answers: Array) -> Array:
        """Evidence per document and topic; an answer between 0 and 1 is between both, and a missing one is 0."""
        return np.asarray(np.nan_to_num(answers * self.yes + (1 - answers) * self.no))


def combine(
    labels: Array,
    hidden: Array,
    memberships: Array,
    coders: Sequence[tuple[Array, Array]],
    seed: int = 0,
) -> tuple[Array, bool]:
    """Memberships with the answers of coders.

    Parameters
    ----------
    labels : array (n_labelled, n_topics)
        1, 0, or NaN where it is unknown.
    hidden : array (n_labelled, n_topics)
        Predictions of the labelled documents, made without their labels.
    memberships : array (n_documents, n_topics)
        Memberships to improve.
    coders : sequence of pairs of arrays
        Answers of each coder to the labelled documents, and to the documents of ``memberships``; NaN without an answer.
    seed : int, default=0
        Seed of the folds.

    Returns
    -------
    (array, bool)
        The memberships, and whether the coders improve the prediction of hidden labels. Otherwise, and for documents
        without an answer, nothing changes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = (rng.random((400, 1)) < 0.4).astype(float)
    >>> guess = np.clip(0.4 + 0.2 * (truth - 0.4) + rng.normal(0, 0.1, truth.shape), 0, 1)
    >>> better, useful = combine(truth[:100], guess[:100], guess[100:], [(truth[:100], truth[100:])])
    >>> useful, bool(np.abs(better - truth[100:]).mean() < 0.1)
    (True, True)
    """
    fold = np.random.default_rng(seed).permutation(len(labels)) % FOLDS
    odds = _logit(hidden)
    before, after = np.zeros(len(labels)), np.zeros(len(labels))
    for f in range(FOLDS):
        rest, left = fold != f, fold == f
        rates = [_rates(labels[rest], own[rest]) for own, _ in coders]
        # The rates of these documents include their own labels, so each is judged by the other folds.
        evidence = _crossed(labels, coders, fold, skip=f)
        weights = _fit(labels[rest], odds[rest], [one[rest] for one in evidence])
        alone = _fit(labels[rest], odds[rest], [])
        seen = [rate.evidence(own[left]) for rate, (own, _) in zip(rates, coders, strict=True)]
        after[left] = _loss(labels[left], _apply(weights, odds[left], seen))
        before[left] = _loss(labels[left], _apply(alone, odds[left], []))
    gain = before - after
    error = gain.std() / np.sqrt(max(len(gain), 1))
    if not gain.mean() > CLEAR * error:
        return memberships, False
    weights = _fit(labels, odds, _crossed(labels, coders, fold))
    rates = [_rates(labels, own) for own, _ in coders]
    found = _apply(weights, _logit(memberships), [r.evidence(new) for r, (_, new) in zip(rates, coders, strict=True)])
    answered = np.any([~np.isnan(new) for _, new in coders], axis=0)
    return np.where(answered, 1 / (1 + np.exp(-found)), memberships).astype(memberships.dtype), True


def _crossed(
    labels: Array, coders: Sequence[tuple[Array, Array]], fold: NDArray[np.int64], skip: int | None = None
) -> list[Array]:
    """Evidence of the labelled documents, each from the labels of other folds."""
    found = [np.zeros_like(labels) for _ in coders]
    for f in range(FOLDS):
        others = (fold != f) & (fold != skip if skip is not None else True)
        for one, (own, _) in zip(found, coders, strict=True):
            one[fold == f] = _rates(labels[others], own[others]).evidence(own[fold == f])
    return found


def _rates(labels: Array, answers: Array) -> Rates:
    """Evidence from the counts of answers where topics are present and absent, shrunk to all topics together."""
    ends = []
    for present in (1.0, 0.0):
        here = (labels == present) & ~np.isnan(answers)
        said, all_ = np.where(here, answers, 0).sum(axis=0), here.sum(axis=0)
        common = (said.sum() + 0.5) / (all_.sum() + 1)
        ends.append((said + COMMON * common) / (all_ + COMMON))
    hit, false = (np.clip(rate, CERTAIN, 1 - CERTAIN) for rate in ends)
    return Rates(np.log(hit / false), np.log((1 - hit) / (1 - false)))


def _fit(labels: Array, odds: Array, evidence: Sequence[Array]) -> Array:
    """Weights of a constant, of the guide and of each coder: logistic regression, no weight of a coder below 0."""
    known = ~np.isnan(labels)
    X = np.column_stack([np.ones(known.sum()), odds[known], *(one[known] for one in evidence)])
    y, start = labels[known], np.zeros(X.shape[1])
    start[1] = 1
    weights = start.copy()
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-X @ weights))
        slope = X.T @ (p - y) + RIDGE * (weights - start)
        bend = (X * (p * (1 - p))[:, None]).T @ X + RIDGE * np.eye(X.shape[1])
        step = np.linalg.solve(bend, slope)
        weights = weights - step
        weights[2:] = np.maximum(weights[2:], 0)
        if np.abs(step).max() < 1e-8:
            break
    return np.asarray(weights)


def _apply(weights: Array, odds: Array, evidence: Sequence[Array]) -> Array:
    """Log odds from the weights."""
    found = weights[0] + weights[1] * odds
    for weight, one in zip(weights[2:], evidence, strict=True):
        found = found + weight * one
    return np.asarray(found)


def _loss(labels: Array, odds: Array) -> Array:
    """Sum of the log loss of each document over its known labels."""
    return np.asarray(np.nansum(np.logaddexp(0, odds) - labels * odds, axis=1))


def _logit(p: Array) -> Array:
    p = np.clip(np.asarray(p, dtype=np.float64), CERTAIN, 1 - CERTAIN)
    return np.asarray(np.log(p / (1 - p)))
