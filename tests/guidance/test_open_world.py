import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from problems import planted_texts
from sklearn.metrics import average_precision_score

from topicsteer.backends import as_rows
from topicsteer.backends.block_folder import write_blocks
from topicsteer.guidance import open_world
from topicsteer.guidance.apply import (
    Memberships,
    apply_labels,
    best_thresholds,
    choose_thresholds,
    relabelled,
    topic_classes,
    with_none,
)
from topicsteer.guidance.calibration import FIXED_CALIBRATION, LEAD, topics_per_document
from topicsteer.guidance.discover import GroupTree
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.keywords import TopicTexts
from topicsteer.guidance.open_world import free_topics, one_sided, open_guide, several_topics, with_group_labels
from topicsteer.guidance.train import train_guide
from topicsteer.labels.forms import supervise
from topicsteer.text import TextVectorizer

SIZE = 60


@pytest.fixture(scope="module")
def documents():
    """Rows of eight planted topics."""
    return sp.csr_array(TextVectorizer().fit_transform(planted_texts(8, SIZE)))


def labels(n_topics, per_topic, more=None):
    """Labels of the first documents of the first topics."""
    given = {k * SIZE + i: f"t{k}" for k in range(n_topics) for i in range(per_topic)} | (more or {})
    return supervise(given, 8 * SIZE, topics=[f"t{k}" for k in range(n_topics)])


def learn(X, supervision, **options):
    rows = X if hasattr(X, "take") and not sp.issparse(X) else as_rows(X)
    return open_guide(rows, supervision, train_guide(rows, supervision), **options)


def precision_matrix(truth, scores):
    """Average precision of each column of scores (rows) for each column of truth."""
    return np.array([[average_precision_score(t, s) for t in truth.T] for s in scores.T])


TOPIC = np.repeat(np.arange(8), SIZE)


def test_a_world_with_all_topics_labelled_is_closed(documents):
    supervision = labels(8, 10)
    closed = train_guide(as_rows(documents), supervision)
    assert open_guide(as_rows(documents), supervision, closed) is closed
    assert open_guide(as_rows(documents), labels(4, 10), closed, world="closed") is closed


@pytest.mark.parametrize(("per_topic", "asked", "is_open"), [(4, False, False), (4, True, True), (3, True, False)])
def test_a_doubtful_share_opens_the_world_if_the_user_asks_for_free_topics(documents, per_topic, asked, is_open):
    """Four labels per topic leave a large share that could be chance, three labels a small one."""
    assert learn(documents, labels(7, per_topic), n_free=4, asked=asked).believes_open == is_open


def test_an_open_world_is_found_and_its_topics_are_groups(documents):
    guide = learn(documents, labels(4, 10))
    assert guide.open
    P = guide.probabilities(documents)
    assert P.shape == (480, 4 + guide.n_groups)
    assert P[TOPIC >= 4, :4].max(axis=1).mean() < 0.1  # a closed guide gives each of them a topic
    assert (P[TOPIC < 4, :4].argmax(axis=1) == TOPIC[TOPIC < 4]).mean() > 0.95
    topics = free_topics(guide, 4, 480)
    free = np.stack([P[:, [4 + k for k in topic]].max(axis=1) for topic in topics], axis=1)
    best = free.argmax(axis=1)[TOPIC >= 4].reshape(4, SIZE)
    assert sorted(np.bincount(row, minlength=4).argmax() for row in best) == [0, 1, 2, 3]
    assert np.mean([np.bincount(row).max() / SIZE for row in best]) > 0.9
    assert abs(len(free_topics(guide, "auto", 480)) - 4) <= 1
    assert free_topics(guide, 0, 480) == ()


def test_the_number_of_free_topics_does_not_change_known_ones(documents):
    few, many = (learn(documents, labels(4, 10), n_free=n) for n in (1, 7))
    np.testing.assert_array_equal(few.probabilities(documents), many.probabilities(documents))


