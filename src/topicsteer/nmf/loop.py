"""The one loop that minimises D(W, H) = Σ E (X - (W∘L)H)². Read this first; its rules are in `topicsteer.nmf.rules`.

X holds documents × terms, W the topic weights of documents, H the term weights of topics. L is 0 where a label forbids
a topic. Row i of E repeats the weight e of document i, unless the user passes a full E.

Each iteration updates H, then W:

- H needs only the sufficient statistics of the documents: ``cross = Xᵀ(e∘W)`` and the Gram matrix ``gram = (e∘W)ᵀW``.
  Each block of documents returns its own sums, and they are added up in a fixed tree.
- The W of a block needs only H, so each block is updated independently.

The blocks depend on the matrix alone, so the result does not depend on the number of threads. A
:class:`~topicsteer.nmf.protocols.Backend` holds the blocks, in memory, on disk or on other machines. The loop never
sees a block.

Penalties change the objective to D + 2 Σ e P w, where P is the penalty of a topic in a document. D fixes only the
product WH, so a small W and a large H would evade the penalty. The rows h of H therefore have length 1. This equals
minimising D + 2 Σ e P w ‖h‖ over h of any length. Since 2‖h‖ ≤ ‖h‖² + 1, with equality at length 1, H is updated under
the ridge Σ e P w. Its rows are then scaled back to length 1, and W takes over the factor. Neither step can raise the
objective.
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

# Sweeps of coordinate descent per iteration: they cost little compared with the products, and halve the iterations.
SWEEPS = 3
# The first iterations decide which optimum is reached; this many of them make one sweep, as scikit-learn does.
SETTLING = 5
# A topic is rescaled when the norm of its row of H exceeds this, or falls below its reciprocal.
SCALE = 1e4
# A topic is revived at most this many times.
REVIVALS = 5


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
    opening: int = 1,
    term_constraints: TermConstraints | None = None,
    unit: bool = False,
    earlier: Result | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimise D, starting from ``HT`` and the W of the blocks of ``backend``; both are changed in place.

    ``hals`` updates W once before the first iteration, since its start is in H only. A topic that has lost all its
    weight is revived under ``hals``; the multiplicative rules stay as in the paper.

    The loop ends when an iteration lowers the objective by no more than the share ``tol``, when the callback returns
    True, or at ``max_iter``. Ctrl-C ends it after the current iteration.

    Parameters
    ----------
    backend : Backend
        The blocks of documents.
    HT : array (n_terms, n_topics)
        Transpose of H.
    permitted : array of bool (n_patterns, n_topics)
        The topics that each pattern of labels permits.
    solver : str
        A key of `topicsteer.nmf.rules.RULES`.
    regularisation : Regularisation
        L1 and L2 penalties on W and H.
    tol, max_iter
        When to stop.
    threads : int, optional
        None = all cores.
    opening : int
        Sweeps of coordinate descent over the first W.
    term_constraints : TermConstraints, optional
        Pinned and banned terms of topics.
    unit : bool
        Whether the rows of H keep length 1, as penalties on W require.
    earlier : Result, optional
        State of an interrupted loop, which resumes exactly where it stopped.
    callback : callable, optional
        Called with iteration, objective and seconds.
    """
    d = HT.shape[1]
    rule = RULES[solver]
    update_rows = partial(update_block, rule=rule.rows)
    if not rule.multiplicative:
        HT = np.pad(HT, ((0, 0), (0, _padding(d))))
    terms = slices(len(HT), ROWS)
    result = replace(earlier, HT=HT[:, :d]) if earlier is not None else Result(HT[:, :d])
    revivals_left = np.full(d, REVIVALS) if result.revivals_left is None else result.revivals_left
    began = time.perf_counter()

    with workers(threads) as run, interruptions() as interrupted:
        constant = backend.squares(run)

        def advance(update: Callable[..., Sums], step: Step) -> tuple[Sums, Step]:
            """Update the blocks for a new H, and append the objective to the result.

            The objective is Σ E (X - WH)² = Σ E X² - 2 <cross, Hᵀ> + <gram of W, gram of H>, plus the penalties.
            """
            step = to_length_one(HT, step) if unit else step
            total = backend.total(update, step, run)
            error = total.error
            if total.below is None:  # no full error weight
                error = constant - 2 * _dot(total.cross, HT) + _dot(total.gram, step.gram)
            on_W = 2 * float(total.penalty.sum()) + regularisation.l2_W * float(np.trace(total.gram))
            on_H = 2 * regularisation.l1_H * float(HT.sum(dtype=np.float64)) + regularisation.l2_H * float(
                np.trace(step.gram)
            )
            result.error = max(error, 0.0)
            result.objectives.append(result.error + on_W + on_H)
            return total, replace(step, scale=None)

        mask = None if term_constraints is None else term_constraints.mask(HT.dtype)
        step = Step(HT, HT.T @ HT, permitted, regularisation, mask, unit, sweeps=opening)
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
            dead = np.flatnonzero(((np.diag(total.gram) <= 0) | (np.diag(step.gram) <= 0))[:d] & (revivals_left > 0))
            if dead.size and not rule.multiplicative and result.n_iter < max_iter:
                revivals_left[dead] -= 1
                revive(backend.map(partial(worst, step=step, dead=dead), run), HT, step, dead)
                step = replace(step, gram=HT.T @ HT, dead=dead)
                total = backend.total(update_rows, step, run)
                step = replace(step, dead=None)
            elif before - after <= tol * before:
                result.ended = "tol"
                break
            if not rule.multiplicative and regularisation == Regularisation() and not unit and result.n_iter < max_iter:
                step, total = rescale(HT, step, total)
            result.scale, result.revivals_left = step.scale, revivals_left
            backend.keep(result)
    result.lost = ((np.diag(total.gram) <= 0) | (np.diag(step.gram) <= 0))[:d]
    return result


