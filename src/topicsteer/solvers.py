"""The one loop that minimises D(W, H) = Σ E (X - (W∘L)H)², and the rules it can follow.

Everything is said in sums over blocks of documents: a block's W needs only H, and H needs only
``gram = (e∘W)ᵀW`` and ``cross = Xᵀ(e∘W)``, added up over the blocks in their order. The blocks depend on the matrix
alone and never on the number of threads, so neither does the result.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial, reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from topicsteer import _kernels

Array = NDArray[np.floating[Any]]
Callback = Callable[[int, float, float], object]

SWEEPS = 2  # inner sweeps an iteration: one makes twice the iterations, more than two bring little
ROWS = 512  # documents whose cross products are kept at once: they stay in the cache
REVIVALS = 5  # times a topic is revived before it is given up
DENSE_ROWS = 1 << 22  # entries of a dense block under a full error weight


@dataclass(frozen=True)
class Penalty:
    """Weights of the penalties, so that D + 2 l1 Σ|·| + l2 Σ(·)² is minimised, for W (a document) and H."""

    l1_W: float = 0.0
    l2_W: float = 0.0
    l1_H: float = 0.0
    l2_H: float = 0.0


@dataclass
class Block:
    """Consecutive documents: rows of X, their weights W (changed in place), error weights and label patterns.

    ``indptr`` may be a slice of a larger matrix's; ``E`` is the full error weight of these rows, if there is one.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: Array
    W: Array
    weight: Array
    pattern: NDArray[np.int32]
    E: Any = None

    def rows(self, size: int = ROWS) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Slices of the block's documents with their part of ``indptr``."""
        for low in range(0, len(self.W), size):
            high = min(low + size, len(self.W))
            yield slice(low, high), self.indptr[low : high + 1]

    def squares(self) -> float:
        """Sum of e x² over the block."""
        first, last = self.indptr[0], self.indptr[-1]
        total = np.concatenate([[0.0], np.cumsum(np.square(self.data[first:last], dtype=np.float64))])
        rows = np.diff(total[self.indptr - first])
        return float(rows @ self.weight.astype(np.float64))


@dataclass(frozen=True)
class Sums:
    """What H and the objective need to know of some documents.

    ``below`` is the paper's denominator for H; it follows from ``gram`` unless E is a full matrix.
    """

    cross: Array
    gram: Array
    size: float
    below: Array | None = None
    error: float = 0.0

    def __add__(self, other: Sums) -> Sums:
        self.cross.__iadd__(other.cross)
        if self.below is not None and other.below is not None:
            self.below.__iadd__(other.below)
        return Sums(self.cross, self.gram + other.gram, self.size + other.size, self.below, self.error + other.error)


@dataclass
class Result:
    """A finished factorisation; ``HT`` is the transpose of H."""

    HT: Array
    history: list[float] = field(default_factory=list)
    error: float = 0.0
    ended: str = "max_iter"
    n_iter: int = 0


# --- the rules: one block's W given H, and H given the sums ---


def hals_block(block: Block, HT: Array, gram: Array, permitted: NDArray[np.bool_], penalty: Penalty) -> Sums:
    """Exact coordinate minimisation of the block's W; its row weights cancel."""
    descend_rows(block, HT, gram, permitted, penalty, SWEEPS, 0.0)
    return sums(block, HT, penalty)


def mu_block(block: Block, HT: Array, gram: Array, permitted: NDArray[np.bool_], penalty: Penalty) -> Sums:
    """The paper's equation (10): W ← W ∘ (X Hᵀ ∘ L) / ((W∘L) H Hᵀ ∘ L); W is zero where L is."""
    for rows, indptr in block.rows():
        W = block.W[rows]
        cross = np.empty_like(W)
        _kernels.cross_rows(indptr, block.indices, block.data, HT, permitted, block.pattern[rows], cross)
        W *= _ratio(cross, W @ gram + penalty.l1_W + penalty.l2_W * W)
    return sums(block, HT, penalty)


def mu_block_weighted(block: Block, HT: Array, gram: Array, permitted: NDArray[np.bool_], penalty: Penalty) -> Sums:
    """The appendix's rule for a full E: W ← W ∘ ((X∘E) Hᵀ ∘ L) / ((((W∘L)H) ∘ E) Hᵀ ∘ L)."""
    for rows, X, E in _dense_rows(block, HT):
        W = block.W[rows]
        W *= _ratio((X * E) @ HT, ((W @ HT.T) * E) @ HT + penalty.l1_W + penalty.l2_W * W)
    return sums_weighted(block, HT, penalty)


