"""Features of documents: latent semantics and meaning, from one product with their terms.

A document with the terms x has two kinds of features, each with rows of length 1:

- **Latent semantics** Z: the coordinates x V along the leading directions V of the corpus, in three blocks: an eighth,
  a half and all of the directions. Each block is scaled to the same length.
- **Meaning** M: the mean of the word vectors of its terms, c T with the counts c and the vectors T. The counts are the
  entries of x over the weights of their terms. So c T is x times the rows of T over these weights. The mean direction
  of the corpus is subtracted. Given embeddings of the documents take the place of the word vectors. Vectors with many
  numbers are reduced to their leading principal components.

Everything that learns uses D = [√(1 − r) Z | √r M]; r is the share of meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from topicsteer.labels.supervision import Supervision
from topicsteer.nmf.blocks import slices, times
from topicsteer.nmf.latent import ROWS, latent_directions
from topicsteer.nmf.protocols import Rows
from topicsteer.system.threads import workers
from topicsteer.system.types import Array

# Features shorter than this, from rows of length 1, are rounding errors and become zeros.
NOISE = 1e-6
# Largest number of background documents.
BACKGROUND = 20_000
# Principal components of word vectors and embeddings. More cost time and gain nothing.
COMPONENTS = 128


def unit_rows(rows: Array) -> Array:
    """Rows of length 1, in single precision."""
    rows = np.asarray(rows, dtype=np.float32)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def block_sizes(q: int) -> tuple[int, int, int]:
    """Number of leading directions in each of the three blocks of the latent semantics.

    A block has at least eight directions, since the scaled coordinates on fewer would be little more than signs.
    """
    return max(q // 8, min(8, q)), max(q // 2, min(8, q)), q


@dataclass(frozen=True, eq=False)
class Features:
    """From terms to latent semantics and meaning.

    Parameters
    ----------
    directions : array (n_terms, q)
        Directions of the latent semantics.
    vectors : array (n_terms, size)
        Reduced word vector of each term over the weight of the term; no columns without word vectors.
    rotation : array (n_numbers, size)
        From word vectors or embeddings to their principal components.
    centre : array (size,)
        Mean of the scaled vectors of documents; empty without meaning.
    """

    directions: Array
    vectors: Array
    rotation: Array
    centre: Array

    @property
    def given(self) -> bool:
        """Whether meaning comes from given embeddings of the documents."""
        return bool(len(self.centre)) and not self.vectors.shape[1]

    @property
    def basis(self) -> Array:
        """Directions and vectors side by side."""
        return np.hstack([self.directions, self.vectors])

    @property
    def width(self) -> int:
        """Number of columns of the latent semantics."""
        return sum(block_sizes(self.directions.shape[1]))

    def parts(self, products: Array, embeddings: Array | None) -> tuple[Array, Array]:
        """Latent semantics and meaning of documents, from the products of their terms with the basis.

        Without the embeddings that the features were made for, documents have no meaning.
        """
        q = self.directions.shape[1]
        if embeddings is not None:
            vectors = self.reduced(embeddings)
        else:
            vectors = np.zeros((len(products), len(self.centre))) if self.given else products[:, q:]
        return self.latent(products[:, :q]), self.meaning(vectors)

    def latent(self, coordinates: Array) -> Array:
        """Blocks of the leading coordinates, side by side."""
        sizes = block_sizes(coordinates.shape[1])
        out = np.empty((len(coordinates), self.width), dtype=np.float32)
        for first, size in zip(np.cumsum((0, *sizes)), sizes, strict=False):
            block = coordinates[:, :size]
            length = np.linalg.norm(block, axis=1, keepdims=True)
            length[length < NOISE] = np.inf
            np.multiply(block, np.sqrt(1 / 3) / length, out=out[:, first : first + size])
        return out

    def reduced(self, embeddings: Array) -> Array:
        """Principal components of embeddings or word vectors."""
        return np.asarray(embeddings, dtype=np.float32) @ self.rotation

    def meaning(self, vectors: Array, centre: Array | None = None) -> Array:
        """Rows of length 1 of reduced vectors, without the mean; a row of zeros or of the mean itself becomes zeros."""
        if not len(self.centre):
            return np.zeros((len(vectors), 0), dtype=np.float32)
        rows = unit_rows(vectors)
        filled = rows.any(axis=1, keepdims=True)
        rest = np.where(filled, rows - (self.centre if centre is None else centre), 0)
        rest[np.linalg.norm(rest, axis=1) < NOISE] = 0
        return unit_rows(rest)

    def of(
        self, X: sp.csr_array, threads: int | None = None, embeddings: Array | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Latent semantics and meaning of documents."""
        Z = np.empty((X.shape[0], self.width), dtype=np.float32)
        M = np.empty((X.shape[0], len(self.centre)), dtype=np.float32)

        def write(rows: slice, products: Array) -> None:
            Z[rows], M[rows] = self.parts(products, None if embeddings is None else embeddings[rows])

        each_product(X, self.basis, write, threads)
        return Z, M


def joint(latent: Array, meaning: Array, share: float) -> Array:
    """Features D of documents: latent semantics and meaning, each with its share of the squared length."""
    if not meaning.shape[1]:
        return latent
    return np.hstack([np.sqrt(np.float32(1 - share)) * latent, np.sqrt(np.float32(share)) * meaning])


