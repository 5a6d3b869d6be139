"""The guide: from the terms of a document to the probability of each topic.

The factorisation applies the labels to labelled documents, but nothing in its objective carries them over to unlabelled
documents. The guide does. `topicsteer.guidance.train` learns it from labels and names, and
`topicsteer.guidance.apply` applies it to all documents.

A guide has one or two sets of classes (:class:`Classes`). The first one has the known topics only. In an open world, a
second one also has groups of documents without a known topic. P(none) is their probability. Known topics have the
geometric mean of both sets and of the second softmax regression. All scores are linear in the terms up to row norms, so
a new document costs one product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, logit

from topicsteer.guidance.classes import Learnt
from topicsteer.guidance.features import Features, each_product, joint
from topicsteer.guidance.regression import Choice, Mix, Rivalry
from topicsteer.labels.forest import Forest
from topicsteer.system.types import Array

# Smallest probability in log odds.
LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Classes:
    """From features and terms to log odds of some classes.

    The score of a class is a weight times its log probability by the softmax regression, plus D B + X R + c.

    Parameters
    ----------
    softmax : array (dimensions + 1, n_classes)
        The softmax regression; the intercepts come last.
    dense : array (dimensions, n_classes)
        B: ridge regression and centroids with their weights.
    ratios : array (n_terms, n_classes)
        R: log ratios of naive Bayes with their weight.
    offset : array (n_classes,)
        c: log shares with their weight.
    mix : array (3,)
        Weight of the softmax regression, coupling and intercept; see `topicsteer.guidance.regression`.
    """

    softmax: Array
    dense: Array
    ratios: Array
    offset: Array
    mix: Array

    @classmethod
    def of(cls, learnt: Learnt) -> Classes:
        """The classes of a finished training."""
        a, t, b, c, d = learnt.mix.weights.astype(np.float32)
        mix = np.array([a, learnt.mix.coupling, learnt.mix.intercept])
        dense = np.ascontiguousarray(t * learnt.ridge + c * learnt.centroids, dtype=np.float32)
        return cls(learnt.softmax, dense, np.ascontiguousarray(b * learnt.ratios), d * learnt.shares, mix)

    def regression(self, D: Array, rivalry: Rivalry) -> Array:
        """Log probabilities (n_documents, n_classes) of the softmax regression."""
        return rivalry.log_softmax(D @ self.softmax[:-1] + self.softmax[-1])

    def odds(self, D: Array, products: Array, rivalry: Rivalry, log_p: Array) -> Array:
        """Log odds (n_documents, n_classes); ``products`` are terms times ``ratios``, ``log_p`` the `regression`."""
        rest = D @ self.dense + products + self.offset.astype(np.float32)
        return Mix(np.array([self.mix[0], 1.0]), *self.mix[1:]).odds([log_p, rest], rivalry)

    def widened(self, more: int) -> Classes:
        """The same classes with zeros for new terms."""
        return replace(self, ratios=np.pad(self.ratios, ((0, more), (0, 0))))


FEATURE_ARRAYS = ("directions", "vectors", "rotation", "centre")
CLASS_ARRAYS = ("softmax", "dense", "ratios", "offset", "mix")
# Arrays of a guide.
PLAIN_ARRAYS = ("covered", "rows", "left_out", "seen", "parents")


@dataclass(frozen=True, eq=False, repr=False)
class Guide:
    """From documents to probabilities of the known topics.

    Parameters
    ----------
    features : Features
        From terms to latent semantics and meaning.
    choice : Choice
        Share of meaning in the features, and settings of the regressions.
    known : Classes
        The covered topics.
    covered : array of int (n_covered,)
        Numbers of the known topics with labels or a useful name; the others have probability 0.
    parents : array of int (n_known,)
        Parent of each known topic, -1 without one.
    rows : array of int (n_rows,)
        The labelled documents that the guide was learnt from.
    left_out : array (n_rows, n_covered)
        Probabilities of these documents while their own labels are hidden; NaN where they never are.
    seen : array (dimensions, dimensions)
        DᵀD of the features of the labelled documents: the region that labels cover.
    chosen_from : int
        Number of labelled documents from which settings and weights were learnt.
    open : bool
        Whether documents may have none of the known topics.
    groups : Classes or None
        The covered topics, followed by groups of documents without a known topic; only in an open world.
    none : array (2,)
        Slope and intercept of the log odds of P(none).
    sizes : array (n_groups,) or None
        Expected number of documents of each group; not stored in files, as the next.
    merges : array (n_groups - 1, 2) or None
        Pairs of groups in the order in which they merge into free topics.
    """

    features: Features
    choice: Choice
    known: Classes
    covered: NDArray[np.int64]
    parents: NDArray[np.int64]
    rows: NDArray[np.int64]
    left_out: Array
    seen: Array
    chosen_from: int
    open: bool = False
    groups: Classes | None = None
    none: Array | None = None
    sizes: Array | None = None
    merges: NDArray[np.intp] | None = None

    @property
    def share(self) -> float:
        """Share of meaning in the features."""
        return self.choice.share

    @property
    def n_known(self) -> int:
        """Number of known topics."""
        return len(self.parents)

    @property
    def n_groups(self) -> int:
        """Number of groups of documents without a known topic; they are further classes, after the known topics."""
        return 0 if self.groups is None else int(self.groups.ratios.shape[1]) - len(self.covered)

    @property
    def embedding(self) -> float:
        """Share of given embeddings in the features; 0 if new documents need none."""
        return self.share if self.features.given else 0.0

    @property
    def covers(self) -> NDArray[np.bool_]:
        """Whether the guide covers each known topic, by itself or by a topic below it, and each group."""
        found = np.isin(np.arange(self.n_known + self.n_groups), self.covered)
        found[self.n_known :] = True
        found[: self.n_known] = self._forest.with_ancestors(found[None, : self.n_known])[0]
        return found

    def probabilities(
        self, X: sp.csr_array, threads: int | None = None, *, embeddings: Array | None = None, plain: bool = False
    ) -> NDArray[np.float32]:
        """Probabilities of known topics and groups in each document, without regard to labels; P(none) comes last.

        ``plain``: without compiled kernels, for a few documents.
        """
        return side_by_side([self], X, threads, embeddings=embeddings, plain=plain)[0]

    def _write(self, out: Array, D: Array, products: Array) -> None:
        """Write the probabilities of documents with these features and products of terms."""
        covered = len(self.covered)
        rivals, rivals_of_groups = self.rivalries
        n_known = self.known.ratios.shape[1]
        found = expit(self.known.odds(D, products[:, :n_known], rivals, self.known.regression(D, rivals)))[:, :covered]
        if self.groups is not None and self.none is not None:
            log_p = self.groups.regression(D, rivals_of_groups)
            P = expit(self.groups.odds(D, products[:, n_known:], rivals_of_groups, log_p))
            free, none = free_shares(P, covered, self.tops, self.none)
            found = np.cbrt(found * P[:, :covered] * np.exp(log_p[:, :covered]))
            out[:, self.n_known : -1] = free
            out[:, -1] = none
        out[:, self.covered] = found
        out[:, : self.n_known] = self._forest.raised(out[:, : self.n_known])
        if self.open and self.groups is None:
            out[:, -1] = np.prod(1 - self._forest.top(out[:, : self.n_known]), axis=1)

    def left_out_probabilities(self) -> Array:
        """Probability of each known topic in the labelled documents ``rows``, each without its own labels."""
        found = np.zeros((len(self.rows), self.n_known + self.n_groups), dtype=np.float32)
        found[:, self.covered] = self.left_out
        found[:, : self.n_known] = self._forest.raised(found[:, : self.n_known])
        return found

    def positions(self, X: sp.csr_array, threads: int | None = None) -> Array:
        """Features of documents for map and suggestions: from their terms alone, without given embeddings."""
        Z, M = self.features.of(X, threads)
        return Z if self.features.given else joint(Z, M, self.share)

    def renumbered(self, rows: NDArray[np.int64], n_terms: int | None = None) -> Guide:
        """The same guide with new row numbers of its documents, and zeros for new terms."""
        more = 0 if n_terms is None else n_terms - len(self.features.directions)
        if not more:
            return replace(self, rows=rows)
        wider = ((0, more), (0, 0))
        features = replace(
            self.features,
            directions=np.pad(self.features.directions, wider),
            vectors=np.pad(self.features.vectors, wider),
        )
        groups = None if self.groups is None else self.groups.widened(more)
        return replace(self, rows=rows, features=features, known=self.known.widened(more), groups=groups)

    @property
    def _forest(self) -> Forest:
        return Forest(tuple(self.parents.tolist()))

    @property
    def tops(self) -> NDArray[np.bool_]:
        """Which covered topics have no covered topic above them."""
        parts = self._forest.part(self.covered.tolist())
        return np.array([parent < 0 for parent in parts.parents], dtype=np.bool_)

    @property
    def rivalries(self) -> tuple[Rivalry, Rivalry]:
        """Rivals of the known topics, and of known topics and groups."""
        outsiders = self.known.ratios.shape[1] - len(self.covered)
        more = 0 if self.groups is None else self.groups.ratios.shape[1] - len(self.covered)
        return Rivalry.of(self._forest, self.covered, outsiders), Rivalry.of(self._forest, self.covered, more)

    # --- files ---

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All fields without the open world, as arrays under their names in files."""
        return {
            "settings": np.array([*vars(self.choice).values(), self.chosen_from]),
            **{name: getattr(self.features, name) for name in FEATURE_ARRAYS},
            **{name: getattr(self.known, name) for name in CLASS_ARRAYS},
            **{name: getattr(self, name) for name in PLAIN_ARRAYS},
        }

    def outside_arrays(self) -> dict[str, NDArray[Any]] | None:
        """All fields of an open world as arrays; None in a closed world."""
        if not self.open:
            return None
        counts = {"counts": np.array([self.n_known, self.n_groups], dtype=np.int64)}
        if self.groups is None or self.none is None:
            return counts
        found = {name: getattr(self.groups, name) for name in CLASS_ARRAYS}
        return counts | found | {"none": self.none}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], outside: Mapping[str, NDArray[Any]] | None = None
    ) -> Guide:
        """The guide of these :meth:`arrays` and :meth:`outside_arrays`."""
        *choice, labels = arrays["settings"].tolist()
        groups: dict[str, Any] = {}
        if outside is not None and "none" in outside:
            groups = {"groups": Classes(*(outside[name] for name in CLASS_ARRAYS)), "none": outside["none"]}
        return cls(
            features=Features(*(arrays[name] for name in FEATURE_ARRAYS)),
            choice=Choice(*choice),
            known=Classes(*(arrays[name] for name in CLASS_ARRAYS)),
            chosen_from=int(labels),
            open=outside is not None,
            **groups | {name: arrays[name] for name in PLAIN_ARRAYS},
        )


