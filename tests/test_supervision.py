import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from topicsteer.supervision import FORBIDDEN, PERMITTED, UNKNOWN, supervise


def states(supervision):
    return supervision.patterns[supervision.pattern].tolist()


ABC = [[1, 0, 0], [-1, -1, -1], [0, 1, 1], [-1, -1, -1]]
NAN = float("nan")


@pytest.mark.parametrize(
    "y",
    [
        [["a"], [], ["b", "c"], None],
        [("a",), (), {"b", "c"}, []],
        ["a", None, ["c", "b"], NAN],
        np.array([["a"], [], ["b", "c"], None], dtype=object),
        {0: "a", 2: ["b", "c"]},
        {np.int64(0): ["a"], 2: ("c", "b")},
        pd.Series([["a"], [], ["b", "c"], None]),
        pl.Series([["a"], [], ["b", "c"], None]),
        pd.DataFrame(np.where(np.array(ABC) < 0, NAN, ABC), columns=["a", "b", "c"]),
        pl.DataFrame({"a": [1, None, 0, None], "b": [0, None, 1, None], "c": [0, None, 1, None]}),
    ],
    ids=lambda y: type(y).__module__.split(".")[0] + "." + type(y).__name__,
)
def test_every_form_means_the_same(y):
    supervision = supervise(y, 4)
    assert supervision.topics == ("a", "b", "c")
    assert states(supervision) == ABC
    assert supervision.labelled.tolist() == [True, False, True, False]
    assert supervision.counts.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "y",
    [
        [5, None, 7, -1],
        np.array([5, -1, 7, -1]),
        np.array([5.0, np.nan, 7.0, np.nan]),
        pd.Series([5, pd.NA, 7, pd.NA], dtype="Int64"),
        pd.Series([5, None, 7, None]),
        pl.Series([5, None, 7, None]),
        [np.int32(5), None, np.float32(7), -1],
    ],
)
def test_one_number_a_document(y):
    supervision = supervise(y, 4)
    assert supervision.topics == (5, 7)
    assert states(supervision) == [[1, 0], [-1, -1], [0, 1], [-1, -1]]


def test_strings_with_gaps():
    for y in (pd.Series(["x", None, "z"]), pd.Categorical(["x", None, "z"]), np.array(["x", "", "z"]), ["x", "", "z"]):
        assert supervise(y, 3).topics == ("x", "z")
        assert supervise(y, 3).pattern.tolist() == [1, 0, 2]


def test_indicator_knows_permitted_forbidden_and_unknown():
    y = np.array([[1, 0, np.nan], [np.nan, np.nan, np.nan], [np.nan, 0, np.nan], [0, 0, 0]])
    for form in (y, sp.csr_array(y), sp.csc_matrix(y), y.astype(object)):
        supervision = supervise(form, 4, topics=["a", "b", "c"])
        assert states(supervision) == [[1, 0, -1], [-1, -1, -1], [-1, 0, -1], [0, 0, 0]]
        assert supervision.labelled.tolist() == [True, False, True, True]
    assert supervise(y.astype(bool), 4).topics == (0, 1, 2)


def test_sparse_indicator_that_is_not_complete():
    y = sp.csr_array((np.array([1.0, 0.0]), np.array([0, 1]), np.array([0, 2, 2])), shape=(2, 3))
    assert states(supervise(y, 2, complete=False)) == [[1, 0, -1], [-1, -1, -1]]


def test_incomplete_labels_forbid_nothing():
    supervision = supervise([["a"], [], ["b"]], 3, complete=False)
    assert states(supervision) == [[1, -1], [-1, -1], [-1, 1]]
    assert supervision.permitted(3, free_in_labelled=True).all()


def test_names_keep_the_users_order_and_may_lack_labels():
    supervision = supervise(["b", None, "a"], 3, topics=["z", "b", "a"])
    assert supervision.topics == ("z", "b", "a")
    assert supervision.counts.tolist() == [0, 1, 1]
    assert states(supervision)[0] == [0, 1, 0]


def test_mixed_names_are_sorted_numbers_first():
    assert supervise([[2, "b"], ["a"], [1]], 3).topics == (1, 2, "a", "b")


def test_permitted_components():
    supervision = supervise([["a"], [], ["b"]], 3)
    with_free = supervision.permitted(3, free_in_labelled=True)[supervision.pattern]
    assert with_free.tolist() == [[True, False, True], [True, True, True], [False, True, True]]
    without = supervision.permitted(3, free_in_labelled=False)[supervision.pattern]
    assert without.tolist() == [[True, False, False], [True, True, True], [False, True, False]]


def test_documents_that_only_lack_topics_may_use_free_ones():
    y = np.array([[0, np.nan], [1, np.nan], [0, 0]])
    supervision = supervise(y, 3)
    mask = supervision.permitted(3, free_in_labelled=False)[supervision.pattern]
    assert mask.tolist() == [[False, True, True], [True, True, False], [False, False, True]]


def test_no_labels_at_all():
    supervision = supervise(None, 3)
    assert supervision.topics == ()
    assert not supervision.labelled.any()
    assert supervision.indicator().shape == (3, 0)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (["a", "b"], {}, r"labels for 2 documents, but X has 3"),
        (np.ones((2, 2)), {}, r"labels for 2 documents, but X has 3"),
        (sp.csr_array((2, 2)), {}, r"labels for 2 documents, but X has 3"),
        ({3: "a"}, {}, r"row 3, but the rows are the numbers 0 to 2"),
        ({"x": "a"}, {}, r"row 'x'"),
        (
            ["a", "d", None],
            {"topics": ["a", "b"]},
            r"row 1 has the label 'd', which is not one of the 2 topics \(a, b\)",
        ),
        (["sprot", None, None], {"topics": ["sport"]}, r"Did you mean 'sport'\?"),
        (None, {"topics": ["a", "b", "a"]}, r"names 'a' twice"),
        (np.array([[1, 0], [2, 0], [0, 0]]), {}, r"2 at row 1, column 0"),
        (np.array([["1", "x"]] * 3), {}, r"holds more than numbers"),
        (np.ones((3, 2)), {"topics": ["a"]}, r"2 columns, but 1 topics are named"),
        ([0.5, None, None], {}, r"row 0 has the label 0.5 \(float\)"),
        ([["a", object()], [], []], {}, r"labels are strings or integers"),
        ("abc", {}, r"no labels"),
        (7, {}, r"no labels"),
    ],
)
def test_bad_labels_say_what_and_where(y, options, message):
    with pytest.raises(ValueError, match=message):
        supervise(y, 3, **options)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=3), min_size=1, max_size=30), st.booleans())
def test_indicator_gives_back_the_labels(y, complete):
    supervision = supervise(y, len(y), complete=complete)
    indicator = supervision.indicator().toarray()
    for i, labels in enumerate(y):
        assert {supervision.topics[k] for k in np.flatnonzero(indicator[i])} == set(labels)
        state = supervision.patterns[supervision.pattern[i]]
        rest = state[indicator[i] == 0]
        expected = FORBIDDEN if labels and complete else UNKNOWN
        assert (rest == expected).all()
    assert supervision.counts.tolist() == indicator.sum(axis=0).tolist()
    assert (supervision.patterns[0] == UNKNOWN).all()
    assert ((supervision.patterns == PERMITTED).any(axis=1)[1:]).all()
