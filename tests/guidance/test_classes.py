"""From labels and names to classes: naive Bayes against a slow loop, and the rules for labels of every kind."""

from dataclasses import replace

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from problems import planted_rows, vector_of
from scipy.special import expit

from topicsteer.guidance import classes, constants
from topicsteer.guidance.classes import Evidence, Task, choose, folds_of, learn, log_ratios, rows_times, spread
from topicsteer.guidance.constants import FOLDS, LENGTH, MIN_LABELS, RIDGES, SHARES, SHARPNESSES, SMOOTHING
from topicsteer.guidance.features import joint, unit_rows
from topicsteer.guidance.guide import Classes
from topicsteer.guidance.regression import Choice, Mix, Rivalry, balanced
from topicsteer.labels.forest import FLAT, Forest
from topicsteer.system.threads import workers

CHOICE = Choice(0.5, 1.0, 16.0)


def draw(k=3, labelled=30, names=0, forest=FLAT, size=30, seed=0, noise=0.3):
    """A task of documents of planted topics, labelled ones first, and the topic of each document."""
    X, which = planted_rows(k, size, seed=seed, noise=noise)
    rng = np.random.default_rng(seed)
    directions = np.linalg.svd(X.toarray(), full_matrices=False)[2][: 4 * k].T
    M = np.eye(k)[which] + 0.4 * rng.normal(size=(len(which), k))
    words = sp.csr_array(np.kron(np.eye(k), np.full(8, 8**-0.5))[:names].astype(np.float32))
    rows = sp.csr_array(sp.vstack([X, words], format="csr"))
    return (
        Task(
            rows,
            unit_rows(rows @ directions),
            unit_rows(np.vstack([M, np.eye(k)[:names]])),
            np.arange(labelled),
            (which[:labelled, None] == np.arange(k)).astype(np.int8),
            np.ones(labelled, dtype=bool),
            np.arange(names),
            k,
            Rivalry.of(forest, np.arange(k)),
        ),
        which,
    )


def accuracy(learnt, which, first=0):
    return (learnt.probabilities.argmax(axis=1) == which)[first:].mean()


def with_states(task, states, **more):
    states = np.asarray(states, dtype=np.int8)
    n = len(states)
    ones = {"rows": np.arange(n), "hideable": np.ones(n, dtype=bool)}
    return replace(task, states=states, **(ones | more))


def test_log_ratios_equal_the_slow_twin():
    task, _ = draw(names=2)
    P = np.random.default_rng(0).random((92, 3)).astype(np.float32)
    found = log_ratios(task.XT @ P + np.float32(SMOOTHING), task.totals)
    np.testing.assert_allclose(found, reference.log_ratios(task.X.toarray(), P, SMOOTHING), atol=1e-4)
    assert np.isfinite(log_ratios(task.XT @ np.ones_like(P) + np.float32(SMOOTHING), task.totals)).all()


def test_evidence_comes_from_visible_labels_and_from_probabilities_elsewhere():
    task, _ = draw(names=2)
    states = task.states.copy()
    states[5] = [1, -1, 0]
    task = with_states(task, states)
    D = joint(task.latent, task.meaning, 0.5)
    rng = np.random.default_rng(0)
    probabilities, visible = rng.random((90, 3)).astype(np.float32), rng.random(30) < 0.6
    visible[5] = True
    before = probabilities.copy()
    found = Evidence.of(task, D, probabilities, visible)
    np.testing.assert_array_equal(probabilities, before)  # not changed in place
    P = np.vstack([probabilities, np.eye(3)[:2]]).astype(float)
    for i in np.flatnonzero(visible):
        P[i] = [P[i, k] if state == -1 else state for k, state in enumerate(states[i])]
    np.testing.assert_allclose(found.ratios, reference.log_ratios(task.X.toarray(), P, SMOOTHING), atol=1e-4)
    centroids = P.T @ D
    centroids /= np.linalg.norm(centroids, axis=1)[:, None]
    np.testing.assert_allclose(found.centroids.T, centroids, atol=1e-5)
    np.testing.assert_allclose(found.shares, np.log(3 * P[:90].mean(axis=0) + 0.01), atol=1e-5)
    terms, cosines, shares = found.scores
    np.testing.assert_allclose(terms, task.X.toarray()[:90] @ found.ratios, atol=1e-4)
    np.testing.assert_allclose(cosines, D[:90] @ centroids.T, atol=1e-5)
    assert (shares == found.shares).all()
    half = Evidence.mean(found, Evidence.of(task, D, 1 - probabilities, visible))
    np.testing.assert_allclose(half.scores[0], task.X.toarray()[:90] @ half.ratios, atol=1e-4)
    np.testing.assert_allclose(half.scores[1], D[:90] @ half.centroids, atol=1e-5)


