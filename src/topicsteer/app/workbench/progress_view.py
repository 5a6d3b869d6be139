"""The shares of topics that the worker estimated, as they are stored and as a report shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.groups import Groups
from topicsteer.analysis.prevalence import ARRAYS, Prevalence
from topicsteer.app.workbench.current_model import EVERYTHING, OUTSIDE, GroupShares, Key
from topicsteer.app.workbench.views import Views
from topicsteer.report.breakdown import Breakdown
from topicsteer.system.values import ALL, NONE


def plain_shares(found: Prevalence, keys: Sequence[Key]) -> GroupShares:
    """Return shares for the record of a model."""
    arrays = {name: [[_plain(value) for value in row] for row in getattr(found, name)] for name in ARRAYS}
    return GroupShares(list(keys)[: len(found.topics)], found.level, list(found.sentences), arrays)


def _plain(value: Any) -> float | int | None:
    if np.isnan(value):
        return None
    return int(value) if isinstance(value, np.integer) else round(float(value), 5)


def stored_shares(views: Views, column: str) -> tuple[list[Key], Prevalence] | None:
    """Return the shares that were estimated after the last fit and their topics, without deleted ones.

    They have the current names of the topics. None if there are no shares of the present groups.
    """
    fitted, groups = views.shown, views.project.groups.get(column)
    stored = fitted.record.shares.get(column) if fitted else None
    inside = groups or Groups.none(views.session.n)
    if fitted is None or stored is None or len(stored.arrays["share"]) != len(inside.names) + 1:
        return None
    now, topics = fitted.renamed(views.session.topics).names, views.session.topics
    names = [NONE if key == OUTSIDE else now[fitted.column[key]] for key in stored.keys]
    kinds = {"labels": np.int64, "drawn": np.int64}
    arrays: dict[str, Any] = {name: np.array(stored.arrays[name], dtype=kinds.get(name, np.float64)) for name in ARRAYS}
    arrays["share"][np.isnan(arrays["low"])] = np.nan  # without an interval it is not known
    found = Prevalence(
        tuple(names),
        (ALL, *inside.names),
        groups,
        documents=np.concatenate([[len(inside.codes)], inside.counts]),
        level=stored.level,
        sentences=tuple(stored.notes),
        **arrays,
    )
    known: NDArray[np.bool_] = np.any(np.isfinite(found.share), axis=0)
    kept = [k for k, key in enumerate(stored.keys) if known[k] and (isinstance(key, str) or not topics[key].gone)]
    return [stored.keys[k] for k in kept], found.take(kept)


def breakdowns(views: Views) -> list[Breakdown]:
    """Return the estimated shares of all columns, for a report; nothing before they are estimated."""
    columns = (EVERYTHING, *views.project.groups)
    found = [both[1] for column in columns if (both := stored_shares(views, column)) is not None and both[0]]
    return [Breakdown.of(shares, known=found[0].sentences if k else ()) for k, shares in enumerate(found)]
