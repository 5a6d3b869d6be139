"""Comparisons of coders, against scikit-learn and by simulation."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, precision_score, recall_score

from topicsteer.analysis.agreement import MEASURES, compare, comparison_table, disagreements, people_of
from topicsteer.labels.coder import coder_of
from topicsteer.labels.forms import supervise

pytestmark = pytest.mark.slow

TOPICS = ["tea", "milk", "cake"]


def random_answers(seed, n=200, missing=0.3):
    generator = np.random.default_rng(seed)
    indicator = (generator.random((n, 3)) < 0.3).astype(float)
    indicator[generator.random(n) < missing] = np.nan
    return indicator


def named(yes):
    return np.where(yes, "tea", "(none)")


def test_values_equal_scikit_learn():
    truth, answers = random_answers(1), random_answers(2)
    found = compare(coder_of("gpt", answers, 200, TOPICS), people_of(supervise(truth, 200, topics=TOPICS)))
    both = ~np.isnan(truth[:, 0]) & ~np.isnan(answers[:, 0])
    for k, one in enumerate(found[:3]):
        y, f = truth[both, k], answers[both, k]
        assert (one.documents, one.labels, one.predicted) == (both.sum(), y.sum(), f.sum())
        assert one.precision.value == pytest.approx(precision_score(y, f), abs=1e-12)
        assert one.recall.value == pytest.approx(recall_score(y, f), abs=1e-12)
        assert one.kappa.value == pytest.approx(cohen_kappa_score(y, f), abs=1e-12)
        for measure in MEASURES:
            value, low, high = getattr(one, measure)
            assert low <= value <= high
    none = found[3]
    outside = (truth[both].sum(axis=1) == 0), (answers[both].sum(axis=1) == 0)
    assert none.topic == "(none)"
    assert none.kappa.value == pytest.approx(cohen_kappa_score(*outside), abs=1e-12)


def test_open_labels_do_not_count():
    """Labels that leave topics unknown are compared on the known ones only."""
    truth = supervise([["tea"], ["milk"], []], 3, topics=TOPICS, complete=False)
    tea, milk, _cake = compare(coder_of("gpt", ["tea", "tea", "tea"], 3, TOPICS), people_of(truth))
    assert (tea.documents, tea.labels, tea.predicted) == (1, 1, 1)
    assert (milk.documents, milk.labels, milk.predicted) == (1, 1, 0)
    assert np.isnan(milk.precision.value)
    assert milk.precision[1:] == (0, 1)


def test_weights_undo_a_choice_of_documents():
    """Documents with the topic are labelled four times as often; weights give the recall of the corpus."""
    generator = np.random.default_rng(0)
    n = 40_000
    y = generator.random(n) < 0.3
    f = np.where(generator.random(n) < 0.8, y, ~y)
    probability = np.where(f, 0.4, 0.1)
    drawn = generator.random(n) < probability
    people = people_of(supervise(np.where(drawn, named(y), None), n, topics=["tea"]))
    coder = coder_of("gpt", named(f), n, ["tea"])
    weighted = compare(coder, people, weight=np.where(drawn, 1 / probability, 0))[0]
    plain = compare(coder, people)[0]
    assert weighted.recall.value == pytest.approx(0.8, abs=0.02)
    assert plain.recall.value > 0.9
    true = cohen_kappa_score(y, f)
    assert weighted.kappa.low < true < weighted.kappa.high
    assert not plain.kappa.low < true < plain.kappa.high
    assert weighted.recall.high - weighted.recall.low > plain.recall.high - plain.recall.low


@pytest.mark.parametrize("right", [0.9, 0.7, 0.5])
@pytest.mark.parametrize("labels", [60, 300])
def test_precision_and_recall_are_covered(right, labels):
    generator = np.random.default_rng(7)
    share = 0.15
    true = {
        "precision": share * right / (share * right + (1 - share) * (1 - right)),
        "recall": right,
    }
    covered = {name: [] for name in true}
    for seed in range(120):
        y = generator.random(labels) < share
        f = np.where(generator.random(labels) < right, y, ~y)
        people = people_of(supervise(named(y), labels, topics=["tea"]))
        one = compare(coder_of("gpt", named(f), labels, ["tea"]), people, seed=seed)[0]
        for name, value in true.items():
            _, low, high = getattr(one, name)
            covered[name].append(low <= value <= high)
    assert min(map(np.mean, covered.values())) >= 0.93


def test_every_two_coders_are_compared():
    answers = {"gpt": ["tea", "milk", "tea"], "old": ["tea", "tea", None], "anna": [None, None, "milk"]}
    coders = [coder_of(name, given, 3, TOPICS) for name, given in answers.items()]
    table = comparison_table(coders, people_of(supervise(["tea", None, None], 3, topics=TOPICS)))
    pairs = dict.fromkeys(zip(table["coder"], table["against"], strict=True))
    people = [(name, "people") for name in answers]
    assert list(pairs) == [*people, ("gpt", "old"), ("gpt", "anna"), ("old", "anna")]
    assert len({len(column) for column in table.values()}) == 1
    row = table["coder"].index("anna")
    assert (table["documents"][row], table["kappa"][row], table["kappa_low"][row]) == (0, None, None)


def test_disagreements():
    people = people_of(supervise([["tea"], ["milk"], ["(none)"], ["tea"], []], 5, topics=TOPICS))
    coder = coder_of("gpt", ["milk", "tea", "tea", "tea", "tea"], 5, TOPICS)
    assert [(one.row, one.theirs, one.ours) for one in disagreements(coder, people)] == [
        (0, ("tea",), ("milk",)),
        (1, ("milk",), ("tea",)),
        (2, ("(none)",), ("tea",)),
    ]


def test_forbidden_labels_are_shown_as_such():
    states = np.array([[0, np.nan, np.nan]])
    [one] = disagreements(coder_of("gpt", ["tea"], 1, TOPICS), people_of(supervise(states, 1, topics=TOPICS)))
    assert one.theirs == ("not tea",)
