"""Shares: equal to the equations of PPI++, covering the truth, and never worse than labels alone."""

import numpy as np
import pytest

from tests.reference import ppi_mean
from topicsteer.analysis.groups import Groups
from topicsteer.analysis.prevalence import Predictions, as_if_random, estimate, positive_solution
from topicsteer.analysis.survey_design import Sample, wilson
from topicsteer.labels.supervision import Origin

pytestmark = pytest.mark.slow

N = 2000


def corpus(seed, share=(0.05, 0.2, 0.4), noise=1.0, bias=0.0, n=N):
    """True labels, and predictions with some noise and bias."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((n, len(share))) < share).astype(float)
    logit = 3 * truth - 2 + rng.normal(0, noise, truth.shape) + bias
    return rng, truth, 1 / (1 + np.exp(-logit))


def drawn(truth, guess, rows, columns=None, clusters=None):
    """The sample of some rows, and the predictions."""
    rows = np.sort(rows) if columns is None else rows
    origin = Origin.random(len(rows)) if columns is None else Origin.of(columns, len(rows))
    sample = Sample(rows, truth[rows], origin, np.arange(len(rows)) if clusters is None else clusters)
    return sample, [Predictions(guess, guess[rows])]


def test_point_estimates_are_those_of_prediction_powered_inference():
    rng, truth, guess = corpus(0)
    rows = np.sort(rng.choice(N, 300, replace=False))
    sample, predictions = drawn(truth, guess, rows)
    found = estimate(sample, predictions)
    others = np.setdiff1d(np.arange(N), rows)
    for k in range(3):
        weight = (1 - 300 / N) * found.slopes[0, k]
        expected = ppi_mean(truth[rows, k], guess[rows, k], guess[others, k], weight)
        assert found.share[0, k] == pytest.approx(expected, abs=1e-9)


def test_without_predictions_the_interval_is_wilsons_with_the_finite_population():
    rng, truth, _ = corpus(1)
    rows = np.sort(rng.choice(N, 400, replace=False))
    sample, _ = drawn(truth, truth, rows)
    found = estimate(sample, [], weights=np.ones(N))
    mean = truth[rows].mean(axis=0)
    np.testing.assert_allclose(found.share[0], mean)
    low, high = wilson(mean, 400 / (1 - 400 / N))
    np.testing.assert_allclose(found.low[0], low, atol=2e-3)
    np.testing.assert_allclose(found.high[0], high, atol=2e-3)
    np.testing.assert_allclose(found.worth[0], 1, atol=0.02)


def coverage(draw, draws=150, groups=None, **options):
    """Share of intervals that contain the truth, and the mean width relative to labels alone."""
    inside, ratio = [], []
    for seed in range(draws):
        rng, truth, guess = corpus(seed, **options)
        sample, predictions = draw(rng, truth, guess)
        found = estimate(sample, predictions, groups)
        share = truth.mean(axis=0)[None]
        if groups is not None:
            share = np.stack([truth[groups.codes == g].mean(axis=0) for g in range(len(groups.names))])
        low, high = (end[1:] if groups is not None else end for end in (found.low, found.high))
        inside.append((low <= share) & (share <= high))
        alone = estimate(sample, [], groups, np.ones(len(truth)))
        ratio.append(((high - low) / (alone.high - alone.low)[-len(share) :]).mean())
    return np.mean(inside), np.mean(ratio)


def at_random(rng, truth, guess):
    return drawn(truth, guess, rng.choice(len(truth), 200, replace=False))


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_random_labels_cover_and_are_narrower(bias):
    covered, ratio = coverage(at_random, bias=bias)
    assert 0.92 <= covered <= 0.98
    assert ratio < 0.8


def test_useless_predictions_do_no_harm():
    covered, ratio = coverage(lambda rng, truth, guess: at_random(rng, truth, rng.random(guess.shape)))
    assert 0.92 <= covered <= 0.98
    assert ratio < 1.03


def test_groups_cover():
    codes = np.random.default_rng(5).integers(4, size=N)
    covered, ratio = coverage(at_random, groups=Groups("g", ("a", "b", "c", "d"), codes))
    assert 0.93 <= covered <= 0.99
    assert ratio < 0.9


def by_probability(rng, truth, guess):
    """A random third, then documents with large predictions of the first topic three times as often."""
    first = rng.choice(N, 70, replace=False)
    rest = np.setdiff1d(np.arange(N), first)
    chance = np.where(guess[rest, 0] > 0.3, 0.12, 0.04)
    more = rest[rng.random(len(rest)) < chance]
    every = np.concatenate([first, more])
    probability = [None] * 70 + chance[np.isin(rest, more)].tolist()
    columns = {"chosen": ["random"] * 70 + ["doubt 2"] * len(more), "probability": probability}
    return drawn(truth, guess, every, columns)


def test_unequal_probabilities_cover():
    covered, _ = coverage(by_probability, draws=200)
    assert 0.925 <= covered <= 0.985


def likely(rng, truth, guess):
    """A random sixth, then documents with large predictions of the last topic nearly for sure."""
    first = np.sort(rng.choice(N, 100, replace=False))
    rest = np.setdiff1d(np.arange(N), first)
    chance = np.where(guess[rest, 2] > 0.6, 0.8, 0.05)
    inside = rng.random(len(rest)) < chance
    columns = {
        "chosen": ["random"] * 100 + ["doubt 2"] * int(inside.sum()),
        "probability": [None] * 100 + chance[inside].tolist(),
    }
    return drawn(truth, guess, np.concatenate([first, rest[inside]]), columns)


def test_large_probabilities_cover():
    covered, _ = coverage(likely, draws=200, noise=2.0)
    assert 0.925 <= covered <= 0.985


def test_labels_where_each_stands_for_few_documents_count_less():
    """Equal weights: the number of the rarer kind. Otherwise as many as a random draw of Kish's size would hold."""
    y = np.repeat([1.0, 0.0], [12, 88])[:, None]
    assert as_if_random(np.full((100, 1), 7.0), y.mean(axis=0)).tolist() == [12]
    weight = np.where(y == 1, 1.0, 10.0)
    frequency = (weight * y).sum(axis=0) / weight.sum(axis=0)
    effective = weight.sum() ** 2 / (weight**2).sum()
    assert as_if_random(weight, frequency) == pytest.approx(effective * frequency, abs=1e-6)
    assert as_if_random(weight, frequency)[0] < 2


