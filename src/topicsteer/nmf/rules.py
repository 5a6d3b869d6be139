"""The rules that the loop can follow: one block's W given H, and H given the sums of all blocks."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.nmf import kernels as _kernels
from topicsteer.nmf.blocks import ROWS, Block, Penalties, Sums
from topicsteer.system.types import Array

DENSE_ROWS = 1 << 22  # entries of a dense block under a full error weight


@dataclass(frozen=True)
class Regularisation:
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
    regularisation: Regularisation
    term_constraints: Penalties | None = None
    unit: bool = False
    scale: Array | None = None
    dead: NDArray[np.intp] | None = None
    sweeps: int = 1


def update_block(block: Block, step: Step, rule: Callable[[Block, Step], None] | None = None) -> Sums:
    """Let a rule change the W of a block, or leave it as it is, and return the sums of the block."""
    if step.scale is not None:
        block.W *= step.scale[: block.W.shape[1]]
    if step.dead is not None:
        block.W[:, step.dead] = 0
    if rule is not None:
        rule(block, step)
    return sums(block, step) if block.E is None else sums_weighted(block, step)


def hals_rows(block: Block, step: Step, tol: float = 0.0) -> None:
    """Exact coordinate minimisation of the block's W; its row weights cancel."""
    HT, gram = step.HT, _with_ridge(step.gram, step.regularisation.l2_W)
    cross = np.empty((min(ROWS, len(block.W)), HT.shape[1]), dtype=HT.dtype)
    l1, tolerance = HT.dtype.type(step.regularisation.l1_W), HT.dtype.type(tol)
    for part in block.parts():
        products, masks = (
            cross[: len(part.W)],
            (step.permitted, part.pattern, part.penalties.indptr, part.penalties.topics),
        )
        _kernels.cross_rows(part.indptr, part.indices, part.data, HT, *masks, products)
        _kernels.descend(part.W, products, gram, *masks, part.penalties.values, l1, step.sweeps, tolerance)


def mu_rows(block: Block, step: Step) -> None:
    """The paper's equation (10): W ← W ∘ (X Hᵀ ∘ L) / ((W∘L) H Hᵀ ∘ L); W is zero where L is.

    Under a full E the appendix's: W ← W ∘ ((X∘E) Hᵀ ∘ L) / ((((W∘L)H) ∘ E) Hᵀ ∘ L).
    """
    HT, regularisation = step.HT, step.regularisation
    for part in block.parts(_few(block, HT)):
        W, penalty_of_W = part.W, part.penalties.dense(block.W.shape[1]) if len(part.penalties.values) else 0
        if part.E is None:
            above, below = np.empty_like(W), W @ step.gram
            masks = (step.permitted, part.pattern, part.penalties.indptr, part.penalties.topics)
            _kernels.cross_rows(part.indptr, part.indices, part.data, HT, *masks, above)
        else:
            X, E = _dense(part, HT)
            above, below = (X * E) @ HT, ((W @ HT.T) * E) @ HT
        W *= _ratio(above, below + regularisation.l1_W + penalty_of_W + regularisation.l2_W * W)


def hals_terms(terms: slice, HT: Array, total: Sums, step: Step) -> Array:
    """Coordinate minimisation of some rows of Hᵀ: the W update on the transpose. Returns their gram."""
    h = HT[terms]
    gram = _with_ridge(total.gram, ridge(total, step))
    everything = np.ones((1, len(gram)), dtype=np.bool_)
    l1, never = h.dtype.type(step.regularisation.l1_H), h.dtype.type(0)
    pattern = np.zeros(len(h), dtype=np.int32)
    mask = Penalties.none(len(h), h.dtype) if step.term_constraints is None else step.term_constraints.rows(terms)
    stored = (mask.indptr, mask.topics, mask.values)
    _kernels.descend(h, total.cross[terms], gram, everything, pattern, *stored, l1, step.sweeps, never)
    return h.T @ h


def mu_terms(terms: slice, HT: Array, total: Sums, step: Step) -> Array:
    """The paper's equation (9), and the appendix's: H ← H ∘ (Wᵀ(X∘E)) / (Wᵀ((WH)∘E)). Returns their gram."""
    h = HT[terms]
    below = h @ total.gram if total.below is None else total.below[terms]
    h *= _ratio(total.cross[terms], below + step.regularisation.l1_H + ridge(total, step) * h)
    return h.T @ h


def ridge(total: Sums, step: Step) -> float | Array:
    """Weight of the squares of H, for all topics or for each; with unit rows of H the penalties on W stand here."""
    if not step.unit:
        return step.regularisation.l2_H
    per_topic = total.penalty + step.regularisation.l2_W * np.diag(total.gram)[: len(total.penalty)]
    return np.pad(per_topic, (0, step.HT.shape[1] - len(per_topic))).astype(step.HT.dtype)


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
    return Sums(cross, gram, penalty_per_topic(block, block.weight, step.regularisation.l1_W))


def penalty_per_topic(block: Block, weight: Array, l1: float) -> NDArray[np.float64]:
    """Σ e (l1 + P) w of each topic."""
    out = np.zeros(block.W.shape[1])
    if l1:
        out += l1 * (weight @ block.W)
    _kernels.penalty(block.W, weight, block.penalties.indptr, block.penalties.topics, block.penalties.values, out)
    return out


def sums_weighted(block: Block, step: Step) -> Sums:
    """The same under a full E; ``gram`` then serves the penalties and the search for dead topics only."""
    HT = step.HT
    cross, below, error = np.zeros_like(HT), np.zeros_like(HT), 0.0
    for part in block.parts(_few(block, HT)):
        X, E = _dense(part, HT)
        W = part.W
        R = W @ HT.T
        cross += (X * E).T @ W
        below += (R * E).T @ W
        error += float((E * np.square(X - R)).sum(dtype=np.float64))
    penalty = penalty_per_topic(block, np.ones_like(block.weight), step.regularisation.l1_W)
    return Sums(cross, block.W.T @ block.W, penalty, below, error)


@dataclass(frozen=True)
class Rule:
    """A solver: how it updates the W of some documents and some rows of Hᵀ.

    Under a ``multiplicative`` rule a zero stays a zero: W and H start above zero, a topic that has lost all its weight
    stays lost, and the full E is possible.
    """

    rows: Callable[..., None]
    terms: Callable[..., Array]
    multiplicative: bool = False


RULES = {"hals": Rule(hals_rows, hals_terms), "mu": Rule(mu_rows, mu_terms, multiplicative=True)}


# --- small arithmetic ---


def _with_ridge(gram: Array, l2: float | Array) -> Array:
    return gram if np.isscalar(l2) and l2 == 0 else gram + np.diag(np.full(len(gram), l2, dtype=gram.dtype))


def _ratio(above: Array, below: Array) -> Array:
    """Above / below, and 0 where both vanish, or the ratio overflows: only a weight next to 0 has such a one."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > above * np.finfo(above.dtype).tiny)


def _few(block: Block, HT: Array) -> int:
    """How many documents are worked on at once."""
    return ROWS if block.E is None else max(1, DENSE_ROWS // len(HT))


def _dense(part: Block, HT: Array) -> tuple[Array, Array]:
    """X and E of a few documents as dense arrays."""
    indptr, used = part.indptr, slice(part.indptr[0], part.indptr[-1])
    X = sp.csr_array((part.data[used], part.indices[used], indptr - indptr[0]), shape=(len(part.W), len(HT)))
    return X.toarray(), (part.E.toarray() if sp.issparse(part.E) else np.asarray(part.E)) * part.weight[:, None]
