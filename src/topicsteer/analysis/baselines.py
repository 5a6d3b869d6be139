"""What every analyst would try first: logistic regression and the nearest centroid, on the same labels."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from topicsteer.labels.supervision import PERMITTED, Supervision
from topicsteer.system.types import Array

Rows = NDArray[np.integer[Any]]


def logistic_regression(X: sp.csr_array, supervision: Supervision, rows: Rows | slice = slice(None)) -> Array:
    """One balanced logistic regression a topic on the labelled documents, for all documents or some.

    As people do it: a topic that a labelled document does not list counts as absent, even where it is unknown.
    """
    labelled = np.flatnonzero(supervision.labelled)
    given = supervision.patterns[supervision.pattern[labelled]] == PERMITTED
    asked = X[rows]
    scores = np.zeros((asked.shape[0], given.shape[1]))
    for k in range(given.shape[1]):
        if given[:, k].any() and not given[:, k].all():
            model = LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000)
            scores[:, k] = model.fit(X[labelled], given[:, k]).predict_proba(asked)[:, 1]
        else:
            scores[:, k] = float(given[:, k].any())
    return scores


def nearest_centroid(X: sp.csr_array, supervision: Supervision, rows: Rows | slice = slice(None)) -> Array:
    """Cosine of each document, or of some, and the mean of the documents labelled with each topic."""
    centroids = normalize((supervision.indicator().T @ X).tocsr())
    return np.asarray((normalize(X[rows]) @ centroids.T).toarray())


def logistic_answers(X: sp.csr_array, supervision: Supervision, rows: Rows) -> tuple[Array, NDArray[np.bool_]]:
    """Yes from a half."""
    scores = logistic_regression(X, supervision, rows)
    return scores, scores >= 0.5


def centroid_answers(X: sp.csr_array, supervision: Supervision, rows: Rows) -> tuple[Array, NDArray[np.bool_]]:
    """Yes for the one nearest topic: a cosine has no cut of its own."""
    scores = nearest_centroid(X, supervision, rows)
    return scores, (scores == scores.max(axis=1, keepdims=True)) & (scores > 0)
