import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

from topicsteer.metrics import average_precision, precision_recall


def weights(seed, n=50, d=6, share=0.4):
    rng = np.random.default_rng(seed)
    return rng.gamma(0.5, size=(n, d)) * (rng.random((n, d)) < share)


def test_average_precision_and_decisions_are_scikit_learns():
    truth, scores = weights(5) > 0, weights(6, share=0.9)
    truth[:, 2] = False
    result = average_precision(sp.csr_array(truth), scores)
    assert np.isnan(result.topics[2])
    kept = [0, 1, 3, 4, 5]
    assert result.macro == pytest.approx(average_precision_score(truth[:, kept], scores[:, kept], average="macro"))
    assert result.micro == pytest.approx(average_precision_score(truth[:, kept], scores[:, kept], average="micro"))
    nothing = average_precision(np.zeros((3, 2)), np.zeros((3, 2)))
    assert np.isnan([nothing.macro, nothing.micro]).all()
    said = scores > 0.3
    said[:, 4] = False
    theirs = precision_recall_fscore_support(truth, said, zero_division=0)
    ours = precision_recall(sp.csr_array(truth), said)
    np.testing.assert_allclose([ours.precision, ours.recall, ours.f1], theirs[:3])
    micro = precision_recall_fscore_support(truth, said, average="micro")
    np.testing.assert_allclose([ours.micro.precision[0], ours.micro.recall[0], ours.micro.f1[0]], micro[:3])


def test_pairs_that_are_not_known_do_not_count():
    rng = np.random.default_rng(9)
    truth, scores, known = rng.random((60, 4)) < 0.3, rng.random((60, 4)), rng.random((60, 4)) < 0.7
    ranked, decided = average_precision(truth, scores, known), precision_recall(truth, scores > 0.6, known)
    for k in range(4):
        rows = known[:, k]
        assert ranked.topics[k] == pytest.approx(average_precision_score(truth[rows, k], scores[rows, k]))
        theirs = precision_recall_fscore_support(truth[rows, k], scores[rows, k] > 0.6, average="binary")
        np.testing.assert_allclose([decided.precision[k], decided.recall[k], decided.f1[k]], theirs[:3])
    assert ranked.micro == pytest.approx(average_precision_score(truth[known], scores[known]))


def test_wrong_input_is_explained():
    with pytest.raises(ValueError, match="one column per topic"):
        average_precision(np.ones((2, 1)), np.ones((2, 2)))
