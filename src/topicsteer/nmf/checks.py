"""Checks of everything numeric that a user passes in: the matrix, the weights, and whether memory will do."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from topicsteer.system.memory import refuse_beyond_memory


def check_matrix(estimator: Any, X: Any, *, reset: bool) -> sp.csr_array:
    """X as CSR with sorted 32-bit columns, non-negative and finite; notes its features in the estimator."""
    if isinstance(X, list | tuple) and X and isinstance(X[0], str):
        raise ValueError(
            f"X holds texts, but {type(estimator).__name__} takes a matrix of documents and terms: use TopicModel, "
            "or put a vectoriser before it, make_pipeline(TfidfVectorizer(), TSNMF())."
        )
    if not sp.issparse(X) and len(getattr(X, "shape", ())) == 2:
        refuse_beyond_memory(X.shape[0] * X.shape[1] * 8, f"X is dense and, with {X.shape[0]} × {X.shape[1]} entries,")
    X = validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    X = sp.csr_array(X)
    if X.nnz and not (X.data.min() >= 0 and X.data.max() < np.inf):  # NaN fails both
        raise ValueError(_bad_entry(X, type(estimator).__name__))
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    X.indices = X.indices.astype(np.int32, copy=False)
    return X


def _bad_entry(X: sp.csr_array, name: str) -> str:
    """Where the first negative, NaN or infinite entry is; scikit-learn's own words first, as its checks demand."""
    bad, words = ~np.isfinite(X.data), "Input X contains NaN or infinity."
    if not bad.any():
        bad, words = X.data < 0, f"Negative values in data passed to {name}."
    first = int(np.argmax(bad))
    row = int(np.searchsorted(X.indptr, first, side="right")) - 1
    return (
        f"{words} The first of {bad.sum()} is {X.data[first]:g} in row {row}, column {X.indices[first]}. "
        "Topics need counts or weights that are finite and not negative: remove or repair these entries."
    )


def check_sample_weight(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """One weight a document, in an array of its own."""
    weight = np.ones(n) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}; expected one number a document, {(n,)}.")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError("sample_weight must be finite and not negative, with at least one above zero.")
    return weight


def check_penalties(penalties: Any, n: int, d: int) -> sp.csr_array | None:
    """The price of each pair that is permitted, as CSR with what is infinite left out."""
    if penalties is None:
        return None
    given: Any = sp.csr_array(penalties) if sp.issparse(penalties) else np.asarray(penalties, dtype=np.float64)
    if given.shape != (n, d):
        raise ValueError(f"penalties has shape {given.shape}; expected a row a document, a column a topic, {(n, d)}.")
    if sp.issparse(given):
        rows, topics, prices = np.repeat(np.arange(n), np.diff(given.indptr)), given.indices, given.data
    else:
        (rows, topics), prices = np.indices((n, d)).reshape(2, -1), given.ravel()
    if not (prices >= 0).all():
        raise ValueError("penalties has negative or NaN entries; infinity is what forbids a topic.")
    kept = np.isfinite(prices)
    shut = np.setdiff1d(rows[~kept], rows[kept]) if not kept.all() else rows[:0]
    if shut.size:
        raise ValueError(f"penalties forbids every topic in row {shut[0]}: permit one, or store nothing there.")
    return sp.csr_array((prices[kept], (rows[kept], topics[kept])), shape=(n, d))


def check_error_weight(error_weight: Any, X: sp.csr_array, solver: str) -> Any:
    """The full E in the type of X, or None."""
    if error_weight is None:
        return None
    if solver != "mu":
        raise ValueError(
            'error_weight, the full E, needs solver="mu". For one weight a document use sample_weight or label_weight.'
        )
    E = sp.csr_array(error_weight) if sp.issparse(error_weight) else np.asarray(error_weight)
    if E.shape != X.shape:
        raise ValueError(f"error_weight has shape {E.shape}; it needs that of X, {X.shape}.")
    entries = np.asarray(E.data if sp.issparse(E) else E)
    if not (np.isfinite(entries).all() and (entries >= 0).all()):
        raise ValueError("error_weight has negative, NaN or infinite entries.")
    return E.astype(X.dtype, copy=False)


def check_start(init: Any, n: int, d: int, t: int, dtype: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """A start given as a pair (W, H), copied."""
    W, H = (np.array(part, dtype=dtype) for part in init)
    if W.shape != (n, d) or H.shape != (d, t):
        raise ValueError(
            f"init=(W, H) has shapes {W.shape} and {H.shape}; X and the topics ask for {(n, d)} and {(d, t)}."
        )
    if not (np.isfinite(W).all() and np.isfinite(H).all() and (W >= 0).all() and (H >= 0).all()):
        raise ValueError("init=(W, H) has negative, NaN or infinite entries; both must be non-negative.")
    return W, H
