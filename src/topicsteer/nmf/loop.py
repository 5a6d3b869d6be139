"""The one loop that minimises D(W, H) = Σ E (X - (W∘L)H)², and the rules it can follow.

Everything is said in sums over blocks of documents: a block's W needs only H, and H needs only
``gram = (e∘W)ᵀW`` and ``cross = Xᵀ(e∘W)``, added up over the blocks in a fixed tree. The blocks depend on the matrix
alone and never on the number of threads, so neither does the result. Where the blocks are, in memory, on disk or on
other machines, is the business of their :class:`~topicsteer.nmf.protocols.Backend`: the loop never sees one.

Under a soft mask the objective is D + 2 Σ e P w, with the price P of each pair. Only the product WH is fixed by D, so
a price on W would be evaded by a small W and a large H: there the rows of H have length 1. That is the same as
minimising D + 2 Σ e P w ‖h‖ with h of any length, and since 2‖h‖ ≤ ‖h‖² + 1, with equality at length 1, H is updated
with the ridge Σ e P w, then made of length 1 again while W takes over the factor. Neither step can raise the objective.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.nmf import kernels as _kernels
from topicsteer.nmf.blocks import ROWS, Block, SoftMask, Sums, slices, times
from topicsteer.nmf.protocols import Backend
from topicsteer.nmf.term_constraints import Words
from topicsteer.system.threads import interruptions, workers
from topicsteer.system.types import Array

Callback = Callable[[int, float, float], object]
Map = Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]

SWEEPS = 3  # inner sweeps an iteration: they cost little beside the products, and halve the iterations,
SETTLING = 5  # but the first iterations, which decide which optimum is reached, make one, as scikit-learn's do
SCALE = 1e4  # norm of a topic's terms, or one over it, beyond which it is rescaled
REVIVALS = 5  # times a topic is revived before it is given up
DENSE_ROWS = 1 << 22  # entries of a dense block under a full error weight


@dataclass(frozen=True)
class Penalty:
    """Weights of the penalties, so that D + 2 l1 Σ|·| + l2 Σ(·)² is minimised, for W (a document) and H."""

    l1_W: float = 0.0
    l2_W: float = 0.0
    l1_H: float = 0.0
    l2_H: float = 0.0


@dataclass(frozen=True)
class Step:
    """What a block has to know of the rest: H and its gram, the permitted topics of each pattern, the penalties.

    ``words`` is the mask of the terms; ``unit`` says that the rows of H have length 1. ``scale`` is what W has to be
    multiplied with, because H was divided by it, and ``dead`` are the topics whose W has to begin anew from zero.
    """

    HT: Array
    gram: Array
    permitted: NDArray[np.bool_]
    penalty: Penalty
    words: SoftMask | None = None
    unit: bool = False
    scale: Array | None = None
    dead: NDArray[np.intp] | None = None
    sweeps: int = 1


@dataclass
class Result:
    """A factorisation, finished or not; ``HT`` is the transpose of H.

    ``scale`` is what W still has to be multiplied with, ``lives`` how often each topic may still be revived, and
    ``lost`` marks the topics that have no weight.
    """

    HT: Array
    history: list[float] = field(default_factory=list)
    error: float = 0.0
    ended: str = "max_iter"
    n_iter: int = 0
    scale: Array | None = None
    lives: NDArray[np.int64] | None = None
    lost: NDArray[np.bool_] | None = None


# --- the rules: one block's W given H, and H given the sums ---


def hals_block(block: Block, step: Step) -> Sums:
    """Exact coordinate minimisation of the block's W; its row weights cancel."""
    _take_over(block, step)
    descend_rows(block, step, tol=0.0)
    return sums(block, step)


def mu_block(block: Block, step: Step) -> Sums:
    """The paper's equation (10): W ← W ∘ (X Hᵀ ∘ L) / ((W∘L) H Hᵀ ∘ L); W is zero where L is."""
    _take_over(block, step)
    for rows, indptr in block.rows():
        W, pattern, mask = block.W[rows], block.pattern[rows], block.soft.rows(rows)
        cross, price = np.empty_like(W), mask.prices(W.shape[1]) if len(mask.price) else 0
        masks = (step.permitted, pattern, mask.indptr, mask.topics)
        _kernels.cross_rows(indptr, block.indices, block.data, step.HT, *masks, cross)
        W *= _ratio(cross, W @ step.gram + step.penalty.l1_W + price + step.penalty.l2_W * W)
    return sums(block, step)


