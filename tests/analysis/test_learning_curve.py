import numpy as np
import pytest

from topicsteer.analysis.label_advice import extrapolate
from topicsteer.labels.forms import forbid, supervise
from topicsteer.labels.supervision import growing_subsets


def test_thinned_labels_grow_and_every_topic_keeps_one():
    rng = np.random.default_rng(3)
    names = np.array(list("abcdefgh"))
    labels = [
        sorted({"a", *rng.choice(names[1:], rng.integers(1, 3))}) if rng.random() < 0.7 else [] for _ in range(200)
    ]
    labels[0] = ["i", "j"]
    supervision = forbid(supervise(labels, 200), [["a"] if not own else [] for own in labels])
    parts = list(growing_subsets(supervision, (1 / 8, 1 / 4, 1 / 2, 1.0), 0))
    for share, some, more in zip((1 / 8, 1 / 4, 1 / 2), parts, parts[1:], strict=False):
        assert (some.counts > 0).all()
        assert (more.labelled | ~some.labelled).all()
        assert some.labelled.sum() == pytest.approx(share * 200, abs=8)
        assert (some.pattern[some.labelled] == supervision.pattern[some.labelled]).all()
    assert (parts[-1].pattern == supervision.pattern).all()


@pytest.mark.slow
@pytest.mark.parametrize("power", [0.2, 0.5, 1.0])
def test_extrapolation_of_power_laws(power):
    n = np.array([20, 40, 80, 160])
    rng = np.random.default_rng(0)
    gains, errors = [], []
    for _ in range(50):
        again = 0.9 - n**-power + rng.normal(size=(10, 4)) * 0.01 / 3  # jackknife copies of points with error 0.01
        gain, error = extrapolate(n, again.mean(axis=0) + rng.normal(size=4) * 0.01, again, 240)
        gains.append(gain)
        errors.append(error)
    true = 240**-power - 360**-power
    assert abs(np.mean(gains) - true) < 0.01
    assert np.mean(np.abs(np.array(gains) - true) <= 2 * np.array(errors)) >= 0.85
    assert min(gains) >= 0


def test_a_flat_or_falling_curve_promises_nothing():
    n, falling = np.array([20, 40, 80, 160]), np.array([0.8, 0.79, 0.78, 0.77])
    assert extrapolate(n, falling, np.tile(falling, (10, 1)), 160)[0] == 0
    high = np.array([0.7, 0.8, 0.9, 0.995])
    assert extrapolate(n, high, np.tile(high, (10, 1)), 160)[0] == pytest.approx(0.005)
