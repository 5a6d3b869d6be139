"""Six corpora whose truth is known: some topics are known to the user, all other documents have none of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from experiments.meaning.corpora import load
from experiments.meaning.vectors import readable

# Corpora, and the number of topics that the user knows.
KNOWN = {"agnews_test": 3, "20newsgroups": 6, "reuters": 6, "pubmed": 6, "cap_nyt": 6, "banking77": 8}
# Documents of a sample.
SIZE = 2500


@dataclass(frozen=True, eq=False)
class World:
    """Texts without digits, names of the user's topics, and truth.

    ``Y`` (n_documents, n_known) are the topics of the documents, and ``others`` the topics that nobody named. Digits
    are removed, so that each number in an output is one of topicsteer.
    """

    name: str
    texts: list[str]
    topics: list[str]
    Y: np.ndarray
    others: np.ndarray

    @property
    def shares(self) -> dict[str, float]:
        """True share of each topic and of none."""
        found = dict(zip(self.topics, self.Y.mean(axis=0).tolist(), strict=True))
        return found | {"(none)": float((~self.Y.any(axis=1)).mean())}

    def labels(self, row: int) -> list[str]:
        """The label of a document by a careful person."""
        return [self.topics[k] for k in np.flatnonzero(self.Y[row])] or ["(none)"]


def world(name: str, seed: int) -> World:
    """A draw of documents and of known topics among the larger half of the topics."""
    corpus, rng = load(name), np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(corpus.texts))[:SIZE])
    Y = corpus.Y[rows]
    sizes = np.argsort(-Y.sum(axis=0), kind="stable")
    large = sizes[: max(KNOWN[name] + 1, len(sizes) // 2)]
    known = np.sort(rng.choice(large, KNOWN[name], replace=False))
    others = np.setdiff1d(np.arange(Y.shape[1]), known)
    texts = [re.sub(r"\d", "", corpus.texts[row]) for row in rows]
    names = [re.sub(r"\d", "", readable(corpus.topics[k])) for k in known]
    return World(name, texts, names, Y[:, known], Y[:, others])