def hals_terms(HT: Array, total: Sums, penalty: Penalty, terms: slice) -> Array:
    """Coordinate minimisation of some rows of Hᵀ: the W update on the transpose."""
    gram = _with_ridge(total.gram, penalty.l2_H)
    everything = np.ones((1, len(gram)), dtype=np.bool_)
    h = HT[terms]
    pattern = np.zeros(len(h), dtype=np.int32)
    l1 = HT.dtype.type(penalty.l1_H)
    _kernels.descend(h, total.cross[terms], gram, everything, pattern, l1, SWEEPS, HT.dtype.type(0))
    return h.T @ h


def mu_terms(HT: Array, total: Sums, penalty: Penalty, terms: slice) -> Array:
    """The paper's equation (9), and the appendix's: H ← H ∘ (Wᵀ(X∘E)) / (Wᵀ((WH)∘E))."""
    h = HT[terms]
    below = h @ total.gram if total.below is None else total.below[terms]
    h *= _ratio(total.cross[terms], below + penalty.l1_H + penalty.l2_H * h)
    return h.T @ h


def descend_rows(
    block: Block,
    HT: Array,
    gram: Array,
    permitted: NDArray[np.bool_],
    penalty: Penalty,
    sweeps: int,
    tol: float,
) -> None:
    """Coordinate descent on the W of a block."""
    gram = _with_ridge(gram, penalty.l2_W)
    cross = np.empty((min(ROWS, len(block.W)), HT.shape[1]), dtype=HT.dtype)
    l1, tolerance = HT.dtype.type(penalty.l1_W), HT.dtype.type(tol)
    for rows, indptr in block.rows():
        W, pattern = block.W[rows], block.pattern[rows]
        part = cross[: len(W)]
        _kernels.cross_rows(indptr, block.indices, block.data, HT, permitted, pattern, part)
        _kernels.descend(W, part, gram, permitted, pattern, l1, sweeps, tolerance)


def sums(block: Block, HT: Array, penalty: Penalty) -> Sums:
    """Gram and cross of a block."""
    W = block.W
    d, width = W.shape[1], HT.shape[1]
    cross = np.zeros_like(HT)
    _kernels.cross_columns(block.indptr, block.indices, block.data, W, block.weight, cross)
    gram = np.zeros((width, width), dtype=HT.dtype)
    gram[:d, :d] = W.T @ W
    heavy = block.weight != 1
    if heavy.any():  # few documents are: (e∘W)ᵀW = WᵀW + ((e - 1)∘W)ᵀW
        V = W[heavy]
        gram[:d, :d] += (V * (block.weight[heavy] - 1)[:, None]).T @ V
    size = float(block.weight @ W.sum(axis=1)) if penalty.l1_W else 0.0
    return Sums(cross, gram, size)


def sums_weighted(block: Block, HT: Array, penalty: Penalty) -> Sums:
    """The same under a full E; ``gram`` then serves the penalties and the search for dead topics only."""
    total = Sums(np.zeros_like(HT), block.W.T @ block.W, float(block.W.sum(dtype=np.float64)), np.zeros_like(HT))
    error = 0.0
    for rows, X, E in _dense_rows(block, HT):
        W = block.W[rows]
        R = W @ HT.T
        total.cross.__iadd__((X * E).T @ W)
        assert total.below is not None  # noqa: S101 - for the type checker
        total.below.__iadd__((R * E).T @ W)
        error += float((E * np.square(X - R)).sum(dtype=np.float64))
    return Sums(total.cross, total.gram, total.size, total.below, error)


def add_up(parts: Iterable[Sums]) -> Sums:
    """The sums of several blocks as one, added in their order."""
    return reduce(Sums.__add__, parts)


RULES = {"hals": (hals_block, hals_terms), "mu": (mu_block, mu_terms)}


# --- the loop ---


