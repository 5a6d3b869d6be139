"""Seconds per stage."""

import time

import pytest

from topicsteer.system.threads import Stages


def test_seconds_add_up_and_calls_are_passed_on(monkeypatch):
    clock = iter([0.0, 1.0, 3.0, 6.0, 10.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    calls = []
    stages = Stages(lambda *given: calls.append(given), "terms")
    stages("terms", 5, 10, "")
    stages("guide", 0, None, "weights, fold 1 of 3")
    stages("guide", 0, None, "weights, fold 2 of 3")
    stages("fit", 1, 9, "objective 1")
    stages("fit", 2, 9, "objective 0.5")
    stages("guide", 0, None, "weights")
    assert stages.end() == {"terms": 1.0, "weights": 2.0 + 4.0, "fit": 3.0}
    assert len(calls) == 6
    assert calls[1] == ("guide", 0, None, "weights, fold 1 of 3")


def test_no_callback():
    stages = Stages(None, "terms")
    stages("fit", 0, None, "")
    assert sum(stages.end().values()) == pytest.approx(0, abs=1)
