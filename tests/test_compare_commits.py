"""The comparison of two versions: which differences it notices."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture
def values(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield importlib.import_module("compare_values")
    sys.modules.pop("compare_values", None)


def verdicts(values, old, new):
    return {key: verdict for key, _, verdict in values.compare(old, new) if verdict}


def test_one_bit_and_one_letter_differ(values):
    a = np.array([1.0, 2.0], dtype=np.float32)
    b = a.copy()
    b[1] = np.nextafter(b[1], 3, dtype=np.float32)
    assert values.difference(a, a.copy()) == ""
    assert "1 of 2 values, max deviation 2.38e-07" in values.difference(a, b)
    assert "form" in values.difference(a, a.astype(float))
    assert values.difference(np.array([0.0]), np.array([-0.0])).startswith("DIFFERENT")
    assert "line 2: 'b' and 'c'" in values.difference(["a", "b"], ["a", "c"])
    assert "length" in values.difference(["a"], ["a", "b"])
    assert "max deviation 0.5" in values.difference(["0 1.0"], ["0 1.5"])


def test_new_columns_are_no_difference_but_other_names_are(values):
    old, new, renamed = values.Values(), values.Values(), values.Values()
    old.csv("t", "id,share\n1,0.5\n")
    new.csv("t", "id,share,low\n1,0.5,0.4\n")
    renamed.csv("t", "id,part\n1,0.5\n")
    assert verdicts(values, old, new) == {"t:low": "only new"}
    found = verdicts(values, old, renamed)
    assert found["t:part"] == "only new"
    assert found["t:share"] == "only old"
    assert found["t:names"].startswith("DIFFERENT")


def test_a_value_that_becomes_null_or_empty_differs(values):
    for before, after in (({"share": 1}, None), ([1], []), ([[1], []], [[], [1]])):
        old, new = values.Values(), values.Values()
        old.json("t", {"none": before})
        new.json("t", {"none": after})
        assert any(verdict.startswith("DIFFERENT") for verdict in verdicts(values, old, new).values())


def test_values_survive_a_file_and_lost_values_have_a_reason(values, tmp_path):
    old, new = values.Values(), values.Values()
    old.array("fit/H", np.eye(2))
    old.text("fit/answer", "given")
    new.gone["fit/answer"] = "no estimator_"
    old.save(tmp_path / "old")
    found = verdicts(values, values.Values.load(tmp_path / "old"), new)
    assert found == {"fit/H": "only old", "fit/answer": "only old (no estimator_)"}


def test_only_traces_of_a_run_are_removed(values, tmp_path):
    text = (
        f"topicsteer 0.2.0 wrote {tmp_path}/a.csv on {values.DAY.isoformat()} 10:11 in 3.5 seconds; 1999-01-02, 0.2.0"
    )
    assert values.clean(text, tmp_path) == "topicsteer VERSION wrote FOLDER/a.csv on DATE in N s; 1999-01-02, 0.2.0"


def test_pages_are_split_into_text_data_scripts_and_styles(values):
    old, new = values.Values(), values.Values()
    page = '<p>{}</p><style>a</style><script type="application/json">{{"x": {}}}</script><script>run()</script>'
    old.html("r", page.format("tea", 1))
    new.html("r", page.format("tea", 2))
    assert [*verdicts(values, old, new)] == ["r:data0.x"]
    assert old.lines["r:script0"] == ["run()"]
    assert "<p>tea</p>" in old.lines["r:text"]
