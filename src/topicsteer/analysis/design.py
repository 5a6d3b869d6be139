"""The labelled documents as a sample of the corpus: how many documents each of them stands for.

Documents are labelled in rounds. Some rounds are draws by chance: at random, or with a known probability. Each draw
takes place among the documents without a label so far. Together with all earlier labels, it estimates all documents.
The estimates of several draws are combined, and more precise ones have more weight.

A document that a rule or a person chose stands for itself, but only in the estimates of later draws: earlier draws took
place with the document among the others. If the order is unknown, it counts half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from topicsteer.analysis.suggest import SAME
from topicsteer.labels.origin import Kind, Origin
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, Supervision
from topicsteer.system.types import Array

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
        """Whether each document was drawn by chance. Labels of unknown origin count as random if all of them are."""
        kind = self.origin.kind
        if (kind == Kind.UNKNOWN).all():
            return np.ones(len(kind), dtype=np.bool_)
        return np.isin(kind, (Kind.RANDOM, Kind.DOUBT))

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
        """A random fold of each labelled document; documents of one cluster share it. Topics play no role.

        Examples
        --------
        >>> sample = Sample(np.arange(4), np.ones((4, 1)), Origin.unknown(4), np.array([0, 1, 2, 2]))
        >>> sample.folds(2, 0).tolist()
        [0, 0, 1, 1]
        """
        names, cluster = np.unique(self.clusters, return_inverse=True)
        numbers = np.arange(len(names)) % max(min(n_folds, len(names)), 1)
        return np.asarray(np.random.default_rng(seed).permutation(numbers)[cluster], dtype=np.int64)


def label_values(supervision: Supervision, rows: NDArray[np.integer]) -> Array:
    """Labels of documents as 1, 0 and NaN (unknown), with a last column for none of the topics."""
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
