"""Probabilities of a tree of topics: the levels above the leaves.

Each level is a flat guide for its own topics (see `topicsteer.guidance.tree`). `combine_cuts` makes one consistent
probability per topic of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from topicsteer.guidance.calibration import FIXED_CALIBRATION, Calibration
from topicsteer.guidance.rounds import Rounds
from topicsteer.labels.forest import Forest
from topicsteer.system.types import Array

# Smallest probability in log odds.
LEAST = 1e-6
# Part of a parent's change of log odds that its children share.
SHARED = 0.5
# Arrays of rounds with one number per topic.
BY_TOPIC = ("scale", "rarity", "shift", "second_shift")
# Arrays of rounds with one row per level, and the lengths of these rows.
BY_LEVEL = {"calibration": 6, "mix": 4}


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a tree of topics that are above the base.

    Parameters
    ----------
    parents : array of int (n_known,)
        Parent of each known topic, -1 without one.
    rounds : tuple of Rounds
        Guides of the cuts of the tree, from the top. The guide of the ``base`` cut is not among them.
    base : int
        Number of the cut with the guide that these levels belong to, usually the last.
    left_out : array (n_rows, number of topics of all rounds)
        Probabilities of labelled documents while their own labels are hidden.
    """

    parents: NDArray[np.int64]
    rounds: tuple[Rounds, ...]
    base: int
    left_out: Array

    @cached_property
    def forest(self) -> Forest:
        """The tree of the topics."""
        return Forest(tuple(self.parents.tolist()))

    @property
    def width(self) -> int:
        """Number of columns of the basis."""
        return sum(own.width for own in self.rounds)

    def odds(self, D: Array, products: Array) -> list[Array]:
        """Log odds of the covered topics of each level, from features and products with terms."""
        ends = np.cumsum([own.width for own in self.rounds])[:-1]
        parts = np.split(products, ends, axis=1)
        return [own.odds(D, part) for own, part in zip(self.rounds, parts, strict=True)]

    def covers(self, base: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each known topic has a probability of its own or from topics below it; ``base``: by the base."""
        found = base.copy()
        for own in self.rounds:
            found[own.covered] = True
        return np.asarray(self.forest.with_ancestors(found[None])[0])

    def combined(self, base: Array, covered: NDArray[np.int64], above: Sequence[Array]) -> NDArray[np.float32]:
        """Probability of each known topic.

        Parameters
        ----------
        base : array (n_documents, n_known or more)
            Probabilities of the topics of the base; groups of an open world follow.
        covered : array of int
            Topics that the base covers.
        above : sequence of arrays (n_documents, covered topics of the level)
            Probabilities of each level.
        """
        given, known = [], []
        levels = zip(self.rounds, above, strict=True)
        for number, cut in enumerate(self.forest.cuts):
            topics = list(cut)
            numbers, P = (covered, base[:, covered]) if number == self.base else _of_level(*next(levels))
            every = np.zeros_like(base)
            every[:, numbers] = P
            given.append(every[:, topics])
            known.append(np.isin(topics, numbers))
        found = np.array(base, dtype=np.float32)
        found[:, : len(self.parents)] = combine_cuts(self.forest, given, known)
        return found

    def left_out_probabilities(self, base: Array, covered: NDArray[np.int64]) -> Array:
        """As :meth:`combined`, for the labelled documents without their own labels."""
        ends = np.cumsum([len(own.covered) for own in self.rounds])[:-1]
        own = np.split(self.left_out, ends, axis=1)
        found = self.combined(np.nan_to_num(base), covered, [np.nan_to_num(part) for part in own])
        # The only document of a topic cannot be left out. The topics above it then have the values of their own level.
        lost = np.zeros(found.shape, dtype=np.bool_)
        known = len(self.parents)
        lost[:, :known] = self.forest.with_ancestors(np.isnan(base[:, :known]))
        for part, rounds in zip(own, self.rounds, strict=True):
            found[:, rounds.covered] = np.where(lost[:, rounds.covered], part, found[:, rounds.covered])
        return np.where(np.isnan(base), np.nan, found)

    # --- files ---

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All fields as arrays under their names in files."""
        own = [rounds.arrays() for rounds in self.rounds]
        return {
            "parents": self.parents,
            "base": np.array([self.base], dtype=np.int64),
            "sizes": np.array([len(rounds.covered) for rounds in self.rounds], dtype=np.int64),
            "left_out": self.left_out,
            "dense": np.hstack([arrays["dense"] for arrays in own]),
            "covered": np.concatenate([np.zeros(0, dtype=np.int64), *(arrays["covered"] for arrays in own)]),
            **{name: np.concatenate([np.zeros(0), *(arrays[name] for arrays in own)]) for name in BY_TOPIC},
            **{
                name: np.array([arrays[name] for arrays in own], dtype=np.float64).reshape(len(own), size)
                for name, size in BY_LEVEL.items()
            },
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Levels:
        """The levels of these :meth:`arrays`."""
        rounds, start = [], 0
        for level, size in enumerate(arrays["sizes"].tolist()):
            own = slice(start, start + size)
            parts = {name: arrays[name][own] for name in (*BY_TOPIC, "covered")}
            parts |= {name: arrays[name][level] for name in BY_LEVEL}
            rounds.append(Rounds.from_arrays(parts | {"dense": arrays["dense"][:, own]}))
            start += size
        return cls(arrays["parents"], tuple(rounds), int(arrays["base"][0]), arrays["left_out"])


def empty_rounds(width: int) -> Rounds:
    """Rounds of a level without labels and names."""
    none = np.zeros(0)
    calibration = Calibration(FIXED_CALIBRATION, none, none)
    return Rounds(np.zeros((width, 0), dtype=np.float32), none, calibration, None, np.zeros(0, dtype=np.int64))


def _of_level(own: Rounds, P: Array) -> tuple[NDArray[np.int64], Array]:
    return own.covered, P


def combine_cuts(
    forest: Forest, probabilities: Sequence[Array], covered: Sequence[NDArray[np.bool_]]
) -> NDArray[np.float32]:
    """One probability per topic from the probabilities of all cuts; no child has more than its parent.

    Parameters
    ----------
    forest : Forest
        The tree of the topics.
    probabilities : sequence of arrays (n_documents, size of the cut)
        Probabilities of the topics of each cut.
    covered : sequence of arrays of bool (size of the cut,)
        Whether the guide of the cut covers each topic; other probabilities are ignored.

    Returns
    -------
    float32 array (n_documents, n_topics)

    Examples
    --------
    >>> forest = Forest((-1, 0, 0, -1))
    >>> P = [np.array([[0.8, 0.1]]), np.array([[0.5, 0.2, 0.1]])]
    >>> combine_cuts(forest, P, [np.array([True] * 2), np.array([True] * 3)]).round(2)
    array([[0.71, 0.56, 0.24, 0.1 ]], dtype=float32)
    """
    odds = np.zeros((probabilities[0].shape[0], len(forest)))
    times = np.zeros(len(forest), dtype=np.int64)
    for cut, P, known in zip(forest.cuts, probabilities, covered, strict=True):
        numbers = np.asarray(cut)[known]
        odds[:, numbers] += _odds(P[:, known])
        times[numbers] += 1
    odds /= np.maximum(times, 1)  # a leaf above the last cut is in several cuts
    change = np.zeros_like(odds)
    for k in reversed(forest.order):
        below = [child for child in forest.children[k] if times[child]]
        if not below:
            continue
        joint = _odds(-np.expm1(np.log1p(-np.clip(expit(odds[:, below]), LEAST, 1 - LEAST)).sum(axis=1)))
        odds[:, k] = (odds[:, k] + joint) / 2 if times[k] else joint
        change[:, k], times[k] = odds[:, k] - joint, max(times[k], 1)
    for k in forest.order:
        parent = forest.parents[k]
        if parent >= 0 and times[k]:
            moved = SHARED * change[:, parent]
            odds[:, k] = np.minimum(odds[:, k] + moved, odds[:, parent])
            change[:, k] += moved
    return np.where(times > 0, expit(odds), 0).astype(np.float32)


def _odds(P: Array) -> Array:
    return np.asarray(logit(np.clip(P, LEAST, 1 - LEAST, dtype=np.float64)))
