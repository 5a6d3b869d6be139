"""Shares of topics in a corpus and in its groups, with intervals: estimates, tables, and sentences.

The mean of predictions is precise but biased; the mean of labels is right but imprecise. The estimate takes the mean of
the predictions over all documents and corrects it by the mean error of the predictions on labelled documents:
prediction-powered inference. Predictions of a labelled document come from a guide that did not see its labels.

For topic k, with labels y, predictions f and the weight λ of the predictions:

    share = mean of λ f over all documents + mean of (y - λ f) over labelled documents

The weight λ makes the variance least. It is shrunk towards the best weight for all topics together. So is the variance:
a topic with few labels has no reliable variance of its own. The interval is Wilson's, with the number
of labels that would have this variance without predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.analysis.column_formats import Column
from topicsteer.analysis.groups import DAYS, Groups
from topicsteer.analysis.survey_design import AT_RANDOM, IF_RANDOM, Sample, mover, wilson, z_value
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import Kind
from topicsteer.nmf.blocks import slices
from topicsteer.system.types import Array
from topicsteer.system.values import ALL, NONE, listed

# Positive labels at which a topic's own weight counts as much as the weight of all topics together.
WEIGHT_LABELS = 10.0
# Pseudo-labels with the variance of all topics together, and with the variance of labels alone.
COMMON_LABELS, ALONE_LABELS = 5.0, 1.0
# Positive labels from which a topic counts for the variance of all topics together.
MIN_POSITIVE = 3
# Documents per block of sums.
ROWS = 1 << 16
# Topics whose predictions differ by more than this many standard errors between labelled and other documents.
SUSPICIOUS = 4.0


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of one predictor: our guide, or a coder.

    Parameters
    ----------
    every : array (n_documents, n_topics)
        Predictions of all documents. Rows of labelled documents are not used.
    labelled : array (n_labelled, n_topics)
        Predictions of the labelled documents, made without their labels.
    """

    every: Array
    labelled: Array


@dataclass(frozen=True, eq=False)
class Estimates:
    """Shares of topics in the whole corpus (first row) and in each group; all arrays are (1 + n_groups, n_topics).

    Parameters
    ----------
    share, low, high : array
        Shares with the ends of their intervals; NaN without an interval.
    labels, drawn : array of int
        Number of documents with a known label, and of those among them that were drawn by chance.
    worth : array
        The number of labels that would give the same interval without predictions, relative to the present number.
    variance : array
        Variance of one drawn label after the correction, relative to a label alone.
    slopes : array (n_predictors, n_topics)
        Weight λ of each predictor.
    doubts : array (n_topics,)
        Difference of the predictions between labelled and other documents, in standard errors.
    """

    share: Array
    low: Array
    high: Array
    labels: NDArray[np.int64]
    drawn: NDArray[np.int64]
    worth: Array
    variance: Array
    slopes: Array
    doubts: Array


@dataclass(frozen=True, eq=False)
class _Totals:
    """Sums over documents by group: their weight, and their weighted predictions."""

    weight: Array  # (groups,)
    predicted: Array  # (groups, predictors, topics)
    squares: Array  # (topics,), of the first predictor


def estimate(
    sample: Sample,
    predictions: Sequence[Predictions],
    groups: Groups | None = None,
    weights: Array | None = None,
    level: float = 0.95,
    tree: TreeColumns | None = None,
) -> Estimates:
    """Estimate the share of each topic in the corpus and in each group.

    Parameters
    ----------
    sample : Sample
        The labelled documents.
    predictions : sequence of Predictions
        One or several predictors; without any, labels alone decide.
    groups : Groups, optional
        Groups of all documents.
    weights : array (n_documents,), optional
        Survey weights of all documents; needed without predictions.
    level : float, default=0.95
        Confidence level.
    tree : TreeColumns, optional
        The tree of the topics. The estimates have further columns, one per rest.

    Returns
    -------
    Estimates

    Examples
    --------
    >>> from topicsteer.labels.supervision import Origin
    >>> rng = np.random.default_rng(0)
    >>> truth = (rng.random((1000, 1)) < 0.3).astype(float)
    >>> guess = np.clip(0.2 + 0.6 * truth + rng.normal(0, 0.1, (1000, 1)), 0, 1)
    >>> rows = np.arange(200)
    >>> sample = Sample(rows, truth[rows], Origin.random(200), rows)
    >>> found = estimate(sample, [Predictions(guess, guess[rows])])
    >>> bool(found.low[0, 0] < truth.mean() < found.high[0, 0]), bool(found.worth[0, 0] > 2)
    (True, True)
    """
    tree = tree or TreeColumns(Forest((-1,) * sample.labels.shape[1]))
    sample = replace(sample, labels=tree.labels(sample.labels))
    n, k = sample.labels.shape
    v = np.ones(len(predictions[0].every)) if weights is None else np.asarray(weights, dtype=np.float64)
    groups = groups or Groups.none(len(v))
    codes = groups.codes
    n_groups = len(groups.names)
    F = np.zeros((len(predictions), n, k))  # (predictors, n, topics)
    for j, one in enumerate(predictions):
        F[j] = tree.predictions(one.labelled)
    own = v[sample.rows]
    inside = np.zeros((n_groups + 1, n), dtype=np.bool_)  # groups of the labelled documents; the first is everything
    inside[0] = True
    of = codes[sample.rows]
    inside[of[of >= 0] + 1, np.flatnonzero(of >= 0)] = True
    totals = _totals(sample, predictions, F, codes, n_groups, v, tree)
    known = ~np.isnan(sample.labels)
    drawn = (sample.by_chance & (own > 0))[:, None] & known
    # Without a single no, an unknown label may well be one: such labels give no share.
    drawn &= ~((sample.by_chance[:, None] & ~known).any(axis=0) & ~(drawn & (sample.labels == 0)).any(axis=0))
    fit = _Fit(sample, F, *sample.weights(own, float(v.sum()), _doubt(F, n)), own, drawn, tree)
    shares = [fit.share(inside[0], totals, 0, level, None)]
    shares += [fit.share(inside[g], totals, g, level, shares[0][-1]) for g in range(1, n_groups + 1)]
    share, low, high, worth, variance = map(np.stack, zip(*shares, strict=True))
    return Estimates(
        share=share,
        low=low,
        high=high,
        labels=np.stack([(known & rows[:, None]).sum(axis=0) for rows in inside]),
        drawn=np.stack([(fit.drawn & rows[:, None]).sum(axis=0) for rows in inside]),
        worth=worth,
        variance=variance,
        slopes=fit.slopes,
        doubts=fit.doubts(totals),
    )


