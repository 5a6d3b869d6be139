"""Choose the threshold of predictions from a goal, such as a precision of 90 %, with labels that were hidden.

Each labelled document is predicted without its own labels. A logistic regression of these labels on the log odds of the
predictions recalibrates them: P(right | p) = σ(a + b·logit p). It starts from a = 0 and b = 1, which trusts the
predictions, and moves as far as the labels demand. The precision above a threshold is then a mean over the unlabelled
documents, and the uncertainty of a and b gives its uncertainty. The recall is the share of the hidden labels that are
found, with Wilson's interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from topicsteer.analysis.intervals import wilson
from topicsteer.system.types import Array

Kind = Literal["precision", "recall"]
# The goal is reached with this certainty.
CERTAINTY = 0.95
# Predictions below are not recalibrated: among them are hardly any yes-labels, and most pairs of document and topic.
FLOOR = 0.05
# Weight of the trust in the predictions, as a number of labels.
TRUST = np.array([1.0, 2.0])
# Draws of a and b.
DRAWS = 200
# Bins of the log odds of predictions.
BINS = 500
# Log odds beyond these count as these.
EXTREME = logit(1 - 1e-4)


@dataclass(frozen=True)
class Goal:
    """A threshold for all known topics, with the precision and recall of its predictions.

    Parameters
    ----------
    kind : {"precision", "recall"}
        The measure that has a wanted value.
    wanted : float
        The wanted value.
    threshold : float
        Membership from which a topic counts as present.
    precision, recall : float
        Estimates for the unlabelled documents.
    low_precision, low_recall : float
        Values that are exceeded with a certainty of 95 %.
    hidden : int
        Number of labelled documents that the estimates come from.
    doubt : str
        A reason why the estimates may be too high, or "".
    """

    kind: Kind
    wanted: float
    threshold: float
    precision: float
    low_precision: float
    recall: float
    low_recall: float
    hidden: int
    doubt: str = ""

    @property
    def reached(self) -> bool:
        """Whether the wanted value is exceeded with a certainty of 95 %."""
        return (self.low_precision if self.kind == "precision" else self.low_recall) >= self.wanted

    @property
    def sentence(self) -> str:
        """The goal in words, and how sure it is."""
        both = {
            "precision": f"about {self.precision:.0%} of the predicted topics are right",
            "recall": f"about {self.recall:.0%} of the topics are found",
        }
        low = self.low_precision if self.kind == "precision" else self.low_recall
        (other,) = both.keys() - {self.kind}
        sure = f"(at least {low:.0%} with a certainty of {CERTAINTY:.0%})"
        first = f"With a threshold of {self.threshold:.3g}, {both[self.kind]} {sure}"
        if not self.reached:
            first = f"A {self.kind} of {self.wanted:.0%} cannot be promised with these labels. {first}"
        source = f"estimated from {self.hidden:,} documents whose labels were hidden"
        return f"{first}, and {both[other]}; {source}.{f' {self.doubt}' if self.doubt else ''}"


def choose(
    hidden: Array, labels: Array, others: Array, kind: Kind, wanted: float, *, doubt: str = "", seed: int = 0
) -> Goal:
    """The lowest threshold that reaches a precision, or the highest that reaches a recall.

    Parameters
    ----------
    hidden : array (n_labelled, n_topics)
        Memberships of the labelled documents, predicted without their labels.
    labels : array (n_labelled, n_topics)
        1 = has the topic, 0 = lacks it, NaN = unknown.
    others : array (n_unlabelled, n_topics)
        Memberships of unlabelled documents, or of a random part of them.
    kind : {"precision", "recall"}
    wanted : float
        Between 0 and 1.
    doubt : str, optional
        As in `Goal`.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    Goal
        If no threshold reaches the goal, the one that comes closest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((2000, 1))
    >>> goal = choose(p[:1000], (rng.random((1000, 1)) < p[:1000]) * 1.0, p[1000:], "precision", 0.9)
    >>> goal.reached, 0.75 < goal.threshold < 0.9
    (True, True)
    """
    if not 0 < wanted < 1:
        raise ValueError(f"{kind} must be a number between 0 and 1, such as 0.9; got {wanted}.")
    known = np.isfinite(labels)
    used = known & (hidden >= FLOOR)
    if not used.any():
        raise ValueError(f"a {kind} can only be promised with labels: label some documents.")
    mean, covariance = recalibration(hidden[used], labels[used])
    draws = np.random.default_rng(seed).multivariate_normal(mean, covariance, DRAWS)
    draws[:, 1] = np.maximum(draws[:, 1], 0)  # a larger membership is never a worse sign
    edges, counts = _bins(others)
    right = counts * expit(draws[:, :1] + draws[:, 1:] * ((edges[1:] + edges[:-1]) / 2))
    # From the strictest threshold down; the last one accepts everything from the floor up.
    thresholds, n = expit(edges[::-1][1:]), np.cumsum(counts[::-1])
    precision = np.cumsum(right[:, ::-1], axis=1) / np.maximum(n, 1)
    low_precision = np.where(n == 0, -1.0, np.quantile(precision, 1 - CERTAINTY, axis=0))
    given = np.sort(hidden[labels == 1])
    recall = 1 - np.searchsorted(given, thresholds) / max(len(given), 1)
    low_recall = wilson(recall, len(given), 2 * CERTAINTY - 1)[0]
    low = low_precision if kind == "precision" else low_recall
    reached = np.flatnonzero(low >= wanted)
    nearest = int(np.argmax(low))
    at = nearest if not reached.size else int(reached[-1] if kind == "precision" else reached[0])
    return Goal(
        kind=kind,
        wanted=wanted,
        threshold=float(thresholds[at]),
        precision=float(precision[:, at].mean()),
        low_precision=max(float(low_precision[at]), 0.0),
        recall=float(recall[at]),
        low_recall=float(low_recall[at]),
        hidden=len(hidden),
        doubt=doubt,
    )


def recalibration(p: Array, y: Array) -> tuple[Array, Array]:
    """Mean and covariance of a and b in P(y | p) = σ(a + b·logit p), close to 0 and 1 where labels are few."""
    x = np.clip(logit(np.clip(p, 1e-9, 1 - 1e-9)), -EXTREME, EXTREME)
    A, trusted = np.column_stack([np.ones(len(x)), x]), np.array([0.0, 1.0])
    beta, hessian = trusted, np.eye(2)
    for _ in range(50):
        m = expit(A @ beta)
        hessian = (A * (m * (1 - m))[:, None]).T @ A + np.diag(TRUST)
        step = np.linalg.solve(hessian, A.T @ (y - m) - TRUST * (beta - trusted))
        beta = beta + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    return beta, np.linalg.inv(hessian)


def _bins(others: Array) -> tuple[Array, NDArray[np.int64]]:
    """Edges of bins of log odds, and the number of predictions from the floor up in each."""
    p = others[others >= FLOOR].astype(np.float64)
    x = np.clip(logit(np.clip(p, 1e-9, 1 - 1e-9)), -EXTREME, EXTREME)
    edges = np.linspace(logit(FLOOR), EXTREME, BINS + 1)
    counts, _ = np.histogram(x, edges)
    return edges, counts
