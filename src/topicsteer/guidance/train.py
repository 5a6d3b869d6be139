"""Training of a guide (see `topicsteer.guidance.guide`) from labelled documents and background documents.

:func:`train_guide` collects the inputs, and :class:`GuideTrainer` learns in this order:

1. Choose the settings of the ridge regression by leave-one-out error on the labelled documents.
2. Solve it for all labelled documents, and once per fold with the labels of the fold hidden.
3. Fit the calibration to leave-one-out scores; too many documents for them use the scores of the folds instead. If
   there are too few labels, a fixed calibration is used.
4. Estimate the prior shift from the background: unlabelled documents, or a sample of them. While most topics have no
   label and no calibration can be fitted, there is no shift, and names decide which scores are high. If documents
   then have several topics each, topics are no rivals, and their lead over each other does not count.
5. Learn the second round from pseudo-labels of the background, and keep it if it finds hidden labels better.

When only a few labels are new, :meth:`GuideTrainer.renew` learns the weights of the ridge regression and the log ratios
of the second round again. Settings and calibrations are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import call

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from topicsteer.guidance.calibration import (
    FIXED_CALIBRATION,
    LEAD,
    LIKELY,
    MIN_LABELS,
    MIN_SHARE_OF_TOPICS,
    SEVERAL,
    Background,
    Calibration,
    LearntRound,
    features,
    odds_of_scores,
    pooled_regression,
    prior_shift,
    topics_per_document,
)
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.keywords import TopicTexts
from topicsteer.guidance.latent import ROWS, dense_features, latent_directions, unit_rows
from topicsteer.guidance.ridge import EXACT_DOCUMENTS, Choice, Examples, Ridge, choose_ridge, no_report
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision, assign_folds
from topicsteer.nmf.blocks import slices
from topicsteer.nmf.protocols import Rows
from topicsteer.system.memory import release_memory
from topicsteer.system.threads import OrderedMap, workers
from topicsteer.system.types import Array, Report

# Largest number of background documents.
BACKGROUND = 20_000


def background_rows(supervision: Supervision, seed: int) -> NDArray[np.intp]:
    """Row numbers of the background documents: all unlabelled documents, or a sample of them."""
    unlabelled = np.flatnonzero(~supervision.labelled)
    if len(unlabelled) > BACKGROUND:
        unlabelled = np.sort(np.random.default_rng(seed).choice(unlabelled, BACKGROUND, replace=False))
    return unlabelled


@dataclass(frozen=True, eq=False)
class Sample:
    """Labelled documents, followed by background documents.

    Terms and features are computed when they are first used, and all steps of the training share them.

    Parameters
    ----------
    X : Rows (n_documents, n_terms)
        All documents.
    supervision : Supervision
        Their labels.
    embeddings : array (n_documents, any), optional
        Their embeddings.
    given_directions : array (n_terms, q), optional
        Result of :func:`latent_directions`, to avoid computing it again.
    seed : int
        Seed of the decomposition and the background.
    threads : int, optional
        None = all cores.
    given_latent : array (n_documents, any), optional
        Latent semantics of all documents, to avoid computing them again.
    """

    X: Rows
    supervision: Supervision
    embeddings: Array | None = None
    given_directions: Array | None = None
    seed: int = 0
    threads: int | None = None
    given_latent: Array | None = None

    @cached_property
    def labelled(self) -> NDArray[np.intp]:
        """Row numbers of the labelled documents that have terms."""
        return np.flatnonzero(self.supervision.labelled & (self.X.sizes > 0))

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Row numbers of all documents of the sample."""
        return np.concatenate([self.labelled, background_rows(self.supervision, self.seed)])

    @cached_property
    def states(self) -> NDArray[np.int8]:
        """Label states of the labelled documents."""
        return np.asarray(self.supervision.patterns[self.supervision.pattern[self.labelled]])

    @cached_property
    def terms(self) -> sp.csr_array:
        """Terms of the documents."""
        return self.X.take(self.rows)

    @cached_property
    def own_embeddings(self) -> Array | None:
        """Embeddings of the documents."""
        return None if self.embeddings is None else self.embeddings[self.rows]

    @cached_property
    def directions(self) -> Array:
        """Directions of the latent semantics."""
        given = self.given_directions
        return latent_directions(self.X, self.seed, self.threads) if given is None else given

    @cached_property
    def latent(self) -> Array:
        """Latent semantics of the documents."""
        if self.given_latent is not None:
            return np.asarray(self.given_latent[self.rows])
        return dense_features(self.terms, self.directions, self.threads)

    @cached_property
    def places(self) -> NDArray[np.intp] | None:
        """Place of each document of the corpus in the sample, -1 without terms; None if others are missing."""
        places = np.full(self.X.shape[0], -1)
        places[self.rows] = np.arange(len(self.rows))
        return places if ((places >= 0) | (self.X.sizes == 0)).all() else None

    def latent_of(self, rows: slice) -> Array | None:
        """Latent semantics of some documents of the corpus, if the sample has all of them."""
        if self.places is None or "latent" not in self.__dict__:
            return None
        found = self.latent[self.places[rows]]
        found[self.places[rows] < 0] = 0
        return found

    def forget_latent(self) -> None:
        """Free the latent semantics of a sample of a large corpus; they are computed again when they are used."""
        if self.places is None and self.given_latent is None:
            self.__dict__.pop("latent", None)
            release_memory()

    def dense(self, weight: float) -> Array:
        """Latent semantics and embeddings of the documents; ``weight`` is that of the embeddings."""
        if self.own_embeddings is None:
            return self.latent
        E = unit_rows(self.own_embeddings) * np.sqrt(weight)
        return np.hstack([self.latent, E.astype(self.latent.dtype)])


