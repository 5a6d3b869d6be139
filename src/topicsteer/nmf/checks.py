"""Checks of user input (settings, matrix, weights), and warnings about probable mistakes."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from topicsteer.nmf.blocks import canonical, check_scale
from topicsteer.nmf.protocols import Problem, Result, Rows
from topicsteer.nmf.rules import RULES
from topicsteer.system.failures import warn_user
from topicsteer.system.memory import refuse_beyond_memory
from topicsteer.system.sparse import checked_csr
from topicsteer.system.types import Array


def check_matrix(estimator: object, X: Any, *, reset: bool) -> sp.csr_array:
    """Return X as a finite, non-negative CSR with sorted 32-bit columns; the estimator records its features."""
    if isinstance(X, list | tuple) and X and isinstance(X[0], str):
        raise ValueError(
            f"X holds texts, but {type(estimator).__name__} takes a matrix of documents and terms. Use TopicModel, "
            "or vectorise the texts first: make_pipeline(TfidfVectorizer(), TSNMF())."
        )
    if not sp.issparse(X) and len(getattr(X, "shape", ())) == 2:
        refuse_beyond_memory(X.shape[0] * X.shape[1] * 8, f"X is dense and, with {X.shape[0]} × {X.shape[1]} entries,")
    X = checked_csr(X) if sp.issparse(X) else X
    X = validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    X = sp.csr_array(X)
    if X.nnz and not (X.data.min() >= 0 and X.data.max() < np.inf):  # NaN fails both
        raise ValueError(_bad_entry(X, type(estimator).__name__))
    check_scale(float(X.data.max(initial=0)))
    X = canonical(X)
    X.indices = X.indices.astype(np.int32, copy=False)
    return X


def _bad_entry(X: sp.csr_array, name: str) -> str:
    """A message that locates the first bad entry; it begins with scikit-learn's wording, as its checks require."""
    bad, problem = ~np.isfinite(X.data), "Input X contains NaN or infinity."
    if not bad.any():
        bad, problem = X.data < 0, f"Negative values in data passed to {name}."
    first = int(np.argmax(bad))
    row = int(np.searchsorted(X.indptr, first, side="right")) - 1
    return (
        f"{problem} The first of {bad.sum()} is {X.data[first]:g} in row {row}, column {X.indices[first]}. "
        "Counts or weights must be finite and not negative: remove or repair these entries."
    )


def check_sample_weight(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """One weight per document, in a new array."""
    weight = np.ones(n) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}; expected one number per document, {(n,)}.")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError("sample_weight must be finite and not negative, with at least one value above zero.")
    return weight


def check_penalties(penalties: object, n: int | None, d: int) -> sp.csr_array:
    """The finite penalties as a CSR of n rows, or of any number of rows if n is None."""
    given = checked_csr(penalties, "penalties") if sp.issparse(penalties) else np.asarray(penalties, dtype=np.float64)
    n = int(given.shape[0]) if n is None else n
    if given.shape != (n, d):
        raise ValueError(
            f"penalties has shape {given.shape}; expected one row per document and one column per topic, {(n, d)}."
        )
    values = given.ravel() if isinstance(given, np.ndarray) else given.data
    if not (values >= 0).all():
        raise ValueError("penalties has negative or NaN entries; use infinity to forbid a topic.")
    kept = np.isfinite(values)
    if kept.all() and not isinstance(given, np.ndarray):
        return given
    if isinstance(given, np.ndarray):
        rows, topics = np.indices((n, d)).reshape(2, -1)
    else:
        rows, topics = np.repeat(np.arange(n), np.diff(given.indptr)), given.indices
    shut = np.setdiff1d(rows[~kept], rows[kept]) if not kept.all() else rows[:0]
    if shut.size:
        raise ValueError(
            f"penalties forbids every topic in row {shut[0]}: permit at least one topic, or leave the row empty."
        )
    return sp.csr_array((values[kept], (rows[kept], topics[kept])), shape=(n, d))


