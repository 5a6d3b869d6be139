"""Split a known topic of a fitted model: free topics inside it; all other topics stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.guidance.apply import own_columns
from topicsteer.guidance.children import MEMBER, Branch, find_children
from topicsteer.guidance.components import Components
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.penalties import MIN_RELATIVE_PROBABILITY, STRENGTH
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.supervision import FORBIDDEN
from topicsteer.model.inside import ROWS, named_children, with_children
from topicsteer.model.learning import GUIDE_SEED
from topicsteer.model.predictor import HISTORY, estimator_of
from topicsteer.model.reservoir import summarise_rows
from topicsteer.model.settings import Settings
from topicsteer.model.state import FittedState
from topicsteer.nmf.blocks import slices
from topicsteer.nmf.protocols import Rows
from topicsteer.nmf.refine import refine
from topicsteer.nmf.statistics import History, insert
from topicsteer.system.threads import workers
from topicsteer.system.types import Array


def split(
    state: FittedState,
    settings: Settings,
    X: Rows,
    guide: Guide,
    topic: int,
    wanted: int | str,
    embeddings: Array | None,
) -> FittedState:
    """The state with free topics inside a known topic; all other topics stay as they are.

    Parameters
    ----------
    state : FittedState
    settings : Settings
    X : Rows
        The training documents.
    guide : Guide
        The guide of the state.
    topic : int
        Number of the topic.
    wanted : int or "auto"
        Number of free topics, at most.
    embeddings : array, optional
        Embeddings of the documents, if the guide was learnt with them.
    """
    known, found = len(state.codebook), np.flatnonzero([one.found for one in state.codebook])
    branch = Branch.of(np.asarray(state.memberships[:, :known]), state.supervision, topic, found)
    components = find_children(
        X, branch, guide, wanted, embeddings=embeddings, seed=GUIDE_SEED, threads=settings.threads
    )
    if components is None:
        raise ValueError(f"the topic {state.names[topic]!r} has too few documents for {wanted} topics inside it.")
    more = components.weights.shape[1]
    book = with_children(state.codebook, topic, [f"{state.names[topic]} free {known + k}" for k in range(more)])
    part = _parts(X, guide, components, branch.membership, embeddings, settings.threads)
    wide = _widened(state, book, guide, topic, components, branch.membership[:, None] * part)
    fresh = range(known, known + more)
    return named_children(_factorised(wide, X, topic, fresh), fresh, settings.path_separator)


def _parts(
    X: Rows, guide: Guide, components: Components, membership: Array, embeddings: Array | None, threads: int | None
) -> Array:
    """Probability of each free topic in the documents of a topic; 0 in other documents."""
    out = np.zeros((X.shape[0], components.weights.shape[1]), dtype=np.float32)
    inside = np.flatnonzero((membership > 0) & ((X.sizes > 0) | (embeddings is not None)))
    with workers(threads):
        for part in slices(len(inside), ROWS):
            rows = inside[part]
            E = None if embeddings is None else embeddings[rows]
            out[rows] = components.probabilities(guide.features(X.take(rows), threads, embeddings=E))
    return out


def _widened(
    state: FittedState, book: Codebook, guide: Guide, topic: int, components: Components, found: Array
) -> FittedState:
    """The state with empty columns for free topics after the known ones, and with a guide that knows them."""
    known, more, first = len(state.codebook), len(book) - len(state.codebook), guide.n_known
    groups = [tuple(k + more if k >= first else k for k in group) for group in state.groups]
    learnt = guide.with_found([state.groups[topic][0]] * more, components)
    supervision = state.supervision.among(book.names, bool(state.parameters["complete"]), book.forest)
    memberships = insert(np.asarray(state.memberships), known, more, 1)
    forbidden = supervision.patterns[:, known:][supervision.pattern] == FORBIDDEN
    memberships[:, known : known + more] = np.where(forbidden, 0, found)
    history = None
    if state.history is not None:
        wide = History(**state.history).widen(known, more, 0)
        history = {name: getattr(wide, name) for name in HISTORY}
    return replace(
        state,
        codebook=book,
        groups=(*groups, *((first + k,) for k in range(more))),
        components=insert(state.components, known, more, 0),
        document_topics=insert(np.asarray(state.document_topics), known, more, 1),
        profiles=np.pad(state.profiles, ((0, more), (0, 0))),
        patterns=supervision.patterns,
        memberships=memberships,
        thresholds=np.append(state.thresholds, np.repeat(state.thresholds[topic], more)),
        history=history,
        guide=learnt.arrays(),
        outside=learnt.outside_arrays(),
        levels=None if learnt.levels is None else learnt.levels.arrays(),
        estimator=dict(state.estimator) | {"n_components": len(state.names) + more},
    )


def _factorised(state: FittedState, X: Rows, topic: int, fresh: Sequence[int]) -> FittedState:
    """The state with the weight of a topic divided among its rest and the new topics inside it."""
    some = np.array([topic, *fresh])
    W, H = np.array(state.document_topics), state.components.copy()
    inside = np.asarray(state.memberships[:, list(fresh)] >= MEMBER).any(axis=1)
    rows = np.flatnonzero((W[:, topic] > 0) | (inside & (X.sizes > 0)))
    own = own_columns(np.asarray(state.memberships[rows, : len(state.codebook)]), state.codebook.forest)[:, some]
    p = own / np.maximum(own.max(axis=1, keepdims=True), 1e-30)
    open_world = state.outside is not None
    permitted = state.supervision.permitted(len(H), free_in_labelled=True)[state.pattern[rows]][:, some]
    allowed = permitted & (p >= MIN_RELATIVE_PROBABILITY[open_world])
    shares = np.where(allowed, np.maximum(p, 1e-30), 0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-30)
    others = [k for k in range(len(H)) if k not in some and W[rows, k].any()]
    fitted, found, _ = refine(
        X.take(rows),
        W[rows, topic][:, None] * shares,
        _starts(X, rows, shares, H[topic]),
        (W[rows][:, others], H[others]),
        state.weights[rows],
        np.where(allowed, -STRENGTH[open_world] * np.log(np.maximum(p, 1e-30)), 0),
        allowed,
    )
    length = float(np.linalg.norm(H[topic])) or 1.0  # the rest of a topic may be empty
    lengths = np.linalg.norm(found, axis=1)
    H[some] = found * (length / np.maximum(lengths, 1e-30))[:, None]
    W[np.ix_(rows, some)] = fitted * (lengths / length)
    return replace(state, document_topics=W, components=H, history=_history(state, X, W, some))


def _starts(X: Rows, rows: NDArray[np.intp], shares: Array, before: Array) -> Array:
    """Mean terms of the documents of each new topic, by their shares; the rest starts with the terms of the topic."""
    chosen = sp.csr_array((np.ones(len(rows)), (np.arange(len(rows)), rows)), shape=(len(rows), X.shape[0]))
    means = np.asarray(X.combine(sp.csr_array(sp.csr_array(shares.T) @ chosen)), dtype=np.float64)
    length = float(np.linalg.norm(before)) or 1.0
    means *= length / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-30)
    if before.any():
        means[0] = before
    return means


def _history(state: FittedState, X: Rows, W: Array, some: NDArray[np.int64]) -> dict[str, Array] | None:
    """Statistics of the documents that are not retained, with new columns for some topics."""
    if state.history is None or state.reservoir is None or not state.history["totals"].any():
        return None if state.history is None else dict(state.history)
    gone = np.setdiff1d(np.arange(X.shape[0]), state.reservoir["rows"])
    estimator = estimator_of(state)
    total = History.empty(X.shape[1], len(state.components), state.components.dtype)
    for part in slices(len(gone), ROWS):
        rows = gone[part]
        total += summarise_rows(estimator, X.take(rows), W[rows], state.weights[rows], None)
    now = {name: np.array(array) for name, array in state.history.items()}
    now["cross"][:, some] = total.cross[:, some]
    now["gram"][some] = total.gram[some]
    now["gram"][:, some] = total.gram[:, some]
    return now
