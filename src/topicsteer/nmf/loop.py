"""The one loop that minimises D(W, H) = Σ E (X - (W∘L)H)². Read this first; its rules are in `topicsteer.nmf.rules`.

Everything is said in sums over blocks of documents: a block's W needs only H, and H needs only
``gram = (e∘W)ᵀW`` and ``cross = Xᵀ(e∘W)``, added up over the blocks in a fixed tree. The blocks depend on the matrix
alone and never on the number of threads, so neither does the result. Where the blocks are, in memory, on disk or on
other machines, is the business of their :class:`~topicsteer.nmf.protocols.Backend`: the loop never sees one.

Under a soft mask the objective is D + 2 Σ e P w, with the price P of each pair. Only the product WH is fixed by D, so
a price on W would be evaded by a small W and a large H: there the rows of H have length 1. That is the same as
minimising D + 2 Σ e P w ‖h‖ with h of any length, and since 2‖h‖ ≤ ‖h‖² + 1, with equality at length 1, H is updated
with the ridge Σ e P w, then made of length 1 again while W takes over the factor. Neither step can raise the objective.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from topicsteer.nmf import kernels as _kernels
from topicsteer.nmf.blocks import ROWS, Block, Sums, slices
from topicsteer.nmf.protocols import Backend, Result
from topicsteer.nmf.revival import revive, worst
from topicsteer.nmf.rules import RULES, Regularisation, Step, hals_rows, update_block
from topicsteer.nmf.term_constraints import TermConstraints
from topicsteer.system.threads import interruptions, workers
from topicsteer.system.types import Array

Callback = Callable[[int, float, float], object]

SWEEPS = 3  # inner sweeps an iteration: they cost little beside the products, and halve the iterations,
SETTLING = 5  # but the first iterations, which decide which optimum is reached, make one, as scikit-learn's do
SCALE = 1e4  # norm of a topic's terms, or one over it, beyond which it is rescaled
REVIVALS = 5  # times a topic is revived before it is given up


def factorise(
    backend: Backend,
    HT: Array,
    permitted: NDArray[np.bool_],
    *,
    solver: str,
    regularisation: Regularisation,
    tol: float,
    max_iter: int,
    threads: int | None = None,
    term_constraints: TermConstraints | None = None,
    unit: bool = False,
    earlier: Result | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimise D from the W of the blocks of ``backend``, which is changed, and ``HT``.

    An iteration updates H, then every block's W. ``hals`` begins with W, since its start is only in H.
    Ends when an iteration lowers the objective by no more than ``tol`` of it, when the callback returns True, at
    ``max_iter``, or, on Ctrl-C, after the iteration that is under way. Under ``hals`` a topic that has lost all its
    weight is revived; the multiplicative rules stay as they are in the paper. ``words`` are those that a topic must or
    must not have; ``unit`` keeps the rows of H at length 1, as prices on W ask for. ``earlier`` is where an interrupted
    loop stood: it goes on from there, as if nothing had happened.
    """
    d = HT.shape[1]
    rule = RULES[solver]
    update_rows = partial(update_block, rule=rule.rows)
    if not rule.multiplicative:
        HT = np.pad(HT, ((0, 0), (0, _padding(d))))
    terms = slices(len(HT), ROWS)
    result = replace(earlier, HT=HT[:, :d]) if earlier is not None else Result(HT[:, :d])
    lives = np.full(d, REVIVALS) if result.lives is None else result.lives
    began = time.perf_counter()

    with workers(threads) as run, interruptions() as interrupted:
        constant = backend.squares(run)

        def advance(update: Callable[..., Sums], step: Step) -> tuple[Sums, Step]:
            """Let the blocks take up a new H, and note the objective.

            Σ E (X - WH)² = Σ E X² - 2 <cross, Hᵀ> + <gram of W, gram of H>, and the penalties.
            """
            step = to_length_one(HT, step) if unit else step
            total = backend.total(update, step, run)
            error = total.error
            if total.below is None:  # E is not a full matrix
                error = constant - 2 * _dot(total.cross, HT) + _dot(total.gram, step.gram)
            on_W = 2 * float(total.penalty.sum()) + regularisation.l2_W * float(np.trace(total.gram))
            on_H = 2 * regularisation.l1_H * float(HT.sum(dtype=np.float64)) + regularisation.l2_H * float(
                np.trace(step.gram)
            )
            result.error = max(error, 0.0)
            result.objectives.append(result.error + on_W + on_H)
            return total, replace(step, scale=None)

        mask = None if term_constraints is None else term_constraints.mask(HT.dtype)
        step = Step(HT, HT.T @ HT, permitted, regularisation, mask, unit)
        if earlier is None:
            total, step = advance(update_block if rule.multiplicative else update_rows, step)
        else:
            total = backend.total(update_block, step, run)
            if result.scale is not None:
                step, total = replace(step, scale=result.scale), total.times(result.scale)
        while result.n_iter < max_iter:
            step = replace(step, sweeps=1 if result.n_iter < SETTLING else SWEEPS)
            grams = run(partial(rule.terms, HT=HT, total=total, step=step), terms)
            step = replace(step, gram=np.asarray(sum(grams)))
            if term_constraints is not None:
                term_constraints.lift(HT)
                step = replace(step, gram=HT.T @ HT)
            total, step = advance(update_rows, step)
            result.n_iter += 1
            before, after = result.objectives[-2:]
            if callback is not None and callback(result.n_iter, after, time.perf_counter() - began):
                result.ended = "callback"
                break
            if interrupted:
                result.ended = "interrupted"
                break
            dead = np.flatnonzero(((np.diag(total.gram) <= 0) | (np.diag(step.gram) <= 0))[:d] & (lives > 0))
            if dead.size and not rule.multiplicative and result.n_iter < max_iter:
                lives[dead] -= 1
                revive(backend.ask(partial(worst, step=step, dead=dead), run), HT, step, dead)
                step = replace(step, gram=HT.T @ HT, dead=dead)
                total = backend.total(update_rows, step, run)
                step = replace(step, dead=None)
            elif before - after <= tol * before:
                result.ended = "tol"
                break
            if not rule.multiplicative and regularisation == Regularisation() and not unit and result.n_iter < max_iter:
                step, total = rescale(HT, step, total)
            result.scale, result.lives = step.scale, lives
            backend.keep(result)
    result.lost = ((np.diag(total.gram) <= 0) | (np.diag(step.gram) <= 0))[:d]
    return result


