"""The methods that are compared: each from a corpus, the labelled rows and a seed to weights, scores and terms."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

from experiments.shared.corpora import Corpus
from experiments.shared.internals import baselines
from topicsteer import TSNMF

ITERATIONS = 30  # of the multiplicative rules, as in the paper
LDA = {"learning_method": "batch", "max_iter": 10}  # scikit-learn's defaults

PAPER = {"solver": "mu", "init": "acol", "max_iter": ITERATIONS, "tol": 0.0}
TS_NMF = {
    "TS-NMF": PAPER | {"label_weight": "balanced"},
    "TS-NMF unweighted": PAPER | {"label_weight": None},
    "TS-NMF uniform start": PAPER | {"label_weight": "balanced", "init": "random"},
    "TS-NMF uniform start unweighted": PAPER | {"label_weight": None, "init": "random"},
    "TS-NMF default solver": {},
}
BASELINES = {"logistic regression": baselines.logistic_regression, "nearest centroid": baselines.nearest_centroid}
NMF = {"NMF": PAPER, "NMF uniform start": PAPER | {"init": "random"}}
UNSUPERVISED = (*NMF, "LDA")


@dataclass(frozen=True, eq=False)
class Fit:
    """What a method found.

    ``weights`` (documents × topics) are compared with the labels as in the paper. ``scores`` order the documents of
    a topic, and the topics of a document: for a factorisation what a topic contributes to the document.
    """

    weights: np.ndarray
    scores: np.ndarray
    terms: np.ndarray | None = None
    history: list[float] = field(default_factory=list)
    named: bool = True


def fit(method: str, corpus: Corpus, rows: np.ndarray, seed: int) -> Fit:
    """Run one method with the labels of these rows."""
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


def factorise(corpus: Corpus, labels: Any, seed: int, options: dict[str, Any]) -> Fit:
    """TS-NMF under these settings, NMF without labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of topics without labels, and of iterations that were cut: both intended
        model = TSNMF(**options, threads=1, random_state=seed).fit(corpus.X, labels)
    W, H = model.document_topics_, model.components_
    return Fit(W, W * H.sum(axis=1), H, model.objective_history_.tolist(), named=labels is not None)
