"""Other methods, one function each: from documents and labels to a score for each document and topic.

The arguments are the input of the method (tf-idf, counts, latent semantics, a graph or embeddings), the supervision and
a seed. The result is an array (n_documents, n_topics). Only the order of the scores matters, within a topic and over
all pairs. Topics without labels get the lowest score.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from experiments.shared.internals import PERMITTED, Supervision, baselines, supervise
from topicsteer import TSNMF

# Settings of LDA, the defaults of scikit-learn.
LDA = {"learning_method": "batch", "max_iter": 10}
# The multiplicative rules with labelled documents weighted, from the start in the text of the paper or a uniform one.
TS_NMF = {
    "TS-NMF": {"solver": "mu", "init": "acol", "max_iter": 30, "tol": 0.0, "label_weight": "balanced"},
    "TS-NMF uniform start": {"solver": "mu", "init": "random", "max_iter": 30, "tol": 0.0, "label_weight": "balanced"},
}
# The same rules without labels.
NMF = {"NMF": {"solver": "mu", "init": "acol", "max_iter": 30, "tol": 0.0}}
# Keeps denominators above zero.
TINY = 1e-12


def given(supervision: Supervision) -> tuple[np.ndarray, np.ndarray]:
    """Labelled rows, and their labels (n_labelled, n_topics) as 0 and 1."""
    rows = np.flatnonzero(supervision.labelled)
    return rows, (supervision.patterns[supervision.pattern[rows]] == PERMITTED).astype(np.float64)


def lowest_elsewhere(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Give topics without labels the lowest score."""
    scores[:, ~Y.any(axis=0)] = scores.min() - 1
    return scores


# --- inputs that need no labels ---


def latent_semantics(X: sp.csr_array, seed: int, dimensions: int = 200) -> np.ndarray:
    """Truncated singular value decomposition with rows of unit length."""
    dimensions = min(dimensions, min(X.shape) - 1)
    U, S, _ = randomized_svd(X, dimensions, n_iter=4, random_state=seed)
    return normalize(U * S)


def neighbour_graph(Z: np.ndarray, neighbours: int = 15) -> sp.csr_array:
    """Symmetric matrix of cosines of each document and its nearest neighbours."""
    near = NearestNeighbors(n_neighbors=neighbours + 1, metric="cosine", algorithm="brute", n_jobs=1).fit(Z)
    graph = sp.csr_array(near.kneighbors_graph(Z, mode="distance"))
    graph.data = np.maximum(1 - graph.data, 0)
    graph.setdiag(0)
    graph.eliminate_zeros()
    return sp.csr_array(graph.maximum(graph.T))


def nmf_weights(X: sp.csr_array, n_topics: int, seed: int) -> np.ndarray:
    """Contribution of each component to each document, with the rules and the start of the paper."""
    model = TSNMF(**NMF["NMF"], n_components=n_topics, threads=1, random_state=seed).fit(X)
    return np.asarray(model.document_topics_ * model.components_.sum(axis=1))


def lda_weights(counts: sp.csr_array, n_topics: int, seed: int) -> np.ndarray:
    """Shares of the components in each document."""
    return np.asarray(LatentDirichletAllocation(n_topics, random_state=seed, **LDA).fit_transform(counts))


# --- topics without supervision, named by the labelled documents ---


def matched(W: np.ndarray, supervision: Supervision, seed: int) -> np.ndarray:
    """Match components and topics one to one by their cosine over the labelled documents."""
    rows, Y = given(supervision)
    similarity = normalize(Y.T) @ normalize(W[rows].T).T
    topics, components = linear_sum_assignment(-similarity)
    scores = np.zeros((W.shape[0], Y.shape[1]))
    scores[:, topics] = W[:, components]
    return lowest_elsewhere(scores, Y)


# --- factorisations ---


