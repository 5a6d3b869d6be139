"""Wilson's interval and MOVER: published examples, statsmodels, and the definition by bisection."""

import numpy as np
import pytest
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from tests.reference import score_interval
from topicsteer.analysis.survey_design import mover, wilson, z_value


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("count", "n"), [(0, 20), (1, 29), (15, 148), (81, 263), (29, 29), (500, 1000)])
def test_wilson_agrees_with_statsmodels(count, n, level):
    expected = proportion_confint(count, n, alpha=1 - level, method="wilson")
    np.testing.assert_allclose(wilson(count / n, n, level), expected, atol=1e-12)


# Newcombe (1998), Two-sided confidence intervals for the single proportion, Table I, method 3.
@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_published_examples(count, n, low, high):
    found = wilson(count / n, n)
    assert (round(float(found[0]), 4), round(float(found[1]), 4)) == (low, high)


@pytest.mark.parametrize(("share", "n"), [(0.03, 41.7), (0.3, 12.5), (0.999, 333.3)])
def test_wilson_with_a_fraction_of_documents_fulfils_its_definition(share, n):
    np.testing.assert_allclose(wilson(share, n), score_interval(share, n, z_value(0.95)), atol=1e-9)


def test_no_documents_leave_everything_open():
    low, high = wilson(np.array([0.2, 0.9]), 0)
    assert low.tolist() == [0, 0]
    assert high.tolist() == [1, 1]


# Newcombe (1998), Interval estimation for the difference between independent proportions, Table II, method 10.
@pytest.mark.parametrize(
    ("a", "n", "b", "m", "low", "high"),
    [
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (6, 7, 2, 7, 0.0582, 0.8062),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (10, 10, 0, 20, 0.6791, 1.0000),
    ],
)
def test_a_difference_gives_published_examples(a, n, b, m, low, high):
    shares, sizes = np.array([a / n, b / m]), np.array([n, m])
    value, *found = mover(shares, *wilson(shares, sizes), [1, -1])
    assert value == pytest.approx(a / n - b / m)
    np.testing.assert_allclose(found, [low, high], atol=6e-5)
    np.testing.assert_allclose(found, confint_proportions_2indep(a, n, b, m, method="newcomb", compare="diff"))


def test_mover_of_a_sum_of_normal_estimates_is_the_usual_interval():
    rng = np.random.default_rng(0)
    estimates, errors, c = rng.normal(size=5), rng.random(5), np.array([0.5, -1, 2, 0, 1])
    value, low, high = mover(estimates, estimates - 1.96 * errors, estimates + 1.96 * errors, c)
    half = 1.96 * np.sqrt(((c * errors) ** 2).sum())
    np.testing.assert_allclose([value, low, high], [c @ estimates, c @ estimates - half, c @ estimates + half])
