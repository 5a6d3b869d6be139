"""The public surface: one list of names, and the reference documents them."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from public_names import PUBLIC

import topicsteer

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
DOCUMENTED = {
    name for page in REFERENCE.glob("*.md") for name in re.findall(r"^::: (\S+)", page.read_text(), flags=re.M)
}
LISTED = {f"{module}.{name}" for module, names in PUBLIC.items() for name in names.split()}


def test_public_names():
    assert set(topicsteer.__all__) == set(PUBLIC["topicsteer"].split())
    for module, names in PUBLIC.items():
        found = importlib.import_module(module)
        for name in names.split():
            assert getattr(found, name) is not None
        if hasattr(found, "__all__"):
            assert set(found.__all__) == set(names.split())


def test_the_reference_documents_public_names_only():
    home = {"topicsteer.TSNMF": "topicsteer.estimator.TSNMF"}
    home["topicsteer.TopicModel"] = "topicsteer.model.topic_model.TopicModel"
    assert DOCUMENTED - {home.get(name, name) for name in LISTED} == set()


def test_dir_shows_the_public_names_only():
    assert set(dir(topicsteer)) == set(PUBLIC["topicsteer"].split())


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


def test_the_citation_names_the_software_and_the_paper():
    text = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {topicsteer.__version__}\n" in text
    assert "\ntype: software\n" in text
    assert "preferred-citation" not in text  # it would replace the software
    assert "arxiv.org/abs/1706.05084" in text.split("references:")[1]
