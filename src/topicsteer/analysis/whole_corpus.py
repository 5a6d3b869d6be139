"""Figures of an evaluation for the corpus as it is, in which some documents have none of the topics."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicsteer.guidance.outside import FEW_LABELS
from topicsteer.labels.supervision import Supervision
from topicsteer.metrics import Decisions
from topicsteer.system.types import Array

# Standard error of the share of documents without a known topic that a model believes.
SHARE_ERROR = 0.08


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Estimates of a model for the unlabelled documents of an open world.

    ``shares`` has the share of documents with each topic, and last without any. ``predicted`` is the mean number of
    topics that a document gets. ``drawn``: the shares come from labels drawn at random, so hidden outsiders need not
    correct them.
    """

    shares: Array
    predicted: float
    drawn: bool = False


def in_corpus(
    given: NDArray[np.bool_], predicted: NDArray[np.bool_], outsiders: NDArray[np.bool_], believed: Unlabelled
) -> Decisions:
    """Predictions in the corpus as it is, from hidden documents of each kind.

    Hidden documents show the rates r of predictions per document with and without a topic. Their mixture must give the
    predictions of the unlabelled documents: (1 - s) r_in + s r_out, where s is the share of outsiders. It is known from
    labels drawn at random. Otherwise s balances the rate of the few hidden outsiders against the model's belief.
    """
    weight = given @ (believed.shares[:-1] / np.maximum(given.sum(axis=0), 1)) / np.maximum(given.sum(axis=1), 1)
    weight /= max(weight.sum(), 1e-30)
    inside, topics = float(weight @ predicted.sum(axis=1)), float(weight @ given.sum(axis=1))
    correct = float(weight @ (given & predicted).sum(axis=1))
    share = float(believed.shares[-1]) if believed.drawn else balanced_share(predicted[outsiders], inside, believed)
    n = len(given)
    counts = ((1 - share) * correct, (1 - share) * topics, max(believed.predicted, (1 - share) * inside))
    return Decisions(*(np.array([n * count]) for count in counts))


def balanced_share(outsiders: NDArray[np.bool_], inside: float, believed: Unlabelled) -> float:
    """The share of outsiders that fits both the model's belief and the predictions of hidden outsiders."""
    hits, many = outsiders.any(axis=1).sum(), len(outsiders)
    s = np.linspace(0.005, 0.995, 199)
    rate = np.clip((believed.predicted - (1 - s) * inside) / s, 1e-3, 1 - 1e-3)
    log = hits * np.log(rate) + (many - hits) * np.log(1 - rate) - ((s - believed.shares[-1]) / SHARE_ERROR) ** 2 / 2
    chance = np.exp(log - log.max())
    return float(chance @ s / chance.sum())


def scope(corpus: Decisions | None, unlabelled: Unlabelled | None, marked: int, supervision: Supervision) -> str:
    """For which documents the figures hold, in a sentence."""
    if corpus is not None and unlabelled is not None:
        precision, recall = float(corpus.precision[0]), float(corpus.recall[0])
        if unlabelled.drawn:
            share = f"about {unlabelled.shares[-1]:.0%} of the documents have none of the topics"
        else:
            share = "the share of documents without a topic is unknown, because labels were not drawn at random"
        return (
            f"In the corpus as it is, {share}. "
            f"There, predictions have a precision of about {precision:.2f} and a recall of about {recall:.2f}; "
            f"{marked:,} hidden documents had none of the topics."
        )
    if unlabelled is not None:
        return (
            "Only documents with a known topic were hidden. The figures do not show how many documents without one get "
            'a topic by mistake: mark some as "none of these".'
        )
    counts = supervision.counts[supervision.counts > 0]
    if counts.size and np.median(counts) < FEW_LABELS and not supervision.labelled.all():
        return (
            "Labels are too few to decide whether some documents have none of the topics. If some have none, these "
            'figures are too good: mark some of them as "none of these", or set world="open".'
        )
    return ""
