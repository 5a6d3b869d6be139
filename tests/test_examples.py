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
    "analyst.py": ("none of your 6 topics", "delivery, north: ", "Written: report.html"),
    "data_scientist.py": ("words: average precision 0.", "delivery, north: mean membership 0.", "[['login']]"),
    "from_bertopic.py": ("3 known and 5 free topics", "login: ", "New text: [['delivery']]"),
    "language_model.py": ("login: precision ", "billing: 9% of the answers, in truth about "),
    "matrix.py": ("Best of 4 settings", "held-out documents: 0.", "login: "),
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
    """Once as a user starts it; the others run in this process, which saves their start."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / "from_bertopic.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "login" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
