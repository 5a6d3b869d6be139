"""The one loop that minimises D(W, H) = Σ E (X - (W∘L)H)². Read this first; its steps are in `nmf.solvers`."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from topicsteer.nmf import kernels as _kernels
from topicsteer.nmf.blocks import ROWS, Block, Sums, slices, times
from topicsteer.nmf.protocols import Backend, Problem, Result, TermConstraints
from topicsteer.nmf.solvers import RULES, Regularisation, Step, hals_rows, update_block
from topicsteer.system.threads import OrderedMap, interruptions, workers
from topicsteer.system.types import Array

# Tolerance of an automatic stop, and the same for a fit with labels.
TOL, LABELLED_TOL = 1e-4, 0.02
# Sweeps of the first W of such a fit: one sweep from zero would give a document to the first topics in order.
OPENING = 5


@dataclass(frozen=True)
class Pace:
    """Tolerance of the loop, the number of sweeps over the first W, and whether ‖X - WH‖ ends the loop instead of D."""

    tol: float
    opening: int = 1
    by_norm: bool = False


def pace_of(problem: Problem) -> Pace:
    """The pace of a fit; "auto" stops early with labels, by coordinate descent, without penalties or a history.

    "authors" is the end of the program of the paper's authors.
    """
    tol = problem.parameters.tol
    if not isinstance(tol, str):
        return Pace(tol)
    if tol == "authors":
        return Pace(TOL, by_norm=True)
    free = problem.penalties is None and problem.history is None and not problem.positive
    if not (free and problem.supervision.labelled.any()):
        return Pace(TOL)
    return Pace(LABELLED_TOL, OPENING if problem.first is None else 1)


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


def norm_of_errors(backend: Backend, step: Step, run: OrderedMap) -> float:
    """‖X - WH‖ without weights."""
    errors = backend.map(partial(row_errors, HT=step.HT, gram=step.gram), run)
    return float(np.sqrt(sum(float(part.sum()) for part in errors)))


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
    by_norm: bool = False,
    term_constraints: TermConstraints | None = None,
    unit: bool = False,
    callback: Callback | None = None,
) -> Result:
    """Minimise D, starting from ``HT`` and the W of the blocks of ``backend``; both are changed in place.

    ``hals`` updates W once before the first iteration, since its start is in H only. A topic that has lost all its
    weight is revived under ``hals`` without penalties on H; the multiplicative rules stay as in the paper.

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
        A key of `topicsteer.nmf.solvers.RULES`.
    regularisation : Regularisation
        L1 and L2 penalties on W and H.
    tol, max_iter
        When to stop.
    threads : int, optional
        None = all cores.
    opening : int
        Sweeps of coordinate descent over the first W.
    by_norm : bool
        Compare ‖X - WH‖ without weights instead of the objective, as the program of the paper's authors does. It may
        rise under weights, which ends the loop.
    term_constraints : TermConstraints, optional
        Pinned and banned terms of topics.
    unit : bool
        Whether the rows of H keep length 1, as penalties on W require.
    callback : callable, optional
        Called with iteration, objective and seconds.
    """
    d = HT.shape[1]
    rule = RULES[solver]
    update_rows = partial(update_block, rule=rule.rows)
    if not rule.multiplicative:
        HT = np.pad(HT, ((0, 0), (0, _padding(d))))
    terms = slices(len(HT), ROWS)
    result = Result(HT[:, :d])
    # A new row of H costs its penalty at once, and documents may gain less from it.
    may_revive = not (rule.multiplicative or regularisation.l1_H or regularisation.l2_H)
    revivals_left = np.full(d, REVIVALS)
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
        total, step = advance(update_block if rule.multiplicative else update_rows, step)
        norm = norm_of_errors(backend, step, run) if by_norm else 0.0
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
            if by_norm:
                before, after = norm, norm_of_errors(backend, step, run)
                norm = after
            dead = np.flatnonzero(((np.diag(total.gram) <= 0) | (np.diag(step.gram) <= 0))[:d] & (revivals_left > 0))
            if dead.size and may_revive and result.n_iter < max_iter:
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
