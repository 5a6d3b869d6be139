"""The document map of a fitted model: its documents with their places and likeliest topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from topicsteer.analysis import document_map as maps
from topicsteer.analysis.topics import all_memberships, parts
from topicsteer.report.document_map import MappedDocuments
from topicsteer.system.types import Array, Progress
from topicsteer.system.values import NONE

if TYPE_CHECKING:
    from topicsteer.model.fitted_model import FittedModel
    from topicsteer.model.state import FittedState


def document_map(
    model: FittedModel, layout: maps.Layout | None = None, progress: Progress | None = None
) -> MappedDocuments:
    """The map of the training documents, with their ids and texts.

    Parameters
    ----------
    model : FittedModel
        Without its documents, the map has no texts, and documents lie around their topics.
    layout : Layout, optional
        Places of the documents. Default: they are computed.
    progress : callable, optional
        As in `TopicModel.fit`.
    """
    state, topics = model.state_, model.state_.topics
    labelled = state.supervision.labelled
    rows = maps.chosen_rows(len(topics.ids), labelled, model.random_state) if layout is None else layout.rows
    P = memberships_of(state, rows)
    topic, membership = maps.main_topics(P, np.asarray(state.thresholds), state.open, state.codebook.forest)
    found = maps.DocumentMap(
        layout or _layout(model, rows, P, progress),
        (*topics.names, NONE),
        topics.n_known,
        topic,
        membership,
        labelled[rows],
    )
    documents = model.documents_
    texts = None if documents is None else [documents.texts[i] for i in rows]
    return MappedDocuments(found, [topics.ids[i] for i in rows], texts)


def memberships_of(state: FittedState, rows: maps.Rows) -> Array:
    """Memberships of some training documents in all topics and in none of the known ones."""
    topics = state.topics
    shares = parts(np.asarray(topics.W[rows]), topics.H.sum(axis=1))
    found = shares if topics.memberships is None else np.asarray(topics.memberships[rows])
    return all_memberships(found, shares, topics.n_known, state.supervision.outsiders[rows])


def _layout(model: FittedModel, rows: maps.Rows, P: Array, progress: Progress | None) -> maps.Layout:
    """Places by words and memberships; around the topics if there are no texts, few documents or no umap-learn."""
    n, seed = len(model.state_.topics.ids), model.random_state
    if model.documents_ is not None and maps.can_lay_out() and len(rows) >= maps.FEWEST:
        X = _terms(model, rows)
        directions = None if model.guide_ is None else model.guide_.directions
        latent = maps.latent_semantics(X, directions, seed, model.threads)
        points = maps.features(latent, _predicted(model, X, rows, P))
        places, aspect = maps.lay_out(points, seed, model.threads, progress)
        return maps.Layout(rows, places, aspect, "umap", n)
    return maps.Layout(rows, maps.around_topics(P, model.state_.topics.positions, seed), 1.6, "topics", n)


def _terms(model: FittedModel, rows: maps.Rows) -> sp.csr_array:
    """Terms of some training documents; a loaded model vectorises their texts again."""
    if model._rows is not None:
        return model._rows.take(rows)
    texts = model._texts()
    return sp.csr_array(model.vectorizer_.transform([texts[i] for i in rows]))


def _predicted(model: FittedModel, X: sp.csr_array, rows: maps.Rows, P: Array) -> Array:
    """Memberships as predicted; a membership of 1 by a label would set labelled documents apart from the others."""
    labelled = np.flatnonzero(model.state_.supervision.labelled[rows])
    predicted = np.array(P, dtype=np.float32)
    if len(labelled):
        embeddings = model._training_embeddings()
        own = None if embeddings is None else embeddings[rows[labelled]]
        predicted[labelled] = model._fitted.all_memberships(X[labelled], own)
    return predicted
