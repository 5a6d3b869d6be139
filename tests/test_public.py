import subprocess
import sys

import pytest

import topicsteer


def test_public_names():
    assert set(topicsteer.__all__) == {"TSNMF", "TopicModel", "__version__"}
    for name in topicsteer.__all__:
        assert getattr(topicsteer, name) is not None


def test_unknown_name():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        topicsteer.nothing  # noqa: B018


def test_import_loads_nothing_heavy():
    code = "import sys, topicsteer; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "topicsteer" in loaded
    assert not {
        "matplotlib",
        "starlette",
        "uvicorn",
        "websockets",
        "dask",
        "distributed",
        "nltk",
        "numba",
        "sklearn",
    } & set(loaded)
