"""Every example runs, offline and in any folder, and prints what it promises."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PRINTED = {
    "day_by_day.py": ("new topics: images", "Topics: clustering; email; images;", "Predicted: ['images']"),
    "from_bertopic.py": ("3 known and 0 free topics", "email: ", "email 100%: message "),
    "labelling_loop.py": (
        "10 documents labelled",
        "30 documents labelled: 9",
        "40 documents labelled: ",
        "A reason to label one next: ",
    ),
    "larger_than_memory.py": (
        "blocks on disk",
        "to the fit in memory: 0.0",
        "about email: ",
    ),
    "pipeline_grid_search.py": ("Best of 4 settings", "held-out documents: 0.9", "email: "),
    "table_to_report.py": ("4 known and 2 free topics", "documents found, ", "Written: report.html"),
}


def test_every_example_is_known_short_and_linked():
    scripts = sorted(EXAMPLES.glob("*.py"))
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in scripts] == sorted(PRINTED)
    for path in scripts:
        text = path.read_text(encoding="utf-8")
        assert text.startswith('"""')
        assert len(text.splitlines()) <= 45
        assert f"({path.name})" in readme


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_example(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    printed = capsys.readouterr().out
    for words in PRINTED[name]:
        assert words in printed
    assert len(printed.splitlines()) <= 15


def test_example_as_a_program_of_its_own(tmp_path):
    """Once as a user starts it; the others share the corpus in memory, which saves half a minute."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / "from_bertopic.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "email" in done.stdout
    assert not list(tmp_path.iterdir())
