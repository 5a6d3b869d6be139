"""The public corpora of the experiments, for scripts that run from any folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.corpora import load_medline, load_newsgroups, load_reuters

__all__ = ["load_medline", "load_newsgroups", "load_reuters"]
