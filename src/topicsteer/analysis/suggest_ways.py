"""Simple ways to choose documents to label, in the words of users; the default way is in `topicsteer.analysis.suggest`.

- ``topic``: the least sure documents among those given one topic.
- ``typical``: the surest document of each topic in turn, topics with few labels first. Good for the first labels.
- ``few``: the same, for topics without enough labels.
- ``groups``: documents of large groups without a topic.
- ``random``: random documents, which honest shares need.
- ``prevalence``: documents for shares of topics, drawn with known probability; doubtful documents more often.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.draws import doubt_probabilities, draw
from topicsteer.analysis.suggest import FEW, LIKELY, Suggestion
from topicsteer.system.types import Array

# Membership from which a document counts as having a free topic.
FREE_THRESHOLD = 0.5
# Ways to choose; "useful" is the default.
WAYS = ("useful", "typical", "few", "groups", "random", "prevalence")
# Documents for shares are drawn at random until this many labels were drawn by chance.
FIRST_AT_RANDOM = 50


def least_sure(memberships: Array, threshold: float, topic: int, name: str, rows: NDArray[np.intp]) -> list[Suggestion]:
    """Documents that are given a topic, the least sure ones first.

    Parameters
    ----------
    memberships : array (n_documents, n_known)
    threshold : float
        Threshold of the topic.
    topic : int
        Number of the topic.
    name : str
        Its name.
    rows : array of int
        Documents to choose from.

    Examples
    --------
    >>> P = np.array([[0.9], [0.4], [0.1], [0.6]])
    >>> [(one.row, one.why) for one in least_sure(P, 0.3, 0, "tea", np.arange(4))][:2]
    [(1, 'given tea, with 40 %'), (3, 'given tea, with 60 %')]
    """
    given = rows[memberships[rows, topic] >= threshold]
    order = given[np.argsort(memberships[given, topic], kind="stable")]
    return [
        Suggestion(int(i), (topic,), f"given {name}, with {memberships[i, topic]:.0%}".replace("%", " %"))
        for i in order
    ]


def typical(
    memberships: Array,
    counts: NDArray[np.int64],
    names: Sequence[str],
    rows: NDArray[np.intp],
    *,
    only_few: bool = False,
) -> list[Suggestion]:
    """The surest document of each topic in turn, topics with few labels first; then the second surest ones, and so on.

    Parameters
    ----------
    memberships : array (n_documents, n_known)
    counts : array of int (n_known,)
        Labels of each topic.
    names : sequence of str
    rows : array of int
        Documents to choose from.
    only_few : bool
        Leave out topics with enough labels.

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.8, 0.0], [0.2, 0.7]])
    >>> [one.row for one in typical(P, np.array([3, 0]), ["tea", "milk"], np.arange(3))]
    [2, 0, 1]
    """
    topics = [int(k) for k in np.argsort(counts, kind="stable") if not only_few or counts[k] < FEW]
    order = {k: rows[np.argsort(-memberships[rows, k], kind="stable")] for k in topics}
    chosen: dict[int, Suggestion] = {}
    for place in range(len(rows)):
        for k in topics:
            row = int(order[k][place])
            if memberships[row, k] >= LIKELY and memberships[row].argmax() == k:
                few = f", which has only {counts[k]} labels" if counts[k] < FEW else ""
                chosen.setdefault(row, Suggestion(row, (k,), f"typical of {names[k]}{few}"))
    return list(chosen.values())


def by_doubt(memberships: Array, rows: NDArray[np.intp], n: int, rng: np.random.Generator) -> list[Suggestion]:
    """Documents drawn with known probability, doubtful ones more often.

    Examples
    --------
    >>> P = np.array([[0.0], [0.5], [0.5], [1.0]])
    >>> found = by_doubt(P, np.arange(4), 4, np.random.default_rng(0))
    >>> [(one.row, one.probability) for one in found]
    [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0)]
    """
    if not len(rows):
        return []
    probability = doubt_probabilities(memberships[rows], n)
    drawn = rng.permutation(draw(probability, rng)) if n < len(rows) else np.arange(len(rows))
    why = "drawn by doubt with known probability"
    return [Suggestion(int(rows[i]), _likely(memberships[rows[i]]), why, float(probability[i])) for i in drawn]


def _likely(membership: Array) -> tuple[int, ...]:
    """Likely topics, strongest first."""
    return tuple(int(k) for k in np.argsort(-membership, kind="stable") if membership[k] >= LIKELY)


def at_random(rows: NDArray[np.intp], n: int, seed: int) -> list[Suggestion]:
    """Random documents."""
    drawn = np.random.default_rng(seed).permutation(rows)[:n]
    return [Suggestion(int(row), (), "random") for row in drawn]