def mu_block_weighted(block: Block, step: Step) -> Sums:
    """The appendix's rule for a full E: W ← W ∘ ((X∘E) Hᵀ ∘ L) / ((((W∘L)H) ∘ E) Hᵀ ∘ L)."""
    _take_over(block, step)
    for rows, X, E in _dense_rows(block, step.HT):
        W, price = block.W[rows], block.soft.rows(rows).prices(block.W.shape[1])
        below = ((W @ step.HT.T) * E) @ step.HT + step.penalty.l1_W + price + step.penalty.l2_W * W
        W *= _ratio((X * E) @ step.HT, below)
    return sums_weighted(block, step)


def hals_terms(terms: slice, total: Sums, step: Step) -> Array:
    """Coordinate minimisation of some rows of Hᵀ: the W update on the transpose. Returns their gram."""
    h = step.HT[terms]
    gram = _with_ridge(total.gram, ridge(total, step))
    everything = np.ones((1, len(gram)), dtype=np.bool_)
    l1, never = h.dtype.type(step.penalty.l1_H), h.dtype.type(0)
    pattern = np.zeros(len(h), dtype=np.int32)
    mask = SoftMask.silent(len(h), h.dtype) if step.words is None else step.words.rows(terms)
    soft = (mask.indptr, mask.topics, mask.price)
    _kernels.descend(h, total.cross[terms], gram, everything, pattern, *soft, l1, step.sweeps, never)
    return h.T @ h


def mu_terms(terms: slice, total: Sums, step: Step) -> Array:
    """The paper's equation (9), and the appendix's: H ← H ∘ (Wᵀ(X∘E)) / (Wᵀ((WH)∘E)). Returns their gram."""
    h = step.HT[terms]
    below = h @ total.gram if total.below is None else total.below[terms]
    h *= _ratio(total.cross[terms], below + step.penalty.l1_H + ridge(total, step) * h)
    return h.T @ h


def ridge(total: Sums, step: Step) -> Any:
    """Weight of the squares of H, for all topics or for each; with unit rows of H the penalties on W stand here."""
    if not step.unit:
        return step.penalty.l2_H
    prices = total.charge + step.penalty.l2_W * np.diag(total.gram)[: len(total.charge)]
    return np.pad(prices, (0, step.HT.shape[1] - len(prices))).astype(step.HT.dtype)


def descend_rows(block: Block, step: Step, tol: float) -> None:
    """Coordinate descent on the W of a block."""
    HT, gram = step.HT, _with_ridge(step.gram, step.penalty.l2_W)
    cross = np.empty((min(ROWS, len(block.W)), HT.shape[1]), dtype=HT.dtype)
    l1, tolerance = HT.dtype.type(step.penalty.l1_W), HT.dtype.type(tol)
    for rows, indptr in block.rows():
        W, pattern, mask = block.W[rows], block.pattern[rows], block.soft.rows(rows)
        part, masks = cross[: len(W)], (step.permitted, pattern, mask.indptr, mask.topics)
        _kernels.cross_rows(indptr, block.indices, block.data, HT, *masks, part)
        _kernels.descend(W, part, gram, *masks, mask.price, l1, step.sweeps, tolerance)


def look_at_block(block: Block, step: Step) -> Sums:
    """The sums of a block as it is."""
    _take_over(block, step)
    return sums(block, step)


def look_at_block_weighted(block: Block, step: Step) -> Sums:
    """The same under a full E."""
    _take_over(block, step)
    return sums_weighted(block, step)


def squares(block: Block) -> float:
    """Σ e x² of a block."""
    return float(block.squared_norms() @ block.weight)


