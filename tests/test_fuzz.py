"""A seeded sample of each fuzzer in tests/fuzz; `make fuzz` runs all rounds."""

import pytest

from tests.fuzz._rounds import isolated


def wrong(name, rounds, first=0):
    """Problems of the rounds of a fuzzer, which runs in its own process."""
    return [problem for _, problem in isolated(f"tests.fuzz.{name}", first, first + rounds) if problem]


@pytest.mark.slow
def test_forged_models_end_in_a_message():
    assert wrong("models", 60) == []


@pytest.mark.slow
def test_fuzzed_command_lines_end_in_a_message():
    assert wrong("commands", 60) == []
