"""The first round of guidance: ridge regression in the kernel of words, latent semantics and embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import get_lapack_funcs
from sklearn.utils.extmath import randomized_svd

from topicsteer.labels.supervision import PERMITTED, UNKNOWN
from topicsteer.nmf.blocks import Matrix, rows_of, slices, times
from topicsteer.system.threads import workers
from topicsteer.system.types import Array

DIMENSIONS = 400  # of the latent semantics, fewer for small corpora and none for tiny ones
FEWEST = 16
SVD_DOCUMENTS = 50_000  # documents that the latent semantics are found from, at most
EMBEDDINGS = (1.0, 4.0)  # what embeddings may weigh beside the words: the first, or the others if they predict better,
NAMES = (1.0, 0.0, 0.1, 3.0)  # what the name of a topic may weigh beside a document,
SPOKEN_FOR = 5  # labels of a topic from which its name weighs less,
RIDGES = (1.0, 0.3, 3.0)  # and the ridges: what errs least on labelled documents that are left out,
LENIENT = 1.02  # or, of names and embeddings, the largest that errs up to this much more: they know more than that
EXACT = 2_000  # labelled documents up to which the ridge is solved exactly, by conjugate gradients beyond
ROWS = 4_096


def latent_directions(X: Matrix, seed: int = 0) -> Array:
    """Right singular vectors of the documents, or of a sample of them: what can be known without any label."""
    n, t = X.shape
    if n > SVD_DOCUMENTS:
        X = rows_of(X, np.sort(np.random.default_rng(seed).choice(n, SVD_DOCUMENTS, replace=False)))
    elif not isinstance(X, sp.csr_array):
        X = rows_of(X, np.arange(n))
    size = min(DIMENSIONS, X.shape[0] // 5, t // 5)
    if size < FEWEST:
        return np.zeros((t, 0), dtype=X.dtype)
    _, _, Vt = randomized_svd(X, size, n_iter=3, random_state=seed)
    return np.ascontiguousarray(Vt.T, dtype=X.dtype)


@dataclass(frozen=True, eq=False)
class Ridge:
    """Kernel ridge regression of labelled documents, and of names of topics behind them.

    ``kernel`` is None where there are too many documents for it; conjugate gradients then need ``words`` and ``dense``.
    """

    words: sp.csr_array
    dense: Array
    trust: Array
    names: NDArray[np.int64]  # the topics whose names stand behind the documents
    kernel: Array | None = None
    ridge: float = 1.0
    embedding: float = 0.0
    name: float = 0.0

    def target(self, states: Any, topics: NDArray[np.int64]) -> tuple[Array, Array]:
        """What to predict for documents and names, and its mean: the unknown pulls nowhere."""
        mean = (states == PERMITTED).sum(axis=0) / np.maximum((states != UNKNOWN).sum(axis=0), 1)
        documents = np.where(states == UNKNOWN, 0.0, states - mean)
        return np.vstack([documents, (self.names[:, None] == topics) * (1 - mean)]), mean

    def solve(self, target: Array, inside: NDArray[np.intp] | slice = slice(None)) -> Array:
        """Weights of some of the documents and names."""
        if self.kernel is None:
            return self._iterate(target[inside], self.words[inside], self.dense[inside], self.trust[inside])
        K = self.kernel[inside][:, inside] + np.diag(self.ridge / self.trust[inside])
        return np.asarray(cho_solve(cho_factor(K, overwrite_a=True), target[inside]))

    def left_out(self, target: Array) -> Array:
        """Scores of all documents and names, each left out in turn, in closed form: s_i = y_i - B_i / (K⁻¹)_ii."""
        if self.kernel is None:
            raise ValueError("there are too many documents to leave out each")
        factor, _ = cho_factor(self.kernel + np.diag(self.ridge / self.trust), lower=True)
        (invert,) = get_lapack_funcs(("potri",), (factor,))
        inverse, _ = invert(factor, lower=True, overwrite_c=True)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        return np.asarray(target - inverse @ target / np.diag(inverse)[:, None])

    def _iterate(self, target: Array, X: sp.csr_array, D: Array, trust: Array) -> Array:
        noise = (self.ridge / trust)[:, None]
        B, R = np.zeros_like(target), target.copy()
        P, size = R.copy(), np.square(R).sum(axis=0)
        for _ in range(100):
            KP = X @ (X.T @ P) + D @ (D.T @ P) + noise * P
            step = size / np.maximum((P * KP).sum(axis=0), 1e-300)
            B += step * P
            R -= step * KP
            size, before = np.square(R).sum(axis=0), size
            if (size <= 1e-8 * np.square(target).sum(axis=0)).all():
                break
            P = R + size / np.maximum(before, 1e-300) * P
        return B


def settle(
    X: Matrix,
    rows: NDArray[np.intp],
    states: Any,
    trust: Array,
    names: sp.csr_array | None,
    embeddings: Array | None,
    directions: Array,
    settled: tuple[float, ...] | None = None,
) -> Ridge:
    """The ridge with what embeddings and names should weigh: what predicts labelled documents best, each left out.

    ``settled`` gives the weights of both and the ridge, if they are chosen already.
    """
    named = np.flatnonzero(np.diff(names.indptr)) if names is not None else np.zeros(0, dtype=np.int64)
    words = rows_of(X, rows)
    if names is not None:
        words = sp.csr_array(sp.vstack([words, names[named].astype(X.dtype)], format="csr"))
    Z = dense_features(words, directions)
    E = None if embeddings is None else np.pad(unit_rows(embeddings[rows]), ((0, len(named)), (0, 0)))
    labels = (states == PERMITTED).sum(axis=0)
    topics = np.flatnonzero(labels)
    everything = np.arange(words.shape[0])
    exact = len(rows) <= EXACT
    plain = (words @ words.T).toarray().astype(np.float64) + Z.astype(np.float64) @ Z.T if exact else None

    def build(embedding: float, name: float, ridge: float) -> Ridge:
        inside = everything if name else everything[: len(rows)]
        dense = Z if E is None else np.hstack([Z, np.sqrt(embedding).astype(E.dtype) * E])
        kernel = None
        if plain is not None:
            kernel = plain if E is None else plain + embedding * (E.astype(np.float64) @ E.T)
            kernel = kernel[: len(inside), : len(inside)]
        return Ridge(
            words[inside].astype(np.float64),
            dense[inside].astype(np.float64),
            np.concatenate([trust, _name_trust(name, labels[named])[: len(inside) - len(rows)]]),
            named if name else named[:0],
            kernel,
            ridge,
            embedding if E is not None else 0.0,
            name,
        )

    def error(*setting: float) -> float:
        built = build(*setting)
        target, _ = built.target(states[:, topics], topics)
        missed = np.where(states[:, topics] == UNKNOWN, 0, (built.left_out(target) - target)[: len(rows)])
        return float((trust[:, None] * np.square(missed)).sum())

    if settled is not None:
        return build(settled[0], settled[1] if named.size else 0.0, settled[2])
    best = [EMBEDDINGS[0], NAMES[0] if named.size else 0.0, RIDGES[0]]
    choices = (EMBEDDINGS if E is not None else (), NAMES if named.size else (), RIDGES)
    for position, candidates in enumerate(choices if exact else ()):
        errors = {value: error(*best[:position], value, *best[position + 1 :]) for value in candidates}
        if errors:
            good = LENIENT if candidates is not RIDGES else 1.0
            best[position] = max(value for value in errors if errors[value] <= good * min(errors.values()))
    return build(*best)


def _name_trust(weight: float, labels: NDArray[np.int64]) -> Array:
    """What names weigh: less the more documents speak for a topic, and no less than a document if none does."""
    return np.where(labels > 0, weight / np.maximum(labels / SPOKEN_FOR, 1), max(weight, 1.0))


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
    sizes = max(q // 8, min(8, q)), max(q // 2, min(8, q)), q
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
