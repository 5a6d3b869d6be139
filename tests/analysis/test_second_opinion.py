"""Memberships with the answers of coders: better where they predict hidden labels, unchanged elsewhere."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from topicsteer.analysis import second_opinion
from topicsteer.analysis.second_opinion import combine

N, LABELLED = 2_000, 200
SHARES = [0.4, 0.2, 0.05]


def corpus(seed):
    generator = np.random.default_rng(seed)
    truth = (generator.random((N, 3)) < SHARES).astype(float)
    odds = generator.normal(2.0 * truth - 2.5, 1.2)
    return truth, 1 / (1 + np.exp(-odds)), generator


def answers(truth, right, generator):
    other = truth[generator.permutation(N)]
    return np.where(generator.random((N, 1)) < right, truth, other)


def joined(truth, guess, coders):
    pairs = [(own[:LABELLED], own[LABELLED:]) for own in coders]
    return combine(truth[:LABELLED], guess[:LABELLED], guess[LABELLED:], pairs)


def score(truth, found):
    return average_precision_score(truth[LABELLED:], found, average="macro")


@pytest.mark.parametrize("right", [1.0, 0.9, 0.7, 0.5])
def test_good_answers_help(right):
    truth, guess, generator = corpus(1)
    own = answers(truth, right, generator)
    found, useful = joined(truth, guess, [own])
    assert useful
    assert score(truth, found) > max(score(truth, guess[LABELLED:]), score(truth, own[LABELLED:])) - 1e-9


def test_random_answers_change_nothing():
    used = []
    for seed in range(10):
        truth, guess, generator = corpus(seed)
        found, useful = joined(truth, guess, [answers(truth, 0.0, generator)])
        used.append(useful)
        assert useful or np.array_equal(found, guess[LABELLED:])
    assert np.mean(used) <= 0.1


def test_a_coder_with_all_answers_turned_around_helps_too():
    truth, guess, generator = corpus(2)
    found, useful = joined(truth, guess, [1 - answers(truth, 0.9, generator)])
    assert useful
    assert score(truth, found) > score(truth, guess[LABELLED:]) + 0.1


def test_documents_without_an_answer_keep_their_memberships():
    truth, guess, generator = corpus(3)
    own = answers(truth, 0.9, generator)
    own[generator.random(N) < 0.5] = np.nan
    found, useful = joined(truth, guess, [own])
    missing = np.isnan(own[LABELLED:, 0])
    assert useful
    assert np.array_equal(found[missing], guess[LABELLED:][missing])
    assert not np.array_equal(found[~missing], guess[LABELLED:][~missing])


def test_unknown_labels_do_not_count():
    truth, guess, generator = corpus(4)
    own = answers(truth, 0.9, generator)
    labels = truth[:LABELLED].copy()
    labels[100:, 1] = np.nan
    found, useful = combine(labels, guess[:LABELLED], guess[LABELLED:], [(own[:LABELLED], own[LABELLED:])])
    assert useful
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 1)).all()


def test_two_coders_are_better_than_one():
    truth, guess, generator = corpus(5)
    first, second = (answers(truth, 0.7, generator) for _ in range(2))
    both, one = joined(truth, guess, [first, second])[0], joined(truth, guess, [first])[0]
    assert score(truth, both) > score(truth, one)


def test_weights_equal_scikit_learn():
    """The same logistic regression without a penalty, where no weight is at its bound."""
    truth, guess, generator = corpus(6)
    odds = np.log(guess / (1 - guess))
    evidence = np.where(answers(truth, 0.7, generator) == 1, 1.5, -0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(second_opinion, "RIDGE", 1e-12)
        ours = second_opinion._fit(truth, odds, [evidence])
    X = np.column_stack([odds.ravel(), evidence.ravel()])
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(X, truth.ravel())
    assert ours == pytest.approx([theirs.intercept_[0], *theirs.coef_[0]], abs=1e-5)
