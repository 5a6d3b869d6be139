"""Our method in an open world: one fit, read in two ways."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from experiments.openworld.measures import Found
from experiments.openworld.worlds import World
from experiments.shared.corpora import OPENWORLD
from topicsteer import TopicModel


def memberships(world: World, columns: int, seed: int) -> Found:
    """Memberships of known and free topics, the probability of no known topic, and predictions."""
    model = fitted(world, columns, seed)
    table = values(model.memberships())
    known = len(world.known)
    belongs, free = table[:, :known], table[:, known:-1]  # small free topics are left out, so there may be fewer
    return Found(
        belongs,
        free,
        given(model.state_.judge(table).decisions(model.state_.names), world.names),
        belongs,
        table[:, -1],
    )


def weights(world: World, columns: int, seed: int) -> Found:
    """Topic shares of the factorisation."""
    table = values(fitted(world, columns, seed).document_topics)
    known = len(world.known)
    return Found(table[:, :known], table[:, known:])


@lru_cache(maxsize=1)
def fitted(world: World, columns: int, seed: int) -> TopicModel:
    """The model; cached, because both readings follow each other."""
    model = TopicModel(
        columns,
        topics=world.names,
        complete=world.form == "complete",
        world="open" if world.declared else None,
        random_state=seed,
        threads=2,
    )
    labels: Any = world.indicator() if world.form == "yes-only" else world.lists()
    return model.fit(texts(world.corpus.name), labels)


@lru_cache(maxsize=1)
def texts(name: str) -> list[str]:
    """Texts of a corpus."""
    return list(OPENWORLD[name]().texts)


def values(table: Any) -> np.ndarray:
    """A table of a model without the column of ids."""
    return np.column_stack([np.asarray(table[name]) for name in list(table.columns)[1:]])


def given(decided: list[list[str]], names: list[str]) -> np.ndarray:
    """Decided topics as bool (n_documents, n_known)."""
    places = {name: k for k, name in enumerate(names)}
    found = np.zeros((len(decided), len(names)), dtype=bool)
    for i, topics in enumerate(decided):
        found[i, [places[name] for name in topics]] = True
    return found
