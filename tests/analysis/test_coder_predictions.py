"""Answers of coders in shares: a good coder narrows intervals, and a bad one does no harm."""

import numpy as np
import pytest

from topicsteer.analysis.agreement import label_weights, predictor_of, treats_differently
from topicsteer.analysis.prevalence import Predictions, estimate
from topicsteer.analysis.survey_design import Sample, label_values
from topicsteer.labels.coder import coder_of
from topicsteer.labels.forms import supervise
from topicsteer.labels.supervision import Origin

N, TOPICS = 3_000, ["tea", "milk", "cake"]
SHARES = [0.5, 0.2, 0.05]


def corpus(generator):
    """Topics of all documents, and the predictions of a fair guide."""
    truth = generator.random((N, 3)) < SHARES
    guess = np.clip(0.2 + 0.4 * truth + generator.normal(0, 0.2, truth.shape), 0, 1)
    none = ~truth.any(axis=1)
    return np.column_stack([truth, none]), np.column_stack([guess, 1 - guess.max(axis=1)])


def answers(truth, right, generator):
    wrong = generator.random((N, 3)) >= right
    return coder_of("gpt", np.where(wrong, ~truth[:, :3], truth[:, :3]).astype(float), N, TOPICS)


def sample_of(truth, rows, origin=None):
    return Sample(rows, truth[rows].astype(float), origin or Origin.random(len(rows)), np.arange(len(rows)))


@pytest.mark.filterwarnings("ignore:.*of the indicator matrix are all 0")
@pytest.mark.parametrize(("right", "ratio"), [(1.0, 0.35), (0.9, 0.95), (0.7, 1.03), (0.5, 1.03)])
def test_widths_and_coverage(right, ratio):
    generator = np.random.default_rng(5)
    without, narrower, covered = [], [], []
    for _i in range(60):
        truth, guess = corpus(generator)
        rows = np.sort(generator.choice(N, 300, replace=False))
        sample = sample_of(truth, rows)
        own = Predictions(guess, guess[rows])
        more, note = predictor_of(answers(truth, right, generator), sample)
        assert more is not None, note
        alone, both = estimate(sample, [own]), estimate(sample, [own, more])
        without.append((alone.high - alone.low)[0, :3])
        narrower.append((both.high - both.low)[0, :3])
        covered.append((both.low[0] <= truth.mean(axis=0)) & (truth.mean(axis=0) <= both.high[0]))
    assert np.mean(narrower) / np.mean(without) <= ratio
    assert (np.mean(narrower, axis=0) / np.mean(without, axis=0)).max() <= max(ratio, 1.0) + 0.03
    assert 0.92 <= np.mean(covered) <= 1


def test_missing_answers_have_the_mean_of_their_topic():
    coder = coder_of("gpt", ["tea", "milk", "(none)", None] * 5, 20, TOPICS)
    sample = Sample(np.arange(8), np.zeros((8, 4)), Origin.random(8), np.arange(8))
    found, note = predictor_of(coder, sample)
    assert found.every[3].tolist() == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])
    assert found.every[:3].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    assert "has not seen the labels" in note


def test_a_coder_that_saw_the_labels_is_left_out():
    generator = np.random.default_rng(0)
    truth, _guess = corpus(generator)
    rows = np.sort(generator.choice(N, 300, replace=False))
    names = [[TOPICS[k] for k in np.flatnonzero(row[:3])] or ["(none)"] for row in truth]
    labelled = set(rows.tolist())
    only = [name if i in labelled else [] for i, name in enumerate(names)]
    lazy = [name if i in labelled else ["tea"] for i, name in enumerate(names)]
    for given in (only, lazy):
        found, note = predictor_of(coder_of("gpt", given, N, TOPICS), sample_of(truth, rows))
        assert found is None
        assert "as if it had seen the labels" in note
    some = [name if i % 3 else [] for i, name in enumerate(names)]
    found, _ = predictor_of(coder_of("gpt", some, N, TOPICS), sample_of(truth, rows))
    assert found is not None


def test_a_coder_without_answers():
    sample = Sample(np.arange(2), np.zeros((2, 4)), Origin.random(2), np.arange(2))
    found, note = predictor_of(coder_of("gpt", [None] * 5, 5, TOPICS), sample)
    assert found is None
    assert "no answers" in note


def test_weights_of_labels_by_their_origin():
    chosen = ["random 2"] * 3 + ["suggested"] * 2
    supervision = supervise(["tea"] * 5 + [None] * 15, 20, topics=TOPICS)
    rows = np.flatnonzero(supervision.labelled)
    sample = Sample(rows, label_values(supervision, rows), Origin.of({"chosen": chosen}, 5), rows)
    weight = label_weights(sample, 20)
    assert weight[:5].tolist() == pytest.approx([6, 6, 6, 1, 1])
    assert not weight[5:].any()


def test_a_coder_that_treats_all_documents_alike_is_not_left_out():
    """150 rare topics in 40 draws: means of a few documents are far from normal."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        values = (rng.random((3000, 150)) < 0.01).astype(float)
        rows = np.sort(rng.choice(3000, 300, replace=False))
        sample = Sample(rows, np.zeros((300, 1)), Origin.random(300), np.arange(300))
        assert not treats_differently(values, sample)
    values[rows, 0] = rng.random(300) < 0.1
    assert treats_differently(values, sample)
