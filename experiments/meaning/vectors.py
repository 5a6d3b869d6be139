"""Vectors of documents, topic names and keywords, made once and kept in the folder of the corpora."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from experiments.meaning.corpora import Corpus, folder
from experiments.meaning.minilm import encoder

# Embeddings of the study.
EMBEDDINGS = ("off", "builtin", "minilm")
# Names of the kept files of each embedding.
FILES = {"builtin": "wordllama", "minilm": "minilm"}
# Signs between the words of a name, and the border of two words in camel case.
BETWEEN_WORDS = re.compile(r"[-_.\s]+|(?<=[a-z])(?=[A-Z])")


def readable(name: str) -> str:
    """A name as words: spaces for signs and at the borders of camel case."""
    return BETWEEN_WORDS.sub(" ", name).strip()


def name_texts(corpus: Corpus, *, described: bool = True) -> list[str]:
    """Names as words, followed by the description if there is one and it is wanted."""
    described_names = zip(corpus.topics, corpus.descriptions, strict=True)
    return [f"{readable(name)} {text if described else ''}".strip() for name, text in described_names]


def of_documents(corpus: Corpus, embedding: str) -> np.ndarray | None:
    """Vectors of the documents (n_documents, size), rows of unit length; None if embeddings are off."""
    return None if embedding == "off" else kept(corpus, embedding, "", corpus.texts)


def of_names(corpus: Corpus, embedding: str, *, described: bool = True) -> np.ndarray | None:
    """Vectors of the topic names (n_topics, size), rows of unit length; None if embeddings are off."""
    if embedding == "off":
        return None
    return kept(corpus, embedding, "_names" if described else "_bare", name_texts(corpus, described=described))


def of_keywords(corpus: Corpus, embedding: str) -> np.ndarray | None:
    """Vectors of the keywords of all topics, one after another; None if embeddings are off or there are none."""
    words = [word for own in corpus.keywords for word in own]
    return None if embedding == "off" or not words else kept(corpus, embedding, "_keywords", words)


def kept(corpus: Corpus, embedding: str, part: str, texts: Sequence[str]) -> np.ndarray:
    """Vectors of texts from their file, which is written at the first call."""
    path = folder() / f"{corpus.name}.{FILES[embedding]}{part}.npy"
    if not path.exists():
        making = path.with_suffix(".part.npy")
        np.save(making, ENCODERS[embedding](texts))
        making.rename(path)
    return np.load(path)


def encode_minilm(texts: Sequence[str]) -> np.ndarray:
    """Vectors of MiniLM."""
    return encoder().encode(texts)


# --- wordllama: the mean of the vectors of the tokens ---


def encode_wordllama(texts: Sequence[str]) -> np.ndarray:
    """Mean token vectors of whole texts as rows of unit length; a text without tokens has zeros."""
    vectors, tokenizer = wordllama()
    rows = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
    for i, encoding in enumerate(tokenizer.encode_batch(list(texts), add_special_tokens=False)):
        if encoding.ids:
            rows[i] = vectors[encoding.ids].mean(axis=0)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


@lru_cache(maxsize=1)
def wordllama() -> tuple[np.ndarray, object]:
    """Token vectors and tokenizer from the files of the package."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("The built-in embeddings of the rivals need the package wordllama.")
    home = Path(next(iter(found.submodule_search_locations)))
    (weights,) = load_file(home / "weights/l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(home / "tokenizers/l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return weights.astype(np.float32), tokenizer


ENCODERS: dict[str, Callable[[Sequence[str]], np.ndarray]] = {
    "builtin": encode_wordllama,
    "minilm": encode_minilm,
}


class Lookup:
    """An encoder that knows the vectors of a corpus and encodes other texts when it meets them."""

    def __init__(self, corpus: Corpus, embedding: str) -> None:
        rows = of_documents(corpus, embedding)
        self._known = dict(zip(corpus.texts, rows, strict=True))
        self._encode = ENCODERS[embedding]

    def encode(self, texts: Sequence[str], **options: object) -> np.ndarray:
        """Vectors of texts (n_texts, size)."""
        unseen = [text for text in dict.fromkeys(texts) if text not in self._known]
        if unseen:
            self._known.update(zip(unseen, self._encode(unseen), strict=True))
        return np.array([self._known[text] for text in texts])


def make_all(corpus: Corpus, embedding: str) -> None:
    """Write every file of vectors of a corpus."""
    of_documents(corpus, embedding)
    of_keywords(corpus, embedding)
    for described in (True, False):
        of_names(corpus, embedding, described=described)
