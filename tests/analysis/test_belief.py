"""The belief of a model in one sentence."""

from types import SimpleNamespace

import numpy as np
import pytest

from topicsteer.analysis.topics import believed


@pytest.mark.parametrize(
    ("free", "end"),
    [
        (0, "topics."),
        (1, "topics. The free topic that you asked for overlaps with them."),
        (2, "topics. The 2 free topics that you asked for overlap with them."),
    ],
)
def test_free_topics_of_a_closed_world_are_counted_in_words(free, end):
    class Topics(SimpleNamespace):
        def __len__(self):
            return 3 + free

    topics = Topics(n_known=3, labelled=np.full(3, 20), open=True)
    assert believed(topics, False, None) == f"Every document seems to have one of your 3 {end}"
