"""Retained documents: the labelled ones and a sample of the others, for later updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.backends import as_rows
from topicsteer.estimator import TSNMF
from topicsteer.guidance.sample import BACKGROUND
from topicsteer.labels.supervision import Supervision
from topicsteer.nmf.blocks import slices
from topicsteer.nmf.protocols import Rows
from topicsteer.nmf.statistics import History, widened
from topicsteer.system.types import Array

# Number of documents summarised at a time.
ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class Reservoir:
    """Retained documents: the labelled ones and a sample of the others (reservoir sampling).

    Parameters
    ----------
    rows : array of int (n_rows,)
        Rows of the model, ascending.
    X : CSR (n_rows, n_terms)
        Terms of the documents.
    keys : array (n_rows,)
        Random sort keys. The unlabelled documents with the smallest keys stay, so they are a random sample of all. A
        forget factor raises the keys of older documents.
    embeddings : array (n_rows, any), optional
        Embeddings of the documents.
    """

    rows: NDArray[np.int64]
    X: sp.csr_array
    keys: NDArray[np.float64]
    embeddings: Array | None = None

    def positions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Position of each row of the model in the reservoir; -1 for a row that is not retained."""
        at = np.minimum(np.searchsorted(self.rows, rows), max(len(self.rows) - 1, 0))
        return np.where(self.rows[at] == rows, at, -1) if len(self.rows) else np.full(len(rows), -1)

    def select(self, chosen: NDArray[Any]) -> Reservoir:
        """A subset."""
        E = None if self.embeddings is None else self.embeddings[chosen]
        return Reservoir(self.rows[chosen], self.X[chosen], self.keys[chosen], E)

    def join(self, other: Reservoir) -> Reservoir:
        """Both reservoirs as one, in the order of the rows."""
        n_terms = max(self.X.shape[1], other.X.shape[1])
        X = sp.vstack([widened(self.X, n_terms), widened(other.X, n_terms)], format="csr")
        E = None
        if self.embeddings is not None and other.embeddings is not None:
            E = np.vstack([self.embeddings, other.embeddings])
        both = Reservoir(np.append(self.rows, other.rows), sp.csr_array(X), np.append(self.keys, other.keys), E)
        return both.select(np.argsort(both.rows, kind="stable"))


def surplus(keys: NDArray[np.float64], labelled: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark unlabelled documents that exceed the number of background documents of a guide."""
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
    """Choose the documents to retain, and summarise the others."""
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
    """Sufficient statistics of documents with topic weights W and document weights."""
    return History.of(X, W, weight, penalties, float(estimator.alpha_W * X.shape[1] * estimator.l1_ratio))
