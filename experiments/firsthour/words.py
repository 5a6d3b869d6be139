"""Names of topics, keywords and first labels: the things that a user brings to a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.shared import encoder, internals
from experiments.shared.corpora import STUDIES, Corpus, load
from experiments.shared.internals import Supervision
from topicsteer.text import TextVectorizer

# Kinds of words: names alone, or names with this many keywords.
KEYWORDS = {"names": 0, "keywords": 5}


@dataclass(frozen=True, eq=False)
class Start:
    """A corpus with the words of its topics and some labels.

    ``texts`` are the names and keywords as small documents: terms (n_texts, n_terms) and their topics. ``rows`` are the
    labelled documents.
    """

    corpus: Corpus
    texts: Any
    rows: np.ndarray

    @property
    def supervision(self) -> Supervision:
        """The labels."""
        return self.corpus.supervision(self.rows)

    @property
    def keywords(self) -> int:
        """Number of keywords per topic."""
        several = len(np.unique(self.texts.topics)) < len(self.texts.topics)
        return KEYWORDS["keywords" if several else "names"]

    @property
    def judged(self) -> np.ndarray:
        """Rows without a label."""
        return np.setdiff1d(np.arange(self.corpus.X.shape[0]), self.rows)


def draw(name: str, words: str, labels: int, seed: int) -> Start:
    """Names or keywords of a corpus, and this many labelled documents per topic."""
    corpus = load(name, "firsthour")
    return Start(corpus, texts(name, KEYWORDS[words]), labelled(corpus, labels, seed))


def labelled(corpus: Corpus, per_topic: int, seed: int) -> np.ndarray:
    """Documents of each topic, drawn at random; they get all their labels."""
    rng, found = np.random.default_rng([seed, per_topic]), set()
    columns = corpus.truth.tocsc()
    for k in range(len(corpus.topics)):
        own = columns.indices[columns.indptr[k] : columns.indptr[k + 1]]
        found.update(rng.choice(own, min(per_topic, len(own)), replace=False).tolist())
    return np.array(sorted(found), dtype=np.int64)


@lru_cache(maxsize=4)
def texts(name: str, keywords: int) -> Any:
    """Names and keywords as small documents, as TopicModel makes them."""
    corpus = load(name, "firsthour")
    names = [spoken(topic) for topic in corpus.topics]
    words = dict(zip(names, distinctive(corpus, keywords), strict=True))
    return internals.name_rows(names, vectorizer(name).transform, keywords=words)


@lru_cache(maxsize=2)
def embedded_texts(name: str, keywords: int) -> Any:
    """The same with their embeddings."""
    corpus = load(name, "firsthour")
    names = [spoken(topic) for topic in corpus.topics]
    words = dict(zip(names, distinctive(corpus, keywords), strict=True))
    return internals.embedded_names(names, vectorizer(name).transform, encoder.encode, keywords=words)


@lru_cache(maxsize=2)
def embedded_phrases(name: str, keywords: int) -> np.ndarray:
    """Embeddings of all words of each topic as one text."""
    corpus = load(name, "firsthour")
    own = distinctive(corpus, keywords)
    return encoder.encode([" ".join([spoken(topic), *words]) for topic, words in zip(corpus.topics, own, strict=True)])


@lru_cache(maxsize=2)
def vectorizer(name: str) -> TextVectorizer:
    """The vectorizer of a corpus."""
    return TextVectorizer().fit(STUDIES["firsthour"][name]().texts)


def spoken(topic: str) -> str:
    """The name of a newsgroup without its first part: "religion christian"; other names as they are."""
    parts = topic.split(".")
    return " ".join(parts[1:]).replace("-", " ") if len(parts) > 1 and topic.islower() else topic


def distinctive(corpus: Corpus, n: int) -> list[list[str]]:
    """The words of each topic that differ most in mean tf-idf between its documents and the others."""
    size = np.asarray(corpus.truth.sum(axis=0)).ravel()
    inside = np.asarray((sp.csr_array(corpus.truth.T).astype(np.float64) @ corpus.X).todense())
    total = np.asarray(corpus.X.sum(axis=0)).ravel()
    rest = corpus.X.shape[0] - size
    difference = inside / np.maximum(size, 1)[:, None] - (total - inside) / np.maximum(rest, 1)[:, None]
    order = np.argsort(-difference, axis=1, kind="stable")[:, :n]
    return [[corpus.terms[j] for j in line] for line in order]