def ts_nmf(X: sp.csr_array, supervision: Supervision, seed: int, start: str = "TS-NMF") -> np.ndarray:
    """The method as published: multiplicative rules, labelled documents weighted, Random Acol, 30 iterations."""
    model = TSNMF(**TS_NMF[start], threads=1, random_state=seed).fit(X, supervision)
    return np.asarray(model.document_topics_ * model.components_.sum(axis=1))


def ssnmf(X: sp.csr_array, supervision: Supervision, seed: int, label_weight: float = 10.0) -> np.ndarray:
    """Semi-supervised NMF (Lee, Yoo & Choi 2010): one W explains the terms and the known labels."""
    rows, Y = given(supervision)
    rng = np.random.default_rng(seed)
    d = Y.shape[1]
    W, H, B = rng.random((X.shape[0], d)), rng.random((d, X.shape[1])), rng.random((d, d))
    for _ in range(100):
        W, H, B = ssnmf_step(X, rows, Y, W, H, B, label_weight)
    return lowest_elsewhere(W @ B, Y)


def ssnmf_step(X: Any, rows: Any, Y: Any, W: Any, H: Any, B: Any, label_weight: float) -> tuple[Any, Any, Any]:
    """Multiplicative rules of ‖X - WH‖² + λ‖Y - W_A B‖²: H, B, then W."""
    H = H * ((X.T @ W).T / (W.T @ W @ H + TINY))
    B = B * (W[rows].T @ Y / (W[rows].T @ W[rows] @ B + TINY))
    upper, lower = X @ H.T, W @ (H @ H.T)
    upper[rows] += label_weight * Y @ B.T
    lower[rows] += label_weight * W[rows] @ B @ B.T
    return W * upper / (lower + TINY), H, B


def cnmf(X: sp.csr_array, supervision: Supervision, seed: int) -> np.ndarray:
    """Constrained NMF (Liu & Wu 2012): X ≈ A Z H, where A gives documents of one topic the same row of Z.

    A document with several topics gets the sum of their rows. The score is the cosine of its row and the topic's row.
    """
    rows, Y = given(supervision)
    A = constraint(X.shape[0], rows, Y)
    rng = np.random.default_rng(seed)
    d = Y.shape[1]
    Z, H = rng.random((A.shape[1], d)), rng.random((d, X.shape[1]))
    for _ in range(100):
        Z, H = cnmf_step(X, A, Z, H)
    topics = Z[: np.count_nonzero(Y.any(axis=0))]
    scores = np.zeros((X.shape[0], d))
    scores[:, Y.any(axis=0)] = normalize(A @ Z) @ normalize(topics).T
    return lowest_elsewhere(scores, Y)


def constraint(n: int, rows: np.ndarray, Y: np.ndarray) -> sp.csr_array:
    """The matrix A: one column per topic with labels, and one per unlabelled document."""
    C = sp.csr_array(Y[:, Y.any(axis=0)])
    others = np.setdiff1d(np.arange(n), rows)
    stacked = sp.block_array([[C, None], [None, sp.eye_array(len(others))]], format="csr")
    return stacked[np.argsort(np.concatenate([rows, others]))]


def cnmf_step(X: Any, A: Any, Z: Any, H: Any) -> tuple[Any, Any]:
    """Multiplicative rules of ‖X - A Z H‖²: H, then Z."""
    W = A @ Z
    H = H * ((X.T @ W).T / (W.T @ W @ H + TINY))
    return Z * (A.T @ (X @ H.T)) / ((A.T @ A) @ Z @ (H @ H.T) + TINY), H


# --- classifiers ---


def logistic_regression(X: Any, supervision: Supervision, seed: int) -> np.ndarray:
    """One balanced logistic regression per topic, C = 10."""
    return baselines.logistic_regression(X, supervision)


def nearest_centroid(X: Any, supervision: Supervision, seed: int) -> np.ndarray:
    """Cosine of each document and the mean of the documents labelled with each topic."""
    centroids = normalize((supervision.indicator().T @ X).tocsr())
    return np.asarray((normalize(X) @ centroids.T).toarray())


