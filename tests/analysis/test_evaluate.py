import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

from topicsteer.analysis.evaluation import FEWEST_RANDOM, evaluate, hidden_label_scores
from topicsteer.cli.terminal import show_evaluation
from topicsteer.labels.forms import forbid, supervise
from topicsteer.labels.supervision import assign_folds
from topicsteer.report.page import scorecard


def corpus(n=120, topics=4, seed=0):
    rng = np.random.default_rng(seed)
    which = rng.integers(0, topics, n)
    X = rng.random((n, 20)) * 0.2
    for i, k in enumerate(which):
        X[i, 5 * k : 5 * k + 5] += rng.random(5)
    return sp.csr_array(X), [[str(k)] for k in which]


def nothing(X, left, rows):
    return np.zeros((len(rows), len(left.topics))), np.zeros((len(rows), len(left.topics)), dtype=bool)


def test_every_topic_keeps_labels_and_every_label_is_hidden_once():
    labels = [["a"], ["a", "b"], ["a"], ["b"], ["b"], ["c"], ["a", "d"], ["d"], []]
    truth = supervise(labels, 9).indicator()
    part = assign_folds(truth, 3, 0)
    assert part[5] == -1  # the only document of its topic
    assert part[8] == -1
    assert (part[[0, 1, 2, 3, 4, 6, 7]] >= 0).all()
    for fold in range(part.max() + 1):
        kept = truth[part != fold].toarray().sum(axis=0)
        assert (kept > 0).all()


def test_hidden_documents_are_scored_without_their_labels_and_put_in_order():
    labels = [["a"], ["b"], ["a"], [], ["b"], ["a"], ["b"], ["c"]]
    supervision = supervise(labels, 8)
    part = assign_folds(supervision.indicator(), 2, 0)
    calls = []

    def score(left, rows):
        assert not left.labelled[rows].any()
        assert left.labelled.sum() == 7 - len(rows)
        calls.append(rows.tolist())
        return np.stack([rows, -rows])[:, :, None] * np.ones(3), (rows[:, None] > 3) & np.ones(3, dtype=bool)

    scores, late = hidden_label_scores(supervision, part, score)
    rows = np.flatnonzero(part >= 0)
    assert sorted(row for rows in calls for row in rows) == rows.tolist() == [0, 1, 2, 4, 5, 6]
    assert len(calls) == 2
    assert scores.shape == (2, 6, 3)
    np.testing.assert_array_equal(scores[0], rows[:, None] * np.ones(3))
    np.testing.assert_array_equal(scores[1], -scores[0])
    np.testing.assert_array_equal(late, (rows[:, None] > 3) * np.ones(3))
    assert hidden_label_scores(supervision, np.full(8, -1), score) == []


@pytest.mark.slow
def test_a_perfect_and_a_blind_scorer():
    X, labels = corpus()
    truth = supervise(labels, 120)
    right = truth.indicator().toarray()
    seen = []

    def perfect(X, left, rows):
        assert not left.labelled[rows].any()
        seen.append(int(left.labelled.sum()))
        return right[rows], right[rows] > 0

    steps = []
    result = evaluate(X, truth, perfect, folds=4, progress=lambda *step: steps.append(step))
    assert steps == [(i + 1, 8) for i in range(8)]
    assert result.macro["topicsteer"] == result.micro["topicsteer"] == 1.0
    assert result.verdict == (
        "Scores of 120 documents (the whole corpus): precision 1.00 (0.95–1.00), recall 1.00 (0.95–1.00). "
        "topicsteer and logistic regression find the hidden labels equally well."
    )
    assert result.folds == 4
    assert all(80 <= count <= 100 for count in seen)
    assert set(result.summary()["topicsteer"]) == {1.0}
    blind = evaluate(X, truth, nothing)
    assert blind.macro["topicsteer"] < 0.4
    assert (
        "By average precision, logistic regression finds the hidden labels better than topicsteer on these documents. "
    ) in blind.verdict
    assert "is ahead in macro average precision, " in blind.verdict
    assert list(blind.summary()) == ["measure", "topicsteer", "logistic regression"]
    assert blind.table()["labelled"] == truth.counts.tolist()
    X = sp.csr_array(np.random.default_rng(5).random((120, 20)))
    best = "By average precision, topicsteer finds the hidden labels best."
    assert evaluate(X, truth, perfect).verdict.endswith(best)


def test_nothing_to_hide():
    X, _ = corpus()
    with pytest.raises(ValueError, match="label more documents"):
        evaluate(X, supervise({0: "a", 1: "b"}, 120), nothing)


@pytest.mark.slow
def test_too_few_labels_are_said_to_be_too_few(capsys):
    X, _ = corpus()
    few = evaluate(X, supervise({0: "tea", 1: "tea", 2: "[coffee]"}, 120), nothing)
    assert not few.judged
    assert few.verdict.endswith(
        "two labelled documents each, not all of them the same. Topics with enough labels so far: tea."
    )
    show_evaluation(few)
    assert capsys.readouterr() == ("", f"{few.verdict}\n")
    assert scorecard(few) is None

    more = evaluate(X, supervise({0: "tea", 1: "tea", 2: "[coffee]", 3: "milk", 4: "milk"}, 120), nothing)
    assert more.judged
    assert " Not judged, too few labels: [coffee]." in more.verdict
    assert more.verdict.startswith(
        "This is no estimate for the corpus: 0 hidden labels are known to be drawn at random"
    )
    show_evaluation(more)
    assert more.verdict in capsys.readouterr().err
    many = {i: f"single {i}" for i in range(4, 14)} | {0: "tea", 1: "tea", 2: "milk", 3: "milk"}
    assert evaluate(X, supervise(many, 120), nothing).verdict.count(", 2 more.") == 1


