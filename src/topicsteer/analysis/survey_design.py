"""Labelled documents as a sample of the corpus: how they are drawn, how many documents each stands for, intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm

from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, Kind, Origin, Supervision
from topicsteer.system.types import Array

# Documents with at least this cosine similarity do not enter the same batch.
SAME = 0.95
# How to get a random sample: the sentence of every figure that needs one.
AT_RANDOM = (
    "label 50 documents at random, drawn with suggest --for shares -n 50 --out next.xlsx "
    '(model.labels.suggest(50, how="shares") in Python)'
)

IF_RANDOM = (
    'If labels were drawn at random, record it: "random" in a column chosen of the table, or fit(..., chosen="random").'
)


def z_value(level: float) -> float:
    """Return the quantile of the normal distribution for a two-sided interval."""
    return float(norm.ppf(0.5 + level / 2))


def wilson(share: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """Wilson's interval of a share that was measured on n documents; n may be a fraction, and 0 gives 0 to 1.

    Parameters
    ----------
    share, n : array
        Shares from 0 to 1, and numbers of documents.
    level : float, default=0.95
        Confidence level.

    Returns
    -------
    (array, array)
        Lower and upper ends.

    Examples
    --------
    >>> low, high = wilson(15 / 148, 148)  # an example of Newcombe (1998)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0624, 0.1605)
    """
    z2 = z_value(level) ** 2
    share, n = np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64)
    centre = (n * share + z2 / 2) / (n + z2)
    half = np.sqrt(z2 * (n * share * (1 - share) + z2 / 4)) / (n + z2)
    return np.maximum(centre - half, 0), np.minimum(centre + half, 1)


def mover(estimates: ArrayLike, low: ArrayLike, high: ArrayLike, coefficients: ArrayLike) -> tuple[Array, Array, Array]:
    """A weighted sum of independent estimates with its interval, from the intervals of each (Zou and Donner 2008).

    With the coefficients 1 and -1, and Wilson's intervals, this is Newcombe's interval of a difference.

    Parameters
    ----------
    estimates, low, high : array (n, ...)
        Estimates with the ends of their intervals.
    coefficients : array (n,)

    Returns
    -------
    (array, array, array)
        The sum, and the ends of its interval.

    Examples
    --------
    >>> shares, n = np.array([56 / 70, 48 / 80]), np.array([70, 80])  # an example of Newcombe (1998)
    >>> _, low, high = mover(shares, *wilson(shares, n), [1, -1])
    >>> round(float(low), 4), round(float(high), 4)
    (0.0524, 0.3339)
    """
    estimates, low, high = (np.asarray(a, dtype=np.float64) for a in (estimates, low, high))
    c = np.asarray(coefficients, dtype=np.float64).reshape(-1, *[1] * (estimates.ndim - 1))
    least, most = np.where(c > 0, low, high), np.where(c > 0, high, low)
    found = (c * estimates).sum(axis=0)
    below = np.sqrt(np.square(c * (estimates - least)).sum(axis=0))
    above = np.sqrt(np.square(c * (estimates - most)).sum(axis=0))
    return found, found - below, found + above


# Labelled documents per block, while near duplicates are looked for.
BLOCK = 2048


@dataclass(frozen=True, eq=False)
class Sample:
    """The labelled documents.

    Parameters
    ----------
    rows : array of int (n,)
        Row numbers of the labelled documents.
    labels : array (n, n_topics)
        1 = has the topic, 0 = lacks it, NaN = unknown.
    origin : Origin
        How each of them was chosen; of the labelled documents alone.
    clusters : array of int (n,)
        Documents with the same number are not independent of each other, such as near duplicates.
    """

    rows: NDArray[np.int64]
    labels: Array
    origin: Origin
    clusters: NDArray[np.int64]

    @property
    def by_chance(self) -> NDArray[np.bool_]:
        """Whether each document was drawn by chance. Labels of unknown origin were not."""
        return self.origin.by_chance

    def weights(self, own: Array, total: float, doubt: Array) -> tuple[Array, Array]:
        """The weight of the documents that each labelled document stands for; without a draw, only for themselves.

        The second array is the part of this weight that varies by chance. A document that was drawn for sure, or that
        stands only for itself, does not vary: the corpus is finite.

        Parameters
        ----------
        own : array (n,)
            Weight of each labelled document itself, such as 1.
        total : float
            Weight of all documents.
        doubt : array (n,)
            Expected squared error of the predictions for each document; it decides which draw counts more.

        Examples
        --------
        >>> origin = Origin.of({"chosen": ["random 2"] * 4 + ["suggested"]}, 5)
        >>> sample = Sample(np.arange(5), np.ones((5, 1)), origin, np.arange(5))
        >>> weight, varying = sample.weights(np.ones(5), 100.0, np.ones(5))
        >>> weight.tolist(), varying.round(2).tolist()
        ([24.75, 24.75, 24.75, 24.75, 1.0], [24.24, 24.24, 24.24, 24.24, 0.0])
        """
        kind, chance = self.origin.kind, self.by_chance
        rounds = np.where(kind == Kind.UNKNOWN, 0, self.origin.draw)
        each, varying, precision = [], [], []
        for number in np.unique(rounds[chance]):
            inside = chance & (rounds == number)
            before = np.where(rounds < number, own, np.where((rounds == number) & ~chance, own / 2, 0.0))
            raised = np.where(inside, own / np.where(kind == Kind.DOUBT, self.origin.probability, 1.0), 0.0)
            if not raised.any():  # documents without weight
                continue
            raised *= (total - before.sum()) / raised.sum()
            variance = raised * np.maximum(raised - own, 0)
            each.append(before + raised)
            varying.append(variance)
            precision.append(1 / max((variance * doubt).sum(), 1e-12 * total**2))
        if not each:
            return np.asarray(own, dtype=np.float64), np.zeros(len(own))
        part = np.array(precision) / np.sum(precision)
        return part @ np.array(each), np.sqrt(part**2 @ np.array(varying))

    def folds(self, n_folds: int, seed: int) -> NDArray[np.int64]:
        """Return a random fold of each labelled document; documents of one cluster share it. Topics play no role.

        Examples
        --------
        >>> sample = Sample(np.arange(4), np.ones((4, 1)), Origin.random(4), np.array([0, 1, 2, 2]))
        >>> sample.folds(2, 0).tolist()
        [0, 0, 1, 1]
        """
        names, cluster = np.unique(self.clusters, return_inverse=True)
        numbers = np.arange(len(names)) % max(min(n_folds, len(names)), 1)
        return np.asarray(np.random.default_rng(seed).permutation(numbers)[cluster], dtype=np.int64)


def label_values(supervision: Supervision, rows: NDArray[np.integer]) -> Array:
    """Return labels of documents as 1, 0 and NaN (unknown), with a last column for none of the topics."""
    states = supervision.patterns[supervision.pattern[rows]]
    known = np.where(states == PERMITTED, 1.0, np.where(states == FORBIDDEN, 0.0, np.nan))
    none = np.where((states == PERMITTED).any(axis=1), 0.0, np.where((states == FORBIDDEN).all(axis=1), 1.0, np.nan))
    return np.column_stack([known, none])


def same_texts(X: sp.csr_array, given: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Clusters of documents with nearly the same terms; documents of one given cluster stay together.

    Parameters
    ----------
    X : CSR (n, n_terms)
        Documents as rows of unit length.
    given : array of int (n,), optional
        Clusters of the user.

    Examples
    --------
    >>> same_texts(sp.csr_array(np.array([[1.0, 0], [0, 1], [1, 0]]))).tolist()
    [0, 1, 0]
    """
    n, pairs = X.shape[0], []
    for first in range(0, n, BLOCK):
        near = sp.coo_array(X[first : first + BLOCK] @ X.T)
        kept = near.data >= SAME
        pairs.append(np.stack([near.coords[0][kept] + first, near.coords[1][kept]]))
    if given is not None:
        order = np.argsort(given, kind="stable")
        same = given[order[1:]] == given[order[:-1]]
        pairs.append(np.stack([order[1:][same], order[:-1][same]]))
    rows, columns = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), dtype=np.int64)
    graph = sp.coo_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


