"""A guide applied to all documents, in memory and on disk: memberships, thresholds and penalties."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from problems import planted_rows
from sklearn.preprocessing import normalize

from topicsteer.backends import as_rows
from topicsteer.backends.block_folder import write_blocks
from topicsteer.guidance.apply import (
    ROWS,
    THRESHOLD_RANGE,
    apply_guide,
    apply_labels,
    best_thresholds,
    choose_thresholds,
    merged_classes,
    topic_classes,
    topic_penalties,
    topic_probabilities,
)
from topicsteer.guidance.features import Sample
from topicsteer.guidance.regression import Choice
from topicsteer.guidance.train import learn_guide
from topicsteer.labels.codebook import Lineage
from topicsteer.labels.forest import Forest
from topicsteer.labels.forms import supervise
from topicsteer.model.pipeline import leave_empty, unsupported_topics, warn_of_unsupported

STARTS = [0, 13, 13, 40, 90]
TOPICS = [(0,), (1,), (2,)]


@pytest.fixture(scope="module", params=["words", "embeddings"])
def problem(request):
    """Documents, embeddings or None, labels of three topics with one that nobody uses, and their guide."""
    rng = np.random.default_rng(0)
    which = rng.integers(0, 2, 90)
    X = rng.random((90, 20)) * (rng.random((90, 20)) < 0.3) + (which[:, None] == np.arange(20) // 10)
    X = sp.csr_array(normalize(sp.csr_array(X.astype(np.float32))))
    E = np.eye(2)[which] + rng.normal(size=(90, 2)) if request.param == "embeddings" else None
    supervision = supervise({i: "ab"[which[i]] for i in range(0, 90, 3)}, 90, topics=["a", "nobody", "b"])
    choice = None if E is None else Choice(0.5, 1.0, 16.0)
    sample = Sample(as_rows(X), supervision, E, threads=1)
    return X, E, supervision, learn_guide(sample, choice=choice, world="closed")


def test_in_memory(problem, tmp_path):
    X, E, supervision, learnt = problem
    seen = []
    found = apply_guide(
        as_rows(X),
        learnt,
        supervision,
        TOPICS,
        5,
        folder=tmp_path,
        embeddings=E,
        threads=1,
        progress=lambda *numbers: seen.append(numbers),
    )
    probabilities = learnt.probabilities(X, embeddings=E)
    memberships = apply_labels(probabilities, supervision)
    np.testing.assert_array_equal(found.memberships, memberships)
    np.testing.assert_array_equal(found.thresholds, best_thresholds(probabilities))
    expected = topic_penalties(memberships, learnt.covers, 5, supervision.permits)
    np.testing.assert_array_equal(found.penalties.toarray(), expected.toarray())
    np.testing.assert_array_equal(found.penalties.indices, expected.indices)
    assert found.penalties.dtype == np.float32
    assert seen == []  # one block needs no progress
    assert list(tmp_path.iterdir()) == []


def test_on_disk(problem, tmp_path):
    X, E, supervision, learnt = problem
    rows = write_blocks(tmp_path / "X", [X[a:b] for a, b in itertools.pairwise(STARTS)])
    (tmp_path / "out").mkdir()
    seen = []
    options = {"folder": tmp_path / "out", "embeddings": E, "threads": 2}
    found = apply_guide(rows, learnt, supervision, TOPICS, 5, progress=lambda *numbers: seen.append(numbers), **options)
    whole = apply_guide(as_rows(X), learnt, supervision, TOPICS, 5, **(options | {"folder": tmp_path}))
    assert {path.name.partition(".")[0] for path in (tmp_path / "out").iterdir()} == {"memberships", "penalties"}
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert found.memberships.dtype == np.float32
    np.testing.assert_allclose(found.memberships, whole.memberships, atol=1e-6)
    np.testing.assert_allclose(found.thresholds, whole.thresholds, atol=1e-6)
    stored = sp.vstack(list(found.penalties))
    assert stored.dtype == np.float32
    np.testing.assert_allclose(stored.toarray(), whole.penalties.toarray(), atol=1e-5)


@pytest.mark.parametrize(("most", "step"), [(90, 1), (89, 2), (30, 3), (29, 4)])
def test_thresholds_of_many_documents_come_from_a_regular_sample(problem, tmp_path, most, step):
    X, E, supervision, learnt = problem
    rows = write_blocks(tmp_path / "X", [X[a:b] for a, b in itertools.pairwise(STARTS)])
    (tmp_path / "out").mkdir()
    options = {"folder": tmp_path / "out", "embeddings": E, "threshold_documents": most}
    found = apply_guide(rows, learnt, supervision, TOPICS, 3, **options)
    expected = best_thresholds(learnt.probabilities(X, embeddings=E)[::step])
    np.testing.assert_allclose(found.thresholds, expected, atol=1e-6)


def test_blocks_of_work_do_not_show(problem, tmp_path):
    X, E, supervision, learnt = problem
    one = apply_guide(as_rows(X), learnt, supervision, TOPICS, 5, folder=tmp_path, embeddings=E)
    copies = ROWS // X.shape[0] + 1
    rows = as_rows(sp.csr_array(sp.vstack([X] * copies)))
    labels = replace(supervision, pattern=np.tile(supervision.pattern, copies))
    E = None if E is None else np.tile(E, (copies, 1))
    found = apply_guide(rows, learnt, labels, TOPICS, 5, folder=tmp_path, embeddings=E)
    np.testing.assert_allclose(found.memberships, np.tile(one.memberships, (copies, 1)), atol=1e-6)
    np.testing.assert_allclose(found.thresholds, one.thresholds, atol=1e-6)
    np.testing.assert_allclose(found.penalties[-90:].toarray(), one.penalties.toarray(), atol=1e-5)


def test_thresholds_do_not_depend_on_the_order_of_many_topics():
    probabilities = np.random.default_rng(0).random((300, 20)).astype(np.float32) ** 3
    np.testing.assert_allclose(best_thresholds(probabilities[:, ::-1]), best_thresholds(probabilities)[::-1])


def test_thresholds_maximise_the_expected_jaccard_index():
    assert best_thresholds(np.full((5, 1), 0.9)) == max(THRESHOLD_RANGE)
    assert best_thresholds(np.zeros((5, 1))) == min(THRESHOLD_RANGE)
    p = np.random.default_rng(0).beta(0.3, 1.5, size=(60, 1))
    threshold = best_thresholds(p, (0, 1))[0]

    def jaccard(threshold):
        yes = p[:, 0] >= threshold
        return p[yes].sum() / (yes.sum() + p[~yes].sum())

    assert jaccard(threshold) == pytest.approx(max(jaccard(c) for c in p[:, 0]))
    # Topics without labels change no other threshold.
    with_empty = best_thresholds(np.hstack([p, np.zeros((60, 3))]), (0, 1))
    assert with_empty[0] == threshold
    rare = np.vstack([[[0.04]], np.zeros((59, 1))])  # the threshold is the probability of its only document
    np.testing.assert_allclose(
        best_thresholds(np.hstack([p, rare]), (0, 1)), (np.array([threshold, 0.04]) * (threshold * 0.04) ** 0.5) ** 0.5
    )
    assert not best_thresholds(np.zeros((5, 2)), (0, 1)).any()


def test_a_parent_has_no_larger_threshold_than_its_children():
    p = np.random.default_rng(0).random((200, 3)) ** np.array([0.5, 8, 2])
    found = choose_thresholds(p, Forest((-1, 0, -1)))
    plain = best_thresholds(p)
    np.testing.assert_array_equal(found, [min(plain[:2]), plain[1], plain[2]])


# --- labels ---


def test_labels_replace_probabilities():
    supervision = supervise(np.array([[1, 0, np.nan], [np.nan, np.nan, np.nan]]), 2)
    answer = apply_labels(np.full((2, 3), 0.3, np.float32), supervision)
    assert answer.dtype == np.float32
    np.testing.assert_allclose(answer, [[1, 0, 0.3], [0.3, 0.3, 0.3]])


def test_labels_decide_on_free_topics_and_none():
    supervision = supervise({0: "a", 1: "(none)"}, 3, topics=["a", "b"])
    found = np.array([[0.2, 0.3, 0.4, 0.5]] * 3)  # two known topics, a free one and P(none)
    expected = [[1, 0, 0, 0], [0, 0, 0.4, 1], [0.2, 0.3, 0.4, 0.5]]
    np.testing.assert_allclose(apply_labels(found, supervision), expected)
    doubted = supervise(np.array([[0, np.nan]]), 1)  # a label that only forbids
    np.testing.assert_allclose(apply_labels(found[:1], doubted), [[0, 0.3, 0.4, 0.5]])


def test_memberships_below_a_label_assume_that_it_is_right():
    labels = supervise(["s", None], 2, topics=["s", "s/t", "s/u"], lineage=Lineage(separator="/"))
    found = apply_labels(np.array([[0.5, 0.25, 0.4, 0.1]] * 2), labels)
    np.testing.assert_allclose(found, [[1, 0.5, 0.8, 0], [0.5, 0.25, 0.4, 0.1]])


# --- classes of a guide and topics of a model ---


def test_topics_are_made_up_of_classes():
    assert topic_classes([(0, 2), (1,)], [(0,), (1, 2)], 3) == [(0, 2), (1,), (3,), (4, 5)]
    P = np.array([[0.125, 0.25, 0.5, 0.25], [0.5, 0.75, 0.25, 0.875]])
    assert merged_classes(P, [(0, 2), (1,)], 4).tolist() == [[0.5, 0.25], [0.5, 0.75]]  # the likeliest known topic
    assert merged_classes(P, [(2,), (0,), (3,), (1,)], 4).tolist() == P[:, [2, 0, 3, 1]].tolist()
    assert merged_classes(P, [(1,), ()], 4).tolist() == [[0.25, 0], [0.75, 0]]  # a topic without classes
    assert merged_classes(P, [(0,), (2, 3)], 2).tolist() == [[0.125, 0.75], [0.5, 1]]  # groups exclude each other
    assert merged_classes(P, [(1, 2, 3), (0,)], 2).tolist() == [[0.75, 0.125], [1, 0.5]]  # a topic adopted two groups
    assert merged_classes(P, [(1, 2), (0, 3)], 2).tolist() == [[0.5, 0.25], [0.75, 0.875]]


def test_an_adopted_group_is_known():
    guide = SimpleNamespace(open=True, n_known=1)
    P = np.array([[0.2, 0.5, 0.2, 0.75]])  # a known topic, two groups, P(none)
    found = topic_probabilities(P, [(0,), (1,), (2,)], Forest((-1, 0)), 2, guide)
    np.testing.assert_allclose(found, [[0.5, 0.5, 0.2, 0.25]])  # and the parent is at least as likely
    closed = topic_probabilities(P[:, :2], [(0,), (1,)], Forest((-1, 0)), 2, SimpleNamespace(open=False, n_known=2))
    np.testing.assert_allclose(closed, [[0.5, 0.5]])


def test_an_open_world_has_free_topics_and_p_none(tmp_path):
    X, which = planted_rows(4, 25, own=16)
    first = np.flatnonzero(which < 2)[:20]
    supervision = supervise({int(i): "ab"[which[i]] for i in first[1:]} | {int(first[0]): "(none)"}, 100)
    guide = learn_guide(Sample(as_rows(X), supervision, threads=1), world="open")
    groups = topic_classes([(0,), (1,)], [tuple(range(guide.n_groups))], 2)
    whole = apply_guide(as_rows(X), guide, supervision, groups, 3, folder=tmp_path, threads=1)
    assert whole.memberships.shape == (100, 4)
    P = guide.probabilities(X)
    merged = np.column_stack([P[:, :2], np.minimum(P[:, 2:-1].sum(axis=1), 1), P[:, -1]])
    np.testing.assert_array_equal(whole.memberships, apply_labels(merged, supervision))
    assert whole.memberships[first[0]].tolist()[::3] == [0, 1]
    assert not whole.memberships[first[1:], 2:].any()
    expected = topic_penalties(whole.memberships[:, :3], np.ones(3, bool), 3, supervision.decided, open_world=True)
    np.testing.assert_array_equal(whole.penalties.toarray(), expected.toarray())
    (tmp_path / "out").mkdir()
    blocks = write_blocks(tmp_path / "X", [X[:30], X[30:30], X[30:]])
    found = apply_guide(blocks, guide, supervision, groups, 3, folder=tmp_path / "out", threads=2)
    np.testing.assert_allclose(found.memberships, whole.memberships, atol=1e-6)
    np.testing.assert_allclose(found.thresholds, whole.thresholds, atol=1e-6)


# --- topics that nothing supports ---


def test_topics_without_any_support_are_named(problem):
    _, _, supervision, learnt = problem
    assert unsupported_topics(supervision, learnt) == ["'nobody'"]
    with pytest.warns(UserWarning, match="'nobody'"):
        warn_of_unsupported(supervision, learnt)
    assert unsupported_topics(supervise(["a"], 1), learnt) == []  # after an edit
    many = supervise(None, 90, topics=[f"t{k}" for k in range(11)])
    with pytest.warns(UserWarning, match="and 3 more"):
        warn_of_unsupported(many, None)


def test_without_a_guide_known_topics_are_empty():
    found = leave_empty(as_rows(sp.csr_array((4, 2))), 2, 3)
    assert found.shape == (4, 3)
    assert set(found.indices.tolist()) == {2}
    assert leave_empty(as_rows(sp.csr_array((4, 2))), 0, 3) is None