def test_unequal_probabilities_taken_for_equal_ones_do_not_cover():
    def forgotten(rng, truth, guess):
        sample, predictions = by_probability(rng, truth, guess)
        unknown = Sample(sample.rows, sample.labels, Origin.random(len(sample.rows)), sample.clusters)
        return unknown, [Predictions(guess * 0, predictions[0].labelled * 0)]

    assert coverage(forgotten, draws=60, share=(0.05,))[0] < 0.8


def half_suggested(rng, truth, guess, first=True):
    """Half of the labels are documents with the largest predictions of the first topic, after or before the draw."""
    top = np.argsort(-guess[:, 0])
    if first:
        random = rng.choice(N, 120, replace=False)
        more = top[~np.isin(top, random)][:120]
    else:
        more = top[:120]
        random = rng.choice(top[120:], 120, replace=False)
    names = ["random"] * 120 + ["suggested 2"] * 120 if first else ["random 2"] * 120 + ["suggested"] * 120
    return drawn(truth, guess, np.concatenate([random, more]), {"chosen": names})


@pytest.mark.parametrize("first", [True, False])
def test_suggested_documents_stand_for_themselves_in_later_draws(first):
    covered, _ = coverage(lambda *corpus: half_suggested(*corpus, first=first))
    assert 0.925 <= covered <= 0.985


