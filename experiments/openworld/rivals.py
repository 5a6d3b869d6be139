"""Other methods with free columns: from a world, a number of free columns and a seed to a result."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, softmax
from sklearn.decomposition import NMF
from sklearn.preprocessing import normalize

from experiments.openworld.measures import Found
from experiments.openworld.worlds import World
from experiments.peers.rivals import TINY, latent_semantics, odds, words_of
from experiments.shared.corpora import load
from experiments.shared.internals import baselines

# Iterations of scikit-learn's NMF, its default.
ITERATIONS = 200


def logistic_regression(world: World, columns: int, seed: int) -> Found:
    """One balanced logistic regression per known topic; a topic is given at one half."""
    p = baselines.logistic_regression(world.corpus.X, world.supervision)
    return Found(known=p, decided=p >= 0.5, shares=p)


# --- factorisations ---


def nmf(world: World, columns: int, seed: int) -> Found:
    """NMF of all documents, without labels."""
    return Found(free=nmf_weights(world.corpus.name, columns, seed))


@lru_cache(maxsize=4)
def nmf_weights(name: str, columns: int, seed: int) -> np.ndarray:
    """W of a prepared corpus; cached, because it reads no labels."""
    return np.asarray(new_nmf(columns, seed).fit_transform(load(name, "openworld").X))


def new_nmf(columns: int, seed: int) -> NMF:
    """scikit-learn's NMF with its coordinate descent."""
    return NMF(columns, init="nndsvda", max_iter=ITERATIONS, random_state=seed)


def nmf_of_doubt(world: World, columns: int, seed: int) -> Found:
    """NMF of the documents that logistic regression doubts; weights of all documents times the doubt."""
    X = world.corpus.X
    doubt = 1 - baselines.logistic_regression(X, world.supervision).max(axis=1)
    model = new_nmf(columns, seed).fit(X[np.flatnonzero(doubt > np.median(doubt))])
    return Found(free=model.transform(X) * doubt[:, None])


# --- clusters ---


@lru_cache(maxsize=4)
def latent(name: str) -> np.ndarray:
    """100 latent directions of a prepared corpus, rows of unit length."""
    return latent_semantics(load(name, "openworld").X, 0, 100)


def covered(world: World) -> np.ndarray:
    """Known topics with a label."""
    return np.flatnonzero(world.Y.any(axis=0))


def clamped(world: World) -> np.ndarray:
    """Labels of the topics with a label, as rows that sum to 1."""
    return normalize(world.Y[:, covered(world)], norm="l1")


def widen(world: World, scores: np.ndarray) -> np.ndarray:
    """Scores of topics with a label, as scores of all known topics; the others get the lowest."""
    wide = np.full((world.n, len(world.known)), scores.min(initial=0.0))
    wide[:, covered(world)] = scores
    return wide


def first_of(scores: np.ndarray, n_known: int) -> np.ndarray:
    """The topic with the largest score, as bool (n_documents, n_known); nothing if that is a free column."""
    return scores.argmax(axis=1)[:, None] == np.arange(n_known)


def k_means(world: World, columns: int, seed: int) -> Found:
    """Semi-supervised k-means on latent semantics; the score is the lead of a cosine over the other centres."""
    scores = lead(clusters(world, columns, seed))
    k = scores.shape[1] - columns
    return Found(widen(world, scores[:, :k]), scores[:, k:], widen(world, first_of(scores, k)) > 0)


def lead(scores: np.ndarray) -> np.ndarray:
    """Each score minus the largest other score of the row."""
    best = np.sort(scores, axis=1)
    is_best = scores == best[:, -1:]
    return scores - np.where(is_best, best[:, -2:-1], best[:, -1:])


def clusters(world: World, columns: int, seed: int, starts: int = 3, rounds: int = 30) -> np.ndarray:
    """Cosines with the centres of topics with a label, then of free clusters; the best of some starts.

    As in generalised category discovery (Vaze et al. 2022), labelled documents stay in the cluster of their topic. Its
    first centre is their mean. Free centres start far from all others (k-means++).
    """
    Z, Y = latent(world.corpus.name), clamped(world)
    best, least = np.empty(0), np.inf
    for start in range(starts):
        centres = first_centres(Z, world.rows, Y, columns, np.random.default_rng([seed, start]))
        for _ in range(rounds):
            R = np.eye(len(centres))[(Z @ centres.T).argmax(axis=1)]
            R[world.rows] = np.pad(Y, ((0, 0), (0, columns)))
            centres = normalize(R.T @ Z)
        cosines = Z @ centres.T
        loss = (1 - cosines.max(axis=1)).sum()
        if loss < least:
            best, least = cosines, loss
    return best


