"""The update rules of `topicsteer.nmf.loop`: the W of one block given H, and H given the sums of all blocks.

There are two solvers, each a pair of rules in :data:`RULES`:

- ``hals`` is coordinate descent. Each weight in turn moves to its exact minimum while the others stay fixed. H is
  updated like W, on the transpose of X: ``gram`` and ``cross`` replace HHᵀ and XHᵀ.
- ``mu`` are the multiplicative rules of MacMillan & Wilson (2017): equations (9) and (10), or the rules of the appendix
  under a full error weight E. Each weight is multiplied by the ratio of the gradient's two non-negative terms.

A rule for W changes the block in place; :func:`update_block` calls it and returns the sums of the block. A rule for H
changes some rows of Hᵀ in place and returns their Gram matrix.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.nmf.blocks import ROWS, Block, Penalties, Sums
from topicsteer.system.machine_code import lazy_module
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from topicsteer.nmf import kernels as _kernels
else:
    _kernels = lazy_module("topicsteer.nmf.kernels")

# Entries of the dense blocks that a full error weight is applied to.
DENSE_ENTRIES = 1 << 22


@dataclass(frozen=True)
class Regularisation:
    """Strength of the L1 and L2 penalties: the loop minimises D + 2 l1 Σ|·| + l2 Σ(·)².

    The penalties on W are multiplied by the weight of each document, as its error is.
    """

    l1_W: float = 0.0
    l2_W: float = 0.0
    l1_H: float = 0.0
    l2_H: float = 0.0

    @classmethod
    def of(cls, n_terms: int, total_weight: float = 0.0, *, alpha_W: float, alpha_H: float, l1_ratio: float) -> Self:
        """Return the strengths from the parameters of an estimator, the number of terms and the weight of documents."""
        on_W, on_H = alpha_W * n_terms, alpha_H * total_weight
        return cls(
            l1_W=on_W * l1_ratio,
            l2_W=on_W * (1 - l1_ratio),
            l1_H=on_H * l1_ratio,
            l2_H=on_H * (1 - l1_ratio),
        )


@dataclass(frozen=True)
class Step:
    """Everything that the update of a block needs from outside the block.

    Parameters
    ----------
    HT : array (n_terms, n_topics)
        Transpose of H.
    gram : array (n_topics, n_topics)
        Gram matrix of H.
    permitted : array of bool (n_patterns, n_topics)
        The topics that each pattern of labels permits.
    regularisation : Regularisation
    term_constraints : Penalties, optional
        Banned terms, as a mask of the rows of Hᵀ.
    unit : bool
        Whether the rows of H have length 1.
    scale : array (n_topics,), optional
        Factor that H was divided by, and W has to be multiplied by.
    dead : array of int, optional
        Topics whose W restarts from zero.
    sweeps : int
        Number of sweeps of coordinate descent.
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
    """Update the W of a block by a rule, or keep it if there is none, and return the sums of the block."""
    if step.scale is not None:
        block.W *= step.scale[: block.W.shape[1]]
    if step.dead is not None:
        block.W[:, step.dead] = 0
    if rule is not None:
        rule(block, step)
    return sums(block, step) if block.E is None else sums_weighted(block, step)


def hals_rows(block: Block, step: Step, tol: float = 0.0) -> None:
    """Coordinate descent on the W of a block; the document weights cancel."""
    HT, gram = step.HT, _with_ridge(step.gram, step.regularisation.l2_W)
    cross = np.empty((min(ROWS, len(block.W)), HT.shape[1]), dtype=HT.dtype)
    l1, tolerance = HT.dtype.type(step.regularisation.l1_W), HT.dtype.type(tol)
    for few in block.split():
        products, masks = (
            cross[: len(few.W)],
            (step.permitted, few.pattern, few.penalties.indptr, few.penalties.topics),
        )
        _kernels.cross_rows(few.indptr, few.indices, few.data, HT, *masks, products)
        _kernels.descend(few.W, products, gram, *masks, few.penalties.values, l1, step.sweeps, tolerance)