def test_weights_in_three_rounds():
    columns = {"chosen": ["random", "random", "suggested 2", "random 3", "suggested 3"]}
    sample = Sample(np.arange(5), np.ones((5, 1)), Origin.of(columns, 5), np.arange(5))
    found, varying = sample.weights(np.ones(5), 50.0, np.ones(5))
    assert found.sum() == pytest.approx(50)
    share = np.array([1 / (2 * 25 * 24), 1 / (46.5 * 45.5)])  # precision of the two draws
    share /= share.sum()
    np.testing.assert_allclose(found[:2], share[0] * 25 + share[1])
    np.testing.assert_allclose(found[2:], share[1] * np.array([1, 46.5, 0.5]))
    np.testing.assert_allclose(varying[:2], share[0] * np.sqrt(25 * 24))
    np.testing.assert_allclose(varying[2:], share[1] * np.array([0, np.sqrt(46.5 * 45.5), 0]))


def test_all_documents_labelled_leave_no_doubt():
    _, truth, guess = corpus(3)
    sample, predictions = drawn(truth, guess, np.arange(N))
    found = estimate(sample, predictions)
    np.testing.assert_allclose(found.share[0], truth.mean(axis=0))
    assert ((found.high - found.low)[0] < 1e-3).all()


def test_survey_weights_count_documents_several_times():
    rng, truth, guess = corpus(4)
    weight = rng.integers(1, 4, N)
    again = np.repeat(np.arange(N), weight)
    rows = np.sort(rng.choice(N, 300, replace=False))
    sample, predictions = drawn(truth, guess, rows)
    found = estimate(sample, predictions, weights=weight.astype(float))
    truth_again = truth[again].mean(axis=0)
    assert (np.abs(found.share[0] - truth_again) < 0.06).all()
    many, _ = drawn(truth[again], guess[again], np.flatnonzero(np.isin(again, rows)), clusters=None)
    clustered = Sample(many.rows, many.labels, many.origin, again[many.rows])
    same = estimate(clustered, [Predictions(guess[again], guess[again][many.rows])])
    np.testing.assert_allclose(found.share[0], same.share[0], atol=0.01)


def test_copies_in_one_cluster_are_worth_one_document():
    rng, truth, guess = corpus(5, n=500)
    rows = np.sort(rng.choice(500, 100, replace=False))
    once, predictions = drawn(truth, guess, rows)
    four = np.repeat(np.arange(500), 4)
    copies = np.flatnonzero(np.isin(four, rows))
    sample = Sample(copies, truth[four][copies], Origin.random(400), four[copies])
    found = estimate(sample, [Predictions(guess[four], guess[four][copies])])
    alone = estimate(
        Sample(copies, sample.labels, sample.origin, np.arange(400)), [Predictions(guess[four], guess[four][copies])]
    )
    single = estimate(once, predictions)
    np.testing.assert_allclose(found.share, single.share, atol=5e-3)
    assert ((found.high - found.low) > 1.6 * (alone.high - alone.low)).all()
    np.testing.assert_allclose(found.high - found.low, single.high - single.low, rtol=0.25)


def test_unknown_labels_of_one_topic_leave_the_others_as_they_are():
    rng, truth, guess = corpus(6)
    rows = np.sort(rng.choice(N, 300, replace=False))
    sample, predictions = drawn(truth, guess, rows)
    before = estimate(sample, predictions)
    labels = sample.labels.copy()
    labels[:100, 1] = np.nan
    found = estimate(Sample(rows, labels, sample.origin, sample.clusters), predictions)
    assert found.labels[0].tolist() == [300, 200, 300]
    np.testing.assert_allclose(found.share[0, [0, 2]], before.share[0, [0, 2]], atol=2e-3)
    assert found.low[0, 1] < truth[:, 1].mean() < found.high[0, 1]


