"""The measures of the paper: topics and true labels, matched by their documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Matrix: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix

# Scaled weights below this count as 0, as in the code of the paper's authors.
CUTOFF = 0.001
# A topic with more than this similarity to its label counts as found, as in the paper.
RESOLVED = 0.1


@dataclass(frozen=True, eq=False)
class Matching:
    """A one-to-one match of found and true topics.

    Parameters
    ----------
    found : array of int (n_true,)
        The found topic that matches each true topic; -1 if none was left.
    similarity : array (n_true,)
        Similarity of the two; 0 if none was left.
    """

    found: NDArray[np.int64]
    similarity: Array

    @property
    def mean(self) -> float:
        """Mean similarity over the true topics."""
        return float(self.similarity.mean())

    def resolved(self, threshold: float = RESOLVED) -> int:
        """Return the number of true topics with more similarity to their match than the threshold."""
        return int((self.similarity > threshold).sum())


def scale_weights(W: Matrix) -> sp.csc_array:
    """Divide topic weights by the largest, as the paper's authors do, and set the smallest to 0.

    Examples
    --------
    >>> scale_weights([[4.0, 1.0], [0.001, 1.0]]).toarray()
    array([[1.  , 0.25],
           [0.  , 0.25]])
    """
    weights = _matrix(W)
    weights = sp.csc_array(weights / max(weights.max(), 1e-300) if weights.nnz else weights)
    weights.data[weights.data < CUTOFF] = 0
    weights.eliminate_zeros()
    return weights


def weighted_jaccard(A: Matrix, B: Matrix) -> Array:
    """Return the weighted Jaccard similarity Σ min(a, b) / Σ max(a, b) of each column of A with each of B.

    Parameters
    ----------
    A : {array-like, sparse matrix} of shape (n_documents, n_found)
        Non-negative weights.
    B : {array-like, sparse matrix} of shape (n_documents, n_true)
        Non-negative weights of other topics; often 0 and 1.

    Returns
    -------
    array (n_found, n_true)
        Between 0 and 1; 0 for two empty columns.

    Examples
    --------
    >>> weighted_jaccard([[1.0, 0.0], [0.5, 0.5]], [[1, 0], [1, 1]])
    array([[0.75, 0.25],
           [0.25, 0.5 ]])
    """
    A, B = sp.csc_array(_matrix(A)), sp.csc_array(_matrix(B))
    if A.shape[0] != B.shape[0]:
        raise ValueError(f"A has {A.shape[0]} documents and B has {B.shape[0]}: they need the same documents.")
    binary = not A.nnz or (A.data.max() <= 1 and (B.data == 1).all())
    # If a <= 1 and b is 0 or 1, min(a, b) = a b.
    shared = np.asarray((A.T @ B).toarray()) if binary else _sums_of_minima(A, B)
    # max(a, b) = a + b - min(a, b).
    united = np.asarray(A.sum(axis=0)).reshape(-1, 1) + np.asarray(B.sum(axis=0)).reshape(1, -1) - shared
    return np.asarray(np.divide(shared, united, out=np.zeros_like(shared), where=united > 0))


def match_topics(similarity: ArrayLike) -> Matching:
    """Match found and true topics one to one, with the largest total similarity (Hungarian algorithm).

    Parameters
    ----------
    similarity : array (n_found, n_true)
        Such as the result of `weighted_jaccard`.

    Returns
    -------
    Matching

    Examples
    --------
    >>> matching = match_topics([[0.9, 0.8], [0.7, 0.05]])
    >>> matching.found, matching.mean, matching.resolved()
    (array([1, 0]), 0.75, 2)
    """
    from scipy.optimize import linear_sum_assignment  # slow to import, and rarely needed

    values = np.asarray(similarity, dtype=np.float64)
    found = np.full(values.shape[1], -1, dtype=np.int64)
    similar = np.zeros(values.shape[1])
    rows, columns = linear_sum_assignment(values, maximize=True)
    found[columns], similar[columns] = rows, values[rows, columns]
    return Matching(found, similar)


def compare_topics(W: Matrix, truth: Matrix) -> Matching:
    """Match the topics of a model to true labels as in the paper: scaled weights, weighted Jaccard, best match.

    Parameters
    ----------
    W : {array-like, sparse matrix} of shape (n_documents, n_topics)
        Weights of the found topics.
    truth : {array-like, sparse matrix} of shape (n_documents, n_true)
        1 where a document has the label, else 0.

    Returns
    -------
    Matching

    Examples
    --------
    >>> matching = compare_topics([[0.0, 3.0], [1.0, 0.0], [0.0, 3.0]], [[1, 0], [0, 1], [1, 0]])
    >>> matching.found, matching.similarity.round(2)
    (array([1, 0]), array([1.  , 0.33]))
    """
    return match_topics(weighted_jaccard(scale_weights(W), truth))


def _sums_of_minima(A: sp.csc_array, B: sp.csc_array) -> Array:
    """Σ min(a, b) for each pair of columns, one column of B at a time."""
    rows_of_A = sp.csr_array(A)
    sums = np.zeros((A.shape[1], B.shape[1]))
    for k in range(B.shape[1]):
        entries = slice(B.indptr[k], B.indptr[k + 1])
        block = rows_of_A[B.indices[entries]]
        limits = np.repeat(B.data[entries], np.diff(block.indptr))
        sums[:, k] = np.bincount(block.indices, np.minimum(block.data, limits), minlength=A.shape[1])
    return sums


def _matrix(values: Matrix) -> sp.csr_array:
    """Convert any matrix to sparse float64, and check that it is non-negative."""
    values = values if sp.issparse(values) else np.atleast_2d(np.asarray(values))
    matrix = sp.csr_array(values, dtype=np.float64)
    if matrix.nnz and not matrix.data.min() >= 0:
        raise ValueError("a matrix of weights has a negative number or NaN: weights must be 0 or more.")
    return matrix
