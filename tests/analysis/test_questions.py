import numpy as np

from topicsteer.analysis.documents_to_label import FEW, IN_A_ROW, MOST, questions

P = np.array([[0.9, 0.2], [0.55, 0.8], [0.3, 0.7], [0.05, 0.05], [0.8, 0.1]])
THRESHOLDS = np.array([0.5, 0.5])
NOTHING = np.zeros(2, dtype=np.int64)


def asked(yes=NOTHING, answers=NOTHING, finished=(), denied=None):
    done = np.isin(np.arange(len(P)), finished)
    found = questions(P, THRESHOLDS, done, denied or {}, np.asarray(yes), np.asarray(answers))
    return [(one.topic, one.rows.tolist()) for one in found]


def test_the_surest_documents_come_first_and_unlikely_ones_never():
    assert asked() == [(0, [0, 4, 1, 2]), (1, [1, 2, 0, 4])]


def test_after_three_sure_documents_every_second_one_is_near_the_threshold():
    """The surest documents alone teach little: a model confirms its own opinion."""
    p = np.linspace(0.99, 0.31, 18)[:, None]
    nothing = np.zeros(1, dtype=np.int64)
    order, rows = np.arange(18), []
    for answered in range(9):
        (found,) = questions(p, np.array([0.5]), np.isin(order, rows), {}, nothing, nothing + answered)
        rows.append(int(found.rows[0]))
    near = np.argsort(np.abs(p[:, 0] - 0.5), kind="stable")[:3].tolist()
    assert rows[:3] == [0, 1, 2]
    assert rows[3::2] == near
    assert rows[4::2] == [3, 4, 5]


def test_documents_near_the_threshold_come_first_once_a_topic_has_labels():
    assert asked(yes=[FEW, 0])[0] == (0, [1, 2, 4, 0])


def test_another_topic_comes_after_some_answers():
    assert asked(answers=[IN_A_ROW - 1, 0])[0][0] == 0
    assert asked(answers=[IN_A_ROW, 0])[0][0] == 1


def test_an_answered_question_does_not_come_again():
    assert asked(finished=[0, 1], denied={0: [4]}) == [(0, [2]), (1, [2, 4])]
    assert asked(finished=range(5)) == []


def test_only_the_first_topics_of_a_large_corpus():
    many = np.full((MOST, 3), 0.6)
    zero = np.zeros(3, dtype=np.int64)
    found = questions(many, np.full(3, 0.5), np.zeros(MOST, dtype=bool), {}, zero, zero)
    assert [one.topic for one in found] == [0]
