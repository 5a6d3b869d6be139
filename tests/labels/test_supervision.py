import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from topicsteer.labels.codebook import Codebook
from topicsteer.labels.forms import extend, forbid, supervise
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, assign_folds, rarest_topics
from topicsteer.system.values import is_missing, label_name


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
        assert supervision.topics == ("a", "b", "c")
        assert states(supervision) == [[1, 0, -1], [-1, -1, -1], [-1, 0, -1], [0, 0, 0]]
        assert supervision.labelled.tolist() == [True, False, True, True]
    assert supervise(y.astype(bool), 4).topics == (0, 1, 2)


@pytest.mark.parametrize("values", [[1, -1, 0], [[0, 1], [np.nan, np.nan], [1, 0]]])
def test_anything_that_numpy_can_read(values):
    class ArrayLike:
        def __array__(self, dtype=None, copy=None):
            return np.array(values)

    assert states(supervise(ArrayLike(), 3)) == [[0, 1], [-1, -1], [1, 0]]


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
        (None, {"topics": ["a", "b", "c", "b"]}, r"names 'b' twice"),
        (np.array([[1, 0], [2, 0], [0, 0]]), {}, r"2 at row 1, column 0"),
        (sp.csr_array(np.array([[1.0, 0], [2, 0], [0, 0]])), {}, r"2 at a stored entry"),
        (np.array([["1", "x"]] * 3), {}, r"values other than numbers"),
        (np.ones((3, 2)), {"topics": ["a"]}, r"2 columns, but 1 topics are named"),
        ([0.5, None, None], {}, r"row 0 has the label 0.5 \(float\)"),
        ([["a", object()], [], []], {}, r"labels are strings or integers"),
        ("abc", {}, r"these are not labels"),
        (7, {}, r"these are not labels"),
    ],
)
def test_messages_about_bad_labels(y, options, message):
    with pytest.raises(ValueError, match=message):
        supervise(y, 3, **options)


def test_a_wrong_label_is_told_the_topics_and_the_nearest():
    with pytest.raises(ValueError, match="not one of") as error:
        supervise(["sporty"], 1, topics=["a", "b", "c", "sports", "d", "sport", "e", "f"])
    assert str(error.value) == (
        "row 0 has the label 'sporty', which is not one of the 8 topics (a, b, c, sports, d, sport, e, f). "
        "Did you mean 'sport'?"
    )
    with pytest.raises(ValueError, match=r"of the 9 topics \(0, 1, 2, 3, 4, 5, 6, 7, \.\.\.\)\.$"):
        supervise(["tea"], 1, topics=range(9))


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


# --- operations on a Supervision, compared with the same operations on its table of states

TABLES = hnp.arrays(np.int8, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.sampled_from([-1, 0, 1]))
small = settings(deadline=None, max_examples=60)


def read(table):
    supervision = supervise(np.where(table < 0, NAN, table), len(table), topics=list("abcd")[: table.shape[1]])
    assert states(supervision) == table.tolist()
    return supervision


@small
@given(TABLES, st.data())
def test_merged_topics_are_permitted_if_one_is_and_forbidden_if_all_are(table, data):
    d = table.shape[1]
    group = data.draw(st.lists(st.integers(0, d - 1), min_size=1, max_size=d, unique=True))
    merged = read(table).merge(group)
    kept = [k for k in range(d) if k not in group[1:]]
    assert merged.topics == tuple("abcd"[k] for k in kept)
    expected = table.copy()
    for row, states_of_row in zip(expected, table[:, group].tolist(), strict=True):
        row[group[0]] = 1 if 1 in states_of_row else 0 if set(states_of_row) == {0} else -1
    assert states(merged) == expected[:, kept].tolist()


@small
@given(TABLES, st.booleans())
def test_among_more_topics(table, complete):
    supervision = read(table)
    assert supervision.among(list(supervision.topics), complete) is supervision
    wider = ["new", *reversed(supervision.topics), "more"]
    found = supervision.among(wider, complete)
    assert found.topics == tuple(wider)
    for row, old in zip(states(found), table.tolist(), strict=True):
        assert row[1:-1] == old[::-1]
        assert row[0] == row[-1] == (FORBIDDEN if complete and 1 in old else UNKNOWN)


