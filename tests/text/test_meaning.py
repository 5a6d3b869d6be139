"""Word vectors: against a slow loop over single tokens, in threads, and without the package."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.feature_extraction.text import CountVectorizer
from tokenizers import Tokenizer

from topicsteer.text import meaning
from topicsteer.text.meaning import available, term_vectors, text_vectors

TERMS = ["card", "exchange", "", "unverifiable", "3d", "größe", "中国", "i", "🙂", "x" * 300]
# In a process of its own: vectors before and after a fork.
FORKED = """
import os, sys
from topicsteer.text.meaning import term_vectors
heavy = {"wordllama", "tokenizers", "safetensors"} & set(sys.modules)
before = term_vectors(["card"])
child = os.fork()
if not child:
    os._exit(int((term_vectors(["card"]) != before).any()))
print(heavy, os.waitpid(child, 0)[1], "wordllama" in sys.modules)
"""


def slow(texts: list[str]) -> np.ndarray:
    """Sum of the vectors of the tokens of each text, one by one."""
    folder = Path(find_spec("wordllama").origin).parent
    tokenizer = Tokenizer.from_file(str(folder / meaning.TOKENIZER))
    table = load_file(folder / meaning.VECTORS)["embedding.weight"].astype(float)
    sums = np.zeros((len(texts), table.shape[1]))
    for total, text in zip(sums, texts, strict=True):
        for token in tokenizer.encode(text, add_special_tokens=False).ids:
            total += table[token]
    return sums


def test_terms_are_sums_of_token_vectors():
    vectors = term_vectors(TERMS)
    assert vectors.shape == (len(TERMS), meaning.SIZE)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, slow(TERMS), atol=1e-4)
    assert not vectors[TERMS.index("")].any()
    np.testing.assert_array_equal(term_vectors(TERMS * 1000), np.tile(vectors, (1000, 1)))
    np.testing.assert_array_equal(term_vectors(TERMS[::-1])[::-1], vectors)
    assert term_vectors([]).shape == (0, meaning.SIZE)
    assert not term_vectors([""]).any()


def test_n_grams_add_nothing():
    assert not term_vectors(["credit card", "a b c"]).any()


def test_counts_times_terms_are_the_texts():
    texts = ["how do i exchange my card", "card card card", "why is the exchange rate not the rate"]
    words = CountVectorizer(token_pattern=r"\w+").fit(texts)
    sums = words.transform(texts) @ term_vectors(list(words.get_feature_names_out()))
    np.testing.assert_allclose(sums, text_vectors(texts), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(sums, slow(texts), rtol=1e-4, atol=1e-4)


def test_names_are_read_as_words():
    names = ["credit_card", "oil-crude", "misc.forSale", "Ships & Trade", " - ", "Ölförderung in Übersee"]
    spelt = ["credit card", "oil crude", "misc for sale", "ships trade", "", "ölförderung in übersee"]
    np.testing.assert_allclose(text_vectors(names), slow(spelt), atol=1e-4)


def test_same_in_threads():
    terms = [f"{a}{b}" for a in ("ex", "un", "re") for b in ("change", "do", "card", "late")] * 50
    with ThreadPoolExecutor(4) as pool:
        first, *rest = pool.map(term_vectors, [terms] * 8)
    assert all((one == first).all() for one in rest)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_fork_works_and_nothing_is_printed():
    done = subprocess.run([sys.executable, "-W", "error", "-c", FORKED], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("set() 0 False\n", "")


def error_without(lines: str) -> str:
    """The error in a process of its own, which runs some lines first."""
    code = f"import sys\n{lines}\nfrom topicsteer.text.meaning import term_vectors\nterm_vectors(['card'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("missing", ["wordllama", "tokenizers", "safetensors"])
def test_without_a_package(monkeypatch, missing):
    assert available()
    message = f"ModuleNotFoundError: word vectors need the package {missing}: pip install {missing}"
    assert error_without(f"sys.modules[{missing!r}] = None") == message
    monkeypatch.setitem(sys.modules, missing, None)
    assert not available()


def test_without_the_files(monkeypatch, tmp_path):
    folder = tmp_path / "wordllama"
    folder.mkdir()
    (folder / "__init__.py").touch()
    message = f"no file {meaning.VECTORS}: pip install --force-reinstall 'wordllama>=0.4'"
    assert error_without(f"sys.path.insert(0, {str(tmp_path)!r})").endswith(message)
    monkeypatch.syspath_prepend(tmp_path)
    assert not available()