def _doubt(F: Array, n: int) -> Array:
    """Expected squared error of the first predictor for each labelled document, relative to the share of each topic."""
    if not len(F) or not n:
        return np.ones(n)
    p = np.clip(F[0], 0, 1)
    mean = np.clip(p.mean(axis=0), 0.5 / max(n, 1), 0.5)
    return np.asarray((p * (1 - p) / mean).sum(axis=1) + 1e-6)


def _totals(
    sample: Sample,
    predictions: Sequence[Predictions],
    F: Array,
    codes: NDArray[np.int64],
    n_groups: int,
    v: Array,
    tree: TreeColumns,
) -> _Totals:
    """Return weighted sums of predictions over all documents, by group; the first row is the whole corpus."""
    k = sample.labels.shape[1]
    weight = np.concatenate([[v.sum()], np.bincount(codes[codes >= 0], v[codes >= 0], n_groups)])
    predicted, squares = np.zeros((n_groups + 1, len(predictions), k)), np.zeros(k)
    others = v.copy()
    others[sample.rows] = 0
    for rows in slices(len(codes), ROWS):
        which = indicator(codes[rows], n_groups, others[rows])
        for j, one in enumerate(predictions):
            block = tree.predictions(np.asarray(one.every[rows], dtype=np.float64))
            predicted[:, j] += which @ block
            squares += others[rows] @ np.square(block) if j == 0 else 0
    which = indicator(codes[sample.rows], n_groups, v[sample.rows])
    for j in range(len(predictions)):
        predicted[:, j] += which @ F[j]
    squares += v[sample.rows] @ np.square(F[0]) if len(F) else 0
    return _Totals(weight, predicted, squares)


def indicator(codes: NDArray[np.int64], n_groups: int, v: Array) -> sp.csr_array:
    """Return weights of documents (1 + n_groups, n_documents): in the whole corpus, and in their groups."""
    rows = np.flatnonzero(codes >= 0)
    numbers = np.concatenate([np.zeros(len(codes), dtype=np.int64), codes[rows] + 1])
    columns = np.concatenate([np.arange(len(codes)), rows])
    return sp.csr_array((np.concatenate([v, v[rows]]), (numbers, columns)), shape=(n_groups + 1, len(codes)))


