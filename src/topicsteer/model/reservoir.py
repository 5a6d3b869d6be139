"""The documents that a model keeps for later updates: the labelled ones, and a sample of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.backends import as_rows
from topicsteer.estimator import TSNMF
from topicsteer.guidance.train import BACKGROUND
from topicsteer.labels.supervision import Supervision
from topicsteer.nmf.blocks import slices
from topicsteer.nmf.protocols import Rows
from topicsteer.nmf.statistics import History, widened
from topicsteer.system.types import Array

ROWS = 1 << 16  # documents whose sums are made at once


@dataclass(frozen=True, eq=False)
class Reservoir:
    """The documents that are at hand: the labelled ones, and a sample of the others.

    Parameters
    ----------
    rows : array of int (n_rows,)
        Which documents, in their order.
    X : CSR (n_rows, n_terms)
        Their terms.
    keys : array (n_rows,)
        Drawn at random when a document came, and larger the older it is where old ones are forgotten: of the unlabelled
        documents those with the smallest keys stay, which is a sample of all that ever came.
    embeddings : array (n_rows, any), optional
        Of these documents.
    """

    rows: NDArray[np.int64]
    X: sp.csr_array
    keys: NDArray[np.float64]
    embeddings: Array | None = None

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where documents are in the hand, -1 for those that are not."""
        at = np.minimum(np.searchsorted(self.rows, rows), max(len(self.rows) - 1, 0))
        return np.where(self.rows[at] == rows, at, -1) if len(self.rows) else np.full(len(rows), -1)

    def select(self, chosen: NDArray[Any]) -> Reservoir:
        """Some of them."""
        E = None if self.embeddings is None else self.embeddings[chosen]
        return Reservoir(self.rows[chosen], self.X[chosen], self.keys[chosen], E)

    def join(self, other: Reservoir) -> Reservoir:
        """Both, in the order of the documents."""
        n_terms = max(self.X.shape[1], other.X.shape[1])
        X = sp.vstack([widened(self.X, n_terms), widened(other.X, n_terms)], format="csr")
        E = None
        if self.embeddings is not None and other.embeddings is not None:
            E = np.vstack([self.embeddings, other.embeddings])
        both = Reservoir(np.append(self.rows, other.rows), sp.csr_array(X), np.append(self.keys, other.keys), E)
        return both.select(np.argsort(both.rows, kind="stable"))


def surplus(keys: NDArray[np.float64], labelled: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """For each document whether it has to go so that no more unlabelled ones stay than a guide learns from."""
    others = np.flatnonzero(~labelled)
    leave = np.zeros(len(keys), dtype=np.bool_)
    leave[others[np.argsort(keys[others], kind="stable")[BACKGROUND:]]] = True
    return leave


def retain(
    rows: Rows,
    estimator: TSNMF,
    supervision: Supervision,
    weights: Array,
    penalties: sp.csr_array | Rows | None,
    embeddings: Array | None,
    seed: int,
) -> tuple[Reservoir, History]:
    """What a later update needs of the documents of a fit: some of them, and the sums of the others."""
    n = rows.shape[0]
    keys = np.random.default_rng([seed, 0]).exponential(size=n)
    leave = surplus(keys, supervision.labelled)
    history = History.empty(rows.shape[1], len(estimator.components_), rows.dtype)
    gone, stay = np.flatnonzero(leave), np.flatnonzero(~leave)
    penalties = None if penalties is None else as_rows(penalties)
    for part in slices(len(gone), ROWS):
        some = gone[part]
        own = None if penalties is None else penalties.take(some)
        history += summarise_rows(estimator, rows.take(some), estimator.document_topics_[some], weights[some], own)
    X = rows.take(stay) if rows.matrix is None or gone.size else rows.matrix
    E = embeddings if embeddings is None or not gone.size else embeddings[stay]
    return Reservoir(stay, X, keys[stay], E), history


def summarise_rows(
    estimator: TSNMF, X: sp.csr_array, W: Array, weight: Array, penalties: sp.csr_array | None
) -> History:
    """The sums of documents with these weights of their topics and of their own."""
    return History.of(X, W, weight, penalties, float(estimator.alpha_W * X.shape[1] * estimator.l1_ratio))
