"""Meaning: embeddings of documents, and word vectors of terms and names from the package wordllama.

Its wheel has a vector for each of 32,000 tokens, so no download is needed. The package itself is not imported: its
loader does not find the tokenizer offline.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topicsteer.system.arrays import unmasked
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Encoder: TypeAlias = Callable[[list[str]], ArrayLike]


class Encodes(Protocol):
    """A model with ``encode``, such as the models of sentence-transformers and model2vec."""

    def encode(self, texts: list[str], /) -> ArrayLike:
        """One row per text."""


Embeddings: TypeAlias = ArrayLike | Encoder | Encodes


def encoder_of(source: Embeddings | None) -> Encoder | None:
    """The function from texts to embeddings: the ``encode`` of a model, or the callable itself. None for an array."""
    encode = getattr(source, "encode", None)
    return encode if callable(encode) else source if callable(source) else None


def embed(source: Embeddings, texts: Sequence[str]) -> Array:
    """The embeddings of texts: a checked array, or the output of an encoder.

    Parameters
    ----------
    source : array (n_texts, any), encoder or callable
        The embeddings themselves, or their source.
    texts : sequence of str
        The texts.

    Returns
    -------
    array (n_texts, any)

    Raises
    ------
    ValueError
        If there is not one row of finite numbers per text.

    Examples
    --------
    >>> embed(lambda texts: [[len(text), 1.0] for text in texts], ["tea", "coffee"])
    array([[3., 1.],
           [6., 1.]], dtype=float32)
    """
    encode = encoder_of(source)
    given = source if encode is None else encode(list(texts))
    found = np.asarray(unmasked(given, "embeddings"), dtype=np.float32)
    if found.ndim != 2 or len(found) != len(texts):
        raise ValueError(f"embeddings have the shape {found.shape}; expected one row per document, {len(texts)} rows.")
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if bad.size:
        raise ValueError(
            f"the embedding of document {bad[0]} has NaN or infinite numbers ({bad.size} documents in all)."
        )
    return found


# --- word vectors ---

# Numbers per vector.
SIZE = 256
# The files inside the package.
VECTORS, TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
# Texts whose token vectors are in memory at the same time.
_BATCH = 4096
# Borders of words in names: money-fx, rec.autos, MoneyMarket.
_BORDER = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")


def available() -> bool:
    """Whether the packages and files of the word vectors are installed.

    Examples
    --------
    >>> available()
    True
    """
    try:
        _folder()
    except ModuleNotFoundError:
        return False
    return True


def knows(languages: Sequence[str], terms: Sequence[str]) -> bool:
    """Whether the vectors know the language of a corpus: they were made from English texts.

    If no language was recognised, because there are no stop words, most terms must be one or two tokens.

    Examples
    --------
    >>> knows(["en"], []), knows(["de"], []), knows([], ["credit", "card"]), knows([], ["Überweisung"])
    (True, False, True, False)
    """
    if languages or not available():
        return available() and "en" in languages
    tokenizer, _ = _table()
    some = [term for term in terms if " " not in term][:: max(len(terms) // 500, 1)]
    tokens = sum(_spelling(tokenizer, term)[1] for term in some)
    return bool(some) and tokens <= 2 * len(some)


def _spelling(tokenizer: "Tokenizer", word: str) -> tuple[list[int], int]:
    """Tokens of a word with or without a capital, whichever has fewer, and their number.

    Terms are in lower case, and names such as "Iraq" are one token only with their capital.
    """
    spelt = (tokenizer.encode(one, add_special_tokens=False).ids for one in (word, word.capitalize()))
    found = min(spelt, key=len)
    return found, len(found)


def term_vectors(terms: Sequence[str]) -> NDArray[np.float32]:
    """Sum the token vectors of each term.

    A matrix of counts times these vectors has the sum of the vectors of each text. N-grams have zeros, because their
    words count already.

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
    """Sum the token vectors of names and descriptions of topics, in lower case as terms are.

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
    >>> names = text_vectors(["credit card", "Credit_Card", "CreditCard"])
    >>> bool((names == names[0]).all())
    True
    """
    return _sums([_BORDER.sub(" ", text).lower() for text in texts])


def _sums(texts: Sequence[str]) -> NDArray[np.float32]:
    """Sum the vectors of the tokens of each text."""
    tokenizer, table = _table()
    sums = np.zeros((len(texts), SIZE), np.float32)
    for first in range(0, len(texts), _BATCH):
        # One by one: after `encode_batch`, which uses threads, a fork would print a warning.
        tokens = [
            [token for word in text.split() for token in _spelling(tokenizer, word)[0]]
            for text in texts[first : first + _BATCH]
        ]
        sizes = np.array([len(own) for own in tokens])
        filled = np.flatnonzero(sizes)
        if len(filled):
            vectors = table[np.array([token for own in tokens for token in own], dtype=np.intp)].astype(np.float32)
            starts = np.cumsum(sizes) - sizes
            sums[first + filled] = np.add.reduceat(vectors, starts[filled], axis=0)
    return sums


def _folder() -> Path:
    """Folder of the package wordllama; no package is imported."""
    found = {name: find_spec(name) for name in ("tokenizers", "safetensors", "wordllama")}
    for name, spec in found.items():
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"word vectors need the package {name}: pip install {name}", name=name)
        folder = Path(spec.origin).parent
    for file in (VECTORS, TOKENIZER):
        if not (folder / file).is_file():
            raise ModuleNotFoundError(
                f"the package wordllama has no file {file}: pip install --force-reinstall 'wordllama>=0.4'",
                name="wordllama",
            )
    return folder


@lru_cache(maxsize=1)
def _table() -> "tuple[Tokenizer, NDArray[np.float16]]":
    """The tokenizer, and the vectors of its tokens as stored."""
    folder = _folder()
    from safetensors import safe_open
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    with safe_open(folder / VECTORS, framework="np") as file:
        return tokenizer, file.get_tensor("embedding.weight")
