"""The open world: documents that have none of the known topics, and the groups that they form.

Labels alone cannot show such documents, because most labelled documents have a known topic. The unlabelled ones can:

1. **Is the world open?** A ridge regression learns each topic from its labels, with all unlabelled documents as weak
   examples without a topic. A document has much evidence if it scores like documents whose labels were hidden (Elkan &
   Noto, 2008). If unlabelled documents have less evidence than hidden ones, some of them have no known topic
   (:func:`share_outside`).
2. **Groups** (:func:`find_groups`): spherical k-means in the features, with the known topics as fixed clusters, then
   rounds of naive Bayes and centroids. There are about twice as many groups per document as known topics.
3. **Classes**: the surest documents of each group are its labels, and known topics and groups are learnt together.
   P(none) is the probability of all groups.

Groups are merged into the free topics that are shown. Neither the number of groups nor P(none) depends on the number of
free topics, as long as there are enough groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logit

from topicsteer.guidance import constants
from topicsteer.guidance.classes import Learnt, Task, log_ratios, rows_times
from topicsteer.guidance.features import unit_rows
from topicsteer.guidance.guide import LEAST, free_shares
from topicsteer.guidance.regression import Mix, Rivalry, learn_mix, log_sum
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, assign_folds
from topicsteer.nmf.latent import cross_gram
from topicsteer.system.threads import OrderedMap
from topicsteer.system.types import Array

# Groups are looked for in at most this many documents; the others follow.
GROUP_DOCUMENTS = 5_000
# --- is the world open? ---

# Hidden documents of a topic are averaged with this many documents of a typical topic.
TYPICAL_DOCUMENTS = 5
# Shares of hidden documents with less evidence, at which hidden and unlabelled documents are compared.
TAILS = np.array([0.2, 0.35, 0.5, 0.65, 0.8])


@dataclass(frozen=True)
class ShareOutside:
    """Estimated share of the unlabelled documents that have no known topic: a lower bound on average.

    ``errors`` is its distance from 0 in standard errors. ``few``: topics have few labels, which do not show their size,
    so the share is not known.
    """

    share: float = 0.0
    errors: float = 0.0
    few: bool = True

    def is_open(self, asked: bool) -> bool:
        """Whether there are such documents: the share is large, and beyond chance unless the user asks for topics."""
        return self.share >= constants.OPEN_SHARE and (asked or (self.errors >= 2 and not self.few))


def share_outside(
    D: Array, rows: NDArray[np.intp], given: NDArray[np.bool_], probabilities: Array, run: OrderedMap = map
) -> ShareOutside:
    """Estimate the share of unlabelled documents without a known topic, among documents with features.

    Parameters
    ----------
    D : array (n_documents, dimensions)
        Features of the documents.
    rows : array of int (n_labelled,)
        The labelled documents.
    given : array of bool (n_labelled, n_known)
        Their topics.
    probabilities : array (n_documents, n_known)
        Probability of each known topic under the assumption that every document has one.
    run : OrderedMap
        An ordered parallel map.
    """
    unlabelled = np.asarray(D.any(axis=1))  # documents without terms are no evidence of an open world
    unlabelled[rows] = False
    fold_of = assign_folds(sp.csr_array(given), constants.FOLDS, seed=0)
    if not unlabelled.any() or not (fold_of >= 0).any():
        return ShareOutside()
    target = given / np.maximum(given.sum(axis=1, keepdims=True), 1)
    gram = cross_gram(D, D, run) + constants.OPEN_RIDGE * np.eye(D.shape[1])
    weight = documents_per_label(given, probabilities[unlabelled])

    def one(fold: int) -> Array:
        """Shares at the tails, with the labels of a fold hidden."""
        hidden, visible = fold_of == fold, fold_of != fold
        own, weight_of_label = D[rows[visible]].astype(np.float64), constants.LABELLED_WEIGHT
        A = gram + (weight_of_label - 1) * (own.T @ own)
        solved = cho_solve(cho_factor(A), weight_of_label * (own.T @ target[visible]))
        scores = D @ solved.astype(np.float32)
        found = _evidence(scores, _usual(scores[rows[hidden]], given[hidden]))
        levels, reached = _tails(found[rows[hidden]], weight[hidden])
        above = (found[unlabelled, None] >= levels).mean(axis=0)
        return np.asarray(np.maximum(1 - above / np.maximum(reached, 1e-9), 0))

    found = np.mean(list(run(one, [fold for fold in range(constants.FOLDS) if (fold_of == fold).any()])), axis=0)
    mean = float(found.mean())
    root = float(weight.sum() / max(np.linalg.norm(weight), 1e-30))  # of the effective number of labels
    counts = given.sum(axis=0)
    few = bool(np.median(counts[counts > 0]) < constants.FEW_LABELS) if counts.any() else True
    return ShareOutside(mean, mean * root, few)


def _evidence(scores: Array, normal: Array) -> Array:
    """Evidence of any known topic: the root of the length of the scores relative to normal ones."""
    return np.asarray(np.sqrt(np.linalg.norm(np.maximum(scores / normal, 0), axis=1)))


def _usual(scores: Array, given: NDArray[np.bool_]) -> Array:
    """Mean score of each topic in its hidden documents, shrunk towards the mean of all topics."""
    total, count = (scores * given).sum(axis=0), given.sum(axis=0)
    typical = max(float(total.sum() / max(count.sum(), 1)), 1e-6)
    return np.asarray(np.maximum((total + TYPICAL_DOCUMENTS * typical) / (count + TYPICAL_DOCUMENTS), 1e-6))


def documents_per_label(given: NDArray[np.bool_], probabilities: Array) -> Array:
    """Number of documents that a labelled document stands for.

    People label three documents per topic rather than a random sample. The chance of a label is then the sum over the
    topics of a document of labels per document.
    """
    chance = given @ (given.sum(axis=0) / np.maximum(probabilities.sum(axis=0), 1))
    return np.asarray(np.where(given.any(axis=1), 1 / np.maximum(chance, 1e-9), 0))


def _tails(evidence: Array, weight: Array) -> tuple[Array, Array]:
    """Evidence at the `TAILS` of hidden documents, and their share with at least this much evidence."""
    order = np.argsort(evidence, kind="stable")
    total = np.cumsum(weight[order])
    first = np.minimum(np.searchsorted(total, TAILS * total[-1]), len(order) - 1)
    levels = evidence[order][first]
    return levels, np.array([weight[evidence >= level].sum() for level in levels]) / max(total[-1], 1e-9)


# --- groups ---


@dataclass(frozen=True, eq=False)
class GroupInput:
    """Documents among which groups are looked for.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
    D : array (n_documents, dimensions)
        Their features, rows of length 1.
    rows : array of int (n_fixed,)
        Documents with known topics.
    target : array (n_fixed, n_known)
        Their topics; rows sum to 1.
    run : OrderedMap
        An ordered parallel map.
    """

    X: sp.csr_array
    D: Array
    rows: NDArray[np.intp]
    target: Array
    run: OrderedMap = map

    def clamp(self, R: Array) -> Array:
        """Memberships in which documents with known topics have these."""
        R[self.rows] = 0
        R[self.rows, : self.target.shape[1]] = self.target
        return R


def group_positions(latent: Array, meaning: Array) -> Array:
    """Features in which groups are looked for."""
    if not meaning.shape[1]:
        return latent
    return np.hstack(
        [np.sqrt(np.float32(1 - constants.GROUP_SHARE)) * latent, np.sqrt(np.float32(constants.GROUP_SHARE)) * meaning]
    )


def find_groups(given: GroupInput, n_groups: int, before: Array | None = None) -> Array:
    """Memberships (n_documents, n_known + n_groups) in known topics and groups.

    The starts are the same in every fit. ``before``: memberships in the groups of an earlier guide, to continue with.
    """
    if before is not None:
        return _rounds(given, np.hstack([np.zeros((len(before), given.target.shape[1]), np.float32), before]))
    some = given
    if len(given.D) > GROUP_DOCUMENTS:
        drawn = np.random.default_rng(0).choice(len(given.D), GROUP_DOCUMENTS, replace=False)
        kept = np.union1d(drawn, given.rows)
        some = replace(given, X=given.X[kept], D=given.D[kept], rows=np.searchsorted(kept, given.rows))

    def one(start: int) -> tuple[float, Array]:
        M = _seeds(some, n_groups, np.random.default_rng(start))
        for _ in range(constants.GROUP_STEPS):
            S = some.D @ M.T
            R = some.clamp(_softmax(constants.KAPPA * S))
            M = unit_rows(R.T @ some.D)
        return float((R * S).sum()), M

    _, M = max(given.run(one, range(constants.STARTS)), key=lambda pair: pair[0])
    return _rounds(given, _softmax(constants.KAPPA * (given.D @ M.T)))


def _rounds(given: GroupInput, R: Array) -> Array:
    """Rounds of naive Bayes and centroids."""
    XT, totals = sp.csr_array(given.X.T), np.asarray(given.X.sum(axis=0), dtype=np.float32).reshape(-1, 1)
    R = given.clamp(R.astype(np.float32))
    for _ in range(constants.GROUP_ROUNDS):
        ratios = log_ratios(np.asarray(XT @ R) + np.float32(constants.SMOOTHING), totals)
        M = unit_rows(R.T @ given.D)
        terms = np.float32(constants.NAIVE_BAYES) * rows_times(given.X, len(R), ratios)
        R = given.clamp(_softmax(terms + np.float32(2 * constants.COSINE) * (given.D @ M.T)))
    return R


def _seeds(given: GroupInput, n_groups: int, rng: np.random.Generator) -> Array:
    """Centroids of the known topics, and greedy k-means++ away from them among documents without a known topic."""
    known = unit_rows(given.target.T.astype(np.float32) @ given.D[given.rows])
    D, M = given.D, list(known)
    near = (D @ known.T).max(axis=1, initial=0)
    free = np.ones(len(D), dtype=np.bool_)
    free[given.rows] = False
    for _ in range(n_groups):
        chance = np.where(free, np.maximum(1 - near, 0).astype(np.float64) ** 2, 0)
        if not chance.sum() > 0:
            chance = np.ones(len(D))
        candidates = rng.choice(len(D), min(8, int((chance > 0).sum())), replace=False, p=chance / chance.sum())
        S = D @ D[candidates].T
        best = np.maximum(S - near[:, None], 0)[free].sum(axis=0).argmax()
        M.append(D[candidates[best]])
        near = np.maximum(near, S[:, best])
    return np.array(M)


def _softmax(S: Array) -> Array:
    return np.asarray(np.exp(S - log_sum(S)), dtype=np.float32)


def merge_order(sums: Array) -> NDArray[np.intp]:
    """Pairs of groups (n_groups - 1, 2) in the order in which they merge; the second one joins the first.

    ``sums`` (n_groups, dimensions) add up the positions of documents. As in spherical k-means, the total length of the
    sums is to stay large, so each merge costs the least of it.
    """
    sums, alive, pairs = sums.astype(np.float64), np.arange(len(sums)), []
    while len(alive) > 1:
        products = sums[alive] @ sums[alive].T
        lengths = np.sqrt(np.diag(products))[:, None]
        cost = lengths + lengths.T - np.sqrt(np.maximum(lengths**2 + lengths.T**2 + 2 * products, 0))
        np.fill_diagonal(cost, np.inf)
        i, j = sorted(divmod(int(cost.argmin()), len(alive)))
        sums[alive[i]] += sums[alive[j]]
        pairs.append((alive[i], alive[j]))
        alive = np.delete(alive, j)
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def number_of_groups(n_known: int, share: float, wanted: int, n_documents: int) -> int:
    """Number of groups: `GROUPS` per known topic if free topics are as large as known ones, or as many as wanted.

    Small corpora have fewer.
    """
    share = min(share, 0.75)
    found = min(constants.GROUPS * n_known * share / (1 - share), n_documents * share / constants.DOCUMENTS_PER_GROUP)
    return min(max(round(found), wanted or 3), n_documents // (2 * constants.LEAST_CORE))


def with_groups(task: Task, R: Array) -> Task:
    """The task with groups as further classes; their surest documents are their labels.

    Documents that are labelled as having none of the topics are labels of their likeliest group.
    """
    covered = task.n_known
    n_groups = R.shape[1] - covered
    free = np.ones(len(R), dtype=np.bool_)
    free[task.rows] = False
    counts = task.given[:, :covered].sum(axis=0)
    typical = np.median(counts[counts > 0]) if counts.any() else 0
    most = int(max(constants.LEAST_CORE, constants.CORE * typical))
    rows, classes = [], []
    sure = R[:, covered:] > 0.5
    if not sure[free].any():  # groups of documents in one place
        outside = R[:, covered:].sum(axis=1) > 0.5
        sure = (np.arange(n_groups) == R[:, covered:].argmax(axis=1)[:, None]) & outside[:, None]
    for k in range(covered, covered + n_groups):
        surest = np.argsort(-np.where(free, R[:, k], -1), kind="stable")[:most]
        surest = surest[sure[surest, k - covered] & free[surest]]
        rows.append(surest)
        classes.append(np.full(len(surest), k))
    own = np.concatenate(rows).astype(np.intp)
    states = np.full((len(task.rows), covered + n_groups), FORBIDDEN, dtype=np.int8)
    states[:, :covered] = task.states[:, :covered]
    outside = np.flatnonzero((task.states[:, :covered] == FORBIDDEN).all(axis=1))
    if len(outside):
        states[outside, covered + R[task.rows[outside], covered:].argmax(axis=1)] = PERMITTED
    undecided = np.setdiff1d(np.flatnonzero(~task.given[:, :covered].any(axis=1)), outside)
    states[undecided, covered:] = -1  # a label that only forbids leaves groups open
    core = np.full((len(own), covered + n_groups), FORBIDDEN, dtype=np.int8)
    core[np.arange(len(own)), np.concatenate(classes).astype(np.int64)] = PERMITTED
    return replace(
        task,
        rows=np.concatenate([task.rows, own]),
        states=np.vstack([states, core]),
        hideable=np.append(task.hideable, np.zeros(len(own), dtype=np.bool_)),
        rivalry=task.rivalry.with_more(n_groups - (task.n_classes - covered), task.n_classes),
    )


# Slope and intercept that leave P(none) as it is.
UNCHANGED = np.array([1.0, 0.0])


def calibrate_none(learnt: Learnt, task: Task, tops: NDArray[np.bool_], drawn: NDArray[np.bool_]) -> Array:
    """Slope and intercept of the log odds of P(none), from hidden labels; 1 and 0 without labelled outsiders.

    Labels that were ``drawn`` at random decide alone: others would move P(none) to their own mix.
    """
    covered = task.n_known
    rows = np.flatnonzero(np.isfinite(learnt.hidden).all(axis=1))
    rows = rows[drawn[rows]]
    outside = (task.states[rows][:, :covered] == FORBIDDEN).all(axis=1)
    inside = task.given[rows][:, :covered].any(axis=1)
    if min(outside.sum(), inside.sum()) < constants.FEW_LABELS:
        return UNCHANGED
    rows, y = rows[outside | inside], outside[outside | inside].astype(np.float64)[:, None]
    P = 1 / (1 + np.exp(-learnt.hidden[rows].astype(np.float64)))
    _, share = free_shares(P, covered, tops, np.array([1.0, 0.0]))
    x = logit(np.clip(share, LEAST, 1 - LEAST))[:, None]
    found = learn_mix([x], y, np.ones_like(y), Rivalry(((np.zeros(1, np.int64),) * 2,)), Mix(np.ones(1), 0.0, 0.0))
    return np.array([found.weights[0], found.intercept])
