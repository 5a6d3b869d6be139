"""`hiclass` with one logistic regression per parent node; the package is optional."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from experiments.shared.internals import Forest

# Separator of the names of a path in hiclass.
SEPARATOR = "::HiClass::Separator::"


def per_parent_node(X: sp.csr_array, paths: Sequence[tuple[int, int, int]], forest: Forest) -> np.ndarray:
    """Probabilities of topics on two levels: P(parent), and P(parent) P(leaf | parent).

    hiclass knows one path per document, so a document with several is repeated. Its own ``predict_proba`` asks the
    classifier of a parent only about documents in which that parent is the likeliest. Rankings of all documents need
    all of them, so the product of its fitted classifiers is taken here.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
    paths : sequence of (row, topic, topic below it or -1)
        Labels.
    forest : Forest
    """
    from hiclass import LocalClassifierPerParentNode

    local = LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000)
    model = LocalClassifierPerParentNode(local_classifier=local)
    names = np.array([[str(top), "" if leaf < 0 else str(leaf)] for _, top, leaf in paths], dtype=object)
    model.fit(sp.csr_matrix(X[[row for row, *_ in paths]]), names)
    found = np.zeros((X.shape[0], len(forest)))
    asked = sp.csr_matrix(X)
    _write(found, model.hierarchy_.nodes[model.root_], asked, 1.0)
    for k, below in enumerate(forest.children):
        if below and str(k) in model.hierarchy_.nodes:
            _write(found, model.hierarchy_.nodes[str(k)], asked, found[:, k, None])
    return found


def _write(found: np.ndarray, node: dict[str, object], asked: sp.csr_matrix, above: object) -> None:
    """Probabilities of the topics below a node; a parent without labels below it has no classifier."""
    classifier = node.get("classifier")
    if classifier is not None:
        columns = [int(str(name).split(SEPARATOR)[-1]) for name in classifier.classes_]  # type: ignore[attr-defined]
        found[:, columns] = classifier.predict_proba(asked) * above  # type: ignore[attr-defined]
