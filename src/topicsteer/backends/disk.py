"""A factorisation whose blocks are on disk: the rows of X are mapped into memory, W is read, updated and written.

Every pass over the blocks writes a new version of W and leaves the last one alone, so that a pass that was killed, or a
block that is done twice, does no harm; the loop's own state is written after each iteration, and an interrupted fit
goes on from there (`topicsteer.backends.checkpoint`).
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import scipy.sparse as sp

from topicsteer.backends.checkpoint import StateKeeper
from topicsteer.backends.weight_folder import WeightFolder
from topicsteer.nmf.blocks import Block, RowConstraints, Sums, in_a_tree
from topicsteer.nmf.protocols import Problem
from topicsteer.nmf.rules import Step
from topicsteer.system.files import Scratch
from topicsteer.system.threads import OrderedMap

T = TypeVar("T")


def work(
    update: Callable[[Block], Sums],
    X: sp.csr_array,
    constraints: RowConstraints,
    weights: WeightFolder,
    number: int,
    version: int,
) -> Sums:
    """Update the W of a block from one version to the next; nothing else is touched, so it can be done again."""
    block = Block.of(X, weights.read(number, version), constraints)
    sums = update(block)
    weights.write(number, version + 1, block.W)
    return sums


class OnDisk(StateKeeper):
    """A backend (see `topicsteer.nmf.protocols.Backend`): blocks of a folder, worked on by threads of this process."""

    def __init__(self, rows: Callable[[int], sp.csr_array], problem: Problem, scratch: Scratch) -> None:
        super().__init__(problem, scratch)
        self.rows, self.numbers = rows, range(len(problem.rows.starts) - 1)

    def total(self, update: Callable[..., Sums], step: Step, run: OrderedMap) -> Sums:
        """As in `topicsteer.nmf.protocols.Backend`."""
        changed = partial(update, step=step)

        def one(number: int) -> Sums:
            return work(changed, self.rows(number), self.constraints(number), self.folder, number, self.version)

        total = in_a_tree(run(one, self.numbers), Sums.__iadd__)
        self.passed()
        return total

    def ask(self, question: Callable[[Block], T], run: OrderedMap) -> list[T]:
        """As in `topicsteer.nmf.protocols.Backend`."""

        def one(number: int) -> T:
            return question(
                Block.of(self.rows(number), self.folder.read(number, self.version), self.constraints(number))
            )

        return list(run(one, self.numbers))
