"""Cheap questions: "does this document have the topic X?", answered with yes or no.

One topic at a time, because people answer faster while they think of one topic. While a topic has few labels, its
surest documents come first. Later come the documents nearest to its threshold, where an answer teaches most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.suggest import FEW, LIKELY
from topicsteer.system.types import Array

# After this many answers about a topic comes another one.
IN_A_ROW = 5
# No topic is added once there are this many questions.
MOST = 5_000


@dataclass(frozen=True, eq=False)
class Questions:
    """Documents to ask about one topic, the best question first.

    Parameters
    ----------
    topic : int
        Number of the topic.
    rows : array of int
    """

    topic: int
    rows: NDArray[np.int64]


def questions(
    memberships: Array,
    thresholds: Array,
    finished: NDArray[np.bool_],
    denied: Mapping[int, Sequence[int]],
    yes: NDArray[np.int64],
    answers: NDArray[np.int64],
) -> list[Questions]:
    """Choose questions, topic by topic: the topic with the fewest answers first.

    Parameters
    ----------
    memberships : array (n_documents, n_known)
        Probability of each known topic.
    thresholds : array (n_known,)
        Threshold of each topic.
    finished : array of bool (n_documents,)
        Documents that are not asked about at all.
    denied : mapping of topic to rows
        Documents that lack a topic, by a label.
    yes : array of int (n_known,)
        Number of documents that have each topic by a label.
    answers : array of int (n_known,)
        Number of answers, yes or no, to questions about each topic.

    Returns
    -------
    list of Questions
        Topics without a likely document are left out, and topics after the first `MOST` questions.

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.6, 0.2], [0.2, 0.7], [0.05, 0.02]])
    >>> nothing = np.zeros(2, dtype=np.int64)
    >>> for one in questions(P, np.array([0.5, 0.5]), np.zeros(4, dtype=bool), {}, nothing, nothing):
    ...     print(one.topic, one.rows)
    0 [0 1 2]
    1 [2 1 0]
    """
    found = list[Questions]()
    for k in sorted(range(memberships.shape[1]), key=lambda k: (answers[k] // IN_A_ROW, k)):
        if sum(len(one.rows) for one in found) >= MOST:
            break
        rows = np.flatnonzero(~finished & (memberships[:, k] >= LIKELY))
        rows = rows[~np.isin(rows, list(denied.get(k, ())))]
        p = memberships[rows, k]
        order = np.argsort(-p if yes[k] < FEW else np.abs(p - thresholds[k]), kind="stable")
        if len(rows):
            found.append(Questions(k, rows[order]))
    return found