def transform(
    block: Block, HT: Array, permitted: NDArray[np.bool_], regularisation: Regularisation, threads: int | None
) -> None:
    """Solve the W of documents for a fixed H, in place; each document is solved independently."""
    tol = 1e-5 if HT.dtype == np.float32 else 1e-9
    with workers(threads) as run:
        step = Step(HT, HT.T @ HT, permitted, regularisation, sweeps=1000)
        for _ in run(partial(hals_rows, step=step, tol=tol), block.split(4 * ROWS)):
            pass


def rescale(HT: Array, step: Step, total: Sums) -> tuple[Step, Sums]:
    """Normalise rows of H that are far too large or small, before single precision overflows.

    WH is unchanged once W is multiplied by ``scale`` in the next update. Penalties fix the scale, so this is for fits
    without penalties only.
    """
    norms = np.sqrt(np.diag(step.gram))
    far = (norms > SCALE) | ((norms < 1 / SCALE) & (norms > 0))
    if not far.any():
        return step, total
    factor = np.where(far, norms, 1).astype(HT.dtype)
    HT /= factor
    return replace(step, gram=HT.T @ HT, scale=factor), total.times(factor)


def to_length_one(HT: Array, step: Step) -> Step:
    """Scale the rows of H to length 1; WH is unchanged once W is multiplied by ``scale`` in the next update."""
    norms = np.sqrt(np.diag(step.gram))
    norms = np.where(norms > _kernels.TINY, norms, 1).astype(HT.dtype)
    HT /= norms
    return replace(step, gram=step.gram / np.outer(norms, norms), scale=norms)


# --- small arithmetic ---


def _padding(d: int) -> int:
    """Number of zero topics to append so that loops over topics fill vector registers, where that saves time."""
    return -d % 32 if d % 32 > 16 else 0


def _dot(a: Array, b: Array) -> float:
    return float(np.einsum("jk,jk->", a, b, dtype=np.float64))