@small
@given(TABLES, st.data())
def test_what_is_newly_said_counts_where_it_is_known(table, data):
    n, d = table.shape
    old = read(table)
    if d > 1:  # merged topics leave equal patterns
        old = old.merge([0, 1])
    expected = [*states(old), [-1] * len(old.topics), [-1] * len(old.topics)]
    rows = data.draw(st.lists(st.integers(0, n + 1), max_size=6))
    said = data.draw(hnp.arrays(np.int8, (len(rows), len(old.topics)), elements=st.sampled_from([-1, 0, 1])))
    for row, state in zip(rows, said.tolist(), strict=True):
        expected[row] = [before if now == -1 else now for before, now in zip(expected[row], state, strict=True)]
    found = old.relabel(np.array(rows, dtype=np.int64), said, n + 2)
    assert states(found) == expected
    assert found.topics == old.topics
    assert (found.patterns[0] == UNKNOWN).all()
    assert len(set(map(bytes, found.patterns))) == len(found.patterns)
    assert (found.pattern.dtype, found.patterns.dtype) == (np.int32, np.int8)
    assert found.labelled.tolist() == [any(state != -1 for state in row) for row in expected]
    assert found.permits.tolist() == [1 in row for row in expected]


def test_labels_of_further_documents_may_name_new_topics():
    found = extend(["tea", "milk"], [["cup"], ["tea"], []], 3)
    assert found.topics == ("tea", "milk", "cup")
    assert states(found) == [[0, 0, 1], [1, 0, 0], [-1, -1, -1]]
    assert states(extend(["tea", "milk"], ["cup", "tea"], 2, complete=False)) == [[-1, -1, 1], [1, -1, -1]]
    ordered = extend(["tea"], ["cup", "tea"], 2, topics=["leaf", "tea", "cup"])
    assert ordered.topics == ("tea", "leaf", "cup")
    # The columns of an indicator without names are the known topics.
    assert extend(["tea", "milk"], np.array([[1, 0]]), 1).topics == ("tea", "milk")
    assert states(extend(["tea"], pd.DataFrame({"cup": [1], "tea": [NAN]}), 1)) == [[-1, 1]]
    assert extend(["tea"], np.array([[1, 0]]), 1, topics=["leaf", "cup"]).topics == ("tea", "leaf", "cup")


def test_forbidding_outdoes_labels_and_is_checked():
    supervision = supervise([["a", "b"], [], ["b"]], 3, complete=False)
    assert states(forbid(supervision, [["b"], {"a", "b"}, ()])) == [[1, 0], [0, 0], [-1, 1]]
    assert forbid(supervision, [[], [], []]) is supervision
    with pytest.raises(ValueError, match=r"row 1 has the label 'c', which is not one of the 2 topics \(a, b\)"):
        forbid(supervision, [[], ["c"], []])
    with pytest.raises(ValueError, match="labels for 1 documents, but X has 3"):
        forbid(supervision, [["a"]])


def test_hidden_parts_deal_out_the_documents_of_each_rarest_topic():
    truth = np.random.default_rng(0).random((80, 5)) < [0.5, 0.3, 0.2, 0.1, 0.0]
    truth[7] = [False, False, False, False, True]  # the only document of its topic
    counts = truth.sum(axis=0)
    rarest = rarest_topics(sp.csr_array(truth))
    for row, k in zip(truth, rarest, strict=True):
        assert k == (-1 if not row.any() else min(np.flatnonzero(row), key=lambda j: counts[j]))
    part = assign_folds(sp.csr_array(truth), 3, seed=1)
    assert (part[rarest == -1] == -1).all()
    assert part[7] == -1
    for k in range(4):
        sizes = np.bincount(part[rarest == k], minlength=3)
        assert len(sizes) == 3
        assert sizes.min() > 0
        assert np.ptp(sizes) <= 1
    np.testing.assert_array_equal(part, assign_folds(sp.csr_array(truth), 3, seed=1))
    assert (part != assign_folds(sp.csr_array(truth), 3, seed=2)).any()
    two = assign_folds(sp.csr_array(np.ones((2, 1))), 5, seed=0)
    assert sorted(two.tolist()) == [0, 1]