# Part of a draw by doubt that is spread evenly, so that no document has a tiny probability.
EVEN = 0.3
# A share of a topic below this many expected documents counts as this many.
LEAST = 5.0


def doubt_probabilities(memberships: Array, n: int) -> Array:
    """Return probabilities of a draw of n documents, larger where the memberships are in doubt.

    The doubt of a document is the standard deviation of its topics, each relative to the standard deviation of the
    topic: √Σ p (1 - p) / (s (1 - s)), where s is the mean of p.

    Parameters
    ----------
    memberships : array (n_documents, n_topics)
        Memberships of the documents to draw from.
    n : int
        Number of documents to draw.

    Returns
    -------
    array (n_documents,)
        Their sum is n.

    Examples
    --------
    >>> doubt_probabilities(np.array([[0.0], [0.5], [1.0], [0.5]]), 2).round(2).tolist()
    [0.15, 0.85, 0.15, 0.85]
    """
    p = np.clip(np.asarray(memberships, dtype=np.float64), 0, 1)
    size = len(p)
    n = min(n, size)
    share = np.clip(p.mean(axis=0), min(LEAST / max(size, 1), 0.5), 0.5)
    doubt = np.sqrt((p * (1 - p) / (share * (1 - share))).sum(axis=1))
    doubt = doubt / doubt.sum() if doubt.any() else np.full(size, 1 / max(size, 1))
    found = n * (EVEN / max(size, 1) + (1 - EVEN) * doubt)
    while (found > 1).any():  # what exceeds certainty goes to the others
        sure = found >= 1
        rest = found[~sure].sum()
        found = np.where(sure, 1.0, found * ((n - sure.sum()) / rest if rest else 1.0))
    return found


def draw(probabilities: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw documents, each with its probability; their number is the sum of the probabilities.

    Systematic sampling in random order: the documents are laid end to end, each as long as its probability. Every point
    of a grid of step 1 with a random start draws one of them.

    Examples
    --------
    >>> draw(np.array([1.0, 0.0, 1.0]), np.random.default_rng(0)).tolist()
    [0, 2]
    """
    order = rng.permutation(len(probabilities))
    ends = np.cumsum(probabilities[order])
    total = round(float(ends[-1])) if len(ends) else 0
    points = np.minimum(rng.random() + np.arange(total), ends[-1] if total else 0)
    return np.sort(order[np.minimum(np.searchsorted(ends, points), max(len(ends) - 1, 0))])
