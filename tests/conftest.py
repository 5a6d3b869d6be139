"""Fixtures for all tests."""

import os
import signal

if "PYTEST_XDIST_WORKER" in os.environ:  # threads of BLAS in several processes wait for each other; before numpy
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from problems import make_problem

# Files that take longest, longest first. At the end, such a file would leave the other process without work.
LONG = [
    "tests/app/test_browser.py",
    "tests/test_docs.py",
    "tests/backends/test_dask.py",
    "tests/app/test_team_browser.py",
    "tests/app/test_map_browser.py",
    "tests/test_fuzz.py",
    "tests/test_examples.py",
    "tests/cli/test_commands.py",
    "tests/report/test_browser.py",
    "tests/model/test_larger.py",
    "tests/model/test_files.py",
    "tests/model/test_state.py",
    "tests/experiments/test_paper.py",
    "tests/app/workbench/test_worker.py",
    "tests/app/web/test_routes.py",
    "tests/guidance/test_guide.py",
    "tests/text/test_vectorizer.py",
    "tests/test_estimator.py",
]
collect_ignore = ["data"]  # files of other versions, with the scripts that made them


def pytest_configure(config):
    config.option.loadscopereorder = False  # otherwise xdist begins with the files that have most tests


def pytest_collection_modifyitems(items):
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(place)))


@pytest.fixture(autouse=True)
def python_handles_ctrl_c():
    """A shell may start the tests in the background, with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def problem():
    return make_problem()