def test_rows_times_takes_the_first_rows():
    X = sp.csr_array(np.tile(planted_rows(2)[0].toarray(), (80, 1)))
    B = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
    for n in (0, 3, 4097, 4800):  # blocks have 4,096 rows
        np.testing.assert_allclose(rows_times(X, n, B), X.toarray()[:n] @ B, atol=1e-5)


def test_the_effective_number_of_classes():
    assert spread(np.full((5, 4), -3.0)) == pytest.approx(4, rel=1e-5)
    assert spread(np.tile([20.0, -20, -20], (5, 1))) == pytest.approx(1, rel=1e-5)


# --- learning ---


@pytest.mark.parametrize("names", [0, 3])
def test_labels_teach_all_documents(names):
    task, which = draw(names=names)
    learnt = learn(task)
    assert accuracy(learnt, which, 30) > 0.95
    assert ((learnt.probabilities >= 0) & (learnt.probabilities <= 1)).all()
    hidden = expit(learnt.hidden)
    assert (hidden.argmax(axis=1) == which[:30]).mean() > 0.9
    assert np.isfinite(hidden).all()


def test_a_training_is_a_linear_map_of_its_documents():
    """The classes of a guide give documents the probabilities that the training gave them."""
    for task, _ in (draw(names=2), draw(labelled=0, names=3), draw(k=4, forest=Forest((-1, -1, 0, 0)))):
        learnt = learn(task, CHOICE)
        D = joint(task.latent, task.meaning, learnt.choice.share)[: task.n_documents]
        own = Classes.of(learnt)
        odds = own.odds(D, task.X[: task.n_documents] @ own.ratios, task.rivalry, own.regression(D, task.rivalry))
        np.testing.assert_allclose(expit(odds), learnt.probabilities, atol=1e-4)


@pytest.mark.parametrize("other", [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [-1, 0, 1], [-1, -1, -1]])
def test_a_hidden_label_does_not_change_the_score_of_its_document(monkeypatch, other):
    """With the mix, the folds and the weights of documents fixed, because these numbers come from all labels."""
    monkeypatch.setattr(classes, "balanced", lambda target: np.ones(len(target)))
    fold_of = np.arange(30) % FOLDS
    monkeypatch.setattr(classes, "folds_of", lambda _: fold_of)
    monkeypatch.setattr(classes, "learn_mix", lambda *given: given[-1])
    task, _ = draw(names=2)
    states = task.states.copy()
    states[4] = other
    before, after = learn(task, CHOICE), learn(with_states(task, states), CHOICE)
    own = fold_of == fold_of[4]
    np.testing.assert_array_equal(before.hidden[own], after.hidden[own])
    if other != task.states[4].tolist():
        assert (before.hidden[~own] != after.hidden[~own]).any()


def test_unknown_labels_do_not_count():
    task, which = draw(noise=0.8)
    states = task.states.copy()
    unknown = np.random.default_rng(0).random(states.shape) < 0.5
    states[unknown & (states == 0)] = -1
    task = with_states(task, states)
    D = joint(task.latent, task.meaning, 0.5)
    own = task.examples(D[task.example_rows], np.ones(30, dtype=bool))
    assert not own.centred[states == -1].any()
    assert own.centred[states != -1].all()
    assert accuracy(learn(task, CHOICE), which, 30) > 0.9


def test_labels_that_only_forbid_count():
    """Half of the labels name a topic, and the others deny the topic that is likeliest without them."""
    task, which = draw(labelled=15)
    before = learn(task, CHOICE).probabilities
    first = int(np.flatnonzero(which[15:] == 0)[0]) + 15
    states = np.vstack([task.states, [[0, -1, -1]]])
    rows = np.append(np.arange(15), first)
    after = learn(with_states(task, states, rows=rows), CHOICE).probabilities
    assert before[first].argmax() == 0
    assert after[first, 0] < before[first, 0]
    own = with_states(task, states, rows=rows)
    D = joint(own.latent, own.meaning, 0.5)
    examples = own.examples(D[own.example_rows], np.ones(16, dtype=bool))
    assert examples.weight[15] == 1
    assert examples.centred[15, 0] < 0
    assert not examples.centred[15, 1:].any()
    assert not examples.target[15].any()


