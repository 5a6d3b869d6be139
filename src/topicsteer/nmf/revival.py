"""A topic that has lost all its weight begins again from the document that is explained worst."""

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
    """A document that a dead topic could take its terms from; ``row`` counts in its block."""

    error: float
    row: int
    terms: NDArray[np.int32]
    data: Array


Found: TypeAlias = tuple[float, list[tuple[list[Candidate], list[Candidate]]]]


def worst(block: Block, step: Step, dead: NDArray[np.intp]) -> Found:
    """For each dead topic those documents of a block that may contain it and are explained worst.

    As many as may be needed: labelled ones, and any. Before them the largest error of all. With a price, a document
    takes a topic up if its error is above that.
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


def revive(blocks: list[Found], HT: Array, step: Step, dead: NDArray[np.intp]) -> None:
    """Give each dead topic the terms of the document that is explained worst among those that may contain it.

    ``blocks`` are the answers of :func:`worst`. Labelled documents come first. The topic's W will be set to zero, so D
    is unchanged, and that document is sure to take the topic up: its gradient there is minus its squared error. Terms
    that the topic may not have count for nothing.
    """
    noise = np.sqrt(np.finfo(HT.dtype).eps) * max(largest for largest, _ in blocks)
    taken: set[tuple[int, int]] = set()
    for number, k in enumerate(dead):
        kinds = [
            [((b, one.row), one) for b, (_, found) in enumerate(blocks) for one in found[number][kind]]
            for kind in (0, 1)
        ]
        labelled, anyone = ([pair for pair in kind if pair[0] not in taken and pair[1].error > noise] for kind in kinds)
        candidates = labelled if labelled and not step.permitted[1:, k].all() else anyone
        HT[:, k] = 0
        if candidates:
            row, chosen = max(candidates, key=lambda pair: pair[1].error)  # the first of equals
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
        part = block.part(rows)
        cross = times(part.indptr, part.indices, part.data, HT)
        errors[rows] += ((part.W @ gram[:d, :d] - 2 * cross[:, :d]) * part.W).sum(axis=1)
    return errors
