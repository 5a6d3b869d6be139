"""Rounds of pseudo-labels: known topics from labels, names and unlabelled documents.

1. :func:`choose` picks the share of meaning in the features and the settings of the ridge regression.
2. Softmax and ridge regression score all documents, once with all labels and once per fold with the labels of the fold
   hidden. Their mix is the first estimate of the probabilities.
3. In each round, the probabilities are pseudo-labels. Naive Bayes and cosines with the centroids of the topics score
   all documents again, and hidden labels decide how much each score counts (`topicsteer.guidance.likelihood`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from topicsteer.guidance.likelihood import Mix, Rivalry, learn_mix
from topicsteer.guidance.regression import (
    Choice,
    Examples,
    Span,
    balanced,
    left_out_loss,
    ridge,
    softmax_regression,
)
from topicsteer.guidance.settings import (
    COSINE,
    FEW,
    FOLDS,
    FULL_NAME_WEIGHT_LABELS,
    LENGTH,
    MIN_LABELS,
    NAIVE_BAYES,
    NAME_ROUNDS,
    NAME_WEIGHTS,
    RIDGES,
    ROUNDS,
    SHARE,
    SHARES,
    SHARPNESSES,
    SMOOTHING,
    SOFTMAX,
)
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, rarest_topics
from topicsteer.nmf.blocks import slices, times
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array

# Steps of the softmax regression: in folds from zero, and for all labels from the mean of the folds.
STEPS, LAST_STEPS = 40, 20
# Settings are chosen from at most this many labelled documents, and the mix from this many pairs.
CHOICE_DOCUMENTS, MIX_PAIRS = 600, 60_000
# Documents per block of work.
ROWS = 2_048


def unit(A: Array) -> Array:
    """Rows of length 1."""
    return np.asarray(A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-9))


def joint(latent: Array, meaning: Array | None, share: float) -> Array:
    """Features of documents: latent semantics and meaning, each with its share of the squared length."""
    if meaning is None or not share:
        return latent
    return np.hstack([np.sqrt(np.float32(1 - share)) * latent, np.sqrt(np.float32(share)) * meaning])


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that a guide is learnt from: labelled documents, background documents, then names, in this order.

    Parameters
    ----------
    X : CSR (n, n_terms)
        Rows of unit length.
    latent : array (n, any)
        Latent semantics, rows of unit length.
    meaning : array (n, any) or None
        Meaning, rows of unit length.
    states : array of int (n_labelled, n_topics)
        Label states.
    confidence : array (n_labelled,)
    named : array of int (n_names,)
        Topics of the names.
    rivalry : Rivalry
    run : OrderedMap
        An ordered parallel map.
    """

    X: sp.csr_array
    latent: Array
    meaning: Array | None
    states: NDArray[np.int8]
    confidence: Array
    named: NDArray[np.int64]
    rivalry: Rivalry
    run: OrderedMap = map

    @property
    def n_labelled(self) -> int:
        """Number of labelled documents."""
        return len(self.states)

    @property
    def n_documents(self) -> int:
        """Number of documents, without names."""
        return self.X.shape[0] - len(self.named)

    @property
    def n_topics(self) -> int:
        """Number of topics."""
        return self.states.shape[1]

    @cached_property
    def given(self) -> NDArray[np.bool_]:
        """Topics of the labelled documents."""
        return np.asarray(self.states == PERMITTED)

    @cached_property
    def of_names(self) -> Array:
        """Topics of the names, as rows of 0 and 1."""
        return np.eye(self.n_topics, dtype=np.float32)[self.named]

    @cached_property
    def XT(self) -> sp.csr_array:
        """The transpose of X."""
        return sp.csr_array(self.X.T)

    @cached_property
    def totals(self) -> Array:
        """Sum of each term (n_terms, 1)."""
        return np.asarray(self.X.sum(axis=0), dtype=np.float32).reshape(-1, 1)

    def dense(self, share: float) -> Array:
        """Joint features of all rows."""
        return joint(self.latent, self.meaning, share)

    def examples(self, D: Array, name_weight: float, rows: NDArray[np.intp] | None = None) -> Examples:
        """Labelled documents, all or some, followed by the names; D are joint features of all rows."""
        rows = np.arange(self.n_labelled) if rows is None else rows
        given = self.given[rows].astype(np.float64)
        target = np.zeros_like(given)
        for members, _ in self.rivalry.cuts:  # a document has one topic per level, or several in equal parts
            own = given[:, members]
            target[:, members] = np.maximum(target[:, members], own / np.maximum(own.sum(axis=1, keepdims=True), 1))
        labels = target.sum(axis=0)
        names = name_weight / np.maximum(labels[self.named] / FULL_NAME_WEIGHT_LABELS, 1)
        names = np.where(labels[self.named] > 0, names, max(name_weight, 1.0))
        return Examples(
            np.vstack([D[rows], D[self.n_documents :]]),
            np.vstack([target, self.of_names]),
            np.vstack([self.states[rows] == FORBIDDEN, np.zeros(self.of_names.shape, dtype=np.bool_)]),
            np.concatenate([balanced(target) * self.confidence[rows], names]),
            len(rows),
        )


