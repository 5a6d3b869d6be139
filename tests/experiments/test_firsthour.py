"""The study of names and keywords on a made-up corpus."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from experiments.firsthour import __main__ as firsthour
from experiments.firsthour import methods, page, trials, words
from experiments.firsthour.trials import HALF, OURS, WRONG
from experiments.shared import corpora


def test_names_and_distinctive_words():
    assert [
        words.spoken(name) for name in ("soc.religion.christian", "comp.os.ms-windows.misc", "Aging", "money-fx")
    ] == [
        "religion christian",
        "os ms windows misc",
        "Aging",
        "money-fx",
    ]
    corpus = corpora.load("toy", "firsthour")
    found = words.distinctive(corpus, 5)
    assert all(word[0] == "bdfgkp"[k] for k, own in enumerate(found) for word in own)  # words of a topic share a letter
    rows = words.labelled(corpus, 2, 0)
    assert (corpus.truth[rows].sum(axis=0) >= 2).all()


def test_measures_and_the_cosine():
    start = words.draw("toy", "keywords", 1, 0)
    scores = methods.cosine(start, 0)
    terms = start.corpus.X.toarray() @ methods.joined(start).toarray().T
    np.testing.assert_allclose(scores, terms)
    truth = start.corpus.truth.toarray() > 0
    best = np.eye(6, dtype=bool)[scores.argmax(axis=1)]
    expected = f1_score(truth[start.judged], best[start.judged], average="macro", zero_division=0)
    assert trials.judge(start, scores)["F1"] == pytest.approx(expected)
    assert methods.ours(start, 0)[start.judged].shape == (len(start.judged), 6)


def test_the_plan_covers_each_cell_once():
    planned = trials.plan(firsthour.CORPORA)
    assert len({trial.key for trial in planned}) == len(planned)
    ours = [trial for trial in planned if trial.method == OURS and trial.corpus == "reuters-100"]
    assert len(ours) == 2 * (1 + 3 * 3)  # one trial without labels, three seeds of three budgets
    assert {trial.method for trial in planned} >= {WRONG, HALF, "cosine"}


def test_a_quick_run_writes_its_page(tmp_path):
    assert firsthour.main(["--corpus", "toy", "--quick", "--results", str(tmp_path)]) == 0
    text = (tmp_path / "quick-firsthour" / "README.md").read_text(encoding="utf-8")
    assert "| topicsteer | names and five keywords | 1.000 |" in text
    assert page.TITLES["toy"] in text
