"""The main job on the built-in corpus: a few labels in, named topics out."""

import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.feature_extraction.text import TfidfVectorizer

from topicsteer import TSNMF
from topicsteer.corpora import load_docstrings

console = Console()
with console.status("reading the docstrings of the installed scientific packages"):
    documents = load_docstrings()
    vectoriser = TfidfVectorizer(
        stop_words="english", token_pattern=r"[^\W\d_]{3,}", max_df=0.3, min_df=5, sublinear_tf=True, dtype=np.float32
    )
    X = vectoriser.fit_transform(documents.texts)
terms = vectoriser.get_feature_names_out()

rng = np.random.default_rng(0)
shown = rng.random(len(documents)) < 0.1
y = [labels if seen else [] for labels, seen in zip(documents.labels, shown, strict=True)]
console.print(
    f"{len(documents):,} documents, {X.shape[1]:,} terms. {shown.sum()} documents keep their labels "
    f"({len(documents.topic_names)} areas); the others are to follow, and 3 free topics take the rest."
)

model = TSNMF(len(documents.topic_names) + 3, topics=documents.topic_names, random_state=0)
began = time.perf_counter()
with console.status("fitting") as status:
    model.fit(X, y, callback=lambda i, objective, s: status.update(f"iteration {i}, objective {objective:.0f}"))
console.print(f"Fitted in {time.perf_counter() - began:.1f} s, {model.n_iter_} iterations.\n")

table = Table("topic", "labelled", "weight", "terms that tell it apart", title="Topics")
W, H = model.document_topics_, model.components_
weight = W.sum(axis=0) * H.sum(axis=1)
distinct = H / H.sum(axis=1, keepdims=True)
distinct = distinct * np.log((distinct + 1e-12) / (distinct.mean(axis=0) + 1e-12))
for k, name in enumerate(model.topic_names_):
    best = ", ".join(terms[np.argsort(-distinct[k])[:6]])
    count = str(sum(name in labels for labels in y)) if k < model.n_known_ else "free"
    table.add_row(str(name), count, f"{weight[k] / weight.sum():.1%}", best)
console.print(table)

obeyed = all((W[i, : model.n_known_] > 0).sum() <= len(y[i]) for i in np.flatnonzero(shown))
strength = W[:, : model.n_known_] * H.sum(axis=1)[: model.n_known_]
guess = model.topic_names_[strength.argmax(axis=1)]
hidden = np.flatnonzero(~shown)
right = np.mean([guess[i] in documents.labels[i] for i in hidden])
console.print(f"\nLabelled documents contain only their own topics: {obeyed}.")
console.print(f"Of the {len(hidden):,} documents without a label, {right:.0%} have a true area as strongest topic.")
