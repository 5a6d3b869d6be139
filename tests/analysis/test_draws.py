"""Draws with known probabilities."""

import numpy as np
import pytest

from topicsteer.analysis.survey_design import EVEN, doubt_probabilities, draw


def test_each_document_is_drawn_with_its_probability():
    rng = np.random.default_rng(0)
    probability = doubt_probabilities(rng.random((60, 3)) ** 3, 20)
    counts = np.zeros(60)
    for _ in range(5000):
        rows = draw(probability, rng)
        assert len(np.unique(rows)) == 20
        counts[rows] += 1
    assert np.abs(counts / 5000 - probability).max() < 0.03


def test_the_probabilities_are_the_formula():
    p = np.random.default_rng(1).random((100, 4))
    share = p.mean(axis=0).clip(0, 0.5)
    doubt = np.sqrt((p * (1 - p) / (share * (1 - share))).sum(axis=1))
    expected = 10 * (EVEN / 100 + (1 - EVEN) * doubt / doubt.sum())
    np.testing.assert_allclose(doubt_probabilities(p, 10), expected)


@pytest.mark.parametrize("n", [1, 7, 50, 80])
def test_probabilities_sum_to_the_number_and_are_at_most_one(n):
    p = np.zeros((50, 2))
    p[:5] = 0.5
    found = doubt_probabilities(p, n)
    assert found.sum() == pytest.approx(min(n, 50))
    assert found.max() <= 1
    assert found.min() > 0


def test_documents_without_doubt_are_drawn_evenly():
    np.testing.assert_allclose(doubt_probabilities(np.zeros((10, 3)), 5), 0.5)
    assert draw(np.zeros(0), np.random.default_rng(0)).tolist() == []
