"""From words of the codebook to terms of the matrix: keywords, banned words, names and descriptions."""

import re
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import scipy.sparse as sp

from topicsteer.labels.codebook import Codebook

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
    for k, name, sign, word in signed:
        terms = sp.csr_array(vectorise([word])).indices
        unknown += [] if terms.size else [word]
        for j in terms.tolist():
            if found.setdefault((k, j), (sign, word))[0] != sign:
                raise ValueError(f"{word!r} is both a keyword of and banned from the topic {str(name)!r}: choose one.")
    if unknown:
        warnings.warn(
            f"These words are stop words or occur in no document, so they have no effect: "
            f"{', '.join(map(repr, unknown))}.",
            UserWarning,
            stacklevel=3,
        )
    if not found:
        return None
    entries, values = np.array(list(found)).T, [sign for sign, _ in found.values()]
    return sp.csr_array((np.array(values, dtype=np.float64), tuple(entries)), shape=(len(codebook), n_terms))


def name_vectors(codebook: Codebook, vectorise: Vectorise) -> sp.csr_array:
    """Name, description and keywords of each topic, as one small document per topic; empty if the name is a number.

    Parameters
    ----------
    codebook : Codebook
        The known topics.
    vectorise : callable
        From texts to a matrix of terms.

    Returns
    -------
    CSR (n_topics, n_terms)
    """
    texts = []
    for topic in codebook:
        name = topic.name if isinstance(topic.name, str) and not topic.name.isdigit() else ""
        words = re.sub(r"[\W_]+|(?<=[a-z])(?=[A-Z])", " ", name)  # money-fx, rec.autos, MoneyMarket
        texts.append(" ".join([words, topic.description, *topic.keywords] if name else [""]))
    return sp.csr_array(vectorise(texts))
