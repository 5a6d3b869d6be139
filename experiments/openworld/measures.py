"""Measures of a result in an open world, all on the unlabelled documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from experiments.openworld.worlds import World
from topicsteer.metrics import average_precision, precision_recall


@dataclass(frozen=True, eq=False)
class Found:
    """Result of a method for all documents; None where the method has no such answer.

    ``known`` are scores of the known topics, which rank the documents. ``free`` are scores of the free columns.
    ``decided`` are the known topics that a document gets (bool). ``shares`` are memberships of known topics whose mean
    estimates how frequent a topic is; default: ``decided``. ``none`` is the probability that a document has no known
    topic; default: whether it gets none.
    """

    known: np.ndarray | None = None
    free: np.ndarray | None = None
    decided: np.ndarray | None = None
    shares: np.ndarray | None = None
    none: np.ndarray | None = None


def judge(world: World, found: Found) -> dict[str, float]:
    """All measures that the result allows."""
    rows, known, hidden = world.unlabelled, world.truth(world.known), world.truth(world.hidden)
    measured: dict[str, float] = {}
    if found.free is not None and len(world.hidden):
        measured["hidden AP"] = hidden_precision(hidden, found.free[rows])
    if found.known is not None:
        measured["known AP"] = average_precision(known, found.known[rows]).macro
    if found.decided is not None:
        measured |= judge_decisions(known, found.decided[rows])
    shares = found.decided if found.shares is None else found.shares
    if shares is not None:
        measured["share error"] = share_error(known, shares[rows])
    none = found.none
    if none is None and found.decided is not None:
        none = ~found.decided.any(axis=1)
    if none is not None:
        measured["none error"] = float(abs(none[rows].mean() - (~known.any(axis=1)).mean()))
    return measured


def judge_decisions(known: np.ndarray, decided: np.ndarray) -> dict[str, float]:
    """Leak, macro recall and micro precision of the decisions."""
    outside = ~known.any(axis=1)
    counts = precision_recall(known, decided)
    occurs = counts.true > 0
    measured = {
        "recall": float((counts.correct[occurs] / counts.true[occurs]).mean()),
        "precision": float(counts.correct.sum() / max(counts.predicted.sum(), 1)),
    }
    if outside.any():
        measured["leak"] = float(decided[outside].any(axis=1).mean())
    return measured


def hidden_precision(hidden: np.ndarray, free: np.ndarray) -> float:
    """Mean over hidden topics of the average precision of its free column, under the best one-to-one match.

    A topic without a column has 0. Topics that no document has are left out.
    """
    hidden = hidden[:, hidden.any(axis=0)]
    each = precision_matrix(hidden, free)
    columns, topics = linear_sum_assignment(-each)
    return float(each[columns, topics].sum() / hidden.shape[1])


def precision_matrix(truth: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Average precision of every column of scores for every column of truth (n_columns, n_topics).

    Documents with the same score count as one step of the ranking.
    """
    sizes = truth.sum(axis=0)
    each = np.empty((scores.shape[1], truth.shape[1]))
    for f, column in enumerate(scores.T):
        order = np.argsort(-column, kind="stable")
        ends = np.flatnonzero(np.append(np.diff(column[order]) != 0, True))
        hits = truth[order].cumsum(axis=0)[ends]
        gained = np.diff(hits, axis=0, prepend=0)
        each[f] = (gained * hits / (ends + 1)[:, None]).sum(axis=0) / sizes
    return each


def share_error(known: np.ndarray, shares: np.ndarray) -> float:
    """Mean over known topics of the relative error of their share of the documents."""
    true = known.mean(axis=0)
    occurs = true > 0
    return float((abs(shares.mean(axis=0) - true)[occurs] / true[occurs]).mean())