# Number of folds in which labels are hidden.
FOLDS = 3
# If at most this share of the topics has labels, and too few for a calibration, names decide which scores are high.
LABELLED_TOPICS = 0.5
# Mean score of this many documents, the surest of a topic, where names decide. It was chosen on docstrings and Reuters.
SURE_SCORE, SURE_DOCUMENTS = 0.7, 20


def train_guide(
    X: Rows,
    supervision: Supervision,
    *,
    names: TopicTexts | None = None,
    embeddings: Array | None = None,
    confidence: Array | None = None,
    expected: sp.csr_array | None = None,
    directions: Array | None = None,
    latent: Array | None = None,
    choice: Choice | None = None,
    sample: Sample | None = None,
    exact_documents: int = EXACT_DOCUMENTS,
    seed: int = 0,
    threads: int | None = None,
    report: Report = no_report,
) -> Guide | None:
    """Learn a guide from labels and texts about topics; None if there are neither.

    Parameters
    ----------
    X : Rows (n_documents, n_terms)
        Rows of unit length. Of rows on disk, only labelled and background documents are read, and a sample for the
        latent semantics.
    supervision : Supervision
        The labels. Permitted topics are positive examples, forbidden topics negative ones. Topics that the labels of a
        document leave open count as forbidden.
    names : TopicTexts, optional
        Names, descriptions and keywords of the topics, as small documents.
    embeddings : array (n_documents, any), optional
        Embeddings of the documents.
    confidence : array (n_documents,), optional
        Confidence in the labels of each document, above 0. Default: 1.
    expected : CSR (n_documents, n_topics), optional
        Probabilities above 0 of topics that labels leave unknown. They are targets of the ridge regression and
        pseudo-labels, and nothing is calibrated with their documents. See `topicsteer.guidance.tree`.
    directions : array, optional
        Result of :func:`latent_directions`, to avoid computing it again.
    latent : array (n_documents, any), optional
        Latent semantics of all documents along these directions, to avoid computing them again.
    choice : Choice, optional
        Settings of the ridge regression; None = chosen from the labels.
    sample : Sample, optional
        The documents to learn from, if their features are to be shared with later steps. It replaces ``directions``
        and ``latent``.
    exact_documents : int
        More labelled documents are solved by iterations, and judged in folds.
    seed : int, default=0
        Seed of the decomposition and the samples.
    threads : int, optional
        None = all cores.
    report : callable, optional
        Called with the name of each step; with thousands of topics they take long.

    Returns
    -------
    Guide or None

    Examples
    --------
    >>> from topicsteer.labels.forms import supervise
    >>> from topicsteer.backends import as_rows
    >>> X = sp.csr_array(np.kron(np.eye(2), np.full((4, 3), 3**-0.5)).astype(np.float32))
    >>> found = train_guide(as_rows(X), supervise({0: "a", 4: "b"}, 8)).probabilities(X)
    >>> found.argmax(axis=1)
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """
    if sample is None:
        sample = Sample(X, supervision, embeddings, directions, seed, threads, latent)
    rows = sample.labelled
    soft = None if expected is None else expected[rows].toarray().astype(np.float64)
    if soft is not None:
        soft[soft == 0] = np.nan
    states = assumed_states(sample.states, soft)
    if not (states == PERMITTED).any() and (names is None or not names.topics.size):
        return None
    if sample.given_directions is None:
        report("latent semantics")
    directions = sample.directions
    document_weight = np.ones(len(rows)) if confidence is None else np.asarray(confidence, dtype=np.float64)[rows]
    E = None if embeddings is None else embeddings[rows]
    with workers(threads) as run:
        examples = Examples.of(sample.terms[: len(rows)], states, document_weight, names, E, directions, threads, soft)
        examples = replace(examples, exact_documents=exact_documents)
        ridge = examples.ridge(choice or choose_ridge(examples, run, report))
        report("weights")
        trainer = GuideTrainer.of(sample, examples, ridge, run, report)
        return trainer.learn(sample.dense(ridge.choice.embedding), states.shape[1])


