"""Whether the labels took effect, with one row per known topic."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        "At least half of the labelled documents contain the topic, and no other topic is closer to their mean. Other "
        "documents did not take it over. A topic may drift far and still be the one that its labels ask for.",
    ),
    Column("reason", about="The reason why the labels did not take effect."),
)
# A topic is taken over if it is large and its terms hardly resemble its labelled documents. Both limits were chosen on
# 20 Newsgroups; docs/decisions.md has the figures.
# Large: spread over labelled documents, the topic would fill more than this share of all documents.
LARGE = 0.12
# The similarity of its terms to its labelled documents is below this multiple of the similarity by common words alone.
EXCESS = 2.8
# Terms per topic that are compared with the labelled documents, and terms in a reason.
TOP_TERMS, NAMED_TERMS = 10, 3


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
        other topic, and similarity to it. ``took effect``: at least half of the documents contain the topic, no other
        topic is closer to their mean, and other documents did not take it over. ``reason``: why it did not take effect;
        empty if it did. A topic of a tree counts with all topics below it, and topics above and below are not others.
    """
    known, H = topics.n_known, topics.branch_terms
    given, related = supervision.indicator().tocsc(), _related(topics)
    W = _branches(topics, topics.W[:, :known])
    labelled = [given.indices[given.indptr[k] : given.indptr[k + 1]] for k in range(known)]
    followed = np.array([(W[rows, k] > 0).mean() if rows.size else 0.0 for k, rows in enumerate(labelled)])
    inside = np.array([W[rows, k].sum(dtype=np.float64) for k, rows in enumerate(labelled)])
    norms = np.linalg.norm(profiles, axis=1)[:, None] * np.linalg.norm(H, axis=1)
    likeness = (profiles @ H.T) / np.maximum(norms, 1e-30)  # row: labelled documents of a topic; column: topic
    own, best = likeness.diagonal(), (likeness - 2 * related).max(axis=1, initial=0.0)
    others = topics.similarity[:known] - 2 * (related | np.eye(known, len(topics), dtype=np.bool_))
    near = others.max(axis=1, initial=0.0)
    from_labels = inside / np.maximum(W.sum(axis=0, dtype=np.float64), 1e-30)
    elsewhere = _elsewhere(topics)
    size = supervision.counts / np.maximum(from_labels * len(W), 1e-30)
    taken_over = (from_labels < 0.5) & (size > LARGE) & (_excess(H[:known], profiles, elsewhere) < EXCESS)
    reasons = []
    for k in range(known):
        if not supervision.counts[k]:
            reasons.append("it has no labelled documents")
        elif followed[k] < 0.5:
            reasons.append(f"only {followed[k]:.0%} of its labelled documents contain it")
        elif own[k] <= 0 or own[k] < best[k]:
            reasons.append("another topic is more similar to its labelled documents")
        else:
            reasons.append(_origin(topics, k, profiles[k], elsewhere[k]) if taken_over[k] else "")
    return {
        "topic": list(topics.names[:known]),
        "documents": supervision.counts.tolist(),
        "followed": followed.tolist(),
        "from labels": from_labels.tolist(),
        "drift": np.clip(1 - own, 0, 1).tolist(),
        "nearest": [topics.names[k] for k in others.argmax(axis=1)] if known else [],
        "likeness": near.tolist(),
        "took effect": [not reason for reason in reasons],
        "reason": reasons,
    }


def _branches(topics: Topics, parts: Array) -> Array:
    """Parts of documents that known topics make up, with all topics below them."""
    return parts if topics.forest is None else topics.forest.summed(parts)


def _related(topics: Topics) -> NDArray[np.bool_]:
    """Whether each topic is above or below each known topic in the tree."""
    found = np.zeros((topics.n_known, len(topics)), dtype=np.bool_)
    for k in range(topics.n_known if topics.forest is not None else 0):
        above = list(topics.forest.ancestors(k)) if topics.forest is not None else []
        found[k, above] = found[above, k] = True
    return found


def _elsewhere(topics: Topics) -> Array:
    """Mean of the fitted documents without each known topic (n_known, n_terms).

    A document counts by the share of its other topics.
    """
    shares = _branches(topics, topics.proportions[:, : topics.n_known])
    weights = np.maximum(topics.W.sum(axis=0, dtype=np.float64) - shares.T @ topics.W, 0)
    documents = (topics.proportions.sum(axis=1) > 0).sum() - shares.sum(axis=0, dtype=np.float64)
    return np.asarray(weights @ topics.H / np.maximum(documents, 1e-30)[:, None])


def _excess(H: Array, profiles: Array, elsewhere: Array) -> Array:
    """Similarity of topics to their labelled documents, as a multiple of the similarity by common words alone.

    Terms and labelled documents that share only the words of documents elsewhere have the similarity
    cos(h, elsewhere) cos(profile, elsewhere). The length of the profile cancels, so few labels do not lower the ratio.
    """

    def dot(a: Array, b: Array) -> Array:
        return np.asarray(np.einsum("kj,kj->k", a, b, dtype=np.float64))

    common = dot(H, elsewhere) * dot(profiles, elsewhere)
    return np.asarray(dot(H, profiles) * dot(elsewhere, elsewhere) / np.maximum(common, 1e-30))


def _origin(topics: Topics, k: int, profile: Array, elsewhere: Array) -> str:
    """Reason for a topic that other documents took over: its top terms that labelled documents do not favour."""
    ranking = topics.ranking[k]
    top = [j for j in np.argsort(-ranking, kind="stable")[:TOP_TERMS] if ranking[j] > 0]
    foreign = [str(topics.vocabulary[j]) for j in top if profile[j] <= elsewhere[j]][:NAMED_TERMS]
    if not foreign:
        return "most of it is in documents unlike its labelled ones"
    return f"its terms come from other documents: {', '.join(foreign)}"
