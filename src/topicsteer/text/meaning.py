"""Meaning: word vectors of terms and texts, from the package wordllama.

Its wheel has a vector for each of 32,000 tokens, so no download is needed. The package itself is not imported: its
loader does not find the tokenizer offline.
"""

import importlib.util
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Numbers per vector.
SIZE = 256
# The files inside the package.
VECTORS, TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
# Texts whose token vectors are in memory at the same time.
_BATCH = 4096
# Punctuation between the words of a name.
_BETWEEN = re.compile(r"[\s_./-]+")


def available() -> bool:
    """Whether the packages and files of the word vectors are installed."""
    try:
        _folder()
    except ImportError:
        return False
    return True


def term_vectors(terms: Sequence[str]) -> NDArray[np.float32]:
    """Sum the token vectors of each term.

    A matrix of counts times these vectors is the sum of the vectors of each text. N-grams have zeros, because their
    words are terms as well.

    Parameters
    ----------
    terms : sequence of str

    Returns
    -------
    ndarray of float32, shape (n_terms, 256)

    Raises
    ------
    ModuleNotFoundError
        If wordllama, tokenizers or safetensors is not installed.

    Examples
    --------
    >>> vectors = term_vectors(["credit", "card", "credit card"])
    >>> vectors.shape, vectors.any(axis=1).tolist()
    ((3, 256), [True, True, False])
    """
    return _sums(["" if " " in term else term for term in terms])


def text_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Sum the token vectors of names and descriptions of topics.

    Names are read as words: ``credit_card``, ``oil-crude`` and ``misc.forSale`` have two or three.

    Parameters
    ----------
    texts : sequence of str

    Returns
    -------
    ndarray of float32, shape (n_texts, 256)

    Raises
    ------
    ModuleNotFoundError
        If wordllama, tokenizers or safetensors is not installed.

    Examples
    --------
    >>> first, second = text_vectors(["credit_card", "credit card"])
    >>> bool((first == second).all())
    True
    """
    return _sums([spelt_out(text) for text in texts])


def spelt_out(name: str) -> str:
    """Separate the words of a name by spaces.

    Examples
    --------
    >>> spelt_out("misc.forSale"), spelt_out("oil-crude"), spelt_out("Ships & trade")
    ('misc for Sale', 'oil crude', 'Ships & trade')
    """
    after = (f" {b}" if a.islower() and b.isupper() else b for a, b in pairwise(name))
    return _BETWEEN.sub(" ", name[:1] + "".join(after)).strip()


def _sums(texts: list[str]) -> NDArray[np.float32]:
    """Sum the vectors of the tokens of each text."""
    tokenizer, table = _table()
    sums = np.zeros((len(texts), SIZE), np.float32)
    for first in range(0, len(texts), _BATCH):
        # One at a time: threads of the tokenizer would warn in a process that forks later.
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts[first : first + _BATCH]]
        full = [row for row, own in enumerate(ids) if own]
        if full:
            starts = np.cumsum([0, *(len(ids[row]) for row in full[:-1])])
            vectors = table[np.concatenate([ids[row] for row in full])].astype(np.float32)
            sums[first + np.array(full)] = np.add.reduceat(vectors, starts, axis=0)
    return sums


def _folder() -> Path:
    """Folder of the package wordllama."""
    folders = [_place(name) for name in ("tokenizers", "safetensors", "wordllama")]
    for file in (VECTORS, TOKENIZER):
        if not (folders[-1] / file).is_file():
            raise ModuleNotFoundError(
                f"the package wordllama has no file {file}: pip install --force-reinstall 'wordllama>=0.4'",
                name="wordllama",
            )
    return folders[-1]


def _place(package: str) -> Path:
    """Folder of a package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"word vectors need the package {package}: pip install {package}", name=package)
    return Path(spec.origin).parent


@lru_cache(maxsize=1)
def _table() -> "tuple[Tokenizer, NDArray[np.float16]]":
    """The tokenizer, and the vectors of its tokens as stored."""
    folder = _folder()
    from safetensors import safe_open
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    with safe_open(folder / VECTORS, framework="np") as file:
        return tokenizer, file.get_tensor("embedding.weight")
