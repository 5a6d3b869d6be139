"""Methods of the paper and simple classifiers: from a corpus, labelled rows and a seed to weights and scores."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.preprocessing import normalize

from experiments.shared.corpora import Corpus
from experiments.shared.internals import Supervision, baselines
from topicsteer import TSNMF

# Iterations of the multiplicative rules.
ITERATIONS = 30
# Settings of LDA, the defaults of scikit-learn.
LDA = {"learning_method": "batch", "max_iter": 10}
# Settings of the paper for a factorisation.
PAPER = {"solver": "mu", "init": "acol", "max_iter": ITERATIONS, "tol": 0.0}
# Variants of TS-NMF.
TS_NMF = {
    "TS-NMF": PAPER | {"label_weight": "balanced"},
    "TS-NMF unweighted": PAPER | {"label_weight": None},
    "TS-NMF uniform start": PAPER | {"label_weight": "balanced", "init": "random"},
    "TS-NMF uniform start unweighted": PAPER | {"label_weight": None, "init": "random"},
    "TS-NMF default solver": {},
}


def nearest_centroid(X: Any, supervision: Supervision) -> np.ndarray:
    """Return the cosine similarity of documents and the mean of the documents labelled with each topic."""
    centroids = normalize((supervision.indicator().T @ X).tocsr())
    return np.asarray((normalize(X) @ centroids.T).toarray())


# Classifiers that learn from the labelled documents alone.
BASELINES = {"logistic regression": baselines.logistic_regression, "nearest centroid": nearest_centroid}
# NMF, which is TS-NMF without labels.
NMF = {"NMF": PAPER, "NMF uniform start": PAPER | {"init": "random"}}
# Methods that read no labels.
UNSUPERVISED = (*NMF, "LDA")


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of a method.

    ``weights`` (documents × topics) are compared with the labels as in the paper. ``scores`` rank the documents of a
    topic and the topics of a document. For a factorisation they are the contribution of the topic to the document.
    """

    weights: np.ndarray
    scores: np.ndarray
    terms: np.ndarray | None = None
    history: list[float] = field(default_factory=list)
    named: bool = True


def fit(method: str, corpus: Corpus, rows: np.ndarray, seed: int) -> Fit:
    """Run a method with the labels of these rows."""
    if method in BASELINES:
        scores = BASELINES[method](corpus.X, corpus.supervision(rows))
        return Fit(scores, scores)
    if method == "LDA":
        model = LatentDirichletAllocation(len(corpus.topics), random_state=seed, **LDA)
        weights = model.fit_transform(corpus.counts)
        return Fit(weights, weights, model.components_, named=False)
    if method in NMF:
        return factorise(corpus, None, seed, NMF[method] | {"n_components": len(corpus.topics)})
    return factorise(corpus, corpus.supervision(rows), seed, TS_NMF[method])


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings: topics without labels and few iterations are intended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def factorise(corpus: Corpus, labels: Any, seed: int, options: dict[str, Any]) -> Fit:
    """TS-NMF with these settings; NMF if there are no labels."""
    with quiet():
        model = TSNMF(**options, threads=1, random_state=seed).fit(corpus.X, labels)
    W, H = model.document_topics_, model.components_
    return Fit(W, W * H.sum(axis=1), H, model.objective_history_.tolist(), named=labels is not None)