def first_centres(Z: np.ndarray, rows: np.ndarray, Y: np.ndarray, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Means of the labelled documents of each topic, then documents drawn by their squared distance from centres."""
    centres = normalize(Y.T @ Z[rows])
    nearest = (Z @ centres.T).max(axis=1)
    for _ in range(columns):
        chance = np.maximum(1 - nearest, 0)  # half the squared distance of unit vectors
        drawn = Z[rng.choice(len(Z), p=chance / chance.sum())]
        centres = np.vstack([centres, drawn])
        nearest = np.maximum(nearest, Z @ drawn)
    return centres


# --- mixtures ---


def naive_bayes_em(world: World, columns: int, seed: int, rounds: int = 10, sharpness: float = 10.0) -> Found:
    """Naive Bayes EM on tf-idf rows of length 5 with free classes, labelled documents clamped, started at k-means.

    The score is the log odds, because posteriors near 1 tie.
    """
    X, Y = 5 * world.corpus.X, np.pad(clamped(world), ((0, 0), (0, columns)))
    R = softmax(sharpness * clusters(world, columns, seed), axis=1)
    for _ in range(rounds):
        R[world.rows] = Y
        mass = 0.1 + (X.T @ R).T
        prior = np.log(1 + R.sum(axis=0)) - np.log(Y.shape[1] + R.sum())
        joint = X @ (np.log(mass) - np.log(mass.sum(axis=1, keepdims=True))).T + prior
        R = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    k, scores = Y.shape[1] - columns, odds(joint)
    p = widen(world, R[:, :k])
    return Found(widen(world, scores[:, :k]), scores[:, k:], p >= 0.5, p, R[:, k:].sum(axis=1))


def mixed(world: World, filled: list[int], theta: np.ndarray) -> Found:
    """Result of an LDA: topic shares of the documents with a term, topics with a label first."""
    wide = np.zeros((world.n, theta.shape[1]))
    wide[filled] = theta
    k = len(covered(world))
    decided = widen(world, first_of(wide, k) & (wide.max(axis=1, keepdims=True) > 0)) > 0
    return Found(
        widen(world, wide[:, :k]), wide[:, k:], decided, widen(world, wide[:, :k]), 1 - wide[:, :k].sum(axis=1)
    )


def labels_as_text(world: World) -> dict[int, list[str]]:
    """Labels of the labelled documents as numbers of the topics with a label."""
    return {i: [str(k) for k in np.flatnonzero(y)] for i, y in zip(world.rows.tolist(), clamped(world), strict=True)}


def labeled_lda(world: World, columns: int, seed: int) -> Found:
    """Labeled LDA of topica, 50 iterations of CVB0; free topics are labels that no labelled document has."""
    import topica

    words, labels = words_of(world.corpus.counts), labels_as_text(world)
    filled = [i for i, own in enumerate(words) if own]
    names = [str(k) for k in range(len(covered(world)) + columns)]
    model = topica.LabeledLDA(seed=seed, sampler="cvb0")
    model.fit([words[i] for i in filled], [labels.get(i, []) for i in filled], label_names=names, iters=50)
    return mixed(world, filled, np.asarray(model.doc_topic))


def plda(world: World, columns: int, seed: int) -> Found:
    """Partially labelled LDA of tomotopy, 100 iterations; an unlabelled document may have any label."""
    import tomotopy

    words, labels = words_of(world.corpus.counts), labels_as_text(world)
    filled = [i for i, own in enumerate(words) if own]
    every = [str(k) for k in range(len(covered(world)))]
    model = tomotopy.PLDAModel(latent_topics=columns, seed=seed + 1)
    for i in filled:
        model.add_doc(words[i], labels.get(i, every))
    model.train(100, workers=1)
    theta = np.array([document.get_topic_dist() for document in model.docs])
    order = np.argsort([int(label) for label in model.topic_label_dict])
    return mixed(world, filled, np.hstack([theta[:, order], theta[:, len(every) :]]))


def corex(world: World, columns: int, seed: int, words: int = 5, strength: float = 3.0) -> Found:
    """CorEx with free topics; anchors are words that are overrepresented in the labelled documents of a topic."""
    from corextopic.corextopic import Corex

    Y = world.Y[:, covered(world)]
    present = sp.csr_matrix(world.corpus.counts > 0, dtype=np.float64)
    share = np.asarray(present.mean(axis=0)).ravel()
    own = (present[world.rows].T @ Y).T / Y.sum(axis=0)[:, None]
    anchors = [np.argsort(-(line - share) / np.sqrt(share + TINY), kind="stable")[:words].tolist() for line in own]
    model = Corex(n_hidden=Y.shape[1] + columns, max_iter=100, seed=seed)
    model.fit(present, anchors=anchors, anchor_strength=strength)
    scores = np.asarray(model.log_p_y_given_x)
    p = widen(world, np.exp(scores[:, : Y.shape[1]]))
    return Found(widen(world, scores[:, : Y.shape[1]]), scores[:, Y.shape[1] :], p >= 0.5, p)