def test_states_are_numbers():
    states = np.array([-1, 0, 1], dtype=np.int8)
    assert (states == UNKNOWN).tolist() == [True, False, False]
    assert (states == PERMITTED).tolist() == [False, False, True]
    assert (states == FORBIDDEN).dtype == np.bool_
    assert np.where(states == PERMITTED, states, UNKNOWN).dtype == np.int8
    assert [f"{state}" for state in (UNKNOWN, FORBIDDEN, PERMITTED)] == ["-1", "0", "1"]


@pytest.mark.parametrize("three", [3, np.int64(3), np.uint8(3), 3.0, np.float32(3)])
def test_whole_numbers_are_one_name(three):
    found = supervise([[three], [], [3, "tea"]], 3)
    assert found.topics == (3, "tea")
    assert [type(name) for name in found.topics] == [int, str]
    more = extend([3, "tea"], [[three], ["milk"]], 2)
    assert more.topics == (3, "tea", "milk")
    assert [type(name) for name in more.topics] == [int, str, str]
    assert type(supervise(None, 0, topics=[np.int64(3)]).topics[0]) is int


def test_cells_and_values_follow_one_rule():
    missing = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, ""]
    assert all(is_missing(value) and is_missing(value, cell=False) for value in missing)
    assert (is_missing(" "), is_missing(" ", cell=False)) == (True, False)
    assert all(is_missing(one, cell=False) and not is_missing(one) for one in (-1, -1.0, np.int8(-1)))
    assert not is_missing("-1", cell=False)
    names = [label_name(one) for one in (3, 3.0, np.float64(3), 0.5, " tea ", True)]
    assert names == ["3", "3", "3", "0.5", "tea", "True"]
    for value in (0.5, b"tea", ("tea",)):
        with pytest.raises(ValueError, match="expected a name"):
            label_name(value, cell=False)


NOTHING = [[1, 0], [0, 0], [-1, -1], [0, 1]]


@pytest.mark.parametrize(
    "y",
    [
        ["a", "(none)", None, "b"],
        [["a"], ["(none)"], [], ["b"]],
        [("a",), {"(none)"}, None, "b"],
        {0: "a", 1: "(none)", 3: ["b"]},
        np.array(["a", "(none)", "", "b"]),
        pd.Series(["a", "(none)", None, "b"], dtype="category"),
        pl.Series([["a"], ["(none)"], [], ["b"]]),
        np.array([[1, 0], [0, 0], [NAN, NAN], [0, 1]]),
    ],
)
def test_none_of_the_topics_in_every_form(y):
    found = supervise(y, 4, topics=["a", "b"])
    assert states(found) == NOTHING
    assert found.outsiders.tolist() == [False, True, False, False]
    assert found.labelled.tolist() == [True, True, False, True]
    assert found.counts.tolist() == [1, 1]


def test_none_of_the_topics_is_no_topic_and_needs_no_complete_labels():
    found = supervise(["b", "(none)", None, "a"], 4, complete=False)
    assert found.topics == ("a", "b")
    assert states(found) == [[-1, 1], [0, 0], [-1, -1], [1, -1]]
    assert supervise([["(none)"], []], 2).topics == ()
    assert forbid(supervise(["(none)", "a", None], 3), [["a"], [], ["a"]]).outsiders.tolist() == [True, False, True]
    assert not supervise(None, 3).outsiders.any()
    assert not forbid(supervise([None], 1, topics=["a", "b"]), [["a"]]).outsiders.any()