def sums(block: Block, step: Step) -> Sums:
    """Gram and cross of a block."""
    W = block.W
    d, width = W.shape[1], step.HT.shape[1]
    cross = np.zeros_like(step.HT)
    _kernels.cross_columns(block.indptr, block.indices, block.data, W, block.weight, cross)
    gram = np.zeros((width, width), dtype=W.dtype)
    gram[:d, :d] = W.T @ W
    heavy = block.weight != 1
    if heavy.any():  # few documents are: (e∘W)ᵀW = WᵀW + ((e - 1)∘W)ᵀW
        V = W[heavy]
        gram[:d, :d] += (V * (block.weight[heavy] - 1)[:, None]).T @ V
    return Sums(cross, gram, charges(block, block.weight, step.penalty.l1_W))


def charges(block: Block, weight: Array, l1: float) -> NDArray[np.float64]:
    """Σ e (l1 + P) w of each topic."""
    out = np.zeros(block.W.shape[1])
    if l1:
        out += l1 * (weight @ block.W)
    _kernels.charge(block.W, weight, block.soft.indptr, block.soft.topics, block.soft.price, out)
    return out


def sums_weighted(block: Block, step: Step) -> Sums:
    """The same under a full E; ``gram`` then serves the penalties and the search for dead topics only."""
    HT = step.HT
    cross, below, error = np.zeros_like(HT), np.zeros_like(HT), 0.0
    for rows, X, E in _dense_rows(block, HT):
        W = block.W[rows]
        R = W @ HT.T
        cross += (X * E).T @ W
        below += (R * E).T @ W
        error += float((E * np.square(X - R)).sum(dtype=np.float64))
    charge = charges(block, np.ones_like(block.weight), step.penalty.l1_W)
    return Sums(cross, block.W.T @ block.W, charge, below, error)


RULES = {"hals": (hals_block, hals_terms), "mu": (mu_block, mu_terms)}


# --- the loop ---