def transform(
    block: Block, HT: Array, permitted: NDArray[np.bool_], regularisation: Regularisation, threads: int | None
) -> None:
    """Solve the W of documents for a fixed H, each document by itself."""
    tol = 1e-5 if HT.dtype == np.float32 else 1e-9
    with workers(threads) as run:
        step = Step(HT, HT.T @ HT, permitted, regularisation, sweeps=1000)
        for _ in run(partial(hals_rows, step=step, tol=tol), block.parts(4 * ROWS)):
            pass


def rescale(HT: Array, step: Step, total: Sums) -> tuple[Step, Sums]:
    """Move what is far too large or small in a topic's H over to its W, before single precision overflows.

    WH stays what it is, once W is multiplied with ``scale``. With penalties there is nothing to do: they fix the scale.
    """
    norms = np.sqrt(np.diag(step.gram))
    far = (norms > SCALE) | ((norms < 1 / SCALE) & (norms > 0))
    if not far.any():
        return step, total
    factor = np.where(far, norms, 1).astype(HT.dtype)
    HT /= factor
    return replace(step, gram=HT.T @ HT, scale=factor), total.times(factor)


def to_length_one(HT: Array, step: Step) -> Step:
    """Make the rows of H unit vectors; WH stays what it is once W is multiplied with ``scale``."""
    norms = np.sqrt(np.diag(step.gram))
    norms = np.where(norms > _kernels.TINY, norms, 1).astype(HT.dtype)
    HT /= norms
    return replace(step, gram=step.gram / np.outer(norms, norms), scale=norms)


# --- small arithmetic ---


def _padding(d: int) -> int:
    """Zero topics to add so that loops over topics fill vector registers, where that costs less than it saves."""
    return -d % 32 if d % 32 > 16 else 0


def _dot(a: Array, b: Array) -> float:
    return float(np.einsum("jk,jk->", a, b, dtype=np.float64))
