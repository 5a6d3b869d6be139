"""Evaluation of topic trees: scores of all topics, with their levels."""

import numpy as np
import scipy.sparse as sp

from topicsteer.analysis.evaluation import evaluate
from topicsteer.cli.terminal import show_evaluation
from topicsteer.labels.codebook import Lineage
from topicsteer.labels.forms import supervise
from topicsteer.report.page import scorecard


def test_evaluation_of_a_tree():
    rng = np.random.default_rng(0)
    leaf = rng.integers(4, size=80)
    X = rng.random((80, 24)) * 0.3
    for i, k in enumerate(leaf):
        X[i, 6 * k : 6 * k + 6] += rng.random(6)
    names = ["a/x", "a/y", "b/x", "b/y"]
    labels = [names[k] if i < 60 else names[k][0] for i, k in enumerate(leaf)]
    supervision = supervise(labels, 80, lineage=Lineage(separator="/"))

    def always_sibling(X, left, rows):
        """The right parent with the wrong leaf."""
        predicted = np.zeros((len(rows), 6), dtype=bool)
        for row, i in zip(predicted, rows, strict=True):
            row[left.topics.index(names[leaf[i] ^ 1])] = True
        return predicted.astype(float), predicted

    result = evaluate(sp.csr_array(X), supervision, always_sibling)
    assert result.table()["level"] == [1, 2, 2, 1, 2, 2]
    summary = dict(zip(result.summary()["measure"], result.summary()["topicsteer"], strict=True))
    assert summary["micro recall"] == 0
    show_evaluation(result)
    assert "level" in str(scorecard(result))


def test_flat_topics_have_no_rows_of_trees():
    X = sp.csr_array(np.kron(np.eye(2), np.ones((6, 3))))
    result = evaluate(X, supervise(["a"] * 6 + ["b"] * 6, 12), lambda X, left, rows: 2 * [np.ones((len(rows), 2))])
    assert "level" not in result.table()
