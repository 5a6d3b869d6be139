"""The first round of guidance: ridge regression in the kernel of words, latent semantics and embeddings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import get_lapack_funcs

from topicsteer.guidance.latent import dense_features, unit_rows
from topicsteer.labels.supervision import PERMITTED, UNKNOWN
from topicsteer.system.types import Array

EMBEDDINGS = (1.0, 4.0)  # what embeddings may weigh beside the words: the first, or the others if they predict better,
NAMES = (1.0, 0.0, 0.1, 3.0)  # what the name of a topic may weigh beside a document,
SPOKEN_FOR = 5  # labels of a topic from which its name weighs less,
RIDGES = (1.0, 0.3, 3.0)  # and the ridges: what errs least on labelled documents that are left out,
LENIENT = 1.02  # or, of names and embeddings, the largest that errs up to this much more: they know more than that
EXACT = 2_000  # labelled documents up to which the ridge is solved exactly, by conjugate gradients beyond


@dataclass(frozen=True)
class Choice:
    """What was chosen: the weight of embeddings (0 if there are none) and of names, and the ridge."""

    embedding: float
    name: float
    ridge: float


@dataclass(frozen=True, eq=False)
class Ridge:
    """Kernel ridge regression of labelled documents, and of names of topics behind them.

    ``kernel`` is None where there are too many documents for it; conjugate gradients then need ``words`` and ``dense``.
    """

    words: sp.csr_array
    dense: Array
    document_weight: Array
    names: NDArray[np.int64]  # the topics whose names stand behind the documents
    choice: Choice
    kernel: Array | None = None

    def target(self, states: NDArray[np.int8], topics: NDArray[np.int64]) -> tuple[Array, Array]:
        """What to predict for documents and names, and its mean: the unknown pulls nowhere."""
        mean = (states == PERMITTED).sum(axis=0) / np.maximum((states != UNKNOWN).sum(axis=0), 1)
        documents = np.where(states == UNKNOWN, 0.0, states - mean)
        return np.vstack([documents, (self.names[:, None] == topics) * (1 - mean)]), mean

    def solve(self, target: Array, inside: NDArray[np.intp] | slice = slice(None)) -> Array:
        """Weights of some of the documents and names."""
        if self.kernel is None:
            return self._iterate(target[inside], self.words[inside], self.dense[inside], self.document_weight[inside])
        K = self.kernel[inside][:, inside] + np.diag(self.choice.ridge / self.document_weight[inside])
        return np.asarray(cho_solve(cho_factor(K, overwrite_a=True), target[inside]))

    def left_out(self, target: Array) -> Array:
        """Scores of all documents and names, each left out in turn, in closed form: s_i = y_i - B_i / (K⁻¹)_ii."""
        if self.kernel is None:
            raise ValueError("there are too many documents to leave out each")
        factor, _ = cho_factor(self.kernel + np.diag(self.choice.ridge / self.document_weight), lower=True)
        (invert,) = get_lapack_funcs(("potri",), (factor,))
        inverse, _ = invert(factor, lower=True, overwrite_c=True)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        return np.asarray(target - inverse @ target / np.diag(inverse)[:, None])

    def _iterate(self, target: Array, X: sp.csr_array, D: Array, document_weight: Array) -> Array:
        noise = (self.choice.ridge / document_weight)[:, None]
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


@dataclass(frozen=True, eq=False)
class Examples:
    """The labelled documents, and the names of topics behind them, as the ridge learns from them."""

    words: sp.csr_array
    latent: Array
    embeddings: Array | None
    document_weight: Array  # of the documents
    states: NDArray[np.int8]  # of the documents
    named: NDArray[np.int64]  # topics that have words in their names

    @classmethod
    def of(
        cls,
        X: sp.csr_array,
        states: NDArray[np.int8],
        document_weight: Array,
        names: sp.csr_array | None,
        embeddings: Array | None,
        directions: Array,
    ) -> Examples:
        """From the terms of the documents and of the names, and the embeddings of the documents."""
        named = np.flatnonzero(np.diff(names.indptr)) if names is not None else np.zeros(0, dtype=np.int64)
        if names is not None:
            X = sp.csr_array(sp.vstack([X, names[named].astype(X.dtype)], format="csr"))
        E = None if embeddings is None else np.pad(unit_rows(embeddings), ((0, len(named)), (0, 0)))
        return cls(X, dense_features(X, directions), E, document_weight, states, named)

    @property
    def exact(self) -> bool:
        """Whether there are few enough documents to solve exactly and to leave out each."""
        return len(self.document_weight) <= EXACT

    @cached_property
    def plain_kernel(self) -> Array:
        """Products of words and latent semantics, without embeddings."""
        Z = self.latent
        return np.asarray((self.words @ self.words.T).toarray().astype(np.float64) + Z.astype(np.float64) @ Z.T)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """Number of labels of each topic."""
        return np.asarray((self.states == PERMITTED).sum(axis=0))

    def ridge(self, choice: Choice) -> Ridge:
        """The ridge regression under some settings."""
        E, n = self.embeddings, len(self.document_weight)
        inside = np.arange(self.words.shape[0] if choice.name else n)
        dense = self.latent if E is None else np.hstack([self.latent, np.sqrt(choice.embedding).astype(E.dtype) * E])
        kernel = None
        if self.exact:
            kernel = self.plain_kernel
            kernel = kernel if E is None else kernel + choice.embedding * (E.astype(np.float64) @ E.T)
            kernel = kernel[: len(inside), : len(inside)]
        return Ridge(
            self.words[inside].astype(np.float64),
            dense[inside].astype(np.float64),
            np.concatenate(
                [self.document_weight, _name_weight(choice.name, self.labels[self.named])[: len(inside) - n]]
            ),
            self.named if choice.name else self.named[:0],
            choice if E is not None else replace(choice, embedding=0.0),
            kernel,
        )

    def error(self, choice: Choice) -> float:
        """Squared error on labelled documents, each left out in turn."""
        topics, built = np.flatnonzero(self.labels), self.ridge(choice)
        states = self.states[:, topics]
        target, _ = built.target(states, topics)
        missed = np.where(states == UNKNOWN, 0, (built.left_out(target) - target)[: len(states)])
        return float((self.document_weight[:, None] * np.square(missed)).sum())


def choose_ridge(examples: Examples) -> Choice:
    """What embeddings and names should weigh, and the ridge: what predicts labelled documents best, each left out."""
    names, embeddings = bool(examples.named.size), examples.embeddings is not None
    best = Choice(EMBEDDINGS[0], NAMES[0] if names else 0.0, RIDGES[0])
    candidates = [("embedding", EMBEDDINGS, LENIENT)] * embeddings + [("name", NAMES, LENIENT)] * names
    for field, values, leniency in [*candidates, ("ridge", RIDGES, 1.0)] if examples.exact else []:
        errors = {value: examples.error(replace(best, **{field: value})) for value in values}
        most = leniency * min(errors.values())
        best = replace(best, **{field: max(value for value, error in errors.items() if error <= most)})
    return best


def _name_weight(weight: float, labels: NDArray[np.int64]) -> Array:
    """What names weigh: less the more documents speak for a topic, and no less than a document if none does."""
    return np.where(labels > 0, weight / np.maximum(labels / SPOKEN_FOR, 1), max(weight, 1.0))
