"""Experiments use public names of topicsteer, apart from one module."""

import ast
from pathlib import Path

import pytest
from public_names import PUBLIC

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
INTERNALS = EXPERIMENTS / "shared" / "internals.py"


def private(source):
    """Names that a module imports from topicsteer and that are not public, and quoted names of its modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names if name.name.split(".")[0] == "topicsteer"]
            yield from (name for name in names if name not in PUBLIC)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "topicsteer":
            full = [f"{node.module}.{name.name}" for name in node.names]
            public = PUBLIC.get(node.module, "").split()
            yield from (name for name in full if name.rpartition(".")[2] not in public and name not in PUBLIC)
        elif isinstance(node, ast.Constant) and str(node.value).startswith("topicsteer."):
            yield node.value


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.rglob("*.py")), ids=lambda path: str(path.relative_to(EXPERIMENTS)))
def test_experiments_import_public_names(path):
    assert path == INTERNALS or not list(private(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "line",
    [
        "import topicsteer.guidance.train",
        "from topicsteer.labels.forms import supervise",
        "from topicsteer.corpora import columns",
        "from topicsteer import guidance",
        "patch('topicsteer.guidance.train.MIN_LABELS')",
    ],
)
def test_private_names_are_found(line):
    assert list(private(line))


@pytest.mark.parametrize("line", ["import topicsteer.text", "from topicsteer import TSNMF, corpora", "import numpy"])
def test_public_names_are_not(line):
    assert not list(private(line))
