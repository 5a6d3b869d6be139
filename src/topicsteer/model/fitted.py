"""A fitted state at work: what it says of documents, given as rows of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from topicsteer.analysis.explain import Explanation, explain
from topicsteer.analysis.suggest import Doubt, audit
from topicsteer.analysis.topics import Topics, proportions
from topicsteer.estimator import TSNMF
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.penalties import soft_mask
from topicsteer.model import parts
from topicsteer.model.state import FittedState
from topicsteer.system.types import Array
from topicsteer.text import TextVectorizer


class Fitted:
    """A state and its working objects, each made when it is first needed.

    Parameters
    ----------
    state : FittedState
    lemmatizer : callable, optional
        That of the fit, if there was one.
    threads : int, optional
    """

    def __init__(
        self, state: FittedState, lemmatizer: Callable[[str], str] | None = None, threads: int | None = None
    ) -> None:
        self.state, self.lemmatizer, self.threads = state, lemmatizer, threads

    @property
    def result(self) -> Topics:
        """Names, terms and documents of the topics."""
        return self.state.topics

    @cached_property
    def vectorizer(self) -> TextVectorizer:
        """From texts to rows."""
        return parts.vectorizer_of(self.state, self.lemmatizer)

    @cached_property
    def estimator(self) -> TSNMF:
        """The factorisation."""
        return parts.estimator_of(self.state)

    @cached_property
    def guide(self) -> Guide | None:
        """From rows to probabilities."""
        return parts.guide_of(self.state)

    def belongs(self, X: sp.csr_array, embeddings: Array | None) -> Array:
        """How far documents belong to the known topics, labels not looked at."""
        if self.guide is None:
            return self._shares(X)[:, : len(self.state.groups)]
        return self._grouped(self.guide.probabilities(X, self.threads, embeddings=embeddings))

    def weights(self, X: sp.csr_array, embeddings: Array | None) -> Array:
        """Topic weights of documents, labels not looked at; with guidance under the same soft mask as at the fit."""
        if self.guide is None:
            return self.estimator.transform(X)
        covered = np.array([self.guide.covers[list(group)].any() for group in self.state.groups])
        mask = soft_mask(self.belongs(X, embeddings), covered, len(self.state.components))
        return self.estimator.transform(X, penalties=mask)

    def decide(self, belongs: Array) -> list[list[str]]:
        """The known topics of documents, strongest first: those whose membership reaches the topic's cut."""
        order = np.argsort(-belongs, axis=1, kind="stable")
        cuts, names = self.state.cuts, self.state.names
        return [[names[k] for k in ranks if row[k] >= cuts[k]] for row, ranks in zip(belongs, order, strict=True)]

    def explain(self, text: str, x: sp.csr_array, w: Array) -> Explanation:
        """The words of a text with these topic weights, and what each contributes to each topic."""
        H, names, terms = self.state.components, self.state.names, self.result.vocabulary
        return explain(text, x, w, H, names, terms, self.vectorizer.locate(text))

    def doubts(self, n: int | None = None) -> list[Doubt]:
        """Labels that look wrong or missing, strongest first, each document predicted without its own labels."""
        learnt = self.guide
        if learnt is None:
            raise ValueError("an audit needs labels and guidance: fit with guidance, and with some documents labelled.")
        found = np.zeros((len(learnt.rows), learnt.n_known), dtype=np.float32)
        found[:, learnt.covered] = learnt.left_out
        return audit(self._grouped(found), learnt.rows, self.state.supervision)[:n]

    def positions(self, X: sp.csr_array) -> Array:
        """Where documents are in the latent space; without guidance, or in a tiny corpus, their topic shares."""
        if self.guide is not None and self.guide.seen.size:
            return self.guide.positions(X, self.threads)
        return self._shares(X)

    @property
    def seen(self) -> Array:
        """ZᵀZ of the labelled documents' positions."""
        if self.guide is not None and self.guide.seen.size:
            return self.guide.seen
        Z = self.result.proportions[self.state.supervision.labelled]
        return np.asarray(Z.T @ Z)

    def _shares(self, X: sp.csr_array) -> Array:
        return proportions(self.estimator.transform(X), self.state.components)

    def _grouped(self, found: Array) -> Array:
        """Probabilities of the topics of the fit as those of the topics after merging."""
        return np.stack([found[:, list(group)].max(axis=1) for group in self.state.groups], axis=1)
