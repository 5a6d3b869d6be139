"""Factorisation with blocks on disk: the rows of X are memory-mapped; W is read, updated and written.

Every pass over the blocks writes a new version of W and keeps the last one. An interrupted pass or a repeated block
therefore does no harm. The state of the loop is written after each iteration, and an interrupted fit resumes from it
(see `topicsteer.backends.checkpoint`).
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import scipy.sparse as sp

from topicsteer.backends.checkpoint import CheckpointedBackend
from topicsteer.backends.weight_folder import WeightFolder
from topicsteer.nmf.blocks import Block, RowConstraints, Sums, tree_sum
from topicsteer.nmf.protocols import Problem
from topicsteer.nmf.rules import Step
from topicsteer.system.files import Scratch
from topicsteer.system.threads import OrderedMap

T = TypeVar("T")


def update_stored_block(
    update: Callable[[Block], Sums],
    X: sp.csr_array,
    constraints: RowConstraints,
    weights: WeightFolder,
    number: int,
    version: int,
) -> Sums:
    """Update the W of a block from one version to the next. Nothing else changes, so the call can be repeated."""
    block = Block.of(X, weights.read(number, version), constraints)
    sums = update(block)
    weights.write(number, version + 1, block.W)
    return sums


class DiskBackend(CheckpointedBackend):
    """A backend (see `topicsteer.nmf.protocols.Backend`) for blocks of a folder, updated by threads of this process."""

    def __init__(self, rows: Callable[[int], sp.csr_array], problem: Problem, scratch: Scratch) -> None:
        super().__init__(problem, scratch)
        self.rows, self.numbers = rows, range(len(problem.rows.starts) - 1)

    def total(self, update: Callable[..., Sums], step: Step, run: OrderedMap) -> Sums:
        """As in `topicsteer.nmf.protocols.Backend`."""
        update = partial(update, step=step)

        def one(number: int) -> Sums:
            constraints = self.constraints(number)
            return update_stored_block(update, self.rows(number), constraints, self.folder, number, self.version)

        total = tree_sum(run(one, self.numbers), Sums.__iadd__)
        self.finish_pass()
        return total

    def map(self, function: Callable[[Block], T], run: OrderedMap) -> list[T]:
        """As in `topicsteer.nmf.protocols.Backend`."""

        def one(number: int) -> T:
            return function(
                Block.of(self.rows(number), self.folder.read(number, self.version), self.constraints(number))
            )

        return list(run(one, self.numbers))