class _Fit:
    """Weights of the predictors, and residuals of the labelled documents."""

    def __init__(
        self,
        sample: Sample,
        F: Array,
        weight: Array,
        varying: Array,
        own: Array,
        drawn: NDArray[np.bool_],
        tree: TreeColumns,
    ) -> None:
        self.sample, self.F, self.own = sample, F, own
        self.y = np.nan_to_num(sample.labels)
        drawn, stands = _below(tree, drawn, self.y, weight)
        self.drawn = drawn
        self.weight = np.where(drawn, weight[:, None], 0.0)  # (n, topics)
        # Documents that stand for themselves, as far as they do.
        self.fixed = np.where(~np.isnan(sample.labels) & ~drawn, np.minimum(weight, own)[:, None], 0.0)
        # The finite population: a document that stands for itself alone has no error.
        spread = (varying / np.where(weight > 0, weight, np.inf))[:, None]
        # Known labels are a second draw: each stands for more documents than were drawn.
        part = self.weight.sum(axis=0) / max(weight[sample.by_chance].sum(), 1e-300)
        self.spread = np.sqrt(1 - (1 - spread**2) * np.minimum(part, 1))
        self.weight = np.where(drawn, stands, 0.0)
        self.positive = rarer(drawn, self.y)
        self.slopes = self._slopes()
        self.residual = self.y - np.einsum("jk,jnk->nk", self.slopes, F)

    def _slopes(self) -> Array:
        """Return the weight of each predictor for each topic (predictors, topics), which makes the variance least."""
        scale = (self.weight * self.spread) ** 2
        scale /= np.maximum(scale.sum(axis=0), 1e-300)
        F = self.F - (scale * self.F).sum(axis=1, keepdims=True)
        y = self.y - (scale * self.y).sum(axis=0)
        A = np.einsum("nk,ink,jnk->kij", scale, F, F)
        b = np.einsum("nk,jnk,nk->kj", scale, F, y)
        common = positive_solution(A.sum(axis=0), b.sum(axis=0))
        found = np.empty((len(self.F), self.y.shape[1]))
        for k, count in enumerate(self.positive):
            part = count / (count + WEIGHT_LABELS)
            found[:, k] = part * positive_solution(A[k], b[k]) + (1 - part) * common
        return found

    def share(
        self,
        inside: NDArray[np.bool_],
        totals: _Totals,
        group: int,
        level: float,
        typical: Array | None,
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Return share, low, high, worth and variance in one group; ``typical`` is the variance in the corpus."""
        here, total = inside[:, None], max(float(totals.weight[group]), 1e-12)
        known = self.fixed * here
        rest = np.maximum(total - known.sum(axis=0), 1e-12)
        predicted = totals.predicted[group] - np.einsum("nk,jnk->jk", known, self.F)
        weight, n = self.weight * here, (self.drawn & here).sum(axis=0)
        size = weight.sum(axis=0)
        some = size > 0
        mean = (weight * self.residual).sum(axis=0) / np.where(some, size, 1)
        mean = np.where(some, mean, self._mean(self.residual))  # a group without labels has the bias of the corpus
        raw = np.einsum("jk,jk->k", self.slopes, predicted) / rest + mean
        part = np.clip(raw, 0, 1)
        share = ((known * self.y).sum(axis=0) + rest * part) / total
        spread, factor, clusters = self._variance(self.residual, weight, inside)
        frequency = (weight * self.y).sum(axis=0) / np.where(some, size, 1)
        count = np.minimum(rarer(self.drawn & here, self.y), as_if_random(weight, frequency))
        count = np.minimum(count, np.maximum(clusters - 1, 0))  # one cluster has no variance of its own
        alone = frequency * (1 - frequency)
        ratio = np.where(alone > 0, spread * (n - 1) / np.where(alone > 0, alone, 1) / np.maximum(factor, 1e-12), 1)
        ratio = np.where(n > 1, ratio, 1)
        if typical is None:
            usual = ratio[count >= MIN_POSITIVE]
            typical = np.full(len(ratio), usual.mean() if usual.size else 1.0)
        variance = (count * ratio + COMMON_LABELS * typical + ALONE_LABELS) / (count + COMMON_LABELS + ALONE_LABELS)
        effective = n / np.maximum(factor * variance, 1e-9)
        low, high = wilson(part, effective, level)
        ends = [((known * self.y).sum(axis=0) + rest * end) / total for end in (low, high)]
        # Labels that nobody drew by chance give no interval, and neither does a group without weight.
        measured = self.drawn.any(axis=0) & (totals.weight[group] > 0)
        low, high = (np.where(measured, end, np.nan) for end in ends)
        labels = n + (known > 0).sum(axis=0)
        worth = self._worth(share, part, effective, rest / total, labels, total)
        return share, low, high, np.where(measured, worth, np.nan), variance

    def _mean(self, values: Array) -> Array:
        return np.asarray((self.weight * values).sum(axis=0) / np.maximum(self.weight.sum(axis=0), 1e-300))

    def _variance(self, values: Array, weight: Array, inside: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
        """Variance of a weighted mean by clusters, the mean factor of the finite population, and the clusters."""
        size = np.maximum(weight.sum(axis=0), 1e-300)
        share = weight / size
        centred = values - (share * values).sum(axis=0)
        _, clusters = np.unique(self.sample.clusters[inside], return_inverse=True)
        m = int(clusters.max(initial=-1)) + 1
        parts = (share * self.spread * centred)[inside]
        join = sp.csr_array((np.ones(len(clusters)), (clusters, np.arange(len(clusters)))), (m, len(clusters)))
        filled = np.asarray((join @ (weight[inside] > 0)) > 0).sum(axis=0)  # clusters with a drawn label
        squares = np.square(share).sum(axis=0)
        factor = np.where(squares > 0, np.square(share * self.spread).sum(axis=0) / np.maximum(squares, 1e-300), 1)
        found = np.square(join @ parts).sum(axis=0) * filled / np.maximum(filled - 1, 1)
        return np.asarray(found), factor, filled

    @staticmethod
    def _worth(share: Array, part: Array, effective: Array, rest: Array, n: Array, total: float) -> Array:
        """Return the number of random labels with this variance without predictions, relative to the present number."""
        base, now = np.maximum(share * (1 - share), 1e-12), np.maximum(part * (1 - part), 1e-12)
        variance = rest**2 * now / np.maximum(effective, 1e-12)
        return np.asarray(np.where(n > 0, 1 / np.maximum(n * (variance / base + 1 / total), 1e-12), np.nan))

    def doubts(self, totals: _Totals) -> Array:
        """Return the difference between predictions of labelled documents and of all documents, in standard errors.

        It is smaller by one document, because sums of a few skewed values are far from normal.
        """
        k = self.y.shape[1]
        if not len(self.F):
            return np.zeros(k)
        expected = totals.predicted[0, 0] / totals.weight[0]
        variance = np.maximum(totals.squares / totals.weight[0] - expected**2, 0)
        # Only documents that all had the same chance: others are meant to differ.
        share = self.own * (self.sample.by_chance & (self.sample.origin.kind != Kind.DOUBT))
        share = share / max(share.sum(), 1e-300)
        variance *= np.square(share[:, None] * self.spread).sum(axis=0)
        apart = share @ self.F[0] - expected
        apart = np.sign(apart) * np.maximum(np.abs(apart) - share.max(initial=0), 0)
        return np.asarray(np.where(variance > 0, apart / np.sqrt(np.maximum(variance, 1e-300)), 0.0))


def _below(tree: TreeColumns, drawn: NDArray[np.bool_], y: Array, weight: Array) -> tuple[NDArray[np.bool_], Array]:
    """Return labels that count, and the weight of each, where labels end above a topic of a tree.

    Documents that have a topic, with labels that end there, are like the documents with the same topic and deeper
    labels, not like all documents. So these stand for them. If there are none, no label counts for the column.
    """
    drawn, stands = drawn.copy(), np.repeat(weight[:, None], drawn.shape[1], axis=1)
    order = [*tree.forest.order, *tree.rest_of.values()]
    for k, above in ((k, tree.above[k]) for k in order if tree.above[k] >= 0):
        inside = drawn[:, above] & (y[:, above] == 1)
        deeper = inside & drawn[:, k]
        known, total = float(stands[deeper, above].sum()), float(stands[inside, above].sum())
        # Labels that end at a topic may mean its rest. Without a label of the rest, they give it no share.
        unclear = k > len(tree.forest) and (inside & ~deeper).any() and not (deeper & (y[:, k] == 1)).any()
        drawn[:, k] &= bool(known > 0 or not inside.any()) and bool(drawn[:, above].any()) and not unclear
        stands[:, k] = np.where(drawn[:, above], stands[:, above], weight)
        stands[deeper, k] *= total / max(known, 1e-300)
    return drawn, stands


def rarer(drawn: NDArray[np.bool_], y: Array) -> NDArray[np.int64]:
    """Return the number of labels of the rarer kind, yes or no, of each topic."""
    return np.asarray(np.minimum((drawn & (y == 1)).sum(axis=0), (drawn & (y == 0)).sum(axis=0)), dtype=np.int64)


def as_if_random(weight: Array, frequency: Array) -> Array:
    """Return number of labels of the rarer kind that a random draw with the same effective number of labels would hold.

    A draw by doubt finds many of them where each stands for few documents, so all others remain in doubt. The
    effective number is Kish's, (Σw)² / Σw². With equal weights this is the number of labels of the rarer kind.
    """
    effective = np.square(weight.sum(axis=0)) / np.maximum(np.square(weight).sum(axis=0), 1e-300)
    return np.asarray(np.round(effective * np.minimum(frequency, 1 - frequency), 6))


def positive_solution(A: Array, b: Array) -> Array:
    """Return the least squares weights of predictors from normal equations, each from 0 to 1."""
    found, kept = np.zeros(len(b)), np.flatnonzero(np.diag(A) > 1e-12)
    while kept.size:
        matrix = A[np.ix_(kept, kept)]
        own = np.linalg.solve(matrix + 1e-9 * np.trace(matrix) * np.eye(len(kept)), b[kept])
        if (own >= 0).all():
            found[kept] = np.minimum(own, 1)
            break
        kept = np.delete(kept, own.argmin())
    return found


# Name of the rest of a topic.
REST = "{}, nothing below"
# Differences of shares below this are rounding errors.
TINY = 1e-12


@dataclass(frozen=True)
class TreeColumns:
    """Columns of labels and predictions for a tree: one per topic, one for none of them, and one per rest.

    Parameters
    ----------
    forest : Forest
        The tree of the known topics.
    """

    forest: Forest

    @cached_property
    def below(self) -> dict[int, tuple[int, ...]]:
        """The children of each topic that has any."""
        return {k: own for k, own in enumerate(self.forest.children) if own}

    @cached_property
    def rest_of(self) -> dict[int, int]:
        """Column of the rest of each topic with children."""
        return {k: len(self.forest) + 1 + place for place, k in enumerate(self.below)}

    @property
    def above(self) -> tuple[int, ...]:
        """The topic above each column; -1 without one."""
        return (*self.forest.parents, -1, *self.below)

    def labels(self, labels: Array) -> Array:
        """Return labels (1, 0, NaN) of topics and of none, with a column per rest; unknown if a topic below is unknown.

        Examples
        --------
        >>> tree = TreeColumns(Forest((-1, 0, 0)))
        >>> tree.labels(np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [1, np.nan, 0, 0]]))[:, -1].tolist()
        [0.0, 1.0, 0.0, nan]
        """
        rests = []
        for k, own in self.below.items():
            states = labels[:, list(own)]
            lacks = (labels[:, k] == 0) | (states == 1).any(axis=1)
            has = (labels[:, k] == 1) & (states == 0).all(axis=1)
            rests.append(np.where(lacks, 0.0, np.where(has, 1.0, np.nan)))
        return np.column_stack([labels, *rests])

    def predictions(self, P: Array) -> Array:
        """Predictions of topics and of none, with a column per rest: the difference between a topic and those below."""
        rests = [np.maximum(P[:, k] - P[:, list(own)].sum(axis=1), 0) for k, own in self.below.items()]
        return np.column_stack([P, *rests])

    def excluding(self, labels: Array) -> list[int]:
        """Return topics whose children exclude each other: no label gives a document two of them."""
        return [k for k, own in self.below.items() if not ((labels[:, list(own)] == 1).sum(axis=1) > 1).any()]

    def add_up(self, labels: Array, share: Array, low: Array, high: Array) -> None:
        """Move shares (n_groups, n_columns) and their intervals in place, from the top of the tree to its leaves.

        ``labels`` are labels of topics, one row per document.

        Examples
        --------
        >>> tree, labels = TreeColumns(Forest((-1, 0, 0))), np.array([[1.0, 1.0, 0.0, 0.0]])
        >>> share = np.array([[0.5, 0.3, 0.1, 0.5, 0.14]])
        >>> tree.add_up(labels, share, share - 0.05, share + 0.05)
        >>> share.round(3).tolist()
        [[0.5, 0.287, 0.087, 0.5, 0.127]]
        """
        exclude = set(self.excluding(labels))
        for k in self.forest.order:
            if k not in self.below:
                continue
            columns = [*self.below[k], self.rest_of[k]]
            for g in range(len(share)):
                if k in exclude:
                    moved = spread_out(share[g, columns], (high - low)[g, columns], share[g, k])
                else:
                    moved = np.minimum(share[g, columns], share[g, k])
                    moved[-1] = max(moved[-1], share[g, k] - moved[:-1].sum())
                by = moved - share[g, columns]
                low[g, columns] = np.clip(low[g, columns] + by, 0, moved)
                high[g, columns] = np.clip(high[g, columns] + by, moved, 1)
                share[g, columns] = moved

    def names(self, topics: Sequence[str]) -> list[str]:
        """Return names of the rests."""
        return [REST.format(topics[k]) for k in self.below]

    def order(self, n_topics: int) -> NDArray[np.int64]:
        """Order of all columns with each rest behind its topic; before, rests follow the ``n_topics`` others."""
        place = {k: n_topics + number for number, k in enumerate(self.below)}
        return np.array([c for k in range(n_topics) for c in ([k, place[k]] if k in place else [k])], dtype=np.int64)


def spread_out(share: Array, width: Array, total: float) -> Array:
    """Return shares that are at least 0 and have the given sum, each moved in proportion to the square of its width.

    Shares without an interval (NaN) move first.

    Examples
    --------
    >>> spread_out(np.array([0.3, 0.2]), np.array([0.2, 0.1]), 0.45).round(2).tolist()
    [0.26, 0.19]
    >>> spread_out(np.array([0.3, 0.2]), np.array([0.2, np.nan]), 0.4).round(2).tolist()
    [0.3, 0.1]
    """
    found = np.asarray(share, dtype=np.float64).copy()
    measured = ~np.isnan(width)
    for movable in [measured] if measured.all() else [~measured, measured]:
        ease = np.where(movable, np.square(np.nan_to_num(width, nan=1.0)), 0.0)
        if not ease.any():
            ease = movable.astype(np.float64)
        while ease.any() and abs(gap := total - found.sum()) > TINY:
            moved = found + gap * ease / ease.sum()
            ease = np.where(moved < 0, 0.0, ease)
            found = np.maximum(moved, 0.0)
    return found


# Beginning of a sentence that puts the shares in doubt.
WARNING = "Warning:"
# Groups with fewer labels drawn by chance have no share.
FEW_LABELS = 10
# Groups up to this number are compared in pairs; more are compared with the largest of them.
PAIRS = 10
# Columns of the tables, for terminal and pages.
COLUMNS = (
    Column("topic"),
    Column("group"),
    Column("share", "share"),
    Column("low", "share"),
    Column("high", "share"),
    Column("documents", "count"),
    Column("labels", "count"),
    Column("difference", "share"),
    Column("change", "share"),
)

Table = dict[str, list[Any]]
# Arrays of a `Prevalence` with one row per group and one column per topic.
ARRAYS = ("share", "low", "high", "labels", "drawn", "variance")


@dataclass(frozen=True, eq=False)
class Prevalence:
    """Shares of topics in a corpus and in its groups, with intervals.

    Parameters
    ----------
    topics : tuple of str
        Known topics, free topics and ``(none)``.
    groups : tuple of str
        ``(all)``, followed by the groups.
    by : Groups or None
        The groups of the documents.
    share, low, high : array (n_groups, n_topics)
        Shares and ends of their intervals.
        Without random labels there is no interval, and so no share: they are NaN.
    documents : array of int (n_groups,)
        Number of documents.
    labels, drawn : array of int (n_groups, n_topics)
        Number of labelled documents, and of labelled documents drawn by chance.
    variance : array (n_groups, n_topics)
        Variance of one label after the correction by predictions, relative to a label alone.
    level : float
        Confidence level.
    sentences : tuple of str
        Assumptions and warnings.
    rests : tuple of str
        The rests among the topics: documents with a topic of a tree, and nothing below it.
    """

    topics: tuple[str, ...]
    groups: tuple[str, ...]
    by: Groups | None
    share: Array
    low: Array
    high: Array
    documents: NDArray[np.int64]
    labels: NDArray[np.int64]
    drawn: NDArray[np.int64]
    variance: Array
    level: float
    sentences: tuple[str, ...] = ()
    rests: tuple[str, ...] = ()

    def __repr__(self) -> str:
        by = "" if self.by is None else f" in {len(self.groups) - 1:,} groups by {self.by.column}"
        return f"<Prevalence: {len(self.topics):,} topics of {self.documents[0]:,} documents{by}; see table()>"

    def take(self, columns: Sequence[int]) -> Prevalence:
        """Return the shares of some topics, by their numbers."""
        fewer: dict[str, Any] = {name: getattr(self, name)[:, columns] for name in ARRAYS}
        topics = tuple(self.topics[k] for k in columns)
        return replace(self, topics=topics, rests=tuple(name for name in self.rests if name in topics), **fewer)

    def without_rests(self) -> Prevalence:
        """Return the shares of topics and of none, without the rests of topics."""
        return self.take([k for k, name in enumerate(self.topics) if name not in self.rests])

    def table(self) -> Table:
        """Return one row per topic and group: topic, group, share, low, high, documents, labels."""
        pairs = [(k, g) for k in range(len(self.topics)) for g in range(len(self.groups)) if self.documents[g]]
        table: Table = {"topic": [self.topics[k] for k, _ in pairs], "group": [self.groups[g] for _, g in pairs]}
        for name in ("share", "low", "high", "documents", "labels"):
            values = np.broadcast_to(getattr(self, name).T, self.share.T.shape)  # documents are the same for all topics
            table[name] = [None if np.isnan(values[pair]) else values[pair].item() for pair in pairs]
        return table

    def differences(self) -> Table:
        """Return differences of shares between groups, with intervals by MOVER; the most certain ones come first.

        Each period is compared with the one before. All pairs of at most ten groups are compared; more groups are
        compared with the largest one.

        Returns
        -------
        dict of columns
            topic, group, other, difference (share in the group minus share in the other), low, high, clear (whether the
            interval excludes 0).
        """
        table: Table = {name: [] for name in ("topic", "group", "other", "difference", "low", "high", "clear")}
        for k in np.flatnonzero(~np.isnan(self.low[0])):
            for a, b in self._pairs():
                both = [a, b]
                if not np.isnan(self.low[both, k]).any():
                    found = mover(self.share[both, k], self.low[both, k], self.high[both, k], [1, -1])
                    _append(table, found, topic=self.topics[k], group=self.groups[a], other=self.groups[b])
        return _most_certain_first(table, "difference")

    def _pairs(self) -> list[tuple[int, int]]:
        filled = [g for g in range(1, len(self.groups)) if self.documents[g]]
        if self.by is not None and self.by.period is not None:
            timed = [g for g in filled if g <= len(self.by.starts)]
            return list(zip(timed[1:], timed[:-1], strict=True))
        if len(filled) <= PAIRS:
            return [(a, b) for i, a in enumerate(filled) for b in filled[i + 1 :]]
        largest = max(filled, key=lambda g: self.documents[g])
        return [(g, largest) for g in filled if g != largest]

    def trend(self) -> Table:
        """Return the mean change of each share per period, by a line through the shares, with intervals by MOVER.

        Periods with more labels count more, and those without a share not at all. Only for groups by time.

        Returns
        -------
        dict of columns
            topic, per (the period), change, low, high, clear (whether the interval excludes 0).
        """
        if self.by is None or self.by.period is None:
            raise ValueError("a trend needs groups by time: pass by='date:month', with a column of dates.")
        table: Table = {name: [] for name in ("topic", "per", "change", "low", "high", "clear")}
        days = np.array([day.toordinal() for day in self.by.starts], dtype=np.float64)
        for k in np.flatnonzero(~np.isnan(self.low[0])):
            groups = 1 + np.flatnonzero(~np.isnan(self.low[1 : len(days) + 1, k]))
            if len(groups) < 2:
                continue
            weight = self.drawn[groups, k] + 1.0
            centred = days[groups - 1] - np.average(days[groups - 1], weights=weight)
            slope = weight * centred / (weight * centred**2).sum() * DAYS[self.by.period]
            found = mover(self.share[groups, k], self.low[groups, k], self.high[groups, k], slope)
            _append(table, found, "change", topic=self.topics[k], per=self.by.period)
        return _most_certain_first(table, "change")

    def needed_labels(self, precision: float) -> Table:
        """Return the random labels that are still needed until each interval is at most ± this wide.

        Parameters
        ----------
        precision : float
            Half of the width of an interval, such as 0.02 for two percentage points.

        Returns
        -------
        dict of columns
            topic, half (present half of the width), more (number of further labels, drawn at random).
        """
        if not 0 < precision < 1:
            raise ValueError(f"precision is {precision}: expected a share such as 0.02, for ± 2 percentage points.")
        table: Table = {"topic": [], "half": [], "more": []}
        n, z = int(self.documents[0]), z_value(self.level)
        for k in np.flatnonzero(~np.isnan(self.low[0])):
            half = float(self.high[0, k] - self.low[0, k]) / 2
            spread = max(self.share[0, k] * (1 - self.share[0, k]), 1e-9) * self.variance[0, k]
            wanted = 1 / ((precision / z) ** 2 / spread + 1 / n)
            more = 0 if half <= precision else max(int(np.ceil(wanted - self.drawn[0, k])), 1)
            for name, value in (("topic", self.topics[k]), ("half", half), ("more", more)):
                table[name].append(value)
        return table

    def advice(self, precision: float) -> str:
        """Return the number of random labels that all intervals need for a given width, in one sentence."""
        table, points = self.needed_labels(precision), f"±{100 * precision:g} points"
        if not table["more"]:
            return f"{points} cannot be planned: no topic has labels that were drawn at random."
        worst = int(np.argmax(table["more"]))
        more = table["more"][worst]
        if not more:
            return f"{points} is reached for every topic."
        done = sum(count == 0 for count in table["more"])
        rounded = max(10 * round(more / 10), 10)
        return (
            f"{points} needs about {rounded:,} more random labels for {table['topic'][worst]!r}; "
            f"{done} of {len(table['more'])} topics have it already."
        )


def _append(table: Table, found: tuple[Array, Array, Array], name: str = "difference", **texts: str) -> None:
    value, low, high = map(float, found)
    row = texts | {name: value, "low": low, "high": high, "clear": bool(low > 0 or high < 0)}
    for column, cell in row.items():
        table[column].append(cell)


def _most_certain_first(table: Table, name: str) -> Table:
    """Sort rows by the distance of a value from 0, relative to its distance from that end of its interval."""
    ends = zip(table[name], table["low"], table["high"], strict=True)
    certainty = [abs(value) / max(value - low if value > 0 else high - value, TINY) for value, low, high in ends]
    order = sorted(range(len(certainty)), key=lambda row: -certainty[row])
    return {column: [values[row] for row in order] for column, values in table.items()}


def prevalence(
    topics: Sequence[str],
    n_known: int,
    sample: Sample,
    predictions: Sequence[Predictions],
    n: int,
    groups: Groups | None = None,
    weights: Array | None = None,
    level: float = 0.95,
    none: bool = True,
    tree: TreeColumns | None = None,
) -> Prevalence:
    """Return shares of all topics.

    Parameters
    ----------
    topics : sequence of str
        Names of the columns of the memberships: known topics, free topics and ``(none)``.
    n_known : int
        Number of known topics.
    sample : Sample
        The labelled documents; its labels have one column per known topic and one for ``(none)``.
    predictions : sequence of Predictions
        Predictions, with the same columns as the labels.
    n : int
        Number of documents.
    groups : Groups, optional
    weights : array (n_documents,), optional
        Survey weights.
    level : float, default=0.95
        Confidence level.
    none : bool, default=True
        Whether documents may have none of the topics; otherwise ``(none)`` is left out.
    tree : TreeColumns, optional
        The tree of the topics: shares then add up, and each topic with others below it has a rest.
    """
    v = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    tree = tree or TreeColumns(Forest((-1,) * n_known))
    found = estimate(sample, predictions, groups, v, level, tree)
    inside = groups or Groups.none(n)
    rests = tree.names(topics)
    width = len(topics) + len(rests)
    places = [*range(n_known), *range(len(topics) - 1, width)]  # columns with labels
    share, low, high = found.share.copy(), found.low.copy(), found.high.copy()
    tree.add_up(sample.labels, share, low, high)
    unknown = found.drawn < FEW_LABELS
    unknown[0] = False
    unknown[:, n_known] |= bool(np.isnan(sample.labels[sample.by_chance, n_known]).any())
    low[unknown] = high[unknown] = np.nan
    share[np.isnan(low)] = np.nan

    def widened(values: NDArray[Any], missing: Any) -> Any:
        every = np.full((len(values), width), missing, dtype=values.dtype)
        every[:, places] = values
        return every

    result = Prevalence(
        (*topics, *rests),
        (ALL, *inside.names),
        groups,
        share=widened(share, np.nan),
        low=widened(low, np.nan),
        high=widened(high, np.nan),
        documents=np.concatenate([[n], inside.counts]),
        labels=widened(found.labels, 0),
        drawn=widened(found.drawn, 0),
        variance=widened(found.variance, 1.0),
        level=level,
        rests=tuple(rests),
    )
    result = replace(result, sentences=tuple(_sentences(result, sample, found, n_known, tree)))
    kept = [k for k in tree.order(len(topics)).tolist() if none or k != len(topics) - 1]
    return result.take(kept)


# --- sentences ---


def _sentences(result: Prevalence, sample: Sample, found: Estimates, n_known: int, tree: TreeColumns) -> list[str]:
    """Return assumptions and warnings."""
    lines = [_assumption(sample)]
    names = [*result.topics[:n_known], NONE]
    if sample.by_chance.any():
        doubts = np.abs(found.doubts[: len(names)])
        apart = [k for k in np.argsort(-doubts) if doubts[k] > SUSPICIOUS]
        if apart:
            named = listed([f"{names[k]} ({'too many' if found.doubts[k] > 0 else 'too few'})" for k in apart])
            lines.append(
                f"{WARNING} the labelled documents do not look like the others. By the predictions, they have {named}."
                " The shares are probably wrong. Draw documents with suggest --for shares, and label them."
            )
    unknown = [names[k] for k in np.flatnonzero(found.drawn[0, :n_known] == 0) if sample.by_chance.any()]
    if unknown:
        lines.append(f"No interval for {listed(unknown)}: no label drawn by chance decides whether a document has it.")
    undecided = int(np.isnan(sample.labels[sample.by_chance, n_known]).sum())
    if undecided and not np.isnan(sample.labels[:, n_known]).all():
        lines.append(
            f"No interval for {NONE}: {undecided:,} random labels leave open whether their documents have none of the "
            "topics, as after the adoption of a topic. Complete them."
        )
    partly = np.isnan(sample.labels[:, :n_known]).any(axis=0) & (found.drawn[0, :n_known] > 0)
    lower = np.array(tree.forest.parents) >= 0
    for which, others in ((partly & ~lower, "the others"), (partly & lower, "the others with the same topic above")):
        if which.any():
            lines.append(
                f"Labels are incomplete for {listed([names[k] for k in np.flatnonzero(which)])}: documents with "
                f"unknown labels are assumed to be like {others}."
            )
    if several := set(tree.below) - set(tree.excluding(sample.labels)):
        lines.append(
            f"Documents may have several topics below {listed([names[k] for k in sorted(several)])}: the shares below "
            "then add up to more."
        )
    if len(result.topics) - len(result.rests) > n_known + 1:
        lines.append("Free topics have no labels, so their shares are not known.")
    drawn = found.drawn.max(axis=1, initial=0)
    few = [
        f"{name} ({drawn[g]})"
        for g, name in enumerate(result.groups)
        if g and drawn[g] < FEW_LABELS and result.documents[g]
    ]
    if few:
        lines.append(f"Groups with fewer than {FEW_LABELS} labels drawn by chance have no share: {listed(few)}.")
    return [*lines, *(result.by.notes if result.by else ())]


def _assumption(sample: Sample) -> str:
    """Return the assumption about the origin of the labels."""
    kind = sample.origin.kind
    n = {name: int((kind == name).sum()) for name in Kind}
    if not len(kind):
        return f"There are no labels, so no share is known: {AT_RANDOM}."
    if not sample.by_chance.any():
        return f"No label is known to be drawn at random, so no share is known: {AT_RANDOM}. {IF_RANDOM}"
    how = {Kind.RANDOM: "drawn at random", Kind.DOUBT: "drawn by doubt with known probability"}
    parts = [f"{n[kind]:,} {text}" for kind, text in how.items() if n[kind]]
    alone = n[Kind.SUGGESTED] + n[Kind.UNKNOWN]
    text = f"Labels: {' and '.join(parts)}"
    if alone:
        text += f"; {alone:,} others were chosen in another way and stand for themselves alone"
    return f"{text}."
