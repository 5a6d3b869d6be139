"""The study of printed numbers: its search for bare numbers, its truth, and its page."""

import numpy as np
import pytest

from experiments.honesty import __main__ as study
from experiments.honesty import page
from experiments.honesty.corpora import World
from experiments.honesty.figures import bare, figures, page_text, scores, shares_of
from experiments.honesty.states import STATES, Given, at_random, by_hand, fit

WORDS = {"tea": "leaves cup green", "rail": "train wagon station", "chess": "king queen rook"}


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 3, 240)
    texts = [" ".join(rng.choice(list(WORDS.values())[k].split(), 4)) for k in topic]
    Y = np.column_stack([topic == 0, topic == 1])
    return World("toy", texts, ["tea", "rail"], Y, (topic == 2)[:, None])


@pytest.mark.parametrize(
    "text",
    ["About 27 % of them have none", "tea 8.1%", "precision 0.92", "| tea | 0.5 |", "share 0.250 of 1.00"],
)
def test_a_bare_number_is_found(text):
    assert list(bare(text))


@pytest.mark.parametrize(
    "text",
    [
        "tea 8.1% (6.0–10.4%)",
        "precision 0.92 (0.76–0.98), recall 0.71 (0.54–0.83)",
        "tea 22.8% 15.5% 32.3% 2,500 50",
        "| tea | (all) | 22.8% | 15.5% | 32.3% | 2500 |",
        "| program | people | tea | 50 | 0.815 | 0.562 | 0.827 |",
        "50 of 2,500 (2.0%) documents had labels",
        "topicsteer 0.3.0 gives intervals of 95 %",
        "1,234 documents in 12 topics",
    ],
)
def test_intervals_and_facts_are_none(text):
    assert not list(bare(text))


def test_a_page_is_read_without_scripts_and_charts():
    text = page_text("<p>seen <b>1</b></p><script>0.5</script><svg><text>0.7</text></svg><tr><td>a</td></tr>")
    assert "seen" in text
    assert "0.5" not in text
    assert "0.7" not in text


def test_states_give_the_labels_that_they_say(world):
    rng = np.random.default_rng(0)
    given = by_hand(20)(world, rng)
    assert len(given.labels) == 20
    assert not given.chosen
    assert ["(none)"] not in given.labels.values()
    drawn = at_random(60)(world, rng)
    assert set(drawn.chosen.values()) == {"random"}
    assert all(own == world.labels(row) for row, own in drawn.labels.items())
    assert len(STATES) == 12


def test_truth_and_figures_of_a_model(world):
    given = at_random(60)(world, np.random.default_rng(1))
    model = fit(world, given, 0)
    found, _ = figures(world, given, model)
    shares = {figure.name: figure for figure in found if figure.kind == "share"}
    assert shares["tea"].truth == world.Y[:, 0].mean()
    assert shares["(none)"].truth == pytest.approx((~world.Y.any(axis=1)).mean())
    assert {"precision", "recall", "precision of a topic"} <= {figure.kind for figure in found}
    planted = model.findings.shares()
    planted.share[0, 0] = 0.9
    assert shares_of(world, planted)[0].value == 0.9


def test_labels_by_hand_give_no_figure(world):
    given = by_hand(20)(world, np.random.default_rng(2))
    model = fit(world, given, 0)
    found, texts = figures(world, given, model)
    assert found == []
    assert texts == []
    assert scores(world, Given(given.labels), model, model.evaluate()) == []


def test_the_page_counts_what_is_inside():
    good, bad = ["share", "tea", 0.2, 0.1, 0.3, 0.25], ["share", "tea", 0.2, 0.1, 0.3, 0.4]
    rows = [{"corpus": "a", "state": "names", "seed": 0, "figures": [good, good, good, bad], "bare": ["about 5 %"]}]
    text = page.text(rows, 1, "abc")
    assert "| share | 4 | 75.0 % | 0.200 |" in text
    assert "All 1 trials are done." in text
    assert "- `about 5 %` (1 times)" in text
    assert "**215 of 216 trials are not done.**" in page.text(rows, 216, "abc")


def test_the_committed_page_is_that_of_its_trials():
    rows = list(map(study.json.loads, (study.HERE / study.RESULTS).read_text().splitlines()))
    code = rows[0]["code"]
    assert {row["code"] for row in rows} == {code}
    planned = study.SEEDS * len(study.KNOWN) * len(STATES)
    assert (study.HERE / "README.md").read_text() == page.text(rows, planned, code)
