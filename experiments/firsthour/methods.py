"""Methods that start from words: from a start and a seed to a score for each document and topic."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.firsthour.words import KEYWORDS, Start, distinctive, embedded_phrases, embedded_texts, spoken, texts
from experiments.openworld import worlds
from experiments.openworld.measures import Found, judge
from experiments.openworld.ours import given, values
from experiments.shared import encoder, internals
from experiments.shared.corpora import STUDIES, Corpus, load
from experiments.shared.internals import baselines, supervise
from experiments.shared.scoring import precision_of, precision_on
from topicsteer import TopicModel

# Environment variable with a checkout of an earlier version.
EARLIER = "TOPICSTEER_EARLIER"


def ours(start: Start, seed: int) -> np.ndarray:
    """The guide of topicsteer, from words and labels."""
    return guided(start, seed, start.texts)


def labels_alone(start: Start, seed: int) -> np.ndarray:
    """The guide of topicsteer from labels alone, without names."""
    return guided(start, seed, None)


def guided(start: Start, seed: int, names: Any) -> np.ndarray:
    """Probabilities of the guide."""
    X = start.corpus.X
    guide = internals.learn_guide(
        X, start.supervision, names=names, directions=directions(start.corpus.name), seed=seed
    )
    if guide is None:  # no name occurs in the corpus
        return np.zeros((X.shape[0], len(start.corpus.topics)))
    return np.asarray(guide.probabilities(X, 1))


@lru_cache(maxsize=2)
def directions(name: str) -> Any:
    """The latent semantics of a corpus, which need no labels."""
    return internals.latent_directions(load(name, "firsthour").X)


def cosine(start: Start, seed: int) -> np.ndarray:
    """Cosine of a document and all words of a topic; labels are not used."""
    return np.asarray((start.corpus.X @ joined(start).T).toarray())


def joined(start: Start) -> sp.csr_array:
    """All words of each topic as one row of unit length."""
    owner = start.texts.topics == np.arange(len(start.corpus.topics))[:, None]
    rows = sp.csr_array(sp.csr_array(owner.astype(np.float64)) @ start.texts.terms)
    length = np.sqrt(np.asarray(rows.power(2).sum(axis=1)).ravel())
    return sp.csr_array(rows / np.maximum(length, 1e-12)[:, None])


def words_as_documents(start: Start, seed: int) -> np.ndarray:
    """Logistic regression on labelled documents and words as further documents."""
    corpus, n = start.corpus, start.corpus.X.shape[0]
    X = sp.csr_array(sp.vstack([corpus.X, start.texts.terms.astype(corpus.X.dtype)], format="csr"))
    labels = {n + i: [corpus.topics[k]] for i, k in enumerate(start.texts.topics)}
    truth = corpus.truth
    labels |= {
        int(i): [corpus.topics[k] for k in truth.indices[truth.indptr[i] : truth.indptr[i + 1]]] for i in start.rows
    }
    supervision = supervise(labels, X.shape[0], topics=corpus.topics)
    return np.asarray(baselines.logistic_regression(X, supervision, np.arange(n)))


def corex(start: Start, seed: int, strength: float = 3.0) -> np.ndarray:
    """CorEx with the words as anchors; labels are not used."""
    from corextopic.corextopic import Corex

    present = sp.csr_matrix(start.corpus.counts > 0, dtype=np.float64)
    anchors = [words.tolist() for words in anchor_words(start)]
    model = Corex(n_hidden=len(anchors), max_iter=100, seed=seed)
    model.fit(present, anchors=anchors, anchor_strength=strength)
    return np.asarray(model.log_p_y_given_x)


def seeded_lda(start: Start, seed: int, weight: float = 10.0) -> np.ndarray:
    """LDA of tomotopy, 100 iterations, with a larger prior of the words in their topic; labels are not used."""
    import tomotopy

    corpus, anchors = start.corpus, anchor_words(start)
    model = tomotopy.LDAModel(k=len(anchors), seed=seed + 1)
    filled = []
    for i in range(corpus.counts.shape[0]):
        row = slice(*corpus.counts.indptr[i : i + 2])
        words = np.repeat(corpus.counts.indices[row], corpus.counts.data[row].astype(int))
        if len(words):
            model.add_doc([str(j) for j in words])
            filled.append(i)
    for k, words in enumerate(anchors):
        for j in words:
            model.set_word_prior(str(j), [weight if other == k else 0.01 for other in range(len(anchors))])
    model.train(100, workers=1)
    scores = np.zeros((corpus.X.shape[0], len(anchors)))
    scores[filled] = [document.get_topic_dist() for document in model.docs]
    return scores


def anchor_words(start: Start) -> list[np.ndarray]:
    """Columns of the words of each topic."""
    rows = joined(start)
    return [rows.indices[rows.indptr[k] : rows.indptr[k + 1]] for k in range(rows.shape[0])]


def embedded_cosine(start: Start, seed: int) -> np.ndarray:
    """Cosine of the embeddings of a document and of all words of a topic; labels are not used."""
    phrases = embedded_phrases(start.corpus.name, start.keywords)
    return np.asarray(encoder.embeddings(start.corpus.name, "firsthour") @ phrases.T)


def ours_embedded(start: Start, seed: int) -> np.ndarray:
    """The guide of topicsteer with embeddings of documents, names and keywords."""
    corpus, E = start.corpus, encoder.embeddings(start.corpus.name, "firsthour")
    names = embedded_texts(corpus.name, start.keywords)
    guide = internals.learn_guide(
        corpus.X, start.supervision, names=names, embeddings=E, directions=directions(corpus.name), seed=seed
    )
    return np.asarray(guide.probabilities(corpus.X, 1, embeddings=E))


def earlier_version(start: Start, seed: int) -> np.ndarray:
    """The memberships of an earlier version, from names and labels, in a process of its own."""
    corpus, checkout = start.corpus, Path(os.environ[EARLIER])
    names = [spoken(topic) for topic in corpus.topics]
    labels = {int(i): [names[k] for k in np.flatnonzero(corpus.truth[[i]].toarray()[0])] for i in start.rows}
    job = {"texts": documents(corpus.name), "labels": labels, "topics": names, "seed": seed}
    script = Path(__file__).with_name("earlier.py")
    with tempfile.TemporaryDirectory() as folder:
        task, out = Path(folder, "job.json"), Path(folder, "memberships.npy")
        task.write_text(json.dumps(job), encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
        subprocess.run([sys.executable, "-P", str(script), str(task), str(out)], env=environment, check=True)
        return np.asarray(np.load(out))


def wrong_label(corpus: Corpus, texts: Any, topic: int, seed: int) -> tuple[float, float]:
    """Average precision of a topic from words alone, and with one wrong label on top."""
    rng = np.random.default_rng([seed, topic])
    column = corpus.truth[:, [topic]].toarray().ravel() > 0
    wrong = int(rng.choice(np.flatnonzero(~column)))
    found = []
    for labels in ({}, {wrong: [corpus.topics[topic]]}):
        supervision = supervise(labels, corpus.X.shape[0], topics=corpus.topics)
        guide = internals.learn_guide(corpus.X, supervision, names=texts, directions=directions(corpus.name), seed=seed)
        found.append(precision_of(column, guide.probabilities(corpus.X, 1)[:, topic]))
    return found[0], found[1]


def half_of_the_names(name: str, words: str, labels: int, seed: int) -> dict[str, float]:
    """Measures of a declared open world: half of the topics have a name, and the others are hidden.

    ``words`` is the kind of words, and ``labels`` the number of labelled documents per known topic. "cosine AP" is the
    known AP of the cosine with the same words.
    """
    corpus = load(name, "firsthour")
    world = worlds.draw(corpus, 0.5, f"k{labels}", seed)
    names = [spoken(corpus.topics[k]) for k in world.known]
    own = distinctive(corpus, KEYWORDS[words])
    keywords = {name: own[k] for name, k in zip(names, world.known, strict=True)}
    model = TopicModel(len(world.hidden), topics=names, keywords=keywords, world="open", random_state=seed, threads=1)
    table = values(model.fit(documents(name), said(world, names)).memberships())
    belongs, free = table[:, : len(names)], table[:, len(names) : -1]
    found = Found(
        belongs, free, given(model.state_.judge(table).decisions(model.state_.names), names), belongs, table[:, -1]
    )
    start = Start(corpus, texts(name, KEYWORDS[words]), world.rows)
    ranked = precision_on(
        world.unlabelled, corpus.truth[:, world.known].toarray() > 0, cosine(start, 0)[:, world.known]
    )
    return judge(world, found) | {"cosine AP": ranked["macro"]}


def said(world: worlds.World, names: list[str]) -> list[list[str]]:
    """One list of topics per document, under the names that a user would write."""
    spoken_name = dict(zip(world.names, names, strict=True))
    return [[spoken_name[name] for name in own] for own in world.lists()]


@lru_cache(maxsize=1)
def documents(name: str) -> list[str]:
    """Texts of a corpus."""
    return list(STUDIES["firsthour"][name]().texts)
