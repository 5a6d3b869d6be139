"""Choose the threshold of predictions from a goal, such as a precision of 90 %, with labels that were hidden.

Each labelled document is predicted without its own labels. A logistic regression of these labels on the log odds of the
predictions recalibrates them: P(right | p) = (1 - f)·σ(a + b·logit p). The flaw f is the share of errors that remain
where the model is surest, because labels are ambiguous or wrong. The prior of a = 0, b = 1 and f = 0 trusts the
predictions, and gives way to the labels. The precision above a threshold is then a mean over the unlabelled documents,
and draws of a, b and f give its uncertainty. The recall is the share of the hidden labels that are found, with Wilson's
interval.
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
# Values of the flaw that are tried, and its typical value a priori.
FLAWS, TYPICAL_FLAW = np.array([0.0, 0.02, 0.04, 0.07, 0.1, 0.14, 0.18, 0.23, 0.3]), 0.05
# If the goal is out of reach, any threshold this close to the best value will do.
NEAR = 0.01
# Draws of a, b and the flaw.
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
    draws, flaws = _draw(hidden[used].astype(np.float64), labels[used], seed)
    edges, counts = _bins(others)
    right = counts * (1 - flaws[:, None]) * expit(draws[:, :1] + draws[:, 1:] * ((edges[1:] + edges[:-1]) / 2))
    # From the strictest threshold down; the last one accepts everything from the floor up.
    thresholds, n = expit(edges[::-1][1:]), np.cumsum(counts[::-1])
    precision = np.cumsum(right[:, ::-1], axis=1) / np.maximum(n, 1)
    low_precision = np.where(n == 0, -1.0, np.quantile(precision, 1 - CERTAINTY, axis=0))
    given = np.sort(hidden[labels == 1])
    recall = 1 - np.searchsorted(given, thresholds) / max(len(given), 1)
    low_recall = wilson(recall, len(given), 2 * CERTAINTY - 1)[0]
    low = low_precision if kind == "precision" else low_recall
    reached = np.flatnonzero(low >= wanted)
    if not reached.size:  # many predictions rather than the last hundredth
        reached = np.flatnonzero(low >= low.max() - NEAR)
    at = int(reached[-1] if kind == "precision" else reached[0])
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


def recalibration(p: Array, y: Array, flaw: float = 0.0) -> tuple[Array, Array, float]:
    """Mean and covariance of a and b in P(y | p) = (1 - flaw)·σ(a + b·logit p), and the log evidence for the flaw.

    Fisher scoring, with a normal prior around a = 0 and b = 1. The evidence is Laplace's approximation.
    """
    x = _log_odds(p)
    A, trusted = np.column_stack([np.ones(len(x)), x]), np.array([0.0, 1.0])
    beta, information, q = trusted, np.diag(TRUST), np.zeros(len(x))
    for _ in range(50):
        m = expit(A @ beta)
        q = np.clip((1 - flaw) * m, 1e-12, 1 - 1e-12)
        slope = (1 - flaw) * m * (1 - m)
        spread = q * (1 - q)
        information = (A * (slope**2 / spread)[:, None]).T @ A + np.diag(TRUST)
        step = np.linalg.solve(information, A.T @ (slope * (y - q) / spread) - TRUST * (beta - trusted))
        beta = beta + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    fit = float(np.log(np.where(y == 1, q, 1 - q)).sum() - (TRUST * (beta - trusted) ** 2).sum() / 2)
    return beta, np.linalg.inv(information), fit - float(np.linalg.slogdet(information)[1]) / 2


def _draw(p: Array, y: Array, seed: int) -> tuple[Array, Array]:
    """Draws of a and b, and of the flaw, from their distribution given hidden labels."""
    found = [recalibration(p, y, flaw) for flaw in FLAWS]
    evidence = np.array([each[2] for each in found]) - FLAWS / TYPICAL_FLAW
    chance = np.exp(evidence - evidence.max())
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(FLAWS), DRAWS, p=chance / chance.sum()))
    sizes = [int((chosen == k).sum()) for k in range(len(FLAWS))]
    draws = np.vstack([rng.multivariate_normal(each[0], each[1], n) for each, n in zip(found, sizes, strict=True)])
    draws[:, 1] = np.maximum(draws[:, 1], 0)  # a larger membership is never a worse sign
    return draws, FLAWS[chosen]


def _log_odds(p: Array) -> Array:
    return np.asarray(np.clip(logit(np.clip(p, 1e-9, 1 - 1e-9)), -EXTREME, EXTREME))


def _bins(others: Array) -> tuple[Array, NDArray[np.int64]]:
    """Edges of bins of log odds, and the number of predictions from the floor up in each."""
    edges = np.linspace(logit(FLOOR), EXTREME, BINS + 1)
    counts, _ = np.histogram(_log_odds(others[others >= FLOOR].astype(np.float64)), edges)
    return edges, counts
