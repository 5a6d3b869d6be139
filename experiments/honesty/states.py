"""Twelve states of a user's labels, from none at all to random ones with groups and a coder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from experiments.honesty.corpora import World
from topicsteer import TopicModel

# Chance that a coder gives the right answer, otherwise that of another document.
RIGHT = 0.8


@dataclass(frozen=True, eq=False)
class Given:
    """Labels of some rows with their origin, and further columns or answers."""

    labels: dict[int, list[str]] = field(default_factory=dict)
    chosen: dict[int, str] = field(default_factory=dict)
    named: bool = True
    group: list[str] | None = None
    answers: list[list[str]] | None = None
    adopts: bool = False


def fit(world: World, given: Given, seed: int) -> TopicModel:
    """A model of the user's labels; the table has the column ``chosen`` where somebody wrote it."""
    n = len(world.texts)
    columns: dict[str, Any] = {"id": [f"d{row}" for row in range(n)], "text": world.texts}
    if given.labels:
        columns["label"] = ["; ".join(given.labels.get(row, [])) for row in range(n)]
    if given.chosen:
        columns["chosen"] = [given.chosen.get(row, "") for row in range(n)]
    if given.group:
        columns["office"] = given.group
    model = TopicModel(topics=world.topics if given.named else None, random_state=seed, threads=1)
    return model.fit(table(columns), "label" if given.labels else False, text="text", id="id")


def table(columns: dict[str, Any]) -> Any:
    """A table of columns."""
    import polars as pl

    return pl.DataFrame(columns)


def nothing(world: World, rng: np.random.Generator) -> Given:
    """No label and no name."""
    return Given(named=False)


def names(world: World, rng: np.random.Generator) -> Given:
    """Names alone."""
    return Given()


def by_hand(n: int) -> Callable[[World, np.random.Generator], Given]:
    """Labels that a person looked for: the same number per topic, and none of them "(none)"."""

    def given(world: World, rng: np.random.Generator) -> Given:
        rows: list[int] = []
        each = -(-n // world.Y.shape[1])
        for column in world.Y.T:
            own = np.setdiff1d(np.flatnonzero(column), rows)
            rows += rng.permutation(own)[:each].tolist()
        return Given({row: world.labels(row) for row in rows[:n]})

    return given


def at_random(n: int) -> Callable[[World, np.random.Generator], Given]:
    """Labels of random documents, recorded as random."""

    def given(world: World, rng: np.random.Generator) -> Given:
        rows = rng.permutation(len(world.texts))[:n].tolist()
        return Given({row: world.labels(row) for row in rows}, dict.fromkeys(rows, "random"))

    return given


def half_suggested(world: World, rng: np.random.Generator) -> Given:
    """60 random labels, followed by 60 that the model suggested."""
    first = at_random(60)(world, rng)
    suggested = fit(world, first, 0).labels.suggest(60)
    labels, chosen = dict(first.labels), dict(first.chosen)
    for name, origin in suggested.select("id", "chosen").rows():
        row = int(name[1:])
        labels[row], chosen[row] = world.labels(row), origin
    return replace(first, labels=labels, chosen=chosen)


def adopted(world: World, rng: np.random.Generator) -> Given:
    """150 random labels; then the free topic that fits a topic best which nobody named is adopted."""
    return replace(at_random(150)(world, rng), adopts=True)


def two_groups(world: World, rng: np.random.Generator) -> Given:
    """150 random labels in two offices; the first topic is three times as frequent in one of them."""
    north = rng.random(len(world.texts)) < np.where(world.Y[:, 0], 0.75, 0.25)
    return replace(at_random(150)(world, rng), group=np.where(north, "north", "south").tolist())


def coder(world: World, rng: np.random.Generator) -> Given:
    """150 random labels, and a program that has coded all documents with mistakes."""
    n = len(world.texts)
    seen = np.where(rng.random(n) < RIGHT, np.arange(n), rng.integers(0, n, n))
    return replace(at_random(150)(world, rng), answers=[world.labels(int(row)) for row in seen])


STATES: dict[str, Callable[[World, np.random.Generator], Given]] = {
    "no label": nothing,
    "names": names,
    "20 by hand": by_hand(20),
    "60 by hand": by_hand(60),
    "200 by hand": by_hand(200),
    "50 at random": at_random(50),
    "150 at random": at_random(150),
    "300 at random": at_random(300),
    "60 at random, 60 suggested": half_suggested,
    "150 at random, one adopted": adopted,
    "150 at random, two groups": two_groups,
    "150 at random, a coder": coder,
}


def adopt(world: World, model: TopicModel) -> World:
    """Adopt the free topic that ranks the documents of an unnamed topic best; the world then has this topic too."""
    free = model.state_.free_names
    table = model.memberships()
    scores = np.column_stack([np.asarray(table[name], dtype=float) for name in free])
    large = np.flatnonzero(world.others.sum(axis=0) >= 10)
    found = [[average_precision_score(world.others[:, k], s) for s in scores.T] for k in large]
    topic, column = np.unravel_index(np.argmax(found), np.shape(found))
    name = "the adopted topic"
    model.edit.adopt(free[int(column)], name)
    own = world.others[:, [large[int(topic)]]]
    return replace(world, topics=[*world.topics, name], Y=np.hstack([world.Y, own]))
