"""Simple rivals with the same embeddings: scikit-learn in a few lines each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from experiments.meaning import vectors
from experiments.meaning.cells import Draw
from experiments.meaning.corpora import Corpus, load

# Iterations of a regression, rounds of self-training, and share of the predictions of a topic that each round takes.
ITERATIONS = 200
ROUNDS = (0.25, 0.5, 0.75)
SURE = 0.9
# Starts, steps and sharpness of clusters, and dimensions in which they are looked for if embeddings are off.
STARTS = 3
STEPS = 30
SHARPNESS = 20
DIMENSIONS = 100

Matrix = np.ndarray | sp.csr_array


@dataclass(frozen=True, eq=False)
class Task:
    """A cell for a rival: features of documents, and of the names of known topics where they may be read.

    ``X`` and ``names`` are embeddings, or tf-idf if embeddings are off; ``centred`` and ``centred_names`` are the same
    less their means; ``joint`` and ``joint_names`` also have the terms. ``name`` is that of the corpus.
    """

    drawn: Draw
    several: bool
    seed: int
    X: Matrix
    centred: Matrix
    joint: Matrix
    names: Matrix | None
    centred_names: Matrix | None
    joint_names: Matrix | None
    name: str = ""

    @property
    def n_known(self) -> int:
        """Number of known topics."""
        return len(self.drawn.known)


def task(corpus: Corpus, drawn: Draw, embedding: str, seed: int) -> Task:
    """The features of a cell."""
    kinds = features(corpus.name, embedding)
    named = names_of(corpus.name, embedding, drawn.described) if drawn.names else (None, None, None)
    named = [None if rows is None else rows[drawn.known] for rows in named]
    return Task(drawn, corpus.several, seed, *kinds, *named, name=corpus.name)


@lru_cache(maxsize=2)
def features(name: str, embedding: str) -> tuple[Matrix, Matrix, Matrix]:
    """Documents as embeddings, centred embeddings, and terms with embeddings."""
    corpus = load(name)
    terms = term_weights(name)[1]
    E = vectors.of_documents(corpus, embedding)
    return (terms, terms, terms) if E is None else (E, centre(E), join(terms, centre(E)))


@lru_cache(maxsize=4)
def names_of(name: str, embedding: str, described: bool) -> tuple[Matrix, Matrix, Matrix]:
    """Topic names in the same three forms."""
    corpus = load(name)
    terms = term_weights(name)[0].transform(vectors.name_texts(corpus, described=described))
    E = vectors.of_names(corpus, embedding, described=described)
    return (terms, terms, terms) if E is None else (E, centre(E), join(terms, centre(E)))


@lru_cache(maxsize=2)
def term_weights(name: str) -> tuple[TfidfVectorizer, sp.csr_array]:
    """The vectoriser of a corpus and its tf-idf matrix."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    return vectorizer, sp.csr_array(vectorizer.fit_transform(load(name).texts))


def centre(rows: np.ndarray) -> np.ndarray:
    """Rows less their mean, at unit length."""
    return unit(rows - rows.mean(axis=0))


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows at unit length."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def join(terms: sp.csr_array, dense: np.ndarray) -> sp.csr_array:
    """Columns of terms and of embeddings."""
    return sp.csr_array(sp.hstack([terms, sp.csr_array(dense)]))


def dense_product(A: Matrix, B: Matrix) -> np.ndarray:
    """Rows of A times rows of B."""
    product = A @ B.T
    return product.toarray() if sp.issparse(product) else product


# --- known topics: scores of all documents ---


def cosine(given: Task, kind: str = "X") -> np.ndarray:
    """Cosine of documents and names."""
    return dense_product(getattr(given, kind), getattr(given, NAMES_OF[kind]))


def centroid(given: Task) -> np.ndarray:
    """Cosine of documents and the mean of the examples of each topic."""
    X, Y = examples(given, "centred")
    means = (X.T @ Y).T
    return dense_product(given.centred, unit(means)) if len(means) else np.zeros((given.X.shape[0], 0))


def regression(given: Task, C: float, kind: str = "centred") -> np.ndarray:
    """Logistic regression on labelled documents and names."""
    return fit(*examples(given, kind), getattr(given, kind), given.several, C)