def test_an_outside_that_is_missed_can_be_declared(documents):
    supervision = labels(7, 3)
    assert not learn(documents, supervision).open
    assert learn(documents, supervision, world="open").open
    outsiders = {430 + i: "(none)" for i in range(open_world.MIN_OUTSIDERS)}
    assert learn(documents, labels(7, 3, outsiders)).open
    del outsiders[430]
    assert not learn(documents, labels(7, 3, outsiders)).open


def test_one_topic_with_yes_only_is_told_apart_from_the_rest(documents):
    supervision = labels(1, 8)
    assert one_sided(supervision.patterns[supervision.pattern[:8]])
    found = learn(documents, supervision).probabilities(documents)[:, 0]
    assert found[8:SIZE].min() > found[SIZE:].max()
    assert found[SIZE:].mean() < 0.1


def test_threads_and_blocks_do_not_matter(documents, tmp_path):
    supervision = labels(4, 10)
    one, two = (learn(documents, supervision, threads=threads) for threads in (1, 2))
    for name, array in (one.arrays() | one.outside_arrays()).items():
        np.testing.assert_array_equal((two.arrays() | two.outside_arrays())[name], array, err_msg=name)
    blocks = write_blocks(tmp_path / "X", [documents[a:b] for a, b in itertools.pairwise([0, 100, 333, 480])])
    on_disk = learn(blocks, supervision)
    np.testing.assert_array_equal(on_disk.probabilities(documents), one.probabilities(documents))


def test_an_earlier_guide_keeps_its_groups(documents):
    before = learn(documents, labels(4, 10))
    after = learn(documents, labels(4, 12), previous=before)
    assert after.n_groups == before.n_groups
    np.testing.assert_array_equal(after.tree.merges, before.tree.merges)
    topics = free_topics(before, 4, 480)
    P, Q = (
        np.stack([guide.probabilities(documents)[:, [4 + k for k in topic]].max(axis=1) for topic in topics])
        for guide in (before, after)
    )
    assert (P.argmax(axis=0) == Q.argmax(axis=0))[TOPIC >= 4].mean() > 0.95


def test_documents_with_several_topics_have_no_groups(documents):
    given = np.zeros((40, 4), dtype=bool)
    given[np.arange(40), np.arange(40) % 4] = True
    equal = np.full((400, 4), 0.25)
    assert not several_topics(given, equal)
    assert not several_topics(given[:0], equal)
    given[:30, 0] = True
    assert several_topics(given, equal)
    double = {i: [f"t{k}" for k in range(4)] for i in range(40)} | {100 + i: "(none)" for i in range(5)}
    guide = learn(documents, supervise(double, 480, topics=[f"t{k}" for k in range(4)]))
    assert (guide.open, guide.n_groups, guide.tree) == (True, 0, None)
    assert guide.outside is not None


@pytest.fixture(scope="module")
def mixtures():
    """Rows of 600 documents with two of eight planted topics each, and the topics as bool."""
    rng, vocabulary = np.random.default_rng(0), TextVectorizer().fit(planted_texts(8, SIZE))
    single = planted_texts(8, 600)
    which = np.stack([rng.choice(8, 2, replace=False) for _ in range(600)])
    texts = [f"{single[a * 600 + i]} {single[b * 600 + i]}" for i, (a, b) in enumerate(which.tolist())]
    return sp.csr_array(vocabulary.transform(texts)), (which[:, :, None] == np.arange(8)).any(axis=1)


def given_lists(has, known, n):
    """The known topics of the first n documents with one."""
    rows = np.flatnonzero(has[:, :known].any(axis=1))[:n]
    lists = {int(i): [f"t{k}" for k in np.flatnonzero(has[i, :known])] for i in rows}
    return supervise(lists, len(has), topics=[f"t{k}" for k in range(known)])


