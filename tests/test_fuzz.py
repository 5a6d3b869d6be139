"""A seeded sample of each fuzzer in tests/fuzz; `make fuzz` runs all rounds."""

import sqlite3

import pytest

from tests.fuzz import sockets
from tests.fuzz._rounds import isolated

pytestmark = pytest.mark.slow


def wrong(name, rounds, first=0):
    """Problems of the rounds of a fuzzer, which runs in its own process."""
    return [problem for _, problem in isolated(f"tests.fuzz.{name}", first, first + rounds) if problem]


@pytest.mark.slow
def test_forged_models_end_in_a_message():
    assert wrong("models", 60) == []


def test_fuzzed_topics_files_end_in_a_message():
    assert wrong("topics", 300) == []


def test_damaged_files_of_people_and_programs_end_in_a_message():
    assert wrong("files", 300) == []


@pytest.mark.slow
def test_fuzzed_command_lines_end_in_a_message():
    assert wrong("commands", 60) == []


@pytest.mark.slow
def test_raw_requests_never_give_a_500():
    pytest.importorskip("uvicorn")
    assert wrong("requests", 100) == []


@pytest.mark.slow
def test_slow_sockets_lock_nobody_out(tmp_path):
    pytest.importorskip("uvicorn")
    labels, errors, slowest, still_open, size = sockets.flood(500, tmp_path)
    assert (labels, errors) == (25, 0)
    assert slowest < 20  # a busy machine; without load it takes milliseconds
    assert still_open < 300
    assert size < 5_000
    with sqlite3.connect(tmp_path / "table.steer") as project:
        assert project.execute("SELECT count(*) FROM events WHERE state = 'permitted'").fetchone()[0] >= labels
    project.close()
