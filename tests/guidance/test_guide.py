"""A guide of any kind: files, new documents, several guides at once."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from problems import planted_rows
from scipy.special import expit

from topicsteer.backends import as_rows
from topicsteer.guidance.features import Sample, joint
from topicsteer.guidance.guide import Guide, side_by_side
from topicsteer.guidance.keywords import TopicTexts
from topicsteer.guidance.train import learn_guide
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import Supervision

TREE = Forest((-1, -1, 0, 0, 1, 1))
KINDS = ["closed", "meaning", "embeddings", "tree", "uncovered", "outsiders", "open", "open tree", "no groups", "names"]


def supervised(states, n, forest, topics=None):
    """Labels of the first documents, given by their states."""
    patterns, pattern = np.unique(np.vstack([np.full((1, states.shape[1]), -1), states]), axis=0, return_inverse=True)
    assert (patterns[0] == -1).all()
    number = np.zeros(n, dtype=np.int32)
    number[: len(states)] = pattern.ravel()[1:]
    names = topics or tuple(range(states.shape[1]))
    return Supervision(names, number, patterns.astype(np.int8), forest)


class Case:
    """A guide of some kind with its documents."""

    def __init__(self, kind):
        k = 4 if "tree" in kind else 3
        outside = 2 if kind in ("open", "open tree", "no groups", "outsiders") else 0
        X, self.which = planted_rows(k + outside, 25)
        self.n, t = X.shape
        rng = np.random.default_rng(0)
        first = np.flatnonzero(self.which < k)[: 10 * k]
        order = np.append(first, np.setdiff1d(np.arange(self.n), first))
        self.X, self.which = X[order], self.which[order]
        states = np.eye(k, dtype=np.int8)[self.which[: 10 * k]]
        forest = Forest((-1,) * k)
        if "tree" in kind:
            forest = TREE
            states = np.hstack([np.eye(2, dtype=np.int8)[self.which[: 10 * k] // 2], states])
        if kind == "uncovered":  # a topic that nothing ties to a document
            states, forest = np.insert(states, 1, 0, axis=1), Forest((-1,) * 4)
        if kind == "outsiders":
            rest = self.which[: 10 * k + 12][10 * k :]
            states = np.vstack([states, np.zeros((12, 3), dtype=np.int8)])
            states[10 * k :][rest < k, rest[rest < k]] = 1
        meaning = np.eye(k + outside)[self.which] + 0.3 * rng.normal(size=(self.n, k + outside))
        self.E = meaning.astype(np.float32) if kind == "embeddings" else None
        vectors = rng.normal(size=(t, 5)).astype(np.float32) if kind in ("meaning", "open", "open tree") else None
        self.labels = supervised(states[:0] if kind == "names" else states, self.n, forest)
        names = None
        if kind == "names":
            words = sp.csr_array(np.kron(np.eye(3), np.full(8, 8**-0.5)).astype(np.float32))
            names = TopicTexts(words, np.arange(3))
        self.sample = Sample(as_rows(self.X), self.labels, self.E, vectors)
        world = "open" if outside else "closed"
        self.guide = learn_guide(self.sample, names, world=world)
        if kind == "no groups":
            self.guide = replace(self.guide, groups=None, none=None, sizes=None, merges=None)
        self.P = self.guide.probabilities(self.X, 1, embeddings=self.E)


@pytest.fixture(scope="module", params=KINDS)
def case(request):
    return Case(request.param)


def test_probabilities_follow_the_labels(case):
    guide, P = case.guide, case.P
    assert P.dtype == np.float32
    assert P.shape == (case.n, guide.n_known + guide.n_groups + guide.open)
    assert ((P >= 0) & (P <= 1)).all()
    leaves = [k for k in range(guide.n_known) if k not in guide.parents and k in guide.covered]
    inside = case.which < len(leaves)
    assert (P[:, leaves].argmax(axis=1) == case.which)[inside].mean() > 0.9
    if guide.open:
        assert P[~inside, -1].mean() > P[inside, -1].mean() + (0.3 if guide.n_groups else 0)


def test_a_parent_is_at_least_as_likely_as_its_children(case):
    parents = case.guide.parents
    for k in np.flatnonzero(parents >= 0):
        assert (case.P[:, parents[k]] >= case.P[:, k]).all()
    hidden = case.guide.left_out_probabilities()
    for k in np.flatnonzero(parents >= 0):
        known = np.isfinite(hidden[:, parents[k]])
        assert (hidden[known, parents[k]] >= np.nan_to_num(hidden[known, k])).all()
    assert hidden.shape == (len(case.guide.rows), case.guide.n_known + case.guide.n_groups)


def test_topics_that_nothing_covers_have_no_probability(case):
    covers = case.guide.covers
    assert len(covers) == case.guide.n_known + case.guide.n_groups
    assert not case.P[:, : len(covers)][:, ~covers].any()
    assert case.P[:, : len(covers)][:, covers].any(axis=0).all()


def test_files_keep_every_bit(case):
    arrays, outside = case.guide.arrays(), case.guide.outside_arrays()
    assert (outside is None) == (not case.guide.open)
    again = Guide.from_arrays(arrays, outside)
    np.testing.assert_array_equal(again.probabilities(case.X, 1, embeddings=case.E), case.P)
    np.testing.assert_array_equal(again.left_out_probabilities(), case.guide.left_out_probabilities())
    np.testing.assert_array_equal(again.covers, case.guide.covers)
    assert (again.choice, again.chosen_from, again.open) == (
        case.guide.choice,
        case.guide.chosen_from,
        case.guide.open,
    )
    assert (again.n_known, again.n_groups) == (case.guide.n_known, case.guide.n_groups)
    for given, found in ((arrays, again.arrays()), (outside or {}, again.outside_arrays() or {})):
        assert list(given) == list(found)
        for name, array in found.items():
            np.testing.assert_array_equal(given[name], array, err_msg=name)


@pytest.mark.parametrize("plain", [False, True])
def test_batches_threads_and_the_plain_path_give_the_same(case, plain):
    np.testing.assert_array_equal(case.guide.probabilities(case.X, 2, embeddings=case.E), case.P)
    rows = [0, 3, case.n - 1]
    E = None if case.E is None else case.E[rows]
    some = case.guide.probabilities(case.X[rows], 1, embeddings=E, plain=plain)
    np.testing.assert_allclose(some, case.P[rows], atol=1e-5)
    none = case.guide.probabilities(case.X[:0], 1, embeddings=None if E is None else E[:0], plain=plain)
    assert none.shape == (0, case.P.shape[1])


def test_documents_without_terms_give_no_evidence(case):
    empty = sp.csr_array((2, case.X.shape[1]), dtype=np.float32)
    found = case.guide.probabilities(empty, 1, embeddings=None if case.E is None else case.E[:2])
    if case.E is None:
        assert not found[:, : case.guide.n_known + case.guide.n_groups].any()
        assert (found[:, -1] == 1).all() or not case.guide.open
    else:
        assert found.argmax(axis=1).tolist() == case.which[:2].tolist()  # an embedding is enough


def test_new_terms_and_row_numbers_change_no_probability(case):
    t = case.X.shape[1]
    moved = case.guide.renumbered(case.guide.rows + 7, t + 5)
    np.testing.assert_array_equal(moved.rows, case.guide.rows + 7)
    wider = sp.csr_array((case.X.data, case.X.indices, case.X.indptr), shape=(case.n, t + 5))
    np.testing.assert_array_equal(moved.probabilities(wider, 1, embeddings=case.E), case.P)
    same = case.guide.renumbered(case.guide.rows)
    assert same.features is case.guide.features


def test_positions_are_features_of_the_terms(case):
    found = case.guide.positions(case.X, 1)
    assert found.shape == (case.n, len(case.guide.seen))
    Z, M = case.guide.features.of(case.X, 1, case.E)
    expected = Z if case.E is not None else joint(Z, M, case.guide.share)
    np.testing.assert_array_equal(found, expected)
    labelled = found[: len(case.guide.rows)]
    np.testing.assert_allclose(case.guide.seen, labelled.T @ labelled, atol=1e-4)


def test_hidden_probabilities_are_honest(case):
    found = case.guide.left_out
    assert found.dtype == np.float32
    assert found.shape == (len(case.guide.rows), len(case.guide.covered))
    np.testing.assert_array_equal(case.guide.rows, np.arange(len(found)))
    own = case.guide.left_out_probabilities()
    leaves = [k for k in range(case.guide.n_known) if k not in case.guide.parents and k in case.guide.covered]
    inside = case.which[: len(found)] < len(leaves)
    hits = own[:, leaves].argmax(axis=1) == case.which[: len(found)]
    assert not len(found) or hits[inside].mean() > 0.8


def test_several_guides_of_the_same_features_at_once():
    case, other = Case("open"), Case("open")
    labels = supervised(np.eye(3, dtype=np.int8)[case.which[:20]], case.n, Forest((-1,) * 3))
    sample = replace(case.sample, supervision=labels, given=case.guide.features)
    second, third = learn_guide(sample, world="closed"), learn_guide(sample, world="open")
    together = side_by_side([case.guide, second, third], case.X, 2)
    for guide, found in zip((case.guide, second, third), together, strict=True):
        np.testing.assert_array_equal(found, guide.probabilities(case.X, 1))
    np.testing.assert_array_equal(other.P, case.P)


def test_guides_with_and_without_a_share_of_embeddings_at_once():
    case = Case("embeddings")
    without = replace(case.guide, choice=replace(case.guide.choice, share=0.0))
    alone = without.probabilities(case.X, 1)
    for guides in ([case.guide, without], [without, case.guide]):
        together = dict(zip(map(id, guides), side_by_side(guides, case.X, 1, embeddings=case.E), strict=True))
        np.testing.assert_array_equal(together[id(case.guide)], case.P)
        np.testing.assert_array_equal(together[id(without)], alone)
        with pytest.raises(ValueError, match="needs the embeddings"):
            side_by_side(guides, case.X, 1)


def test_embeddings_are_asked_for_only_if_they_count():
    case = Case("embeddings")
    assert case.guide.embedding == case.guide.share > 0
    with pytest.raises(ValueError, match="needs the embeddings"):
        case.guide.probabilities(case.X)
    with pytest.raises(ValueError, match="without embeddings"):
        Case("closed").guide.probabilities(case.X, embeddings=case.E)
    useless = replace(case.guide, choice=replace(case.guide.choice, share=0.0))
    assert useless.embedding == 0
    alone = useless.probabilities(case.X)
    np.testing.assert_array_equal(useless.probabilities(case.X, embeddings=case.E), alone)  # the fit still has them
    longer = case.guide.probabilities(case.X, embeddings=10 * case.E)
    np.testing.assert_allclose(longer, case.P, atol=1e-5)  # the length of an embedding does not matter


def test_known_topics_of_an_open_world_are_the_mean_of_both_sets_and_the_regression():
    case = Case("open")
    guide = case.guide
    Z, M = guide.features.of(case.X, 1)
    D = joint(Z, M, guide.share)
    first, second = guide.rivalries
    log_p = guide.groups.regression(D, second)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1, atol=1e-5)
    closed = expit(guide.known.odds(D, case.X @ guide.known.ratios, first, guide.known.regression(D, first)))
    both = expit(guide.groups.odds(D, case.X @ guide.groups.ratios, second, log_p))
    none, free = case.P[:, -1], both[:, 3:].sum(axis=1)
    expected = (both[:, :3] * closed[:, :3] * np.exp(log_p[:, :3])) ** (1 / 3)
    np.testing.assert_allclose(case.P[:, :3], expected, atol=1e-4)
    assert guide.none.tolist() == [1, 0]  # no labelled outsiders
    np.testing.assert_allclose(none, free / both.sum(axis=1), atol=1e-4)
    np.testing.assert_allclose(case.P[:, 3:-1].sum(axis=1), none, atol=1e-4)


def test_without_groups_p_none_is_the_chance_that_each_topic_is_absent():
    case = Case("no groups")
    expected = np.prod(1 - case.P[:, :3].astype(float), axis=1)
    np.testing.assert_allclose(case.P[:, -1], expected, atol=1e-5)
