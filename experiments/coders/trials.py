"""Complaints with the answers of fourteen language models: draws of labels, and shares with and without a model."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from topicsteer import TopicModel

# Labels of people per draw, drawn at random.
LABELS = 150
# Parts of each topic that are kept: all topics equally large, or a fifth of some of them.
SIZES = {"equal": (1.0, 1.0, 1.0, 1.0, 1.0), "unequal": (1.0, 0.75, 0.5, 0.35, 0.2)}
# The answer of a model that names no product of the list.
NOTHING = "(none)"


@dataclass(frozen=True, eq=False)
class Complaints:
    """Texts, true topics, and the answers of each language model."""

    texts: list[str]
    topics: tuple[str, ...]
    true: list[str]
    answers: dict[str, list[str]]

    @property
    def shares(self) -> np.ndarray:
        """True share of each topic."""
        return np.array([self.true.count(name) for name in self.topics]) / len(self.true)


@lru_cache
def complaints(sizes: str) -> Complaints:
    """The corpus with equally or unequally large topics."""
    path = Path(os.environ["TOPICSTEER_DATA"]) / "short" / "complaints_llm.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    topics = tuple(sorted({row["labels"][0] for row in rows}))
    rng, kept = np.random.default_rng(0), []
    for name, part in zip(topics, SIZES[sizes], strict=True):
        own = [k for k, row in enumerate(rows) if row["labels"][0] == name]
        kept += rng.permutation(own)[: round(part * len(own))].tolist()
    rows = [rows[k] for k in sorted(kept)]
    answers = {
        name: [row["coders"][name] if row["coders"][name] in topics else NOTHING for row in rows]
        for name in rows[0]["coders"]
    }
    return Complaints([row["text"] for row in rows], topics, [row["labels"][0] for row in rows], answers)


def perform(sizes: str, draw: int) -> dict[str, Any]:
    """Shares from the labels of one draw alone, and with each language model, by topic: share, low and high."""
    given, rng = complaints(sizes), np.random.default_rng(draw)
    rows = rng.permutation(len(given.texts))[:LABELS].tolist()
    model = TopicModel(0, topics=list(given.topics), world="closed", threads=1, random_state=draw)
    model.fit(given.texts, {row: given.true[row] for row in rows}, chosen="random")
    found = {"labels and topicsteer": interval(model, given, None)}
    found |= {name: interval(model, given, {name: own}) for name, own in given.answers.items()}
    return found


def interval(model: TopicModel, given: Complaints, coders: dict[str, list[str]] | None) -> list[list[float]]:
    """Share, low and high of each topic."""
    shares = model.findings.shares(coders=coders)
    columns = [shares.topics.index(name) for name in given.topics]
    return [[round(float(part[0, k]), 4) for part in (shares.share, shares.low, shares.high)] for k in columns]


def counts(sizes: str) -> dict[str, tuple[float, float, float]]:
    """Accuracy of each language model, and the mean and largest error of the plain counts of its answers."""
    given = complaints(sizes)
    found = {}
    for name, own in given.answers.items():
        right = np.mean([a == b for a, b in zip(own, given.true, strict=True)])
        errors = np.abs(np.array([own.count(topic) for topic in given.topics]) / len(own) - given.shares)
        found[name] = (float(right), float(errors.mean()), float(errors.max()))
    return found