def test_threads_do_not_matter():
    task, _ = draw(names=1)
    found = []
    for threads in (1, 3):
        with workers(threads) as run:
            found.append(learn(replace(task, run=run)))
    for name in ("softmax", "ridge", "centroids", "ratios", "shares", "hidden", "probabilities"):
        np.testing.assert_array_equal(*(getattr(learnt, name) for learnt in found), err_msg=name)
    np.testing.assert_array_equal(*(vector_of(learnt.mix) for learnt in found))
    assert found[0].choice == found[1].choice


# --- few labels ---


def test_names_alone_are_enough():
    task, which = draw(labelled=0, names=3)
    learnt = learn(task)
    assert accuracy(learnt, which) > 0.95
    assert learnt.hidden.shape == (0, 3)
    assert not learnt.ridge.any()
    assert learnt.choice == choose(task)


def test_a_topic_with_a_name_only_stands_beside_labelled_ones():
    task, which = draw(names=3)
    kept = np.flatnonzero(which[:30] < 2)
    states = (which[kept, None] == np.arange(3)).astype(np.int8)
    learnt = learn(with_states(task, states, rows=kept), CHOICE)
    assert accuracy(learnt, which) > 0.9


def test_one_label_per_topic():
    task, which = draw()
    first = np.array([np.flatnonzero(which == k)[0] for k in range(3)])
    learnt = learn(with_states(task, np.eye(3), rows=first))
    assert accuracy(learnt, which) > 0.9
    assert np.isnan(learnt.hidden).all()  # nothing can be hidden
    assert learnt.mix.weights.tolist() == [0.5, SHARPNESSES[2] / 2, 0.5, 5.0, 0.5]


def test_one_class():
    task, which = draw(k=1)
    learnt = learn(task)
    assert np.isfinite(learnt.probabilities).all()
    X, which = planted_rows(2)
    Z = unit_rows(X.toarray())
    own = np.flatnonzero(which == 0)[:20]
    rivalry = Rivalry.of(FLAT, np.arange(1))
    alone = Task(X, Z, Z[:, :0], own, np.ones((20, 1), np.int8), np.ones(20, bool), np.zeros(0, int), 1, rivalry)
    P = learn(alone).probabilities[:, 0]
    assert P[which == 0].mean() > P[which == 1].mean()


def test_a_document_without_terms_is_harmless():
    task, which = draw()
    X = task.X.tolil()
    X[[0, 50]] = 0
    latent, meaning = task.latent.copy(), task.meaning.copy()
    latent[[0, 50]], meaning[[0, 50]] = 0, 0
    learnt = learn(replace(task, X=sp.csr_array(X, dtype=np.float32), latent=latent, meaning=meaning))
    assert np.isfinite(learnt.probabilities).all()
    np.testing.assert_array_equal(learnt.probabilities[50:51].argmax(axis=1), learnt.probabilities[0:1].argmax(axis=1))
    assert accuracy(learnt, which, 51) > 0.9


def test_documents_with_none_of_the_topics_do_not_hide_that_topics_have_names_only():
    """Twenty labels of the class "none" and names of the topics: there is no topic whose labels could be hidden."""
    task, which = draw(names=2)
    rows = np.flatnonzero(which == 2)[:20]
    states = np.tile(np.array([0, 0, 1], dtype=np.int8), (20, 1))
    task = with_states(task, states, rows=rows, n_known=2, rivalry=Rivalry.of(FLAT, np.arange(2), 1))
    learnt = learn(task)
    assert accuracy(learnt, which) > 0.9


def test_all_documents_are_labelled():
    task, which = draw(labelled=90)
    assert accuracy(learn(task, CHOICE), which) == 1