def factorise(
    place: Backend,
    HT: Array,
    permitted: NDArray[np.bool_],
    *,
    solver: str,
    penalty: Penalty,
    tol: float,
    max_iter: int,
    weighted: bool = False,
    threads: int | None = None,
    words: Words | None = None,
    unit: bool = False,
    earlier: Result | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimise D from the W of the blocks in ``place``, which is changed, and ``HT``.

    An iteration updates H, then every block's W. ``hals`` begins with W, since its start is only in H.
    Ends when an iteration lowers the objective by no more than ``tol`` of it, when the callback returns True, at
    ``max_iter``, or, on Ctrl-C, after the iteration that is under way. Under ``hals`` a topic that has lost all its
    weight is revived; the multiplicative rules stay as they are in the paper. ``words`` are those that a topic must or
    must not have; ``unit`` keeps the rows of H at length 1, as prices on W ask for; ``weighted`` says that blocks have
    a full E. ``earlier`` is where an interrupted loop stood: it goes on from there, as if nothing had happened.
    """
    d = HT.shape[1]
    update_block, update_terms = RULES[solver]
    if weighted:
        update_block = mu_block_weighted
    if solver == "hals":
        HT = np.pad(HT, ((0, 0), (0, _padding(d))))
    terms = slices(len(HT), ROWS)
    result = replace(earlier, HT=HT[:, :d]) if earlier is not None else Result(HT[:, :d])
    lives = np.full(d, REVIVALS) if result.lives is None else result.lives
    began = time.perf_counter()

    with workers(threads) as run, interruptions() as interrupted:
        constant = 0.0 if weighted else sum(place.ask(squares, run))

        def record(total: Sums, step: Step) -> None:
            """Σ E (X - WH)² = Σ E X² - 2 <cross, Hᵀ> + <gram of W, gram of H>, and the penalties."""
            error = total.error
            if not weighted:
                error = constant - 2 * _dot(total.cross, HT) + _dot(total.gram, step.gram)
            on_W = 2 * float(total.charge.sum()) + penalty.l2_W * float(np.trace(total.gram))
            on_H = 2 * penalty.l1_H * float(HT.sum(dtype=np.float64)) + penalty.l2_H * float(np.trace(step.gram))
            result.error = max(error, 0.0)
            result.history.append(result.error + on_W + on_H)

        mask = None if words is None else words.mask(HT.dtype)
        step = Step(HT, HT.T @ HT, permitted, penalty, mask, unit)
        look = look_at_block_weighted if weighted else look_at_block
        if earlier is None:
            step = to_length_one(step) if unit else step
            total = place.total(update_block if solver == "hals" else look, step, run)
            record(total, step)
            step = replace(step, scale=None)
        else:
            total = place.total(look, step, run)
            if result.scale is not None:
                step, total = replace(step, scale=result.scale), total.times(result.scale)
        while result.n_iter < max_iter:
            step = replace(step, sweeps=1 if result.n_iter < SETTLING else SWEEPS)
            step = replace(step, gram=sum(run(partial(update_terms, total=total, step=step), terms)))
            if words is not None:
                words.lift(HT)
                step = replace(step, gram=HT.T @ HT)
            step = to_length_one(step) if unit else step
            total = place.total(update_block, step, run)
            step = replace(step, scale=None)
            record(total, step)
            result.n_iter += 1
            before, after = result.history[-2:]
            if callback is not None and callback(result.n_iter, after, time.perf_counter() - began):
                result.ended = "callback"
                break
            if interrupted:
                result.ended = "interrupted"
                break
            dead = np.flatnonzero(((np.diag(total.gram) <= 0) | (np.diag(step.gram) <= 0))[:d] & (lives > 0))
            if solver == "hals" and dead.size and result.n_iter < max_iter:
                lives[dead] -= 1
                revive(place.ask(partial(worst, step=step, dead=dead), run), step, dead)
                step = replace(step, gram=HT.T @ HT, dead=dead)
                total = place.total(update_block, step, run)
                step = replace(step, dead=None)
            elif before - after <= tol * before:
                result.ended = "tol"
                break
            if solver == "hals" and penalty == Penalty() and not unit and result.n_iter < max_iter:
                step, total = rescale(step, total)
            result.scale, result.lives = step.scale, lives
            place.keep(result)
    result.lost = ((np.diag(total.gram) <= 0) | (np.diag(step.gram) <= 0))[:d]
    return result


def transform(block: Block, HT: Array, permitted: NDArray[np.bool_], penalty: Penalty, threads: int | None) -> None:
    """Solve the W of documents for a fixed H, each document by itself."""
    tol = 1e-5 if HT.dtype == np.float32 else 1e-9
    parts = [
        replace(
            block,
            indptr=indptr,
            W=block.W[rows],
            weight=block.weight[rows],
            pattern=block.pattern[rows],
            soft=block.soft.rows(rows),
        )
        for rows, indptr in block.rows(4 * ROWS)
    ]
    with workers(threads) as run:
        step = Step(HT, HT.T @ HT, permitted, penalty, sweeps=1000)
        for _ in run(partial(descend_rows, step=step, tol=tol), parts):
            pass


@dataclass(frozen=True)
class Candidate:
    """A document that a dead topic could take its terms from; ``row`` counts in its block."""

    error: float
    row: int
    terms: NDArray[np.int32]
    data: Array


def worst(
    block: Block, step: Step, dead: NDArray[np.intp]
) -> tuple[float, list[tuple[list[Candidate], list[Candidate]]]]:
    """For each dead topic those documents of a block that may contain it and are explained worst.

    As many as may be needed: labelled ones, and any. Before them the largest error of all. With a price, a document
    takes a topic up if its error is above that.
    """
    errors = row_errors(block, step.HT, step.gram)
    lengths = np.sqrt(block.squared_norms()) if step.unit else 1.0
    found = []
    for k in dead:
        prices = block.soft.column(k)
        may = step.permitted[block.pattern, k] & np.isfinite(prices)
        may[may] = (errors > np.where(may, prices, 0) * lengths)[may]
        pair = []
        for rows in (np.flatnonzero(may & (block.pattern != 0)), np.flatnonzero(may)):
            rows = rows[np.argsort(-errors[rows], kind="stable")[: len(dead)]]
            parts = [slice(*block.indptr[i : i + 2]) for i in rows]
            pair.append(
                [
                    Candidate(errors[i], int(i), block.indices[p], block.data[p])
                    for i, p in zip(rows, parts, strict=True)
                ]
            )
        found.append((pair[0], pair[1]))
    return float(errors.max(initial=0.0)), found


def revive(blocks: list[Any], step: Step, dead: NDArray[np.intp]) -> None:
    """Give each dead topic the terms of the document that is explained worst among those that may contain it.

    ``blocks`` are the answers of :func:`worst`. Labelled documents come first. The topic's W will be set to zero, so D
    is unchanged, and that document is sure to take the topic up: its gradient there is minus its squared error. Terms
    that the topic may not have count for nothing.
    """
    HT = step.HT
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
            if step.words is not None:
                HT[np.isinf(step.words.column(int(k))), k] = 0
            if step.unit:
                HT[:, k] /= max(float(np.linalg.norm(HT[:, k])), _kernels.TINY)


def rescale(step: Step, total: Sums) -> tuple[Step, Sums]:
    """Move what is far too large or small in a topic's H over to its W, before single precision overflows.

    WH stays what it is, once W is multiplied with ``scale``. With penalties there is nothing to do: they fix the scale.
    """
    norms = np.sqrt(np.diag(step.gram))
    far = (norms > SCALE) | ((norms < 1 / SCALE) & (norms > 0))
    if not far.any():
        return step, total
    factor = np.where(far, norms, 1).astype(step.HT.dtype)
    step.HT.__itruediv__(factor)
    return replace(step, gram=step.HT.T @ step.HT, scale=factor), total.times(factor)


def to_length_one(step: Step) -> Step:
    """Make the rows of H unit vectors; WH stays what it is once W is multiplied with ``scale``."""
    norms = np.sqrt(np.diag(step.gram))
    norms = np.where(norms > _kernels.TINY, norms, 1).astype(step.HT.dtype)
    step.HT.__itruediv__(norms)
    return replace(step, gram=step.gram / np.outer(norms, norms), scale=norms)


def row_errors(block: Block, HT: Array, gram: Array) -> NDArray[np.float64]:
    """Squared error of each document of a block, unweighted."""
    d = block.W.shape[1]
    errors = block.squared_norms()
    for rows, indptr in block.rows():
        W = block.W[rows]
        cross = times(indptr, block.indices, block.data, HT)
        errors[rows] += ((W @ gram[:d, :d] - 2 * cross[:, :d]) * W).sum(axis=1)
    return errors


# --- small arithmetic ---


def _padding(d: int) -> int:
    """Zero topics to add so that loops over topics fill vector registers, where that costs less than it saves."""
    return -d % 32 if d % 32 > 16 else 0


def _dot(a: Array, b: Array) -> float:
    return float(np.einsum("jk,jk->", a, b, dtype=np.float64))


def _take_over(block: Block, step: Step) -> None:
    if step.scale is not None:
        block.W *= step.scale[: block.W.shape[1]]
    if step.dead is not None:
        block.W[:, step.dead] = 0


def _with_ridge(gram: Array, l2: Any) -> Array:
    return gram if np.isscalar(l2) and l2 == 0 else gram + np.diag(np.full(len(gram), l2, dtype=gram.dtype))


def _ratio(above: Array, below: Array) -> Array:
    """Above / below, and 0 where both vanish, or the ratio overflows: only a weight next to 0 has such a one."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > above * np.finfo(above.dtype).tiny)


def _dense_rows(block: Block, HT: Array) -> Iterator[tuple[slice, Array, Array]]:
    """X and E of a few documents at a time as dense arrays."""
    for rows, indptr in block.rows(max(1, DENSE_ROWS // len(HT))):
        part = slice(indptr[0], indptr[-1])
        shape = (len(indptr) - 1, len(HT))
        X = sp.csr_array((block.data[part], block.indices[part], indptr - indptr[0]), shape=shape).toarray()
        E = block.E[rows]
        E = E.toarray() if sp.issparse(E) else np.asarray(E)
        yield rows, X, E * block.weight[rows, None]
