"""Free topics: groups of documents without a known topic, the tree in which they merge, and components.

A mixture of the known topics and many small groups explains the documents. It is naive Bayes with expectation and
maximisation: labelled documents keep their topics, and each other document prefers a group as far as it seems to have
no known topic. The mixture is fitted from several starts, and the groups that most of them find are kept (consensus
clustering). Neighbouring groups then merge one pair at a time. The order is a tree, which can be cut anywhere.

Documents with several topics each do not form groups, since each is a mixture. A rotation of the latent directions
separates the mixture: varimax looks for components that few documents have, and those strongly (Rohe & Zeng, 2023). As
many components as known and free topics are rotated. The most concentrated ones are free topics, except for doubles of
known topics. Known topics are not subtracted first: in such corpora topics overlap, and the remainder describes no
topic. A ridge regression on all features then smooths each component.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit

from topicsteer.guidance.latent import unit_rows
from topicsteer.nmf.blocks import slices, times
from topicsteer.system.threads import OrderedMap, workers
from topicsteer.system.types import Array

# Iterations of the rotation, and the number of documents that it is computed from.
ITERATIONS, ROTATION_DOCUMENTS = 20, 5_000
# A component is a known topic if their correlation is at least this.
KNOWN = 0.8
# Strength of the ridge.
RIDGE = 100.0
# Log odds of the average document with the component.
TYPICAL_ODDS = 6.0


@dataclass(frozen=True, eq=False)
class Components:
    """From the dense features of documents to the probability of each free topic.

    Parameters
    ----------
    weights : array (dimensions, n_components)
        Weights of the features.
    levels : array (n_components,)
        Score at which the probability is one half.
    slopes : array (n_components,)
        Log odds per score.
    """

    weights: Array
    levels: Array
    slopes: Array

    def select(self, columns: Sequence[int]) -> Components:
        """Some of the components."""
        chosen = np.array(columns, dtype=np.int64)
        return Components(self.weights[:, chosen], self.levels[chosen], self.slopes[chosen])

    def probabilities(self, D: Array) -> Array:
        """Probability of each component in documents with the features D."""
        return np.asarray(expit((D @ self.weights - self.levels) * self.slopes), dtype=np.float32)


def find_components(D: Array, positions: Array, known: Array, n_free: int) -> Components | None:
    """The free topics; None if the latent semantics have too few directions.

    Parameters
    ----------
    D : array (n_documents, dimensions)
        Features of documents.
    positions : array (n_documents, q)
        Their latent positions, leading directions first.
    known : array (n_documents, n_known)
        Probability of each known topic.
    n_free : int
        Number of free topics that are wanted.
    """
    Z = positions[:, : known.shape[1] + n_free].astype(np.float64)
    if Z.shape[1] < n_free or len(Z) <= Z.shape[1]:
        return None
    loadings = rotated(Z)
    # Number of documents that would make up the component if all of them had it equally.
    second, fourth = (loadings**2).sum(axis=0), (loadings**4).sum(axis=0)
    documents = second**2 / np.maximum(fourth, 1e-30)
    is_known = _correlation(loadings, known).max(axis=1, initial=0) >= KNOWN
    kept = np.sort(np.lexsort((documents, is_known))[:n_free])
    target = (loadings[:, kept] / np.maximum(loadings[:, kept].max(axis=0), 1e-30)) ** 2
    return _learn(D, target, documents[kept])


def _correlation(A: Array, B: Array) -> Array:
    """Correlation of each column of A with each column of B."""
    A, B = A - A.mean(axis=0), B.astype(np.float64) - B.mean(axis=0)
    lengths = np.linalg.norm(A, axis=0)[:, None] * np.linalg.norm(B, axis=0)
    return np.asarray(A.T @ B / np.maximum(lengths, 1e-30))


def learn_components(D: Array, probabilities: Array) -> Components:
    """The components with these probabilities in documents with the features D."""
    return _learn(D, probabilities.astype(np.float64), probabilities.sum(axis=0, dtype=np.float64))


def _learn(D: Array, target: Array, documents: Array) -> Components:
    """Ridge regression of each component; as many documents as it has get a probability above one half.

    A component without documents has a level that no document reaches.
    """
    gram = (D.T @ D).astype(np.float64) + RIDGE * np.eye(D.shape[1])
    weights = cho_solve(cho_factor(gram), D.T.astype(np.float64) @ target).astype(np.float32)
    ranked, each = -np.sort(-(D @ weights), axis=0), np.arange(target.shape[1])
    last = np.clip(np.rint(documents).astype(np.int64), 1, len(ranked) - 1)
    levels = ranked[last, each].astype(np.float64)
    levels[documents < 0.5] = 1
    typical = np.cumsum(ranked, axis=0, dtype=np.float64)[last - 1, each] / last
    return Components(weights, levels, TYPICAL_ODDS / np.maximum(typical - levels, 1e-6))


def rotated(Z: Array) -> Array:
    """Positive parts of the columns of Z after whitening and :func:`varimax`; the strong side is positive."""
    root = np.linalg.cholesky(Z.T @ Z + 1e-9 * max(float((Z**2).sum()), 1e-30) * np.eye(Z.shape[1]))
    U = solve_triangular(root, Z.T, lower=True).T.astype(np.float32)
    loadings = (U @ varimax(U[:: -(-len(U) // ROTATION_DOCUMENTS) or 1])).astype(np.float64)
    return np.asarray(np.maximum(loadings * np.where((loadings**3).sum(axis=0) < 0, -1, 1), 0))


def varimax(U: Array) -> Array:
    """The rotation after which each column of U is concentrated in few rows."""
    k = U.shape[1]
    rotation = np.eye(k, dtype=U.dtype)
    for _ in range(ITERATIONS):
        turned = U @ rotation
        left, _, right = np.linalg.svd(U.T @ (turned**3 - turned * (turned**2).mean(axis=0)))
        rotation = left @ right
    return np.asarray(rotation)


# Number of starts.
STARTS = 6
# Number of iterations of the k-means of a start, of the mixture after it, and in the end.
START_ITERATIONS, FIRST_ITERATIONS, ITERATIONS = 5, 5, 8
# Groups of different starts are the same if their mean distance (1 - cosine of memberships) is at most this.
SAME_GROUP = 0.6
# Every document counts as this many words, so that long ones do not decide everything.
LENGTH = 11.0
# Additive smoothing of term frequencies.
SMOOTHING = 0.01
# Range of the prior probability of no known topic.
PRIOR_RANGE = (0.02, 0.98)
# Latent dimensions of the start, and sharpness of its memberships.
DIMENSIONS, SHARPNESS = 100, 10.0
# A new group starts at the mean of this many neighbours.
NEIGHBOURS = 10
# Documents that the density of the corpus is measured with.
DENSITY_DOCUMENTS = 1_000
# The weight of a document is the inverse of the density to this power.
DENSITY_POWER = 0.75
# Weight of a document in a sparse region relative to a typical one, at most.
MAX_WEIGHT = 5.0
# The shown topics have at least this share of the importance of all groups.
COVERED = 0.8
# A group is part of a known topic if it is no farther from it than this share of the distance of a typical group.
OWNED = 0.1
# Documents per block of work.
ROWS = 4_096


@dataclass(frozen=True, eq=False)
class GroupTree:
    """Groups of documents and the order in which they merge.

    Parameters
    ----------
    merges : array of int (n_groups - 1, 2)
        Pairs of groups in the order of merging; the second becomes part of the first.
    costs : array (n_groups - 1,)
        How different the two were; comparable within a tree.
    sizes : array (n_groups,)
        Expected number of documents of each group.
    certainty : array (n_groups,)
        Mean probability of the group in its documents: near 1 if it is clear which documents belong to it.

    Examples
    --------
    >>> tree = GroupTree(np.array([[0, 2], [0, 1]]), np.array([0.1, 0.9]), np.array([5.0, 9, 4]), np.ones(3))
    >>> tree.cut(2)
    [(0, 2), (1,)]
    """

    merges: NDArray[np.int64]
    costs: Array
    sizes: Array
    certainty: Array

    @property
    def importance(self) -> Array:
        """Importance of each group: the root of its size, so that small topics count, times its squared certainty."""
        return np.asarray(np.sqrt(self.sizes) * self.certainty**2)

    def cut(self, n: int) -> list[tuple[int, ...]]:
        """At most n topics of merged groups, largest first.

        Groups merge until the n most important topics cover most of the importance, and then on until two of these
        topics would merge. Vague and tiny groups are left out rather than merged into a topic that they would blur.
        """
        topics, importance = {k: [k] for k in range(len(self.sizes))}, self.importance
        chosen: set[int] = set()
        for first, second in [*self.merges.tolist(), (-1, -1)]:
            if not chosen:
                weight = {k: float(importance[members].sum()) for k, members in topics.items()}
                best = sorted(topics, key=lambda k: (-weight[k], k))[:n]
                if first < 0 or sum(weight[k] for k in best) >= COVERED * importance.sum():
                    chosen = set(best)
            if first < 0 or {first, second} <= chosen:
                break
            topics[first] += topics.pop(second)
            if second in chosen:
                chosen = chosen - {second} | {first}
        return sorted((tuple(sorted(topics[k])) for k in chosen), key=lambda topic: (-self.size(topic), topic))

    def size(self, groups: Sequence[int]) -> float:
        """Expected number of documents of a topic."""
        return float(self.sizes[list(groups)].sum())


@dataclass(frozen=True, eq=False)
class MixtureInput:
    """Documents of the mixture.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
        Their terms.
    positions : array (n_documents, dimensions)
        Latent positions of unit length.
    topics : array (n_documents, n_known)
        Probability of each known topic, given that there is one; 1 divided by the number of labels where labelled.
    none : array (n_documents,)
        Probability of no known topic.
    fixed : array of bool (n_documents,)
        Documents whose topics are known from labels.
    threads : int, optional
    """

    X: sp.csr_array
    positions: Array
    topics: Array
    none: Array
    fixed: NDArray[np.bool_]
    threads: int | None = None


def find_groups(corpus: MixtureInput, n_groups: int) -> tuple[Array, GroupTree]:
    """Membership of each document in each group (n_documents, n_groups), and the tree of the groups.

    The starts are the same in every fit, so that groups come back as far as the documents allow.
    """
    with workers(corpus.threads) as run:
        mixture, known = Mixture.of(corpus, run), corpus.topics.shape[1]
        seeds = [np.random.default_rng(start) for start in range(STARTS)]
        runs = np.empty((corpus.X.shape[0], STARTS * n_groups), dtype=np.float32)
        for start, rng in enumerate(seeds):
            first = mixture.fit(_start(corpus, mixture.weight, n_groups, rng), FIRST_ITERATIONS)
            runs[:, start * n_groups : (start + 1) * n_groups] = first[:, known:]
        found = mixture.fit(recurring_groups(runs, n_groups, mixture.weight), ITERATIONS)
        del runs, first
        groups = np.where(mixture.owned_groups(found), 0, found[:, known:])
        mass = np.asarray((mixture.XT @ (groups * mixture.weight[:, None])).T, dtype=np.float64)
    return groups, merge_tree(mass, groups[~mixture.fixed].sum(axis=0, dtype=np.float64))


def continue_groups(corpus: MixtureInput, memberships: Array) -> Array:
    """The groups of an earlier mixture after a change of documents or labels."""
    with workers(corpus.threads) as run:
        found = Mixture.of(corpus, run).fit(memberships, ITERATIONS)
    return np.asarray(found[:, corpus.topics.shape[1] :])


def recurring_groups(found: Array, n_groups: int, weight: Array) -> Array:
    """Mean memberships (n_documents, n_groups) of the groups that come back in most runs, as many as each run has.

    ``found`` has the memberships of all runs side by side (n_documents, n_runs × n_groups).

    Groups of different runs with similar documents are one group. A single run also has accidental groups, and misses
    some others.
    """
    scaled = found * np.sqrt(weight)[:, None]
    sizes = scaled.sum(axis=0, dtype=np.float64)
    scaled /= np.maximum(np.linalg.norm(scaled, axis=0), 1e-9)
    if len(sizes) == 1:
        return found
    distance = np.clip(1 - scaled.T @ scaled, 0, 1)[np.triu_indices(len(sizes), 1)]
    cluster = fcluster(linkage(distance, "average"), SAME_GROUP, "distance")
    clusters = [np.flatnonzero(cluster == k) for k in np.unique(cluster)]
    clusters.sort(key=lambda members: (-len(set((members // n_groups).tolist())), -sizes[members].mean()))
    mean = np.stack([found[:, members].mean(axis=1) for members in clusters[:n_groups]], axis=1)
    return np.asarray(mean / np.maximum(mean.sum(axis=1, keepdims=True), 1))


def merge_tree(mass: Array, sizes: Array) -> GroupTree:
    """The tree of groups: each step merges the pair whose terms differ least, for the root of their size.

    Half of the usual exponent of size keeps small topics apart from large ones, and still merges stray documents.

    Parameters
    ----------
    mass : array (n_groups, n_terms)
        Sum of the terms of each group.
    sizes : array (n_groups,)
        Expected number of documents of each group.
    """
    mass, n, alive = mass.copy(), len(mass), np.ones(len(mass), dtype=np.bool_)
    cost = np.full((n, n), np.inf)
    for a in range(n):
        cost[a, a + 1 :] = _differences(mass, a, np.arange(a + 1, n))
    merges, costs = [], []
    for _ in range(n - 1):
        a, b = divmod(int(np.argmin(cost)), n)
        merges.append((a, b))
        costs.append(cost[a, b])
        mass[a] += mass[b]
        alive[b] = False
        cost[b], cost[:, b] = np.inf, np.inf
        others = np.flatnonzero(alive & (np.arange(n) != a))
        new = _differences(mass, a, others)
        cost[np.minimum(a, others), np.maximum(a, others)] = new
    pairs = np.array(merges, dtype=np.int64).reshape(-1, 2)
    return GroupTree(pairs, np.array(costs, dtype=np.float64), sizes, np.ones(n))


def _differences(mass: Array, a: int, others: NDArray[np.intp]) -> Array:
    """Jensen–Shannon divergence of group a from others, scaled by the root of the harmonic size."""
    if not others.size:
        return np.zeros(0)
    total_a, total = max(mass[a].sum(), 1e-30), np.maximum(mass[others].sum(axis=1), 1e-30)
    both = total_a + total
    joint = _entropy((mass[a] + mass[others]) / both[:, None])
    own_a, own = _entropy(mass[a] / total_a), _entropy(mass[others] / total[:, None])
    harmonic = total_a * total / both
    lost = both * joint - total_a * own_a - total * own
    return np.asarray(np.maximum(lost, 0) / np.sqrt(np.maximum(harmonic, 1e-30)))


def _entropy(p: Array) -> Array:
    return np.asarray(-(p * np.log(np.maximum(p, 1e-30))).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class Mixture:
    """The mixture: scaled documents and their transpose, log priors of known topics and of groups, fixed documents."""

    X: sp.csr_array
    XT: sp.csr_array
    weight: Array
    log_topics: Array
    log_none: Array
    topics: Array
    fixed: NDArray[np.bool_]
    run: OrderedMap

    @classmethod
    def of(cls, corpus: MixtureInput, run: OrderedMap) -> Mixture:
        """Prepare the mixture of a corpus."""
        total = np.asarray(corpus.X.sum(axis=1)).ravel()
        factor = (LENGTH / np.maximum(total, 1e-9)).astype(np.float32)
        data = corpus.X.data.astype(np.float32) * np.repeat(factor, np.diff(corpus.X.indptr))
        X = sp.csr_array((data, corpus.X.indices, corpus.X.indptr), shape=corpus.X.shape)
        X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)  # as the kernels want them
        none = np.clip(corpus.none, *PRIOR_RANGE)
        known = (1 - none)[:, None] * corpus.topics / np.maximum(corpus.topics.max(axis=1, keepdims=True), 1e-9)
        return cls(
            X,
            sp.csr_array(X.T),
            document_weights(corpus.positions),
            np.log(np.maximum(known, 1e-12)).astype(np.float32),
            np.log(none).astype(np.float32)[:, None],
            corpus.topics,
            corpus.fixed,
            run,
        )

    def fit(self, groups: Array, iterations: int) -> Array:
        """Memberships in known topics and groups, from the first memberships in groups."""
        known = np.exp(self.log_topics) * np.maximum(1 - groups.sum(axis=1, keepdims=True), 0)
        R = np.hstack([known, groups]).astype(np.float32)
        R /= np.maximum(R.sum(axis=1, keepdims=True), 1e-9)
        prior = np.hstack([self.log_topics, np.repeat(self.log_none, groups.shape[1], axis=1)])
        R[self.fixed] = self._known(groups.shape[1])
        for _ in range(iterations):
            weighted = R * self.weight[:, None]
            terms = np.asarray(self.XT @ weighted) + np.float32(SMOOTHING)
            terms /= terms.sum(axis=0)
            sizes = np.log(np.maximum(weighted.sum(axis=0) / self.weight.sum(), 1e-9)).astype(np.float32)
            S = self._times(np.log(terms)) + prior + sizes
            R = np.exp(S - S.max(axis=1, keepdims=True))
            R /= R.sum(axis=1, keepdims=True)
            R[self.fixed] = self._known(groups.shape[1])
        return R

    def owned_groups(self, R: Array) -> NDArray[np.bool_]:
        """Groups that are part of a known topic: half of its labelled documents resemble the group like the topic.

        Each labelled document is compared with its topic without itself, and with a typical group. Otherwise a topic
        with few labels would lose its unlabelled documents to a group.
        """
        rows, known = np.flatnonzero(self.fixed), self.topics.shape[1]
        topic = self.topics[rows].argmax(axis=1)
        mass = np.asarray(self.XT @ (R * self.weight[:, None]), dtype=np.float64)
        X = self.X[rows]
        of_entry = np.repeat(np.arange(len(rows)), np.diff(X.indptr))
        own = mass[X.indices, topic[of_entry]] - self.weight[rows][of_entry] * X.data
        total = mass.sum(axis=0)[topic] - self.weight[rows] * X.sum(axis=1) + SMOOTHING * len(mass)
        logs = np.log(np.maximum(own, 0) + SMOOTHING) - np.log(np.maximum(total, SMOOTHING))[of_entry]
        own_score = np.bincount(of_entry, weights=X.data * logs, minlength=len(rows))
        terms = mass[:, known:] + SMOOTHING
        scores = X @ np.log(terms / terms.sum(axis=0))
        own_score = own_score[:, None]
        alike = scores >= own_score - OWNED * np.maximum(own_score - np.median(scores, axis=1, keepdims=True), 0)
        votes = np.zeros((known, scores.shape[1]))
        np.add.at(votes, topic, alike)
        many = np.maximum(np.bincount(topic, minlength=known), 1)
        return np.asarray((votes >= 0.5 * many[:, None]).any(axis=0))

    def _known(self, n_groups: int) -> Array:
        return np.pad(self.topics[self.fixed], ((0, 0), (0, n_groups)))

    def _times(self, logs: Array) -> Array:
        """Sum of log frequencies over the words of each document, block by block."""
        X, logs = self.X, np.ascontiguousarray(logs, dtype=np.float32)

        def block(rows: slice) -> Array:
            return times(X.indptr[rows.start : rows.stop + 1], X.indices, X.data, logs)

        return np.concatenate(list(self.run(block, slices(X.shape[0], ROWS))))


def document_weights(positions: Array) -> Array:
    """Weight of each document: less where many documents are alike, so that large topics do not crowd out small ones.

    The weight is a power of the inverse density; the mean is about 1, and empty documents have none.
    """
    step = -(-len(positions) // DENSITY_DOCUMENTS)
    sample = positions[::step].T
    density = np.concatenate(
        [(np.maximum(positions[rows] @ sample, 0) ** 4).mean(axis=1) for rows in slices(len(positions), ROWS)]
        or [np.zeros(0)]
    )
    weight = np.where(density > 0, np.maximum(density, 1e-9) ** -DENSITY_POWER, 0)
    return np.minimum(weight / max(float(weight.mean()), 1e-30), MAX_WEIGHT).astype(np.float32)


def _start(corpus: MixtureInput, weight: Array, n_groups: int, rng: np.random.Generator) -> Array:
    """First memberships: k-means++ among documents without a known topic, then soft k-means."""
    Z = corpus.positions
    free = np.where(corpus.fixed, 0, corpus.none)
    near = np.zeros(len(Z), dtype=np.float32)
    centres = np.zeros((n_groups, Z.shape[1]), dtype=np.float32)
    for k in range(n_groups):
        chance = free * weight * (1 - near) ** 2
        if not chance.sum() > 0:
            chance = np.ones(len(Z))
        first = rng.choice(len(Z), p=chance / chance.sum())
        alike = np.argpartition(Z @ Z[first], -min(NEIGHBOURS, len(Z)))[-NEIGHBOURS:]
        centres[k] = unit_rows(Z[alike].mean(axis=0, keepdims=True))[0]
        near = np.maximum(near, np.clip(Z @ centres[k], 0, 1))
    for _ in range(START_ITERATIONS):
        A = np.exp(SHARPNESS * (Z @ centres.T))
        A *= (free / A.sum(axis=1))[:, None]
        centres = unit_rows((A * weight[:, None]).T @ Z)
    return np.asarray(A, dtype=np.float32)
