"""The paper's experiments on a made-up corpus, and the authors' procedure against ours on Reuters."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import reference
from scipy import stats

pytest.importorskip("matplotlib")
from experiments.corpora import CORPORA
from experiments.paper import __main__ as paper
from experiments.paper import claims, descents, page, runs
from experiments.paper.runs import Run, perform
from experiments.shared import corpora, pool
from experiments.shared.measures import compare_topics
from experiments.shared.store import Store
from topicsteer import TSNMF
from topicsteer.corpora import ReadError

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
    planned = {run.key for run in runs.plan(["toy"], quick=True)}
    assert 5 <= len(before) < len(planned)

    second = ["--corpus", "toy", "--quick", "--processes", "1", "--results", str(tmp_path)]
    assert not paper.main(second)  # in this process: a start of three others takes longer than the runs
    output = capsys.readouterr().out
    after = rows(path)
    assert planned == set(after)
    assert {key: after[key] for key in before} == before  # their times too: none was run again
    assert "README.md" in output

    text = (tmp_path / "quick-paper" / "README.md").read_text()
    figures = list((tmp_path / "quick-paper" / "figures").iterdir())
    assert [f"figures/{figure.name}" in text for figure in figures] == [True]
    assert sum(figure.stat().st_size for figure in figures) < 200_000

    store = Store(path)  # a run of another process, with other threads, gives the same row
    for run in runs.plan(["toy"], quick=True):
        assert run.key not in before or store.get(run.key) == perform(run)
    assert pool.carry_out(runs.plan(["toy"], quick=True), perform, store, 1, "toy") == 0
    store.close()


def test_without_a_corpus_it_says_how_to_get_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TOPICSTEER_DATA", str(tmp_path))
    monkeypatch.setenv("TOPICSTEER_PREPARED", str(tmp_path))
    assert paper.main(["--results", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "not on this machine: reuters, medline." in said
    assert all(f"{CORPORA[name].url}\n" in said for name in ("reuters", "medline"))
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
    planned = len(runs.plan(["toy"], quick=True))
    assert said == (
        f"paper: 0 of {planned} runs are done\n"
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


def test_the_plan_is_the_issue():
    whole, quick = runs.plan(["reuters", "pubmed"]), runs.plan(["reuters", "pubmed"], quick=True)
    assert len(whole) == len({run.key for run in whole})
    fits = {run for run in quick if not run.method.startswith(runs.DESCENT)}
    assert fits <= set(whole)  # so that QUICK is a beginning, not lost work
    assert len(runs.RATES) == 15
    for method, seeds in (("TS-NMF", 30), ("TS-NMF unweighted", 5), ("NMF", 30), ("LDA", 30)):
        own = [run for run in whole if (run.corpus, run.method) == ("reuters", method)]
        assert len(own) == seeds * (15 if method.startswith("TS") else 1)
    assert {run.seed for run in whole if (run.corpus, run.method) == ("pubmed", "TS-NMF")} == set(range(10))
    theirs = {(each.method, each.rate) for each in page.authors()}
    assert {(method, rate) for method in ("TS-NMF", "TS-NMF unweighted") for rate in runs.RATES} <= theirs


def test_documents_are_labelled_with_a_probability():
    corpus = corpora.load("toy")
    chosen = [runs.labelled_rows(corpus, 0.5, seed) for seed in range(40)]
    assert np.array_equal(chosen[3], runs.labelled_rows(corpus, 0.5, 3))
    sizes = [len(rows) for rows in chosen]
    assert np.mean(sizes) == pytest.approx(60, abs=3)
    assert np.std(sizes) == pytest.approx(np.sqrt(30), rel=0.3)  # not exactly that share
    supervision = corpus.supervision(chosen[0])
    assert np.array_equal(np.flatnonzero(supervision.labelled), chosen[0])
    assert (supervision.indicator() != corpus.truth)[chosen[0]].nnz == 0


def test_counts_are_found_again():
    documents, corpus = corpora.toy(), corpora.load("toy")
    for i in (0, 50, 119):
        words = documents.texts[i].split()
        ours = corpus.counts[[i]].toarray().ravel()
        theirs = np.array([words.count(term) for term in corpus.terms])
        assert np.array_equal(ours * np.gcd.reduce(theirs), theirs)


def test_a_change_of_settings_makes_rows_stale_and_no_others(monkeypatch):
    before = {run.method: run.version for run in runs.plan(["toy"], quick=True)}
    assert before["TS-NMF"] != before["NMF, uniform"]
    monkeypatch.setitem(runs.LDA, "LDA", 26)
    runs.fingerprint.cache_clear()
    after = {run.method: run.version for run in runs.plan(["toy"], quick=True)}
    monkeypatch.undo()
    runs.fingerprint.cache_clear()
    assert [method for method in before if before[method] != after[method]] == ["LDA"]


def test_the_examples_are_those_of_the_authors_program():
    corpus = SimpleNamespace(ids=[7, *runs.EXAMPLES], topics=["a", "b"], terms=["x", "y", "z", "u"])
    W = np.array([[1, 0], [0.4, 0.19], [0.2, 0.3], [0.1, 0.0]])
    H = np.array([[1, 0.5, 0.09, 0], [0.1, 0.2, 0.3, 0.4]])
    found = runs.examples(corpus, W, H, named=True)
    assert found["14913"] == [{"topic": "a", "terms": ["x", "y"], "weight": 0.4}]
    assert [topic["terms"] for topic in found["14885"]] == [["u", "z", "y"], ["x", "y"]]


def board(levels, corpus="reuters", seeds=30, spread=0.001):
    """A board with these mean similarities by (method, rate)."""
    rng = np.random.default_rng(0)
    results = {}
    for (method, rate), level in levels.items():
        for seed in range(seeds):
            value = level + spread * rng.standard_normal()
            row = {"similarity": value, "resolved": 900 * value, "coverage": rng.random(), "rise": -1e-3}
            row |= {"macro": value, "micro": value}
            results[Run(corpus, method, rate, seed, "")] = row
    return claims.Board(results)


def verdicts(one):
    return {claim.text.removeprefix("Reuters: "): claim.verdict for claim in claims.claims(one)}


LEVELS = dict(
    zip(runs.RATES, (0.02, 0.02, 0.02, 0.03, 0.055, 0.07, *np.linspace(0.075, 0.08, 6), 0.09, 0.097, 0.1), strict=True)
)
PAPER = {("LDA", 0.0): 0.05, ("NMF", 0.0): 0.04} | {("TS-NMF", rate): level for rate, level in LEVELS.items()}


def test_claims_hold_where_the_numbers_do():
    plain = {("TS-NMF unweighted", rate): level - 0.01 * (0.2 <= rate <= 0.7) for rate, level in LEVELS.items()}
    for text, verdict in verdicts(board(PAPER | plain)).items():
        if not any(part in text for part in ("comparable", "not related", "Table 1", "converge", "PubMed")):
            assert verdict == claims.CONFIRMED, text


def test_claims_fail_where_the_numbers_do():
    turned = {key: 0.1 - value for key, value in PAPER.items()}
    found = verdicts(board(turned | {("TS-NMF unweighted", 0.2): 0.2}))
    assert found["LDA is above NMF."] == claims.REFUTED
    assert found["TS-NMF is above NMF and LDA at every rate from 10 % on."] == claims.REFUTED
    assert found["weighted TS-NMF is better than unweighted between 0.2 and 0.7."] == claims.REFUTED
    assert set(verdicts(board(PAPER, seeds=1)).values()) == {claims.CONFIRMED, claims.OPEN}  # Theorem 1 needs one
    equal = board({("LDA", 0.0): 0.05, ("NMF", 0.0): 0.05}, spread=0.01)
    assert verdicts(equal)["LDA is above NMF."] == claims.OPEN


def test_the_page_of_few_runs_has_no_numbers_that_nobody_measured():
    levels = {(run.method, run.rate): 0.05 for run in runs.plan(["reuters"], quick=True) if run.method in runs.TS_NMF}
    for seeds in (1, 2):
        text = page.text(board(levels | {("NMF", 0.0): 0.04}, seeds=seeds).rows, 100)
        assert "nan" not in text
        assert text.startswith(
            f"# The experiments of the paper, run again\n\n**{(len(levels) + 1) * seeds} of 100 runs"
        )


def test_a_rise_of_the_objective_is_seen():
    one = board(PAPER)
    assert claims.theorem(one, "").verdict == claims.CONFIRMED
    one.rows[Run("reuters", "TS-NMF", 0.2, 0, "")]["rise"] = 1e-3
    assert claims.theorem(one, "").verdict == claims.REFUTED
    assert claims.theorem(claims.Board({}), "").verdict == claims.OPEN


def test_pubmed_claims():
    levels = {("NMF", 0.0): 0.05, ("LDA", 0.0): 0.02} | {
        ("TS-NMF", rate): level for rate, level in zip(runs.FIGURE_3, (0.02, 0.03, 0.05, 0.08), strict=True)
    }
    found = list(claims.pubmed(board(levels, "pubmed"), ""))
    assert [claim.verdict for claim in found[:3]] == [claims.CONFIRMED] * 3
    few = list(claims.pubmed(board(levels, "pubmed", seeds=4), ""))
    assert [claim.verdict for claim in few[3:]] == [claims.OPEN] * 2


@pytest.mark.parametrize(("term", "verdict"), [("industrial", claims.CONFIRMED), ("said", claims.REFUTED)])
def test_the_words_of_table_1_are_looked_for(term, verdict):
    shown = {"examples": {"14854": [{"topic": "ipi", "terms": [term, "production"], "weight": 0.5}]}}
    one = claims.Board({Run("reuters", "TS-NMF", 0.2, seed, ""): shown for seed in range(3)})
    third = list(claims.table_1(claims.Board({}), ""))[2]
    assert third.verdict == claims.OPEN
    counts = claims.words_shown(one, "14854", {"industrial", "production"}, "TS-NMF")
    assert (counts == [2, 2, 2]) == (verdict == claims.CONFIRMED)


def test_intervals_are_scipys():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal(12), 1 + 2 * rng.standard_normal(7)
    theirs = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    ours = claims.difference(a, b)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    theirs = stats.ttest_1samp(a, 0).confidence_interval(0.95)
    ours = claims.mean_interval(a)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    assert claims.difference(np.ones(3), np.zeros(3)) == claims.Interval(1.0, 1.0, 1.0)


def test_differences_are_in_standard_errors():
    levels = np.array([0.09, 0.1, 0.11])
    rows = [{"similarity": level, "resolved": 40 + i} for i, level in enumerate(levels)]
    one = claims.Board({Run("reuters", "TS-NMF", 0.2, seed, ""): row for seed, row in enumerate(rows)})
    theirs = page.Theirs("TS-NMF", 0.2, 4, 0.08, 0.02, 38.0)
    found = page.pair(one, theirs)
    assert found.errors == pytest.approx(0.02 / np.sqrt(0.02**2 / 4 + 0.01**2 / 3))
    assert found.resolved_errors == pytest.approx(3 / np.sqrt(1 / 4 + 1 / 3))
    assert found.near
    assert found.resolves
    far = page.pair(one, page.Theirs("TS-NMF", 0.2, 400, 0.08, 0.001, 36.0))
    assert not far.near
    assert not far.resolves
    assert page.pair(one, page.Theirs("TS-NMF", 0.3, 4, 0.08, 0.02, 38.0)) is None


def test_residuals_are_zero_at_a_stationary_point_and_nowhere_else():
    corpus = corpora.load("toy")
    given = descents.problem(corpus, 0)
    for way, (rule, start, _) in descents.WAYS.items():
        found = descents.descent(corpus, way, 0, 300)
        assert found["rise"] < 1e-12  # the objective never rises
        if rule == "hals":
            assert max(found["W"], found["H"]) < 1e-6
            assert found["left"] < 1e-9
        else:
            assert max(found["W"], found["H_positive"]) < 0.1
            assert (found["H"] > 0.01) == (start != "random")  # zeros of the start cannot move
    rng = np.random.default_rng(0)
    n, d = given.L.shape
    W, H = rng.random((n, d)) * given.L, rng.random((d, given.X.shape[1]))
    W, H, _ = descents.descend(given, (W, H), "hals", 300)
    scales = 10 ** rng.uniform(-3, 3, d)
    every = np.ones(H.shape, dtype=bool)
    np.testing.assert_allclose(descents.residuals(given, W * scales, H / scales[:, None], every), 0, atol=1e-6)
    i, k = np.unravel_index(W.argmax(), W.shape)
    W[i, k] *= 1.01  # one entry next to its minimum: the residual is this change
    expected = W[i, k] / 101 * np.linalg.norm(H[k]) / np.sqrt(given.X[[i]].multiply(given.X[[i]]).sum())
    assert descents.residuals(given, W, H, every)[0] == pytest.approx(expected, rel=1e-3)


def test_the_theorem_is_judged_by_residuals():
    def one(end):
        row = {"iterations": 300, "W": end, "H": 0.0, "H_positive": 0.0, "left": 1e-9, "rise": -1e-9}
        return claims.Board({Run("reuters", "descent: multiplicative, uniform", 0.0, 0, ""): row})

    for end, verdict in ((1e-5, claims.CONFIRMED), (5e-3, claims.OPEN), (0.3, claims.REFUTED)):
        assert claims.convergence(one(end), ", uniform").verdict == verdict
    assert claims.convergence(one(0.3), "").verdict == claims.OPEN


def test_the_authors_procedure_and_ours_agree_on_reuters():
    """The appendix's rules from the authors' start, dense and in double precision, and the similarity of the paper."""
    try:
        corpus = corpora.prepare("reuters")
    except (ReadError, ImportError, LookupError) as error:
        pytest.skip(f"needs the Reuters corpus and NLTK's data: {error}")
    X, d = corpus.X.astype(np.float64), len(corpus.topics)
    supervision = corpus.supervision(runs.labelled_rows(corpus, 0.2, 0))
    with pytest.warns(UserWarning, match="No document is labelled with"):
        ours = TSNMF(**runs.PROGRAM | {"tol": 0.0}, random_state=0).fit(X, supervision)
    with pytest.warns(UserWarning, match="No document is labelled with"):
        first = TSNMF(**runs.PROGRAM | {"max_iter": 0}, random_state=0).fit(X, supervision)
    labelled = supervision.labelled[:, None]
    labels = supervision.indicator()
    rows = [labels.indices[a:b].tolist() for a, b in zip(labels.indptr[:-1], labels.indptr[1:], strict=True)]
    L = np.where(labelled, labels.toarray(), 1.0)
    E = np.where(labelled, len(rows) / labelled.sum(), 1.0)
    W, H = reference.authors_start(X.toarray(), rows, d, np.random.RandomState(0))
    np.testing.assert_allclose(first.components_, H, rtol=1e-10)
    np.testing.assert_allclose(first.document_topics_, W * L)
    theirs_W, theirs_H, history = reference.mu(X.toarray(), W, H, L, E, 30)
    np.testing.assert_allclose(ours.objective_history_, history, rtol=1e-10)
    np.testing.assert_allclose(ours.components_, theirs_H, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(ours.document_topics_, theirs_W, rtol=1e-10, atol=1e-10)
    assert compare_topics(theirs_W, corpus.truth).mean == pytest.approx(0.0866, rel=0.15)  # the authors' mean at 20 %


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
