"""Word vectors: against a slow loop over single tokens, and safe in threads and forks."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from tests.programs import run_python
from topicsteer.text import TextVectorizer, meaning
from topicsteer.text.meaning import available, term_vectors, text_vectors

TERMS = ["card", "", "exchange", "unverifiable", "3d", "größe", "中国", "\ud800".encode("utf-8", "replace").decode(), "i"]


def slow(text: str) -> np.ndarray:
    """Sum of the vectors of the tokens of a text, one by one."""
    import wordllama

    folder = Path(wordllama.__file__).parent
    tokenizer = Tokenizer.from_file(str(folder / meaning.TOKENIZER))
    table = load_file(folder / meaning.VECTORS)["embedding.weight"]
    total = np.zeros(256)
    for token in tokenizer.encode(text, add_special_tokens=False).ids:
        total += table[token].astype(float)
    return total
