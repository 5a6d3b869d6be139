"""The stopping rule, on made scores and on real corpora with the measured gain from half as many labels more."""

import os
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from experiments.corpora import load_newsgroups, load_reuters
from topicsteer.analysis.label_advice import LITTLE, MORE, LabelCurve, label_curve, stopping_advice
from topicsteer.backends import as_rows
from topicsteer.guidance.features import Sample
from topicsteer.guidance.train import learn_guide
from topicsteer.labels.forms import supervise
from topicsteer.metrics import average_precision
from topicsteer.text import TextVectorizer


def test_without_a_curve_the_advice_is_to_label_more():
    for one in (None, replace(curve(0.0, 0.0), gain=np.nan)):
        found = stopping_advice(np.array([9, 9]), one, 18)
        assert not found.stop
        assert found.sentence == "Label more: the labels are too few to predict the gain from further ones."


def curve(gain, error):
    return LabelCurve((10.0, 20.0, 40.0), *[(0.5, 0.6, 0.7)] * 2, gain, error)


@pytest.mark.parametrize(
    ("gain", "error", "stop"), [(0.002, 0.003, True), (0.002, 0.02, False), (0.006, 0.001, False), (0.03, 0.01, False)]
)
def test_a_flat_curve_that_is_known_well_means_stop(gain, error, stop):
    found = stopping_advice(np.array([40, 20]), curve(gain, error), 60)
    assert found.stop == stop
    assert ("More labels will change little" in found.sentence) == stop
    assert f"30 more labelled documents would add about {gain:.3f}" in found.sentence


def test_topics_with_few_labels_need_more():
    found = stopping_advice(np.array([40, 3]), curve(0.001, 0.001), 43)
    assert not found.stop
    assert found.sentence.endswith("1 topics have fewer than 5 labels.")


def made_scores(quality):
    """Labels of 120 documents on two topics, and scores that get better with the number of labels."""
    rng = np.random.default_rng(0)
    which = rng.integers(0, 2, 120)
    supervision = supervise([["milk", "tea"][k] for k in which] + [None] * 10, 130)

    def score(left, rows):
        known = quality(left.labelled.sum())
        noise = np.random.default_rng(1).normal(size=(120, 2))[rows]
        return known * np.eye(2)[which[rows]] + noise

    return label_curve(supervision, score)


def test_the_curve_of_a_learner_that_is_done_and_of_one_that_is_not():
    done, learning = made_scores(lambda n: 9.0), made_scores(lambda n: n / 30)
    assert done.gain < LITTLE
    assert done.labelled == pytest.approx((10, 20, 40, 80), abs=1)
    assert min(done.macro) > 0.99
    assert learning.gain > LITTLE
    assert list(learning.macro) == sorted(learning.macro)
    assert label_curve(supervise(["tea", "milk"] * 4, 8), lambda left, rows: np.zeros((len(rows), 2))) is None


def reuters():
    """Stories on the five largest topics of Reuters: few labels are enough."""
    documents = load_reuters()
    sizes = Counter(topic for labels in documents.labels for topic in labels)
    largest = {topic for topic, _ in sizes.most_common(5)}
    labels = [[topic for topic in own if topic in largest] for own in documents.labels]
    rows = [i for i, own in enumerate(labels) if own]
    return [documents.texts[i] for i in rows], [labels[i] for i in rows]


def newsgroups():
    """20 Newsgroups: every label helps."""
    documents = load_newsgroups(remove=("headers",))
    return documents.texts, documents.labels


@pytest.mark.slow
@pytest.mark.skipif("TOPICSTEER_DATA" not in os.environ, reason="needs the public corpora")
@pytest.mark.parametrize(("load", "stop"), [(reuters, True), (newsgroups, False)])
def test_the_rule_stops_in_time_and_not_too_early(load, stop):
    texts, labels = load()
    chosen = np.random.default_rng(0).choice(len(texts), 2500, replace=False)
    texts, labels = [texts[i] for i in chosen], [list(labels[i]) for i in chosen]
    X = sp.csr_array(TextVectorizer().fit_transform(texts))
    truth = supervise(labels, len(texts)).indicator().toarray() > 0
    n, held = 300, slice(1500, None)
    features = Sample(as_rows(X), supervise(labels, len(texts))).features

    def learn(supervision, rows):
        guide = learn_guide(Sample(as_rows(X), supervision, given=features), world="closed")
        return guide.probabilities(X[rows])[:, : truth.shape[1]]

    def given(count):
        topics = supervise(labels, len(texts)).topics
        return supervise(dict(enumerate(labels[:count])), len(texts), topics=topics)

    before, after = (average_precision(truth[held], learn(given(m), held)) for m in (n, round(MORE * n)))
    gain = (after.macro + after.micro - before.macro - before.micro) / 2
    found = label_curve(given(n), learn)
    advice = stopping_advice(given(n).counts, found, n)
    assert (gain < LITTLE) == stop  # the measured truth
    assert advice.stop == stop
