"""The second round: which words the documents found so far use more than the others, as naive Bayes does."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from topicsteer.guidance.calibration import lead_over_others, pooled_regression, prior_shift
from topicsteer.labels.supervision import PERMITTED, UNKNOWN
from topicsteer.metrics import average_precision
from topicsteer.system.types import Array

ROUNDS = 3  # in which the words of topics are learnt, at most,
WORTH = 0.01  # and by how much they have to find hidden labels better to be used at all
SMOOTHING = 0.01  # what each word has in each topic before any document is seen
FIXED_MIX = np.array([0.6, 0.2, 0.1, -0.8])  # weights where there are too few labels to learn them


@dataclass(frozen=True, eq=False)
class WordRound:
    """How the second round corrects the first.

    Parameters
    ----------
    mix : array (4,)
        Weights of the first round's log odds, of the log ratios and of their lead, and the intercept.
    shift : array (n_covered,)
        What is added for the frequency of each topic among all documents.
    """

    mix: Array
    shift: Array

    def odds(self, first: Array, words: Array) -> Array:
        """Log odds from those of the first round and the log ratios of a document's words."""
        return mixed_odds(first, words, self.mix) + self.shift


@dataclass(frozen=True, eq=False)
class LearntWords:
    """A second round, its log ratios (n_terms, n_covered), and its log odds of hidden labels, NaN elsewhere."""

    round: WordRound
    ratios: Array
    hidden: Array | None = None


@dataclass(frozen=True, eq=False)
class Background:
    """The labelled documents and, behind them, the unlabelled ones that keep them company, with what labels say."""

    X: sp.csr_array
    states: NDArray[np.int8]
    document_weight: Array
    dtype: np.dtype[np.floating]

    def learn_words(
        self, odds: Array, folds: Sequence[Array], part: NDArray[np.int64], fitted: bool
    ) -> LearntWords | None:
        """The second round; None if it finds hidden labels no better than the first.

        Each round takes the probabilities of the one before for labels. The folds go through all of it with their
        labels hidden, so that what is learnt from hidden labels holds for unlabelled documents. The round that finds
        hidden labels best is taken.
        """
        n, hidden = len(part), part >= 0
        everyone = np.ones(n, dtype=np.bool_)
        asked = hidden[:, None] & (self.states != UNKNOWN)
        given = self.states == PERMITTED
        if not fitted or given[asked].all():
            return LearntWords(WordRound(FIXED_MIX, np.zeros(odds.shape[1])), self.log_ratios(odds, everyone))
        weight = np.broadcast_to(self.document_weight[:, None], asked.shape)[asked]
        kept = [everyone, *(part != fold for fold in range(len(folds)))]
        runs, first = [odds, *folds], [odds, *folds]
        best: LearntWords | None = None
        record = self._found(assemble(folds, part), asked) + WORTH
        for _ in range(ROUNDS):
            ratios = [self.log_ratios(run, inside) for run, inside in zip(runs, kept, strict=True)]
            used = [self.X @ ratio for ratio in ratios]
            seen = assemble(used[1:], part)
            views = np.stack([assemble(folds, part), seen, lead_over_others(seen)], axis=-1)
            mix = pooled_regression(views[asked], given[asked], weight)
            runs = [mixed_odds(base, words, mix) for base, words in zip(first, used, strict=True)]
            guessed = assemble(runs[1:], part)
            shift = prior_shift(runs[0][n:], guessed[hidden])
            runs = [run + shift for run in runs]
            found = self._found(guessed, asked)
            if found > record:
                record = found
                best = LearntWords(WordRound(mix, shift), ratios[0], np.where(hidden[:, None], guessed + shift, np.nan))
        return best

    def log_ratios(self, odds: Array, inside: NDArray[np.bool_]) -> Array:
        """How much more each word is used in each topic than elsewhere, as a logarithm (n_terms, n_covered)."""
        P = expit(odds).astype(np.float32)
        states = np.where(inside[:, None], self.states, UNKNOWN)
        P[: len(states)] = np.where(states == UNKNOWN, P[: len(states)], states)
        within = np.asarray(self.X.T @ P) + SMOOTHING
        without = np.asarray(self.X.sum(axis=0)).reshape(-1, 1) + 2 * SMOOTHING - within
        ratios = np.log(within / within.sum(axis=0)) - np.log(np.maximum(without, SMOOTHING) / without.sum(axis=0))
        return np.asarray(ratios, dtype=self.dtype)

    def _found(self, odds: Array, asked: NDArray[np.bool_]) -> float:
        """Macro and micro average precision of hidden labels."""
        rows = asked.any(axis=1)
        precision = average_precision(self.states[rows] == PERMITTED, np.where(asked, odds, -1e9)[rows])
        return float(np.nanmean(precision.topics) + precision.micro)


def mixed_odds(first: Array, ratios: Array, mix: Array) -> Array:
    """Both rounds, weighed."""
    a, b, c, constant = mix.astype(ratios.dtype)
    return np.asarray(a * first + b * ratios + c * lead_over_others(ratios) + constant)


def assemble(runs: Sequence[Array], part: NDArray[np.int64]) -> Array:
    """What each fold says of the labelled documents that were hidden in it; those that never were get the first's."""
    out = runs[0][: len(part)].copy()
    for fold, run in enumerate(runs):
        out[part == fold] = run[: len(part)][part == fold]
    return out
