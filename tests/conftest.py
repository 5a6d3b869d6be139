"""Fixtures for all tests."""

import signal

import pytest
from problems import make_problem

collect_ignore = ["data"]  # files of other versions, with the scripts that made them


@pytest.fixture(autouse=True)
def python_handles_ctrl_c():
    """A shell may start the tests in the background, with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def problem():
    return make_problem()
