"""Baselines on the same labels: logistic regression and the nearest centroid."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from topicsteer.labels.supervision import PERMITTED, Supervision
from topicsteer.system.threads import one_blas_thread
from topicsteer.system.types import Array

Rows = NDArray[np.integer[Any]]


def logistic_regression(X: sp.csr_array, supervision: Supervision, rows: Rows | slice = slice(None)) -> Array:
    """Scores of one balanced logistic regression per topic, trained on the labelled documents.

    As usual in practice, a topic that a labelled document does not list counts as absent, even if it is unknown.
    """
    labelled = np.flatnonzero(supervision.labelled)
    given = supervision.patterns[supervision.pattern[labelled]] == PERMITTED
    asked = X[rows]
    scores = np.zeros((asked.shape[0], given.shape[1]))
    for k in range(given.shape[1]):
        if given[:, k].any() and not given[:, k].all():
            model = LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000)
            with one_blas_thread():  # ten times faster for a hundred documents
                scores[:, k] = model.fit(X[labelled], given[:, k]).predict_proba(asked)[:, 1]
        else:
            scores[:, k] = float(given[:, k].any())
    return scores


def nearest_centroid(X: sp.csr_array, supervision: Supervision, rows: Rows | slice = slice(None)) -> Array:
    """Cosine similarity of documents and the mean of the documents labelled with each topic."""
    centroids = normalize((supervision.indicator().T @ X).tocsr())
    return np.asarray((normalize(X[rows]) @ centroids.T).toarray())


def logistic_answers(X: sp.csr_array, supervision: Supervision, rows: Rows) -> tuple[Array, NDArray[np.bool_]]:
    """Scores of the logistic regression, and predictions at the threshold 0.5."""
    scores = logistic_regression(X, supervision, rows)
    return scores, scores >= 0.5


def centroid_answers(X: sp.csr_array, supervision: Supervision, rows: Rows) -> tuple[Array, NDArray[np.bool_]]:
    """Scores of the nearest centroid, and its one nearest topic as prediction: a cosine has no natural threshold."""
    scores = nearest_centroid(X, supervision, rows)
    return scores, (scores == scores.max(axis=1, keepdims=True)) & (scores > 0)