def check_error_weight(error_weight: object, X: Rows, solver: str) -> sp.csr_array | Array | None:
    """The full E in the precision of X, or None."""
    if error_weight is None:
        return None
    if not RULES[solver].multiplicative:
        raise ValueError(
            'error_weight, the full E, needs solver="mu". For one weight per document: sample_weight or label_weight.'
        )
    E = checked_csr(error_weight, "error_weight") if sp.issparse(error_weight) else np.asarray(error_weight)
    if E.shape != X.shape:
        raise ValueError(f"error_weight has shape {E.shape}; expected the shape of X, {X.shape}.")
    entries = np.asarray(E.data if sp.issparse(E) else E)
    if not (np.isfinite(entries).all() and (entries >= 0).all()):
        raise ValueError("error_weight has negative, NaN or infinite entries.")
    return E.astype(X.dtype, copy=False)


def check_start(init: tuple[ArrayLike, ArrayLike], X: Rows, d: int) -> tuple[Array, Array]:
    """A copy of a start that is a pair (W, H)."""
    n, t = X.shape
    W, H = (np.array(factor, dtype=X.dtype) for factor in init)
    if W.shape != (n, d) or H.shape != (d, t):
        raise ValueError(f"init=(W, H) has shapes {W.shape} and {H.shape}; expected {(n, d)} and {(d, t)}.")
    if not (np.isfinite(W).all() and np.isfinite(H).all() and (W >= 0).all() and (H >= 0).all()):
        raise ValueError("init=(W, H) has negative, NaN or infinite entries; both must be non-negative.")
    return W, H


# --- warnings ---


def warn_of_labels(problem: Problem) -> None:
    """Warn about labels that look like mistakes; penalties tie topics without labels to documents."""
    supervision = problem.supervision
    guided = problem.penalties is not None
    unlabelled = [supervision.topics[k] for k in np.flatnonzero(supervision.counts == 0) if k >= problem.old]
    if unlabelled and not guided:
        warn_user(
            f"No document is labelled with {_listed(unlabelled)}: "
            f"{'this topic starts' if len(unlabelled) == 1 else 'these topics start'} like a free topic."
        )
    spellings: dict[str, list[Hashable]] = {}
    for name in supervision.topics:
        spellings.setdefault(str(name).casefold(), []).append(name)
    twice = [" and ".join(map(repr, names)) for names in spellings.values() if len(names) > 1]
    if twice and not problem.old:
        warn_user(
            f"Topics that differ only in capital letters: {_listed(twice)}. If they are one topic, spell them alike."
        )
    empty = np.flatnonzero((problem.rows.sizes == 0) & supervision.labelled)
    if empty.size:
        rows = _listed(empty.tolist())
        warn_user(f"Labelled but without any term, so of no use: document {rows} (rows counted from 0).")
    nothing = np.flatnonzero(problem.permitted.sum(axis=1)[supervision.pattern] == 0)
    if nothing.size and not guided:  # a guide leaves such documents to the free topics, or to none
        warn_user(
            f"The labels permit no topic in document {_listed(nothing.tolist())} (rows counted from 0), so it gets no "
            "weights. Add free topics (n_components), or use NaN instead of 0 for unknown labels."
        )


def unexpected(problem: Problem, lost: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Lost topics, except rests, which may be empty; with penalties, known topics without a label may be empty too."""
    counts, rests = problem.supervision.counts, problem.supervision.rests
    meant = rests if problem.penalties is None else rests | (counts == 0)
    return np.asarray(lost & ~np.pad(meant, (0, len(problem.free))))


def warn_of_result(problem: Problem, result: Result, tol: float) -> None:
    """Warn about a fit that lost topics or ended early."""
    lost = [problem.names[k] for k in np.flatnonzero(unexpected(problem, result.lost))]
    if lost:
        warn_user(
            f"The topics {_listed(lost)} are empty: other topics explain their documents. "
            f"Fewer topics{', free_in_labelled=False' * problem.parameters.free_in_labelled} or other labels may help."
        )
    if result.ended == "interrupted":
        warn_user(f"Interrupted: the estimator holds the result of iteration {result.n_iter}, the last complete one.")
    elif result.ended == "max_iter" and tol > 0 and result.n_iter > 0:
        warn_user(
            f"The objective still fell by more than tol={tol:g} in iteration {result.n_iter}; "
            "raise max_iter for a closer fit.",
            ConvergenceWarning,
        )


def is_class_vector(y: object) -> bool:
    """Whether the labels are an array of numbers, the class vector of scikit-learn."""
    return isinstance(y, np.ndarray) and y.ndim == 1 and np.issubdtype(y.dtype, np.number)


def _listed(names: Sequence[object]) -> str:
    """Up to eight names, separated by commas."""
    return ", ".join(map(str, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