def mu_rows(block: Block, step: Step) -> None:
    """The paper's equation (10): W ← W ∘ (X Hᵀ ∘ L) / ((W∘L) H Hᵀ ∘ L); W is zero where L is.

    Under a full E it is the appendix's rule: W ← W ∘ ((X∘E) Hᵀ ∘ L) / ((((W∘L)H) ∘ E) Hᵀ ∘ L).
    """
    HT, regularisation = step.HT, step.regularisation
    for few in block.split(_block_size(block, HT)):
        W, penalty_of_W = few.W, few.penalties.dense(block.W.shape[1]) if len(few.penalties.values) else 0
        if few.E is None:
            above, below = np.empty_like(W), W @ step.gram
            masks = (step.permitted, few.pattern, few.penalties.indptr, few.penalties.topics)
            _kernels.cross_rows(few.indptr, few.indices, few.data, HT, *masks, above)
        else:
            X, E = _dense(few, HT)
            above, below = (X * E) @ HT, ((W @ HT.T) * E) @ HT
        W *= _ratio(above, below + regularisation.l1_W + penalty_of_W + regularisation.l2_W * W)


def hals_terms(terms: slice, HT: Array, total: Sums, step: Step) -> Array:
    """Coordinate descent on some rows of Hᵀ: the update of W on the transpose. Return their Gram matrix."""
    h = HT[terms]
    gram = _with_ridge(total.gram, ridge(total, step))
    everything = np.ones((1, len(gram)), dtype=np.bool_)
    l1, tolerance = h.dtype.type(step.regularisation.l1_H), h.dtype.type(0)
    pattern = np.zeros(len(h), dtype=np.int32)
    mask = Penalties.none(len(h), h.dtype) if step.term_constraints is None else step.term_constraints.rows(terms)
    stored = (mask.indptr, mask.topics, mask.values)
    _kernels.descend(h, total.cross[terms], gram, everything, pattern, *stored, l1, step.sweeps, tolerance)
    return h.T @ h


def mu_terms(terms: slice, HT: Array, total: Sums, step: Step) -> Array:
    """The paper's equation (9), on some rows of Hᵀ: H ← H ∘ (Wᵀ(X∘E)) / (Wᵀ((WH)∘E)).

    The appendix's rule for a full E has the same form. Return the Gram matrix of these rows.
    """
    h = HT[terms]
    below = h @ total.gram if total.below is None else total.below[terms]
    h *= _ratio(total.cross[terms], below + step.regularisation.l1_H + ridge(total, step) * h)
    return h.T @ h


def ridge(total: Sums, step: Step) -> float | Array:
    """Strength of the L2 penalty on H, for all topics or one number per topic.

    If the rows of H have length 1, it stands for the penalties on W (see `topicsteer.nmf.loop`).
    """
    if not step.unit:
        return step.regularisation.l2_H
    per_topic = total.penalty + step.regularisation.l2_W * np.diag(total.gram)[: len(total.penalty)]
    return np.pad(per_topic, (0, step.HT.shape[1] - len(per_topic))).astype(step.HT.dtype)


def squares(block: Block) -> float:
    """Σ e x² of a block."""
    return float(block.squared_norms() @ block.weight)


def sums(block: Block, step: Step) -> Sums:
    """Sufficient statistics of a block whose error weights are one number per document."""
    W = block.W
    d, width = W.shape[1], step.HT.shape[1]
    cross = np.zeros_like(step.HT)
    _kernels.cross_columns(block.indptr, block.indices, block.data, W, block.weight, cross)
    gram = np.zeros((width, width), dtype=W.dtype)
    gram[:d, :d] = W.T @ W
    heavy = block.weight != 1
    if block.weight.min(initial=1) < 1:  # the difference e - 1 would lose the digits of a small weight
        gram[:d, :d] = (W * block.weight[:, None]).T @ W
    elif heavy.any():  # few documents are, so: (e∘W)ᵀW = WᵀW + ((e - 1)∘W)ᵀW
        V = W[heavy]
        gram[:d, :d] += (V * (block.weight[heavy] - 1)[:, None]).T @ V
    return Sums(cross, gram, penalty_per_topic(block, block.weight, step.regularisation.l1_W))


def penalty_per_topic(block: Block, weight: Array, l1: float) -> NDArray[np.float64]:
    """Σ e (l1 + P) w of each topic."""
    out = np.zeros(block.W.shape[1])
    if l1:
        out += l1 * (weight @ block.W)
    _kernels.add_penalties(block.W, weight, block.penalties.indptr, block.penalties.topics, block.penalties.values, out)
    return out


