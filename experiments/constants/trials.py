"""Constants of the guide, their halved and doubled values, and the AP of a guide with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unittest import mock

import numpy as np

from experiments.meaning import package
from experiments.meaning.cells import Draw, draw, hidden_ap, macro_ap
from experiments.meaning.corpora import Corpus, load
from experiments.shared import internals

CORPORA = ("banking77", "cap_nyt", "reuters", "20newsgroups")
CELLS = ("names", "names+5", "hidden10")
# Constants of groups: cells with nothing hidden do not read them.
OPEN_ONLY = (
    *("OPEN_SHARE", "LABELLED_WEIGHT", "OPEN_RIDGE", "GROUPS", "DOCUMENTS_PER_GROUP", "GROUP_SHARE", "KAPPA"),
    *("STARTS", "GROUP_STEPS", "GROUP_ROUNDS", "CORE", "LEAST_CORE"),
)
# Constants for few labels are tried with one label per topic, too.
FEW_CELL = "names+1"
FEW_ONLY = ("", "LENGTH", "MIN_LABELS", "NAME_ROUNDS", "KEPT_SPREAD")
# Values between 0 and 1 that are shares of a whole, and stay below 1.
SHARES_OF_A_WHOLE = ("SHARES", "KEPT_SPREAD", "OPEN_SHARE", "GROUP_SHARE")
# Least values that make sense.
LEAST = {"FOLDS": 2}
CHANGES = ("halved", "doubled")


@dataclass(frozen=True)
class Constant:
    """A constant of the module with all tuned numbers, by its name."""

    name: str

    @property
    def value(self) -> Any:
        """The value in the module."""
        return getattr(internals.constants, self.name)

    def changed(self, change: str) -> Any:
        """The value halved or doubled."""
        return changed(self.name, self.value, change)

    @contextmanager
    def replaced(self, change: str) -> Iterator[None]:
        """Replace the constant in its module, where the guide reads it."""
        with mock.patch.object(internals.constants, self.name, self.changed(change)):
            yield


def changed(name: str, value: Any, change: str) -> Any:
    """A value halved or doubled."""
    if isinstance(value, tuple):
        return tuple(changed_number(name, number, change) for number in value)
    if isinstance(value, np.ndarray):
        return np.array([changed_number(name, number, change) for number in value.tolist()])
    return changed_number(name, value, change)


def changed_number(name: str, value: float, change: str) -> float:
    """A number halved or doubled; a share of a whole stays below 1, and a count stays whole."""
    found = value / 2 if change == "halved" else 2 * value
    if name in SHARES_OF_A_WHOLE and found >= 1:
        found = 1 - (1 - value) / 2
    return max(round(found), LEAST.get(name, 1)) if isinstance(value, int) else found


def constants() -> list[Constant]:
    """All tuned numbers."""
    return [Constant(name) for name in vars(internals.constants) if name.isupper()]


@dataclass(frozen=True, eq=False)
class Cell:
    """A draw of labels, ready for guides."""

    corpus: Corpus
    drawn: Draw
    task: internals.GuideTask
    features: Any


@lru_cache(maxsize=len(CORPORA) * (len(CELLS) + 1))
def cell_of(name: str, cell: str, seed: int) -> Cell:
    """A cell with built-in meaning."""
    corpus = load(name)
    drawn = draw(corpus, cell, seed)
    given = package.labels(corpus, drawn, package.topic_names(corpus, drawn))
    task = internals.GuideTask(corpus.texts, given, free_topics=len(drawn.hidden), **package.words(corpus, drawn))
    return Cell(corpus, drawn, task, task.features())


def measure(name: str, cell: str, seed: int, constant: Constant | None = None, change: str = "") -> dict[str, Any]:
    """AP of known and hidden topics by a guide, with a changed constant or without."""
    world = cell_of(name, cell, seed)
    with nullcontext() if constant is None else constant.replaced(change):
        known, free = world.task.memberships(world.features)
    hidden = hidden_ap(world.corpus, world.drawn, free) if len(world.drawn.hidden) else None
    return {"known": macro_ap(world.corpus, world.drawn, known), "hidden": hidden}


Row = dict[str, Any]


def plan(seeds: list[int]) -> list[Row]:
    """All trials: the constants as they are, then each halved and doubled."""
    changes = [("", "")] + [(constant.name, change) for constant in constants() for change in CHANGES]
    return [
        {"constant": constant, "change": change, "corpus": corpus, "cell": cell, "seed": seed}
        for seed in seeds
        for constant, change in changes
        for corpus in CORPORA
        for cell in cells_of(constant)
    ]


def cells_of(name: str) -> tuple[str, ...]:
    """Cells in which a constant is tried."""
    if name in OPEN_ONLY:
        return ("hidden10",)
    return (*CELLS, FEW_CELL) if name in FEW_ONLY else CELLS


def key_of(row: Row) -> tuple[Any, ...]:
    """What identifies a trial."""
    return tuple(row[part] for part in ("constant", "change", "corpus", "cell", "seed"))


def perform(row: Row) -> Row:
    """Result of a trial."""
    constant = {one.name: one for one in constants()}.get(row["constant"])
    found = measure(row["corpus"], row["cell"], row["seed"], constant, row["change"])
    numbers = {name: None if value is None else round(value, 4) for name, value in found.items()}
    if constant is None:
        return numbers
    return {"value": shown(constant.value), "changed": shown(constant.changed(row["change"]))} | numbers


def shown(value: Any) -> str:
    """Numbers as text."""
    if isinstance(value, tuple | np.ndarray):
        return ", ".join(f"{number:g}" for number in value)
    return f"{value:g}"
