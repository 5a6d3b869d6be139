"""The package in a cell: one fit through `TopicModel`, and its results."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from experiments.meaning.cells import CELLS, CLOSED, HIDDEN, Draw
from experiments.meaning.corpora import Corpus, load
from experiments.meaning.vectors import Lookup, readable
from topicsteer import TopicModel


@dataclass(frozen=True)
class Variant:
    """Cells of a variant, free topics that are asked for (from the number of hidden topics), and ``world``."""

    cells: tuple[str, ...]
    free: Callable[[int], int]
    world: str | None = None


VARIANTS = {
    "": Variant(CELLS, lambda hidden: hidden),
    "half": Variant(HIDDEN, lambda hidden: round(hidden / 2)),
    "double": Variant(HIDDEN, lambda hidden: 2 * hidden),
    "ten": Variant(CLOSED, lambda hidden: 10),
    "closed": Variant(CLOSED, lambda hidden: 0, "closed"),
}


@dataclass(frozen=True, eq=False)
class Found:
    """Memberships of all documents: known topics, free topics and P(none), decisions (bool), and seconds of the fit."""

    known: np.ndarray
    free: np.ndarray
    none: np.ndarray
    decided: np.ndarray
    seconds: float


def fit_ours(
    corpus: Corpus, drawn: Draw, embedding: str, seed: int, free: int, threads: int = 1, world: str | None = None
) -> Found:
    """Fit the installed version: built in is its default, and an encoder takes the place of the built-in vectors."""
    given = encoder(corpus.name, embedding) if embedding == "minilm" else None
    model = TopicModel(
        free, world=world, random_state=seed, threads=threads, **words(corpus, drawn), **vectors(embedding)
    )
    names = topic_names(corpus, drawn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names without a word in the corpus, and of topics without labels
        began = time.perf_counter()
        model.fit(corpus.texts, labels(corpus, drawn, names), embeddings=given)
        seconds = time.perf_counter() - began
        table = model.memberships()
        decided = indicator(model.predict(corpus.texts), names)
    values = np.column_stack([np.asarray(table[name], dtype=np.float64) for name in list(table.columns)[1:]])
    values = np.nan_to_num(values)
    n_known = len(names)
    return Found(values[:, :n_known], values[:, n_known:-1], values[:, -1], decided, seconds)


def vectors(embedding: str) -> dict[str, Any]:
    """The argument of `TopicModel` about built-in vectors."""
    return {"embeddings": None} if embedding == "off" else {}


def words(corpus: Corpus, drawn: Draw) -> dict[str, Any]:
    """Arguments of `TopicModel` about the known topics."""
    names = topic_names(corpus, drawn)
    return {"topics": names} | (about_topics(corpus, drawn, names) if drawn.described else {})


def topic_names(corpus: Corpus, drawn: Draw) -> list[str]:
    """Names of the known topics as words; numbers where the names may not be read."""
    if drawn.names:
        return [readable(corpus.topics[k]) for k in drawn.known]
    return [str(k) for k in drawn.known]


def about_topics(corpus: Corpus, drawn: Draw, names: list[str]) -> dict[str, dict[str, Any]]:
    """Descriptions and keywords of the known topics by name."""
    places = list(zip(names, drawn.known, strict=True))
    return {
        "descriptions": {name: corpus.descriptions[k] for name, k in places if corpus.descriptions[k]},
        "keywords": {name: corpus.keywords[k] for name, k in places if corpus.keywords[k]},
    }


def labels(corpus: Corpus, drawn: Draw, names: list[str]) -> list[list[str] | None]:
    """One list of names per labelled document, None for the others."""
    given: list[list[str] | None] = [None] * len(corpus.texts)
    for i, own in zip(drawn.rows, drawn.labels, strict=True):
        given[i] = [names[k] for k in np.flatnonzero(own)]
    return given


def indicator(decisions: list[list[str]], names: list[str]) -> np.ndarray:
    """Decisions as bool (n_documents, n_known)."""
    places = {name: k for k, name in enumerate(names)}
    found = np.zeros((len(decisions), len(names)), dtype=bool)
    for i, own in enumerate(decisions):
        found[i, [places[name] for name in own]] = True
    return found


@lru_cache(maxsize=2)
def encoder(name: str, embedding: str) -> Lookup:
    """The kept vectors of a corpus as an encoder."""
    return Lookup(load(name), embedding)
