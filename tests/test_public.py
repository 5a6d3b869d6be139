"""The public surface: one list of names, the reference documents them, old paths warn."""

import gc
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import topicsteer
from topicsteer import TSNMF, TopicModel
from topicsteer.analysis.evaluate import Evaluation
from topicsteer.corpora import ReadReport
from topicsteer.metrics import Calibration, Decisions
from topicsteer.system.renamed import Renamed

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
DOCUMENTED = {
    name for page in REFERENCE.glob("*.md") for name in re.findall(r"^::: (\S+)", page.read_text(), flags=re.M)
}
LISTED = {f"{module}.{name}" for module, names in topicsteer.PUBLIC.items() for name in names.split()}


def test_public_names():
    assert set(topicsteer.__all__) == set(topicsteer.PUBLIC["topicsteer"].split())
    for module, names in topicsteer.PUBLIC.items():
        found = importlib.import_module(module)
        for name in names.split():
            assert getattr(found, name) is not None
        if hasattr(found, "__all__"):
            assert set(found.__all__) == set(names.split())


def test_the_reference_documents_public_names_only():
    home = {"topicsteer.TSNMF": "topicsteer.estimator.TSNMF"}
    home["topicsteer.TopicModel"] = "topicsteer.model.topic_model.TopicModel"
    assert DOCUMENTED - {home.get(name, name) for name in LISTED} == set()


OLD_PATHS = """
import importlib, json, sys, warnings
for old, new in json.loads(sys.argv[1]).items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        a, b = importlib.import_module(old), importlib.import_module(new)
    names = [name for name in vars(b) if name[:2] != "__"]
    assert names and all(vars(a)[name] is vars(b)[name] for name in names), old
    assert f"{old} is {new} now" in [str(one.message).partition(";")[0] for one in caught], old
"""


@pytest.mark.slow
def test_old_paths_still_work_and_warn():
    command = [sys.executable, "-c", OLD_PATHS, json.dumps(topicsteer.MOVED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


RENAMED = {
    (TSNMF, "past_"): "history_",
    (TopicModel, "pinned"): "keywords",
    (TopicModel, "outlook"): "stopping_advice",
    (TopicModel, "cuts_"): "thresholds_",
    (TopicModel, "fits"): "accepts",
    (Evaluation, "found"): "scores",
    (Evaluation, "confused"): "confusions",
    (Evaluation, "left_out"): "not_judged",
    (Decisions, "right"): "correct",
    (Decisions, "said"): "predicted",
    (Calibration, "said"): "predicted",
    (Calibration, "right"): "observed",
    (ReadReport, "settle"): "raise_for_bad_rows",
}
RENAMED_ARGUMENTS = {
    (TSNMF.fit, "words"): "term_constraints",
    (TSNMF.partial_fit, "words"): "term_constraints",
    (TopicModel.__init__, "pinned"): "keywords",
    (TopicModel.set_params, "pinned"): "keywords",
}


def test_all_old_names_are_listed():
    """A class without an entry in RENAMED must have no old name."""
    found = set()
    for module, names in topicsteer.PUBLIC.items():
        for name in names.split():
            owner = getattr(importlib.import_module(module), name)
            bases = owner.__mro__ if isinstance(owner, type) else ()
            found |= {(owner, old) for base in bases for old, value in vars(base).items() if isinstance(value, Renamed)}
    assert found | {(Decisions, "right"), (Decisions, "said")} == set(RENAMED)  # Decisions is not at the root


@pytest.mark.parametrize(("owner", "old"), RENAMED)
def test_old_names_still_work_and_warn(owner, old):
    new = RENAMED[owner, old]
    instance = object.__new__(type("Filled", (owner,), {new: "as before"}))
    with pytest.warns(DeprecationWarning, match=f"^{old} is {new} now; the old name goes with 0.3.$"):
        assert getattr(instance, old) == "as before"


@pytest.mark.parametrize(("function", "old"), RENAMED_ARGUMENTS)
def test_old_arguments_still_work_and_warn(function, old):
    new = RENAMED_ARGUMENTS[function, old]
    assert new in inspect.signature(function).parameters or function is TopicModel.set_params
    assert old not in inspect.signature(function).parameters
    if function in (TSNMF.fit, TSNMF.partial_fit):
        X, constraints = np.random.default_rng(0).random((12, 6)), np.eye(2, 6)
        with pytest.warns(DeprecationWarning, match=f"^{old} is {new} now"):
            found = function(TSNMF(2, random_state=0), X, **{old: constraints}).components_
        np.testing.assert_array_equal(found, TSNMF(2, random_state=0).fit(X, **{new: constraints}).components_)
    else:
        with pytest.warns(DeprecationWarning, match=f"^{old} is {new} now"):
            model = TopicModel(pinned={"tea": ["pot"]})
        assert model.keywords == {"tea": ["pot"]}
        with pytest.warns(DeprecationWarning, match=f"^{old} is {new} now"):
            model.set_params(pinned={"tea": ["cup"]})
        assert model.keywords == {"tea": ["cup"]}


def test_unknown_name():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        topicsteer.nothing  # noqa: B018
    with pytest.raises(ImportError):
        importlib.import_module("topicsteer.nothing")


def test_import_loads_nothing_heavy():
    code = "import sys, topicsteer; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "topicsteer" in loaded
    heavy = {"matplotlib", "starlette", "uvicorn", "websockets", "dask", "distributed", "nltk", "numba", "sklearn"}
    assert not heavy & set(loaded)


@pytest.mark.parametrize("collects", [True, False])
def test_the_first_use_of_a_name_leaves_the_garbage_collector_as_it_was(monkeypatch, collects):
    states = []
    monkeypatch.setattr(topicsteer, "import_module", lambda name: states.append(gc.isenabled()) or sys)
    monkeypatch.setitem(topicsteer._HOME, "version", "anything")
    if not collects:
        gc.disable()
    try:
        assert topicsteer.version == sys.version
        assert states == [False]
        assert gc.isenabled() == collects
    finally:
        gc.enable()


def test_the_citation_names_the_software_and_the_paper():
    text = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {topicsteer.__version__}\n" in text
    assert "\ntype: software\n" in text
    assert "preferred-citation" not in text  # it would replace the software
    assert "arxiv.org/abs/1706.05084" in text.split("references:")[1]
