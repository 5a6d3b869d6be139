import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import NearestCentroid

from topicsteer.evaluation import evaluate, hidden_parts, logistic_regression, nearest_centroid
from topicsteer.supervision import supervise


def corpus(n=120, topics=4, seed=0):
    rng = np.random.default_rng(seed)
    which = rng.integers(0, topics, n)
    X = rng.random((n, 20)) * 0.2
    for i, k in enumerate(which):
        X[i, 5 * k : 5 * k + 5] += rng.random(5)
    return sp.csr_array(X), [[str(k)] for k in which]


def test_every_topic_keeps_labels_and_every_label_is_hidden_once():
    labels = [["a"], ["a", "b"], ["a"], ["b"], ["b"], ["c"], ["a", "d"], ["d"], []]
    truth = supervise(labels, 9).indicator()
    part = hidden_parts(truth, 3, 0)
    assert part[5] == -1  # the only document of its topic
    assert part[8] == -1
    assert (part[[0, 1, 2, 3, 4, 6, 7]] >= 0).all()
    for fold in range(part.max() + 1):
        kept = truth[part != fold].toarray().sum(axis=0)
        assert (kept > 0).all()


def test_a_perfect_and_a_blind_scorer():
    X, labels = corpus()
    truth = supervise(labels, 120)
    right = truth.indicator().toarray()
    seen = []

    def perfect(X, left):
        seen.append(int(left.labelled.sum()))
        return right

    result = evaluate(X, truth, perfect, folds=4)
    assert result.macro["topicsteer"] == result.micro["topicsteer"] == 1.0
    assert result.verdict == "topicsteer finds the hidden labels best."
    assert result.folds == 4
    assert all(80 <= count <= 100 for count in seen)
    blind = evaluate(X, truth, lambda X, left: np.zeros((120, 4)))
    assert blind.macro["topicsteer"] < 0.4
    assert blind.verdict == "Logistic regression finds the hidden labels better than topicsteer on these documents."
    assert blind.summary()["method"] == ["topicsteer", "logistic regression", "nearest centroid"]
    assert blind.table()["labelled"] == truth.counts.tolist()
    assert set(blind.tables()) == {"summary", "topics", "verdict"}


def test_baselines_are_scikit_learns():
    X, labels = corpus()
    some = [names if i % 3 == 0 else [] for i, names in enumerate(labels)]
    supervision = supervise(some, 120)
    rows = np.flatnonzero(supervision.labelled)
    indicator = supervision.indicator().toarray()[rows]
    theirs = OneVsRestClassifier(LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000))
    theirs.fit(X[rows], indicator)
    np.testing.assert_allclose(logistic_regression(X, supervision), theirs.predict_proba(X), atol=1e-4)
    centroid = NearestCentroid().fit(X[rows].toarray(), [some[i][0] for i in rows])
    unit = X.toarray() / np.linalg.norm(X.toarray(), axis=1, keepdims=True)
    means = centroid.centroids_ / np.linalg.norm(centroid.centroids_, axis=1, keepdims=True)
    np.testing.assert_allclose(nearest_centroid(X, supervision), unit @ means.T, atol=1e-9)


def test_nothing_to_hide():
    X, _ = corpus()
    with pytest.raises(ValueError, match="label some more"):
        evaluate(X, supervise({0: "a", 1: "b"}, 120), lambda X, left: np.zeros((120, 2)))
