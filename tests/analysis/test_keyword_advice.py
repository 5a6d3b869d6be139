import numpy as np

from topicsteer.analysis.label_advice import proposed_keywords
from topicsteer.analysis.topics import Topics
from topicsteer.labels.codebook import Codebook

WORDS = np.array(["beans", "cup", "leaves", "roast", "tea"], dtype=object)
H = np.array([[0.0, 0.9, 0.8, 0, 1.0], [1.0, 0.8, 0, 0.7, 0], [0, 0, 0, 0, 0]])


def test_terms_of_a_topic_are_proposed():
    topics = Topics(("tea", "coffee", "chess"), 3, WORDS, H, np.ones((1, 3)), ["a"], np.zeros(3, np.int64))
    words = {"tea": ["cup"], "coffee": ["Roast", "cup", "unknown"]}
    book = Codebook.of_names(["tea", "coffee", "chess"], keywords=words, banned={"tea": ["beans"]})
    assert proposed_keywords(topics, book) == {"tea": ["leaves"], "coffee": ["beans"], "chess": []}
    assert proposed_keywords(topics, Codebook.of_names(["tea", "coffee", "chess"]), 1)["coffee"] == ["beans"]