def sums_weighted(block: Block, step: Step) -> Sums:
    """Sufficient statistics of a block under a full E; only penalties and the search for dead topics use ``gram``."""
    HT = step.HT
    cross, below, error = np.zeros_like(HT), np.zeros_like(HT), 0.0
    for few in block.split(_block_size(block, HT)):
        X, E = _dense(few, HT)
        W = few.W
        R = W @ HT.T
        cross += (X * E).T @ W
        below += (R * E).T @ W
        error += float((E * np.square(X - R)).sum(dtype=np.float64))
    penalty = penalty_per_topic(block, np.ones_like(block.weight), step.regularisation.l1_W)
    return Sums(cross, block.W.T @ block.W, penalty, below, error)


@dataclass(frozen=True)
class Rule:
    """A solver: its rule for the W of a block, and its rule for some rows of Hᵀ.

    Under a ``multiplicative`` rule a zero stays zero. W and H must therefore start above zero, and a topic that has
    lost all its weight cannot be revived. Only multiplicative rules accept a full E.
    """

    rows: Callable[..., None]
    terms: Callable[..., Array]
    multiplicative: bool = False


RULES = {"hals": Rule(hals_rows, hals_terms), "mu": Rule(mu_rows, mu_terms, multiplicative=True)}


# --- small arithmetic ---


def _with_ridge(gram: Array, l2: float | Array) -> Array:
    return gram if np.isscalar(l2) and l2 == 0 else gram + np.diag(np.full(len(gram), l2, dtype=gram.dtype))


def _ratio(above: Array, below: Array) -> Array:
    """Above / below; 0 where both are 0 or the ratio overflows, which happens only to weights next to 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > above * np.finfo(above.dtype).tiny)


def _block_size(block: Block, HT: Array) -> int:
    """Number of documents that a rule updates at once."""
    return ROWS if block.E is None else max(1, DENSE_ENTRIES // len(HT))


def _dense(block: Block, HT: Array) -> tuple[Array, Array]:
    """X and E of a block as dense arrays, with the document weights multiplied into E."""
    indptr, used = block.indptr, slice(block.indptr[0], block.indptr[-1])
    X = sp.csr_array((block.data[used], block.indices[used], indptr - indptr[0]), shape=(len(block.W), len(HT)))
    return X.toarray(), (block.E.toarray() if sp.issparse(block.E) else np.asarray(block.E)) * block.weight[:, None]


# Ways to start.
INITS = ("labels", "authors", "acol", "random")


# --- settings ---


def _whole(value: object, least: int) -> bool:
    return isinstance(value, Integral) and int(value) >= least


def _number(value: object, most: float = np.inf) -> bool:
    return isinstance(value, Real) and np.isfinite(float(value)) and 0 <= float(value) <= most


# Whether a value of a setting is good, and the values that are.
_SETTINGS: dict[str, tuple[Callable[[object], bool], str]] = {
    "n_components": (lambda value: value is None or _whole(value, 1), "None or an integer >= 1"),
    "init": (lambda value: not isinstance(value, str) or value in INITS, f"one of {INITS} or a pair (W, H)"),
    "solver": (lambda value: value in RULES, f"one of {tuple(RULES)}"),
    "label_weight": (
        lambda value: value == "balanced" if isinstance(value, str) else value is None or _number(value, 1e12),
        '"balanced", a number from 0 to 1e12 or None',
    ),
    "tol": (lambda value: value in ("auto", "authors") or _number(value), 'a number >= 0, "auto" or "authors"'),
    "max_iter": (lambda value: _whole(value, 0), "an integer >= 0"),
    "alpha_W": (_number, "a number >= 0"),
    "alpha_H": (_number, "a number >= 0"),
    "l1_ratio": (lambda value: _number(value, 1), "a number from 0 to 1"),
    "threads": (lambda value: value is None or _whole(value, 1), "None or an integer >= 1"),
}


def check_settings(given: Mapping[str, object]) -> None:
    """Raise an error for invalid settings of `topicsteer.TSNMF`."""
    for name, (good, expected) in _SETTINGS.items():
        if name in given and not good(given[name]):
            raise ValueError(f"{name} must be {expected}; got {given[name]!r}.")
