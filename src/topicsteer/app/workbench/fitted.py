"""A fitted model as the workbench uses it: its numbers beside the topics that people have now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.effects import label_effects
from topicsteer.analysis.topics import Topics
from topicsteer.app.workbench.log import Topic
from topicsteer.model.topic_model import TopicModel
from topicsteer.system.types import Array

TERMS = 10
SHOWN = 8  # topics named in an account of changes


@dataclass(frozen=True)
class Check:
    """A label that looks wrong, as it is stored with a model: topics by their keys, and numbers in place of words.

    Projects of 0.1.0 hold the sentence too.
    """

    row: int
    topic: int
    given: str
    probability: float
    rival: int | None = None
    rival_probability: float | None = None
    only: bool = False
    why: str = ""


class Fitted:
    """A model and what was known when it was fitted.

    Parameters
    ----------
    model : TopicModel
        Without documents.
    meta : mapping
        As it is stored with it: "keys" are the topics of its known columns, "seq" the last label it saw.
    """

    def __init__(self, model: TopicModel, meta: Mapping[str, Any]) -> None:
        self.model = model
        self.meta = dict(meta)
        self.keys: list[int] = list(meta["keys"])
        self.column = {key: k for k, key in enumerate(self.keys)}
        self.n_known = len(self.keys)
        # Columns in place of rows: what pages ask for is one topic of all documents.
        self.memberships: NDArray[np.float32] = np.asarray(model.memberships_, dtype=np.float32)
        self.cuts = np.asarray(model.cuts_)

    @property
    def result(self) -> Topics:
        """Names, terms and documents of the topics as they were fitted."""
        found: Topics = self.model.result_
        return found

    @property
    def n_free(self) -> int:
        """Number of free topics."""
        return len(self.result) - self.n_known

    def renamed(self, topics: Mapping[int, Topic]) -> Topics:
        """The result under the names that topics have now."""
        names = [topics[key].name if key in topics else self.result.names[k] for k, key in enumerate(self.keys)]
        return replace(self.result, names=(*names, *self.result.names[self.n_known :]))

    @cached_property
    def terms(self) -> list[list[tuple[str, float]]]:
        """The terms of each topic with their strength."""
        return [self.result.term_strengths(k, TERMS) for k in range(len(self.result))]

    @cached_property
    def effects(self) -> Mapping[str, Sequence[Any]]:
        """Whether the labels of known topics took effect."""
        return label_effects(self.result, self.model.supervision_, self.model.profiles_)

    @cached_property
    def top(self) -> NDArray[np.float32]:
        """The strongest membership of each document."""
        return np.asarray(self.memberships.max(axis=1, initial=0.0))

    @cached_property
    def doubt(self) -> NDArray[np.float32]:
        """How unsure the model is of each document: 1 where its strongest topic is as likely as not."""
        return np.asarray(1 - 2 * np.abs(self.top - 0.5), dtype=np.float32)

    @cached_property
    def has(self) -> NDArray[np.bool_]:
        """For each document and known topic whether the model says yes."""
        return np.asarray(self.memberships >= self.cuts)

    def free_share(self, k: int) -> Array:
        """Share of a free topic in each document."""
        return self.result.proportions[:, self.n_known + k]

    def strength(self, topic: int | None) -> NDArray[np.float32]:
        """How far each document belongs to a known topic; to its strongest one where the model has no such topic."""
        return self.top if topic not in self.column else self.memberships[:, self.column[topic]]

    def ref(self, k: int) -> int | str:
        """How the page refers to a topic of the model: the key of a known one, "free-3" of a free one."""
        return self.keys[k] if k < self.n_known else f"free-{k - self.n_known}"

    @property
    def checks(self) -> list[Check]:
        """Labels that look wrong, strongest first; in those of 0.1.0 topics have the names that they had then."""
        keys = dict(zip(self.result.names, self.keys, strict=False))
        checks: list[dict[str, Any]] = self.meta.get("checks", [])
        return [Check(**check | {"topic": keys.get(check["topic"], check["topic"])}) for check in checks]


def account(old: Fitted | None, new: Fitted, topics: Mapping[int, Topic]) -> list[str]:
    """What a fit changed, in a few sentences."""
    if old is None or len(old.memberships) != len(new.memberships):
        return [f"First fit: {new.n_known} known and {new.n_free} free topics."]
    name = {key: topic.name for key, topic in topics.items()}
    told = []
    both = [(old.column[key], new.column[key], key) for key in new.keys if key in old.column]
    if both:
        flips = np.zeros(len(new.has), dtype=np.bool_)
        moves = []
        for a, b, key in both:
            left, joined = old.has[:, a] & ~new.has[:, b], new.has[:, b] & ~old.has[:, a]
            flips |= left | joined
            moves.append((int(joined.sum()), int(left.sum()), key))
        told.append(f"{int(flips.sum()):,} of {len(flips):,} documents changed topics.")
        moves.sort(key=lambda move: -(move[0] + move[1]))
        for come, gone, key in moves[:SHOWN]:
            if come + gone:
                told.append(f"{name.get(key, '?')}: {come:,} documents more, {gone:,} fewer.")
        for a, b, key in both:
            before, after = ([t for t, _ in terms[:6]] for terms in (old.terms[a], new.terms[b]))
            fresh = [t for t in after if t not in before]
            lost = [t for t in before if t not in after]
            if fresh and lost and len(told) < 2 * SHOWN:
                told.append(f"{name.get(key, '?')}: terms {', '.join(fresh[:3])} in place of {', '.join(lost[:3])}.")
    made = [name.get(key, "?") for key in new.keys if key not in old.column]
    if made:
        told.append(f"New: {', '.join(made[:SHOWN])}.")
    return told
