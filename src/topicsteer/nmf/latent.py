"""Latent semantics: directions from a truncated SVD of the documents, and features of documents along them.

The directions are the leading eigenvectors of A = XᵀX, found by the block Lanczos method (:func:`leading_directions`):

1. The first block of vectors is A² times sums of random documents with random signs.
2. Each step multiplies the newest block by A. The product, orthogonal to all blocks before it, is the next block.
   Narrow blocks and many steps capture more energy per product than wide blocks and few steps.
3. One small eigenproblem gives the directions. They lie in the range of A times the blocks, which is closer to the
   leading eigenvectors than the blocks are.

Blocks of work are fixed, and their sums are added in a fixed order. The result is therefore the same for any number of
threads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from topicsteer.nmf.blocks import block_size, slices
from topicsteer.nmf.protocols import Rows
from topicsteer.system.machine_code import lazy_module
from topicsteer.system.threads import OrderedMap, workers
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from topicsteer.nmf import kernels
else:
    kernels = lazy_module("topicsteer.nmf.kernels")

# Largest number of directions; small corpora have fewer.
DIMENSIONS = 400
# Small corpora have this many, if there are as many documents and terms.
MIN_DIMENSIONS = 16
# The SVD reads at most this many documents.
SVD_DOCUMENTS = 100_000
# Products with A before the first step. Their block stays narrow, and they gain nearly as much as steps.
START_PRODUCTS = 2
# Steps of the block Lanczos method: this many, and this many per strip of directions.
STEPS, STEPS_PER_STRIP = 2, 1.25
# In the first steps the products are nearly in the span of the blocks. The rest loses digits, so it is made orthogonal
# to the blocks twice.
TWICE = 2
# Added to the diagonal of a Gram matrix, relative to its largest entry, for its Cholesky factor.
JITTER = 1e-6
# Residuals below this share of the longest product are noise of single precision: the vectors become zero.
EXHAUSTED = 1e-4
# Directions with less than this share of the energy of the strongest are noise of single precision.
NOISE = 1e-5
# Terms per block of a dense product.
TERMS = 2_560
# Documents per block of work.
ROWS = 4_096


def latent_directions(rows: Rows, seed: int = 0, threads: int | None = None, *, most: int = SVD_DOCUMENTS) -> Array:
    """Right singular vectors of at most ``most`` documents, as columns; labels are not used.

    The rows may be in memory, on disk or on a cluster: the same documents give the same directions.
    """
    n, t = rows.shape
    chosen = np.arange(n)
    if n > most:
        chosen = np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
    X = rows.matrix if rows.matrix is not None and len(chosen) == n else rows.take(chosen)
    size = max(min(DIMENSIONS, len(chosen) // 5, t // 5), min(MIN_DIMENSIONS, len(chosen), t))
    if not size:
        return np.zeros((t, 0), dtype=X.dtype)
    return leading_directions(X, size, seed, threads).astype(X.dtype)


def leading_directions(X: sp.csr_array, size: int, seed: int = 0, threads: int | None = None) -> NDArray[np.float32]:
    """Approximate right singular vectors of X with the ``size`` largest singular values; fewer if its rank is less.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
    size : int
        Number of directions.
    seed : int
        Seed of the first block of vectors.
    threads : int, optional
        None = all cores.

    Returns
    -------
    array (n_terms, at most size)
        Orthonormal columns, strongest first. The largest entry of each is positive.
    """
    kernels.prepare(np.float32)
    steps = STEPS + math.ceil(STEPS_PER_STRIP * size / kernels.STRIP)
    with workers(threads) as run:
        return _directions(*lanczos(X, steps, seed, run), size, run)


def lanczos(X: sp.csr_array, steps: int, seed: int, run: OrderedMap) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Orthonormal vectors Q and, behind them, the residual of the last step; T = QᵀAQ."""
    product, width = GramProduct(X), kernels.STRIP
    vectors = np.zeros((X.shape[1], (steps + 1) * width), dtype=np.float32)
    T = np.zeros((steps * width, steps * width))
    first = orthonormal(_random_sums(X, width, np.random.default_rng(seed)), 0.0, run)
    for _ in range(START_PRODUCTS):
        first = orthonormal(product(first, run), 0.0, run)
    vectors[:, :width] = first
    longest = 0.0  # squared length of the longest product
    for step in range(1, steps + 1):
        newest, following = slice((step - 1) * width, step * width), slice(step * width, (step + 1) * width)
        Q = vectors[:, : newest.stop]
        Y = product(np.ascontiguousarray(vectors[:, newest]), run)
        found = cross_gram(Q, Y, run)
        T[: newest.stop, newest], T[newest, : newest.stop] = found, found.T
        longest = max(longest, float(np.square(found).sum(axis=0).max()))
        _subtract(Y, Q, found, run)
        if step <= TWICE:
            _subtract(Y, Q, cross_gram(Q, Y, run), run)
        vectors[:, following] = Y if step == steps else orthonormal(Y, EXHAUSTED**2 * longest, run)
    return vectors, T


