import numpy as np

from topicsteer.analysis.label_advice import label_effects
from topicsteer.analysis.topics import Topics
from topicsteer.labels.forms import supervise


def test_like_topics_take_effect_if_each_is_nearest_to_its_own_documents():
    supervision = supervise(["a", "b"], 2)
    H = np.array([[1.0, 0.2, 1, 1, 1], [0.2, 1, 1, 1, 1]])  # more like each other than like a few labelled documents
    W = np.eye(2)
    topics = Topics(("a", "b"), 2, np.array(list("vwxyz")), H, W, [0, 1], supervision.counts)
    few = np.array([[1.0, 0, 0, 0, 0], [0, 1, 0, 0, 0]])
    table = label_effects(topics, supervision, few)
    assert table["took effect"] == [True, True]
    assert label_effects(topics, supervision, few[::-1])["took effect"] == [False, False]


def test_a_topic_that_drifted_did_not_take_effect():
    supervision = supervise(["a", "b", None], 3)
    profiles = np.array([[1.0, 0, 0], [0, 1, 0]])
    H = np.array([[0.0, 0, 1], [0, 1, 0.1], [0.2, 0, 1]])  # a became what the free topic is
    W = np.array([[0.0, 0, 1], [0, 2, 0], [1, 0, 0]])
    topics = Topics(("a", "b", "free"), 2, np.array(["x", "y", "z"]), H, W, [0, 1, 2], supervision.counts)
    table = label_effects(topics, supervision, profiles)
    assert table["topic"] == ["a", "b"]
    assert table["documents"] == [1, 1]
    assert table["followed"] == [0.0, 1.0]
    assert table["from labels"] == [0.0, 1.0]
    assert table["drift"][0] == 1.0
    assert table["drift"][1] < 0.01
    assert table["took effect"] == [False, True]


def taken(others, own_terms, labelled=1):
    """A known topic in its labelled documents and in others, and four free topics in the rest of 101 documents."""
    W = np.zeros((101, 5))
    W[: 1 + others, 0] = 1.0
    W[np.arange(1 + others, 101), 1 + np.arange(100 - others) % 4] = 1.0
    H = np.zeros((5, 8))
    H[:, 0] = 1.0  # a term of all documents
    H[0, 1:4] = 1.0
    H[1:, 4:] = 2 * np.eye(4)
    supervision = supervise(dict.fromkeys(range(labelled), "a"), 101)
    vocabulary = np.array(["common", "motor", "blood", "robot", "rain", "wind", "snow", "hail"])
    topics = Topics(("a", "w", "x", "y", "z"), 1, vocabulary, H, W, range(101), supervision.counts)
    return label_effects(topics, supervision, np.array([[*own_terms, 0, 0, 0, 0]], dtype=float))


def test_a_topic_that_other_documents_took_over_did_not_take_effect():
    # Documents elsewhere are (1, 0, 0, 0, 1/2, 1/2, 1/2, 1/2). With the profile (1, 0, 0, 0, ...), cos(h, profile) is
    # 1/2, cos(h, elsewhere) 1/sqrt 8 and cos(profile, elsewhere) 1/sqrt 2, so the ratio is 2.
    table = taken(40, [1, 0, 0, 0])
    assert table["followed"] == [1.0]
    assert table["took effect"] == [False]
    assert table["reason"] == ["its terms come from other documents: motor, blood, robot"]


def test_a_topic_with_the_terms_of_its_labelled_documents_takes_effect():
    assert taken(40, [1, 1, 1, 1])["reason"] == [""]  # the ratio is 8
    assert taken(40, [1, 0.5, 0, 0])["reason"] == [""]  # the ratio is 3
    assert taken(40, [1, 0.3, 0, 0])["reason"] == ["its terms come from other documents: blood, robot"]  # 2.6
    assert taken(40, [0, 1, 0, 0])["reason"] == [""]  # nothing in common with documents elsewhere


def test_a_small_topic_is_not_taken_over():
    assert taken(8, [1, 0, 0, 0])["took effect"] == [True]  # 9 of 101 documents
    assert taken(12, [1, 0, 0, 0])["took effect"] == [False]  # 13 of 101


def test_a_topic_that_is_mostly_in_labelled_documents_is_not_taken_over():
    assert taken(40, [1, 0, 0, 0], labelled=20)["took effect"] == [False]  # 20 of 41
    assert taken(40, [1, 0, 0, 0], labelled=21)["took effect"] == [True]


def test_every_missing_tick_has_a_reason():
    supervision = supervise({0: "a", 1: "b"}, 3, topics=["a", "b", "c"])
    H = np.eye(3)
    W = np.array([[0.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    topics = Topics(("a", "b", "c"), 3, np.array(["x", "y", "z"]), H, W, range(3), supervision.counts)
    profiles = np.array([[1.0, 0, 0], [0, 0.1, 1], [0, 0, 0]])
    table = label_effects(topics, supervision, profiles)
    assert table["reason"] == [
        "only 0% of its labelled documents contain it",
        "another topic is more similar to its labelled documents",
        "it has no labelled documents",
    ]
    assert table["took effect"] == [False, False, False]
