"""The paper's experiments on a made-up corpus, and the authors' procedure against ours on Reuters."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import reference
from scipy import stats

pytest.importorskip("matplotlib")
from experiments.corpora import CORPORA
from experiments.labelling import __main__ as labelling
from experiments.labelling import page as labelling_page
from experiments.paper import __main__ as paper
from experiments.paper import claims, convergence, runs, scoreboard, stationarity
from experiments.paper.runs import Run, perform
from experiments.peers import __main__ as peers
from experiments.shared import corpora, pool
from experiments.shared.store import Store
from topicsteer import TSNMF
from topicsteer.backends import as_rows
from topicsteer.corpora import ReadError
from topicsteer.nmf.factorisation import random_acol

ROOT = Path(__file__).parents[2]


def rows(path):
    if not path.exists():
        return {}
    with sqlite3.connect(path) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            return {}  # the file is there before its table
        return {key: row for key, *row in connection.execute("SELECT key, result, seconds FROM runs")}


def start(folder, **options):
    command = [sys.executable, "-m", "experiments.paper", "--corpus", "toy", "--quick", "--processes", "2"]
    command += ["--results", str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **options)


def test_a_killed_run_resumes_without_repeating(tmp_path, capsys):
    path = tmp_path / "paper.sqlite"
    first = start(tmp_path)
    deadline = time.monotonic() + 60
    while len(rows(path)) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    before = rows(path)
    planned = {run.key for run in runs.plan("toy", quick=True)}
    assert 5 <= len(before) < len(planned)

    second = ["--corpus", "toy", "--quick", "--processes", "1", "--results", str(tmp_path)]
    assert not paper.main(second)  # in this process: a start of three others takes longer than the runs
    output = capsys.readouterr().out
    after = rows(path)
    assert planned < set(after)  # and the traces of the solvers
    assert {key: after[key] for key in before} == before  # their times too: none was run again
    assert "README.md" in output

    text = (tmp_path / "quick-paper" / "README.md").read_text()
    for figure in (tmp_path / "quick-paper" / "figures").iterdir():
        assert f"figures/{figure.name}" in text
        assert figure.stat().st_size < 150_000
    assert text.count("figures/") == 7
    assert "nan" not in text

    store = Store(path)  # a run of another process, with other threads, gives the same row
    for run in runs.plan("toy", quick=True):
        assert run.key not in before or store.get(run.key) == perform(run)
    assert pool.carry_out(runs.plan("toy", quick=True), perform, store, 1, "toy") == 0
    store.close()


def test_without_a_corpus_it_says_how_to_get_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TOPICSTEER_DATA", str(tmp_path))
    monkeypatch.setenv("TOPICSTEER_PREPARED", str(tmp_path))
    for program, absent in ((paper, ["reuters", "medline"]), (peers, ["reuters", "newsgroups", "medline"])):
        assert program.main(["--results", str(tmp_path)]) == 1
        said = capsys.readouterr().err
        assert f"not on this machine: {', '.join(absent)}." in said
        assert all(f"{CORPORA[name].url}\n" in said for name in absent)
        assert "TOPICSTEER_DATA" in said


def test_ctrl_c_stops_at_once_and_keeps_what_is_done(tmp_path):
    path = tmp_path / "paper.sqlite"
    # A session of its own, so that the signal reaches the workers too, as Ctrl-C at a terminal does.
    running = start(tmp_path, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(rows(path)) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=10)
    assert running.returncode == 130
    planned = len(runs.plan("toy", quick=True))
    together = planned + len(stationarity.plan(("toy",), quick=True))
    assert said == (
        f"toy: 0 of {together} runs are done\n"
        f"stopping; {len(rows(path))} of {planned} runs are kept; run it again to continue\n"
    )


def test_progress_without_a_terminal_is_a_line_now_and_then(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(pool.time, "monotonic", lambda: now[0])
    with pool.progress("toy", 10, 100) as advance:
        for _ in range(90):
            now[0] += 10
            advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["toy: 10 of 100 runs are done", "toy: 13 of 100 runs are done, about 14 min left"]
    assert lines[-1] == "toy: 100 of 100 runs are done, about 0 min left"
    assert len(lines) == 31


@pytest.mark.parametrize("corpus", ["reuters", "pubmed"])
def test_the_plan_is_the_issue(corpus):
    whole, quick = runs.plan(corpus), runs.plan(corpus, quick=True)
    assert len(whole) == len({run.key for run in whole})
    assert set(quick) <= set(whole)  # so that QUICK is a beginning, not lost work
    if corpus == "reuters":
        assert len(runs.RATES) == 10
        for method in ("TS-NMF", "TS-NMF unweighted"):
            assert sum(run.study == "score" and run.method == method for run in whole) == 30 * 10


def test_labelled_rows():
    corpus = corpora.load("toy")
    chosen = corpus.labelled_rows(0.5, 3)
    assert len(set(chosen)) == 60
    assert np.array_equal(chosen, corpus.labelled_rows(0.5, 3))
    assert not np.array_equal(chosen, corpus.labelled_rows(0.5, 4))
    assert not set(corpus.labelled_rows(0.9, 3, (1, 2))) & {1, 2}
    supervision = corpus.supervision(chosen)
    assert np.array_equal(np.flatnonzero(supervision.labelled), chosen)
    assert (supervision.indicator() != corpus.truth)[chosen].nnz == 0


def test_counts_are_found_again():
    documents, corpus = corpora.toy(), corpora.load("toy")
    for i in (0, 50, 119):
        words = documents.texts[i].split()
        ours = corpus.counts[[i]].toarray().ravel()
        theirs = np.array([words.count(term) for term in corpus.terms])
        assert np.array_equal(ours * np.gcd.reduce(theirs), theirs)


def test_scores_of_a_perfect_answer():
    corpus = corpora.load("toy")
    truth = corpus.truth.toarray()
    found = runs.methods.Fit(truth, truth)
    assert set(runs.judge(found, corpus, slice(None)).values()) == {1.0, 6} | {
        runs.judge(found, corpus, slice(None))["similarity_rows"]
    }
    shuffled = runs.methods.Fit(truth[:, ::-1], truth[:, ::-1], named=False)
    assert runs.judge(shuffled, corpus, slice(None))["macro"] == 1


def board(levels, corpus="reuters", seeds=30, spread=0.001):
    """A scoreboard with these mean similarities by (method, rate)."""
    rng = np.random.default_rng(0)
    results = {}
    for (method, rate), level in levels.items():
        for seed in range(seeds):
            value = level + spread * rng.standard_normal()
            row = {"similarity_all": value, "resolved_all": 900 * value, "coverage": rng.random()}
            results[Run(seed, corpus, "score", method, rate)] = row | {"largest_rise": -1e-3, "last_fall": 1e-3}
    return scoreboard.Scoreboard(results, corpus, 90)


def verdicts(levels, corpus="reuters", **options):
    found = claims.claims({corpus: board(levels, corpus, **options)})
    return {claim.text.removeprefix(f"{corpus.capitalize()}: "): claim.verdict for claim in found}


PAPER = {("LDA", 0.0): 0.05, ("NMF", 0.0): 0.04} | {
    ("TS-NMF", rate): level
    for rate, level in zip(runs.RATES, (0.02, 0.03, 0.055, 0.075, 0.076, 0.077, 0.078, 0.08, 0.09, 0.097), strict=True)
}


def test_claims_hold_where_the_numbers_do():
    unweighted = {
        ("TS-NMF unweighted", r): v - 0.01 * (0.2 <= r <= 0.7) for (m, r), v in PAPER.items() if m == "TS-NMF"
    }
    found = verdicts(PAPER | unweighted)
    for text, verdict in found.items():
        if not any(part in text for part in ("comparable", "not related", "Table 1", "converge")):
            assert verdict == claims.CONFIRMED, text


def test_claims_fail_where_the_numbers_do():
    turned = {key: 0.1 - value for key, value in PAPER.items()}
    found = verdicts(turned | {("TS-NMF unweighted", 0.2): 0.2})
    assert found["LDA is above NMF."] == claims.REFUTED
    assert found["TS-NMF is above NMF and LDA at 20 % supervision."] == claims.REFUTED
    assert found["weighted TS-NMF is better than unweighted between 0.2 and 0.7."] == claims.REFUTED
    assert set(verdicts(PAPER, seeds=1).values()) == {claims.CONFIRMED, claims.OPEN}  # the theorem needs no spread
    assert verdicts({("LDA", 0.0): 0.05, ("NMF", 0.0): 0.05}, spread=0.01)["LDA is above NMF."] == claims.OPEN


def test_a_rise_of_the_objective_is_seen():
    one = board(PAPER)
    assert claims.theorem([one]).verdict == claims.CONFIRMED
    one.rows[Run(0, "reuters", "score", "TS-NMF", 0.2)]["largest_rise"] = 1e-3
    assert claims.theorem([one]).verdict == claims.REFUTED
    assert claims.theorem([]).verdict == claims.OPEN


def test_pubmed_claims():
    levels = {("NMF", 0.0): 0.05, ("LDA", 0.0): 0.02} | {
        ("TS-NMF", rate): level for rate, level in zip(runs.FIGURE_3, (0.02, 0.03, 0.05, 0.08), strict=True)
    }
    found = list(claims.pubmed(board(levels, "pubmed"), "TS-NMF"))
    assert [claim.verdict for claim in found[:3]] == [claims.CONFIRMED] * 3
    few = list(claims.pubmed(board(levels, "pubmed", seeds=4), "TS-NMF"))
    assert [claim.verdict for claim in few[3:]] == [claims.OPEN] * 2


def test_the_examples_are_looked_at():
    def found(*terms):
        return {"14854": [{"topic": "ipi", "terms": list(terms), "share": 0.5}]}

    one = board(PAPER)
    one.others = {Run(s, "reuters", "examples", "TS-NMF", 0.2): found("industrial", "production") for s in range(3)}
    assert list(claims.table_1(one))[2].verdict == claims.CONFIRMED
    one.others = {Run(s, "reuters", "examples", "TS-NMF", 0.2): found("said", "production") for s in range(3)}
    assert list(claims.table_1(one))[2].verdict == claims.REFUTED
    assert next(claims.table_1(one)).verdict == claims.OPEN


def test_intervals_are_scipys():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal(12), 1 + 2 * rng.standard_normal(7)
    theirs = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    ours = scoreboard.difference(a, b)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    theirs = stats.ttest_1samp(a, 0).confidence_interval(0.95)
    ours = scoreboard.mean_interval(a)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    assert scoreboard.difference(np.ones(3), np.zeros(3)) == scoreboard.Interval(1.0, 1.0, 1.0)


def test_residuals_are_zero_at_a_stationary_point_and_nowhere_else():
    given = stationarity.problem("toy", 0)
    for way, (rule, start, _) in stationarity.WAYS.items():
        found = stationarity.perform(stationarity.Descent("toy", way, 0, 300))
        assert max(found["rise"]) < 1e-12  # the objective never rises
        end, moved = stationarity.largest(found)[-1], max(found["W"][-1], found["H_positive"][-1])
        if rule == "hals":
            assert end < 1e-6
            assert found["left"] < 1e-9
        else:
            assert moved < 0.1
            assert (end > moved) == (start == "acol")  # zeros of Random Acol cannot move
    rng = np.random.default_rng(0)
    n, d = given.L.shape
    W, H = rng.random((n, d)) * given.L, rng.random((d, given.X.shape[1]))
    W, H, _ = stationarity.descend(given, W, H, "hals", 300)
    scales = 10 ** rng.uniform(-3, 3, d)
    every = np.ones(H.shape, dtype=bool)
    np.testing.assert_allclose(stationarity.residuals(given, W * scales, H / scales[:, None], every), 0, atol=1e-6)
    i, k = np.unravel_index(W.argmax(), W.shape)
    W[i, k] *= 1.01  # one entry next to its minimum: the residual is this change
    expected = W[i, k] / 101 * np.linalg.norm(H[k]) / np.sqrt(given.X[[i]].multiply(given.X[[i]]).sum())
    assert stationarity.residuals(given, W, H, every)[0] == pytest.approx(expected, rel=1e-3)


def test_the_theorem_is_judged_by_residuals():
    def rows(end, way="multiplicative, H uniform"):
        return {
            stationarity.Descent("reuters", way, 0, 300): {
                "iterations": [1, 300],
                "W": [1.0, end],
                "H": [1.0, 0.0],
                "left": 1e-9,
            }
        }

    for end, verdict in ((1e-5, claims.CONFIRMED), (5e-3, claims.OPEN), (0.3, claims.REFUTED)):
        assert claims.convergence(rows(end), "multiplicative, H uniform").verdict == verdict
    assert claims.convergence(rows(0.3), "multiplicative, Random Acol") == claims.convergence({}, "")


def test_time_to_an_objective():
    traced = {"objective": [9.0, 5.0, 3.0], "seconds": [0.0, 1.0, 2.0]}
    assert convergence.reach(traced, 5.0) == (1, 1.0)
    assert convergence.reach(traced, 1.0) is None
    assert convergence.largest_rise([4.0, 2.0, 2.5]) == pytest.approx(0.25)


def test_the_authors_procedure_and_ours_agree_on_reuters():
    """Thirty iterations of the appendix's rules, dense and in double precision, against the library's."""
    try:
        corpus = corpora.prepare("reuters")
    except (ReadError, ImportError, LookupError) as error:
        pytest.skip(f"needs the Reuters corpus and NLTK's data: {error}")
    rate, rng = 0.2, np.random.RandomState(0)
    X = corpus.X.astype(np.float64)
    n, d = X.shape[0], len(corpus.topics)
    W, H = rng.uniform(size=(n, d)), random_acol(as_rows(X), d, rng)
    supervision = corpus.supervision(corpus.labelled_rows(rate, 0))
    with pytest.warns(UserWarning, match="No document is labelled with"):
        ours = TSNMF(solver="mu", init=(W, H), tol=0, max_iter=30).fit(X, supervision)
    labelled = supervision.labelled[:, None]
    L = np.where(labelled, supervision.indicator().toarray(), 1.0)
    E = np.where(labelled, n / labelled.sum(), 1.0)
    theirs_W, theirs_H, history = reference.mu(X.toarray(), W, H, L, E, 30)
    np.testing.assert_allclose(ours.objective_history_, history, rtol=1e-8)
    np.testing.assert_allclose(ours.components_, theirs_H, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(ours.document_topics_, theirs_W, rtol=1e-6, atol=1e-9)


def test_the_page_of_suggestions_and_audits(tmp_path):
    folders = ["--folder", str(tmp_path), "--results", str(tmp_path / "results")]
    assert labelling.main(["--corpus", "docstrings", "--seeds", "1", *folders]) == 0
    done = json.loads((tmp_path / "results" / "labelling.json").read_text())
    curves = done["learn docstrings test 0"]
    assert curves["suggested"]["0.02"] == curves["random"]["0.02"]
    assert curves["suggested"]["0.05"]["macro"] > curves["random"]["0.05"]["macro"]
    assert done["flipped docstrings 0.2 0"]["first 10 %"] > 0.5
    assert labelling_page.needed({0.02: 0.4, 0.04: 0.6}, 0.5) == "3.0 %"
    assert labelling_page.needed({0.02: 0.4, 0.04: 0.6}, 0.7) == "more than 4 %"
    assert "| docstrings | a half never labelled, 1 seed |" in (tmp_path / "README.md").read_text()


def test_results_go_into_a_text_file_and_back(tmp_path):
    store, again = Store(tmp_path / "a.sqlite"), Store(tmp_path / "b.sqlite")
    key = json.dumps({"corpus": "toy", "seed": 1}, sort_keys=True)
    store.add(key, {"macro": 0.5}, 2.0)
    store.dump(tmp_path / "runs.jsonl")
    again.add(key, {"macro": 0.6}, 1.0)
    again.take(tmp_path / "runs.jsonl")
    assert again.get(key) == {"macro": 0.6}  # what is there stays
    again = Store(tmp_path / "c.sqlite")
    again.take(tmp_path / "runs.jsonl")
    again.take(tmp_path / "nothing.jsonl")
    assert again.get(key) == {"macro": 0.5}
