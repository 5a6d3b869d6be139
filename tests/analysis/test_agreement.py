"""κ, α and their intervals, against scikit-learn, scipy and Krippendorff's published examples."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from topicsteer.analysis.agreement import agreement, cohen_kappa, effective_number, exact_interval, krippendorff_alpha

pytestmark = pytest.mark.slow

_ = np.nan
# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, sections A, B and C: one row per coder.
BINARY = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
NOMINAL = [[1, 1, 2, 2, 4, 3, 3, 3, 5, 4, 4, 1], [2, 1, 2, 2, 2, 3, 3, 3, 5, 4, 4, 4]]
MISSING = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]


def slow_alpha(answers):
    """α from the definition: all ordered pairs of answers inside documents, and across all answers."""
    units = [[v for v in row if v == v] for row in np.asarray(answers, float).tolist()]
    units = [unit for unit in units if len(unit) >= 2]
    pool = [value for unit in units for value in unit]
    seen = sum(Fraction(sum(a != b for a, b in permutations(unit, 2)), len(unit) - 1) for unit in units)
    by_chance = Fraction(sum(a != b for a, b in permutations(pool, 2)), len(pool) - 1)
    return float(1 - seen / by_chance)


@pytest.mark.parametrize(("data", "published"), [(BINARY, 0.095), (NOMINAL, 0.692), (MISSING, 0.743)])
def test_alpha_equals_krippendorffs_examples(data, published):
    found = krippendorff_alpha(np.transpose(data))
    assert found == pytest.approx(published, abs=5e-4)
    assert found == pytest.approx(slow_alpha(np.transpose(data)), abs=1e-12)


def test_alpha_equals_the_package_of_that_name():
    krippendorff = pytest.importorskip("krippendorff")
    generator = np.random.default_rng(3)
    for coders in (2, 3, 6):
        answers = generator.integers(0, 4, (50, coders)).astype(float)
        answers[generator.random(answers.shape) < 0.3] = np.nan
        theirs = krippendorff.alpha(reliability_data=answers.T, level_of_measurement="nominal")
        assert krippendorff_alpha(answers) == pytest.approx(theirs, abs=1e-9)
        assert krippendorff_alpha(answers) == pytest.approx(slow_alpha(answers), abs=1e-12)


@pytest.mark.parametrize("values", [2, 5])
def test_kappa_equals_scikit_learn(values):
    generator = np.random.default_rng(values)
    for _i in range(20):
        first, second = generator.integers(0, values, (2, 40))
        weight = generator.random(40)
        assert cohen_kappa(first, second) == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)
        theirs = cohen_kappa_score(first, second, sample_weight=weight)
        assert cohen_kappa(first, second, weight=weight) == pytest.approx(theirs, abs=1e-9)


def test_missing_answers_do_not_count():
    first, second = [1, 0, 1, np.nan, 0], [1, 1, np.nan, 0, 0]
    assert cohen_kappa(first, second) == pytest.approx(cohen_kappa_score([1, 0, 0], [1, 1, 0]))


@pytest.mark.parametrize("answers", [[[1, 1], [1, 1]], [[np.nan, 1], [1, np.nan]], np.empty((0, 2))])
def test_undefined_agreement_is_nan(answers):
    answers = np.asarray(answers, float)
    assert np.isnan(cohen_kappa(answers[:, 0], answers[:, 1]))
    assert np.isnan(krippendorff_alpha(answers))
    for measure in ("kappa", "alpha"):
        value, low, high = agreement(answers, measure)
        assert np.isnan(value)
        assert np.isnan(low) == (not len(answers) or bool(np.isnan(answers).any()))
        assert np.isnan(low) or -1 <= low < high <= 1


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="two coders or more"):
        krippendorff_alpha([1, 0, 1])
    with pytest.raises(ValueError, match="measure is 'pi'"):
        agreement([[1, 0]], "pi")
    with pytest.raises(ValueError, match="κ compares two coders"):
        agreement([[1, 0, 1]], "kappa")
    with pytest.raises(ValueError, match="one positive number per document"):
        cohen_kappa([1, 0], [1, 0], weight=[1, -1])


def test_perfect_agreement_of_few_documents_is_not_certain():
    few = agreement([[1, 1], [0, 0]] * 3, "kappa")
    many = agreement([[1, 1], [0, 0]] * 300, "kappa")
    assert few.value == many.value == few.high == many.high == 1
    assert few.low < 0.6
    assert 0.97 < many.low < 1


def test_intervals_are_seeded_and_widen_with_unequal_weights():
    answers = np.random.default_rng(0).integers(0, 2, (100, 3)).astype(float)
    assert agreement(answers, seed=4) == agreement(answers, seed=4)
    assert agreement(answers, seed=4) != agreement(answers, seed=5)
    weight = np.where(np.arange(100) < 10, 20.0, 1.0)
    equal, unequal = agreement(answers), agreement(answers, weight=weight)
    assert unequal.high - unequal.low > 1.3 * (equal.high - equal.low)


@pytest.mark.parametrize("measure", ["kappa", "alpha"])
@pytest.mark.parametrize(("n", "share", "right"), [(60, 0.3, 0.9), (300, 0.05, 0.95), (300, 0.2, 0.7), (60, 0.5, 0.99)])
def test_intervals_cover(measure, n, share, right):
    """True κ and α (Scott's π in the limit) from the rates; of 300 samples, 92 % is over two standard errors below."""
    generator = np.random.default_rng(11)
    said = share * right + (1 - share) * (1 - right)
    chance = share * said + (1 - share) * (1 - said)
    if measure == "alpha":
        chance = ((share + said) / 2) ** 2 + (1 - (share + said) / 2) ** 2
    true = (right - chance) / (1 - chance)

    def covers(seed):
        truth = generator.random(n) < share
        answers = np.column_stack([truth, np.where(generator.random(n) < right, truth, ~truth)])
        _value, low, high = agreement(answers, measure, seed=seed)
        return low <= true <= high

    assert 0.92 <= np.mean([covers(seed) for seed in range(300)]) <= 0.995


@pytest.mark.parametrize(("k", "n"), [(0, 5), (5, 5), (3, 17), (299, 300)])
def test_exact_intervals_equal_scipy(k, n):
    theirs = binomtest(k, n).proportion_ci(0.95, method="exact")
    value, low, high = exact_interval(k, n)
    assert (value, low, high) == pytest.approx((k / n, theirs.low, theirs.high), abs=1e-9)


def test_effective_number():
    assert effective_number(np.full(7, 3.0), np.ones(7, dtype=bool)) == pytest.approx(7)
    assert effective_number([1.0], np.zeros(1, dtype=bool)) == 0
