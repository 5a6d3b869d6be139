"""Latent semantics: what can be known of documents without any label, and the features that are made of it."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from topicsteer.nmf.blocks import slices, times
from topicsteer.nmf.protocols import Rows
from topicsteer.system.threads import workers
from topicsteer.system.types import Array

DIMENSIONS = 400  # of the latent semantics, fewer for small corpora and none for tiny ones
FEWEST = 16
SVD_DOCUMENTS = 50_000  # documents that the latent semantics are found from, at most
ROWS = 4_096


def latent_directions(rows: Rows, seed: int = 0) -> Array:
    """Right singular vectors of the documents, or of a sample of them: what can be known without any label."""
    n, t = rows.shape
    chosen = np.arange(n)
    if n > SVD_DOCUMENTS:
        chosen = np.sort(np.random.default_rng(seed).choice(n, SVD_DOCUMENTS, replace=False))
    X = rows.take(chosen)
    size = min(DIMENSIONS, X.shape[0] // 5, t // 5)
    if size < FEWEST:
        return np.zeros((t, 0), dtype=X.dtype)
    _, _, Vt = randomized_svd(X, size, n_iter=3, random_state=seed)
    return np.ascontiguousarray(Vt.T, dtype=X.dtype)


def block_sizes(q: int) -> tuple[int, int, int]:
    """How many of the q directions each block of the latent semantics holds."""
    return max(q // 8, min(8, q)), max(q // 2, min(8, q)), q


def dense_features(X: sp.csr_array, directions: Array, embeddings: Array | None = None, weight: float = 1.0) -> Array:
    """Latent semantics of documents, and their weighed embeddings."""
    E = None if embeddings is None else unit_rows(embeddings) * np.sqrt(weight)
    return np.concatenate([D for _, D, _ in projected(X, directions, directions.shape[1], None, E)])


def unit_rows(rows: Array) -> Array:
    """Rows of length 1, in single precision."""
    rows = np.asarray(rows, dtype=np.float32)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def projected(
    X: sp.csr_array, basis: Array, q: int, threads: int | None, embeddings: Array | None = None
) -> Iterator[tuple[slice, Array, Array]]:
    """Documents in pieces: latent semantics and weighed embeddings, and their words times the rest of the basis.

    The latent semantics hold an eighth, a half and all of the q directions, each block with rows of length √½; fewer
    than eight directions would be little more than a sign.
    """
    sizes = block_sizes(q)
    indptr, indices, data = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(basis.dtype)

    def project(part: slice) -> tuple[slice, Array, Array]:
        out = times(indptr[part.start : part.stop + 1], indices, data, basis)
        blocks = [out[:, :k] for k in sizes]
        dense = [b * (np.sqrt(0.5) / np.maximum(np.linalg.norm(b, axis=1, keepdims=True), 1e-9)) for b in blocks]
        if embeddings is not None:
            dense.append(embeddings[part])
        return part, np.hstack(dense).astype(basis.dtype), out[:, q:]

    with workers(threads) as run:
        yield from run(project, slices(X.shape[0], ROWS))
