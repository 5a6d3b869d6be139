"""Revival of dead topics: a topic that has lost all its weight restarts from the document with the largest error."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from topicsteer.nmf import kernels as _kernels
from topicsteer.nmf.blocks import ROWS, Block, slices, times
from topicsteer.nmf.rules import Step
from topicsteer.system.types import Array


@dataclass(frozen=True)
class Candidate:
    """A document that a dead topic could restart from; ``row`` is its number within the block."""

    error: float
    row: int
    terms: NDArray[np.int32]
    data: Array


# The largest error in a block, and for each dead topic its labelled candidates and all its candidates.
Candidates: TypeAlias = tuple[float, list[tuple[list[Candidate], list[Candidate]]]]


def worst(block: Block, step: Step, dead: NDArray[np.intp]) -> Candidates:
    """The documents of a block with the largest errors, for each dead topic that they may contain.

    Each dead topic gets as many candidates as there are dead topics, because a document can revive only one of them.
    Under a penalty, a document gives weight to a topic only if its error exceeds the penalty.
    """
    errors = row_errors(block, step.HT, step.gram)
    lengths = np.sqrt(block.squared_norms()) if step.unit else 1.0
    found = []

    def candidate(i: int) -> Candidate:
        entries = slice(*block.indptr[i : i + 2])
        return Candidate(errors[i], i, block.indices[entries], block.data[entries])

    for k in dead:
        costs = block.penalties.column(k)
        may = step.permitted[block.pattern, k] & np.isfinite(costs)
        may[may] = (errors > np.where(may, costs, 0) * lengths)[may]
        pair = []
        for rows in (np.flatnonzero(may & (block.pattern != 0)), np.flatnonzero(may)):
            rows = rows[np.argsort(-errors[rows], kind="stable")[: len(dead)]]
            pair.append([candidate(i) for i in rows.tolist()])
        found.append((pair[0], pair[1]))
    return float(errors.max(initial=0.0)), found


def revive(blocks: list[Candidates], HT: Array, step: Step, dead: NDArray[np.intp]) -> None:
    """Set each dead topic to the terms of the document with the largest error that may contain it.

    ``blocks`` are the results of :func:`worst`. Labelled documents come first. The topic's W restarts from zero, so D
    is unchanged. That document is sure to give the topic weight: its gradient there is minus its squared error. Banned
    terms are left out.
    """
    noise = np.sqrt(np.finfo(HT.dtype).eps) * max(largest for largest, _ in blocks)
    taken: set[tuple[int, int]] = set()
    for number, k in enumerate(dead):
        kinds = [
            [((b, one.row), one) for b, (_, found) in enumerate(blocks) for one in found[number][kind]]
            for kind in (0, 1)
        ]
        labelled, any_of = ([pair for pair in kind if pair[0] not in taken and pair[1].error > noise] for kind in kinds)
        candidates = labelled if labelled and not step.permitted[1:, k].all() else any_of
        HT[:, k] = 0
        if candidates:
            row, chosen = max(candidates, key=lambda pair: pair[1].error)  # the first of several equal errors
            taken.add(row)
            HT[chosen.terms, k] = chosen.data
            if step.term_constraints is not None:
                HT[np.isinf(step.term_constraints.column(int(k))), k] = 0
            if step.unit:
                HT[:, k] /= max(float(np.linalg.norm(HT[:, k])), _kernels.TINY)


def row_errors(block: Block, HT: Array, gram: Array) -> NDArray[np.float64]:
    """Squared error of each document of a block, unweighted."""
    d = block.W.shape[1]
    errors = block.squared_norms()
    for rows in slices(len(errors), ROWS):
        few = block.rows(rows)
        cross = times(few.indptr, few.indices, few.data, HT)
        errors[rows] += ((few.W @ gram[:d, :d] - 2 * cross[:, :d]) * few.W).sum(axis=1)
    return errors
