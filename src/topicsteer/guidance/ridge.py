"""The first round of the guide: kernel ridge regression on terms, latent semantics and embeddings.

The labelled documents are the training examples, followed by the texts about topics (names, descriptions, keywords),
each a small labelled document. The settings (:class:`Choice`) are chosen by leave-one-out error; without labels, they
are the defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky
from scipy.linalg.lapack import get_lapack_funcs

from topicsteer.guidance.keywords import TopicTexts
from topicsteer.guidance.latent import dense_features, unit_rows
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN
from topicsteer.nmf.blocks import slices
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array, Report

# Candidate weights of the embeddings, relative to the terms. The first candidate of each setting is its default.
EMBEDDING_WEIGHTS = (1.0, 4.0)
# Candidate weights of the name of a topic, relative to a labelled document.
NAME_WEIGHTS = (1.0, 0.0, 0.1, 3.0)
# Candidate strengths of the ridge.
RIDGES = (1.0, 0.3, 3.0)
# Names and embeddings add information to the labels: their largest weight within this factor of the least error wins.
ERROR_TOLERANCE = 1.02
# Candidate strengths of the ridge where words lead; see `Examples.words_lead`. The first one judges the names, and is
# the default without labels.
RIDGES_OF_WORDS = (3.0, 0.3, 1.0, 10.0)
# Candidate weights of names where words lead: a few labels do not show that words are useless.
NAME_WEIGHTS_OF_WORDS = (1.0, 0.1, 0.3, 3.0)
# Where words lead, the tolerance of their weight is this by the labels per topic: one label does not outweigh words.
WORDS_TOLERANCE = 0.1
# Weight of the sum of a topic's texts, which joins the regression where a topic has keywords. It was chosen on Reuters
# and 20 Newsgroups.
KEYWORD_SUMS = 0.6
# With fewer labels per topic than this, words may know more than labels. Documents of several topics bring more labels
# per topic than a person looked for, so ten per topic are still fewer.
LEADING_LABELS = 16
# A topic with more labels than this gives its name less weight.
FULL_NAME_WEIGHT_LABELS = 5
# Up to this many labelled documents the ridge is solved exactly; beyond, by conjugate gradients with default settings.
EXACT_DOCUMENTS = 2_000
# From this many labelled documents on, single precision is enough to compare settings.
FEW_EXAMPLES = 500
# Conjugate gradients, in single precision, end when the residual of each topic is this share of its targets.
RESIDUAL = 1e-4
# Topics per task of a thread.
TOPICS = 32


def no_report(step: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Choice:
    """Settings of the ridge regression: weight of embeddings (0 if there are none), weight of names, and the ridge."""

    embedding: float
    name: float
    ridge: float


@dataclass(frozen=True, eq=False)
class Ridge:
    """Kernel ridge regression on labelled documents, followed by the names of topics.

    Parameters
    ----------
    terms : CSR (n_examples, n_terms)
    dense : array (n_examples, dimensions)
        Latent semantics and weighted embeddings.
    document_weight : array (n_examples,)
        Weight of each document or name.
    names : array of int
        The topics whose names follow the documents.
    choice : Choice
    kernel : array (n_examples, n_examples) or None
        Gram matrix of the examples; None if there are too many for an exact solution.
    """

    terms: sp.csr_array
    dense: Array
    document_weight: Array
    names: NDArray[np.int64]
    choice: Choice
    kernel: Array | None = None

    def target(
        self, states: NDArray[np.int8], topics: NDArray[np.int64], expected: Array | None = None
    ) -> tuple[Array, Array]:
        """Regression targets of documents and names, and the mean of each topic; unknown labels have the target 0.

        ``expected`` are probabilities of unknown labels, the targets of these; NaN where there are none.
        """
        if expected is not None:
            states = np.where(np.isnan(expected), states, expected)
        mean = np.maximum(states, 0).sum(axis=0) / np.maximum((states != UNKNOWN).sum(axis=0), 1)
        if len(topics) > 1 and self.names.size:  # if no document lacks a topic, texts about the others do
            mean = np.where((states == FORBIDDEN).any(axis=0), mean, 0)
        documents = np.where(states == UNKNOWN, 0.0, states - mean)
        return np.vstack([documents, (self.names[:, None] == topics) * (1 - mean)]), mean

    def solve(
        self,
        target: Array,
        inside: NDArray[np.intp] | slice = slice(None),
        run: OrderedMap = map,
        report: Report = no_report,
    ) -> Array:
        """Dual coefficients of the examples ``inside``, by default of all; many examples use the parallel map."""
        if self.kernel is None:
            parts = self.terms[inside], self.dense[inside], self.document_weight[inside]
            return self._iterate(target[inside], *parts, run, report)
        return np.asarray(cho_solve(cho_factor(self._regularised(inside), overwrite_a=True), target[inside]))

    def _regularised(self, inside: NDArray[np.intp] | slice = slice(None), dtype: DTypeLike = np.float64) -> Array:
        """A copy of the kernel of the examples ``inside``, with the ridge on its diagonal."""
        if self.kernel is None:
            raise ValueError("there are too many documents for their kernel")
        K = self.kernel[inside][:, inside].astype(dtype)
        K.flat[:: len(K) + 1] += self.choice.ridge / self.document_weight[inside]
        return np.asarray(K)

    def keyword_sums(self, topics: NDArray[np.int64]) -> sp.csc_array | None:
        """Weights of terms from the sum of the texts of each topic (n_terms, n_topics); None without keywords.

        The regression sets words of different topics against each other, and loses documents of words that several
        topics share. The sum does not: it ranks documents like the cosine. One text needs no sum, and texts that do
        not predict hidden labels count less. ``topics`` are in ascending order and include all topics with a text.
        """
        place, n = np.searchsorted(topics, self.names), len(self.names)
        texts = np.bincount(place, minlength=len(topics))
        if not (texts > 1).any():
            return None
        sums = sp.csr_array((np.ones(n), (place, np.arange(n))), shape=(len(topics), n)) @ self.terms[-n:]
        length = np.sqrt(np.asarray(sums.power(2).sum(axis=1)).ravel())
        weight = KEYWORD_SUMS * min(self.choice.name, 1.0) * (1 - 1 / np.maximum(texts, 1))
        return sp.csc_array((sp.diags_array(weight / np.maximum(length, 1e-12)) @ sums).T)

    def left_out(self, target: Array, dtype: DTypeLike = np.float64) -> Array:
        """Leave-one-out scores of all examples, in closed form: s_i = y_i - B_i / (K⁻¹)_ii."""
        factor = cholesky(self._regularised(dtype=dtype), lower=True, overwrite_a=True)
        (invert,) = get_lapack_funcs(("trtri",), (factor,))
        inverse, _ = invert(factor, lower=True)  # of the factor: the squares of its column i add up to (K⁻¹)_ii
        diagonal = np.einsum("ij,ij->j", inverse, inverse)
        return np.asarray(target - cho_solve((factor, True), target.astype(dtype)) / diagonal[:, None])

    def _iterate(
        self, target: Array, X: sp.csr_array, D: Array, document_weight: Array, run: OrderedMap, report: Report
    ) -> Array:
        """Dual coefficients by conjugate gradients, all topics at once.

        The preconditioner is the inverse of DDᵀ and a diagonal: the kernel with terms that no two documents share.
        """
        topics, noise = slices(target.shape[1], TOPICS), (self.choice.ridge / document_weight)[:, None].astype(D.dtype)
        factor, XT = cho_factor(np.eye(D.shape[1], dtype=D.dtype) + D.T @ (D / (1 + noise))), sp.csr_array(X.T)

        def kernel_times(P: Array) -> Array:
            return np.asarray(X @ (XT @ P) + D @ (D.T @ P) + noise * P)

        def precondition(R: Array) -> Array:
            R = R / (1 + noise)
            return np.asarray(R - D @ cho_solve(factor, D.T @ R) / (1 + noise))

        def each(function: Callable[[Array], Array], A: Array) -> Array:
            return np.hstack(list(run(function, [A[:, k] for k in topics])))

        def products(A: Array, B: Array) -> Array:
            return np.asarray(np.einsum("ij,ij->j", A, B, dtype=np.float64))

        R = target.astype(D.dtype)
        B, enough = np.zeros_like(R), RESIDUAL**2 * products(R, R)
        P = each(precondition, R)
        size = products(R, P)
        for iteration in range(100):
            report(f"weights, iteration {iteration + 1}")
            KP = each(kernel_times, P)
            step = (size / np.maximum(products(P, KP), 1e-300)).astype(D.dtype)
            B += step * P
            R -= step * KP
            if (products(R, R) <= enough).all():
                break
            conditioned = each(precondition, R)
            size, before = products(R, conditioned), size
            P = conditioned + (size / np.maximum(before, 1e-300)).astype(D.dtype) * P
        return B


@dataclass(frozen=True, eq=False)
class Examples:
    """Training examples of the ridge regression: labelled documents, followed by the names of topics.

    ``document_weight``, ``states`` and ``expected`` are of the documents only; ``named`` are the topics of the texts
    that follow. ``expected`` are probabilities of unknown labels, NaN elsewhere. More documents than
    ``exact_documents`` are solved by iterations.
    """

    terms: sp.csr_array
    latent: Array
    embeddings: Array | None
    document_weight: Array
    states: NDArray[np.int8]
    named: NDArray[np.int64]
    expected: Array | None = None
    exact_documents: int = EXACT_DOCUMENTS

    @classmethod
    def of(
        cls,
        X: sp.csr_array,
        states: NDArray[np.int8],
        document_weight: Array,
        names: TopicTexts | None,
        embeddings: Array | None,
        directions: Array,
        threads: int | None = None,
        expected: Array | None = None,
    ) -> Examples:
        """Examples from the terms and embeddings of documents and of texts about topics."""
        named = np.zeros(0, dtype=np.int64) if names is None else names.topics
        E = None if embeddings is None else unit_rows(embeddings)
        if names is not None:
            X = sp.csr_array(sp.vstack([X, names.terms.astype(X.dtype)], format="csr"))
        if E is not None and names is not None:
            blank = np.zeros((len(named), E.shape[1]), dtype=E.dtype)
            E = np.vstack([E, blank if names.embeddings is None else unit_rows(names.embeddings)])
        return cls(X, dense_features(X, directions, threads), E, document_weight, states, named, expected)

    @property
    def exact(self) -> bool:
        """Whether there are few enough documents for an exact solution and leave-one-out scores."""
        return len(self.document_weight) <= self.exact_documents

    @cached_property
    def plain_kernel(self) -> Array:
        """The kernel of terms and latent semantics, without embeddings."""
        Z = self.latent.astype(np.float64)
        return np.asarray((self.terms @ self.terms.T).toarray().astype(np.float64) + Z @ Z.T)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """Number of labels of each topic."""
        return np.asarray((self.states == PERMITTED).sum(axis=0))

    def ridge(self, choice: Choice) -> Ridge:
        """The ridge regression with given settings."""
        E, n = self.embeddings, len(self.document_weight)
        inside = slice(self.terms.shape[0] if choice.name else n)
        names = _name_weight(choice.name, self.labels[self.named])
        dense = self.latent if E is None else np.hstack([self.latent, np.sqrt(choice.embedding).astype(E.dtype) * E])
        kernel = None
        if self.exact:
            kernel = self.plain_kernel
            kernel = kernel if E is None else kernel + choice.embedding * (E.astype(np.float64) @ E.T)
            kernel = kernel[inside, inside]
        return Ridge(
            self.terms[inside],
            dense[inside],
            np.concatenate([self.document_weight, names[: inside.stop - n]]),
            self.named if choice.name else self.named[:0],
            choice if E is not None else replace(choice, embedding=0.0),
            kernel,
        )

    @cached_property
    def typical_labels(self) -> float:
        """Median number of labels of the topics that have any; 0 without labels."""
        return float(np.median(self.labels[self.labels > 0])) if self.labels.any() else 0.0

    @property
    def words_lead(self) -> bool:
        """Whether words may know more than labels: there are keywords, or names and few labels per topic."""
        keywords = len(np.unique(self.named)) < len(self.named)
        return bool(self.named.size) and (keywords or self.typical_labels < LEADING_LABELS)

    def error(self, choice: Choice) -> float:
        """Weighted leave-one-out squared error on labelled documents.

        Where words lead, it is the error after the best common factor of all scores: a strong ridge shrinks scores, and
        the calibration undoes that.
        """
        topics, built = np.flatnonzero(self.labels), self.ridge(choice)
        states = self.states[:, topics]
        target, _ = built.target(states, topics, None if self.expected is None else self.expected[:, topics])
        dtype = np.float64 if len(states) < FEW_EXAMPLES else np.float32  # ties of few documents are decided exactly
        scores = built.left_out(target, dtype)[: len(states)]
        target, weight = target[: len(states)], np.where(states == UNKNOWN, 0, self.document_weight[:, None])
        factor = 1.0
        if self.words_lead:
            size = max(float((weight * np.square(scores)).sum()), 1e-300)
            factor = max(float((weight * scores * target).sum()) / size, 0.0)
        return float((weight * np.square(factor * scores - target)).sum())


def choose_ridge(examples: Examples, run: OrderedMap = map, report: Report = no_report) -> Choice:
    """Choose the weight of embeddings, then of names, then the ridge, by leave-one-out error. No labels: defaults.

    ``run`` is an ordered parallel map, for the candidates of each setting.
    """
    names, embeddings = bool(examples.named.size), examples.embeddings is not None
    best = Choice(EMBEDDING_WEIGHTS[0], NAME_WEIGHTS[0] if names else 0.0, RIDGES[0])
    judged = examples.exact and examples.labels.any()
    name_weights, name_tolerance = NAME_WEIGHTS, ERROR_TOLERANCE
    ridges: tuple[float, ...] = RIDGES
    if examples.exact and examples.words_lead:
        name_weights, ridges = NAME_WEIGHTS_OF_WORDS, RIDGES_OF_WORDS
        name_tolerance = 1 + WORDS_TOLERANCE / max(examples.typical_labels, 1)
        best = replace(best, ridge=ridges[0])
    known: dict[Choice, float] = {}
    candidates = [("embedding", EMBEDDING_WEIGHTS, ERROR_TOLERANCE)] * embeddings + [
        ("name", name_weights, name_tolerance)
    ] * names
    for field, values, tolerance in [*candidates, ("ridge", ridges, 1.0)] if judged else []:
        report(f"settings, {field}")
        wanted = [replace(best, **{field: value}) for value in values]
        new = [one for one in wanted if one not in known]
        known |= dict(zip(new, run(examples.error, new), strict=True))
        errors = {value: known[one] for value, one in zip(values, wanted, strict=True)}
        most = tolerance * min(errors.values())
        best = replace(best, **{field: max(value for value, error in errors.items() if error <= most)})
    return best


def _name_weight(weight: float, labels: NDArray[np.int64]) -> Array:
    """Weight of texts: smaller for topics with many labels, and at least that of a document for topics without any."""
    return np.where(labels > 0, weight / np.maximum(labels / FULL_NAME_WEIGHT_LABELS, 1), max(weight, 1.0))