def _directions(vectors: NDArray[np.float32], T: Array, size: int, run: OrderedMap) -> NDArray[np.float32]:
    """Directions in the range of AQ = QT + E, strongest first, where E is the residual in the last block of vectors.

    With T = RᵀR, X Q R⁻¹ is orthonormal. The singular vectors of its product with X, AQ R⁻¹, are the directions. Their
    Gram matrix is RRᵀ, with R⁻ᵀEᵀE R⁻¹ added to its last block: R is triangular, and E is orthogonal to Q.
    """
    width = vectors.shape[1] - len(T)
    jitter = JITTER * max(T.diagonal().max(), 1e-30)
    R = cholesky((T + T.T) / 2 + jitter * np.eye(len(T)))
    last = solve_triangular(R[-width:, -width:], np.eye(width))
    residual = vectors[:, -width:]
    added = last.T @ cross_gram(residual, residual, run) @ last
    gram = R @ R.T
    gram[-width:, -width:] += added
    energy, small = np.linalg.eigh(gram)
    energy, small = energy[: -size - 1 : -1], small[:, : -size - 1 : -1]
    kept = energy > max(NOISE * energy[0], 2 * jitter)
    small = small[:, kept] / np.sqrt(energy[kept])
    V = _times(vectors, np.vstack([R.T @ small, last @ small[-width:]]), run)
    V *= np.where(V.max(axis=0) < -V.min(axis=0), -1, 1).astype(np.float32)
    return V


class GramProduct:
    """The product XᵀX B. Threads share the work by strips of columns and blocks of rows."""

    def __init__(self, X: sp.csr_array) -> None:
        self.indptr, self.indices = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
        self.data = X.data.astype(np.float32, copy=False)
        self.blocks = slices(X.shape[0], block_size(X.shape[0], X.nnz, X.shape[1]))

    def __call__(self, B: NDArray[np.float32], run: OrderedMap) -> NDArray[np.float32]:
        """XᵀX B; the number of columns is a multiple of `kernels.STRIP`."""
        out = np.zeros_like(B)
        tasks = [(columns, rows) for columns in slices(B.shape[1], kernels.STRIP) for rows in self.blocks]

        def one(task: tuple[slice, slice]) -> NDArray[np.float32]:
            columns, rows = task
            part = np.ascontiguousarray(B[:, columns])
            found = np.zeros_like(part)
            kernels.gram_strip(self.indptr[rows.start : rows.stop + 1], self.indices, self.data, part, found)
            return found

        for (columns, _), found in zip(tasks, run(one, tasks), strict=True):
            out[:, columns] += found
        return out


def orthonormal(Y: NDArray[np.float32], least: float, run: OrderedMap) -> NDArray[np.float32]:
    """An orthonormal basis of the columns of Y; zero columns for directions of a squared length below ``least``."""
    lengths, small = np.linalg.eigh(cross_gram(Y, Y, run))
    kept = lengths > max(least, NOISE * lengths[-1], 1e-30)
    return _times(Y, np.where(kept, small / np.sqrt(np.where(kept, lengths, 1.0)), 0.0), run)


def cross_gram(A: NDArray[np.float32], B: NDArray[np.float32], run: OrderedMap) -> NDArray[np.float64]:
    """The product AᵀB, added up in double precision over fixed blocks of rows."""
    total = np.zeros((A.shape[1], B.shape[1]))
    for found in run(lambda rows: A[rows].T @ B[rows], slices(len(A), TERMS)):
        total += found
    return total


def _times(A: NDArray[np.float32], B: Array, run: OrderedMap) -> NDArray[np.float32]:
    """The product A B in single precision, in fixed blocks of rows."""
    B = np.ascontiguousarray(B, dtype=np.float32)
    out = np.empty((len(A), B.shape[1]), dtype=np.float32)
    for _ in run(lambda rows: np.matmul(A[rows], B, out=out[rows]), slices(len(A), TERMS)):
        pass
    return out


def _subtract(Y: NDArray[np.float32], A: NDArray[np.float32], B: Array, run: OrderedMap) -> None:
    """Subtract A B from Y in place, in single precision and fixed blocks of rows."""
    B = B.astype(np.float32)

    def one(rows: slice) -> None:
        Y[rows] -= A[rows] @ B

    for _ in run(one, slices(len(A), TERMS)):
        pass


def _random_sums(X: sp.csr_array, width: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Sums of random documents with random signs, as ``width`` columns."""
    n, t = X.shape
    signs, of = 2.0 * rng.integers(0, 2, n) - 1.0, rng.permutation(n) % width
    entries = np.diff(X.indptr)
    sums = np.bincount(np.repeat(of * t, entries) + X.indices, np.repeat(signs, entries) * X.data, width * t)
    return np.ascontiguousarray(sums.reshape(width, t).T, dtype=np.float32)