def self_trained(given: Task, C: float) -> np.ndarray:
    """Logistic regression that takes its surest predictions as labels, and more of them in each round."""
    X, (own, Y) = given.centred, examples(given, "centred")
    free = np.setdiff1d(np.arange(X.shape[0]), given.drawn.rows)
    P = fit(own, Y, X, given.several, C)
    for share in ROUNDS:
        taken = free[surest(P[free], share)]
        guessed = P[taken] >= 0.5 if given.several else np.zeros((len(taken), given.n_known), dtype=bool)
        guessed[np.arange(len(taken)), P[taken].argmax(axis=1)] = True
        P = fit(stack([own, X[taken]]), np.vstack([Y, guessed]), X, given.several, C)
    return P


def surest(P: np.ndarray, share: float) -> np.ndarray:
    """Rows whose best topic is sure, or among the surest of this topic."""
    best, p = P.argmax(axis=1), P.max(axis=1)
    taken = p >= SURE
    for k in range(P.shape[1]):
        own = np.flatnonzero(best == k)
        taken[own[np.argsort(-p[own], kind="stable")[: int(np.ceil(share * len(own)))]]] = True
    return np.flatnonzero(taken)


def examples(given: Task, kind: str) -> tuple[Matrix, np.ndarray]:
    """Labelled documents and names with their labels."""
    X, names = getattr(given, kind)[given.drawn.rows], getattr(given, NAMES_OF[kind])
    if names is None:
        return X, given.drawn.labels
    return stack([X, names]), np.vstack([given.drawn.labels, np.eye(given.n_known, dtype=bool)])


def stack(parts: list[Matrix]) -> Matrix:
    """Rows below each other."""
    return sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.vstack(parts)


def fit(X: Matrix, Y: np.ndarray, every: Matrix, several: bool, C: float) -> np.ndarray:
    """Probabilities of a softmax regression, or of one regression per topic if documents have several."""
    model = LogisticRegression(C=C, max_iter=ITERATIONS)
    if several:
        return expit(np.column_stack([model.fit(X, y).decision_function(every).astype(float) for y in Y.T]))
    scores = model.fit(X, Y.argmax(axis=1)).decision_function(every).astype(float)
    return softmax(np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores, axis=1)


# --- hidden topics: scores of as many columns ---


def k_means(given: Task, kind: str) -> np.ndarray:
    """Cosine with the centres of k-means clusters."""
    X = for_clusters(given, kind)
    model = KMeans(n_clusters(given), n_init=STARTS, random_state=given.seed).fit(X)
    return unlabelled_clusters(given, X, model.cluster_centers_, model.labels_)


def k_means_all(given: Task, kind: str) -> np.ndarray:
    """The same for all clusters, about twice as many columns as there are hidden topics."""
    X = for_clusters(given, kind)
    model = KMeans(n_clusters(given), n_init=STARTS, random_state=given.seed).fit(X)
    return unit(X) @ unit(model.cluster_centers_).T


def k_means_clusters(given: Task) -> np.ndarray:
    """Clusters of k-means on centred features as columns of 0 and 1 (n_documents, n_known + n_hidden)."""
    X = for_clusters(given, "centred")
    nearest = KMeans(n_clusters(given), n_init=STARTS, random_state=given.seed).fit_predict(X)
    return np.eye(n_clusters(given), dtype=np.float32)[nearest]


def spherical(given: Task, kind: str) -> np.ndarray:
    """Cosine with the centres of spherical k-means clusters; the best of some starts."""
    X = unit(for_clusters(given, kind))
    best: tuple[float, np.ndarray] = (-np.inf, X)
    for start in range(STARTS):
        first = KMeans(n_clusters(given), n_init=1, max_iter=1, random_state=STARTS * given.seed + start).fit(X)
        centres = unit(first.cluster_centers_)
        for _ in range(STEPS):
            nearest = (X @ centres.T).argmax(axis=1)
            member = sp.csr_array((np.ones(len(X)), (nearest, np.arange(len(X)))), shape=(len(centres), len(X)))
            centres = unit(member @ X)
        best = max(best, ((X @ centres.T).max(axis=1).sum(), centres), key=lambda pair: pair[0])
    return unlabelled_clusters(given, X, best[1], (X @ best[1].T).argmax(axis=1))