def factorise(
    blocks: list[Block],
    HT: Array,
    permitted: NDArray[np.bool_],
    *,
    solver: str,
    penalty: Penalty,
    tol: float,
    max_iter: int,
    threads: int | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimise D from the W in ``blocks``, which is changed in place, and ``HT``.

    An iteration updates H, then every block's W. ``hals`` begins with W, since its start is only in H.
    Ends when an iteration lowers the objective by no more than ``tol`` of it, when the callback returns True, at
    ``max_iter``, or, on Ctrl-C, after the iteration that is under way. Under ``hals`` a topic that has lost all its
    weight is revived; the multiplicative rules stay as they are in the paper.
    """
    d = HT.shape[1]
    weighted = blocks[0].E is not None
    update_block, update_terms = RULES[solver]
    if weighted:
        update_block = mu_block_weighted
    constant = 0.0 if weighted else sum(block.squares() for block in blocks)
    if solver == "hals":
        HT = np.pad(HT, ((0, 0), (0, _padding(d))))
    terms = _slices(len(HT), ROWS)
    result = Result(HT[:, :d])
    lives = np.full(d, REVIVALS)
    began = time.perf_counter()

    with workers(threads) as run, _interruptions() as interrupted:

        def update_all(gram: Array) -> Sums:
            step = partial(update_block, HT=HT, gram=gram, permitted=permitted, penalty=penalty)
            return add_up(run(step, blocks))

        def record(total: Sums, gram: Array) -> None:
            """Σ E (X - WH)² = Σ E X² - 2 <cross, Hᵀ> + <gram of W, gram of H>, and the penalties."""
            error = total.error
            if not weighted:
                error = constant - 2 * _dot(total.cross, HT) + _dot(total.gram, gram)
            on_W = 2 * penalty.l1_W * total.size + penalty.l2_W * float(np.trace(total.gram))
            on_H = 2 * penalty.l1_H * float(HT.sum(dtype=np.float64)) + penalty.l2_H * float(np.trace(gram))
            result.error = max(error, 0.0)
            result.history.append(result.error + on_W + on_H)

        gram = HT.T @ HT
        if solver == "hals":
            total = update_all(gram)
        else:
            total = add_up(run(partial(sums_weighted if weighted else sums, HT=HT, penalty=penalty), blocks))
        record(total, gram)
        while result.n_iter < max_iter:
            gram = sum(run(partial(update_terms, HT, total, penalty), terms))
            total = update_all(gram)
            record(total, gram)
            result.n_iter += 1
            before, after = result.history[-2:]
            if callback is not None and callback(result.n_iter, after, time.perf_counter() - began):
                result.ended = "callback"
                break
            if interrupted:
                result.ended = "interrupted"
                break
            dead = np.flatnonzero(((np.diag(total.gram) <= 0) | (np.diag(gram) <= 0))[:d] & (lives > 0))
            if solver == "hals" and dead.size and result.n_iter < max_iter:
                lives[dead] -= 1
                revive(blocks, HT, gram, dead, permitted)
                gram = HT.T @ HT
                total = update_all(gram)
            elif before - after <= tol * before:
                result.ended = "tol"
                break
    return result


def transform(
    block: Block, HT: Array, permitted: NDArray[np.bool_], penalty: Penalty, threads: int | None = None
) -> None:
    """Solve the W of documents for a fixed H, each document by itself."""
    tol = 1e-5 if HT.dtype == np.float32 else 1e-9
    gram = HT.T @ HT
    parts = [
        Block(indptr, block.indices, block.data, block.W[rows], block.weight[rows], block.pattern[rows])
        for rows, indptr in block.rows(4 * ROWS)
    ]
    solve = partial(descend_rows, HT=HT, gram=gram, permitted=permitted, penalty=penalty, sweeps=1000, tol=tol)
    with workers(threads) as run:
        for _ in run(solve, parts):
            pass


def cut(X: sp.csr_array, W: Array, weight: Array, pattern: NDArray[np.int32], E: Any = None) -> list[Block]:
    """Blocks of documents: a power of two of them, each with work enough to pay for adding up its sums."""
    n, t = X.shape
    indptr = X.indptr.astype(np.int64, copy=False)
    number = 1
    while number < 64 and X.nnz > 64 * t * number and n >= 2 * number:
        number *= 2
    return [
        Block(
            indptr[rows.start : rows.stop + 1],
            X.indices,
            X.data,
            W[rows],
            weight[rows],
            pattern[rows],
            None if E is None else E[rows],
        )
        for rows in _slices(n, -(-n // number))
    ]


def revive(blocks: list[Block], HT: Array, gram: Array, dead: NDArray[np.intp], permitted: NDArray[np.bool_]) -> None:
    """Give each dead topic the terms of the document that is explained worst among those that may contain it.

    Labelled documents come first. The topic's W is set to zero, so D is unchanged, and that document is sure to take
    the topic up: its gradient there is minus its squared error.
    """
    errors = np.concatenate([row_errors(block, HT, gram) for block in blocks])
    pattern = np.concatenate([block.pattern for block in blocks])
    starts = np.cumsum([0, *(len(block.W) for block in blocks)])
    noise = np.sqrt(np.finfo(HT.dtype).eps) * errors.max(initial=0.0)
    for k in dead:
        for block in blocks:
            block.W[:, k] = 0
        may = permitted[pattern, k] & (errors > noise)
        labelled = may & (pattern != 0)
        candidates = np.flatnonzero(labelled if labelled.any() and not permitted[1:, k].all() else may)
        HT[:, k] = 0
        if candidates.size:
            i = candidates[np.argmax(errors[candidates])]
            errors[i] = 0
            b = int(np.searchsorted(starts, i, side="right")) - 1
            block = blocks[b]
            entries = slice(*block.indptr[i - starts[b] : i - starts[b] + 2])
            HT[block.indices[entries], k] = block.data[entries]


def row_errors(block: Block, HT: Array, gram: Array) -> NDArray[np.float64]:
    """Squared error of each document of a block, unweighted."""
    d = block.W.shape[1]
    everything = np.ones((1, d), dtype=np.bool_)
    errors = np.empty(len(block.W))
    for rows, indptr in block.rows():
        W = block.W[rows]
        cross = np.empty((len(W), HT.shape[1]), dtype=HT.dtype)
        pattern = np.zeros(len(W), dtype=np.int32)
        _kernels.cross_rows(indptr, block.indices, block.data, HT, everything, pattern, cross)
        x = np.square(block.data[indptr[0] : indptr[-1]], dtype=np.float64)
        norms = np.diff(np.concatenate([[0.0], np.cumsum(x)])[indptr - indptr[0]])
        errors[rows] = norms + ((W @ gram[:d, :d] - 2 * cross[:, :d]) * W).sum(axis=1)
    return errors


# --- threads and signals ---


def default_threads() -> int:
    """Cores this process may use, or fewer where OMP_NUM_THREADS says so (as joblib's workers do)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def workers(threads: int | None) -> Iterator[Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]]:
    """An ordered parallel map over blocks; BLAS keeps to one thread meanwhile, or the two would compete."""
    with _blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(threads or default_threads()) as pool:
        yield pool.map


@contextmanager
def _interruptions() -> Iterator[list[int]]:
    """Hold back Ctrl-C: it is noted in the list, and the loop ends in order. A second one interrupts at once."""
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    previous = signal.getsignal(signal.SIGINT)
    if not callable(previous):  # ignored on purpose, or not Python's to handle
        yield noted
        return

    def note(signum: int, frame: Any) -> None:
        noted.append(signum)
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, previous)


# --- small arithmetic ---


def _slices(length: int, size: int) -> list[slice]:
    return [slice(low, min(low + size, length)) for low in range(0, length, max(size, 1))]


def _padding(d: int) -> int:
    """Zero topics to add so that loops over topics fill vector registers, where that costs less than it saves."""
    return -d % 32 if d % 32 > 16 else 0


def _dot(a: Array, b: Array) -> float:
    return float(np.einsum("jk,jk->", a, b, dtype=np.float64))


def _with_ridge(gram: Array, l2: float) -> Array:
    return gram if l2 == 0 else gram + np.diag(np.full(len(gram), l2, dtype=gram.dtype))


def _ratio(above: Array, below: Array) -> Array:
    """Above / below, and 0 where both vanish."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _dense_rows(block: Block, HT: Array) -> Iterator[tuple[slice, Array, Array]]:
    """X and E of a few documents at a time as dense arrays."""
    for rows, indptr in block.rows(max(1, DENSE_ROWS // len(HT))):
        part = slice(indptr[0], indptr[-1])
        shape = (len(indptr) - 1, len(HT))
        X = sp.csr_array((block.data[part], block.indices[part], indptr - indptr[0]), shape=shape).toarray()
        E = block.E[rows]
        E = E.toarray() if sp.issparse(E) else np.asarray(E)
        yield rows, X, E * block.weight[rows, None]
