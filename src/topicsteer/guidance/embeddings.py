"""Embeddings of documents, from wherever the user has them."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from topicsteer.system.types import Array

Encoder: TypeAlias = Callable[[list[str]], ArrayLike]


class Encodes(Protocol):
    """A model that makes embeddings, such as those of sentence-transformers and model2vec."""

    def encode(self, texts: list[str], /) -> ArrayLike:
        """One row for each text."""


Embeddings: TypeAlias = ArrayLike | Encoder | Encodes


def encoder_of(source: Embeddings | None) -> Encoder | None:
    """The function from texts to an array of a model with ``encode`` or of a callable; None for an array.

    Sentence-transformers and model2vec models have ``encode``.
    """
    encode = getattr(source, "encode", None)
    return encode if callable(encode) else source if callable(source) else None


def embed(source: Embeddings, texts: Sequence[str]) -> Array:
    """The embeddings of texts: the array itself, checked, or what an encoder makes of the texts.

    Parameters
    ----------
    source : array (n_texts, any), encoder or callable
        Where they come from.
    texts : sequence of str
        The texts.

    Returns
    -------
    array (n_texts, any)

    Raises
    ------
    ValueError
        If there is not one row of finite numbers a text.

    Examples
    --------
    >>> embed(lambda texts: [[len(text), 1.0] for text in texts], ["tea", "coffee"])
    array([[3., 1.],
           [6., 1.]], dtype=float32)
    """
    encode = encoder_of(source)
    found = np.asarray(source if encode is None else encode(list(texts)), dtype=np.float32)
    if found.ndim != 2 or len(found) != len(texts):
        raise ValueError(f"embeddings have the shape {found.shape}; expected one row a document, {len(texts)} rows.")
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if bad.size:
        raise ValueError(f"the embedding of document {bad[0]} has NaN or infinite numbers, and {bad.size} have in all.")
    return found
