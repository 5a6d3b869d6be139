"""Corpora of the study: texts, topics with descriptions and keywords, and true labels; read once and kept."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from experiments import corpora as archives
from experiments.shared import corpora as shared
from experiments.shared.terminal import RESULTS
from topicsteer.corpora import Documents

# Documents of a sample, and its seed.
SIZE = 4000
SEED = 0
# Least documents per topic in the samples of the two corpora with a long tail of topics.
REUTERS_LEAST = 40
PUBMED_LEAST = 100
# Number of intents in the smaller sample of bank customers' questions.
LARGEST = 60


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts, topic names with descriptions and keywords (may be empty), and true labels (documents × topics, bool)."""

    name: str
    texts: list[str]
    topics: list[str]
    descriptions: list[str]
    keywords: list[list[str]]
    Y: np.ndarray

    @property
    def several(self) -> bool:
        """Whether a document may have more than one topic."""
        return bool((self.Y.sum(axis=1) > 1).any())


def folder() -> Path:
    """Folder of prepared corpora and vectors, which `TOPICSTEER_MEANING` names."""
    return Path(os.environ.get("TOPICSTEER_MEANING", RESULTS / "meaning"))


@lru_cache(maxsize=2)
def load(name: str) -> Corpus:
    """A prepared corpus; it is read from its archive once and kept."""
    if not (folder() / f"{name}.json").exists():
        keep(SOURCES[name]())
    content = json.loads((folder() / f"{name}.json").read_text(encoding="utf-8"))
    with np.load(folder() / f"{name}.npz", allow_pickle=False) as arrays:
        return Corpus(name, **content, Y=arrays["Y"])


def keep(corpus: Corpus) -> None:
    """Write a prepared corpus, the part that `load` looks for last."""
    folder().mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder() / f"{corpus.name}.npz", Y=corpus.Y)
    content = {part: getattr(corpus, part) for part in ("texts", "topics", "descriptions", "keywords")}
    making = folder() / f"{corpus.name}.part"
    making.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    making.rename(folder() / f"{corpus.name}.json")


# --- sources ---


def banking77() -> Corpus:
    """Questions of bank customers, the same share of every intent."""
    return select(banking77_all(), stratified(banking77_all().Y, SIZE), "banking77")


def banking60() -> Corpus:
    """Questions of the 60 largest intents, which the goals of the study were measured on."""
    corpus = banking77_all()
    topics = np.sort(np.argsort(-corpus.Y.sum(axis=0), kind="stable")[:LARGEST])
    rows = np.flatnonzero(corpus.Y[:, topics].any(axis=1))
    rows = rows[stratified(corpus.Y[np.ix_(rows, topics)], SIZE)]
    return select(corpus, rows, "banking60", topics)


@lru_cache(maxsize=1)
def banking77_all() -> Corpus:
    """All questions of bank customers; names with spaces for underscores."""
    return plain_names(short("banking77"), "banking77_all")


def cap_nyt() -> Corpus:
    """All front-page headlines with their topic codes."""
    return short("cap_nyt")


def agnews_test() -> Corpus:
    """A sample of news, title and first sentence."""
    corpus = short("agnews_test")
    return select(corpus, draw(len(corpus.texts), SIZE), corpus.name)


def newsgroups() -> Corpus:
    """A sample of 20 Newsgroups without headers, quotes and footers."""
    documents = archives.load_newsgroups(remove=("headers", "quotes", "footers"))
    corpus = from_documents(documents, "20newsgroups")
    return select(corpus, draw(len(corpus.texts), SIZE), corpus.name)


def reuters() -> Corpus:
    """A sample of long Reuters stories, with topics that have enough of them."""
    return sample_of_frequent_topics(from_documents(shared.reuters(), "reuters"), SIZE, REUTERS_LEAST)


def pubmed() -> Corpus:
    """A sample of PubMed abstracts with titles, with headings that have enough of them."""
    return sample_of_frequent_topics(from_documents(shared.abstracts(), "pubmed"), SIZE, PUBMED_LEAST)


def complaints() -> Corpus:
    """All consumer complaints with one of five products."""
    corpus = short("complaints_llm")
    return select(corpus, np.arange(len(corpus.texts)), "complaints")


def reuters_places() -> Corpus:
    """The stories of `reuters` with the countries that have enough of them as labels."""
    texts = set(load("reuters").texts)
    documents = archives.load_reuters(labels="places")
    sampled = documents.select(i for i, text in enumerate(documents.texts) if text in texts)
    return sample_of_frequent_topics(from_documents(sampled, "reuters_places"), SIZE, REUTERS_LEAST)


