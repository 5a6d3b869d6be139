"""The live guide: memberships that follow each label at once, from one fit to the next.

It starts at the memberships p of the fit. Labels since the fit move the log odds of each topic by a ridge regression on
the features D of documents:

    log odds = logit p + γ D w,    w = argmin Σ_i (r_i − d_i w)² + λ |w|²

The sum runs over documents whose labels changed since the fit. The residual r_i is the label minus p_i, or p_i minus
the label if the label is gone. The minimum is unique, so memberships depend on the labels and not on their order. The
known topics and P(none) follow labels. Thresholds, terms and free topics wait for the next fit; a free topic keeps its
part of P(none).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logit

from topicsteer.guidance.apply import ROWS, apply_labels, covered_topics, merged_classes
from topicsteer.guidance.features import joint
from topicsteer.guidance.guide import LEAST, Guide
from topicsteer.guidance.train import assumed_states
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.model.state import FittedState
from topicsteer.nmf.blocks import slices
from topicsteer.system.files import Scratch
from topicsteer.system.threads import workers
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from topicsteer.model.topic_model import TopicModel

# λ and γ. Of ten pairs they gain most where no corpus loses more than .005: see docs/decisions.md.
RIDGE, SHARPNESS = 10.0, 24.0
# Membership from which a topic without a label or word at the fit starts, once it has a label.
UNCOVERED = 0.01
# The features of more documents are mapped from a file.
MAPPED = 100_000
# Documents per block of work.
BLOCK = 1 << 12


def write_features(model: TopicModel, path: Path, mapped: int = MAPPED) -> Array:
    """Return the features D (n_documents, dimensions) of the training documents, written to a file.

    Features of more than ``mapped`` documents are mapped from it.
    """
    guide, X, E = model.guide_, model._training_rows(), model._training_embeddings()
    assert guide is not None  # noqa: S101
    shape = (X.shape[0], guide.features.width + len(guide.features.centre))
    D = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    for rows in slices(len(D), ROWS):
        own = None if E is None else np.asarray(E[rows])
        parts = guide.features.of(X.take(np.arange(rows.start, rows.stop)), model.threads, own)
        D[rows] = joint(*parts, guide.share)
    D.flush()
    return D if len(D) > mapped else np.array(D)


class LiveGuide:
    """The memberships of a fit under further labels.

    Parameters
    ----------
    fit : FittedState
        The fit; ``now`` is the state under the last labels.
    guide : Guide
    features : array (n_documents, dimensions)
        See `write_features`.
    folder : Scratch, optional
        Temporary folder of the features, which is deleted with them.
    """

    def __init__(self, fit: FittedState, guide: Guide, features: Array, folder: Scratch | None = None) -> None:
        self.fit, self.guide, self.features, self.folder = fit, guide, features, folder
        self.now = fit

    @cached_property
    def at_fit(self) -> Array:
        """Memberships by the fit in the known topics, and in an open world P(none)."""
        known = len(self.fit.codebook)
        columns = [*range(known), -1] if self.fit.open else range(known)
        return np.clip(np.asarray(self.fit.memberships[:, columns], dtype=np.float32), LEAST, 1 - LEAST)

    @cached_property
    def log_odds(self) -> Array:
        """Log odds of the memberships by the fit."""
        return np.asarray(logit(self.at_fit))

    @cached_property
    def prior(self) -> Array:
        """The same, of labelled documents without their own labels; equal for a topic that the guide does not cover."""
        P, known, forest = self.at_fit.copy(), len(self.fit.codebook), self.fit.codebook.forest
        hidden = merged_classes(self.guide.left_out_probabilities(), self.fit.groups, self.guide.n_known)
        hidden = forest.raised(np.where(np.isnan(hidden), P[:, :known].mean(axis=0), hidden))
        none = np.prod(1 - forest.top(hidden), axis=1, keepdims=True)
        P[self.guide.rows] = np.hstack([hidden, none])[:, : P.shape[1]]
        P[:, self.uncovered] = UNCOVERED
        return np.clip(P, LEAST, 1 - LEAST)

    @cached_property
    def uncovered(self) -> NDArray[np.intp]:
        """The topics that nothing tied to a document at the fit."""
        return np.flatnonzero(~covered_topics(self.guide, self.fit.groups))

    def weights(self, supervision: Supervision) -> tuple[NDArray[np.intp], Array]:
        """Return the documents whose labels changed since the fit, and γ w (dimensions, n_classes)."""
        both = (self.fit.supervision, supervision)
        rows = np.flatnonzero(both[0].labelled | both[1].labelled)
        before, now = (labels.patterns[labels.pattern[rows]] for labels in both)
        rows = rows[(before != now).any(axis=1)]
        R = self.targets(supervision, rows) - self.targets(self.fit.supervision, rows)
        D = np.asarray(self.features[rows], dtype=np.float64)
        A = D.T @ D
        A.flat[:: len(A) + 1] += RIDGE
        return rows, SHARPNESS * np.asarray(cho_solve(cho_factor(A, overwrite_a=True), D.T @ R))

    def targets(self, supervision: Supervision, rows: NDArray[np.intp]) -> Array:
        """Labels of documents as memberships; the `prior` where they are unknown."""
        states = assumed_states(supervision.patterns[supervision.pattern[rows]], supervision.forest)
        has, lacks = (states == PERMITTED).any(axis=1), (states == FORBIDDEN).all(axis=1)
        none = np.where(has, FORBIDDEN, np.where(lacks, PERMITTED, UNKNOWN))
        P = self.prior[rows].astype(np.float64)
        targets = np.column_stack([states, none])[:, : P.shape[1]]
        return np.where(targets == UNKNOWN, P, targets)

    def label(self, supervision: Supervision) -> FittedState:
        """Return the state `now` under these labels of all documents, with the memberships that follow from them."""
        known, forest = len(self.fit.codebook), self.fit.codebook.forest
        values = np.array(self.fit.memberships, dtype=np.float32)

        def write(rows: slice) -> None:
            P = expit(odds[rows] + self.features[rows] @ W)
            values[rows, :known] = forest.raised(P[:, :known])
            if self.fit.open:
                free = values[rows, known:-1] * (P[:, known:] / self.at_fit[rows, known:])
                values[rows, known:-1] = np.minimum(free, 1)
                values[rows, -1] = P[:, -1]

        with workers(None) as run:
            changed, found = self.weights(supervision)
            odds, W = self.log_odds.copy(), found.astype(np.float32)
            odds[changed] = logit(self.prior[changed])
            begun = self.uncovered[supervision.counts[self.uncovered] > 0]
            odds[:, begun] = logit(self.prior[:, begun])
            for _ in run(write, slices(len(values) if len(changed) else 0, BLOCK)):
                pass
        pattern, patterns, own = supervision.pattern, supervision.patterns, np.flatnonzero(supervision.labelled)
        values[own] = apply_labels(values[own], replace(supervision, pattern=pattern[own]))
        self.now = replace(self.fit, pattern=pattern, patterns=patterns, memberships=values)
        return self.now


def live_guide(model: TopicModel) -> LiveGuide:
    """Return the live guide of a fitted model with its training documents."""
    if model.guide_ is None:
        raise ValueError("this model has no guide: fit with some labels, or with names of topics.")
    folder = Scratch()
    return LiveGuide(model.state_, model.guide_, write_features(model, folder.path / "features.npy"), folder)