def assumed_states(states: NDArray[np.int8], expected: Array | None = None) -> NDArray[np.int8]:
    """Label states with the assumption that a document lacks the topics that its labels leave open.

    Labels with yes only would otherwise leave a topic without a single document that lacks it. A document without any
    topic among its labels is left as it is. Topics with expected labels stay unknown; NaN stands for none.
    """
    some = (states == PERMITTED).any(axis=1, keepdims=True)
    if expected is None:
        return np.where((states == UNKNOWN) & some, FORBIDDEN, states).astype(np.int8)
    soft = ~np.isnan(expected)
    some |= soft.any(axis=1, keepdims=True)
    return np.where((states == UNKNOWN) & some & ~soft, FORBIDDEN, states).astype(np.int8)


@dataclass(frozen=True, eq=False)
class GuideTrainer:
    """Learns both rounds from labelled documents, followed by the background documents.

    Parameters
    ----------
    sample : Sample
        All documents of the training, labelled documents first.
    examples : Examples
        The labelled documents and the texts about topics.
    ridge : Ridge
        The ridge regression with its chosen settings.
    covered : array of int
        The topics that have labels or a useful name.
    background : Background
        The documents of the sample with the label states of the covered topics.
    run : OrderedMap
        An ordered parallel map.
    report : callable
        Called with the name of each step.
    """

    sample: Sample
    examples: Examples
    ridge: Ridge
    covered: NDArray[np.int64]
    background: Background
    run: OrderedMap
    report: Report = no_report

    @classmethod
    def of(
        cls, sample: Sample, examples: Examples, ridge: Ridge, run: OrderedMap, report: Report = no_report
    ) -> GuideTrainer:
        """A trainer for the topics that have labels or a useful name."""
        covered = np.flatnonzero((examples.labels > 0) | np.isin(np.arange(len(examples.labels)), ridge.names))
        states, dtype = examples.states[:, covered], sample.directions.dtype
        expected = None if examples.expected is None else examples.expected[:, covered]
        background = Background(sample.terms, states, examples.document_weight, dtype, run, expected)
        return cls(sample, examples, ridge, covered, background, run, report)

    @cached_property
    def keyword_sums(self) -> sp.csc_array | None:
        """Weights of terms from the sums of the texts of topics; None without keywords."""
        return self.ridge.keyword_sums(self.covered)

    def learn(self, D: Array, n_known: int) -> Guide:
        """Learn both rounds; ``D`` holds latent semantics and weighted embeddings of all training documents."""
        states, ridge, n = self.background.states, self.ridge, len(self.sample.labelled)
        given = states == PERMITTED
        positive = given.sum(axis=0)
        expected = self.background.expected
        target, mean = ridge.target(states, self.covered, expected)
        fold_of = assign_folds(sp.csr_array(given), FOLDS, seed=0)
        n_folds = int(fold_of.max(initial=-1)) + 1
        terms, dense = self._weights(target)
        usable = (states != UNKNOWN) & ~(given & (positive == 1))  # a topic's only document cannot be left out
        if expected is not None:  # only documents with complete labels show how often a topic occurs
            usable &= np.isnan(expected).all(axis=1, keepdims=True)
        fitted = given[usable].sum() >= MIN_LABELS and (positive[positive > 0] > 1).mean() >= MIN_SHARE_OF_TOPICS
        fitted = fitted and n_folds > 1 and not given[usable].all()  # there must be negative examples
        by_names = not fitted and (positive > 0).mean() <= LABELLED_TOPICS
        scale = (1 / np.maximum(1 - mean, 0.1)).astype(np.float32)
        if not fitted and (by_names or self.examples.words_lead):
            scale = self._name_scale(D, terms, dense)
        kept = [np.concatenate([fold_of != fold, ridge.document_weight[n:] > 0]) for fold in range(n_folds)]
        scores, left_out, in_folds = self._all_scores(D, target, (terms, dense), kept, scale)
        del D
        self.sample.forget_latent()
        rarity, weights = self._rarity(), FIXED_CALIBRATION
        if fitted:
            document_weight = np.broadcast_to(self.background.document_weight[:, None], usable.shape)[usable]
            weights = pooled_regression(features(left_out, rarity)[usable], given[usable], document_weight)

        first = partial(odds_of_scores, rarity=rarity, weights=weights)
        shift = prior_shift(first(scores[n:]), first(left_out[:0] if by_names else left_out))
        odds, folds = first(scores, shift=shift), [first(in_folds.pop(0), shift=shift) for _ in kept]
        self.report("typical terms")
        if not by_names:
            del scores
        second = self.background.learn_word_round(odds, folds, fold_of, fitted)
        if by_names and second is not None:
            weights, second = self._without_rivals(weights, second, scores, odds, rarity)
            first = partial(odds_of_scores, rarity=rarity, weights=weights)
        hidden = np.where(given & (positive == 1), np.nan, first(left_out) + shift)
        if second is not None and second.hidden is not None:
            hidden = np.where(np.isnan(second.hidden), hidden, second.hidden)
        Z = self.examples.latent[:n]
        return Guide(
            basis=self._basis(terms, None if second is None else second.ratios),
            dense=dense,
            scale=scale,
            calibration=Calibration(weights, rarity, shift),
            word_round=None if second is None else second.round,
            choice=ridge.choice,
            chosen_from=n,
            covered=self.covered,
            rows=self.sample.labelled,
            left_out=expit(hidden).astype(np.float32),
            seen=np.asarray(Z.T @ Z),
            n_known=n_known,
        )

    def _left_out(self, target: Array, scale: Array) -> Array:
        """Scores of the labelled documents, each without its own labels."""
        n = len(self.sample.labelled)
        found = self.ridge.left_out(target)[:n]
        # Sums of keywords do not depend on labels.
        return (found if self.keyword_sums is None else found + self.background.X[:n] @ self.keyword_sums) * scale

    def _rarity(self) -> Array:
        """Log share of each topic among the labelled documents."""
        counts = (self.background.states == PERMITTED).sum(axis=0)
        if self.background.expected is not None:
            counts = counts + np.nansum(self.background.expected, axis=0)
        return np.asarray(np.log(np.maximum(counts, 0.5) / max(len(self.sample.labelled), 1)))

    def _without_rivals(
        self, weights: Array, second: LearntRound, scores: Array, odds: Array, rarity: Array
    ) -> tuple[Array, LearntRound]:
        """Calibration and second round; topics are no rivals where documents have several of them."""
        sums = self.background.X @ second.ratios
        found = expit(second.round.odds(odds, sums))
        if topics_per_document(found >= LIKELY) < SEVERAL:
            return weights, second
        weights = weights * (np.arange(len(weights)) != LEAD)
        first = odds_of_scores(scores, rarity, weights)
        return weights, second.without_lead(first, sums, float(found.mean()))

    def _name_scale(self, D: Array, terms: Array, dense: Array) -> Array:
        """Factor for scores that come from names: the surest documents of the median topic get `SURE_SCORE`."""
        scores = self._scores(D, terms, dense)
        most = min(SURE_DOCUMENTS, max(len(scores) // (2 * len(self.covered)), 1))
        surest = np.sort(scores, axis=0)[-most:].mean(axis=0)
        return np.full(len(self.covered), SURE_SCORE / max(float(np.median(surest)), 1e-6), dtype=np.float32)

    def _weights(self, target: Array, inside: NDArray[np.intp] | slice = slice(None)) -> tuple[Array, Array]:
        """Weights of terms, and of latent semantics and embeddings, learnt from the examples ``inside``."""
        found = self.ridge.solve(target, inside, self.run, self.report)
        B = np.zeros(target.shape, dtype=found.dtype)
        B[inside] = found
        terms, dense = self.ridge.terms.T @ B, self.ridge.dense.T @ B
        if self.keyword_sums is not None:
            terms = terms + self.keyword_sums.toarray()
        return terms.astype(np.float32, copy=False), dense.astype(np.float32, copy=False)

    def _all_scores(
        self, D: Array, target: Array, weights: tuple[Array, Array], kept: Sequence[NDArray[np.bool_]], scale: Array
    ) -> tuple[Array, Array, list[Array]]:
        """First-round scores of all training documents, of labelled ones without their own labels, and in folds.

        In a fold, all training documents have scores too, learnt from the examples that the fold keeps.
        """
        exact, n = self.ridge.kernel is not None, len(self.sample.labelled)

        def in_fold(inside: NDArray[np.bool_]) -> Array:
            return self._scores(D, *self._weights(target, np.flatnonzero(inside)), scale)

        jobs: list[Callable[[], Array]] = [partial(in_fold, inside) for inside in kept]
        jobs += [lambda: self._scores(D, *weights, scale)] + [lambda: self._left_out(target, scale)] * exact
        found = []
        for scores in self.run(call, jobs) if exact else map(call, jobs):  # many examples use threads in each fold
            found.append(scores)
            if len(found) <= len(kept):
                self.report(f"weights, fold {len(found)} of {len(kept)}")
        in_folds, scores, left_out = found[: len(kept)], found[len(kept)], found[-1]
        if not exact:
            left_out = scores[:n].copy()
            for inside, hidden in zip(kept, in_folds, strict=True):
                left_out[~inside[:n]] = hidden[:n][~inside[:n]]
        return scores, left_out, in_folds

    def _scores(self, D: Array, terms: Array, dense: Array, scale: Array | float = 1.0) -> Array:
        """First-round scores of all training documents."""
        scores = np.asarray(self.background.X @ terms)
        for rows in slices(len(scores), ROWS):
            scores[rows] += D[rows] @ dense
            scores[rows] *= scale
        return scores

    def _basis(self, terms: Array, ratios: Array | None) -> Array:
        matrices = [self.sample.directions, terms] if ratios is None else [self.sample.directions, terms, ratios]
        return np.ascontiguousarray(np.hstack(matrices), dtype=self.sample.directions.dtype)
