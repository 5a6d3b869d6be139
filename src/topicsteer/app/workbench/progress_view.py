"""Read-only answers for the page "Progress": advice, shares of topics by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topicsteer.analysis.documents_to_label import FEW
from topicsteer.analysis.prevalence import Prevalence
from topicsteer.app.workbench.current_model import OUTSIDE, GroupShares, Key
from topicsteer.app.workbench.errors import NotFound
from topicsteer.app.workbench.responses import GroupTable, GroupTopic, ProgressPage
from topicsteer.app.workbench.views import Views
from topicsteer.report.breakdown import DRAWN, NO_LINK, Breakdown, bar_chart, line_chart
from topicsteer.system.templates import visible
from topicsteer.system.values import ALL, NONE


def progress_page(views: Views) -> ProgressPage:
    """Return the whole page."""
    return ProgressPage(advice=advice(views), columns=list(views.project.groups))


def advice(views: Views) -> str:
    """Return advice on the next step."""
    session, fitted = views.session, views.fitted
    live = session.live
    if not live:
        return (
            "Create at least two topics and label a few documents of each. Or fit first and name the topics it finds."
        )
    if fitted is None and not any(session.counts.values()):
        return "Fit now: names and keywords find the first documents of each topic. Then label a few of each."
    bare = [topic.name for topic in live if session.counts[topic.key] < FEW]
    if bare:
        names = ", ".join(bare[:5]) + (f" and {len(bare) - 5} more" if len(bare) > 5 else "")
        return f"These topics have fewer than {FEW} labels: {names}. Search for their documents and label some."
    if fitted is None:
        return "Fit now: the topics will follow your labels, and suggestions will be ready."
    return fitted.record.outlook or "Continue with the suggested documents: they help most."


# Arrays of shares that are stored with a model.
ARRAYS = ("share", "low", "high", "plain", "worth", "labels", "drawn", "variance")

# --- estimates of the worker, as plain values ---


def plain_shares(found: Prevalence, keys: Sequence[Key]) -> GroupShares:
    """Return shares for the record of a model."""
    arrays = {name: [[_plain(value) for value in row] for row in getattr(found, name)] for name in ARRAYS}
    return GroupShares(list(keys)[: len(found.topics)], found.level, list(found.sentences), arrays)


def recorded_shares(views: Views, column: str) -> GroupShares | None:
    """Return the shares in the record of the model, if they belong to the groups of the column."""
    shares = views.shown.record.shares.get(column) if views.shown else None
    fits = shares is not None and len(shares.arrays["share"]) == len(views.project.groups[column].names) + 1
    return shares if fits else None


def _plain(value: Any) -> float | int | None:
    if np.isnan(value):
        return None
    return int(value) if isinstance(value, np.integer) else round(float(value), 5)


def stored_shares(views: Views, column: str) -> Prevalence | None:
    """Return the shares that were estimated after the last fit, under the current names of the topics."""
    fitted, groups = views.shown, views.project.groups[column]
    stored = recorded_shares(views, column)
    if fitted is None or stored is None:
        return None
    now = fitted.renamed(views.session.topics).names
    names = [NONE if key == OUTSIDE else now[fitted.column[key]] for key in stored.keys]
    kinds = {"labels": np.int64, "drawn": np.int64}
    arrays: dict[str, Any] = {name: np.array(stored.arrays[name], dtype=kinds.get(name, np.float64)) for name in ARRAYS}
    return Prevalence(
        tuple(names),
        (ALL, *groups.names),
        groups,
        documents=np.concatenate([[len(groups.codes)], groups.counts]),
        level=stored.level,
        sentences=tuple(stored.notes),
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
    """Return the shares of topics in the groups of a column; without topics before they are estimated."""
    if column not in views.project.groups:
        raise NotFound(f"There is no column {column!r} with groups.")
    groups, stored = views.project.groups[column], recorded_shares(views, column)
    topics = {str(topic.key): topic for topic in _topics(views, stored)}
    names = [visible(name, 60) for name in groups.names]
    names = [f"{name} ({g + 1})" if names.count(name) > 1 else name for g, name in enumerate(names)]
    sizes = groups.counts.tolist()
    rows = [
        (key, *values)
        for key, topic in topics.items()
        for values in zip(names, topic.shares, topic.low, topic.high, sizes, strict=True)
    ]
    columns = ("topic", "group", "share", "low", "high", "documents")
    table = {name: [row[place] for row in rows] for place, name in enumerate(columns)}
    found = Breakdown(column, names, groups.period, table)
    order = found.order()
    bars, lines = [], []
    for key in order[:DRAWN]:
        title = visible(topics[key].name, 80)
        if groups.period is None:
            bars.append(bar_chart(key, title, NO_LINK, found.drawn_shares(key), about=column))
        else:
            lines.append(line_chart(key, key, NO_LINK, found, title))
    notes = list(groups.notes) if stored is None else stored.notes
    return GroupTable(column, names, sizes, [topics[key] for key in order], notes, bars, lines)


def _topics(views: Views, stored: GroupShares | None) -> list[GroupTopic]:
    """Return existing known topics, free topics and none, with their shares."""
    fitted, found = views.shown, []
    if fitted is None or stored is None:
        return []
    ends = [stored.arrays[name] for name in ("share", "low", "high")]
    for k, key in enumerate(stored.keys):
        topic = views.session.topics[key] if isinstance(key, int) else None
        if topic is not None and topic.gone:
            continue
        name, colour = (topic.name, topic.colour) if topic else (fitted.names[fitted.column[key]], "")
        share, low, high = ([row[k] for row in values[1:]] for values in ends)
        found.append(GroupTopic(key, name, colour, [value or 0.0 for value in share], low, high))
    return found
