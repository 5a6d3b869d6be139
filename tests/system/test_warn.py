"""Warnings name the line of the user's code."""

import contextlib
import warnings

import numpy as np
import pytest

from topicsteer import TSNMF, TopicModel
from topicsteer.system.files import locked

TEXTS = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 15
ZEROS = np.repeat([[1, 0], [0, 1], [0, 0], [0, 0], [0, 0], [0, 0]], 10, axis=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TopicModel(0).fit(TEXTS, ZEROS), "40 of the 60 rows of the indicator matrix are all 0"),
        (lambda: TSNMF(3).fit(ZEROS + 1.0, ZEROS), "40 of the 60 rows of the indicator matrix are all 0"),
    ],
)
def test_a_warning_names_the_line_of_the_caller(call, message):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert {warning.filename for warning in caught if message in str(warning.message)} == {__file__}


def test_context_managers_in_between_are_skipped(tmp_path, monkeypatch):
    from filelock import FileLock, Timeout

    waits = [0.0]

    def acquire(self, timeout=None):
        if waits:
            waits.pop()
            raise Timeout("lock")

    monkeypatch.setattr(FileLock, "acquire", acquire)
    with pytest.warns(UserWarning, match="Another program is writing") as caught, contextlib.ExitStack() as stack:
        stack.enter_context(locked(tmp_path / ".lock", tmp_path))
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TopicModel(0, topics=["tea", "1"]).fit(TEXTS, ["tea"] * 4 + [None] * 56), "Nothing ties these"),
        (lambda: TopicModel(0, keywords={"tea": ["zebra"]}).fit(TEXTS, ["tea"] * 4 + [None] * 56), "These words are"),
        (lambda: TSNMF(3, topics=["a", "b", "c"]).fit(ZEROS + 1.0, ["a", "b"] * 30), "No document is labelled with c"),
    ],
)
def test_a_warning_of_a_fit_names_the_line_of_the_caller(call, message):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert {warning.filename for warning in caught if message in str(warning.message)} == {__file__}
