"""The end-to-end benchmark runs on a small table."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from problems import planted_texts

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "end_to_end.py"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["topicsteer", "TfidfVectorizer + NMF", "TfidfVectorizer + logistic regression"])
def test_a_pipeline_on_a_table(tmp_path, name):
    path = tmp_path / "posts.jsonl"
    texts = planted_texts(3, size=80)
    rows = ({"id": i, "text": text, "labels": f"topic {i // 80}"} for i, text in enumerate(texts))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, SCRIPT, "run", "--name", name, "--path", path, "--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["seconds"] > 0
    assert found["megabytes"] >= 0
