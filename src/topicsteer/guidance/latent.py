"""Latent semantics: directions from a truncated SVD of the documents, and features of documents along them.

The directions are the leading eigenvectors of XᵀX, found by subspace iteration (:func:`leading_directions`):

1. The first block of vectors is XᵀX times sums of random documents with random signs.
2. Each further pass multiplies the block by XᵀX - r. The shift r lies within the unwanted part of the spectrum.
   Unwanted directions shrink faster than without it, at no cost.
3. Cholesky QR keeps the block well conditioned: R from the Gram matrix, then a product with its inverse.
4. The passes end when the energy that the block captures has settled. One small eigenproblem gives the directions.

Blocks of work are fixed, and their sums are added in a fixed order. The result is therefore the same for any number of
threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from topicsteer.nmf.blocks import MIN_ENTRIES_PER_TERM, slices, times
from topicsteer.nmf.protocols import Rows
from topicsteer.system.lazy import lazy_module
from topicsteer.system.threads import OrderedMap, workers
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from topicsteer.nmf import kernels
else:
    kernels = lazy_module("topicsteer.nmf.kernels")

# Largest number of directions; small corpora have fewer.
DIMENSIONS = 400
# Corpora that are too small for this many directions have none.
MIN_DIMENSIONS = 16
# The SVD reads at most this many documents.
SVD_DOCUMENTS = 100_000
# The block of vectors is at least this much wider than the number of directions, and filled up to whole strips.
MORE_VECTORS = 16
# The passes end when the captured energy grew by less than this share, after at least and at most these numbers. The
# next pass would gain a small part of that.
SETTLED, PASSES = 0.08, (3, 8)
# The shift, as a share of the smallest wanted eigenvalue found so far.
SHIFT = 0.8
# Added to the diagonal of a Gram matrix, relative to its trace: linearly dependent vectors do no harm.
JITTER = 1e-7
# Directions with less than this share of the energy of the strongest are noise of single precision.
NOISE = 1e-9
# Terms per block of a dense product.
TERMS = 1_024
# Documents per block of work.
ROWS = 4_096


def latent_directions(rows: Rows, seed: int = 0, threads: int | None = None) -> Array:
    """Right singular vectors of the documents, or of a sample of them, as columns; labels are not used.

    The rows may be in memory, on disk or on a cluster: the same documents give the same directions.
    """
    n, t = rows.shape
    chosen = np.arange(n)
    if n > SVD_DOCUMENTS:
        chosen = np.sort(np.random.default_rng(seed).choice(n, SVD_DOCUMENTS, replace=False))
    X = rows.matrix if rows.matrix is not None and len(chosen) == n else rows.take(chosen)
    size = min(DIMENSIONS, len(chosen) // 5, t // 5)
    if size < MIN_DIMENSIONS:
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
    width = kernels.STRIP * -(-(size + MORE_VECTORS) // kernels.STRIP)
    product = GramProduct(X)
    with workers(threads) as run:
        B = orthonormal(product(_random_sums(X, width, np.random.default_rng(seed)), run), run)
        captured = 0.0
        for passes in range(2, PASSES[1] + 1):
            Y = product(B, run)
            found = cross_gram(B, Y, run)
            before, captured = captured, float(np.trace(found))
            if passes == PASSES[1] or (passes >= PASSES[0] and captured <= (1 + SETTLED) * before):
                break
            smallest = np.linalg.eigvalsh((found + found.T) / 2)[-size]
            Y -= np.float32(SHIFT * max(smallest, 0.0)) * B
            B = orthonormal(Y, run)
        return _directions(Y, found, size, run)


def _directions(Y: Array, found: Array, size: int, run: OrderedMap) -> NDArray[np.float32]:
    """Directions in the span of Y = XᵀX B, strongest first; ``found`` is BᵀY.

    With BᵀY = RᵀR, X B R⁻¹ is orthonormal. The singular vectors of its product with X, Y R⁻¹, are the directions.
    """
    inverse = _inverse_root(found)
    Z = _times(Y, inverse, run)
    energy, vectors = np.linalg.eigh(cross_gram(Z, Z, run))
    energy, vectors = energy[: -size - 1 : -1], vectors[:, : -size - 1 : -1]
    kept = energy > NOISE * max(energy[0], 0.0)
    V = _times(Z, vectors[:, kept] / np.sqrt(energy[kept]), run)
    largest = np.take_along_axis(V, np.abs(V).argmax(axis=0)[None], axis=0)
    return np.asarray(V * np.where(largest < 0, -1, 1).astype(np.float32))


class GramProduct:
    """The product XᵀX B. Threads share the work by strips of columns and blocks of rows."""

    def __init__(self, X: sp.csr_array) -> None:
        self.indptr, self.indices = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
        self.data = X.data.astype(np.float32, copy=False)
        number = 1  # a power of two, so that each block has enough entries to pay for adding up its sums
        while number < 64 and X.nnz >= 2 * MIN_ENTRIES_PER_TERM * X.shape[1] * number and X.shape[0] >= 2 * number:
            number *= 2
        self.blocks = slices(X.shape[0], -(-X.shape[0] // number))

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


def orthonormal(Y: NDArray[np.float32], run: OrderedMap) -> NDArray[np.float32]:
    """An orthonormal basis of the columns of Y by Cholesky QR; dependent columns become short."""
    return _times(Y, _inverse_root(cross_gram(Y, Y, run)), run)


def cross_gram(A: NDArray[np.float32], B: NDArray[np.float32], run: OrderedMap) -> NDArray[np.float64]:
    """The product AᵀB, added up in double precision over fixed blocks of rows."""
    total = np.zeros((A.shape[1], B.shape[1]))
    for found in run(lambda rows: A[rows].T @ B[rows], slices(len(A), TERMS)):
        total += found
    return total


def _inverse_root(gram: Array) -> Array:
    """The inverse of R, where gram = RᵀR with a small addition to its diagonal."""
    gram = (gram + gram.T) / 2
    return np.asarray(
        solve_triangular(cholesky(gram + JITTER * max(np.trace(gram), 1e-30) * np.eye(len(gram))), np.eye(len(gram)))
    )


def _times(A: NDArray[np.float32], B: Array, run: OrderedMap) -> NDArray[np.float32]:
    """The product A B in single precision, in fixed blocks of rows."""
    B = np.ascontiguousarray(B, dtype=np.float32)
    out = np.empty((len(A), B.shape[1]), dtype=np.float32)
    for _ in run(lambda rows: np.matmul(A[rows], B, out=out[rows]), slices(len(A), TERMS)):
        pass
    return out


def _random_sums(X: sp.csr_array, width: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Sums of random documents with random signs, as ``width`` columns."""
    n = X.shape[0]
    signs = (2 * rng.integers(0, 2, n) - 1).astype(np.float32)
    sums = sp.csr_array((signs, rng.permutation(n) % width, np.arange(n + 1)), shape=(n, width))
    return np.ascontiguousarray((X.T @ sums).toarray(), dtype=np.float32)