def choose(material: Material) -> Choice:
    """The settings with the least leave-one-out log loss; a rule where labels are too few to say."""
    counts = material.given.sum(axis=0)
    few = material.n_labelled < 2 * MIN_LABELS or np.median(counts[counts > 0]) <= 1
    if few:
        share = LENGTH / (LENGTH + material.X.nnz / material.X.shape[0]) if material.meaning is not None else 0.0
        return Choice(share, *FEW)
    rows = np.arange(material.n_labelled)
    if len(rows) > CHOICE_DOCUMENTS:
        rows = np.sort(np.random.default_rng(0).choice(rows, CHOICE_DOCUMENTS, replace=False))
    settings = [
        (share, name)
        for share in (SHARES if material.meaning is not None else (0.0,))
        for name in (NAME_WEIGHTS if len(material.named) else (1.0,))
    ]
    kept = np.concatenate([rows, np.arange(material.n_documents, material.X.shape[0])])
    part = replace(
        material,
        X=material.X[kept],
        latent=material.latent[kept],
        meaning=None if material.meaning is None else material.meaning[kept],
        states=material.states[rows],
        confidence=material.confidence[rows],
    )

    def loss(setting: tuple[float, float]) -> tuple[float, Choice]:
        share, name = setting
        found = left_out_loss(part.examples(part.dense(share), name), RIDGES, SHARPNESSES)
        least, strength, sharpness = min(found)
        return least, Choice(share, name, strength, sharpness)

    return min(material.run(loss, settings), key=lambda pair: pair[0])[1]