def test_free_topics_of_documents_with_several_topics_are_components(mixtures):
    X, has = mixtures
    supervision = given_lists(has, 5, 200)
    plain = learn(X, supervision, world="open")
    guide = learn(X, supervision, world="open", n_free=3)
    assert (plain.n_groups, guide.n_groups) == (0, 3)
    P = guide.probabilities(X)
    np.testing.assert_array_equal(P[:, :5], plain.probabilities(X))  # known topics do not notice
    topics = free_topics(guide, 3, 600)
    assert sorted(topics) == [(0,), (1,), (2,)]
    scores = precision_matrix(has[:, 5:], P[:, 5:])
    assert sorted(scores.argmax(axis=1)) == [0, 1, 2]
    assert scores.max(axis=1).min() > 0.9
    assert guide.covers.all()
    again = Guide.from_arrays(guide.arrays(), 5, guide.outside_arrays())
    np.testing.assert_array_equal(again.probabilities(X), P)
    assert free_topics(again, 2, 600) == free_topics(guide, 2, 600)


def test_a_number_of_free_topics_is_found_even_if_each_document_has_a_known_topic(mixtures):
    X, has = mixtures
    supervision = given_lists(has, 7, 300)
    closed = train_guide(as_rows(X), supervision)
    assert open_guide(as_rows(X), supervision, closed, n_free=1) is closed
    guide = open_guide(as_rows(X), supervision, closed, n_free=1, asked=True)
    assert (guide.open, guide.n_groups, guide.outside) == (True, 1, None)
    np.testing.assert_array_equal(guide.probabilities(X)[:, :7], closed.probabilities(X))
    assert open_guide(as_rows(X), supervision, closed, asked=True) is closed


def test_labels_topic_by_topic_do_not_make_documents_have_several_topics():
    rng, n = np.random.default_rng(0), 10_000
    has = np.eye(10, dtype=bool)[rng.integers(3, size=n)]  # three frequent topics, and rare ones in addition
    rare = rng.random(n) < 0.1
    has[rare, rng.integers(3, 10, size=rare.sum())] = True
    by_topic = np.concatenate([rng.choice(np.flatnonzero(column), 20) for column in has.T])
    assert has[by_topic].sum(axis=1).mean() > 1.7
    assert not several_topics(has[by_topic], has)
    at_random = has[rng.choice(n, 200)]
    assert not several_topics(at_random, has)
    has[np.arange(0, n, 2), 9] = True
    assert several_topics(has[rng.choice(n, 200)], has)


def test_groups_that_were_asked_for_leave_the_known_topics_of_a_closed_world(documents):
    supervision = labels(7, 3)
    closed = train_guide(as_rows(documents), supervision)
    guide = open_guide(as_rows(documents), supervision, closed, n_free=4, asked=True)
    assert guide.open
    assert not guide.believes_open
    P = guide.probabilities(documents)
    np.testing.assert_array_equal(P[:, :7], closed.probabilities(documents))
    np.testing.assert_array_equal(choose_thresholds(guide, P[:, :7]), choose_thresholds(closed, P[:, :7]))
    topics = free_topics(guide, 4, 480)
    free = np.stack([P[:, [7 + k for k in topic]].max(axis=1) for topic in topics], axis=1)
    truth = TOPIC[:, None] == np.array([7])
    assert precision_matrix(truth, free).max(axis=0).min() > 0.9
    again = open_guide(as_rows(documents), supervision, closed, n_free=4, previous=guide)
    assert not again.believes_open
    Q = again.probabilities(documents)
    np.testing.assert_array_equal(Q[:, :7], P[:, :7])
    kept = np.stack([Q[:, [7 + k for k in topic]].max(axis=1) for topic in topics], axis=1)
    assert precision_matrix(truth, kept).max(axis=0).min() > 0.9


