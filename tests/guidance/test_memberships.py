"""Who has what: the one judge against its definition, document by document, in closed and open worlds and in a tree."""

import numpy as np
import pytest

from topicsteer.guidance.apply import FREE_THRESHOLD, Memberships
from topicsteer.labels.forest import FLAT, Forest

# Topic 1 is below topic 0, and topic 2 below topic 1; topic 3 stands alone.
TREE = Forest((-1, 0, 1, -1))


def drawn(known, free, forest=FLAT, seed=0):
    """Memberships with many zeros and ties, and thresholds; no topic of a tree exceeds its parent."""
    rng = np.random.default_rng([known, free, seed])
    P = rng.integers(0, 11, (400, known + free + 1)) / 10 * (rng.random((400, known + free + 1)) < 0.6)
    thresholds = rng.uniform(0.25, 0.9, known)
    if not forest.flat:
        P[:, :known], thresholds = forest.raised(P[:, :known]), forest.lowered(thresholds)
    return P.astype(np.float32), thresholds


def known_of(p, thresholds):
    return {k for k, least in enumerate(thresholds) if p[k] >= least}


def deepest_of(has, forest):
    return {k for k in has if not any(below in has for below in (() if forest.flat else forest.descendants(k)))}


def slow_has(p, thresholds, open_world):
    """Known topics at their thresholds; in an open world, free topics only without a known one."""
    has = known_of(p, thresholds)
    if has and open_world:
        return has
    return has | {k for k in range(len(thresholds), len(p) - 1) if p[k] >= FREE_THRESHOLD}


def slow_main(p, thresholds, open_world, forest):
    """The strongest of the deepest known topics, else a free topic or none; in a closed world the strongest of all."""
    has, none = sorted(deepest_of(known_of(p, thresholds), forest)), len(p) - 1
    if has:
        return max(has, key=lambda k: p[k])
    if open_world:
        free = [k for k in range(len(thresholds), none) if p[k] >= FREE_THRESHOLD]
        return max(free, key=lambda k: p[k], default=none)
    return int(np.argmax(p)) if p.any() else none


@pytest.mark.parametrize("open_world", [True, False], ids=["open", "closed"])
@pytest.mark.parametrize(
    ("known", "free", "forest"),
    [(4, 3, FLAT), (0, 3, FLAT), (3, 0, FLAT), (4, 3, TREE), (4, 0, TREE)],
    ids=["flat", "free only", "known only", "tree", "tree without free topics"],
)
def test_the_judge_follows_the_definition(known, free, forest, open_world):
    P, thresholds = drawn(known, free, forest)
    judged = Memberships(P, thresholds, open_world, forest)
    assert [set(np.flatnonzero(row)) for row in judged.has()] == [slow_has(p, thresholds, open_world) for p in P]
    assert judged.main().tolist() == [slow_main(p, thresholds, open_world, forest) for p in P]
    names = [f"topic {k}" for k in range(known)]
    for ancestors in (False, True):
        for p, found in zip(P, judged.decisions(names, ancestors=ancestors), strict=True):
            has = known_of(p, thresholds)
            wanted = has if ancestors else deepest_of(has, forest)
            assert found == [names[k] for k in sorted(wanted, key=lambda k: (-p[k], k))]


@pytest.mark.parametrize("forest", [FLAT, TREE], ids=["flat", "tree"])
def test_none_in_an_open_world_is_no_known_topic(forest):
    P, thresholds = drawn(4, 2, forest)
    judged = Memberships(P, thresholds, True, forest)
    assert judged.has_none.tolist() == [not known_of(p, thresholds) for p in P]
    assert (judged.main()[~judged.has_none] < 4).all()


def test_none_in_a_closed_world_is_a_label():
    P = np.array([[0.6, 0.0, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    judged = Memberships(P, np.array([0.5]), open=False)
    assert judged.has_none.tolist() == [False, False, True, False]
    assert judged.main().tolist() == [0, 1, 2, 2]
    assert judged.has().tolist() == [[True, False], [False, True], [False, False], [False, False]]


def test_known_topics_alone_are_enough_for_decisions():
    P, thresholds = drawn(3, 2)
    whole, part = Memberships(P, thresholds, True), Memberships(P[:, :3], thresholds, True)
    assert part.decisions("abc") == whole.decisions("abc")
    assert np.array_equal(part.has_known, whole.has_known)
