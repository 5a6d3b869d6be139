import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import calibration_curve
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

from topicsteer.metrics import average_precision, calibration, precision_recall


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
    hidden = calibration(truth, scores, known)
    assert hidden.pairs.sum() == known.sum()
    np.testing.assert_allclose(hidden.observed, calibration(truth[known][:, None], scores[known][:, None]).observed)


def test_calibration_is_scikit_learns():
    rng = np.random.default_rng(10)
    probabilities = rng.random((500, 3)) ** 2
    probabilities[0] = [0.0, 1.0, 0.2]  # both ends, and an edge of a bin
    truth = rng.random((500, 3)) < probabilities**1.5
    ours = calibration(truth, probabilities)
    right, said = calibration_curve(truth.ravel(), probabilities.ravel(), n_bins=15)
    np.testing.assert_allclose(ours.observed, right)
    np.testing.assert_allclose(ours.predicted, said)
    assert ours.error == pytest.approx(ours.pairs @ np.abs(right - said) / 1500)
    assert ours.claimed_error == pytest.approx(ours.pairs[1:] @ np.abs(right - said)[1:] / ours.pairs[1:].sum())


def test_calibration_by_hand():
    # Bin (0, .5] has 4 pairs with .25, and 1 of them is true. Bin (.5, 1] has 2 pairs with .9, and 1 of them is true.
    truth, said = [[1, 0], [0, 0], [1, 0]], [[0.25, 0.25], [0.25, 0.25], [0.9, 0.9]]
    found = calibration(truth, said, bins=2)
    assert found.pairs.tolist() == [4, 2]
    assert found.error == pytest.approx((4 * 0 + 2 * 0.4) / 6)
    assert found.claimed_error == pytest.approx(0.4)
    assert found.edges.tolist() == [0, 0.5, 1]
    assert calibration([[1, 0]], [[0.1, 0.2]], bins=4).pairs.tolist() == [2, 0, 0, 0]
    assert np.isnan(calibration(np.zeros((0, 2)), np.zeros((0, 2))).error)


def test_wrong_input_is_explained():
    with pytest.raises(ValueError, match="one column per topic"):
        average_precision(np.ones((2, 1)), np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"between 0 and 1, got 0 to 1\.5"):
        calibration([[1, 0]], [[1.5, 0]])
