"""Trees of topics: label states, masks and memberships follow the tree; every impossible tree has a message."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicsteer.labels.codebook import Codebook, Lineage, Topic
from topicsteer.labels.forest import Forest
from topicsteer.labels.forms import extend, forbid, supervise
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN


@st.composite
def forests(draw, largest=9):
    """Random forests; a topic may come before its parent."""
    n = draw(st.integers(1, largest))
    parents = [draw(st.integers(-1, k - 1)) for k in range(n)]
    order = draw(st.permutations(range(n)))
    found = [-1] * n
    for k, parent in enumerate(parents):
        found[order[k]] = -1 if parent < 0 else order[parent]
    return Forest(tuple(found))


def test_ancestors_and_descendants_are_the_two_sides_of_one_relation():
    @settings(max_examples=50, deadline=None)
    @given(forests())
    def check(forest):
        n = len(forest)
        below = {(k, a) for k in range(n) for a in forest.ancestors(k)}
        assert below == {(k, a) for a in range(n) for k in forest.descendants(a)}
        assert sorted(forest.order) == list(range(n))
        assert all(forest.order.index(a) < forest.order.index(k) for k, a in below)
        leaves = {k for k in range(n) if not forest.children[k]}
        assert set(forest.cuts[-1]) == leaves
        for cut in forest.cuts:
            assert not any((k, a) in below for k in cut for a in cut)
            assert all(set(cut) & {k, *forest.ancestors(k)} for k in leaves)

    check()


def test_closed_label_states_never_contradict_the_tree():
    @settings(max_examples=80, deadline=None)
    @given(forests(), st.data())
    def check(forest, data):
        n = len(forest)
        labels = data.draw(st.sets(st.integers(0, n - 1), min_size=1))
        complete = data.draw(st.booleans())
        given = np.full((1, n), FORBIDDEN if complete else UNKNOWN, dtype=np.int8)
        given[0, list(labels)] = PERMITTED
        state = forest.closed(given)[0]
        above = {a for k in labels for a in forest.ancestors(k)}
        below = {d for k in labels - above for d in forest.descendants(k)}
        for k in range(n):
            if k in labels | above:
                assert state[k] == PERMITTED
            else:
                assert state[k] == (UNKNOWN if k in below or not complete else FORBIDDEN)
        own = set(np.flatnonzero(forest.own(state[None])[0]).tolist())
        if complete:  # the mask: each label that has none below it, and everything below it
            assert own == (labels - above) | below
        assert (forest.closed(state[None]) == state).all()

    check()


def test_raised_memberships_and_lowered_thresholds_accept_parents_with_children():
    @settings(max_examples=50, deadline=None)
    @given(forests(), st.integers(0, 99))
    def check(forest, seed):
        rng = np.random.default_rng(seed)
        found = forest.raised(rng.random((20, len(forest))).astype(np.float32))
        thresholds = forest.lowered(rng.random(len(forest)))
        has = found >= thresholds
        assert (forest.with_ancestors(has) == has).all()
        assert (forest.with_ancestors(forest.deepest(has)) == has).all()
        for k, parent in enumerate(forest.parents):
            if parent >= 0:
                assert (found[:, parent] >= found[:, k]).all()

    check()


def test_memberships_below_a_label_are_conditional():
    forest = Forest((-1, 0, 1, -1))
    found = np.array([[0.5, 0.25, 0.125, 0.5]] * 3, dtype=np.float32)
    states = np.array([[1, -1, -1, 0], [1, 1, -1, 0], [-1, -1, -1, -1]], dtype=np.int8)
    now = forest.conditional(found, states)
    assert now.tolist() == [[0.5, 0.5, 0.25, 0.5], [0.5, 0.5, 0.5, 0.5], [0.5, 0.25, 0.125, 0.5]]


def test_impossible_trees_have_messages():
    with pytest.raises(ValueError, match="'a' and 'b' are below each other"):
        Codebook.of_names(["a", "b"], parents={"a": "b", "b": "a"})
    with pytest.raises(ValueError, match="'a' is its own parent"):
        Codebook.of_names(["a"], parents={"a": "a"})
    with pytest.raises(ValueError, match="puts 'a' under 'x', but 'x' is not one of the topics"):
        Codebook.of_names(["a"], parents={"a": "x"})
    with pytest.raises(ValueError, match="'a' has two parents, 'b' and 'c'"):
        Codebook.of_names(["a", "b", "c"], parents={"a": "b"}).with_parents({"a": "c"})
    with pytest.raises(ValueError, match="the parent of the topic 'a' is not one of the topics"):
        Codebook((Topic(1, "a", parent=7),))
    with pytest.raises(ValueError, match="which does not exist"):
        Forest((5,))


def test_merge_and_move_keep_the_tree_whole():
    names = ["sport", "ball", "tennis", "golf", "arts", "film"]
    book = Codebook.of_names(names, parents={"ball": "sport", "tennis": "ball", "golf": "sport", "film": "arts"})
    assert book.merge([0, 2]).parent_names == {"ball": "sport", "golf": "sport", "film": "arts"}
    assert book.merge([1, 4]).parent_names == {"tennis": "ball", "golf": "sport", "film": "ball"}
    assert book.merge([2, 5]).parent_names == {"ball": "sport", "golf": "sport", "tennis": "arts"}
    assert book.move(1, 4).parent_names["ball"] == "arts"
    assert book.move(1, None).forest == Forest((-1, -1, 1, 0, -1, 4))
    with pytest.raises(ValueError, match="below each other"):
        book.move(0, 2)
    assert Codebook.from_json(book.to_json()) == book


def test_labels_as_paths():
    lineage = Lineage(separator=">")
    found = supervise([["sport > tennis", "arts"], "sport", "a/b", "(none)", None], 5, lineage=lineage)
    assert found.topics == ("a/b", "arts", "sport", "sport>tennis")
    assert found.patterns[found.pattern].tolist() == [
        [0, 1, 1, 1],
        [0, 0, 1, -1],
        [1, 0, 0, 0],
        [0, 0, 0, 0],
        [-1, -1, -1, -1],
    ]
    rest = supervise(["sport>(None)", "sport>tennis", "sport"], 3, lineage=lineage)
    assert rest.topics == ("sport", "sport>tennis")
    assert rest.patterns[rest.pattern].tolist() == [[1, 0], [1, 1], [1, -1]]
    assert rest.permitted(2, False)[rest.pattern].tolist() == [[True, False], [False, True], [True, True]]
    with pytest.raises(ValueError, match="row 1 has the label '>b', a path in which a name is empty"):
        supervise(["a", ">b"], 2, lineage=lineage)
    assert supervise(["sport/tennis"], 1).topics == ("sport/tennis",)  # no separator, no path


def test_labels_with_parents():
    lineage = Lineage({"tennis": "sport", "golf": "sport"}, "/")
    found = supervise(["sport/tennis", "golf", "x"], 3, lineage=lineage)
    assert found.topics == ("sport", "golf", "tennis", "x")
    assert found.patterns[found.pattern].tolist() == [[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]]
    more = extend(found.topics, ["sport", "sport/polo"], 2, lineage=lineage)
    assert more.topics == (*found.topics, "sport/polo")
    assert more.patterns[more.pattern].tolist() == [[1, -1, -1, 0, -1], [1, 0, 0, 0, 1]]
    assert forbid(found, [[], [], ["sport"]], lineage).patterns[-1].tolist() == [0, 0, 0, 1]
    old = supervise(["tennis", "sport", "x", None], 4, lineage=lineage)
    wider = old.among((*old.topics, "polo"), True, Forest((-1, 0, 0, -1, 0)))
    assert wider.patterns[wider.pattern][:, -1].tolist() == [FORBIDDEN, UNKNOWN, FORBIDDEN, UNKNOWN]


def test_indicators_with_parents():
    lineage = Lineage({"tennis": "sport", "golf": "sport"})
    y = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 0], [np.nan, np.nan, np.nan]])
    found = supervise(y, 4, topics=["tennis", "sport", "x"], lineage=Lineage({"tennis": "sport"}))
    assert found.topics == ("tennis", "sport", "x")  # columns keep their order
    assert found.patterns[found.pattern].tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0], [-1, -1, -1]]
    found = supervise(y, 4, topics=["tennis", "golf", "x"], lineage=lineage)
    assert found.topics == ("tennis", "golf", "x", "sport")
    assert found.patterns[found.pattern].tolist() == [[1, 0, 0, 1], [0, 1, 0, 1], [0] * 4, [-1] * 4]
    pd = pytest.importorskip("pandas")
    found = supervise(pd.DataFrame(y[:3, [0, 2]], columns=["tennis", "x"]), 3, lineage=lineage)
    assert found.topics == ("sport", "tennis", "golf", "x")


def test_a_flat_forest_is_the_identity():
    flat, P = Forest((-1, -1)), np.array([[0.2, 0.9]])
    has = P > 0.5
    states = np.array([[1, 0]], dtype=np.int8)
    assert flat.flat
    assert not Forest((-1, 0)).flat
    assert all(rule(P) is P for rule in (flat.raised, flat.summed, flat.rest, flat.lowered, flat.top))
    assert flat.deepest(has) is has
    assert flat.with_ancestors(has) is has
    assert flat.conditional(P, states) is P
    assert flat.closed(states) is states
    assert Forest().sized(3) == Forest((-1, -1, -1))
    assert Forest((-1, 0)).sized(2) == Forest((-1, 0))