def test_a_group_without_labels_is_open():
    rng, truth, guess = corpus(7)
    codes = np.zeros(N, dtype=np.int64)
    codes[:50] = 1
    rows = np.sort(rng.choice(np.arange(50, N), 200, replace=False))
    sample, predictions = drawn(truth, guess, rows)
    found = estimate(sample, predictions, Groups("g", ("many", "few"), codes))
    assert found.drawn[2].tolist() == [0, 0, 0]
    assert (found.low[2] == 0).all()
    assert (found.high[2] == 1).all()
    assert np.isfinite(found.share).all()


def test_two_predictors_are_never_worse_than_the_better_one():
    rng, truth, guess = corpus(8)
    rows = np.sort(rng.choice(N, 400, replace=False))
    sample, good = drawn(truth, guess, rows)
    useless = rng.random(guess.shape)
    one = estimate(sample, good)
    two = estimate(sample, [*good, Predictions(useless, useless[rows])])
    assert ((two.high - two.low)[0] < 1.03 * (one.high - one.low)[0]).all()
    other = np.clip(truth + rng.normal(0, 0.1, truth.shape), 0, 1)
    better = estimate(sample, [*good, Predictions(other, other[rows])])
    assert ((better.high - better.low)[0] < 0.7 * (one.high - one.low)[0]).all()


def test_weights_of_predictors_are_the_non_negative_least_squares():
    from scipy.optimize import nnls

    rng = np.random.default_rng(9)
    for _ in range(20):
        F, y = rng.normal(size=(50, 3)), rng.normal(size=50)
        expected = nnls(F, y)[0]
        np.testing.assert_allclose(positive_solution(F.T @ F, F.T @ y), np.minimum(expected, 1), atol=1e-6)


def test_labels_that_were_not_drawn_at_random_are_noticed():
    alarms = []
    for seed in range(40):
        rng, truth, guess = corpus(seed)
        sample, predictions = drawn(truth, guess, rng.choice(N, 200, replace=False))
        alarms.append(np.abs(estimate(sample, predictions).doubts).max() > 4)
        per_topic = [rng.choice(np.flatnonzero(truth[:, k]), 60, replace=False) for k in range(3)]
        sample, predictions = drawn(truth, guess, np.unique(np.concatenate(per_topic)))
        assert np.abs(estimate(sample, predictions).doubts).max() > 4
    assert sum(alarms) <= 1


def test_unknown_labels_widen_the_interval_as_if_fewer_were_drawn():
    _, truth, guess = corpus(3, n=200)
    some = truth.copy()
    some[10:, 0] = np.nan
    some[:4, 0] = 1
    every, predictions = drawn(some, guess, np.arange(200))
    found = estimate(every, predictions)
    assert found.high[0, 0] - found.low[0, 0] > 0.1  # ten known labels are no census
    np.testing.assert_allclose(found.low[0, 1], truth[:, 1].mean(), atol=1e-4)  # the other topics have one
    np.testing.assert_allclose(found.high[0, 1], truth[:, 1].mean(), atol=1e-4)


def test_one_cluster_is_never_narrower_than_independent_documents():
    _, truth, guess = corpus(4)
    rows = np.arange(60)
    alone = estimate(*drawn(truth, guess, rows))
    joint = estimate(*drawn(truth, guess, rows, clusters=np.zeros(60, dtype=np.int64)))
    assert (joint.high - joint.low > alone.high - alone.low).all()


def test_groups_and_rounds_without_weight_have_no_interval():
    _, truth, guess = corpus(5, n=300)
    sample, predictions = drawn(truth, guess, np.arange(100))
    weights = np.ones(300)
    weights[:50] = weights[200:] = 0
    groups = Groups("half", ("a", "b"), (np.arange(300) >= 200).astype(np.int64))
    found = estimate(sample, predictions, groups, weights)
    assert np.isnan(found.low[2]).all()
    assert np.isnan(found.high[2]).all()
    assert np.isfinite(found.high[:2]).all()
