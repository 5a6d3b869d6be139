from types import SimpleNamespace

import numpy as np

from topicsteer.guidance.discover import GroupTree
from topicsteer.guidance.open_world import free_topics


def test_adopted_groups_are_no_part_of_free_topics():
    # Groups 0 and 1 merge first, then 2 and 3.
    tree = GroupTree(np.array([[0, 1], [2, 3], [0, 2]]), np.array([0.1, 0.2, 0.9]), np.array([40.0, 10, 30, 20]))
    guide = SimpleNamespace(tree=tree, n_groups=4, n_known=2)
    assert free_topics(guide, 2, 200) == ((0, 1), (2, 3))
    assert free_topics(guide, 2, 200, adopted=[2, 3]) == ((0,), (1,))
    assert free_topics(guide, 1, 200, adopted=[1, 2]) == ((0, 3),)
    assert free_topics(guide, 4, 200, adopted=range(4)) == ()
    # Without the 50 documents of groups 2 and 3, half as many free topics are as large as the known ones.
    assert len(free_topics(guide, "auto", 200)) == 2
    assert len(free_topics(guide, "auto", 200, adopted=[2, 3])) == 1
