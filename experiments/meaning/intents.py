"""BANKING77 as the field measures it: some intents are known, the number of all is given, accuracy by matching."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.meaning import package, rivals
from experiments.meaning.cells import SHARE, Draw, by_share, matched_accuracy
from experiments.meaning.corpora import Corpus, load

# Corpus of the measure, and shares of intents that are known, by the name of their cell.
CORPUS = "banking77_all"
KNOWN = {"25% known": 0.25, "50% known": 0.5, "75% known": 0.75}


def draw(corpus: Corpus, cell: str, seed: int) -> Draw:
    """Draw the known intents, and label a tenth of their questions; names are not given."""
    rng = np.random.default_rng([seed, list(KNOWN).index(cell)])
    order = rng.permutation(len(corpus.topics))
    n_known = round(KNOWN[cell] * len(order))
    known, hidden = np.sort(order[:n_known]), np.sort(order[n_known:])
    rows = by_share(corpus.Y[:, known], SHARE, rng)
    return Draw(rows, corpus.Y[np.ix_(rows, known)], known, hidden, names=False)


def measure(method: str, cell: str, embedding: str, seed: int) -> dict[str, Any]:
    """Accuracy of a method over unlabelled questions, and how many free clusters it has found."""
    corpus = load(CORPUS)
    drawn = draw(corpus, cell, seed)
    scores, seconds = METHODS[method](corpus, drawn, embedding, seed)
    rows = drawn.unlabelled(corpus)
    truth, predicted = corpus.Y[rows].argmax(axis=1), scores[rows].argmax(axis=1)
    found = {"accuracy": matched_accuracy(truth, predicted, len(corpus.topics)), "seconds": seconds}
    return found | {"free": scores.shape[1] - len(drawn.known)}


Scores = tuple[np.ndarray, float | None]


def by_package(corpus: Corpus, drawn: Draw, embedding: str, seed: int) -> Scores:
    """Memberships of known and free topics by the installed package."""
    found = package.fit_ours(corpus, drawn, embedding, seed, len(drawn.hidden))
    return np.column_stack([found.known, found.free]), found.seconds


def by_k_means(corpus: Corpus, drawn: Draw, embedding: str, seed: int) -> Scores:
    """Clusters of k-means as columns of 0 and 1; labels are not used."""
    return rivals.k_means_clusters(rivals.task(corpus, drawn, embedding, seed)), None


METHODS = {"ours": by_package, "k-means": by_k_means}
