"""Training of a guide: labels of every kind, names, the decision whether the world is open, and free topics."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from problems import planted_rows, planted_texts
from sklearn.metrics import adjusted_rand_score, average_precision_score
from sklearn.metrics.pairwise import cosine_similarity

from topicsteer.analysis.evaluation import logistic_regression
from topicsteer.backends import as_rows
from topicsteer.backends.block_folder import write_blocks
from topicsteer.corpora import load_docstrings
from topicsteer.guidance.features import Sample, unit_rows
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.keywords import TopicTexts
from topicsteer.guidance.regression import Choice
from topicsteer.guidance.train import DECLARED, assumed_states, free_topics, learn_guide
from topicsteer.labels.codebook import Lineage
from topicsteer.labels.forest import Forest
from topicsteer.labels.forms import supervise
from topicsteer.labels.supervision import Supervision
from topicsteer.text import TextVectorizer


def learn(X, labels, names=None, *, E=None, vectors=None, threads=1, drawn=None, **options):
    rows = as_rows(X) if sp.issparse(X) else X
    return learn_guide(Sample(rows, labels, E, vectors, threads=threads, drawn=drawn), names, **options)


def labels_of(which, topics, per_topic, more=None):
    """The first documents of the first topics, by the number of the topic."""
    given = {int(i): int(k) for k in range(topics) for i in np.flatnonzero(which == k)[:per_topic]}
    return supervise(given | (more or {}), len(which), topics=list(range(topics)))


def words(X, which, topics):
    """The five terms of each of the first topics that differ most between its documents and the others, as its name."""
    terms = np.zeros((topics, X.shape[1]), dtype=np.float32)
    for k, row in enumerate(terms):
        difference = X[which == k].mean(axis=0) - X[which != k].mean(axis=0)
        row[np.argsort(-difference)[:5]] = 5**-0.5
    return TopicTexts(sp.csr_array(terms), np.arange(topics))


def assert_same(one, two):
    for mine, theirs in ((one.arrays(), two.arrays()), (one.outside_arrays(), two.outside_arrays())):
        assert (mine is None) == (theirs is None)
        for name, array in (mine or {}).items():
            np.testing.assert_array_equal(array, theirs[name], err_msg=name)


@pytest.fixture(scope="module")
def eight():
    """Documents of eight planted topics in random order, and the topic of each."""
    which = np.random.default_rng(0).permutation(np.repeat(np.arange(8), 40))
    texts = planted_texts(8, 40, words=16, own=16)
    place = np.argsort(np.argsort(which, kind="stable"), kind="stable")
    return sp.csr_array(TextVectorizer().fit_transform([texts[i] for i in place]), dtype=np.float32), which


# --- known topics ---


def test_nothing_to_learn_from():
    X, which = planted_rows(2)
    assert learn(X, supervise(None, 60)) is None
    assert learn(X, supervise(None, 60, topics=["a"])) is None
    assert learn(X, supervise({0: "(none)"}, 60, topics=["a"])) is None
    empty = sp.csr_array((3, 4), dtype=np.float32)
    assert learn(empty, supervise(["a", None, None], 3)) is None
    no_texts = TopicTexts(sp.csr_array((0, 16), dtype=np.float32), np.zeros(0, dtype=np.int64))
    assert learn(X, supervise(None, 60, topics=["a"]), no_texts) is None
    assert learn(X, labels_of(which, 2, 1), no_texts) is not None


def test_names_without_any_document_that_has_terms():
    empty = sp.csr_array((2, 8), dtype=np.float32)
    name = TopicTexts(sp.csr_array(np.eye(1, 8, dtype=np.float32)), np.zeros(1, dtype=np.int64))
    guide = learn(empty, supervise(["a", "a"], 2), name, world="closed")
    assert guide.covered.tolist() == [0]
    assert not guide.probabilities(empty).any()


def test_tiny_matrices():
    tiny = sp.csr_array(np.eye(2, dtype=np.float32))
    for world in (None, "open", "closed"):
        guide = learn(tiny, supervise(["a", "b"], 2), world=world)
        assert guide.probabilities(tiny)[:, :2].argmax(axis=1).tolist() == [0, 1]
    one = learn(tiny, supervise(["a", None], 2), world="closed").probabilities(tiny)
    assert np.isfinite(one).all()


@pytest.mark.parametrize("world", [None, "closed"])
def test_topics_without_labels_stay_empty(world):
    X, which = planted_rows(4)
    labels = supervise({int(i): int(which[i]) for i in range(40)}, 120, topics=[0, 1, 2, 3, "nobody"])
    guide = learn(X, labels, world=world)
    P = guide.probabilities(X)
    assert not P[:, 4].any()
    assert guide.covered.tolist() == [0, 1, 2, 3]
    assert (P[40:, :4].argmax(axis=1) == which[40:]).mean() > 0.95


def test_a_single_topic_with_yes_and_no():
    X, which = planted_rows(2)
    y = np.full((60, 1), np.nan)
    y[:24, 0] = which[:24] == 0
    guide = learn(X, supervise(y, 60))
    found = guide.probabilities(X)[:, 0]
    assert guide.open  # the documents without the topic form groups
    assert found[24:][which[24:] == 0].min() > found[24:][which[24:] == 1].max()


def test_one_topic_with_yes_only_is_told_apart_from_the_rest(eight):
    X, which = eight
    guide = learn(X, labels_of(which, 1, 8))
    P = guide.probabilities(X)
    assert guide.open
    assert average_precision_score(which == 0, P[:, 0]) > 0.95
    assert P[which > 0, 0].mean() < 0.2


def test_negative_and_unknown_labels():
    X, which = planted_rows(5, 40)
    y = np.full((200, 5), np.nan)
    for i in range(60):
        y[i, which[i]] = 1
        y[i, (which[i] + 1) % 5] = 0  # the other three topics are unknown
    found = learn(X, supervise(y, 200), world="closed").probabilities(X)
    assert (found[60:].argmax(axis=1) == which[60:]).mean() > 0.9


def test_topics_that_labels_leave_open_count_as_absent():
    tree = Forest((-1, -1, 0))
    states = np.array([[1, -1, -1], [-1, 0, -1], [-1, -1, -1], [-1, 1, -1], [1, 0, 0]], dtype=np.int8)
    found = assumed_states(states, tree).tolist()
    assert found == [[1, 0, -1], [-1, 0, -1], [-1, -1, -1], [0, 1, 0], [1, 0, 0]]
    flat = assumed_states(states, Forest((-1, -1, -1)))
    assert flat.tolist() == [[1, 0, 0], [-1, 0, -1], [-1, -1, -1], [0, 1, 0], [1, 0, 0]]


def test_names_alone_and_names_beside_labels():
    X, which = planted_rows(5, 40)
    alone = learn(X, supervise(None, 200, topics=range(5)), words(X, which, 5), world="closed")
    assert (alone.probabilities(X).argmax(axis=1) == which).mean() > 0.9
    assert alone.chosen_from == 0
    assert not alone.rows.size
    given = supervise({int(np.flatnonzero(which == k)[0]): k for k in range(4)}, 200, topics=range(5))
    named, plain = (learn(X, given, texts, world="closed").probabilities(X) for texts in (words(X, which, 5), None))
    assert (named.argmax(axis=1) == which).mean() > (plain.argmax(axis=1) == which).mean()
    assert (named[which == 4].argmax(axis=1) == 4).mean() > 0.8  # this topic has no label


def test_labels_outweigh_wrong_names():
    X, which = planted_rows(5, 40)
    right = words(X, which, 5)
    wrong = replace(right, topics=np.array([1, 2, 3, 4, 0]))
    guide = learn(X, supervise({i: int(which[i]) for i in range(100)}, 200), wrong, world="closed")
    assert (guide.probabilities(X)[100:].argmax(axis=1) == which[100:]).mean() > 0.9


@pytest.mark.parametrize("many", [True, False])
def test_meaning_helps_where_terms_carry_no_information(many):
    rng = np.random.default_rng(0)
    which = rng.integers(0, 3, 240)
    X = sp.random_array((240, 50), density=0.2, rng=rng, dtype=np.float32).toarray()
    X = sp.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True))
    E = np.eye(3)[which] + 0.3 * rng.normal(size=(240, 3))
    labels = supervise({i: int(which[i]) for i in range(45 if many else 6)}, 240, topics=range(3))
    guide = learn(X, labels, E=E, world="closed")
    assert guide.embedding > 0
    found = guide.probabilities(X, embeddings=E)
    assert (found[45:].argmax(axis=1) == which[45:]).mean() > 0.9


def test_a_name_finds_documents_that_share_no_word_with_it():
    X, which = planted_rows(3, 40)
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(3, 6))
    vectors = (np.repeat(meaning, 8, axis=0) + 0.5 * rng.normal(size=(24, 6))).astype(np.float32)
    names = TopicTexts(sp.csr_array((3, 24), dtype=np.float32), np.arange(3), meaning.astype(np.float32))
    guide = learn(X, supervise(None, 120, topics=range(3)), names, vectors=vectors, world="closed")
    assert (guide.probabilities(X).argmax(axis=1) == which).mean() > 0.95
    wider = replace(names, embeddings=np.ones((3, 9), dtype=np.float32))  # of another encoder
    assert np.isfinite(learn(X, labels_of(which, 3, 5), wider, vectors=vectors, world="closed").probabilities(X)).all()


def test_a_tree_learns_parents_and_children():
    X, which = planted_rows(4, 40)
    paths = [["a/x", "a/y", "b/z", "b/w"][k] for k in which[:60]]
    given = {i: path if i % 2 else path[0] for i, path in enumerate(paths)}  # half of the labels end above the leaves
    lineage = Lineage(separator="/")
    labels = supervise(given, 160, lineage=lineage)
    guide = learn(X, labels, world="closed")
    P = guide.probabilities(X)
    leaves = [labels.topics.index(name) for name in ("a/x", "a/y", "b/z", "b/w")]
    parents = [labels.topics.index(name) for name in "ab"]
    assert (P[60:][:, leaves].argmax(axis=1) == which[60:]).mean() > 0.9
    assert (P[60:][:, parents].argmax(axis=1) == which[60:] // 2).mean() > 0.95
    for k, parent in enumerate(guide.parents):
        assert parent < 0 or (P[:, parent] >= P[:, k]).all()


def test_settings_and_features_can_be_given():
    X, which = planted_rows(3, 40)
    labels = labels_of(which, 3, 12)
    first = learn(X, labels, world="closed")
    choice = Choice(0.0, 10.0, 4.0)
    assert learn(X, labels, choice=choice, world="closed").choice == choice
    steps = []
    sample = Sample(as_rows(X), labels, given=first.features)
    again = learn_guide(sample, choice=first.choice, world="closed", report=steps.append)
    assert_same(again, first)
    assert steps == ["known topics"]
    steps.clear()
    learn(X, labels, world="open", report=steps.append)
    assert steps == ["features", "known topics", "documents without a topic", "groups of documents"]


@pytest.mark.slow
def test_better_than_the_baselines_and_calibrated():
    documents = load_docstrings()
    X = sp.csr_array(TextVectorizer().fit_transform(documents.texts))
    everything = supervise(documents.labels, len(documents))
    truth = everything.indicator().toarray() > 0
    shown = supervise(documents.hide_labels(0.95, 1).labels, len(documents), topics=everything.topics)
    hidden = ~shown.labelled
    ours = learn(X, shown, world="closed").probabilities(X)[hidden]
    centroids = (shown.indicator().T @ X).toarray()
    for baseline in (logistic_regression(X, shown), cosine_similarity(X, centroids)):
        for average in ("macro", "micro"):
            own, theirs = (average_precision_score(truth[hidden], p, average=average) for p in (ours, baseline[hidden]))
            assert own > theirs
    p, right = ours.ravel(), truth[hidden].ravel()
    bins = np.minimum((p * 10).astype(int), 9)
    error = sum(abs(p[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins))
    assert error < 0.03


# --- the open world ---


def test_a_closed_world_keeps_every_bit(eight):
    X, which = eight
    labels = labels_of(which, 8, 10)
    found, closed = learn(X, labels, n_free=4), learn(X, labels, world="closed")
    assert not found.open
    assert_same(found, closed)
    np.testing.assert_array_equal(found.probabilities(X), closed.probabilities(X))


def test_an_open_world_is_found_and_its_topics_are_groups(eight):
    X, which = eight
    guide = learn(X, labels_of(which, 4, 10))
    assert guide.open
    P = guide.probabilities(X)
    unlabelled = np.ones(320, dtype=bool)
    unlabelled[guide.rows] = False
    none = P[:, -1]
    assert none[unlabelled & (which >= 4)].mean() > 0.9
    assert none[unlabelled & (which < 4)].mean() < 0.1
    assert (P[which < 4, :4].argmax(axis=1) == which[which < 4]).mean() > 0.95
    assert P[which >= 4, :4].max(axis=1).mean() < 0.2
    topics = free_topics(guide, 4, 320)
    free = np.stack([P[:, [4 + k for k in topic]].max(axis=1) for topic in topics], axis=1)
    assert adjusted_rand_score(which[which >= 4], free[which >= 4].argmax(axis=1)) > 0.75
    assert abs(len(free_topics(guide, "auto", 320)) - 4) <= 1
    assert guide.sizes.sum() == pytest.approx(160, rel=0.1)


def test_the_number_of_free_topics_does_not_change_known_ones_or_p_none(eight):
    X, which = eight
    few, many = (learn(X, labels_of(which, 4, 10), n_free=n) for n in (1, 4))
    np.testing.assert_array_equal(few.probabilities(X), many.probabilities(X))


def test_a_doubtful_share_opens_the_world_if_the_user_asks_for_free_topics(monkeypatch, eight):
    from topicsteer.guidance import train
    from topicsteer.guidance.open_world import ShareOutside

    X, which = eight
    labels = labels_of(which, 8, 5)
    for share, asked, is_open in ((0.2, False, False), (0.2, True, True), (0.04, True, False)):
        monkeypatch.setattr(train, "share_outside", lambda *_, share=share: ShareOutside(share, 0.5, False))
        assert learn(X, labels, asked=asked).open == is_open


def test_an_outside_that_is_missed_can_be_declared(eight):
    X, which = eight
    labels = labels_of(which, 7, 2)
    assert not learn(X, labels).open
    assert learn(X, labels, world="open").open
    outside = np.flatnonzero(which == 7)[:DECLARED].tolist()
    assert learn(X, labels_of(which, 7, 2, dict.fromkeys(outside, "(none)"))).open
    assert not learn(X, labels_of(which, 7, 2, dict.fromkeys(outside[1:], "(none)"))).open


def test_labelled_outsiders_are_learnt_in_a_closed_world_too(eight):
    """Their class is a rival of the known topics."""
    X, which = eight
    given = dict.fromkeys(np.flatnonzero(which == 7)[:10].tolist(), "(none)")
    plain, taught = (learn(X, labels_of(which, 7, 10, more), world="closed").probabilities(X) for more in (None, given))
    rest = np.flatnonzero(which == 7)[10:]
    assert taught.shape == plain.shape == (320, 7)
    assert taught[rest].max(axis=1).mean() < plain[rest].max(axis=1).mean() / 2


def test_p_none_is_calibrated_by_labelled_outsiders(eight):
    X, which = eight
    rng = np.random.default_rng(0)
    drawn = rng.choice(320, 90, replace=False).tolist()
    given = {i: int(which[i]) if which[i] < 5 else "(none)" for i in drawn}
    assert learn(X, supervise(given, 320, topics=range(5))).none.tolist() == [1, 0]  # nobody knows how they were chosen
    guide = learn(X, supervise(given, 320, topics=range(5)), drawn=np.isin(np.arange(320), drawn))
    assert guide.open
    assert guide.none.tolist() != [1, 0]
    rest = np.setdiff1d(np.arange(320), drawn)
    none = guide.probabilities(X)[rest, -1]
    assert none.mean() == pytest.approx((which[rest] >= 5).mean(), abs=0.04)
    assert average_precision_score(which[rest] >= 5, none) > 0.98


def test_names_alone_in_a_declared_open_world(eight):
    X, which = eight
    names = words(X, which, 4)
    guide = learn(X, supervise(None, 320, topics=range(4)), names, world="open", n_free=4)
    P = guide.probabilities(X)
    assert average_precision_score(which >= 4, P[:, -1]) > 0.95
    assert (P[which < 4, :4].argmax(axis=1) == which[which < 4]).mean() > 0.95


def test_names_beside_labelled_outsiders(eight):
    X, which = eight
    names = words(X, which, 4)
    outside = dict.fromkeys(np.flatnonzero(which >= 4)[:20].tolist(), "(none)")
    for world in (None, "closed"):
        guide = learn(X, supervise(outside, 320, topics=range(4)), names, world=world)
        P = guide.probabilities(X)
        assert (P[which < 4, :4].argmax(axis=1) == which[which < 4]).mean() > 0.9


def test_too_few_documents_for_groups_leave_the_world_open():
    X, which = planted_rows(3, 3)
    guide = learn(X, labels_of(which, 2, 1), world="open")
    assert (guide.open, guide.n_groups, guide.sizes) == (True, 0, None)
    assert guide.probabilities(X).shape == (9, 3)
    assert free_topics(guide, 3, 9) == ()


def test_an_earlier_guide_keeps_its_groups(eight):
    X, which = eight
    before = learn(X, labels_of(which, 4, 10))
    after = learn(X, labels_of(which, 4, 12), n_free=99, previous=before)
    assert after.n_groups == before.n_groups
    topics = free_topics(before, 4, 320)
    best = []
    for guide in (before, after):
        P = guide.probabilities(X)[which >= 4]
        best.append(np.stack([P[:, [4 + k for k in topic]].max(axis=1) for topic in topics]).argmax(axis=0))
    assert (best[0] == best[1]).mean() > 0.9


def test_meaning_and_a_tree_in_an_open_world(eight):
    X, which = eight
    vectors = np.random.default_rng(0).normal(size=(X.shape[1], 12)).astype(np.float32)
    leaves = {int(i): f"a/{k}" if k < 2 else f"b/{k}" for k in range(4) for i in np.flatnonzero(which == k)[:10]}
    labels = supervise(leaves, 320, lineage=Lineage(separator="/"))
    guide = learn(X, labels, vectors=vectors, world="open")
    P = guide.probabilities(X)
    assert average_precision_score(which >= 4, P[:, -1]) > 0.95
    a, b = labels.topics.index("a"), labels.topics.index("b")
    assert (P[which < 2][:, a] > P[which < 2][:, b]).mean() > 0.95


# --- storage ---


@pytest.mark.parametrize("world", ["closed", "open"])
@pytest.mark.parametrize("kind", ["terms", "word vectors", "embeddings"])
def test_disk_memory_and_threads_give_the_same_guide(eight, tmp_path, kind, world):
    X, which = eight
    rng = np.random.default_rng(0)
    options = {"world": world}
    if kind == "word vectors":
        options["vectors"] = rng.normal(size=(X.shape[1], 6)).astype(np.float32)
    if kind == "embeddings":
        options["E"] = (np.eye(8)[which] + rng.normal(size=(320, 8))).astype(np.float32)
    labels, names = labels_of(which, 4, 10), words(X, which, 4)
    whole = learn(X, labels, names, **options)
    assert_same(learn(X, labels, names, threads=3, **options), whole)
    blocks = [X[a:b] for a, b in itertools.pairwise([0, 100, 100, 233, 320])]
    assert_same(learn(write_blocks(tmp_path / "X", blocks), labels, names, **options), whole)


# --- any input ---


def draw_anything(seed):
    """A small sample with labels of any kind, maybe in a tree, maybe with meaning and names; and options."""
    rng = np.random.default_rng(seed)
    n, t, k = int(rng.integers(1, 120)), int(rng.integers(1, 30)), int(rng.integers(1, 7))
    which = rng.integers(0, k + 2, n)
    X = rng.random((n, t)) * (rng.random((n, t)) < 0.3)
    X += (which[:, None] == np.arange(t) % (k + 2)) * (rng.random((n, t)) < 0.7) * 2 * rng.random()
    X[rng.random(n) < rng.choice([0, 0.3])] = 0
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    tree = rng.random() < 0.4
    forest = Forest(tuple(int(rng.integers(-1, j)) if tree and j and rng.random() < 0.5 else -1 for j in range(k)))
    states = np.full((n, k), -1, dtype=np.int8)
    for i in np.flatnonzero(rng.random(n) < rng.random()):
        states[i] = rng.integers(-1, 2, k) if seed % 3 == 0 else np.arange(k) == which[i]  # some have no topic
    y = np.vstack([np.full((1, k), -1), forest.closed(states, explicit=bool(seed % 2))])
    patterns, pattern = np.unique(y, axis=0, return_inverse=True)
    labels = Supervision(tuple(range(k)), pattern.ravel()[1:].astype(np.int32), patterns.astype(np.int8), forest)
    size = int(rng.integers(1, 6))
    E = rng.normal(size=(n, size)).astype(np.float32) * (rng.random((n, 1)) < 0.9) if seed % 4 == 0 else None
    vectors = rng.normal(size=(t, size)).astype(np.float32) if seed % 4 == 1 else None
    topics = np.flatnonzero(rng.random(k) < 0.5)
    terms = unit_rows(rng.random((len(topics), t)) * (rng.random((len(topics), t)) < 0.2))
    meaning = rng.normal(size=(len(topics), size)) if rng.random() < 0.5 else None
    names = TopicTexts(sp.csr_array(terms), topics, meaning)
    options = {"world": (None, "open", "closed")[seed % 3], "n_free": int(rng.integers(5)), "asked": bool(seed % 2)}
    return Sample(as_rows(sp.csr_array(X.astype(np.float32))), labels, E, vectors, threads=1), names, options


@pytest.mark.parametrize("seed", range(24))
def test_any_input_gives_probabilities(seed):
    sample, names, options = draw_anything(seed)
    guide = learn_guide(sample, names, **options)
    if guide is None:
        assert not names.topics.size
        return
    X, E = sample.X.matrix, sample.embeddings
    P = guide.probabilities(X, 1, embeddings=E)
    assert P.shape == (X.shape[0], guide.n_known + guide.n_groups + guide.open)
    assert ((P >= 0) & (P <= 1)).all()
    for k, parent in enumerate(guide.parents):
        assert parent < 0 or (P[:, parent] >= P[:, k]).all()
    again = Guide.from_arrays(guide.arrays(), guide.outside_arrays())
    np.testing.assert_array_equal(again.probabilities(X, 1, embeddings=E), P)
    plain = guide.probabilities(X[:5], 1, embeddings=None if E is None else E[:5], plain=True)
    np.testing.assert_allclose(plain, P[:5], atol=2e-5)
    hidden = guide.left_out_probabilities()
    assert ((hidden >= 0) & (hidden <= 1) | np.isnan(hidden)).all()
    assert guide.open or options["world"] != "open"
    assert not guide.open or options["world"] != "closed"


# --- free topics ---


def test_small_topics_are_left_out(eight):
    X, which = eight
    guide = learn(X, labels_of(which, 4, 10))
    keep = free_topics(guide, 100, 320)
    sizes = guide.sizes.copy()
    sizes[list(keep[-1])] = 0.5
    smaller = replace(guide, sizes=sizes)
    assert keep[-1] not in free_topics(smaller, 100, 320)
    assert free_topics(guide, 0, 320) == ()
    assert free_topics(replace(guide, sizes=None), 5, 320) == ()


def guide_with(sizes, merges, n_known=2):
    """A guide whose groups merge in this order."""
    merges = np.array(merges, dtype=int).reshape(-1, 2)
    return SimpleNamespace(sizes=np.array(sizes), merges=merges, n_known=n_known, n_groups=len(sizes))


def test_groups_merge_to_free_topics_largest_first():
    guide = guide_with([16.0, 36, 40, 25], [(0, 1), (2, 3), (0, 2)])
    assert free_topics(guide, 1, 1000) == ((0, 1, 2, 3),)
    assert free_topics(guide, 2, 1000) == ((2, 3), (0, 1))
    assert free_topics(guide, 3, 1000) == ((0, 1), (2,), (3,))
    assert free_topics(guide, 9, 1000) == ((2,), (1,), (3,), (0,))
    assert free_topics(guide, 9, 30_000) == ((2,), (1,))  # the others have less than .1 % of the documents
    assert free_topics(guide_with([2.9], []), 2, 100) == ()
    assert free_topics(guide_with([3.0], []), 2, 100) == ((0,),)


def test_auto_makes_free_topics_as_large_as_known_ones():
    guide = guide_with([40.0, 10, 30, 20], [(0, 1), (2, 3), (0, 2)])
    assert free_topics(guide, "auto", 200) == ((0, 1), (2, 3))  # 100 documents have one of two known topics
    assert len(free_topics(guide, "auto", 150)) == 4
    assert len(free_topics(guide, "auto", 10_000)) == 1
