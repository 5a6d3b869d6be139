"""Evaluation of topic trees: scores of every level, and hierarchical precision and recall."""

import numpy as np
import pytest
import scipy.sparse as sp

from topicsteer.analysis.evaluation import evaluate
from topicsteer.cli.terminal import show_evaluation
from topicsteer.labels.codebook import Lineage
from topicsteer.labels.forms import supervise
from topicsteer.metrics import hierarchical_precision_recall
from topicsteer.report.page import scorecard

# sport: tennis, chess; chess: openings; arts
PARENTS = [-1, 0, 0, 2, -1]


def test_a_worked_example():
    """tennis for openings is right about sport alone; openings for chess is right, and one topic too deep."""
    truth = [[0, 0, 0, 1, 0], [0, 0, 1, 0, 0]]
    predicted = [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0]]
    found = hierarchical_precision_recall(truth, predicted, PARENTS)
    assert found.correct.tolist() == [2, 0, 1, 0, 0]
    assert found.micro.precision[0] == 3 / 5
    assert found.micro.recall[0] == 3 / 5
    # Nobody knows whether the second document is about openings.
    known = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 1]], dtype=bool)
    assert hierarchical_precision_recall(truth, predicted, PARENTS, known).micro.precision[0] == 3 / 4


def test_micro_average_equals_hiclass():
    metrics = pytest.importorskip("hiclass.metrics")
    rng = np.random.default_rng(0)
    paths = [["0", "1", ""], ["0", "2", "3"], ["0", "2", ""], ["4", "", ""]]
    ours, theirs = [], []
    for chosen in rng.integers(4, size=(2, 50)):
        theirs.append(np.array([paths[k] for k in chosen], dtype=object))
        ours.append(np.array([[str(k) == [n for n in paths[c] if n][-1] for k in range(5)] for c in chosen]))
    found = hierarchical_precision_recall(ours[0], ours[1], PARENTS).micro
    assert found.precision[0] == pytest.approx(metrics.precision(theirs[0], theirs[1], average="micro"))
    assert found.recall[0] == pytest.approx(metrics.recall(theirs[0], theirs[1], average="micro"))


def test_evaluation_scores_every_level():
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
    assert summary["hierarchical recall"] == pytest.approx(80 / 140)  # 80 parents of 80, 0 leaves of 60
    assert summary["hierarchical precision"] == pytest.approx(80 / 140)  # 20 leaves are unknown
    assert summary["micro recall"] == 0
    levels = [name for name in summary if name.startswith("level")]
    assert levels == ["level 1, macro average precision", "level 2, macro average precision"]
    theirs = dict(zip(result.summary()["measure"], result.summary()["logistic regression"], strict=True))
    assert theirs["level 1, macro average precision"] > 0.9
    assert result.tables()["summary"]["measure"][-1] == "hierarchical F1"
    show_evaluation(result)
    assert "level 2" in str(scorecard(result).summary)


def test_flat_topics_have_no_rows_of_trees():
    X = sp.csr_array(np.kron(np.eye(2), np.ones((6, 3))))
    result = evaluate(X, supervise(["a"] * 6 + ["b"] * 6, 12), lambda X, left, rows: 2 * [np.ones((len(rows), 2))])
    assert not [name for name in result.summary()["measure"] if "level" in name or "hierarchical" in name]
    assert "level" not in result.table()
