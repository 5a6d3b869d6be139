"""The result does not depend on the scale of X, from 1e-300 to 1e300; ordinary data are not touched."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import make_problem

from topicsteer import TSNMF
from topicsteer.nmf.scale import HIGHEST, LOWEST, Scale


@settings(max_examples=40, deadline=None)
@given(exponent=st.floats(-300, 300), solver=st.sampled_from(["hals", "mu"]), init=st.sampled_from(["labels", "acol"]))
@pytest.mark.filterwarnings("ignore:The objective still fell")
def test_the_scale_of_x_does_not_matter(exponent, solver, init):
    X, y, _ = make_problem()
    scale = 10.0**exponent
    usual = {"solver": solver, "init": init, "random_state": 0, "max_iter": 150, "tol": 1e-6}
    small, large = TSNMF(6, **usual).fit(X, y), TSNMF(6, **usual).fit(X * scale, y)
    assert np.isfinite(large.components_).all()
    assert np.isfinite(large.document_topics_).all()
    assert large.components_.any(axis=1).all()
    assert large.reconstruction_err_ / scale == pytest.approx(small.reconstruction_err_, rel=1e-3)
    whole = small.document_topics_ @ small.components_
    largest = large.components_.max()
    again = large.document_topics_ @ (large.components_ / largest) * (largest / scale)
    np.testing.assert_allclose(again, whole, rtol=0, atol=0.02 * whole.max())
    whole = small.transform(X) @ small.components_
    again = large.transform(X * scale) @ (large.components_ / largest) * (largest / scale)
    np.testing.assert_allclose(again, whole, rtol=0, atol=0.02 * whole.max())


@pytest.mark.parametrize("exponent", [-140, -100, 100, 126])
def test_single_precision(exponent):
    X, y, _ = make_problem(dtype=np.float32)
    if exponent < -126:
        X.data = np.maximum(X.data, np.float32(2.0**-3))  # smaller ones would lose digits
    scaled = X.copy()
    scaled.data = np.ldexp(X.data / X.data.max(), exponent)
    fitted, plain = (
        TSNMF(6, max_iter=500, random_state=0).fit(scaled, y),
        TSNMF(6, max_iter=500, random_state=0).fit(X / X.data.max(), y),
    )
    assert fitted.components_.dtype == np.float32
    assert np.isfinite(fitted.components_).all()
    assert fitted.components_.any(axis=1).all()
    if exponent > -126:
        assert fitted.n_iter_ == plain.n_iter_
        assert fitted.reconstruction_err_ == pytest.approx(2.0**exponent * plain.reconstruction_err_, rel=1e-4)


def test_powers_of_two_beyond_the_range_give_the_same_digits():
    X, y, _ = make_problem()
    X.data /= X.data.max()
    one, two = (TSNMF(6, max_iter=500, random_state=0).fit(X * 2.0**exponent, y) for exponent in (-400, 300))
    assert np.array_equal(np.ldexp(one.components_, 700), two.components_)
    assert np.array_equal(one.document_topics_, two.document_topics_)
    seen = []
    TSNMF(6, max_iter=2, tol=0).fit(X * 2.0**100, y, callback=lambda i, objective, seconds: seen.append(objective))
    assert seen[0] > 2.0**190


@pytest.mark.parametrize("largest", [2.0 ** (LOWEST - 1), 1e-5, 0.3, 1.0, 1e6, 2.0**HIGHEST * 0.99, 0.0])
def test_ordinary_data_are_left_alone(largest):
    assert not Scale.of(largest)


def test_what_depends_on_the_scale_is_refused_with_the_factor(tmp_path):
    X, y, _ = make_problem()
    X.data /= X.data.max()
    huge = X * 2.0**300
    fitted = TSNMF(6, tol=1e-4, max_iter=500, random_state=0).fit(X, y)
    for call in (
        lambda: TSNMF(6, alpha_W=0.1).fit(huge, y),
        lambda: TSNMF(6).fit(huge, y, penalties=np.ones((60, 6))),
        lambda: TSNMF(6).fit([huge, huge]),
        lambda: fitted.transform(huge, penalties=np.ones((60, 6))),
        lambda: fitted.partial_fit(huge),
    ):
        with pytest.raises(ValueError, match=r"multiply X by 2.0\*\*-301"):
            call()
    with pytest.raises(ValueError, match="extreme scale"):
        TSNMF(6, max_iter=500, random_state=0).fit(huge, y).partial_fit(X)
    start = fitted.document_topics_, fitted.components_ * 2.0**300
    again = TSNMF(6, init=start, tol=0, max_iter=0).fit(huge, y)
    assert again.reconstruction_err_ == pytest.approx(fitted.reconstruction_err_ * 2.0**300, rel=1e-6)
