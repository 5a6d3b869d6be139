import math

import pytest

from topicsteer.analysis.evaluation import RANKED_BY, compare, too_few_labels

NAN = math.nan


def table(ours, rival, **other):
    columns = {"measure": [*RANKED_BY, "F1", "recall"], "topicsteer": ours, "logistic regression": rival}
    return columns | other


TOPICS = {"topic": ["a", "b"], "topicsteer": [0.9, 0.2], "logistic regression": [0.8, 0.3], "F1": [0.5, NAN]}


def test_a_baseline_that_is_ahead_somewhere_is_named():
    verdict = compare(table([0.9, 0.8, 0.8, 0.5], [0.7, 0.8, 0.7, 0.6]), TOPICS)
    assert " ".join(verdict) == (
        "By average precision, topicsteer finds the hidden labels best. Logistic regression is ahead in recall. "
        "Logistic regression is ahead in 1 of 2 topics."
    )


def test_a_baseline_that_wins_comes_first():
    verdict = compare(table([0.5, 0.5, 0.8, 0.5], [0.7, 0.8, 0.7, 0.5]), TOPICS | {"topicsteer": [0.9, 0.9]})
    assert " ".join(verdict).startswith("By average precision, logistic regression finds the hidden labels better")
    assert "macro average precision, micro average precision" in " ".join(verdict)
    assert "topics." not in " ".join(verdict)


def test_equal_scores_and_gaps():
    same = [0.5, 0.5, 0.5, NAN]
    verdict = compare(table(same, same), TOPICS | {"logistic regression": [NAN, NAN]})
    assert " ".join(verdict) == "topicsteer and logistic regression find the hidden labels equally well."


@pytest.mark.parametrize(("count", "end"), [(0, "best."), (2, ": t0, t1."), (8, "t6, t7."), (10, "t7, 2 more.")])
def test_topics_that_are_not_judged_are_named_or_counted(count, end):
    names = [f"t{k}" for k in range(count)]
    verdict = compare(table([0.9] * 4, [0.8] * 4), TOPICS | {"topicsteer": [1, 1]}, names)
    assert " ".join(verdict).endswith(end)


def test_only_recall_and_nothing_at_all():
    verdict = compare(table([NAN, NAN, NAN, 0.5], [NAN, NAN, NAN, 0.6]), TOPICS, ["tea"])
    assert " ".join(verdict).startswith("No hidden document is known to lack a topic")
    assert "ahead" not in " ".join(verdict)
    assert " ".join(verdict).endswith("too few labels: tea.")
    assert too_few_labels(["tea"]).endswith("Topics with enough labels so far: tea.")
