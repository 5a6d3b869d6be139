"""Published methods as rivals, with the settings of their authors; each finds known and hidden topics at once.

A method whose package is not installed is left out: BERTopic needs `bertopic`, `hdbscan` and `umap-learn`, SetFit needs
`setfit` and torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from experiments.meaning.cells import Draw
from experiments.meaning.corpora import load
from experiments.meaning.minilm import model_folder
from experiments.meaning.rivals import Task, examples, unit
from topicsteer import TSNMF

# Program of the paper on TS-NMF.
PROGRAM: dict[str, Any] = {"solver": "mu", "init": "authors", "tol": "authors", "max_iter": 30}
# BERTopic's defaults, apart from the least cosine of a document and a name: hardly a document has .7.
REDUCTION: dict[str, Any] = {"n_neighbors": 15, "n_components": 5, "min_dist": 0.0, "metric": "cosine"}
CLUSTER = {"min_cluster_size": 10, "metric": "euclidean", "cluster_selection_method": "eom", "prediction_data": True}
LEAST_COSINE = 0.3
# Rounds of pairs, batch and rate of SetFit, and most known topics: with more it takes hours without a GPU.
SETFIT: dict[str, Any] = {"num_iterations": 20, "batch_size": 16, "body_learning_rate": 2e-5, "num_epochs": 1}
SETFIT_TOPICS = 10

# Scores of all documents: known topics, and as many free columns as there are, or None.
Both = tuple[np.ndarray, np.ndarray | None]


def nmf(given: Task) -> Both:
    """NMF without labels; labelled documents and names decide which column is which known topic."""
    wanted = given.n_known + len(given.drawn.hidden)
    model = TSNMF(**PROGRAM, n_components=wanted, threads=1, random_state=given.seed).fit(given.X)
    W, H = model.document_topics_ * model.components_.sum(axis=1), model.components_
    X, Y = examples(given, "X")
    likeness = Y.T.astype(float) @ unit(np.asarray(X @ unit(H).T))
    known, columns = linear_sum_assignment(-likeness)
    return W[:, columns[np.argsort(known)]], np.delete(W, columns, axis=1)


def ts_nmf(given: Task) -> Both:
    """TS-NMF from labels, with free topics for the hidden ones."""
    labels: list[list[str] | None] = [None] * given.X.shape[0]
    for i, own in zip(given.drawn.rows, given.drawn.labels, strict=True):
        labels[i] = [str(k) for k in np.flatnonzero(own)]
    wanted = given.n_known + len(given.drawn.hidden)
    model = TSNMF(**PROGRAM, n_components=wanted, threads=1, random_state=given.seed).fit(given.X, labels)
    W = model.document_topics_ * model.components_.sum(axis=1)
    places = {str(name): column for column, name in enumerate(model.topic_names_)}
    known = [places.pop(str(k)) for k in range(given.n_known)]
    return W[:, known], W[:, sorted(places.values())]


def bertopic(given: Task) -> Both:
    """BERTopic whose reduction knows the labels; a cluster counts for the topics of its labelled documents."""
    first = np.full(given.X.shape[0], -1)
    first[given.drawn.rows] = given.drawn.labels.argmax(axis=1)
    model = make_bertopic(given, calculate_probabilities=True)
    topics, found = model.fit_transform(load(given.name).texts, embeddings=np.asarray(given.X), y=first.tolist())
    P = np.asarray(found, dtype=np.float64).reshape(len(topics), -1)
    members = np.eye(P.shape[1] + 1)[np.asarray(topics)][:, :-1]  # outliers, −1, are in no column
    labelled = members[given.drawn.rows].T @ given.drawn.labels
    share = labelled.sum(axis=1) / np.maximum(members.sum(axis=0), 1)
    free = np.argsort(share, kind="stable")[: len(given.drawn.hidden)]
    return P @ (labelled / np.maximum(labelled.sum(axis=1, keepdims=True), 1)), P[:, free]


def zero_shot(given: Task) -> Both:
    """BERTopic with the names as zero-shot topics: assigned documents first, the others by their cosine."""
    names, texts = [f"name {k}" for k in range(given.n_known)], load(given.name).texts
    vectors = dict(zip(names, np.asarray(given.names), strict=True))
    own = {"zeroshot_topic_list": names, "zeroshot_min_similarity": LEAST_COSINE, "embedding_model": lookup(vectors)}
    model = make_bertopic(given, **own)
    topics, _ = model.fit_transform(texts, embeddings=np.asarray(given.X))
    places = {topic: names.index(label) for topic, label in model.topic_labels_.items() if label in vectors}
    scores = np.asarray(given.X) @ np.asarray(given.names).T
    for i, topic in enumerate(topics):
        if topic in places:
            scores[i, places[topic]] += 2
    return scores, None


def make_bertopic(given: Task, **options: Any) -> Any:
    """BERTopic with its defaults and a seed."""
    from bertopic import BERTopic
    from hdbscan import HDBSCAN
    from umap import UMAP

    reduction = UMAP(**REDUCTION, random_state=given.seed, n_jobs=1)
    return BERTopic(umap_model=reduction, hdbscan_model=HDBSCAN(**CLUSTER), verbose=False, **options)


def lookup(vectors: dict[str, np.ndarray]) -> Any:
    """An embedder of BERTopic that knows a few texts."""
    from bertopic.backend import BaseEmbedder

    class Known(BaseEmbedder):
        """The vectors of names."""

        def embed(self, documents: list[str], verbose: bool = False) -> np.ndarray:
            """Vectors of some names."""
            return np.array([vectors[text] for text in documents])

    return Known()


def setfit(given: Task) -> Both:
    """SetFit: MiniLM tuned on pairs of labelled documents, then logistic regression."""
    os.environ.update(HF_HUB_OFFLINE="1", WANDB_DISABLED="true", TOKENIZERS_PARALLELISM="false")
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    texts = load(given.name).texts
    labelled = {
        "text": [texts[i] for i in given.drawn.rows],
        "label": given.drawn.labels.argmax(axis=1).tolist(),
    }
    model = SetFitModel.from_pretrained(str(model_folder()))
    model.model_body.max_seq_length = 128
    options = TrainingArguments(**SETFIT, seed=given.seed, save_strategy="no", report_to="none")
    Trainer(model=model, args=options, train_dataset=Dataset.from_dict(labelled)).train()
    found = np.asarray(model.predict_proba(texts, as_numpy=True))
    scores = np.zeros((len(texts), given.n_known))
    scores[:, np.asarray(model.model_head.classes_, dtype=int)] = found
    return scores, None


@dataclass(frozen=True)
class Method:
    """A method, the embeddings it may have, whether it needs labels or names, and its packages."""

    run: Callable[[Task], Both]
    embeddings: tuple[str, ...]
    labels: bool = False
    names: bool = False
    packages: tuple[str, ...] = ()

    def suits(self, drawn: Draw, embedding: str) -> bool:
        """Whether a cell has the labels, names and embeddings of the method, and its packages are installed."""
        found = embedding in self.embeddings and not (self.names and not drawn.names)
        return found and not (self.labels and not len(drawn.rows)) and all(map(find_spec, self.packages))


TOPICS = ("bertopic", "hdbscan", "umap")
PUBLISHED = {
    "NMF": Method(nmf, ("off",)),
    "TS-NMF": Method(ts_nmf, ("off",), labels=True),
    "BERTopic, semi-supervised": Method(bertopic, ("builtin", "minilm"), labels=True, packages=TOPICS),
    "BERTopic, zero-shot": Method(zero_shot, ("builtin", "minilm"), names=True, packages=TOPICS),
    "SetFit": Method(setfit, ("minilm",), labels=True, packages=("setfit", "torch")),
}


def methods(drawn: Draw, embedding: str) -> dict[str, Callable[[Task], Both]]:
    """Published methods of a cell."""
    found = {name: method.run for name, method in PUBLISHED.items() if method.suits(drawn, embedding)}
    if len(drawn.hidden) or len(drawn.known) > SETFIT_TOPICS or (drawn.labels.sum(axis=1) > 1).any():
        found.pop("SetFit", None)
    return found