def seeded(given: Task) -> np.ndarray:
    """Spherical k-means that starts at the centroids of known topics; a softmax of cosines, for the other centres."""
    X, Y = unit(for_clusters(given, "centred")), given.drawn.labels
    known = unit((X[given.drawn.rows].T @ Y).T)
    best: tuple[float, np.ndarray] = (-np.inf, known)
    for start in range(STARTS):
        others = kmeans_plusplus(X, n_clusters(given), random_state=STARTS * given.seed + start)[0]
        far = np.argsort((others @ known.T).max(axis=1), kind="stable")[: len(given.drawn.hidden)]
        centres = np.vstack([known, others[far]])
        for _ in range(STEPS):
            R = np.eye(len(centres), dtype=np.float32)[(X @ centres.T).argmax(axis=1)]
            R[given.drawn.rows, : given.n_known] = Y
            R[given.drawn.rows, given.n_known :] = 0
            centres = unit(R.T @ X)
        best = max(best, ((X @ centres.T).max(axis=1).sum(), centres), key=lambda pair: pair[0])
    return softmax(SHARPNESS * (X @ best[1].T).astype(float), axis=1)[:, given.n_known :]


def n_clusters(given: Task) -> int:
    """Number of known and hidden topics."""
    return given.n_known + len(given.drawn.hidden)


def unlabelled_clusters(given: Task, X: np.ndarray, centres: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Cosine with the centres of the clusters that have the smallest share of labelled documents."""
    sizes = np.maximum(np.bincount(nearest, minlength=len(centres)), 1)
    labelled = np.bincount(nearest[given.drawn.rows], minlength=len(centres))
    free = np.argsort(labelled / sizes, kind="stable")[: len(given.drawn.hidden)]
    return unit(X) @ unit(centres[free]).T


def for_clusters(given: Task, kind: str) -> np.ndarray:
    """Embeddings, or latent semantics if embeddings are off."""
    X = getattr(given, kind)
    if isinstance(X, np.ndarray):
        return X
    return unit(TruncatedSVD(DIMENSIONS, random_state=0).fit_transform(X).astype(np.float32))


# Names of the features of names for each form of documents.
NAMES_OF = {"X": "names", "centred": "centred_names", "joint": "joint_names"}
COSINES: dict[str, Callable[[Task], np.ndarray]] = {
    "cosine": cosine,
    "centred cosine": partial(cosine, kind="centred"),
}
LEARNERS: dict[str, Callable[[Task], np.ndarray]] = {
    "centroid": centroid,
    **{f"LR C={C}": partial(regression, C=C) for C in (1, 10, 100)},
    **{f"LR not centred C={C}": partial(regression, C=C, kind="X") for C in (1, 10, 100)},
    "LR terms and embeddings": partial(regression, C=10, kind="joint"),
    **{f"self-trained LR C={C}": partial(self_trained, C=C) for C in (10, 100)},
}
CLUSTERS: dict[str, Callable[[Task], np.ndarray]] = {
    "k-means": partial(k_means, kind="X"),
    "centred k-means": partial(k_means, kind="centred"),
    "spherical k-means": partial(spherical, kind="X"),
    "centred spherical k-means": partial(spherical, kind="centred"),
    "seeded spherical k-means": seeded,
    "k-means, all columns": partial(k_means_all, kind="centred"),
}
# Methods that are shown but set no goal: more columns than hidden topics make a match easier.
UNEQUAL = {"k-means, all columns"}
# Methods that differ only if there are embeddings.
EMBEDDED = {"centred cosine", "LR terms and embeddings", "centred k-means", "centred spherical k-means"}
EMBEDDED |= {name for name in LEARNERS if "not centred" in name}


def methods(drawn: Draw, embedding: str) -> dict[str, Callable[[Task], np.ndarray]]:
    """Rivals of a cell."""
    found = (COSINES if drawn.names else {}) | LEARNERS | (CLUSTERS if len(drawn.hidden) else {})
    return {name: run for name, run in found.items() if embedding != "off" or name not in EMBEDDED}
