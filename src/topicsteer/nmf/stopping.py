"""When a fit stops: a share of the objective per iteration, and earlier for a fit with labels.

Nothing in the objective ties a known topic to its labels in unlabelled documents. Further iterations lower it, but the
topics move away from their labels, and are found less well in the other documents.
"""

from dataclasses import dataclass

from topicsteer.nmf.protocols import Problem
from topicsteer.nmf.rules import RULES

# Tolerance of an automatic stop, and the same for a fit with labels.
TOL, LABELLED_TOL = 1e-4, 0.02
# Sweeps of the first W of such a fit: one sweep from zero would give a document to the first topics in order.
OPENING = 5


@dataclass(frozen=True)
class Pace:
    """Tolerance of the loop, and the number of sweeps over the first W."""

    tol: float
    opening: int = 1


def pace_of(tol: float | str, problem: Problem, solver: str) -> Pace:
    """The pace of a fit; "auto" stops early with labels, by coordinate descent, without penalties or a history."""
    if not isinstance(tol, str):
        return Pace(tol)
    free = problem.penalties is None and problem.history is None and not RULES[solver].multiplicative
    if not (free and problem.supervision.labelled.any()):
        return Pace(TOL)
    return Pace(LABELLED_TOL, OPENING if problem.first is None else 1)
