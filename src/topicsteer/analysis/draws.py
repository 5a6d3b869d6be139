"""Draws of documents to label with known probabilities, for shares of topics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topicsteer.system.types import Array

# Part of a draw by doubt that is spread evenly, so that no document has a tiny probability.
EVEN = 0.3
# A share of a topic below this many expected documents counts as this many.
LEAST = 5.0


def doubt_probabilities(memberships: Array, n: int) -> Array:
    """Probabilities of a draw of n documents, larger where the memberships are in doubt.

    The doubt of a document is the standard deviation of its topics, each relative to the standard deviation of the
    topic: √Σ p (1 - p) / (s (1 - s)), where s is the mean of p.

    Parameters
    ----------
    memberships : array (n_documents, n_topics)
        Memberships of the documents to draw from.
    n : int
        Number of documents to draw.

    Returns
    -------
    array (n_documents,)
        Their sum is n.

    Examples
    --------
    >>> doubt_probabilities(np.array([[0.0], [0.5], [1.0], [0.5]]), 2).round(2).tolist()
    [0.15, 0.85, 0.15, 0.85]
    """
    p = np.clip(np.asarray(memberships, dtype=np.float64), 0, 1)
    size = len(p)
    n = min(n, size)
    share = np.clip(p.mean(axis=0), min(LEAST / max(size, 1), 0.5), 0.5)
    doubt = np.sqrt((p * (1 - p) / (share * (1 - share))).sum(axis=1))
    doubt = doubt / doubt.sum() if doubt.any() else np.full(size, 1 / max(size, 1))
    found = n * (EVEN / max(size, 1) + (1 - EVEN) * doubt)
    while (found > 1).any():  # what exceeds certainty goes to the others
        sure = found >= 1
        rest = found[~sure].sum()
        found = np.where(sure, 1.0, found * ((n - sure.sum()) / rest if rest else 1.0))
    return found


def draw(probabilities: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw documents, each with its probability; their number is the sum of the probabilities.

    Systematic sampling in random order: the documents are laid end to end, each as long as its probability. Every point
    of a grid of step 1 with a random start draws one of them.

    Examples
    --------
    >>> draw(np.array([1.0, 0.0, 1.0]), np.random.default_rng(0)).tolist()
    [0, 2]
    """
    order = rng.permutation(len(probabilities))
    ends = np.cumsum(probabilities[order])
    total = round(float(ends[-1])) if len(ends) else 0
    points = np.minimum(rng.random() + np.arange(total), ends[-1] if total else 0)
    return np.sort(order[np.minimum(np.searchsorted(ends, points), max(len(ends) - 1, 0))])
