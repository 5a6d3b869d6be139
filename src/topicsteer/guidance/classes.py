"""Training: from labels and names to the probability of each class in each document.

A class is a known topic or a free one. Five scores are evidence for it, and one likelihood joins them
(`topicsteer.guidance.regression`):

1. log probabilities of a softmax regression on the features D of labelled documents and names,
2. scores of a ridge regression on them,
3. naive Bayes: log ratios of the frequencies of terms inside and outside the class,
4. cosines of D with the centroid of the class,
5. the log share of the class.

The last three follow from the probabilities of all documents, so they are learnt in rounds, like an EM algorithm: the
probabilities so far are pseudo-labels of the unlabelled documents. Everything is learnt once for all labels, and once
per fold with the labels of the fold hidden. The weights of the scores have the least log loss on the hidden labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import entr, expit

from topicsteer.guidance import constants
from topicsteer.guidance.features import joint, kernel_arrays, unit_rows
from topicsteer.guidance.regression import (
    Choice,
    Examples,
    Mix,
    Rivalry,
    Span,
    balanced,
    learn_mix,
    left_out_loss,
    ridge,
    softmax_regression,
)
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, rarest_topics
from topicsteer.nmf.blocks import slices, times
from topicsteer.nmf.latent import ROWS
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array

# Steps of the softmax regression: in folds from zero, and for all labels from the mean of the folds.
STEPS, LAST_STEPS = 40, 20
# Settings are chosen from at most this many labelled documents, and the mix from this many pairs.
CHOICE_DOCUMENTS, MIX_PAIRS = 400, 60_000


@dataclass(frozen=True, eq=False)
class Task:
    """Documents, labels and names, and the classes to learn.

    Parameters
    ----------
    X : CSR (n_documents + n_names, n_terms)
        Rows of unit length; names come last.
    latent, meaning : arrays (n_documents + n_names, any)
        Latent semantics and meaning, rows of unit length.
    rows : array of int (n_labelled,)
        The labelled documents.
    states : array of int (n_labelled, n_classes)
        Their label states.
    hideable : array of bool (n_labelled,)
        Whether the label may be hidden, because it is one of the user.
    named : array of int (n_names,)
        Classes of the names.
    n_known : int
        Number of known topics among the classes; they come first.
    rivalry : Rivalry
    run : OrderedMap
        An ordered parallel map.
    """

    X: sp.csr_array
    latent: Array
    meaning: Array
    rows: NDArray[np.intp]
    states: NDArray[np.int8]
    hideable: NDArray[np.bool_]
    named: NDArray[np.int64]
    n_known: int
    rivalry: Rivalry
    run: OrderedMap = map

    @property
    def n_documents(self) -> int:
        """Number of documents, without names."""
        return int(self.X.shape[0]) - len(self.named)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.states.shape[1])

    @cached_property
    def given(self) -> NDArray[np.bool_]:
        """Classes of the labelled documents."""
        return np.asarray(self.states == PERMITTED)

    @cached_property
    def of_names(self) -> Array:
        """Classes of the names, as rows of 0 and 1."""
        return np.eye(self.n_classes, dtype=np.float32)[self.named]

    @cached_property
    def XT(self) -> sp.csr_array:
        """The transpose of X."""
        return sp.csr_array(self.X.T)

    @cached_property
    def totals(self) -> Array:
        """Sum of each term (n_terms, 1)."""
        return np.asarray(self.X.sum(axis=0), dtype=np.float32).reshape(-1, 1)

    @property
    def example_rows(self) -> NDArray[np.intp]:
        """Rows of X with the labelled documents and the names."""
        return np.concatenate([self.rows, np.arange(self.n_documents, self.X.shape[0])])

    def examples(self, D: Array, seen: NDArray[np.bool_]) -> Examples:
        """Labelled documents whose labels are seen, followed by the names; D are features of all `example_rows`.

        Hidden labels count in the sizes of topics, so that weights are the same in all folds.
        """
        given = self.given.astype(np.float64)
        target = np.zeros_like(given)
        for members, _ in self.rivalry.cuts:  # a document has one topic per level, or several in equal parts
            own = given[:, members]
            target[:, members] = np.maximum(target[:, members], own / np.maximum(own.sum(axis=1, keepdims=True), 1))
        named = np.ones(len(self.named))
        kept = np.append(seen, named.astype(np.bool_))
        return Examples(
            D[kept],
            np.vstack([target, self.of_names])[kept],
            np.vstack([self.states == FORBIDDEN, np.zeros(self.of_names.shape, dtype=np.bool_)])[kept],
            np.append(balanced(target), constants.NAME * named)[kept],
            int(seen.sum()),
        )

    def part(self, some: NDArray[np.intp]) -> Task:
        """The task with some of the labelled documents, and no other documents."""
        kept = np.concatenate([self.rows[some], self.example_rows[len(self.rows) :]])
        return replace(
            self,
            X=self.X[kept],
            latent=self.latent[kept],
            meaning=self.meaning[kept],
            rows=np.arange(len(some)),
            states=self.states[some],
            hideable=self.hideable[some],
        )


def choose(task: Task) -> Choice:
    """Choose the settings with the least leave-one-out log loss, or by a rule where labels are few."""
    own = np.flatnonzero(task.hideable & task.given[:, : task.n_known].any(axis=1))
    counts = task.given[own].sum(axis=0)
    has_meaning = bool(task.meaning.shape[1])
    if len(own) < 2 * constants.MIN_LABELS or np.median(counts[counts > 0]) <= 1:
        share = constants.LENGTH / (constants.LENGTH + task.X.nnz / task.X.shape[0]) if has_meaning else 0.0
        return Choice(share, constants.RIDGES[2], constants.SHARPNESSES[2])
    if len(own) > CHOICE_DOCUMENTS:
        own = np.sort(np.random.default_rng(0).choice(own, CHOICE_DOCUMENTS, replace=False))
    part = task.part(own)

    def loss(share: float) -> tuple[float, Choice]:
        examples = part.examples(joint(part.latent, part.meaning, share), np.ones(len(own), dtype=np.bool_))
        least, strength, sharpness = min(left_out_loss(examples, constants.RIDGES, constants.SHARPNESSES))
        return least, Choice(share, strength, sharpness)

    found = list(task.run(loss, constants.SHARES if has_meaning else constants.SHARES[:1]))
    least = min(value for value, _ in found)
    return next(choice for value, choice in found if value <= least * (1 + constants.TIE))


@dataclass(frozen=True, eq=False)
class Learnt:
    """Result of a training: linear maps and a mix.

    Parameters
    ----------
    softmax : array (dimensions + 1, n_classes)
        Softmax regression on the joint features; the intercepts come last.
    ridge : array (dimensions, n_classes)
    centroids : array (dimensions, n_classes)
    ratios : array (n_terms, n_classes)
        Log ratios of naive Bayes.
    shares : array (n_classes,)
        Log shares of the classes.
    mix : Mix
        Weights of the five scores.
    choice : Choice
    hidden : array (n_labelled, n_classes)
        Log odds of labelled documents while their labels are hidden; NaN where they never are.
    probabilities : array (n_documents, n_classes)
        Of the documents of the training.
    """

    softmax: Array
    ridge: Array
    centroids: Array
    ratios: Array
    shares: Array
    mix: Mix
    choice: Choice
    hidden: Array
    probabilities: Array


def learn(task: Task, choice: Choice | None = None) -> Learnt:
    """Learn the classes of a task."""
    choice = choice or choose(task)
    n = task.n_documents
    D = joint(task.latent, task.meaning, choice.share)
    fold_of = folds_of(task)
    n_folds = int(fold_of.max(initial=-1)) + 1
    counts = (task.given.sum(axis=0) + task.of_names.sum(axis=0))[: task.n_known]
    several = counts[task.given[:, : task.n_known].any(axis=0)] > 1  # hidden labels leave others to learn from
    fitted = int(task.hideable.sum()) >= constants.MIN_LABELS and n_folds > 1
    fitted &= several.sum() >= 0.8 * max(len(several), 1)
    visible = [np.ones(len(task.rows), dtype=np.bool_)]
    if fitted:
        visible += [fold_of != fold for fold in range(n_folds)]

    span = Span.of(D[task.example_rows])
    F = D[task.example_rows] @ span.directions

    def regress(seen: NDArray[np.bool_], start: Array | None, steps: int) -> tuple[Array, Array]:
        own = task.examples(F, seen)
        W = softmax_regression(own.D, span.values, own.target, task.rivalry, constants.SOFTMAX, steps, start)
        return W, ridge(own.D, own, choice.ridge) if len(task.rows) else np.zeros_like(W[:-1])

    solved = list(task.run(lambda seen: regress(seen, None, STEPS), visible[1:]))
    start = np.mean([W for W, _ in solved], axis=0) if solved else None
    solved.insert(0, regress(visible[0], start, LAST_STEPS if solved else 2 * STEPS))
    models = [(span.outward(W), span.outward(B)) for W, B in solved]

    def regressed(model: tuple[Array, Array]) -> list[Array]:
        W, B = model
        return [task.rivalry.log_softmax(D[:n] @ W[:-1] + W[-1]), D[:n] @ B]

    scores = list(task.run(regressed, models))
    weights = [0.5, choice.sharpness / 2] if len(task.rows) else [1.0, 0.0]
    simple = Mix(np.array(weights), 1.0, 0.0)
    start_mix = Mix(np.array([*weights, constants.NAIVE_BAYES, constants.COSINE, constants.SHARE]), 1.0, 0.0)
    pairs = HiddenPairs.of(task, fold_of if fitted else np.full(len(task.rows), -1))
    mix = pairs.mix(scores, simple) if fitted else simple
    odds = [mix.odds(own, task.rivalry) for own in scores]
    evidence: list[Evidence] = []
    first: list[Evidence] = []
    widest = 0.0
    for _ in range(constants.ROUNDS if fitted else constants.NAME_ROUNDS):
        probabilities = [_probabilities(own) for own in odds]
        pairs_of = zip(probabilities, visible, strict=True)
        evidence = list(task.run(lambda pair: Evidence.of(task, D, *pair), pairs_of))
        whole = [[*own, *more.scores] for own, more in zip(scores, evidence, strict=True)]
        mix = pairs.mix(whole, start_mix) if fitted else start_mix
        odds = list(task.run(partial(mix.odds, rivalry=task.rivalry), whole))
        first, widest = first or evidence, max(widest, spread(odds[0]))
        if not fitted and spread(odds[0]) < constants.KEPT_SPREAD * widest:
            evidence = first  # large classes swallow small ones
            break
    if not fitted:  # the first round knows the names best, and the last one the corpus
        evidence = [Evidence.mean(a, b) for a, b in zip(first, evidence, strict=True)]
        odds = [mix.odds([*own, *more.scores], task.rivalry) for own, more in zip(scores, evidence, strict=True)]
    hidden = np.full(task.states.shape, np.nan, dtype=np.float32)
    for fold, own in enumerate(odds[1:]):
        hidden[fold_of == fold] = own[task.rows[fold_of == fold]]
    last = evidence[0]
    maps = (*models[0], last.centroids, last.ratios, last.shares)
    return Learnt(*maps, mix, choice, hidden, _probabilities(odds[0]))


def spread(odds: Array) -> float:
    """Effective number of classes: the exponential of the entropy of their shares."""
    P = _probabilities(odds)
    shares = P.sum(axis=0, dtype=np.float64)
    shares /= max(float(shares.sum()), 1e-30)
    return float(np.exp(entr(shares).sum()))


def _probabilities(odds: Array) -> Array:
    return np.asarray(expit(odds), dtype=np.float32)


def folds_of(task: Task) -> NDArray[np.int64]:
    """The fold in which the labels of each document are hidden; -1 if they never are.

    Documents count for their rarest class. A class whose only example is one document keeps it.
    """
    examples = task.given.sum(axis=0) + task.of_names.sum(axis=0)
    rarest = np.where(task.hideable, rarest_topics(sp.csr_array(task.given)), -2)
    fold, rng, first = np.full(len(rarest), -1, dtype=np.int64), np.random.default_rng(0), 0
    for k in np.unique(rarest[rarest > -2]):  # -1 are documents without a topic
        own = rng.permutation(np.flatnonzero(rarest == k))
        if len(own) > 1 or (k >= 0 and examples[k] > 1):
            fold[own] = (first + np.arange(len(own))) % constants.FOLDS
            first += len(own)
    return fold


@dataclass(frozen=True, eq=False)
class HiddenPairs:
    """Hidden documents, at most as many as the mix needs: their folds, labels and weights of known topics."""

    rows: NDArray[np.intp]
    fold_of: NDArray[np.int64]
    given: Array
    weight: Array
    rivalry: Rivalry

    @classmethod
    def of(cls, task: Task, fold_of: NDArray[np.int64]) -> HiddenPairs:
        """The documents that a fold hides, or a sample of them."""
        own = np.flatnonzero(fold_of >= 0)
        most = max(MIX_PAIRS // max(task.n_classes, 1), 4 * constants.MIN_LABELS)
        if len(own) > most:
            own = np.sort(np.random.default_rng(0).choice(own, most, replace=False))
        weight = (task.states[own] != UNKNOWN).astype(np.float64)
        weight[:, task.n_known :] = 0
        return cls(task.rows[own], fold_of[own], task.given[own].astype(np.float64), weight, task.rivalry)

    def mix(self, scores: list[list[Array]], start: Mix) -> Mix:
        """Learn the mix from the scores of hidden documents, each from the fold that hides it."""
        found = []
        for number in range(len(scores[0])):
            out = scores[0][number][self.rows].copy()
            for fold in range(len(scores) - 1):
                own = self.fold_of == fold
                out[own] = scores[fold + 1][number][self.rows[own]]
            found.append(out)
        return learn_mix(found, self.given, self.weight, self.rivalry, start)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Naive Bayes and centroids that follow from probabilities, with their scores of the documents."""

    ratios: Array
    centroids: Array
    shares: Array
    scores: tuple[Array, Array, Array]

    @classmethod
    def of(cls, task: Task, D: Array, probabilities: Array, visible: NDArray[np.bool_]) -> Evidence:
        """Learn from probabilities of the documents; visible labels replace them."""
        n = task.n_documents
        P = np.vstack([probabilities, task.of_names])
        rows, states = task.rows[visible], task.states[visible]
        P[rows] = np.where(states == UNKNOWN, P[rows], states)
        inside = np.asarray(task.XT @ P) + np.float32(constants.SMOOTHING)
        ratios = log_ratios(inside, task.totals)
        centroids = unit_rows((D.T @ P).T).T
        mean = P[:n].sum(axis=0, dtype=np.float64) / max(n, 1)
        shares = np.log(mean * P.shape[1] + 1e-2).astype(np.float32)
        terms = rows_times(task.X, n, ratios)
        scores = (terms, D[:n] @ centroids, np.broadcast_to(shares, terms.shape))
        return cls(ratios, np.ascontiguousarray(centroids), shares, scores)

    @classmethod
    def mean(cls, a: Evidence, b: Evidence) -> Evidence:
        """Mean of two rounds."""
        terms, cosines, shares = ((x + y) / 2 for x, y in zip(a.scores, b.scores, strict=True))
        found = (terms, cosines, shares)
        return cls((a.ratios + b.ratios) / 2, (a.centroids + b.centroids) / 2, (a.shares + b.shares) / 2, found)


def log_ratios(inside: Array, totals: Array) -> Array:
    """Log ratio of the frequency of each term inside and outside each class; ``inside`` are its smoothed sums."""
    outside = np.maximum(totals + np.float32(2 * constants.SMOOTHING) - inside, np.float32(constants.SMOOTHING))
    found = np.log(inside / inside.sum(axis=0)) - np.log(outside / outside.sum(axis=0))
    return np.ascontiguousarray(found, dtype=np.float32)


def rows_times(X: sp.csr_array, n: int, B: Array) -> Array:
    """The first n rows of X times B."""
    indptr, indices, data = kernel_arrays(X, np.float32)
    return np.concatenate(
        [times(indptr[rows.start : rows.stop + 1], indices, data, B) for rows in slices(n, ROWS)]
        or [np.zeros((0, B.shape[1]), dtype=np.float32)]
    )
