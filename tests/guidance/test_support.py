import numpy as np

from topicsteer.guidance.apply import NAME_EVIDENCE, NAME_LABELS, with_name_labels
from topicsteer.labels.forms import supervise
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN


def test_the_surest_documents_of_each_name_are_its_labels():
    n = 60
    groups = supervise({0: "group"}, n, topics=["tea", "milk", "group"])
    evidence = np.zeros((n, 2))
    evidence[:40, 0] = np.linspace(0.9, NAME_EVIDENCE + 0.01, 40)
    evidence[40:43, 1] = 0.8
    evidence[43:, 1] = NAME_EVIDENCE - 0.01  # not sure enough
    found = with_name_labels(groups, np.arange(n), evidence)
    states = found.patterns[found.pattern]
    assert states[0].tolist() == [FORBIDDEN, FORBIDDEN, PERMITTED]  # a document of a group stays there
    assert np.flatnonzero(states[:, 0] == PERMITTED).tolist() == list(range(1, 1 + NAME_LABELS))
    assert np.flatnonzero(states[:, 1] == PERMITTED).tolist() == [40, 41, 42]
    assert (states[43:] == UNKNOWN).all()


def test_a_topic_with_labels_gets_no_others():
    given = supervise({0: "group", 1: "tea"}, 9, topics=["tea", "milk", "group"])
    found = with_name_labels(given, np.arange(9), np.array([[0.9, 0.0]] * 5 + [[0.0, 0.9]] * 4))
    states = found.patterns[found.pattern]
    assert np.flatnonzero(states[:, 0] == PERMITTED).tolist() == [1]
    assert np.flatnonzero(states[:, 1] == PERMITTED).tolist() == [5, 6, 7, 8]
