from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import make_topics

from topicsteer.analysis.topics import Topics, name_free_topics, proportions


@pytest.fixture
def topics():
    return make_topics()


def test_length_kinds_and_numbers(topics):
    assert len(topics) == 5
    assert [topics.known(k) for k in range(5)] == [True] * 3 + [False] * 2
    assert topics.index("topic 3") == topics.index(3) == topics.index(np.int64(3)) == 3


@pytest.mark.parametrize("name", ["nothing", 5, -1, True, None])
def test_a_topic_that_is_not_there_is_named_with_those_that_are(topics, name):
    with pytest.raises(KeyError, match=r"there is no topic .*; the topics are 'topic 0', 'topic 1'"):
        topics.index(name)


def test_the_list_of_topics_in_the_message_is_short():
    with pytest.raises(KeyError, match=r"'topic 9', \.\.\."):
        make_topics(known=12).index("nothing")


def test_proportions_are_shares_of_what_is_explained(topics):
    W, H = topics.W, topics.H
    explained = np.stack([np.outer(W[:, k], H[k]).sum(axis=1).reshape(len(W)) for k in range(5)], axis=1)
    for i, row in enumerate(topics.proportions):
        total = explained[i].sum()
        assert_allclose(row, explained[i] / total if total else 0)


def test_proportions_of_weights_in_a_file_are_in_a_file(tmp_path):
    np.save(tmp_path / "W.npy", np.ones((4, 2)))
    mapped = np.load(tmp_path / "W.npy", mmap_mode="r")
    for W in (mapped, np.asarray(mapped), np.asarray(mapped)[1:]):
        found = proportions(W, np.ones((2, 3)))
        assert isinstance(found, np.memmap)
        assert_allclose(found, 0.5)
    assert not isinstance(proportions(np.ones((4, 2)), np.ones((2, 3))), np.memmap)


def test_a_document_without_topics_has_no_proportions_and_lowers_the_shares(topics):
    W = topics.W.copy()
    share = make_topics().mean_memberships
    more = Topics(topics.names, 3, topics.vocabulary, topics.H, np.vstack([W, 0 * W]), range(80), topics.labelled)
    assert_array_equal(more.proportions[40:], 0)
    assert_allclose(more.mean_memberships, share / 2)
    assert share.sum() == pytest.approx(1)


def with_memberships(topics, columns, outsiders=None):
    """The topics with random memberships of so many columns."""
    memberships = np.random.default_rng(1).random((len(topics.W), columns))
    return replace(topics, memberships=memberships, outsiders=outsiders), memberships.mean(axis=0)


@pytest.mark.parametrize(("columns", "of_memberships"), [(3, 3), (4, 3), (6, 5)])
def test_shares_are_mean_memberships_and_proportions_where_free_topics_have_none(topics, columns, of_memberships):
    found, means = with_memberships(topics, columns)
    assert_allclose(found.mean_memberships[:of_memberships], means[:of_memberships])
    assert_allclose(found.mean_memberships[of_memberships:], topics.mean_memberships[of_memberships:])
    assert found.open == (columns > 3)


def test_the_table_of_an_open_world_may_end_with_none(topics):
    found, _ = with_memberships(topics, 6, outsiders=np.arange(40) < 7)
    *_, last = zip(*found.table(none=True).values(), strict=True)
    assert last == ("(none)", "none", 7, None, "")
    assert found.table()["topic"] == found.table(none=True)["topic"][:-1] == list(topics.names)
    closed, _ = with_memberships(topics, 3)
    assert closed.table(none=True) == closed.table()


def test_proportions_do_not_depend_on_how_a_topic_is_scaled(topics):
    scale = np.array([0.1, 1, 10, 2, 3])
    assert_allclose(proportions(topics.W * scale, topics.H / scale[:, None]), topics.proportions)


def test_terms_that_every_topic_has_rank_below_those_of_one():
    H = np.array([[5.0, 3.0, 0.0], [5.0, 0.0, 3.0]])
    topics = Topics(("a", "b"), 2, np.array(["the", "tea", "football"]), H, np.eye(2), [0, 1], np.array([1, 1]))
    assert topics.top_terms("a") == ["tea", "the"]
    assert topics.top_terms("b", 1) == ["football"]


def test_strengths_fall_from_one_and_belong_to_the_top_terms(topics):
    for k in range(5):
        terms, strengths = zip(*topics.term_strengths(k, 8), strict=True)
        assert list(terms) == topics.top_terms(k, 8)
        assert strengths[0] == 1
        assert list(strengths) == sorted(strengths, reverse=True)
        assert min(strengths) >= 0


def test_a_single_topic_ranks_its_terms_by_weight():
    topics = Topics(
        ("all",), 0, np.array(["a", "b", "c"]), np.array([[1.0, 4.0, 0.0]]), np.ones((2, 1)), [0, 1], np.array([])
    )
    assert topics.term_strengths(0) == [("b", 1.0), ("a", 0.25)]


def test_an_empty_topic_has_no_terms_and_no_documents(topics):
    H, W = topics.H.copy(), topics.W.copy()
    H[4] = 0
    W[:, 4] = 0
    empty = Topics(topics.names, 3, topics.vocabulary, H, W, topics.ids, topics.labelled)
    assert empty.top_terms(4) == empty.top_rows(4) == []
    assert empty.mean_memberships[4] == 0


def test_top_documents_by_proportion_then_by_weight():
    W = np.array([[1.0, 1.0], [1.0, 0.0], [3.0, 0.0], [0.0, 2.0]])
    topics = Topics(("a", "b"), 2, np.array(["x", "y"]), np.eye(2), W, list("pqrs"), np.array([1, 1]))
    assert topics.top_rows("a") == [2, 1, 0]
    assert topics.top_rows("b") == [3, 0]


def test_table_has_a_row_for_each_topic(topics):
    table = topics.table(3)
    assert list(table) == ["topic", "kind", "labelled", "mean membership", "terms"]
    assert {len(column) for column in table.values()} == {5}
    assert table["kind"] == ["known"] * 3 + ["free"] * 2
    assert table["labelled"][3:] == [0, 0]
    assert table["terms"][0] == ", ".join(topics.top_terms(0, 3))


def test_names_of_free_topics_are_distinct():
    ranked = [["a", "b"], ["a", "b", "c"], ["a", "b"], [], ["d"]]
    names = name_free_topics(ranked, ["d"])
    assert names == ["a, b", "a, b, c", "a, b (3)", "empty", "d (5)"]
