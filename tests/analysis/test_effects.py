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
    assert table["took effect"] == [False, True]


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
