"""Calibration and prior shift, each against scikit-learn or a slow twin."""

import numpy as np
import pytest
import reference
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from topicsteer.guidance.calibration import (
    Calibration,
    features,
    lead_over_others,
    pooled_regression,
    prior_shift,
    probabilities,
)


def pairs(n=4000, seed=0):
    """Features of pairs; about one in eight is positive."""
    rng = np.random.default_rng(seed)
    views = rng.normal(size=(n, 3)) * [1, 5, 0.2] + [0, 2, -1]
    given = rng.random(n) < expit(views @ [1.5, 0.2, -3] - 7)
    return views, given, rng.choice([1.0, 0.3], n)


def test_pooled_regression_is_scikit_learns_on_standardised_features():
    views, given, weight = pairs()
    views = np.column_stack([views, np.full(len(views), 7.0)])  # a constant feature
    mean, spread = views.mean(axis=0), np.append(views[:, :3].std(axis=0), 1)
    model = LogisticRegression(max_iter=1000).fit((views - mean) / spread, given, sample_weight=weight)
    found = pooled_regression(views, given, weight)
    assert found[3] == 0
    np.testing.assert_allclose(views @ found[:4] + found[4], model.decision_function((views - mean) / spread))


def test_a_sample_of_the_negative_pairs_counts_as_all_of_them(monkeypatch):
    views, given, weight = pairs(20_000)
    whole = pooled_regression(views, given, weight)
    asked = []

    def fit(self, X, y, sample_weight):
        asked.append((len(y), int(y.sum()), float(sample_weight[~y].sum()), float(sample_weight[y].sum())))
        assert len(np.unique(X, axis=0)) == len(X)  # no pair twice
        return original(self, X, y, sample_weight=sample_weight)

    original = LogisticRegression.fit
    monkeypatch.setattr(LogisticRegression, "fit", fit)
    sampled = pooled_regression(views, given, weight, most=8000)
    np.testing.assert_allclose(sampled, whole, rtol=0.1, atol=0.1)
    again = pooled_regression(views, given, weight, most=1000)  # fewer than there are positive pairs
    assert [number[:2] for number in asked] == [(8000, given.sum()), (given.sum() + 100, given.sum())]
    assert asked[0][2] == pytest.approx(weight[~given].sum(), rel=0.05)
    assert asked[0][3] == pytest.approx(weight[given].sum())
    np.testing.assert_array_equal(pooled_regression(views, given, weight, most=1000), again)


def test_a_calibration_is_the_weighted_sum_of_its_features():
    rng = np.random.default_rng(1)
    scores, weights, rarity, shift = (
        rng.normal(size=(20, 4)),
        rng.normal(size=6),
        rng.normal(size=4),
        rng.normal(size=4),
    )
    expected = features(scores, rarity) @ weights[:5] + weights[5] + shift
    np.testing.assert_allclose(Calibration(weights, rarity, shift).odds(scores), expected)
    single = scores.astype(np.float32)
    assert Calibration(weights, rarity, np.zeros(4, np.float32)).odds(single).dtype == np.float32


def test_the_lead_is_over_the_best_other_topic():
    scores = np.random.default_rng(2).normal(size=(30, 5))
    np.testing.assert_allclose(lead_over_others(scores), reference.lead(scores))
    assert lead_over_others(np.array([[2.0, 2.0, 1.0]])).tolist() == [[0, 0, -1]]
    assert lead_over_others(np.array([[2.0], [3.0]])).tolist() == [[2], [3]]  # one topic leads nothing


def test_prior_shift_is_its_slow_twin():
    rng = np.random.default_rng(3)
    odds, labelled = rng.normal(-2, 1, size=(200, 3)), rng.normal(size=(40, 3))
    np.testing.assert_allclose(prior_shift(odds, labelled), reference.prior_shift(odds, labelled))
    sure = prior_shift(np.full((5, 2), 100.0), np.full((5, 2), -100.0))
    assert np.isfinite(sure).all()
    assert prior_shift(np.empty((0, 2), np.float32), labelled[:, :2]).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_are_those_of_scipy(dtype):
    odds = np.array([[-np.inf, -200, -30, -1.5], [0, 3, 40, np.inf]], dtype=dtype)
    expected = expit(odds)
    np.testing.assert_allclose(probabilities(odds), expected, rtol=1e-6, atol=1e-30)
    single = odds.astype(np.float32)
    assert probabilities(single, out=single) is single
    np.testing.assert_allclose(single, expected, rtol=1e-6, atol=1e-30)