@pytest.mark.parametrize("complete", [True, False])
def test_none_of_the_topics_counts_for_known_and_new_topics(complete):
    elsewhere = 0 if complete else -1
    found = extend(["tea", "coffee"], [["(none)"], ["milk"], []], 3, complete=complete)
    assert found.topics == ("tea", "coffee", "milk")
    assert states(found) == [[0, 0, 0], [elsewhere, elsewhere, 1], [-1, -1, -1]]
    assert states(extend(["tea"], ["(none)"], 1, complete=complete)) == [[0]]
    assert states(extend(["tea"], {0: "(none)"}, 2, topics=["milk"], complete=complete)) == [[0, 0], [-1, -1]]
    # Zeros are about the columns of their own matrix.
    assert states(extend(["tea"], pd.DataFrame({"milk": [0, 1]}), 2, complete=complete)) == [[-1, 0], [elsewhere, 1]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[], ["tea", "(none)"]], r"^row 1 has the label '\(none\)' together with 'tea': it marks a document that has"),
        ({1: ("(none)", 3)}, r"^row 1 has the label '\(none\)' together with 3"),
    ],
)
def test_none_of_the_topics_stands_alone(y, message):
    with pytest.raises(ValueError, match=message):
        supervise(y, 2)
    assert states(supervise([["(none)", "(none)", None], ["tea"]], 2)) == [[0], [1]]


def test_no_topic_has_the_name_of_none():
    message = r"^a topic cannot have the name '\(none\)'"
    with pytest.raises(ValueError, match=message):
        supervise(["a"], 1, topics=["a", "(none)"])
    with pytest.raises(ValueError, match=message):
        supervise(pd.DataFrame({"a": [1], "(none)": [0]}), 1)
    with pytest.raises(ValueError, match=message):
        Codebook.of_names(["a", "(none)"])
    with pytest.raises(ValueError, match=message):
        Codebook.of_names(["a"]).rename(0, "(none)")
    with pytest.raises(ValueError, match=r"row 1 forbids '\(none\)', which is not a topic"):
        forbid(supervise(["a", None], 2), [[], ["(none)"]])


def zeros(n_zero, n):
    """An indicator whose first rows are zeros."""
    y = np.zeros((n, 2))
    y[n_zero:, 0] = 1
    return y


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame, lambda y: pl.DataFrame(y, ["a", "b"])])
def test_mostly_zeros_are_explained(form):
    with pytest.warns(UserWarning, match="^21 of the 40 rows of the indicator matrix are all 0") as caught:
        found = supervise(form(zeros(21, 40)), 40)
    assert found.outsiders.sum() == 21
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="20 of the 20 rows"):
        supervise(form(zeros(20, 20)), 20)


@pytest.mark.parametrize("y", [zeros(20, 40), zeros(19, 19), np.vstack([zeros(30, 40), [[NAN, NAN]]])])
def test_fewer_zeros_or_rows_of_nan_need_no_explanation(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert supervise(y, len(y)).outsiders.sum() >= 19
        one_nan = zeros(30, 40)
        one_nan[35, 1] = NAN
        supervise(one_nan, 40)
        supervise(sp.csr_array(zeros(30, 40)), 40, complete=False)
        supervise(["(none)"] * 30 + ["a"], 31)


def test_documents_without_a_topic_are_spread_over_the_folds():
    truth = np.random.default_rng(0).random((80, 3)) < [0.3, 0.2, 0.1]
    nothing = ~truth.any(axis=1)
    others = np.arange(80) < 60  # documents with a topic are in the mask too
    without = assign_folds(sp.csr_array(truth), 4, seed=1)
    fold = assign_folds(sp.csr_array(truth), 4, seed=1, others=others)
    np.testing.assert_array_equal(fold[~(nothing & others)], without[~(nothing & others)])
    sizes = np.bincount(fold[nothing & others], minlength=4)
    assert len(sizes) == 4
    assert np.ptp(sizes) <= 1
    assert (fold[nothing & ~others] == -1).all()
    one = np.flatnonzero(nothing)[0] == np.arange(80)
    np.testing.assert_array_equal(assign_folds(sp.csr_array(truth), 4, seed=1, others=one), without)