# Corpora of the study, short texts first; `banking77_all` serves the published measure only, and `banking60` the
# comparison with earlier figures.
SOURCES: dict[str, Callable[[], Corpus]] = {
    "banking77": banking77,
    "cap_nyt": cap_nyt,
    "agnews_test": agnews_test,
    "reuters": reuters,
    "20newsgroups": newsgroups,
    "pubmed": pubmed,
    "complaints": complaints,
    "reuters_places": reuters_places,
    "banking77_all": banking77_all,
    "banking60": banking60,
}
NAMES = tuple(SOURCES)[:8]


def short(name: str) -> Corpus:
    """A corpus of short texts in the folder of data."""
    place = Path(os.environ["TOPICSTEER_DATA"]) / "short"
    with gzip.open(place / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    rows = [row for row in rows if row["labels"]]
    about_path = place / f"{name}.topics.json"
    about = json.loads(about_path.read_text(encoding="utf-8")) if about_path.exists() else {}
    topics = sorted({topic for row in rows for topic in row["labels"]})
    return Corpus(
        name,
        texts=[row["text"] for row in rows],
        topics=topics,
        descriptions=[about.get(topic, {}).get("description", "") for topic in topics],
        keywords=[about.get(topic, {}).get("keywords", []) for topic in topics],
        Y=indicator([row["labels"] for row in rows], topics),
    )


def from_documents(documents: Documents, name: str) -> Corpus:
    """A corpus of documents with labels and nothing about the topics but their names."""
    topics = sorted({topic for labels in documents.labels for topic in labels})
    nothing: list[list[str]] = [[] for _ in topics]
    return Corpus(name, list(documents.texts), topics, [""] * len(topics), nothing, indicator(documents.labels, topics))


def plain_names(corpus: Corpus, name: str) -> Corpus:
    """The corpus with spaces for underscores in its topic names."""
    topics = [topic.replace("_", " ") for topic in corpus.topics]
    return Corpus(name, corpus.texts, topics, corpus.descriptions, corpus.keywords, corpus.Y)


def indicator(labels: list[list[str]], topics: list[str]) -> np.ndarray:
    """Labels as bool (documents × topics)."""
    columns = {topic: k for k, topic in enumerate(topics)}
    Y = np.zeros((len(labels), len(topics)), dtype=bool)
    for i, own in enumerate(labels):
        Y[i, [columns[topic] for topic in own]] = True
    return Y


# --- samples ---


def select(corpus: Corpus, rows: np.ndarray, name: str, topics: np.ndarray | None = None) -> Corpus:
    """Some documents of a corpus, and some of its topics."""
    kept = np.arange(len(corpus.topics)) if topics is None else topics
    return Corpus(
        name,
        texts=[corpus.texts[i] for i in rows],
        topics=[corpus.topics[k] for k in kept],
        descriptions=[corpus.descriptions[k] for k in kept],
        keywords=[corpus.keywords[k] for k in kept],
        Y=corpus.Y[np.ix_(rows, kept)],
    )


def draw(n: int, size: int) -> np.ndarray:
    """Rows of a random sample, always the same ones, in their order."""
    return np.sort(np.random.default_rng(SEED).choice(n, min(size, n), replace=False))


def stratified(Y: np.ndarray, size: int) -> np.ndarray:
    """Rows of a sample with the shares of topics of the whole; documents have one topic each."""
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(Y))
    order = order[np.argsort(Y[order].argmax(axis=1), kind="stable")]
    steps = np.linspace(0, len(Y), size, endpoint=False).astype(int)
    return np.sort(order[steps])


def sample_of_frequent_topics(corpus: Corpus, size: int, least: int) -> Corpus:
    """Sample documents so that every topic has enough of them in the sample.

    The rarest topic goes, with the documents that have no other, until the sample of the others has enough of each.
    """
    topics = np.arange(len(corpus.topics))
    while True:
        pool = np.flatnonzero(corpus.Y[:, topics].any(axis=1))
        rows = pool[draw(len(pool), size)]
        sizes = corpus.Y[np.ix_(rows, topics)].sum(axis=0)
        if sizes.min() >= least:
            return select(corpus, rows, corpus.name, topics)
        topics = np.delete(topics, sizes.argmin())
