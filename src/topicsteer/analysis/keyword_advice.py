"""Advice on the keywords of known topics: further ones, and words that fit another topic as well."""

import re

from topicsteer.analysis.topics import Topics
from topicsteer.labels.codebook import Codebook

# Proposed keywords per topic.
PROPOSALS = 5
# A keyword fits two topics if its weight in the second is at least this share of its weight in the first.
SHARED = 0.5


def proposed_keywords(topics: Topics, codebook: Codebook, n: int = PROPOSALS) -> dict[str, list[str]]:
    """Top terms of each known topic that are not among its words yet.

    Parameters
    ----------
    topics : Topics
        The fitted topics.
    codebook : Codebook
        The known topics, in the same order.
    n : int
        Number of terms per topic.

    Examples
    --------
    >>> import numpy as np
    >>> topics = Topics(("tea",), 1, np.array(["cup", "leaf", "tea"]), np.array([[0.1, 0.5, 1.0]]), np.ones((1, 1)),
    ...                 ["a"], np.array([1]))
    >>> proposed_keywords(topics, Codebook.of_names(["tea"], keywords={"tea": ["Cup"]}))
    {'tea': ['leaf']}
    """
    found = {}
    for k, topic in enumerate(codebook):
        known = _words(" ".join([str(topic.name), topic.description, *topic.keywords, *topic.banned]))
        terms = topics.top_terms(k, n + len(known)) if topics.H[k].any() else []
        found[str(topic.name)] = [term for term in terms if not _words(term) & known][:n]
    return found


def ambiguous_keywords(topics: Topics, codebook: Codebook) -> list[tuple[str, str, str]]:
    """Keywords that fit another known topic as well: the word, its topic, and the other topic.

    Weights are relative to the largest weight of each topic. A word of two topics hardly separates them.
    """
    column = {str(term): j for j, term in enumerate(topics.vocabulary)}
    H = topics.H[: topics.n_known]
    H = H / H.max(axis=1, keepdims=True, initial=1e-12)
    found = []
    for k, topic in enumerate(codebook):
        for word in topic.keywords:
            j = column.get(word.casefold())
            if j is None:
                continue
            weights = H[:, j].copy()
            weights[k] = 0
            other = int(weights.argmax())
            if weights[other] > 0 and weights[other] >= SHARED * H[k, j]:
                found.append((word, str(topic.name), str(codebook.topics[other].name)))
    return found


def ambiguity_notes(topics: Topics, codebook: Codebook) -> list[str]:
    """One sentence per keyword that fits another known topic as well."""
    return [
        f"The keyword {word!r} of {topic!r} fits {other!r} as well: choose a more specific word."
        for word, topic, other in ambiguous_keywords(topics, codebook)
    ]


def _words(text: str) -> set[str]:
    """The words of a text in lower case."""
    return set(re.findall(r"\w+", text.casefold()))
