"""The study of language models as coders."""

import json
import os

import numpy as np
import pytest

from experiments.coders import __main__ as study
from experiments.coders import page, trials

pytestmark = pytest.mark.skipif(not os.environ.get("TOPICSTEER_DATA"), reason="needs the corpora of the experiments")


def test_counts_of_answers_are_biased():
    given, found = trials.complaints("equal"), trials.counts("equal")
    assert len(given.texts) == 1000
    assert len(found) == 14
    assert given.shares == pytest.approx([0.2] * 5)
    accuracy, mean, largest = found["gpt_4o"]
    assert accuracy == pytest.approx(0.736, abs=5e-4)
    assert 0.01 < mean < largest < 0.15


def test_unequal_topics_are_parts_of_the_equal_ones():
    given = trials.complaints("unequal")
    assert [given.true.count(name) for name in given.topics] == [200, 150, 100, 70, 40]
    assert all(len(own) == 560 for own in given.answers.values())


def test_a_draw_has_an_interval_per_model_and_topic():
    found = trials.perform("unequal", 0)
    assert len(found) == 15
    values = np.array(list(found.values()))
    assert values.shape == (15, 5, 3)
    assert (values[:, :, 1] < values[:, :, 0]).all()
    assert (values[:, :, 0] < values[:, :, 2]).all()
    rows = [{"sizes": "unequal", "draw": 0, "found": found}]
    assert "**199 of 200 draws are not done.**" in page.text(rows, 100, "abc")


def test_the_committed_page_is_that_of_its_draws():
    rows = list(map(json.loads, (study.HERE / study.RESULTS).read_text(encoding="utf-8").splitlines()))
    code = rows[0]["code"]
    assert {row["code"] for row in rows} == {code}
    assert (study.HERE / "README.md").read_text(encoding="utf-8") == page.text(rows, study.DRAWS, code)
