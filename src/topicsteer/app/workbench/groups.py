"""Topics by the groups of a column: shares with their intervals, as charts and as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from topicsteer.analysis.groups import Groups
from topicsteer.analysis.prevalence import Prevalence
from topicsteer.app.workbench.answers import GroupTable, GroupTopic, Key
from topicsteer.app.workbench.current_model import OUTSIDE, CurrentModel
from topicsteer.app.workbench.errors import NotFound
from topicsteer.app.workbench.views import Views
from topicsteer.report.breakdown import DRAWN, NO_LINK, Breakdown, bar_chart, line_chart
from topicsteer.system.safe_text import visible
from topicsteer.system.types import Array
from topicsteer.system.values import ALL, NONE

# Arrays of shares that are stored with a model.
ARRAYS = ("share", "low", "high", "plain", "worth", "labels", "drawn", "variance")

# --- estimates of the worker, as plain values ---


def plain_shares(found: Prevalence, keys: Sequence[Key]) -> dict[str, Any]:
    """Return shares for the description of a model: rows are groups, the first of them all documents."""
    arrays = {name: [[_plain(value) for value in row] for row in getattr(found, name)] for name in ARRAYS}
    return arrays | {"keys": list(keys)[: len(found.topics)], "level": found.level, "notes": list(found.sentences)}


def _plain(value: Any) -> float | int | None:
    if np.isnan(value):
        return None
    return int(value) if isinstance(value, np.integer) else round(float(value), 5)


def stored_shares(views: Views, column: str) -> Prevalence | None:
    """Return the shares that were estimated after the last fit, under the current names of the topics."""
    fitted, groups = views.shown, views.project.groups[column]
    stored: dict[str, Any] = fitted.meta.get("shares", {}).get(column, {}) if fitted else {}
    if fitted is None or len(stored.get("share", ())) != len(groups.names) + 1:
        return None
    now = fitted.renamed(views.session.topics).names
    names = [NONE if key == OUTSIDE else now[fitted.number(key)] for key in stored["keys"]]
    kinds = {"labels": np.int64, "drawn": np.int64}
    arrays: dict[str, Any] = {name: np.array(stored[name], dtype=kinds.get(name, np.float64)) for name in ARRAYS}
    return Prevalence(
        tuple(names),
        (ALL, *groups.names),
        groups,
        documents=np.concatenate([[len(groups.codes)], groups.counts]),
        level=stored["level"],
        sentences=tuple(stored["notes"]),
        **arrays,
    )


def breakdowns(views: Views) -> list[Breakdown]:
    """Return the estimated shares of all columns, for a report; nothing before they are estimated."""
    found = [shares for column in views.project.groups if (shares := stored_shares(views, column)) is not None]
    if not found:
        return []
    overall = found[0].overall()
    return [Breakdown.of(overall), *(Breakdown.of(shares, known=overall.sentences) for shares in found)]


# --- answers ---


def group_table(views: Views, column: str) -> GroupTable:
    """Return the shares of topics in the groups of a column; with intervals once they are estimated."""
    if column not in views.project.groups:
        raise NotFound(f"There is no column {column!r} with groups.")
    groups, fitted = views.project.groups[column], views.shown
    stored: dict[str, Any] = fitted.meta.get("shares", {}).get(column, {}) if fitted else {}
    topics = [] if fitted is None else _topics(views, fitted, groups, stored)
    names = [visible(name, 60) for name in groups.names]
    names = [f"{name} ({g + 1})" if names.count(name) > 1 else name for g, name in enumerate(names)]
    rows = [(str(topic.key), name, g) for topic in topics for g, name in enumerate(names)]
    by_key = {str(topic.key): topic for topic in topics}
    table: dict[str, list[Any]] = {
        "topic": [key for key, _, _ in rows],
        "group": [name for _, name, _ in rows],
        "share": [by_key[key].shares[g] for key, _, g in rows],
        "low": [by_key[key].low[g] for key, _, g in rows],
        "high": [by_key[key].high[g] for key, _, g in rows],
        "documents": [int(groups.counts[g]) for _, _, g in rows],
    }
    found = Breakdown(column, names, groups.period, table)
    drawn = [by_key[key] for key in found.order()]
    titles = {topic.key: visible(topic.name, 80) for topic in drawn}
    return GroupTable(
        column=column,
        period=groups.period,
        groups=names,
        sizes=groups.counts.tolist(),
        topics=drawn,
        estimated=bool(stored),
        notes=stored.get("notes", list(groups.notes)),
        bars=[
            bar_chart(str(t.key), titles[t.key], NO_LINK, found.drawn_shares(str(t.key)), about=column)
            for t in drawn[:DRAWN]
            if groups.period is None
        ],
        lines=[
            line_chart(str(t.key), str(t.key), NO_LINK, found, titles[t.key])
            for t in drawn[:DRAWN]
            if groups.period is not None
        ],
    )


def _topics(views: Views, fitted: CurrentModel, groups: Groups, stored: Mapping[str, Any]) -> list[GroupTopic]:
    """Return known topics, free topics and none, with estimated shares where there are any."""
    found: list[tuple[Key, str, str, Array]] = []
    for key, k in fitted.column.items():
        topic = views.session.topics[key]
        if not topic.gone:
            found.append((key, topic.name, topic.colour, fitted.memberships[:, k]))
    for i, k in enumerate(fitted.free_columns):
        found.append((fitted.key_of(k), fitted.result.names[k], "", fitted.free[:, i]))
    if fitted.open:
        found.append((OUTSIDE, "None of these", "", fitted.none))
    return [
        GroupTopic(key, name, colour, *_shares(key, groups, probability, stored))
        for key, name, colour, probability in found
    ]


def _shares(
    key: Key, groups: Groups, probability: Array, stored: Mapping[str, Any]
) -> tuple[list[float], list[float | None], list[float | None]]:
    """Return shares and ends of their intervals by group; plain averages without an estimate."""
    if key in stored.get("keys", ()) and len(stored["share"]) == len(groups.names) + 1:
        k = stored["keys"].index(key)
        share, low, high = ([row[k] for row in stored[name][1:]] for name in ("share", "low", "high"))
        return [value or 0.0 for value in share], low, high
    inside = groups.codes >= 0
    totals = np.bincount(groups.codes[inside], weights=probability[inside], minlength=len(groups.names))
    none: list[float | None] = [None] * len(groups.names)
    return [round(float(value), 5) for value in totals / np.maximum(groups.counts, 1)], none, none
