"""Calibration of scores to log odds, and prior shift.

One logistic regression calibrates the scores of all topics. The prior shift then corrects for topics that are more or
less frequent among all documents than among labelled documents.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from topicsteer.nmf.blocks import slices
from topicsteer.system.types import Array

# A calibration is fitted from this many labels; with fewer, FIXED_CALIBRATION is used.
MIN_LABELS = 30
# A calibration also needs two labels in this share of the labelled topics.
MIN_SHARE_OF_TOPICS = 0.8
# Weights and intercept of the calibration that is used when none can be fitted.
FIXED_CALIBRATION = np.array([0.0, 8.0, 2.0, 0.0, 0.0, -5.0])
# Place of the lead over the other topics among the weights.
LEAD = 2
# By names alone, a document counts as having the topics with at least this probability. Documents have several topics
# each if they have this many on average.
LIKELY, SEVERAL = 0.3, 1.25
# A calibration is fitted to at most this many pairs of document and topic.
PAIRS = 300_000
# Documents per block of work.
ROWS = 4_096


@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibration from scores of the first round to log odds.

    Parameters
    ----------
    weights : array (6,)
        Five weights and the intercept of the logistic regression; see :func:`features`.
    rarity : array (n_covered,)
        log(n_k / n): the log share of each topic among the labelled documents.
    shift : array (n_covered,)
        The prior shift: added to the log odds of each topic.
    """

    weights: Array
    rarity: Array
    shift: Array

    def odds(self, scores: Array) -> Array:
        """Calibrated log odds of scores, with the prior shift."""
        return odds_of_scores(scores, self.rarity, self.weights) + self.shift


def features(scores: Array, rarity: Array) -> Array:
    """Features of each score: itself, its root, its lead over the best other topic, the rarity, score × rarity."""
    rare = np.broadcast_to(rarity.astype(scores.dtype), scores.shape)
    return np.stack([scores, np.sqrt(np.maximum(scores, 0)), lead_over_others(scores), rare, scores * rare], axis=-1)


def odds_of_scores(scores: Array, rarity: Array, weights: Array, shift: Array | float = 0.0) -> Array:
    """Log odds, by default without prior shift: :func:`features` times the weights, without storing the features."""
    own, root, lead, rare, product, intercept = weights
    odds = scores * (own + product * rarity).astype(scores.dtype)
    for rows in slices(len(scores), ROWS):
        part = scores[rows]
        odds[rows] += root.astype(scores.dtype) * np.sqrt(np.maximum(part, 0))
        odds[rows] += lead.astype(scores.dtype) * lead_over_others(part)
        odds[rows] += (rare * rarity + intercept).astype(scores.dtype)
        odds[rows] += shift
    return np.asarray(odds)


def topics_per_document(has: NDArray[np.bool_]) -> float:
    """Harmonic mean of the number of topics in documents with any; 0 without such documents.

    Labels that were given topic by topic meet documents of many topics more often; the harmonic mean makes up for it.
    """
    counts = has.sum(axis=1)
    return float(1 / np.mean(1 / counts[counts > 0])) if counts.any() else 0.0


def lead_over_others(scores: Array) -> Array:
    """The score of each topic minus the best score of the other topics."""
    if scores.shape[1] < 2:
        return scores
    ranked = np.partition(scores, -2, axis=1)
    best, second = ranked[:, -1:], ranked[:, -2:-1]
    return np.asarray(scores - np.where(scores >= best, second, best))


def pooled_regression(features: Array, given: NDArray[np.bool_], weight: Array, most: int = PAIRS) -> Array:
    """Fit one logistic regression to at most ``most`` pairs of all topics; return its weights and intercept."""
    if len(given) > most:  # a sample represents the negative pairs
        yes, no = np.flatnonzero(given), np.flatnonzero(~given)
        some = np.random.default_rng(0).choice(no, max(most - len(yes), most // 10), replace=False)
        pick = np.concatenate([yes, some])
        weight = np.where(given, 1, len(no) / len(some))[pick] * weight[pick]
        features, given = features[pick], given[pick]
    mean, spread = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    spread[spread < 1e-6] = 1  # a constant feature gets no weight
    from sklearn.linear_model import LogisticRegression  # loaded by training only

    scaled = (features - mean.astype(features.dtype)) / spread.astype(features.dtype)
    model = LogisticRegression(max_iter=1000).fit(scaled, given, sample_weight=weight)
    slope = model.coef_[0].astype(np.float64) / spread
    return np.append(slope, model.intercept_[0] - slope @ mean)


def probabilities(odds: Array, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Probabilities of log odds in single precision, several times as fast as scipy's ``expit``.

    ``out`` may be the odds themselves.
    """
    found = np.negative(odds, out=out, dtype=np.float32)
    with np.errstate(over="ignore"):  # 1 / (1 + ∞) = 0
        np.exp(found, out=found)
    found += 1
    return np.reciprocal(found, out=found)


def prior_shift(odds: Array, labelled: Array) -> Array:
    """The prior shift: half of the way from a topic's frequency among labelled documents to that among the others.

    People label, for example, three documents per topic instead of a random sample, so label frequencies reveal little
    about the corpus. The frequencies are means of probabilities, and five iterations find the shift.
    """
    shift = np.zeros(odds.shape[1], dtype=odds.dtype)
    if not len(odds) or not len(labelled):
        return shift
    safe = partial(np.clip, a_min=1e-6, a_max=1 - 1e-6)
    expected = logit(safe(_mean_probability(labelled, shift)))
    for _ in range(5):
        shift = (0.5 * (logit(safe(_mean_probability(odds, shift))) - expected)).astype(odds.dtype)
    return shift


def _mean_probability(odds: Array, shift: Array) -> NDArray[np.float64]:
    """Mean probability of each topic after a shift of the log odds."""
    total = np.zeros(odds.shape[1])
    for rows in slices(len(odds), ROWS):
        total += probabilities(odds[rows] + shift).sum(axis=0, dtype=np.float64)
    return total / len(odds)
