import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from topicsteer.analysis.evaluation import logistic_regression
from topicsteer.labels.forms import supervise


def test_baselines_are_scikit_learns():
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((120, 20)))
    some = [[str(k)] if i % 3 == 0 else [] for i, k in enumerate(rng.integers(0, 4, 120))]
    supervision = supervise(some, 120)
    rows = np.flatnonzero(supervision.labelled)
    indicator = supervision.indicator().toarray()[rows]
    theirs = OneVsRestClassifier(LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000))
    theirs.fit(X[rows], indicator)
    np.testing.assert_allclose(logistic_regression(X, supervision), theirs.predict_proba(X), atol=1e-4)