def test_documents_with_several_topics():
    rng = np.random.default_rng(0)
    X, which = planted_rows(4, 40)
    other = rng.permutation(160)
    both = unit_rows((X + X[other]).toarray())
    Z = unit_rows(both @ np.linalg.svd(both, full_matrices=False)[2][:16].T)
    has = (np.eye(4)[which] + np.eye(4)[which[other]]) > 0
    states = has[:80].astype(np.int8)
    rivalry = Rivalry.of(FLAT, np.arange(4))
    task = Task(sp.csr_array(both), Z, Z[:, :0], np.arange(80), states, np.ones(80, bool), np.zeros(0, int), 4, rivalry)
    learnt = learn(task)
    assert learnt.mix.coupling < 0.5  # topics do not exclude each other
    found = learnt.probabilities[80:]
    assert ((found > 0.5) == has[80:]).mean() > 0.9
    assert abs(found.sum(axis=1).mean() - has.sum(axis=1).mean()) < 0.15
    single, _ = draw(k=4, labelled=80)
    assert learn(single).mix.coupling > 0.7


# --- folds and settings ---


def test_folds_spread_each_topic_and_leave_single_documents_alone():
    task, which = draw(names=1)
    states = np.hstack([task.states, np.zeros((30, 2), dtype=np.int8)])
    states[:2] = [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    states[2] = -1  # a label of another kind
    task = with_states(task, states, named=np.array([4]), hideable=np.arange(30) != 29)
    fold_of = folds_of(task)
    assert fold_of[0] == -1  # the only example of its class
    assert fold_of[1] >= 0  # a class that also has a name
    assert fold_of[2] == -1  # the only document without a topic
    assert fold_of[29] == -1
    for k in range(3):
        own = fold_of[3:29][which[3:29] == k]
        counts = np.bincount(own, minlength=FOLDS)
        assert counts.max() - counts.min() <= 1
    np.testing.assert_array_equal(folds_of(task), fold_of)
    nobody = with_states(draw()[0], np.zeros((0, 3)))
    assert folds_of(nobody).shape == (0,)


def test_few_labels_have_a_rule_for_the_settings():
    task, _ = draw(labelled=2 * MIN_LABELS - 1)
    share = LENGTH / (LENGTH + task.X.nnz / task.X.shape[0])
    assert choose(task) == Choice(share, RIDGES[2], SHARPNESSES[2])
    assert choose(replace(task, meaning=task.meaning[:, :0])) == Choice(0.0, RIDGES[2], SHARPNESSES[2])
    many = draw(labelled=2 * MIN_LABELS, names=1)[0]
    found = choose(many)
    assert found.share in SHARES
    assert found.ridge in RIDGES
    assert choose(replace(many, meaning=many.meaning[:, :0])).share == 0


def test_meaning_has_a_larger_share_where_terms_carry_no_information():
    task, _ = draw(labelled=60)
    rng = np.random.default_rng(0)
    useless = unit_rows(rng.normal(size=task.latent.shape))
    assert choose(replace(task, latent=useless)).share >= 0.5
    assert choose(replace(task, meaning=unit_rows(rng.normal(size=task.meaning.shape)))).share <= 0.25


def test_a_name_counts_like_a_labelled_document():
    task, _ = draw(labelled=60, names=3)
    D = task.latent[task.example_rows]
    for seen in (np.ones(60, dtype=bool), np.arange(60) < 6):  # hidden labels count, too
        own = task.examples(D, seen)
        assert own.n_documents == seen.sum()
        np.testing.assert_array_equal(own.weight[own.n_documents :], constants.NAME)
        np.testing.assert_array_equal(own.target[own.n_documents :], np.eye(3))
        assert not own.forbidden[own.n_documents :].any()
        np.testing.assert_array_equal(own.weight[: own.n_documents], balanced(task.given.astype(float))[seen])


def test_the_mix_of_hidden_scores_uses_the_fold_that_hides_each_document():
    task, _ = draw()
    fold_of = np.where(np.arange(30) < 6, -1, np.arange(30) % 3)
    pairs = classes.HiddenPairs.of(task, fold_of)
    scores = [[np.full((90, 3), float(model))] for model in range(4)]
    seen = {}

    def remembered(found, given, weight, rivalry, start):
        seen.update(found=found, given=given, weight=weight)
        return start

    original, classes.learn_mix = classes.learn_mix, remembered
    try:
        pairs.mix(scores, Mix(np.ones(1), 1.0, 0.0))
    finally:
        classes.learn_mix = original
    np.testing.assert_array_equal(seen["found"][0], np.repeat(1.0 + fold_of[6:], 3).reshape(-1, 3))
    np.testing.assert_array_equal(seen["given"], task.given[6:])
    assert (seen["weight"] == 1).all()
