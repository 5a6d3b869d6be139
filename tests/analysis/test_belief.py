"""The belief of a model in one sentence."""

import numpy as np
import pytest
from problems import make_topics

from topicsteer.analysis.topics import believed


@pytest.mark.parametrize(
    ("columns", "labelled", "declared", "expected"),
    [
        (5, 20, None, "Some documents have none of your 3 topics. How many is not known: label 50 documents at random"),
        (5, 20, "open", "Some documents have none of your 3 topics. How many is not known"),
        (3, 20, "closed", "Every document has one of your 3 topics, as declared."),
        (3, 20, None, "Every document seems to have one of your 3 topics."),
        (3, 1, None, "Labels are too few to decide whether some documents have none of your 3 topics."),
        (3, 0, None, "Labels are too few to decide whether some documents have none of your 3 topics."),
    ],
)
def test_the_belief_names_no_share(columns, labelled, declared, expected):
    topics = make_topics(known=3, free=1)
    memberships = np.full((len(topics.W), columns), 0.25)
    object.__setattr__(topics, "memberships", memberships)
    object.__setattr__(topics, "labelled", np.full(3, labelled))
    found = believed(topics, declared)
    assert found.startswith(expected)
    assert "%" not in found
    drawn = believed(topics, declared, drawn=True)
    assert drawn == found or drawn.endswith("prevalence estimates how many, from labels that were drawn at random.")
