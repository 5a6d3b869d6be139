"""Latent semantics: directions from a truncated SVD of the documents, and features of documents along them."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from topicsteer.nmf.blocks import slices, times
from topicsteer.nmf.protocols import Rows
from topicsteer.system.threads import workers
from topicsteer.system.types import Array

# Largest number of directions; small corpora have fewer.
DIMENSIONS = 400
# Corpora that are too small for this many directions have none.
MIN_DIMENSIONS = 16
# The SVD reads at most this many documents.
SVD_DOCUMENTS = 50_000
# Documents per block of work.
ROWS = 4_096


def latent_directions(rows: Rows, seed: int = 0) -> Array:
    """Right singular vectors of the documents, or of a sample of them, as columns; labels are not used."""
    n, t = rows.shape
    chosen = np.arange(n)
    if n > SVD_DOCUMENTS:
        chosen = np.sort(np.random.default_rng(seed).choice(n, SVD_DOCUMENTS, replace=False))
    X = rows.take(chosen)
    size = min(DIMENSIONS, X.shape[0] // 5, t // 5)
    if size < MIN_DIMENSIONS:
        return np.zeros((t, 0), dtype=X.dtype)
    _, _, Vt = randomized_svd(X, size, n_iter=3, random_state=seed)
    return np.ascontiguousarray(Vt.T, dtype=X.dtype)


def block_sizes(q: int) -> tuple[int, int, int]:
    """Number of leading directions in each of the three blocks of the latent semantics."""
    return max(q // 8, min(8, q)), max(q // 2, min(8, q)), q


def dense_features(X: sp.csr_array, directions: Array, embeddings: Array | None = None, weight: float = 1.0) -> Array:
    """Latent semantics and weighted embeddings of documents."""
    E = None if embeddings is None else unit_rows(embeddings) * np.sqrt(weight)
    if not X.shape[0]:
        width = sum(block_sizes(directions.shape[1])) + (0 if E is None else E.shape[1])
        return np.zeros((0, width), dtype=directions.dtype)
    return np.concatenate([D for _, D, _ in projected(X, directions, directions.shape[1], None, E)])


def unit_rows(rows: Array) -> Array:
    """Rows of length 1, in single precision."""
    rows = np.asarray(rows, dtype=np.float32)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def projected(
    X: sp.csr_array, basis: Array, q: int, threads: int | None, embeddings: Array | None = None
) -> Iterator[tuple[slice, Array, Array]]:
    """For each block of documents: its rows, its latent semantics and embeddings, and its terms times the other basis.

    The first q columns of the basis are directions. The latent semantics consist of three blocks of columns: an eighth,
    a half and all of the directions, each with rows of length √½. A block has at least eight directions, since the
    scaled coordinates on fewer would be little more than signs.
    """
    sizes = block_sizes(q)
    indptr, indices, data = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(basis.dtype)

    def project(rows: slice) -> tuple[slice, Array, Array]:
        out = times(indptr[rows.start : rows.stop + 1], indices, data, basis)
        blocks = [out[:, :k] for k in sizes]
        dense = [b * (np.sqrt(0.5) / np.maximum(np.linalg.norm(b, axis=1, keepdims=True), 1e-9)) for b in blocks]
        if embeddings is not None:
            dense.append(embeddings[rows])
        return rows, np.hstack(dense).astype(basis.dtype), out[:, q:]

    with workers(threads) as run:
        yield from run(project, slices(X.shape[0], ROWS))