def block_sizes(q: int) -> tuple[int, int, int]:
    """Number of leading directions in each of the three blocks of the latent semantics."""
    return max(q // 8, min(8, q)), max(q // 2, min(8, q)), q


def dense_features(X: sp.csr_array, directions: Array, threads: int | None = None) -> Array:
    """Latent semantics of documents."""
    q = directions.shape[1]
    out = np.empty((X.shape[0], sum(block_sizes(q))), dtype=directions.dtype)

    def keep(rows: slice, D: Array, products: Array) -> None:
        out[rows] = D

    project(X, directions, q, keep, threads)
    return out


def unit_rows(rows: Array) -> Array:
    """Rows of length 1, in single precision."""
    rows = np.asarray(rows, dtype=np.float32)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def project(
    X: sp.csr_array,
    basis: Array,
    q: int,
    function: Callable[[slice, Array, Array], None],
    threads: int | None = None,
    *,
    embeddings: Array | None = None,
    latent: Array | None = None,
    plain: bool = False,
) -> None:
    """Call ``function(rows, D, products)`` for each block of documents, on threads.

    D holds the latent semantics and embeddings of the rows, and ``products`` their terms times the basis, without its
    first q columns. These are the directions. The latent semantics consist of three blocks of columns: an eighth, a
    half and all of the directions, each with rows of length √½. A block has at least eight directions, since the scaled
    coordinates on fewer would be little more than signs. ``latent``: the latent semantics, if they are known already.
    ``plain``: without compiled kernels.
    """
    sizes = block_sizes(q)
    if latent is not None:
        basis, q = np.ascontiguousarray(basis[:, q:]), 0
    indptr, indices = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
    data = X.data.astype(basis.dtype, copy=False)

    def one(rows: slice) -> None:
        out = X[rows] @ basis if plain else times(indptr[rows.start : rows.stop + 1], indices, data, basis)
        D = latent[rows] if latent is not None else np.hstack([_scaled(out[:, :k]) for k in sizes])
        if embeddings is not None:
            D = np.hstack([D, embeddings[rows]])
        function(rows, D.astype(basis.dtype, copy=False), out[:, q:])

    with workers(threads) as run:
        for _ in run(one, slices(X.shape[0], ROWS)):
            pass


def _scaled(block: Array) -> Array:
    """Rows of length √½."""
    return np.asarray(block * (np.sqrt(0.5) / np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-9)))
