"""A fitted model as the workbench uses it: its numbers beside the topics that people have now."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.effects import label_effects
from topicsteer.analysis.suggest import Doubt
from topicsteer.analysis.topics import Topics
from topicsteer.app.workbench.log import Topic
from topicsteer.model.topic_model import TopicModel

TERMS = 10
SHOWN = 8  # topics named in an account of changes


class Fitted:
    """A model and what was known when it was fitted.

    All that pages ask for again and again is worked out here, where nobody waits: ``terms`` with their strength, the
    ``effects`` of labels, ``top`` (the strongest membership of each document), ``doubt`` (1 where that is as likely as
    not) and ``has`` (for each document and known topic whether the model says yes).

    Parameters
    ----------
    folder : Path
        The files of the model, which is loaded without documents.
    meta : mapping
        As it is stored with it: "keys" are the topics of its known columns, "seq" the last label it saw.
    """

    def __init__(self, folder: Path, meta: Mapping[str, Any]) -> None:
        self.folder = folder
        self.model = model = TopicModel.load(folder)
        self.meta = dict(meta)
        self.keys: list[int] = list(meta["keys"])
        self.column = {key: k for k, key in enumerate(self.keys)}
        self.result = model.state_.topics
        self.n_known = len(self.keys)
        self.n_free = len(self.result) - self.n_known
        self.memberships: NDArray[np.float32] = np.asarray(model.memberships_, dtype=np.float32)
        self.thresholds = np.asarray(model.thresholds_)
        self.top: NDArray[np.float32] = np.asarray(self.memberships.max(axis=1, initial=0.0))
        self.doubt: NDArray[np.float32] = np.asarray(1 - 2 * np.abs(self.top - 0.5), dtype=np.float32)
        self.has: NDArray[np.bool_] = np.asarray(self.memberships >= self.thresholds)
        self.terms = [self.result.term_strengths(k, TERMS) for k in range(len(self.result))]
        self.effects: Mapping[str, Sequence[Any]] = label_effects(self.result, model.supervision_, model.profiles_)

    def renamed(self, topics: Mapping[int, Topic]) -> Topics:
        """The result under the names that topics have now."""
        names = [topics[key].name for key in self.keys]
        return replace(self.result, names=(*names, *self.result.names[self.n_known :]))

    def strength(self, topic: int | None) -> NDArray[np.float32]:
        """How far each document belongs to a known topic; to its strongest one where the model has no such topic."""
        return self.top if topic not in self.column else self.memberships[:, self.column[topic]]

    def ref(self, k: int) -> int | str:
        """How the page refers to a topic of the model: the key of a known one, "free-3" of a free one."""
        return self.keys[k] if k < self.n_known else f"free-{k - self.n_known}"

    @property
    def checks(self) -> list[Doubt]:
        """Labels that look wrong, strongest first, with the keys of topics in place of their numbers.

        Those of 0.1.0 have the names that topics had then, and the sentence too.
        """
        keys = dict(zip(self.result.names, self.keys, strict=False))
        checks: list[dict[str, Any]] = self.meta.get("checks", [])
        blank: dict[str, Any] = {"strength": 0.0, "why": ""}
        return [Doubt(**blank | check | {"topic": keys.get(check["topic"], check["topic"])}) for check in checks]


def account(old: Fitted | None, new: Fitted, topics: Mapping[int, Topic]) -> list[str]:
    """What a fit changed, in a few sentences."""
    if old is None or len(old.memberships) != len(new.memberships):
        return [f"First fit: {new.n_known} known and {new.n_free} free topics."]
    told = []
    both = [key for key in new.keys if key in old.column]
    if both:
        had, has = (fit.has[:, [fit.column[key] for key in both]] for fit in (old, new))
        told.append(f"{int((had != has).any(axis=1).sum()):,} of {len(has):,} documents changed topics.")
        joined, left = (has & ~had).sum(axis=0), (had & ~has).sum(axis=0)
        for k in np.argsort(-(joined + left), kind="stable")[:SHOWN]:
            if joined[k] + left[k]:
                told.append(f"{topics[both[k]].name}: {joined[k]:,} documents more, {left[k]:,} fewer.")
        for key in both:
            before, after = ([term for term, _ in fit.terms[fit.column[key]][:6]] for fit in (old, new))
            fresh, lost = ([t for t in a if t not in b][:3] for a, b in ((after, before), (before, after)))
            if fresh and lost and len(told) < 2 * SHOWN:
                told.append(f"{topics[key].name}: terms {', '.join(fresh)} in place of {', '.join(lost)}.")
    made = [topics[key].name for key in new.keys if key not in old.column]
    if made:
        told.append(f"New: {', '.join(made[:SHOWN])}.")
    return told