def self_trained(X: Any, supervision: Supervision, seed: int, rounds: int = 3) -> np.ndarray:
    """Logistic regression that adds its most certain answers as pseudo-labels.

    In round r each topic adds 2ʳ - 1 times as many as it has labels. They are its most probable documents among the
    documents where it is first. Their labels are this topic and all topics above one half.
    """
    rows, Y = given(supervision)
    n, d = X.shape[0], Y.shape[1]
    probable = baselines.logistic_regression(X, supervision)
    unlabelled = np.setdiff1d(np.arange(n), rows)
    for r in range(1, rounds + 1):
        first = probable[unlabelled].argmax(axis=1)
        states = np.full((n, d), np.nan)
        states[rows] = Y
        for k in np.flatnonzero(Y.any(axis=0)):
            own = unlabelled[first == k]
            surest = own[np.argsort(-probable[own, k], kind="stable")[: int(Y[:, k].sum()) * (2**r - 1)]]
            states[surest] = probable[surest] > 0.5
            states[surest, k] = 1
        probable = baselines.logistic_regression(X, supervise(states, n, topics=supervision.topics))
    return probable


def naive_bayes_em(
    counts: sp.csr_array, supervision: Supervision, seed: int, smoothing: float = 1.0, rounds: int = 10
) -> np.ndarray:
    """Multinomial naive Bayes with EM over the unlabelled documents (Nigam et al. 2000); scores are log odds.

    A document with several labels is shared between them.
    """
    rows, Y = given(supervision)
    covered = np.flatnonzero(Y.any(axis=0))
    shares = Y[:, covered] / np.maximum(Y.sum(axis=1, keepdims=True), 1)
    R = np.zeros((counts.shape[0], len(covered)))
    R[rows] = shares
    for _ in range(rounds + 1):  # the first round reads the labelled documents alone
        mass = smoothing + (counts.T @ R).T
        prior = np.log(1 + R.sum(axis=0)) - np.log(len(covered) + R.sum())
        joint = counts @ (np.log(mass) - np.log(mass.sum(axis=1, keepdims=True))).T + prior
        R = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        R[rows] = shares
    scores = np.zeros((counts.shape[0], Y.shape[1]))
    scores[:, covered] = odds(joint)
    return lowest_elsewhere(scores, Y)


def naive_bayes_em_tfidf(X: sp.csr_array, supervision: Supervision, seed: int) -> np.ndarray:
    """The same on tf-idf rows of length 5, which keeps the posteriors away from 0 and 1."""
    return naive_bayes_em(5 * X, supervision, seed, smoothing=0.1, rounds=5)


def odds(joint: np.ndarray) -> np.ndarray:
    """Log odds from unnormalised log p, exact where p is near 1."""
    if joint.shape[1] == 1:
        return joint
    everyone = np.arange(len(joint))
    best = joint.argmax(axis=1)
    others = joint.copy()
    others[everyone, best] = -np.inf
    p = joint - logsumexp(joint, axis=1, keepdims=True)
    p[everyone, best] = -np.inf  # at most one half from here on, so 1 - p is exact
    out = p - np.log1p(-np.exp(p))
    out[everyone, best] = joint[everyone, best] - logsumexp(others, axis=1)
    return out


def label_propagation(
    graph: sp.csr_array, supervision: Supervision, seed: int, reach: float = 0.9, rounds: int = 60
) -> np.ndarray:
    """Local and global consistency (Zhou et al. 2004): LabelSpreading of scikit-learn, for several labels per document.

    F ← reach · D^-½ G D^-½ F + (1 - reach) Y.
    """
    rows, Y = given(supervision)
    root = 1 / np.sqrt(np.maximum(np.asarray(graph.sum(axis=1)).ravel(), TINY))
    S = sp.csr_array(sp.diags_array(root) @ graph @ sp.diags_array(root))
    start = np.zeros((graph.shape[0], Y.shape[1]))
    start[rows] = (1 - reach) * Y
    F = start
    for _ in range(rounds):
        F = reach * (S @ F) + start
    return F / np.maximum(F.sum(axis=1, keepdims=True), TINY)


