"""From a problem to its result: its start, the loop with its history, and warnings about probable mistakes.

A start is made of label profiles, means of random documents (Random Acol) or uniform numbers.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from topicsteer.labels.supervision import Supervision
from topicsteer.nmf import kernels
from topicsteer.nmf.blocks import Block
from topicsteer.nmf.loop import Callback, factorise, pace_of, transform
from topicsteer.nmf.protocols import FirstWeights, History, Problem, Result, Rows, WithHistory, insert
from topicsteer.system.arrays import unmasked
from topicsteer.system.failures import warn_user
from topicsteer.system.files import Scratch
from topicsteer.system.types import Array
from topicsteer.system.values import listed

# Number of random documents that Random Acol averages per topic.
ACOL_DOCUMENTS = 20
# Largest number of free topics that `count_free` returns; also its result without labels.
FREE_TOPICS = 10
# `count_free` reads at most this many documents.
FREE_DOCUMENTS = 50_000


def start(problem: Problem) -> tuple[FirstWeights | None, Array]:
    """Starting W (None = zero) and H, by the parameter ``init``.

    W is a function from a slice of the rows to their weights, so that it need not be in memory at once. It must be
    called with all rows in order.

    Examples
    --------
    >>> from topicsteer.labels.forms import supervise
    >>> from topicsteer.backends import as_rows
    >>> X = as_rows(np.array([[1.0, 0], [0, 2], [1, 1]]))
    >>> W, H = start(Problem(X, supervise(["a", "b", None], 3)))
    >>> H
    array([[1., 0.],
           [0., 2.]])
    """
    X, n_components = problem.rows, problem.n_topics
    shape = n_components, X.shape[1]
    init = problem.parameters.init
    if not isinstance(init, str):
        W, H = check_start(init, X, n_components)
        return W.__getitem__, H
    rng = check_random_state(problem.parameters.random_state)
    if init == "labels":
        H = np.zeros(shape, dtype=X.dtype)
        H[: len(problem.supervision.topics)] = label_profiles(X, problem.supervision, problem.weight)
        others = np.flatnonzero(H.max(axis=1, initial=0) == 0)
        H[others] = random_acol(X, len(others), rng)
        if not problem.positive:
            return None, H
        H += 0.01 * H.mean()
        return partial(ones, n_components, X.dtype), H
    if init == "authors":
        H = authors_topics(X, problem.supervision, n_components, rng)
    else:
        H = random_acol(X, n_components, rng) if init == "acol" else rng.uniform(size=shape).astype(X.dtype)
    return (lambda rows: rng.uniform(size=(rows.stop - rows.start, n_components)).astype(X.dtype)), H


def begin(problem: Problem, first: FirstWeights | None, H: Array) -> Problem:
    """Return the problem with a start; pinned and banned terms are applied to H."""
    HT = np.ascontiguousarray(H.T, dtype=problem.rows.dtype)
    if problem.term_constraints is not None:
        problem.term_constraints.seed(HT, np.pad(problem.supervision.counts > 0, (0, len(problem.free))))
    return replace(problem, first=first, HT=HT)


def go_on(problem: Problem, H: Array) -> Problem:
    """Return the problem with a start from the topics of earlier documents, whose history it has.

    New known topics start as the mean of their documents. The W of the documents is solved for this H.
    """
    rows, old, more = problem.rows, problem.old, len(problem.supervision.topics) - problem.old
    history = problem.history
    new = slice(old, old + more)
    kernels.announce(rows.dtype)
    HT = np.ascontiguousarray(insert(H, old, more, 0).T, dtype=rows.dtype)
    if more:
        HT[:, new] = label_profiles(rows, problem.supervision, problem.weight)[old:].T
    if problem.positive:
        HT[:, new] += 0.01 * HT.mean()
    if problem.term_constraints is not None:
        problem.term_constraints.seed(HT, np.ones(problem.n_topics, dtype=np.bool_))
    if problem.penalties is not None and history is not None:  # penalties are defined for rows of H of length 1
        lengths = np.maximum(np.linalg.norm(HT, axis=0), kernels.TINY)
        HT, history = HT / lengths, history.times(lengths)

    def solved(_: slice) -> Array:
        W = np.zeros((rows.shape[0], HT.shape[1]), dtype=rows.dtype)
        block = Block.of(rows.matrix, W, problem.constraints(0))
        transform(block, HT, problem.permitted, problem.regularisation, problem.parameters.threads)
        return W

    first = partial(ones, problem.n_topics, rows.dtype) if problem.positive else solved
    return replace(problem, history=history, HT=HT, first=first)


def ones(d: int, dtype: DTypeLike, rows: slice) -> Array:
    """Weights of 1."""
    return np.ones((rows.stop - rows.start, d), dtype=dtype)


def label_profiles(X: Rows, supervision: Supervision, weight: Array) -> Array:
    """Weighted mean of the documents labelled with each known topic; zero for a topic without labels."""
    labels = supervision.indicator().multiply(weight[:, None])
    totals = np.asarray(labels.sum(axis=0)).ravel()
    return np.asarray(X.combine(labels.T).astype(X.dtype) / np.where(totals > 0, totals, 1)[:, None], dtype=X.dtype)


def count_free(X: Rows, profiles: Array, seed: int = 0) -> int:
    """Number of free topics: directions beyond the known topics that explain at least half as much as a known topic.

    A known topic explains the variation that no other known topic shares; the median over the known topics is the
    yardstick. The further directions are orthogonal to all known topics. Real text has many of them, and the result is
    then the maximum, 10.

    Examples
    --------
    >>> from topicsteer.backends import as_rows
    >>> X = as_rows(np.kron(np.eye(4), np.ones((5, 3))))
    >>> count_free(X, np.kron(np.eye(4)[:3], np.ones(3)))
    1
    """
    some = X.take(np.arange(0, X.shape[0], -(-X.shape[0] // FREE_DOCUMENTS)))
    topics = profiles[profiles.any(axis=1)].T.astype(np.float64)
    if not topics.size:
        return FREE_TOPICS
    topics /= np.linalg.norm(topics, axis=0)
    own = np.linalg.pinv(topics).T  # each column is orthogonal to all topics but one
    own /= np.maximum(np.linalg.norm(own, axis=0), 1e-30)
    typical = np.median(np.square(some @ own).sum(axis=0))
    known = np.linalg.qr(topics)[0]

    def left_over(V: Array) -> Array:
        V = some.T @ (some @ (V - known @ (known.T @ V)))
        return np.asarray(V - known @ (known.T @ V))

    V = np.random.default_rng(seed).standard_normal((X.shape[1], min(2 * FREE_TOPICS, X.shape[1])))
    for _ in range(5):
        V = np.linalg.qr(left_over(V))[0]
    strengths = np.linalg.eigvalsh(V.T @ left_over(V))[::-1][:FREE_TOPICS]
    return int((strengths >= typical / 2).sum())


def random_acol(X: Rows, n_components: int, rng: np.random.RandomState) -> Array:
    """Topics that are means of random non-empty documents (Langville et al., 2014)."""
    rows = np.flatnonzero(X.sizes)
    size = min(ACOL_DOCUMENTS, len(rows))
    if size == 0 or n_components == 0:
        return np.zeros((n_components, X.shape[1]), dtype=X.dtype)
    draws = [sample_without_replacement(len(rows), size, random_state=rng) for _ in range(n_components)]
    return means(X, rows[np.array(draws)])


def authors_topics(X: Rows, supervision: Supervision, n_components: int, rng: np.random.RandomState) -> Array:
    """First H of the program of the paper's authors: plain means of labelled documents, or of 20 random documents.

    The random documents of a topic are drawn with replacement, and may be empty.
    """
    n, counts = X.shape[0], np.pad(supervision.counts, (0, n_components - len(supervision.topics)))
    H = np.zeros((n_components, X.shape[1]), dtype=X.dtype)
    H[: len(supervision.topics)] = label_profiles(X, supervision, np.ones(n))
    others = np.flatnonzero(counts == 0)
    H[others] = means(X, rng.randint(n, size=(len(others), ACOL_DOCUMENTS)))
    return H


def means(X: Rows, drawn: NDArray[np.integer]) -> Array:
    """Mean of the documents in each row of ``drawn``."""
    n_components, size = drawn.shape
    ends = np.arange(0, drawn.size + 1, size)
    picks = sp.csr_array((np.full(drawn.size, 1 / size), drawn.ravel(), ends), shape=(n_components, X.shape[0]))
    return X.combine(picks).astype(X.dtype)


def solve(problem: Problem, scratch: Scratch | None = None, callback: Callback | None = None) -> Result:
    """Solve a problem from its start, and warn about labels and topics that look like mistakes.

    Parameters
    ----------
    problem : Problem
        A problem with a start (see `topicsteer.nmf.factorisation`).
    scratch : Scratch, optional
        Folder for W on disk.
    callback : callable, optional
        Called with iteration, objective and seconds; True ends the loop.
    """
    warn_of_labels(problem)
    kernels.announce(problem.rows.dtype)
    pace = pace_of(problem)
    backend = problem.rows.backend(problem, scratch)
    before = problem.history
    if before is None:
        before = History.empty(len(problem.HT), problem.n_topics, problem.rows.dtype)
    joined = WithHistory(backend, before)
    result = factorise(
        joined,
        problem.HT,
        problem.permitted,
        solver=problem.parameters.solver,
        regularisation=problem.regularisation,
        tol=pace.tol * problem.share,  # an iteration cannot improve earlier documents
        by_norm=pace.by_norm,
        max_iter=problem.parameters.max_iter,
        threads=problem.parameters.threads,
        opening=pace.opening,
        unit=problem.penalties is not None,
        term_constraints=problem.term_constraints,
        callback=callback,
    )
    history = None if problem.E is not None else joined.conclude(problem.totals)
    warn_of_result(problem, result, pace.tol)
    return replace(result, weights=backend.weights(), history=history)


def check_start(init: tuple[ArrayLike, ArrayLike], X: Rows, d: int) -> tuple[Array, Array]:
    """A copy of a start that is a pair (W, H)."""
    n, t = X.shape
    W, H = (np.array(unmasked(factor, "init"), dtype=X.dtype) for factor in init)
    if W.shape != (n, d) or H.shape != (d, t):
        raise ValueError(f"init=(W, H) has shapes {W.shape} and {H.shape}; expected {(n, d)} and {(d, t)}.")
    if not (np.isfinite(W).all() and np.isfinite(H).all() and (W >= 0).all() and (H >= 0).all()):
        raise ValueError("init=(W, H) has negative, NaN or infinite entries; both must be non-negative.")
    return W, H


def warn_of_labels(problem: Problem) -> None:
    """Warn about labels that look like mistakes; penalties tie topics without labels to documents."""
    supervision = problem.supervision
    guided = problem.penalties is not None
    unlabelled = [supervision.topics[k] for k in np.flatnonzero(supervision.counts == 0) if k >= problem.old]
    if unlabelled and not guided:
        warn_user(
            f"No document is labelled with {listed(unlabelled)}: "
            f"{'this topic starts' if len(unlabelled) == 1 else 'these topics start'} like a free topic."
        )
    empty = np.flatnonzero((problem.rows.sizes == 0) & supervision.labelled)
    if empty.size:
        rows = listed(empty.tolist())
        warn_user(f"Labelled but without any term, so of no use: document {rows} (rows counted from 0).")
    nothing = np.flatnonzero(problem.permitted.sum(axis=1)[supervision.pattern] == 0)
    if nothing.size and not guided:  # a guide leaves such documents to the free topics, or to none
        warn_user(
            f"The labels permit no topic in document {listed(nothing.tolist())} (rows counted from 0), so it gets no "
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
            f"The topics {listed(lost)} are empty: other topics explain their documents. "
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