def test_measures_are_scikit_learns_on_the_hidden_documents():
    X, labels = corpus()
    labels = [[*names, "0"] if i % 5 == 0 else names for i, names in enumerate(labels)]
    labels[90:] = [[]] * 30
    supervision = supervise(labels, 120)
    guess = np.random.default_rng(1).random((120, 4))
    result = evaluate(X, supervision, lambda X, left, rows: (guess[rows], guess[rows] > 0.6))
    truth, guess = supervision.indicator().toarray()[:90], guess[:90]
    found = result.scores["topicsteer"]
    theirs = precision_recall_fscore_support(truth, guess > 0.6)
    np.testing.assert_allclose([found.measures()[name] for name in ("precision", "recall", "F1")], theirs[:3])
    np.testing.assert_allclose(
        found.measures()["average precision"], average_precision_score(truth, guess, average=None)
    )
    for average in ("macro", "micro"):
        p, r, f, _ = precision_recall_fscore_support(truth, guess > 0.6, average=average)
        whole = [found.summary()[f"{average} {name}"] for name in ("precision", "recall", "F1", "average precision")]
        np.testing.assert_allclose(whole, [p, r, f, average_precision_score(truth, guess, average=average)])


@pytest.mark.slow
def test_what_is_unknown_counts_for_nothing():
    X, labels = corpus()
    guess = np.random.default_rng(1).random((120, 4))

    def scorer(X, left, rows):
        return guess[rows], guess[rows] > 0.5

    only_yes = evaluate(X, supervise(labels, 120, complete=False), scorer)
    assert np.isnan(only_yes.macro["topicsteer"])
    assert only_yes.scores["topicsteer"].summary()["macro recall"] == pytest.approx(0.5, abs=0.2)
    assert "No hidden document is known to lack a topic" in only_yes.verdict
    assert only_yes.tables()["summary"]["topicsteer"][0] is None
    json.dumps(only_yes.tables(), allow_nan=False)

    # "0" is known to be absent from the documents of "1": only these count against it.
    absent = [["0"] if names == ["1"] else [] for names in labels]
    some = evaluate(X, forbid(supervise(labels, 120, complete=False), absent), scorer)
    ours = some.scores["topicsteer"]
    assert ours.two_sided.tolist() == [True, False, False, False]
    rows = [i for i, names in enumerate(labels) if names[0] in "01"]
    truth = [labels[i] == ["0"] for i in rows]
    expected = average_precision_score(truth, guess[rows, 0])
    np.testing.assert_allclose(ours.measures()["average precision"], [expected, np.nan, np.nan, np.nan])
    assert some.macro["topicsteer"] == some.micro["topicsteer"] == pytest.approx(expected)


@pytest.mark.parametrize("drawn", [FEWEST_RANDOM - 1, 60])
def test_labels_that_the_model_chose_do_not_flatter(drawn):
    """The scorer knows chosen documents and fails on random ones, whose precision is printed with its interval."""
    X, labels = corpus(400)
    truth = supervise({i: names for i, names in enumerate(labels) if i < 300}, 400)
    random = np.arange(400) < drawn
    right = truth.indicator().toarray()
    guess = np.where(random[:, None], np.roll(right, 1, axis=1), right)
    steps = []

    def scorer(X, left, rows):
        assert left.labelled[drawn:300].all() or drawn < FEWEST_RANDOM
        return guess[rows], guess[rows] > 0

    found = evaluate(X, truth, scorer, random=random, progress=lambda *step: steps.append(step))
    ours = found.scores["topicsteer"].summary()
    if drawn < FEWEST_RANDOM:
        assert found.scope.startswith("This is no estimate for the corpus: 29 hidden labels are known to be drawn")
        assert ours["micro precision"] > 0.85
    else:
        assert found.scope.startswith("Scores of 60 documents (drawn at random): precision 0.00 (0.00–0.10), recall")
        assert ours["micro precision"] == 0
    assert found.verdict.startswith(found.scope)


def test_no_precision_of_an_open_world_without_labels_of_none():
    X, labels = corpus()
    labels[60:] = [[]] * 60
    right = supervise(labels, 120).indicator().toarray()
    scorer = lambda X, left, rows: (right[rows], right[rows] > 0)  # noqa: E731
    for given, precise in ((labels, False), ([*labels[:60], *[["(none)"]] * 6, *[[]] * 54], True)):
        found = evaluate(X, supervise(given, 120), scorer, open_world=True)
        assert np.isfinite(found.table()["precision"]).all() == np.isfinite(found.table()["F1"]).all() == precise
        assert np.isfinite(found.summary()["topicsteer"][2:4]).all() == precise
        assert np.isfinite(found.table()["recall"]).all()
        assert ("No precision is known" in found.scope) != precise
