"""The threshold for a goal: against a slow twin, scikit-learn, and known probabilities."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from topicsteer.analysis import goals
from topicsteer.analysis.goals import choose, recalibration


def world(rng, n, slope=1.0, shift=0.0, topics=4):
    """Memberships that are too sure, labels, and the probabilities that these have."""
    p = rng.beta(0.4, 1.2, (n, topics))
    chance = expit(shift + slope * logit(np.clip(p, 1e-6, 1 - 1e-6)))
    return p, (rng.random(p.shape) < chance).astype(float), chance


def slow_precision(hidden, labels, others, threshold):
    """The expected precision above a threshold, pair by pair, without bins."""
    used = hidden >= goals.FLOOR
    (a, b), _, _ = recalibration(hidden[used], labels[used])
    pairs = [p for p in others.ravel() if p >= threshold]
    return sum(1 / (1 + np.exp(-(a + b * np.log(p / (1 - p))))) for p in pairs) / len(pairs)


@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.6, -0.4)])
def test_precision_reaches_the_goal_in_nine_of_ten_runs(slope, shift):
    reached, recalls = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        hidden, labels, _ = world(rng, 200, slope, shift)
        others, _, truth = world(rng, 4000, slope, shift)
        goal = choose(hidden, labels, others, "precision", 0.85)
        accepted = others >= goal.threshold
        if goal.reached:
            reached.append(truth[accepted].mean() >= 0.85 - 0.005)
        found = choose(hidden, labels, others, "recall", 0.7)
        recalls.append(truth[others >= found.threshold].sum() / truth.sum() >= 0.7 - 0.005)
    assert len(reached) > 5
    assert np.mean(reached) >= 0.85
    assert np.mean(recalls) >= 0.85


def test_errors_that_remain_where_the_model_is_surest():
    promised = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        (hidden, labels, _), (others, _, _) = world(rng, 400), world(rng, 4000)
        labels *= rng.random(labels.shape) > 0.15  # at most 85 % of any predictions are right
        goal = choose(hidden, labels, others, "precision", 0.9)
        promised += goal.reached
        assert goal.precision < 0.95
    assert promised <= 1


def test_the_estimate_is_that_of_a_slow_twin(monkeypatch):
    monkeypatch.setattr(goals, "FLAWS", np.zeros(1))
    rng = np.random.default_rng(3)
    (hidden, labels, _), (others, _, _) = world(rng, 300, 0.6, -0.4), world(rng, 500, 0.6, -0.4)
    goal = choose(hidden, labels, others, "precision", 0.8)
    assert goal.precision == pytest.approx(slow_precision(hidden, labels, others, goal.threshold), abs=0.01)
    given = hidden[labels == 1]
    assert goal.recall == pytest.approx(np.mean([p >= goal.threshold for p in given]), abs=1e-9)


def test_recalibration_is_logistic_regression():
    rng = np.random.default_rng(0)
    p, y, _ = world(rng, 5000, 0.6, -0.4)
    used = p >= goals.FLOOR
    x = logit(p[used])
    keep = np.abs(x) < goals.EXTREME
    (a, b), covariance, evidence = recalibration(p[used][keep], y[used][keep])
    theirs = LogisticRegression(C=np.inf).fit(x[keep][:, None], y[used][keep])
    assert (a, b) == pytest.approx((theirs.intercept_[0], theirs.coef_[0, 0]), abs=0.01)
    assert np.linalg.eigvalsh(covariance).min() > 0
    assert evidence > recalibration(p[used][keep], y[used][keep], 0.3)[2]  # the labels have no flaw
    (a, b), *_ = recalibration(p[0, :1], y[0, :1])  # one label changes little
    assert (a, b) == pytest.approx((0, 1), abs=0.6)


def test_a_goal_out_of_reach_and_wrong_goals():
    rng = np.random.default_rng(1)
    hidden, labels, _ = world(rng, 30, 0.2, -1.0)
    goal = choose(hidden, labels, hidden, "precision", 0.99, doubt="Beware.")
    assert not goal.reached
    assert goal.sentence.startswith("A precision of 99% cannot be promised with these labels.")
    assert goal.sentence.endswith("from 30 documents whose labels were hidden. Beware.")
    with pytest.raises(ValueError, match=r"between 0 and 1, such as 0.9"):
        choose(hidden, labels, hidden, "recall", 1.5)
    with pytest.raises(ValueError, match="label some documents"):
        choose(hidden, np.full_like(labels, np.nan), hidden, "recall", 0.5)
    assert choose(hidden, labels, np.zeros((5, 4)), "precision", 0.9).low_precision == 0.0