def typical_terms(X, has, known):
    """The five terms of each known topic that differ most between its documents and the others."""
    rows = [np.zeros(X.shape[1]) for _ in range(known)]
    for k, row in enumerate(rows):
        difference = X[has[:, k]].mean(axis=0) - X[~has[:, k]].mean(axis=0)
        row[np.argsort(-difference)[:5]] = 5**-0.5
    return TopicTexts.of(sp.csr_array(np.array(rows)))


def by_names(X, has, known, **options):
    """The guide of an open world without a label, from the terms of the known topics."""
    rows, names = as_rows(X), typical_terms(X, has, known)
    nothing = supervise({}, X.shape[0], topics=[f"t{k}" for k in range(known)])
    closed = train_guide(rows, nothing, names=names)
    return closed, open_guide(rows, nothing, closed, names=names, world="open", **options)


def test_names_show_whether_documents_have_several_topics(mixtures, documents):
    X, has = mixtures
    _, guide = by_names(X, has, 6, n_free=2)
    assert guide.components is not None
    assert guide.closed is None
    assert precision_matrix(has[:, 6:], guide.probabilities(X)[:, 6:]).max(axis=1).min() > 0.8
    _, guide = by_names(documents, TOPIC[:, None] == np.arange(8), 4, n_free=4)
    assert guide.group_classes
    assert guide.closed is not None


def test_topics_are_no_rivals_by_names_if_documents_have_several(mixtures, documents):
    X, has = mixtures
    closed, _ = by_names(X, has, 6)
    assert closed.calibration.weights[LEAD] == closed.word_round.mix[LEAD] == 0
    assert 1 < closed.probabilities(X).sum(axis=1).mean() < 2.5  # 1.5 known topics per document
    single, _ = by_names(documents, TOPIC[:, None] == np.arange(8), 4)
    assert single.calibration.weights[LEAD] == FIXED_CALIBRATION[LEAD] > 0
    assert topics_per_document(np.array([[1, 0, 0], [1, 1, 1], [0, 0, 0]], dtype=bool)) == pytest.approx(1.5)
    assert topics_per_document(np.zeros((2, 3), dtype=bool)) == 0


