"""The documents that a guide is learnt from, with their features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.guidance.latent import dense_features, latent_directions, unit_rows
from topicsteer.labels.supervision import Supervision
from topicsteer.nmf.protocols import Rows
from topicsteer.system.memory import release_memory
from topicsteer.system.types import Array

# Largest number of background documents.
BACKGROUND = 20_000


def background_rows(supervision: Supervision, seed: int) -> NDArray[np.intp]:
    """Row numbers of the background documents: all unlabelled documents, or a sample of them."""
    unlabelled = np.flatnonzero(~supervision.labelled)
    if len(unlabelled) > BACKGROUND:
        unlabelled = np.sort(np.random.default_rng(seed).choice(unlabelled, BACKGROUND, replace=False))
    return unlabelled


@dataclass(frozen=True, eq=False)
class Sample:
    """Labelled documents, followed by background documents.

    Terms and features are computed when they are first used, and all steps of the training share them.

    Parameters
    ----------
    X : Rows (n_documents, n_terms)
        All documents.
    supervision : Supervision
        Their labels.
    embeddings : array (n_documents, any), optional
        Their embeddings.
    given_directions : array (n_terms, q), optional
        Result of :func:`latent_directions`, to avoid computing it again.
    seed : int
        Seed of the decomposition and the background.
    threads : int, optional
        None = all cores.
    given_latent : array (n_documents, any), optional
        Latent semantics of all documents, to avoid computing them again.
    """

    X: Rows
    supervision: Supervision
    embeddings: Array | None = None
    given_directions: Array | None = None
    seed: int = 0
    threads: int | None = None
    given_latent: Array | None = None

    @cached_property
    def labelled(self) -> NDArray[np.intp]:
        """Row numbers of the labelled documents that have terms."""
        return np.flatnonzero(self.supervision.labelled & (self.X.sizes > 0))

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Row numbers of all documents of the sample."""
        return np.concatenate([self.labelled, background_rows(self.supervision, self.seed)])

    @cached_property
    def states(self) -> NDArray[np.int8]:
        """Label states of the labelled documents."""
        return np.asarray(self.supervision.patterns[self.supervision.pattern[self.labelled]])

    @cached_property
    def terms(self) -> sp.csr_array:
        """Terms of the documents."""
        return self.X.take(self.rows)

    @cached_property
    def own_embeddings(self) -> Array | None:
        """Embeddings of the documents."""
        return None if self.embeddings is None else self.embeddings[self.rows]

    @cached_property
    def directions(self) -> Array:
        """Directions of the latent semantics."""
        given = self.given_directions
        return latent_directions(self.X, self.seed, self.threads) if given is None else given

    @cached_property
    def latent(self) -> Array:
        """Latent semantics of the documents."""
        if self.given_latent is not None:
            return np.asarray(self.given_latent[self.rows])
        return dense_features(self.terms, self.directions, self.threads)

    @cached_property
    def places(self) -> NDArray[np.intp] | None:
        """Place of each document of the corpus in the sample, -1 without terms; None if others are missing."""
        places = np.full(self.X.shape[0], -1)
        places[self.rows] = np.arange(len(self.rows))
        return places if ((places >= 0) | (self.X.sizes == 0)).all() else None

    def latent_of(self, rows: slice) -> Array | None:
        """Latent semantics of some documents of the corpus, if the sample has all of them."""
        if self.places is None or "latent" not in self.__dict__:
            return None
        found = self.latent[self.places[rows]]
        found[self.places[rows] < 0] = 0
        return found

    def forget_latent(self) -> None:
        """Free the latent semantics of a sample of a large corpus; they are computed again when they are used."""
        if self.places is None and self.given_latent is None:
            self.__dict__.pop("latent", None)
            release_memory()

    def dense(self, weight: float) -> Array:
        """Latent semantics and embeddings of the documents; ``weight`` is that of the embeddings."""
        if self.own_embeddings is None:
            return self.latent
        E = unit_rows(self.own_embeddings) * np.sqrt(weight)
        return np.hstack([self.latent, E.astype(self.latent.dtype)])
