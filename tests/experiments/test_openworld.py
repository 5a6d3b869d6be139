"""The study of unnamed topics: worlds and measures by hand, rivals and the page on made-up documents."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import average_precision_score
from sklearn.naive_bayes import MultinomialNB

pytest.importorskip("matplotlib")
from experiments.openworld import __main__ as openworld
from experiments.openworld import lines, measures, ours, page, rivals, trials, worlds
from experiments.openworld.measures import Found
from experiments.openworld.trials import METHODS, OURS, OURS_W, Trial
from experiments.shared import corpora
from experiments.shared.store import Store

PACKAGES = {"PLDA (tomotopy)": "tomotopy", "LabeledLDA (topica)": "topica", "CorEx with anchors": "corextopic"}
ALONE = [name for name, method in METHODS.items() if not method.package and name not in (OURS, OURS_W)]


@pytest.fixture(scope="module")
def toy():
    return corpora.load("toy", "openworld")


@pytest.fixture(scope="module")
def world(toy):
    return worlds.draw(toy, 0.5, "k3", 0)


# --- worlds ---


def test_hidden_topics_have_no_labels_and_known_ones_have_complete_lists(toy, world):
    assert sorted([*world.known, *world.hidden]) == list(range(6))
    assert len(world.hidden) == 3
    truth = toy.truth.toarray()
    assert np.array_equal(world.given, truth[world.rows][:, world.known])
    assert (world.given.sum(axis=0) >= 3).all()
    assert len(world.rows) <= 9
    names = [{toy.topics[k] for k in world.known if truth[i, k]} for i in world.rows]
    assert [set(world.lists()[i]) for i in world.rows] == names
    assert not set(world.rows) & set(world.unlabelled)


@pytest.mark.parametrize(("share", "hidden"), [(0.0, 0), (0.1, 1), (0.3, 2), (0.5, 3), (0.9, 4)])
def test_at_least_two_topics_are_known(toy, share, hidden):
    assert len(worlds.draw(toy, share, "k3", 0).hidden) == hidden


def test_a_share_is_of_the_documents_with_a_known_topic(toy):
    world = worlds.draw(toy, 0.5, "10 %", 1)
    known = toy.truth.toarray()[:, world.known].any(axis=1)
    assert len(world.rows) == round(0.1 * known.sum())
    assert known[world.rows].all()


def test_our_method_is_informed_only_at_few_labels_in_an_open_world(toy):
    assert worlds.draw(toy, 0.5, "k3", 0).declared
    assert not worlds.draw(toy, 0.5, "10 %", 0).declared
    assert not worlds.draw(toy, 0.0, "k3", 0).declared


def test_forms_of_labels(toy):
    complete, yes, incomplete = (worlds.draw(toy, 0.0, "k10", 0, form) for form in worlds.FORMS)
    assert np.array_equal(complete.rows, yes.rows)
    assert np.array_equal(complete.rows, incomplete.rows)
    assert set(np.unique(complete.given)) == {0, 1}
    for partial in (yes, incomplete):
        assert not (partial.given == 0).any()
        assert (complete.given[partial.given == 1] == 1).all()
        assert (partial.given == 1).any(axis=1).all()
    assert (yes.given == 1).sum() == 60  # ten per topic
    assert (yes.given == 1).sum() < (incomplete.given == 1).sum() < complete.given.sum()
    states = yes.supervision.patterns[yes.supervision.pattern[yes.rows]]
    assert np.array_equal(states == 1, yes.given == 1)
    assert not (states == 0).any()


# --- measures ---


def test_precision_of_every_pair_is_scikit_learns_with_ties():
    rng = np.random.default_rng(0)
    truth, scores = rng.random((50, 3)) < 0.3, rng.integers(0, 6, (50, 4)).astype(float)
    found = measures.precision_matrix(truth, scores)
    for f in range(4):
        for k in range(3):
            assert found[f, k] == pytest.approx(average_precision_score(truth[:, k], scores[:, f]))
    columns, topics = linear_sum_assignment(-found)
    assert measures.hidden_precision(truth, scores) == pytest.approx(found[columns, topics].mean())


def test_a_hidden_topic_without_a_column_counts_as_not_found():
    truth = np.eye(3, dtype=bool)
    assert measures.hidden_precision(truth, np.eye(3)[:, :2]) == pytest.approx(2 / 3)
    assert measures.hidden_precision(np.pad(truth, ((0, 0), (0, 1))), np.eye(3)) == 1  # nobody has the fourth


def test_decisions_and_shares_by_hand():
    known = np.array([[1, 0], [1, 0], [0, 1], [0, 0], [0, 0]], dtype=bool)
    decided = np.array([[1, 0], [0, 0], [1, 1], [0, 1], [0, 0]], dtype=bool)
    found = measures.judge_decisions(known, decided)
    assert found == {"recall": pytest.approx((1 / 2 + 1) / 2), "precision": pytest.approx(2 / 4), "leak": 1 / 2}
    shares = np.array([[0.5, 0.5]] * 5)
    assert measures.share_error(known, shares) == pytest.approx((0.1 / 0.4 + 0.3 / 0.2) / 2)


def test_only_unlabelled_documents_are_judged(world):
    rng = np.random.default_rng(0)
    found = Found(*(rng.random((world.n, 3)) for _ in range(2)), rng.random((world.n, 3)) > 0.5)
    measured = measures.judge(world, found)
    assert set(measured) == set(page.MEASURES)
    found.known[world.rows], found.free[world.rows], found.decided[world.rows] = 0, 0, True
    assert measures.judge(world, found) == measured
    none = ~world.truth(world.known).any(axis=1)
    assert measured["none error"] == pytest.approx(
        abs((~found.decided[world.unlabelled].any(axis=1)).mean() - none.mean())
    )


def test_the_truth_has_no_error(toy, world):
    truth = toy.truth.toarray()
    known, hidden = truth[:, world.known], truth[:, world.hidden]
    perfect = {"hidden AP": 1, "known AP": 1, "recall": 1, "precision": 1, "leak": 0, "none error": 0, "share error": 0}
    assert measures.judge(world, Found(known, hidden, known > 0)) == pytest.approx(perfect)
    assert set(measures.judge(world, Found(free=hidden))) == {"hidden AP"}


# --- rivals ---


@pytest.mark.parametrize("name", [*ALONE, *PACKAGES])
def test_every_method_beats_chance_on_easy_documents(name, world):
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    columns = "all" if METHODS[name].free else "none"
    row = trials.perform(Trial("toy", name, 0.5, "k3", columns, "complete", 0, ""))
    if METHODS[name].free:
        assert row["hidden AP"] > 0.6, row  # chance is about 0.25
        assert row["columns"] == 6
    if "known AP" in row and "PLDA" not in name:  # its latent topics take the known ones
        assert row["known AP"] > 0.6, row
        assert row["recall"] > 0.4, row


def test_the_lead_over_the_other_scores():
    assert rivals.lead(np.array([[3.0, 1.0, 2.0]])).tolist() == [[1, -2, -1]]


def test_labelled_documents_stay_in_their_cluster(world):
    scores = rivals.clusters(world, 3, 0)
    assert scores.shape == (world.n, 6)
    assert scores.max() <= 1 + 1e-9
    single = world.Y.sum(axis=1) == 1
    assert (scores[world.rows[single], :3].argmax(axis=1) == world.Y[single].argmax(axis=1)).all()


def test_naive_bayes_of_clamped_documents_alone_is_scikit_learns(toy):
    """With every document labelled the M-step is one naive Bayes, whatever the start was."""
    truth = toy.truth.toarray()
    single = np.flatnonzero((truth.sum(axis=1) == 1) & (truth[:, :3].sum(axis=1) == 1))
    part = replace(
        toy, X=toy.X[single], counts=toy.counts[single], truth=toy.truth[single], ids=[toy.ids[i] for i in single]
    )
    known = np.arange(3)
    closed = worlds.World(part, known, np.arange(3, 6), np.arange(len(single)), truth[single][:, :3].astype(float))
    rivals.latent.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rivals, "load", lambda name, study: part)
        found = rivals.naive_bayes_em(closed, 0, 0)
    rivals.latent.cache_clear()
    theirs = MultinomialNB(alpha=0.1).fit(5 * part.X, truth[single][:, :3].argmax(axis=1))
    theirs.class_log_prior_ = np.log((1 + theirs.class_count_) / (3 + len(single)))  # ours smooths the prior too
    np.testing.assert_allclose(found.shares, theirs.predict_proba(5 * part.X), atol=1e-9)


def test_topics_without_labels_come_last(toy):
    world = worlds.draw(toy, 0.5, "k3", 0)
    world.given[:, 0] = 0
    found = rivals.k_means(world, 2, 0)
    assert found.known.shape == (world.n, 3)
    assert (found.known[:, 0] <= found.known.min()).all()
    assert not found.decided[:, 0].any()


# --- our method ---


def test_decisions_of_our_method_become_a_table():
    assert ours.given([["b"], [], ["a", "b"]], ["a", "b"]).tolist() == [[False, True], [False, False], [True, True]]


def test_our_method_on_easy_documents():
    for name in (OURS, OURS_W):
        row = trials.perform(Trial("toy", name, 0.5, "k3", "hidden", "complete", 0, ""))
        assert row["known AP"] > 0.6, row
        assert row["hidden AP"] > 0.4, row
    for form in worlds.FORMS:
        row = trials.perform(Trial("toy", OURS, 0.0, "k3", "none", form, 0, ""))
        assert row["known AP"] > 0.6, row


# --- trials and page ---


def test_the_plan_has_every_cell():
    whole, quick = trials.plan(openworld.CORPORA), trials.plan(trials.QUICK_CORPORA, quick=True)
    assert len(whole) == len({trial.key for trial in whole})
    assert {trial.key for trial in quick} <= {trial.key for trial in whole}
    # 4 corpora, 4 shares, 3 budgets, 2 numbers of columns, 3 seeds
    assert sum(trial.method == "NMF" for trial in whole) == 4 * 4 * 3 * 2 * 3
    # the same without columns, and 3 forms with 3 budgets where no topic is hidden
    assert sum(trial.method == "logistic regression" for trial in whole) == 4 * (4 * 3 + 3 * 3) * 3


def test_methods_that_cannot_be_run_are_named(monkeypatch):
    monkeypatch.setattr(trials, "installed", lambda package: None)
    assert trials.missing("PLDA (tomotopy)") == "tomotopy is not installed"
    assert not any(METHODS[trial.method].package for trial in trials.plan(["reuters-100"]))


def test_a_change_of_the_measures_runs_all_rows_again(monkeypatch):
    before = {name: trials.fingerprint(name) for name in METHODS}
    assert len(set(before.values())) == len(METHODS)
    trials.fingerprint.cache_clear()
    monkeypatch.setattr(trials, "judge", lambda world, found: {})
    assert all(trials.fingerprint(name) != before[name] for name in METHODS)
    trials.fingerprint.cache_clear()


def test_the_page_of_a_run(tmp_path, capsys):
    options = ["--method", "NMF", "--method", "logistic regression"]
    assert openworld.main(["--corpus", "toy", "--quick", "--results", str(tmp_path), *options]) == 0
    assert "README.md" in capsys.readouterr().out
    text = (tmp_path / "quick-openworld" / "README.md").read_text()
    assert "nan" not in text
    assert "- k-means with labels: not done yet" in text
    store = Store(tmp_path / "openworld.sqlite")
    row = store.get(Trial("toy", "NMF", 0.5, "k3", "hidden", "complete", 0, trials.fingerprint("NMF")).key)
    store.close()
    (line, _) = re.findall(r"^\| NMF \| 3 \| 1 \| .*$", text, re.MULTILINE)
    assert f"**{page.short(row['hidden AP'])}**" in line


def test_runs_of_older_code_are_not_written(tmp_path):
    lines = [
        json.dumps([{"method": method, "version": version}, {"x": 1}, 1.0])
        for method, version in (("NMF", "new"), ("NMF", "old"), ("PLDA", "any"))
    ]
    (tmp_path / "runs.jsonl").write_text("\n".join(lines))
    store = Store(tmp_path / "runs.sqlite")
    store.take(tmp_path / "runs.jsonl")
    store.dump(tmp_path / "all.jsonl")
    store.dump(tmp_path / "current.jsonl", {"NMF": "new"})
    store.close()
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 3
    assert (tmp_path / "current.jsonl").read_text().splitlines() == [lines[0], lines[2]]


def test_without_a_corpus_it_names_the_command(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TOPICSTEER_DATA", str(tmp_path))
    monkeypatch.setenv("TOPICSTEER_PREPARED", str(tmp_path))
    assert openworld.main(["--results", str(tmp_path)]) == 1
    message = capsys.readouterr().err
    assert "not on this machine: newsgroups, reuters, medline." in message
    assert "pubmed20n0014.xml.gz\n" in message


def test_the_page_compares_at_equal_columns():
    def row(columns, **found):
        return found | {"columns": columns, "seconds": 1.0}

    results = {}
    for columns, number, rival in (("hidden", 10, 0.7), ("all", 20, 0.5)):
        for seed in range(2):
            cell = 0.5, "k3", columns, "complete", seed, ""
            ours_row = {"hidden AP": 0.6, "known AP": 0.8, "leak": 0.2}
            results[Trial("reuters-100", OURS, *cell)] = row(number, **ours_row)
            results[Trial("reuters-100", "NMF", *cell)] = row(number, **{"hidden AP": rival + seed / 10})
    lr = Trial("reuters-100", "logistic regression", 0.5, "k3", "none", "complete", 0, "")
    results[lr] = row(0, **{"known AP": 0.9, "leak": 0.1})
    board = page.Board(results)
    text = page.verdict(board, ["reuters-100", "toy"])
    assert "**Reuters**: below in 3 of 4 cells." in text
    assert "50% hidden, 3 per topic, columns for hidden topics, hidden AP: NMF (.750 against .600)" in text
    assert "known AP: logistic regression (.900 against .800)" in text
    assert "columns for all topics, hidden AP" not in text
    assert "**Toy**: topicsteer has not been run." in text
    section = page.section(board, "reuters-100", {})
    assert "| topicsteer | 10 | 2 | .600 | .200 | .800 |" in section
    assert "| NMF | 10 | 2 | **.750** | – | – |" in section
    assert "| topicsteer | 20 | 2 | **.600** | .200 | .800 |" in section
    assert "| logistic regression | – | 1 | – | **.100** | **.900** |" in section


def test_a_slow_trial_has_no_scores():
    results = {Trial("toy", "NMF", 0.5, "k3", "hidden", "complete", 0, ""): {"failed": "too slow", "columns": 3}}
    section = page.section(page.Board(results), "toy", {"NMF of doubt": "broken"})
    assert "| NMF | 3 | 1 | > 20 min | – |" in section
    assert "- NMF of doubt: broken" in section


# --- further questions ---


def test_a_draw_names_some_topics_and_marks_outsiders():
    toy = corpora.load("toy", "openworld")
    world, lists = lines.draw_some(toy, "k4", 0.25, 0)
    truth = toy.truth.toarray()[:, world.known] > 0
    assert (len(world.known), len(world.hidden)) == (3, 3)
    marked = [i for i, names in enumerate(lists) if names == "(none)"]
    inside = np.setdiff1d(world.rows, marked)
    assert len(marked) == round(len(inside) / 3)
    assert not truth[marked].any()
    assert truth[inside].any(axis=1).all()
    assert (truth[inside].sum(axis=0) >= 4).all()


def test_topics_come_back_if_half_of_their_terms_do():
    before = [set(range(10)), set(range(10, 20)), set(range(20, 30))]
    after = [{*range(5, 10), *range(100, 105)}, {*range(14), *range(200, 206)} - set(range(10))]
    assert lines.back(before, after) == pytest.approx(1 / 3)
    assert lines.back(before, before) == 1


@pytest.mark.slow
def test_every_question_has_an_answer_and_a_row():
    asked = [("eight", "k10", 0.25), ("recall", "k3", 0.0), ("stability", "10 %", 0.0), ("closed", "k10", 0.0)]
    asked = [lines.Line(*cell[:1], "toy", *cell[1:], 0, "1") for cell in [*asked, ("undeclared", "k3", 0.0)]]
    found = {line: lines.perform(line) for line in asked}
    for line, answer in found.items():
        assert set(answer) & set(lines.QUESTIONS[line.question].columns)
        assert all(-1 <= value <= 6 for value in answer.values())
    eight, recall, stability, closed, _ = found.values()
    assert eight["precision"] > 0.5
    assert recall["recall lost"] == pytest.approx(recall["recall if closed"] - recall["recall"])
    assert stability["another seed"] == 1  # the guide has a fixed seed
    assert closed == {"open": False, "free topics": 0}
    page = lines.page(found, 7)
    assert all(question.title in page for question in lines.QUESTIONS.values())
    assert f"{eight['precision']:.3f}" in page
    assert page.endswith("5 of 7 draws are done.\n")