def test_one_of_both_guides_is_enough_for_known_topics_without_labels(documents):
    closed, guide = by_names(documents, TOPIC[:, None] == np.arange(8), 4, n_free=4)
    P = guide.probabilities(documents)
    D = guide.positions(documents)
    inside = 1 - guide.outside.none(D)[:, None]
    own = np.ascontiguousarray(guide.basis[:, : guide.directions.shape[1] + guide.rounds.width])
    alone = replace(guide, closed=None, basis=own).probabilities(documents)
    either = 1 - (1 - alone[:, :4]) * (1 - closed.probabilities(documents) * np.sqrt(inside))
    np.testing.assert_allclose(P[:, :4], either, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(P[:, 4:], alone[:, 4:])  # groups do not depend on it
    np.testing.assert_array_equal(choose_thresholds(guide, P[:, :4]), best_thresholds(P[:, :4]))
    again = Guide.from_arrays(guide.arrays(), 4, guide.outside_arrays())
    np.testing.assert_array_equal(again.probabilities(documents), P)


def test_an_earlier_guide_keeps_its_components(mixtures):
    X, has = mixtures
    before = learn(X, given_lists(has, 5, 200), world="open", n_free=3)
    after = learn(X, given_lists(has, 5, 220), n_free=9, previous=before)
    assert after.n_groups == 3
    P, Q = (guide.probabilities(X)[:, 5:] for guide in (before, after))
    assert min(np.corrcoef(P[:, k], Q[:, k])[0, 1] for k in range(3)) > 0.9
    without = replace(before, components=None, n_groups=0, tree=None)
    assert learn(X, given_lists(has, 5, 220), n_free=9, previous=without).n_groups == 0


def test_components_do_not_depend_on_threads(mixtures):
    X, has = mixtures
    one, two = (learn(X, given_lists(has, 5, 200), world="open", n_free=3, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.components.weights, two.components.weights)
    np.testing.assert_array_equal(one.tree.sizes, two.tree.sizes)


def test_labels_of_groups_are_sure_documents_only():
    supervision = supervise({0: "a", 1: "b", 2: "(none)"}, 8, topics=["a", "b"])
    background = np.array([0, 1, 2, 4, 5, 6, 7])
    groups = np.array([[0, 0], [0, 0], [0.1, 0.8], [0.9, 0], [0.4, 0.4], [0, 0.6], [0.55, 0]])
    given = np.array([[True, False], [False, True], [False, False]])
    found = with_group_labels(supervision, background, groups, given, np.array([False, False, True]))
    states = found.patterns[found.pattern]
    assert states[:3].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    assert states[3].tolist() == [-1] * 4  # not among the background
    assert states[4:].tolist() == [[0, 0, 1, 0], [-1] * 4, [0, 0, 0, 1], [0, 0, 1, 0]]


def test_small_topics_are_left_out(documents):
    guide = learn(documents, labels(4, 10))
    sizes = guide.tree.sizes.copy()
    keep = free_topics(guide, 100, 480)
    sizes[list(keep[-1])] = 0.5
    smaller = replace(guide, tree=replace(guide.tree, sizes=sizes))
    assert keep[-1] not in free_topics(smaller, 100, 480)
    assert free_topics(replace(guide, tree=None, n_groups=0), 5, 480) == ()


def test_a_document_has_the_topics_that_reach_their_thresholds():
    known = np.array([[0.45, 0.1], [0.6, 0.0], [0.45, 0.45], [0.2, 0.2]])
    belongs = with_none(known, 2)
    np.testing.assert_allclose(belongs[:, 2], [0.495, 0.4, 0.3025, 0.64])
    thresholds = np.array([0.3, 0.3])
    expected = [[True, False], [True, False], [True, True], [False, False]]
    assert Memberships(belongs, thresholds).has_known.tolist() == expected
    assert Memberships(known, thresholds).has_known.tolist() == expected


def test_thresholds_are_lower_beside_groups(documents):
    guide = learn(documents, labels(4, 10))
    found = np.random.default_rng(0).random((50, 4))
    least = guide.outside.probability.min()
    np.testing.assert_allclose(choose_thresholds(guide, found), 0.75 * (1 - least) * best_thresholds(found))
    np.testing.assert_array_equal(choose_thresholds(replace(guide, n_groups=0), found), best_thresholds(found))
    few = learn(documents, labels(4, 3), world="open")
    assert few.outside.probability.min() == 0.25
    np.testing.assert_allclose(choose_thresholds(few, found), 0.75 * 0.75 * best_thresholds(found))


def test_labels_decide_on_free_topics_and_none():
    supervision = supervise({0: "a", 1: "(none)"}, 3, topics=["a", "b"])
    found = np.array([[0.2, 0.3, 0.4], [0.2, 0.3, 0.4], [0.2, 0.3, 0.4]])
    expected = [[1, 0, 0], [0, 0, 0.4], [0.2, 0.3, 0.4]]
    np.testing.assert_allclose(apply_labels(found, supervision), expected)
    np.testing.assert_allclose(relabelled(with_none(found, 2), supervision)[:, -1], [0, 1, 0.56])
    assert topic_classes([(0, 2), (1,)], [(0,), (1, 2)], 3) == [(0, 2), (1,), (3,), (4, 5)]


def test_auto_makes_free_topics_as_large_as_known_ones():
    # Groups 0 and 1 merge first, then 2 and 3.
    tree = GroupTree(
        np.array([[0, 1], [2, 3], [0, 2]]), np.array([0.1, 0.2, 0.9]), np.array([40.0, 10, 30, 20]), np.ones(4)
    )
    guide = SimpleNamespace(tree=tree, n_groups=4, n_known=2)
    assert free_topics(guide, 2, 200) == ((0, 1), (2, 3))
    assert len(free_topics(guide, "auto", 200)) == 2  # 100 documents have one of two known topics