def each_product(
    X: sp.csr_array,
    basis: Array,
    function: Callable[[slice, Array], None],
    threads: int | None = None,
    *,
    plain: bool = False,
) -> None:
    """Call ``function(rows, products)`` with the terms times a basis, for each block of documents, on threads.

    ``plain``: without compiled kernels, for a few documents.
    """
    basis = np.ascontiguousarray(basis)
    indptr, indices, data = kernel_arrays(X, basis.dtype)

    def one(rows: slice) -> None:
        if plain:
            function(rows, X[rows] @ basis)
        else:
            function(rows, times(indptr[rows.start : rows.stop + 1], indices, data, basis))

    with workers(threads) as run:
        for _ in run(one, slices(X.shape[0], ROWS)):
            pass


def kernel_arrays(X: sp.csr_array, dtype: DTypeLike) -> tuple[NDArray[np.int64], NDArray[np.int32], Array]:
    """The arrays of X in the types that the kernels take."""
    indptr, indices = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
    return indptr, indices, X.data.astype(dtype, copy=False)


# --- the documents to learn from ---


def background_rows(supervision: Supervision, seed: int) -> NDArray[np.intp]:
    """Row numbers of the background documents: all unlabelled documents, or a sample of them."""
    unlabelled = np.flatnonzero(~supervision.labelled)
    if len(unlabelled) > BACKGROUND:
        unlabelled = np.sort(np.random.default_rng(seed).choice(unlabelled, BACKGROUND, replace=False))
    return unlabelled


@dataclass(frozen=True, eq=False)
class Sample:
    """The documents to learn from: labelled documents, followed by background documents.

    Terms and features are computed when they are first used, and all steps of the training share them.

    Parameters
    ----------
    X : Rows (n_documents, n_terms)
        All documents.
    supervision : Supervision
        Their labels.
    embeddings : array (n_documents, any), optional
        Their embeddings, in the place of word vectors.
    vectors : array (n_terms, size), optional
        Word vectors of the terms over their weights.
    given : Features, optional
        Features to use as they are.
    directions : array, optional
        Directions of the latent semantics of these documents, which do not depend on labels.
    seed : int
        Seed of the decomposition and the background.
    threads : int, optional
        None = all cores.
    drawn : array of bool (n_documents,), optional
        Documents that were drawn at random. P(none) is calibrated to their labels; without any, it only ranks.
    """

    X: Rows
    supervision: Supervision
    embeddings: Array | None = None
    vectors: Array | None = None
    given: Features | None = None
    directions: Array | None = None
    seed: int = 0
    threads: int | None = None
    drawn: NDArray[np.bool_] | None = None

    @cached_property
    def labelled(self) -> NDArray[np.intp]:
        """Row numbers of the labelled documents that have terms."""
        return np.flatnonzero(self.supervision.labelled & (self.X.sizes > 0))

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Row numbers of all documents of the sample."""
        return np.concatenate([self.labelled, background_rows(self.supervision, self.seed)])

    @cached_property
    def terms(self) -> sp.csr_array:
        """Terms of the documents."""
        return self.X.take(self.rows)

    @property
    def own_embeddings(self) -> Array | None:
        """Embeddings of the documents."""
        return None if self.embeddings is None else np.asarray(self.embeddings[self.rows])

    @cached_property
    def features(self) -> Features:
        """The features of this corpus."""
        return self._computed[0]

    @property
    def latent(self) -> Array:
        """Latent semantics of the documents."""
        return self._computed[1]

    @property
    def meaning(self) -> Array:
        """Meaning of the documents."""
        return self._computed[2]

    @cached_property
    def _computed(self) -> tuple[Features, Array, Array]:
        E = self.own_embeddings
        if self.given is not None:
            return self.given, *self.given.of(self.terms, self.threads, E)
        directions = self.directions
        if directions is None:
            directions = latent_directions(self.X, self.seed, self.threads)
        whole = self.vectors if E is None and self.vectors is not None else np.zeros((len(directions), 0), np.float32)
        n_numbers = whole.shape[1] if E is None else E.shape[1]
        plain = Features(directions, whole, np.eye(n_numbers, dtype=np.float32), np.zeros(n_numbers, np.float32))
        Z, M = plain.of(self.terms, self.threads, E)
        filled = max(int(M.any(axis=1).sum()), 1)
        if n_numbers > COMPONENTS:
            mean = M.sum(axis=0, dtype=np.float64) / filled
            spread = (M.T @ M).astype(np.float64) - filled * np.outer(mean, mean)
            rotation = np.ascontiguousarray(np.linalg.eigh(spread)[1][:, : -COMPONENTS - 1 : -1], dtype=np.float32)
            vectors = whole @ rotation if whole.shape[1] else whole
            plain = replace(plain, vectors=vectors, rotation=rotation)
            M = unit_rows(M @ rotation)
        centre = np.asarray(M.sum(axis=0, dtype=np.float64) / filled, dtype=np.float32)
        found = replace(plain, centre=centre)
        return found, Z, found.meaning(M)
