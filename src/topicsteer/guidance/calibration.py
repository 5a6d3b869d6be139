"""From scores to log odds: one logistic calibration for all topics, and a shift to how frequent each topic is."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from topicsteer.system.types import Array

ENOUGH = 30  # labels without which a calibration cannot be fitted and a fixed one stands in,
SHARED = 0.8  # and the share of topics that need two labels for it
FIXED = np.array([0.0, 8.0, 2.0, 0.0, 0.0, -5.0])
PAIRS = 300_000  # pairs of document and topic that a calibration is fitted to, at most


@dataclass(frozen=True, eq=False)
class Calibration:
    """From scores of the first round to log odds.

    Parameters
    ----------
    weights : array (6,)
        Five weights and the intercept of the logistic regression; see :func:`features`.
    rarity : array (n_covered,)
        log(n_k / n) of the labelled documents.
    shift : array (n_covered,)
        What is added for the frequency of each topic among all documents.
    """

    weights: Array
    rarity: Array
    shift: Array

    def odds(self, scores: Array) -> Array:
        """Log odds of scores."""
        return unshifted_odds(scores, self.rarity, self.weights) + self.shift


def features(scores: Array, rarity: Array) -> Array:
    """What the calibration sees of a score: itself, its root, the lead over the best other topic, the rarity."""
    rare = np.broadcast_to(rarity, scores.shape)
    return np.stack([scores, np.sqrt(np.maximum(scores, 0)), lead_over_others(scores), rare, scores * rare], axis=-1)


def unshifted_odds(scores: Array, rarity: Array, weights: Array) -> Array:
    """Log odds of scores: their features times the calibration, without a copy for each."""
    own, root, lead, rare, both, constant = weights
    odds = scores * (own + both * rarity).astype(scores.dtype)
    odds += root.astype(scores.dtype) * np.sqrt(np.maximum(scores, 0))
    odds += lead.astype(scores.dtype) * lead_over_others(scores)
    return np.asarray(odds + (rare * rarity + constant).astype(scores.dtype))


def lead_over_others(scores: Array) -> Array:
    """By how much each topic leads over the best of the others."""
    if scores.shape[1] < 2:
        return scores
    ranked = np.partition(scores, -2, axis=1)
    best, second = ranked[:, -1:], ranked[:, -2:-1]
    return np.asarray(scores - np.where(scores >= best, second, best))


def pooled_regression(features: Array, given: NDArray[np.bool_], weight: Array) -> Array:
    """Weights and intercept of one logistic regression for all topics."""
    if len(given) > PAIRS:  # of those not given, a sample stands for all
        yes, no = np.flatnonzero(given), np.flatnonzero(~given)
        some = np.random.default_rng(0).choice(no, max(PAIRS - len(yes), PAIRS // 10), replace=False)
        pick = np.concatenate([yes, some])
        weight = np.where(given, 1, len(no) / len(some))[pick] * weight[pick]
        features, given = features[pick], given[pick]
    mean, spread = features.mean(axis=0), features.std(axis=0)
    spread[spread < 1e-6] = 1  # what is the same everywhere gets no weight
    model = LogisticRegression(max_iter=1000).fit((features - mean) / spread, given, sample_weight=weight)
    slope = model.coef_[0] / spread
    return np.append(slope, model.intercept_[0] - slope @ mean)


def prior_shift(odds: Array, labelled: Array) -> Array:
    """Half the way from how frequent topics are among labelled documents to how frequent they seem among the others.

    People label "three a topic" and not at random, so the frequencies of the labels say little of the pile's.
    """
    shift = np.zeros(odds.shape[1], dtype=odds.dtype)
    if not len(odds):
        return shift
    safe = partial(np.clip, a_min=1e-6, a_max=1 - 1e-6)
    expected = logit(safe(expit(labelled).mean(axis=0)))
    for _ in range(5):
        shift = 0.5 * (logit(safe(expit(odds + shift).mean(axis=0))) - expected)
    return shift