# --- packages ---


def words_of(counts: sp.csr_array) -> list[list[str]]:
    """Documents as lists of terms, each repeated as often as it occurs."""
    names = np.array([str(j) for j in range(counts.shape[1])])
    ends, columns, times = counts.indptr, counts.indices, counts.data.astype(int)
    return [np.repeat(names[columns[a:b]], times[a:b]).tolist() for a, b in pairwise(ends)]


def plda(counts: sp.csr_array, supervision: Supervision, seed: int) -> np.ndarray:
    """Partially labelled LDA of tomotopy, 100 iterations; an unlabelled document may have any label."""
    import tomotopy

    rows, Y = given(supervision)
    covered = [str(k) for k in np.flatnonzero(Y.any(axis=0))]
    labels = dict(zip(rows.tolist(), ([str(k) for k in np.flatnonzero(y)] for y in Y), strict=True))
    words = words_of(counts)
    model = tomotopy.PLDAModel(latent_topics=1, seed=seed + 1)
    filled = [i for i, own in enumerate(words) if own]
    for i in filled:
        model.add_doc(words[i], labels.get(i, covered))
    model.train(100, workers=1)
    columns = [int(label) for label in model.topic_label_dict]
    scores = np.zeros((counts.shape[0], Y.shape[1]))
    for i, document in zip(filled, model.docs, strict=True):
        scores[i, columns] = document.get_topic_dist()[: len(columns)]
    return lowest_elsewhere(scores, Y)


def labeled_lda(counts: sp.csr_array, supervision: Supervision, seed: int) -> np.ndarray:
    """Labeled LDA of topica, 50 iterations of its variational form; unlabelled documents are unconstrained."""
    import topica

    rows, Y = given(supervision)
    covered = np.flatnonzero(Y.any(axis=0))
    labels: list[list[str]] = [[] for _ in range(counts.shape[0])]
    for i, y in zip(rows, Y, strict=True):
        labels[i] = [str(k) for k in np.flatnonzero(y)]
    words = words_of(counts)
    filled = [i for i, own in enumerate(words) if own]
    model = topica.LabeledLDA(seed=seed, sampler="cvb0")  # the Gibbs sampler takes seconds per iteration
    names = [str(k) for k in covered]
    model.fit([words[i] for i in filled], [labels[i] for i in filled], label_names=names, iters=50)
    scores = np.zeros((counts.shape[0], Y.shape[1]))
    scores[np.ix_(filled, covered)] = model.doc_topic
    return lowest_elsewhere(scores, Y)


def corex(
    counts: sp.csr_array, supervision: Supervision, seed: int, words: int = 5, strength: float = 3.0
) -> np.ndarray:
    """CorEx with anchors: words that are most overrepresented in the labelled documents of a topic."""
    from corextopic.corextopic import Corex

    rows, Y = given(supervision)
    covered = np.flatnonzero(Y.any(axis=0))
    found = sp.csr_matrix(counts > 0, dtype=np.float64)
    share = np.asarray(found.mean(axis=0)).ravel()
    own = (found[rows].T @ Y[:, covered]).T / Y[:, covered].sum(axis=0)[:, None]
    anchors = [np.argsort(-(line - share) / np.sqrt(share + TINY), kind="stable")[:words].tolist() for line in own]
    model = Corex(n_hidden=len(covered), max_iter=100, seed=seed)
    model.fit(found, anchors=anchors, anchor_strength=strength)
    scores = np.zeros((counts.shape[0], Y.shape[1]))
    scores[:, covered] = model.log_p_y_given_x
    return lowest_elsewhere(scores, Y)
