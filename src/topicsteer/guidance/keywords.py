"""Embeddings of documents, and from words of the codebook to terms: keywords, banned words, names, descriptions."""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from topicsteer.labels.codebook import Codebook, Topic
from topicsteer.system.failures import warn_user
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


Vectorise = Callable[[list[str]], sp.csr_array]


def check_keywords(kind: str, given: Mapping[str, Sequence[str]] | None, topics: Sequence[Hashable]) -> None:
    """Raise an error for words of an unknown topic, and for a text instead of a list of words."""
    names = [str(name) for name in topics]
    for topic, words in (given or {}).items():
        if str(topic) not in names:
            raise ValueError(f"{kind} names the topic {topic!r}, which is not one of {', '.join(names)}.")
        if isinstance(words, str):
            raise ValueError(f"{kind}[{topic!r}] is a text, {words!r}; expected a list of words.")


def term_constraints_of(codebook: Codebook, n_terms: int, vectorise: Vectorise) -> sp.csr_array | None:
    """Keywords and banned words as the ``term_constraints`` of `topicsteer.TSNMF.fit`; None if there are none.

    Parameters
    ----------
    codebook : Codebook
        The known topics. A keyword or banned word of several terms stands for all of them.
    n_terms : int
        Number of terms.
    vectorise : callable
        From texts to a matrix of terms, with the model's own normalisation of words.

    Returns
    -------
    CSR (n_topics, n_terms) or None

    Raises
    ------
    ValueError
        If a word is both a keyword and banned.
    """
    found: dict[tuple[int, int], tuple[int, str]] = {}
    unknown = []
    signed = [(k, topic.name, 1, word) for k, topic in enumerate(codebook) for word in topic.keywords]
    signed += [(k, topic.name, -1, word) for k, topic in enumerate(codebook) for word in topic.banned]
    if not signed:
        return None
    rows = sp.csr_array(vectorise([word for *_, word in signed]))  # one call for all words
    for i, (k, name, sign, word) in enumerate(signed):
        terms: list[int] = rows.indices[rows.indptr[i] : rows.indptr[i + 1]].tolist()
        unknown += [] if terms else [word]
        for j in terms:
            if found.setdefault((k, j), (sign, word))[0] != sign:
                raise ValueError(f"{word!r} is both a keyword of and banned from the topic {str(name)!r}: choose one.")
    if unknown:
        warn_user(
            f"These words are stop words or occur in no document, so they have no effect: "
            f"{', '.join(map(repr, unknown))}."
        )
    if not found:
        return None
    entries, values = np.array(list(found)).T, [sign for sign, _ in found.values()]
    return sp.csr_array((np.array(values, dtype=np.float64), tuple(entries)), shape=(len(codebook), n_terms))


@dataclass(frozen=True, eq=False)
class TopicTexts:
    """Small texts that describe topics. The guide learns from them.

    Parameters
    ----------
    terms : CSR (n_texts, n_terms)
    topics : array of int (n_texts,)
        Topic of each text.
    embeddings : array (n_texts, any), optional
        Their word vectors or embeddings.
    """

    terms: sp.csr_array
    topics: NDArray[np.int64]
    embeddings: Array | None = None


def topic_texts(codebook: Codebook, vectorise: Vectorise, encode: Encoder | None = None) -> TopicTexts:
    """Name, description and keywords of each topic as one small text; texts without words are left out.

    Parameters
    ----------
    codebook : Codebook
        The known topics. A name that is a number has no meaning.
    vectorise : callable
        From texts to a matrix of terms.
    encode : callable, optional
        From texts to vectors: the encoder of the documents, or the word vectors.
    """
    words = [" ".join([described(topic), *topic.keywords]).strip() for topic in codebook]
    terms = sp.csr_array(vectorise(words))
    filled = np.diff(terms.indptr) > 0
    E = None
    if encode is not None and words:
        E = embed(encode, words)
        filled |= np.array([bool(text) for text in words]) & E.any(axis=1)
    kept = np.flatnonzero(filled)
    return TopicTexts(sp.csr_array(terms[kept]), kept, None if E is None else E[kept])


def described(topic: Topic) -> str:
    """Name and description of a topic as words; a name that is a number has none."""
    name = topic.name if isinstance(topic.name, str) and not topic.name.isdigit() else ""
    words = re.sub(r"[\W_]+|(?<=[a-z])(?=[A-Z])", " ", name)  # money-fx, rec.autos, MoneyMarket
    return f"{words} {topic.description}"
