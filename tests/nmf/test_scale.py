"""X of an extreme scale is refused; ordinary data are not touched."""

import numpy as np
import pytest
from problems import make_problem

from topicsteer import TSNMF
from topicsteer.nmf.blocks import check_scale


@pytest.mark.parametrize("largest", [2.0**-21, 1e-5, 0.3, 1.0, 1e6, 2.0**40 * 0.99, 0.0])
def test_ordinary_data_are_accepted(largest):
    check_scale(largest)


@pytest.mark.parametrize("exponent", [-400, -22, 41, 300])
def test_the_message_says_by_which_factor_to_multiply(exponent):
    X, y, _ = make_problem()
    X.data /= X.data.max()
    with pytest.raises(ValueError, match=r"expected a value from 1e-6 to 1e12.*Multiply X by 2.0\*\*") as caught:
        TSNMF(6, random_state=0).fit(X * 2.0**exponent, y)
    repaired = X * 2.0**exponent * 2.0 ** int(str(caught.value).rsplit("**", 1)[1].rstrip("."))
    expected = TSNMF(6, random_state=0).fit(X / 2, y)
    assert np.array_equal(TSNMF(6, random_state=0).fit(repaired, y).components_, expected.components_)


def test_an_extreme_scale_is_refused_everywhere():
    X, y, _ = make_problem()
    X.data /= X.data.max()
    huge = X * 2.0**300
    fitted = TSNMF(6, tol=1e-4, max_iter=500, random_state=0).fit(X, y)
    for call in (
        lambda: TSNMF(6, alpha_W=0.1).fit(huge, y),
        lambda: TSNMF(6).fit(huge, y, penalties=np.ones((60, 6))),
        lambda: TSNMF(6).fit([huge, huge]),
        lambda: fitted.transform(huge),
        lambda: fitted.partial_fit(huge),
    ):
        with pytest.raises(ValueError, match=r"Multiply X by 2.0\*\*-301"):
            call()