@dataclass(frozen=True, eq=False)
class Rounds:
    """What the rounds have learnt, as linear maps and a mix.

    Parameters
    ----------
    softmax : array (dimensions + 1, n_topics)
        Softmax regression on the joint features; the intercepts come last.
    ridge : array (dimensions, n_topics)
    centroids : array (dimensions, n_topics)
    ratios : array (n_terms, n_topics)
        Log ratios of naive Bayes.
    shares : array (n_topics,)
        Log shares of the topics.
    mix : Mix
        Weights of the five scores.
    choice : Choice
    hidden : array (n_labelled, n_topics)
        Log odds of labelled documents while their labels are hidden; NaN where they never are.
    probabilities : array (n_documents, n_topics)
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


def learn_rounds(material: Material, choice: Choice | None = None) -> Rounds:
    """Learn known topics; see the module."""
    choice = choice or choose(material)
    n, n_labelled = material.n_documents, material.n_labelled
    D = material.dense(choice.share)
    examples = material.examples(D, choice.name)
    fold_of = folds_of(material)
    n_folds = int(fold_of.max(initial=-1)) + 1
    counts = material.given.sum(axis=0) + material.of_names.sum(axis=0)
    seen = material.given.any(axis=0)
    fitted = n_labelled >= MIN_LABELS and n_folds > 1 and (counts[seen] > 1).mean() >= 0.8
    visible = [np.ones(n_labelled, dtype=np.bool_)]
    if fitted:
        visible += [fold_of != fold for fold in range(n_folds)]
    hidden_rows = np.flatnonzero(fold_of >= 0) if fitted else np.zeros(0, dtype=np.intp)

    span = Span.of(examples.D)
    F = examples.D @ span.directions
    in_span = replace(examples, D=F)

    def regress(seen: NDArray[np.bool_], start: Array | None, steps: int) -> tuple[Array, Array]:
        chosen = np.concatenate([seen, np.ones(len(material.named), dtype=np.bool_)])
        own = in_span.select(chosen)
        W = softmax_regression(own.D, span.values, own.target, material.rivalry, SOFTMAX, steps, start)
        return W, ridge(own.D, own, choice.ridge) if n_labelled else np.zeros_like(W[:-1])

    solved = list(material.run(lambda seen: regress(seen, None, STEPS), visible[1:]))
    start = np.mean([W for W, _ in solved], axis=0) if solved else None
    solved.insert(0, regress(visible[0], start, LAST_STEPS if solved else 2 * STEPS))
    models = [
        (
            np.vstack([span.directions @ W[:-1].astype(np.float32), W[-1:].astype(np.float32)]),
            span.directions @ B.astype(np.float32),
        )
        for W, B in solved
    ]

    def first(model: tuple[Array, Array]) -> list[Array]:
        W, B = model
        log_p = material.rivalry.log_softmax(D[:n] @ W[:-1] + W[-1])
        return [log_p, D[:n] @ B]

    scores = list(material.run(first, models))
    weights = [0.5, choice.sharpness / 2] if n_labelled else [1.0, 0.0]
    simple = Mix(np.array(weights), 1.0, 0.0)
    start_mix = Mix(np.array([*weights, NAIVE_BAYES, COSINE, SHARE]), 1.0, 0.0)
    pairs = _Pairs.of(material, fold_of, hidden_rows)
    mix = learn_mix(pairs.assemble(scores), *pairs.labels, material.rivalry, simple) if fitted else simple
    probabilities = [_probabilities(mix.odds(own, material.rivalry)) for own in scores]
    learnt = Evidence.of(material, D, probabilities[0], visible[0])
    for _ in range(ROUNDS if fitted else NAME_ROUNDS):
        evidence = list(material.run(partial(Evidence.of, material, D), probabilities, visible))
        whole = [[*own, *found.scores] for own, found in zip(scores, evidence, strict=True)]
        mix = learn_mix(pairs.assemble(whole), *pairs.labels, material.rivalry, start_mix) if fitted else start_mix
        odds = list(material.run(lambda own: mix.odds(own, material.rivalry), whole))  # noqa: B023
        probabilities = [_probabilities(own) for own in odds]
        learnt = evidence[0]
    hidden = np.full(material.states.shape, np.nan, dtype=np.float32)
    for fold in range(n_folds if fitted else 0):
        hidden[fold_of == fold] = odds[fold + 1][:n_labelled][fold_of == fold]
    return Rounds(
        models[0][0],
        models[0][1],
        learnt.centroids,
        learnt.ratios,
        learnt.shares,
        mix,
        choice,
        hidden,
        probabilities[0],
    )


def folds_of(material: Material) -> NDArray[np.int64]:
    """The fold in which the labels of each document are hidden; -1 if they never are.

    Documents count for their rarest topic. A topic whose only example is one document keeps it.
    """
    examples = material.given.sum(axis=0) + material.of_names.sum(axis=0)
    rarest = rarest_topics(sp.csr_array(material.given))
    fold, rng, first = np.full(len(rarest), -1, dtype=np.int64), np.random.default_rng(0), 0
    for k in np.unique(rarest):  # -1 are documents without a topic
        own = rng.permutation(np.flatnonzero(rarest == k))
        if len(own) > 1 or (k >= 0 and examples[k] > 1):
            fold[own] = (first + np.arange(len(own))) % FOLDS
            first += len(own)
    return fold


def _probabilities(odds: Array) -> Array:
    return np.asarray(expit(odds), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Hidden documents, at most as many as the mix needs, with their folds, labels and weights."""

    rows: NDArray[np.intp]
    fold_of: NDArray[np.int64]
    labels: tuple[Array, Array]

    @classmethod
    def of(cls, material: Material, fold_of: NDArray[np.int64], rows: NDArray[np.intp]) -> _Pairs:
        most = max(MIX_PAIRS // max(material.n_topics, 1), 4 * MIN_LABELS)
        if len(rows) > most:
            rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        weight = (material.states[rows] != UNKNOWN) * material.confidence[rows][:, None]
        return cls(rows, fold_of[rows], (material.given[rows].astype(np.float64), weight))

    def assemble(self, scores: list[list[Array]]) -> list[Array]:
        """Scores of the hidden documents, each from the fold that hides it."""
        found = []
        for number in range(len(scores[0])):
            out = scores[0][number][self.rows].copy()
            for fold in range(len(scores) - 1):
                own = self.fold_of == fold
                out[own] = scores[fold + 1][number][self.rows[own]]
            found.append(out)
        return found


@dataclass(frozen=True, eq=False)
class Evidence:
    """Naive Bayes and centroids that follow from probabilities, with their scores of the documents."""

    ratios: Array
    centroids: Array
    shares: Array
    scores: tuple[Array, Array, Array]

    @classmethod
    def of(cls, material: Material, D: Array, probabilities: Array, visible: NDArray[np.bool_]) -> Evidence:
        """Learn from probabilities of the documents; visible labels replace them."""
        n = material.n_documents
        P = np.vstack([probabilities, material.of_names])
        own = np.flatnonzero(visible)
        states = material.states[own]
        P[own] = np.where(states == UNKNOWN, P[own], states)
        inside = np.asarray(material.XT @ P) + np.float32(SMOOTHING)
        ratios = log_ratios(inside, material.totals)
        centroids = unit((D.T @ P).T).T
        shares = np.log(P[:n].mean(axis=0, dtype=np.float64) * P.shape[1] + 1e-2).astype(np.float32)
        terms = rows_times(material.X, n, ratios)
        scores = (terms, D[:n] @ centroids, np.broadcast_to(shares, terms.shape))
        return cls(ratios, np.ascontiguousarray(centroids), shares, scores)


def log_ratios(inside: Array, totals: Array) -> Array:
    """Log ratio of the frequency of each term inside and outside each topic; ``inside`` are its smoothed sums."""
    outside = np.maximum(totals + np.float32(2 * SMOOTHING) - inside, np.float32(SMOOTHING))
    found = np.log(inside / inside.sum(axis=0)) - np.log(outside / outside.sum(axis=0))
    return np.ascontiguousarray(found, dtype=np.float32)


def rows_times(X: sp.csr_array, n: int, B: Array) -> Array:
    """The first n rows of X times B."""
    indptr = X.indptr[: n + 1].astype(np.int64, copy=False)
    indices, data = X.indices.astype(np.int32, copy=False), X.data.astype(np.float32, copy=False)
    return np.concatenate(
        [times(indptr[rows.start : rows.stop + 1], indices, data, B) for rows in slices(n, ROWS)]
        or [np.zeros((0, B.shape[1]), dtype=np.float32)]
    )
