"""The study of constants: halved and doubled values, and the page."""

import re

import numpy as np

from experiments.constants import __main__ as study
from experiments.constants import page, trials


def test_a_constant_is_replaced_and_comes_back():
    before = trials.Constant("ROUNDS").value
    with trials.Constant("ROUNDS").replaced("doubled"):
        assert trials.Constant("ROUNDS").value == 2 * before
    assert trials.Constant("ROUNDS").value == before


def test_there_are_at_most_thirty():
    assert len(trials.constants()) <= 30
    names = {constant.name for constant in trials.constants()}
    assert names.issuperset({*trials.OPEN_ONLY, *trials.FEW_ONLY, *trials.SHARES_OF_A_WHOLE, *trials.LEAST} - {""})


def test_shares_stay_below_1_and_lists_change_together():
    assert trials.changed("GROUP_SHARE", 0.75, "doubled") == 0.875
    assert trials.changed("RIDGES", (1.0, 2.0, 4.0), "halved") == (0.5, 1.0, 2.0)
    assert trials.changed("RIDGES", (1.0, 2.0, 4.0), "doubled") == (2.0, 4.0, 8.0)
    assert trials.changed("FOLDS", 3, "halved") == 2


def test_every_constant_has_two_other_values():
    for constant in trials.constants():
        for change in trials.CHANGES:
            assert not np.array_equal(constant.value, constant.changed(change)), constant.name


def row(constant, change, corpus, known, hidden=None):
    key = {"constant": constant, "change": change, "corpus": corpus, "cell": "hidden10", "seed": 0}
    return key | {"known": known, "hidden": hidden, "value": "3", "changed": "6"}


def test_the_page_has_mean_and_largest_changes():
    rows = [row("", "", "reuters", 0.5, 0.2), row("", "", "cap_nyt", 0.6)]
    for change in trials.CHANGES:
        rows += [row("ROUNDS", change, "reuters", 0.51, 0.19), row("ROUNDS", change, "cap_nyt", 0.63)]
        rows += [
            row("STARTS", change, corpus, {"reuters": 0.5, "cap_nyt": 0.601}.get(corpus, 0.3), 0.2)
            for corpus in trials.CORPORA
        ]
        rows.append(row("KAPPA", change, "reuters", 0.5, 0.2))  # not tried on the other corpora
    text = page.text(rows, 1000, "abc")
    assert "16 of 1,000 trials are done." in text.splitlines()[2]
    line = "| `ROUNDS` | 3 | 6: +.020 / -.010 | 6: +.020 / -.010 | +.030 halved, cap_nyt, known |"
    assert line in text
    assert "by .002 or more**: `STARTS`." in text


def test_the_committed_page_comes_from_the_committed_trials():
    written = (study.HERE / "README.md").read_text(encoding="utf-8")
    code = re.search(r"Code of the guide: `(\w+)`", written).group(1)
    planned = re.search(r"of ([\d,]+) trials are done", written)
    rows = study.read(study.HERE, code)
    assert page.text(rows, int(planned.group(1).replace(",", "")) if planned else len(rows), code) == written


def test_a_run_without_time_writes_the_page_of_the_finished_trials(tmp_path):
    assert study.main(["--minutes", "0", "--folder", str(tmp_path)]) == 0
    assert "0 of " in (tmp_path / "README.md").read_text(encoding="utf-8").splitlines()[2]
