"""The comparison with other systems: the small methods against outside authorities, the trials on a made-up corpus."""

import json
import re
import time
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import average_precision_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import LabelSpreading

pytest.importorskip("matplotlib")
from experiments.peers import __main__ as peers
from experiments.peers import page, rivals, trials
from experiments.peers.trials import METHODS, OURS, Trial
from experiments.shared import corpora, encoder, internals
from experiments.shared.store import Store
from topicsteer.labels.forms import supervise

ALONE = [name for name, method in METHODS.items() if not method.package and "embeddings" not in method.reads]
PACKAGES = {"PLDA (tomotopy)": "tomotopy", "LabeledLDA (topica)": "topica", "CorEx with anchors": "corextopic"}


@pytest.fixture(scope="module")
def toy():
    return corpora.load("toy", "peers")


def problem(n=40, t=25, seed=0):
    """Counts of three topics, one label each for a third of the documents."""
    rng = np.random.default_rng(seed)
    own = rng.integers(3, size=n)
    rates = 0.2 + 2 * (np.arange(t) % 3 == own[:, None])
    counts = sp.csr_array(rng.poisson(rates).astype(float))
    labels = {i: [int(own[i])] for i in range(n // 3)}
    return counts, supervise(labels, n, topics=[0, 1, 2]), own


# --- the small methods ---


def test_label_propagation_is_scikit_learns():
    counts, supervision, own = problem()
    graph = rivals.neighbour_graph(rivals.latent_semantics(counts, 0, 8), 6)
    assert (graph != graph.T).nnz == 0
    assert graph.diagonal().sum() == 0
    labels = np.where(supervision.labelled, own, -1)
    theirs = LabelSpreading(kernel=lambda *_: graph.toarray(), alpha=0.9, max_iter=2000, tol=1e-12).fit(counts, labels)
    ours = rivals.label_propagation(graph, supervision, 0, rounds=500)
    np.testing.assert_allclose(ours, theirs.label_distributions_, atol=1e-8)


def test_naive_bayes_is_scikit_learns_before_em():
    counts, supervision, own = problem()
    rows = supervision.labelled
    theirs = MultinomialNB().fit(counts[rows], own[rows])
    theirs.class_log_prior_ = np.log((1 + theirs.class_count_) / (3 + rows.sum()))  # ours smooths the prior too
    ours = rivals.naive_bayes_em(counts, supervision, 0, rounds=0)
    np.testing.assert_allclose(1 / (1 + np.exp(-ours)), theirs.predict_proba(counts), atol=1e-9)


def test_naive_bayes_em_is_its_slow_twin():
    counts, supervision, own = problem()
    dense, n, rounds = counts.toarray(), counts.shape[0], 4
    share = np.zeros((n, 3))
    for i in np.flatnonzero(supervision.labelled):
        share[i, own[i]] = 1
    for _ in range(rounds + 1):
        posterior = np.zeros((n, 3))
        for k in range(3):
            words = [1 + sum(share[i, k] * dense[i, j] for i in range(n)) for j in range(dense.shape[1])]
            prior = (1 + share[:, k].sum()) / (3 + share.sum())
            for i in range(n):
                posterior[i, k] = prior * np.prod((np.array(words) / sum(words)) ** dense[i])
        posterior /= posterior.sum(axis=1, keepdims=True)
        share = np.where(supervision.labelled[:, None], share, posterior)
    ours = rivals.naive_bayes_em(counts, supervision, 0, rounds=rounds)
    np.testing.assert_allclose(1 / (1 + np.exp(-ours)), posterior, atol=1e-9)


def test_odds_do_not_saturate():
    found = rivals.odds(np.array([[0.0, -100.0, -200.0], [0.0, -50.0, -200.0]]))
    assert found[0, 0] == pytest.approx(100)
    assert found[1, 0] == pytest.approx(50)
    assert found[0, 1] == pytest.approx(-100)


def test_ssnmf_lowers_its_objective_and_is_the_packages():
    X, supervision, _ = problem()
    rows, Y = rivals.given(supervision)
    rng = np.random.default_rng(1)
    W, H, B = rng.random((X.shape[0], 3)), rng.random((3, X.shape[1])), rng.random((3, 3))
    start, history = (W, H, B), []
    for _ in range(30):
        W, H, B = rivals.ssnmf_step(X, rows, Y, W, H, B, 2.0)
        history.append(np.square(X - W @ H).sum() + 2 * np.square(Y - W[rows] @ B).sum())
    assert (np.diff(history) <= 1e-9 * history[0]).all()

    package = pytest.importorskip("ssnmf")
    L, full = np.zeros((3, X.shape[0])), np.zeros((3, X.shape[0]))
    L[:, rows], full[:, rows] = 1, Y.T
    model = package.SSNMF(
        X.toarray().T, 3, Y=full, L=L, lam=2.0, A=start[1].T, B=start[2].T, S=start[0].T, modelNum=3, tol=0
    )
    model.mult(numiters=30)
    np.testing.assert_allclose(model.S.T, W, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(model.A.T, H, rtol=1e-4, atol=1e-9)


def test_cnmf_lowers_its_objective_and_keeps_topics_together():
    X, supervision, own = problem()
    rows, Y = rivals.given(supervision)
    A = rivals.constraint(X.shape[0], rows, Y)
    assert A.shape == (40, 3 + 27)
    assert np.array_equal(A[rows][:, :3].toarray(), Y)
    rng = np.random.default_rng(1)
    Z, H, history = rng.random((A.shape[1], 3)), rng.random((3, X.shape[1])), []
    for _ in range(30):
        Z, H = rivals.cnmf_step(X, A, Z, H)
        history.append(np.square(X - A @ Z @ H).sum())
    assert (np.diff(history) <= 1e-9 * history[0]).all()
    scores = rivals.cnmf(X, supervision, 0)
    for k in range(3):  # documents with the same label are the same point
        assert np.ptp(scores[rows[own[rows] == k]], axis=0).max() < 1e-12


def test_components_get_the_names_of_the_labelled_documents():
    _, supervision, own = problem()
    W = np.eye(3)[own][:, [2, 0, 1]]
    assert np.array_equal(rivals.matched(W, supervision, 0).argmax(axis=1), own)


def test_self_training_takes_up_what_is_sure():
    counts, supervision, own = problem(n=120)
    scores = rivals.self_trained(counts, supervision, 0)
    assert (scores.argmax(axis=1) == own).mean() > 0.9


@pytest.mark.parametrize("name", [*ALONE, *PACKAGES])
def test_every_method_beats_chance_on_easy_documents(name, toy):
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    row = trials.perform(Trial("toy", name, "20 %", 0, ""))
    assert row["macro"] > 0.4, row  # chance is about 0.25
    assert row["seconds"] > 0


@pytest.mark.parametrize("name", [name for name in ALONE if not name.startswith(("NMF", "LDA"))])
def test_a_topic_without_labels_comes_last(name, toy):
    rows = np.flatnonzero(toy.truth[:, [0]].toarray().ravel() == 0)[:30]
    method = METHODS[name]
    seen, further, _ = trials.see(method.reads, "toy", 0)
    with pytest.warns() if "TS-NMF" in name else nullcontext():
        scores = method.run(seen, toy.supervision(rows), 0, **further, **method.changes)
    assert scores.shape == toy.truth.shape
    assert np.isfinite(scores).all()
    if "TS-NMF" not in name:  # there it is a free topic
        assert (scores[:, 0] <= scores.min() + 1e-12).all()


# --- trials ---


def test_labelled_rows_by_topic_and_by_share(toy):
    rows = trials.labelled_rows(toy, "k3", 1)
    assert (np.asarray(toy.truth[rows].sum(axis=0)).ravel() >= 3).all()
    assert len(rows) <= 18
    share = trials.labelled_rows(toy, "20 %", 1)
    assert np.array_equal(share, np.flatnonzero(np.random.default_rng(1).random(120) < 0.2))
    assert set(trials.labelled_rows(toy, "5 %", 1)) <= set(share)


def test_only_unlabelled_documents_are_judged(toy):
    rows = np.arange(60)
    scores = np.random.default_rng(0).random(toy.truth.shape)
    found = trials.judge(toy, rows, scores)
    truth = toy.truth[60:].toarray()
    each = [average_precision_score(truth[:, k], scores[60:, k]) for k in range(6)]
    assert found["macro"] == pytest.approx(np.mean(each))
    assert found["micro"] == pytest.approx(average_precision_score(truth.ravel(), scores[60:].ravel()))
    scores[:60] = 0
    assert trials.judge(toy, rows, scores) == found


def test_the_same_terms_for_all(toy):
    assert np.array_equal(toy.X.indices, toy.counts.indices)
    assert (toy.counts.data == np.rint(toy.counts.data)).all()


def test_names_of_topics_are_small_documents(toy):
    named = replace(toy, topics=[f"{toy.terms[3]} {toy.terms[5]}", *toy.topics[1:]])
    rows = trials.name_rows(named)
    assert rows.topics.tolist() == [0]  # the other names do not occur
    assert rows.terms.shape == (1, len(toy.terms))
    assert rows.terms.nonzero()[1].tolist() == [3, 5]


def test_a_change_of_guidance_runs_our_rows_again_and_no_others(monkeypatch):
    before = {name: trials.fingerprint(name) for name in METHODS}
    source = internals.guide_sources()
    for text, changed in (("\nCHANGED = 1\n", True), ("\n# a remark\n", False)):
        trials.fingerprint.cache_clear()
        monkeypatch.setattr(internals, "guide_sources", lambda text=text: [source[0] + text, *source[1:]])
        for name in METHODS:
            assert (trials.fingerprint(name) != before[name]) == (changed and name.startswith(OURS)), name
    trials.fingerprint.cache_clear()


def test_a_slow_trial_is_given_up():
    with pytest.raises(TimeoutError, match="took more than 0 minutes"), trials.time_limit(1):
        time.sleep(10)


def test_the_plan_is_the_issue():
    whole, quick = trials.plan(peers.CORPORA), trials.plan(["reuters"], quick=True)
    assert len(whole) == len({trial.key for trial in whole})
    assert {trial.key for trial in quick} <= {trial.key for trial in whole}
    for corpus in ("reuters", "newsgroups", "pubmed"):
        for name in ("logistic regression", OURS):
            assert sum((trial.corpus, trial.method) == (corpus, name) for trial in whole) == 3 * 7


def test_methods_that_cannot_be_run_are_named(monkeypatch):
    monkeypatch.setattr(trials, "installed", lambda package: None)
    monkeypatch.setattr(encoder, "available", lambda name: False)
    assert trials.missing("PLDA (tomotopy)", "toy") == "tomotopy is not installed"
    assert "sentence embeddings" in trials.missing("embeddings + logistic regression", "reuters")
    assert not any(METHODS[trial.method].package for trial in trials.plan(["reuters"]))


# --- the page ---


def test_the_page_of_a_run(tmp_path, capsys):
    chosen = [OURS, "logistic regression", "nearest centroid"]
    options = [part for name in chosen for part in ("--method", name)]
    assert peers.main(["--corpus", "toy", "--quick", "--results", str(tmp_path), *options]) == 0
    assert "README.md" in capsys.readouterr().out
    text = (tmp_path / "quick-peers" / "README.md").read_text()
    assert (tmp_path / "quick-peers" / "peers.svg").stat().st_size < 200_000
    assert "nan" not in text
    assert "label propagation (not done yet)" in text
    (line,) = re.findall(r"^\| nearest centroid \| .*/.*$", text, re.MULTILINE)
    store = Store(tmp_path / "peers.sqlite")
    row = store.get(Trial("toy", "nearest centroid", "k3", 0, trials.fingerprint("nearest centroid")).key)
    store.close()
    assert page.short(row["macro"]) in line


def test_stored_trials_of_an_earlier_version_stay_until_they_are_run_again(tmp_path):
    store = Store(tmp_path / "peers.sqlite")
    for version in ("earlier", trials.fingerprint(OURS)):
        store.add(Trial("toy", OURS, "k1", 0, version).key, {}, 1.0)
    store.add(Trial("toy", "CNMF", "k1", 0, "earlier").key, {}, 1.0)
    assert {(trial.method, trial.version) for trial in peers.stored(store)} == {
        (OURS, trials.fingerprint(OURS)),
        ("CNMF", "earlier"),
    }
    store.close()


def test_the_page_says_who_wins(tmp_path):
    def row(macro, micro):
        return {"macro": macro, "micro": micro, "seconds": 1.0}

    results = {}
    for seed in range(3):
        results[Trial("reuters", OURS, "k3", seed, "")] = row(0.6, 0.7)
        results[Trial("reuters", "logistic regression", "k3", seed, "")] = row(0.5 + 0.1 * seed, 0.8)
        results[Trial("pubmed", OURS, "k3", seed, "")] = row(0.6, 0.7)
        results[Trial("pubmed", "logistic regression", "k3", seed, "")] = row(0.5, 0.6)
        results[Trial("pubmed", "embeddings + logistic regression", "k3", seed, "")] = row(0.9, 0.9)
    results[Trial("pubmed", "CNMF", "k3", 0, "")] = {"failed": "took more than 20 minutes"}
    board = page.Board(results)
    text = page.verdict(board, ["reuters", "pubmed"])
    assert "**Reuters**, topicsteer: below in 1 of 2 cells: k3 micro logistic regression (.800 against .700)." in text
    assert "**PubMed**, topicsteer: above all others." in text
    section = page.section(board, "pubmed")
    assert "| topicsteer | 3 | .600 / .700 |" in section
    assert "**.900** / **.900**" in section
    assert "> 20 min" in section
    assert json.dumps(page.short(1.0)) == '"1.000"'
