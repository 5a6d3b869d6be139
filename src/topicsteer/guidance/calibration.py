"""Calibration of scores to log odds, prior shift, and the second round: naive Bayes with pseudo-labels.

One logistic regression calibrates the scores of all topics. The prior shift then corrects for topics that are more or
less frequent among all documents than among labelled documents.

In the second round, the probabilities of the previous round are the pseudo-labels of unlabelled documents. The log
ratio of a term compares its use inside and outside a topic, as in multinomial naive Bayes. A logistic regression on
hidden labels mixes these ratios with the log odds of the first round. `Rounds` has both rounds as one linear map and
two calibrations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, logit

from topicsteer.labels.supervision import PERMITTED, UNKNOWN
from topicsteer.metrics import average_precision
from topicsteer.nmf.blocks import slices, times
from topicsteer.system.threads import OrderedMap
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


# Number of times that pseudo-labels and log ratios are learnt from each other.
ROUNDS = 3
# The second round is used only if it finds hidden labels better by this much (macro plus micro average precision).
MIN_GAIN = 0.01
# Place of the lead over the other topics in the mix.
MIX_LEAD = 2
# Additive smoothing of term frequencies.
SMOOTHING = 0.01
# Documents per block of work.
RATIO_ROWS = 1_024
# The mix for corpora with too few labels to learn one.
FIXED_MIX = np.array([0.6, 0.2, 0.1, -0.8])


@dataclass(frozen=True, eq=False)
class WordRound:
    """The second round: how log odds of the first round and log ratios are mixed.

    Parameters
    ----------
    mix : array (4,)
        Weights of the first round's log odds, of the log ratios and of their lead, and the intercept.
    shift : array (n_covered,)
        The prior shift: added to the log odds of each topic.
    """

    mix: Array
    shift: Array

    def odds(self, first: Array, ratios: Array) -> Array:
        """Log odds from the first round's log odds and the sums of a document's log ratios."""
        return mixed_odds(first, ratios, self.mix) + self.shift


@dataclass(frozen=True, eq=False)
class LearntRound:
    """A second round, its log ratios (n_terms, n_covered), and its log odds of hidden labels (NaN elsewhere)."""

    round: WordRound
    ratios: Array
    hidden: Array | None = None

    def without_lead(self, first: Array, sums: Array, mean: float) -> LearntRound:
        """The same without the lead over the other topics; a common shift keeps the mean probability.

        ``first`` are log odds of the first round, and ``sums`` the sums of log ratios of the same documents.
        """
        mix = self.round.mix * (np.arange(len(self.round.mix)) != MIX_LEAD)
        odds, shift = mixed_odds(first, sums, mix), 0.0
        for _ in range(10):
            shift += float(logit(mean) - logit(expit(odds + shift).mean(dtype=np.float64)))
        return replace(self, round=WordRound(mix, np.full(odds.shape[1], shift)))


@dataclass(frozen=True, eq=False)
class Background:
    """The labelled documents with their label states, followed by the unlabelled background documents.

    ``run`` is an ordered parallel map, for the folds. ``expected`` are probabilities of unknown labels of the labelled
    documents, NaN elsewhere.
    """

    X: sp.csr_array
    states: NDArray[np.int8]
    document_weight: Array
    dtype: np.dtype[np.floating]
    run: OrderedMap
    expected: Array | None = None

    def learn_word_round(
        self, odds: Array, fold_odds: Sequence[Array], fold_of: NDArray[np.int64], fitted: bool
    ) -> LearntRound | None:
        """Learn the second round; None if it does not find hidden labels better than the first.

        Every repetition takes the probabilities of the previous one as pseudo-labels. Each fold goes through all steps
        with its labels hidden, so the mix is valid for unlabelled documents. The repetition that finds hidden labels
        best is returned.

        Parameters
        ----------
        odds : array (n_documents, n_covered)
            Log odds of the first round.
        fold_odds : list of arrays
            The same, with the labels of each fold hidden.
        fold_of : array of int (n_labelled,)
            The fold in which the labels of a document are hidden; -1 if in none.
        fitted : bool
            Whether there are enough labels to learn the mix.
        """
        n, hidden = len(fold_of), fold_of >= 0
        all_visible = np.ones(n, dtype=np.bool_)
        hidden_pairs = hidden[:, None] & (self.states != UNKNOWN)
        given = self.states == PERMITTED
        if not fitted or given[hidden_pairs].all():
            return LearntRound(WordRound(FIXED_MIX, np.zeros(odds.shape[1])), self.log_ratios(odds, all_visible))
        weight = np.broadcast_to(self.document_weight[:, None], hidden_pairs.shape)[hidden_pairs]
        visible_labels = [all_visible, *(fold_of != fold for fold in range(len(fold_odds)))]
        first, hidden_first = [odds, *fold_odds], assemble(fold_odds, fold_of)
        ratios = list(self.run(lambda own: self.log_ratios(*own), zip(first, visible_labels, strict=True)))
        best: LearntRound | None = None
        best_precision = self._precision(hidden_first, hidden_pairs) + MIN_GAIN
        for left in reversed(range(ROUNDS)):
            hidden_sums = assemble([self.X[:n] @ ratio for ratio in ratios[1:]], fold_of)
            features = [one[hidden_pairs] for one in (hidden_first, hidden_sums, lead_over_others(hidden_sums))]
            mix = pooled_regression(np.stack(features, axis=-1), given[hidden_pairs], weight)
            predicted = mixed_odds(hidden_first, hidden_sums, mix)
            shift = prior_shift(self._mixed(odds, ratios[0], mix, self.run)[n:], predicted[hidden])
            precision = self._precision(predicted, hidden_pairs)
            if precision > best_precision:
                best_precision = precision
                hidden_odds = np.where(hidden[:, None], predicted + shift, np.nan)
                best = LearntRound(WordRound(mix, shift), ratios[0].copy(), hidden_odds)
            if left:
                renew = partial(self._renew_ratios, mix=mix, shift=shift)
                list(self.run(renew, zip(first, ratios, visible_labels, strict=True)))
        return best

    def _renew_ratios(self, own: tuple[Array, Array, NDArray[np.bool_]], mix: Array, shift: Array) -> None:
        """Replace log ratios in place, by their probabilities, which are computed here and not kept in memory.

        ``own`` are log odds of the first round, previous log ratios, and the documents whose labels are visible.
        """
        first, ratios, visible = own
        odds = self._mixed(first, ratios, mix)
        odds += shift
        ratios[:] = self._ratios(probabilities(odds, out=odds if odds.dtype == np.float32 else None), visible)

    def _mixed(self, first: Array, ratios: Array, mix: Array, run: OrderedMap = map) -> Array:
        """Log odds of all documents without a shift, block by block."""
        out = np.empty(first.shape, dtype=np.result_type(first, ratios))
        indptr, indices = self.X.indptr.astype(np.int64, copy=False), self.X.indices.astype(np.int32, copy=False)
        data = self.X.data.astype(ratios.dtype, copy=False)

        def one(rows: slice) -> None:
            sums = times(indptr[rows.start : rows.stop + 1], indices, data, ratios)
            out[rows] = mixed_odds(first[rows], sums, mix)

        for _ in run(one, slices(len(first), RATIO_ROWS)):
            pass
        return out

    @cached_property
    def totals(self) -> Array:
        """Sum of each term over all documents (n_terms, 1)."""
        return np.asarray(self.X.sum(axis=0)).reshape(-1, 1)

    def log_ratios(self, odds: Array, visible: NDArray[np.bool_]) -> Array:
        """Log ratio of the frequency of each term inside and outside each topic (n_terms, n_covered)."""
        return self._ratios(probabilities(odds), visible)

    def _ratios(self, P: NDArray[np.float32], visible: NDArray[np.bool_]) -> Array:
        """Log ratios by pseudo-labels, which visible labels replace in place."""
        states = np.where(visible[:, None], self.states, UNKNOWN)
        np.copyto(P[: len(states)], states, where=states != UNKNOWN)
        if self.expected is not None:
            known = visible[:, None] & ~np.isnan(self.expected)
            np.copyto(P[: len(states)], self.expected, where=known, casting="same_kind")
        inside = np.asarray(self.X.T @ P)
        inside += SMOOTHING
        outside = self.totals + 2 * SMOOTHING - inside
        total = outside.sum(axis=0)
        for part, sums in ((inside, inside.sum(axis=0)), (np.maximum(outside, SMOOTHING, out=outside), total)):
            part /= sums
            np.log(part, out=part)
        inside -= outside
        return np.asarray(inside, dtype=self.dtype)

    def _precision(self, odds: Array, hidden_pairs: NDArray[np.bool_]) -> float:
        """Macro plus micro average precision on hidden labels."""
        rows = hidden_pairs.any(axis=1)
        precision = average_precision(self.states[rows] == PERMITTED, np.where(hidden_pairs, odds, -1e9)[rows])
        return float(np.nanmean(precision.topics) + precision.micro)


def mixed_odds(first: Array, ratios: Array, mix: Array) -> Array:
    """The weighted sum of both rounds."""
    a, b, c, intercept = mix.astype(ratios.dtype)
    return np.asarray(a * first + b * ratios + c * lead_over_others(ratios) + intercept)


def assemble(runs: Sequence[Array], fold_of: NDArray[np.int64]) -> Array:
    """The rows of labelled documents, each from the fold that hides it; never hidden documents use the first fold."""
    out = runs[0][: len(fold_of)].copy()
    for fold, run in enumerate(runs):
        out[fold_of == fold] = run[: len(fold_of)][fold_of == fold]
    return out


# In files, this mix stands for a guide without a second round.
NO_SECOND_ROUND = np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True, eq=False)
class Rounds:
    """Both rounds for some topics: from features and products with terms to log odds; see `Guide` for the fields."""

    dense: Array
    scale: Array
    calibration: Calibration
    word_round: WordRound | None
    covered: NDArray[np.int64]

    @property
    def width(self) -> int:
        """Number of columns of the basis: term weights, and log ratios if there is a second round."""
        return len(self.covered) * (1 if self.word_round is None else 2)

    def odds(self, D: Array, products: Array) -> Array:
        """Log odds of the covered topics."""
        k = len(self.covered)
        first = self.calibration.odds((products[:, :k] + D @ self.dense) * self.scale)
        return first if self.word_round is None else self.word_round.odds(first, products[:, k : self.width])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All fields as arrays under their names in files."""
        second = self.word_round or WordRound(NO_SECOND_ROUND, np.zeros(len(self.covered)))
        return {
            "calibration": self.calibration.weights,
            "rarity": self.calibration.rarity,
            "shift": self.calibration.shift,
            "mix": second.mix,
            "second_shift": second.shift,
            **{name: getattr(self, name) for name in ("dense", "scale", "covered")},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Rounds:
        """The rounds of these :meth:`arrays`."""
        mix = arrays["mix"]
        return cls(
            calibration=Calibration(arrays["calibration"], arrays["rarity"], arrays["shift"]),
            word_round=WordRound(mix, arrays["second_shift"]) if mix[1:3].any() else None,
            **{name: arrays[name] for name in ("dense", "scale", "covered")},
        )