def free_shares(P: Array, covered: int, tops: NDArray[np.bool_], none: Array) -> tuple[Array, Array]:
    """Probabilities of groups and P(none), from the probabilities P of known topics and groups.

    P(none) is the share of the groups in all probabilities; ``none`` are slope and intercept of its log odds.
    """
    free = P[:, covered:]
    known = P[:, :covered][:, tops].sum(axis=1)
    total = free.sum(axis=1)
    share = total / np.maximum(known + total, 1e-30)
    slope, intercept = none
    if (slope, intercept) != (1.0, 0.0):
        share = np.asarray(expit(slope * logit(np.clip(share, LEAST, 1 - LEAST)) + intercept))
    return free * (share / np.maximum(total, 1e-30))[:, None], share


def side_by_side(
    guides: Sequence[Guide],
    X: sp.csr_array,
    threads: int | None = None,
    *,
    embeddings: Array | None = None,
    plain: bool = False,
) -> list[NDArray[np.float32]]:
    """The probabilities of several guides with the same features, which are computed once."""
    features = guides[0].features
    needed = any(guide.embedding for guide in guides)
    if embeddings is None and needed:
        raise ValueError("This guide needs the embeddings of documents.")
    if embeddings is not None and not features.given:
        raise ValueError("This guide was learnt without embeddings.")
    embeddings = embeddings if needed else None  # their share may be 0
    ratios = [[guide.known.ratios, *([] if guide.groups is None else [guide.groups.ratios])] for guide in guides]
    basis = np.hstack([features.basis, *(own for parts in ratios for own in parts)])
    ends = np.cumsum([features.basis.shape[1], *(sum(own.shape[1] for own in parts) for parts in ratios)])[:-1]
    found = [np.zeros((X.shape[0], guide.n_known + guide.n_groups + guide.open), dtype=np.float32) for guide in guides]

    def write(rows: slice, products: Array) -> None:
        own, *terms = np.split(products, ends, axis=1)
        Z, M = features.parts(own, None if embeddings is None else embeddings[rows])
        for guide, out, part in zip(guides, found, terms, strict=True):
            guide._write(out[rows], joint(Z, M, guide.share), part)

    each_product(X, basis, write, threads, plain=plain)
    empty = np.diff(X.indptr) == 0  # a document without terms gives no evidence, unless it has an embedding
    for guide, out in zip(guides, found, strict=True):
        if not guide.embedding:
            out[empty] = 0
            if guide.open:
                out[empty, -1] = 1
    return found
