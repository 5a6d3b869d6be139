"""The study of coders on a made-up corpus."""

import numpy as np
import pytest

from experiments.coders import __main__ as coders
from experiments.coders import trials
from experiments.prevalence.trials import prepared
from experiments.shared.draws import CORPORA
from topicsteer.analysis.agreement import cohen_kappa


def test_made_coders_have_their_errors():
    truth = np.eye(4)[np.random.default_rng(0).integers(4, size=4_000)]
    rng = np.random.default_rng(1)
    for right in trials.CODERS.values():
        same = (trials.made(truth, right, rng) == truth).all(axis=1).mean()
        assert same == pytest.approx(right + (1 - right) / 4, abs=0.03)


def test_true_values():
    rng = np.random.default_rng(0)
    said, true = rng.random((2, 500, 3)) < 0.3
    found = trials.true_values(said, true)
    assert found["precision"] == pytest.approx((said & true).sum(axis=0) / said.sum(axis=0))
    assert found["recall"] == pytest.approx((said & true).sum(axis=0) / true.sum(axis=0))
    assert found["kappa"] == pytest.approx([cohen_kappa(said[:, k], true[:, k]) for k in range(3)])


def test_the_plan_covers_each_cell_once():
    planned = trials.plan(CORPORA)
    assert len({trial.key for trial in planned}) == len(planned)
    assert len(planned) == 3 * 2 * sum(trials.DRAWS.values())


@pytest.mark.slow
def test_a_quick_run_writes_its_page(tmp_path):
    assert coders.main(["--corpus", "toy", "--quick", "--draws", "1", "--results", str(tmp_path)]) == 0
    text = (tmp_path / "quick-coders" / "README.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| toy | 300 | 1 | copies a person")]
    assert len(rows) == 2
    assert rows[0][4].startswith("100.0%")
    assert float(rows[1][5]) < 1
    assert len(prepared("toy").topics) == 6
