"""Embeddings of documents: an array, an encoder model or a function."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from topicsteer.system.types import Array

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
    found = np.asarray(source if encode is None else encode(list(texts)), dtype=np.float32)
    if found.ndim != 2 or len(found) != len(texts):
        raise ValueError(f"embeddings have the shape {found.shape}; expected one row per document, {len(texts)} rows.")
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if bad.size:
        raise ValueError(
            f"the embedding of document {bad[0]} has NaN or infinite numbers ({bad.size} documents in all)."
        )
    return found
