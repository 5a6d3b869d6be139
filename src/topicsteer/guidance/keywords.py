"""From words of the codebook to terms: keywords, banned words, names and descriptions of topics."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.labels.codebook import Codebook, Topic
from topicsteer.system.failures import warn_user
from topicsteer.system.types import Array
from topicsteer.text.meaning import Encoder, embed

Vectorise = Callable[[list[str]], sp.csr_array]


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
