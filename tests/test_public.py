"""The public surface: one list of names, the reference documents them, old paths warn."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import topicsteer

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


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), topicsteer.MOVED.items())
def test_old_paths_still_work_and_warn(old, new):
    code = f"import warnings; warnings.simplefilter('always'); import {old} as a, {new} as b;" + (
        "names = [n for n in vars(b) if n[:2] != '__']; assert names;"
        "assert all(vars(a)[n] is vars(b)[n] for n in names)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"{old} is {new} now" in done.stderr


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
