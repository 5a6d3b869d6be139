"""Whether the labels took effect, with one row per known topic."""

from typing import Any

import numpy as np

from topicsteer.analysis.columns import Column
from topicsteer.analysis.topics import Topics
from topicsteer.labels.supervision import Supervision
from topicsteer.system.types import Array

# Columns of `label_effects`.
COLUMNS = (
    Column("topic"),
    Column("documents", "count"),
    Column("followed", "share", "Share of the documents labelled with the topic that contain it."),
    Column("from labels", "share", "Share of the topic in documents labelled with it. The rest is in other documents."),
    Column(
        "drift",
        "number",
        "Distance of the topic's terms from the mean of its labelled documents: 0 identical, 1 nothing in common. With "
        "few labels a large drift is normal, since other documents bring words of their own. Look at the terms.",
    ),
    Column("nearest"),
    Column(
        "likeness", "number", "Similarity of its terms to the terms of the nearest other topic: 0 none, 1 identical."
    ),
    Column(
        "took effect",
        "flag",
        "At least half of the labelled documents contain the topic, and no other topic is closer to their mean. "
        "A topic may drift far and still be the one that its labels ask for.",
    ),
)


def label_effects(topics: Topics, supervision: Supervision, profiles: Array) -> dict[str, list[Any]]:
    """Effect of the labels on each known topic.

    Parameters
    ----------
    topics : Topics
        The fitted topics.
    supervision : Supervision
        The labels.
    profiles : array (n_known, n_terms)
        Mean of the documents labelled with each topic.

    Returns
    -------
    dict of str to list
        A table with these columns. ``documents``: number of documents labelled with the topic. ``followed``: share of
        them that contain it. ``from labels``: share of the topic in documents labelled with it. ``drift``: distance of
        its terms from the mean of these documents (0 none, 1 nothing in common). ``nearest`` and ``likeness``: nearest
        other topic, and similarity to it. ``took effect``: at least half of the documents contain the topic, and no
        other topic is closer to their mean.
    """
    known = topics.n_known
    given = supervision.indicator().tocsc()
    W = topics.W[:, :known]
    labelled = [given.indices[given.indptr[k] : given.indptr[k + 1]] for k in range(known)]
    followed = np.array([(W[rows, k] > 0).mean() if rows.size else 0.0 for k, rows in enumerate(labelled)])
    inside = np.array([W[rows, k].sum(dtype=np.float64) for k, rows in enumerate(labelled)])
    norms = np.linalg.norm(profiles, axis=1)[:, None] * np.linalg.norm(topics.H, axis=1)
    likeness = (profiles @ topics.H.T) / np.maximum(norms, 1e-30)  # row: labelled documents of a topic; column: topic
    own, best = likeness.diagonal(), likeness.max(axis=1, initial=0.0)
    others = topics.similarity[:known] - 2 * np.eye(known, len(topics))
    near = others.max(axis=1, initial=0.0)
    return {
        "topic": list(topics.names[:known]),
        "documents": supervision.counts.tolist(),
        "followed": followed.tolist(),
        "from labels": (inside / np.maximum(W.sum(axis=0, dtype=np.float64), 1e-30)).tolist(),
        "drift": np.clip(1 - own, 0, 1).tolist(),
        "nearest": [topics.names[k] for k in others.argmax(axis=1)] if known else [],
        "likeness": near.tolist(),
        "took effect": ((supervision.counts > 0) & (followed >= 0.5) & (own > 0) & (own >= best)).tolist(),
    }
