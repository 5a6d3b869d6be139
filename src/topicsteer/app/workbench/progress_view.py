"""Read-only answers for the page "Progress": map, learning curve, advice, shares of topics by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topicsteer.analysis.groups import Groups
from topicsteer.analysis.prevalence import Prevalence
from topicsteer.analysis.suggestions import FEW
from topicsteer.app.workbench.answers import (
    CurvePoint,
    GroupTable,
    GroupTopic,
    MapTopic,
    ProgressPage,
    TopicMap,
)
from topicsteer.app.workbench.current_model import OUTSIDE, CurrentModel
from topicsteer.app.workbench.model_record import GroupShares, Key, Point, Scores
from topicsteer.app.workbench.refusals import NotFound
from topicsteer.app.workbench.views import Views
from topicsteer.report.breakdown import DRAWN, NO_LINK, Breakdown, bar_chart, line_chart
from topicsteer.report.topic_layout import lay_out
from topicsteer.system.templates import visible
from topicsteer.system.types import Array
from topicsteer.system.values import ALL, NONE

# Width and height of the map on a wide screen and on a phone.
WIDE, NARROW = (1040, 560), (360, 430)


def progress_page(views: Views, narrow: bool) -> ProgressPage:
    """Return the whole page."""
    return ProgressPage(
        map=topic_map(views, *NARROW if narrow else WIDE),
        curve=learning_curve(views),
        coverage=views.topics().known,
        advice=advice(views),
        columns=list(views.project.groups),
    )


def learning_curve(views: Views) -> list[CurvePoint]:
    """Return one point per evaluated fit; the first fit also shows the points with a part of its labels."""
    curve = list[CurvePoint]()
    for _, at, record in views.project.models.finished():
        scores = record.judged
        if scores is not None:
            points: list[Point | Scores] = [scores] if curve else [*scores.points, scores]
            curve += [
                CurvePoint(at, p.documents, scores.topics, p.micro, p.macro, p.micro_error, p.macro_error)
                for p in points
            ]
    return curve


def advice(views: Views) -> str:
    """Return advice on the next step."""
    session, fitted = views.session, views.fitted
    live, curve = session.live, learning_curve(views)
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
    if fitted.record.outlook:
        return fitted.record.outlook
    if len(curve) >= 4:
        last, before = curve[-1], curve[-4]
        growth = last.documents / max(before.documents, 1)
        if growth >= 1.2 and last.micro - before.micro < 0.01:
            return (
                f"More labels no longer help: from {before.documents} to {last.documents} labelled documents, "
                f"agreement with hidden labels went from {before.micro:.0%} to {last.micro:.0%}. "
                "Check the labels that look wrong, or stop here."
            )
    if curve and curve[-1].micro < 0.6:
        return "The model does not yet find hidden labels well. Continue with the suggested documents."
    return "Continue with the suggested documents: they help most."


def topic_map(views: Views, width: int, height: int) -> TopicMap:
    """Return the circles and names of the topic map, without deleted topics."""
    fitted = views.shown
    if fitted is None or len(fitted.result) < 2:
        return TopicMap([], width, height)
    topics = fitted.renamed(views.session.topics)
    drawn = lay_out(topics, width, height, longest=30 if width > 500 else 18)
    listed = []
    for k, (centre, radius, label) in enumerate(zip(drawn.centres, drawn.radii, drawn.labels, strict=True)):
        key = fitted.key_of(k)
        topic = views.session.topics[key] if isinstance(key, int) else None
        if topic is not None and topic.gone:
            continue
        x, y, r = (round(float(value), 1) for value in (*centre, radius))
        colour, share = topic.colour if topic else "", round(float(topics.share[k]), 4)
        listed.append(MapTopic(key, visible(topics.names[k], 100), x, y, r, colour, share, label))
    return TopicMap(listed, width, height)


# Arrays of shares that are stored with a model.
ARRAYS = ("share", "low", "high", "plain", "worth", "labels", "drawn", "variance")

# --- estimates of the worker, as plain values ---


def plain_shares(found: Prevalence, keys: Sequence[Key]) -> GroupShares:
    """Return shares for the record of a model."""
    arrays = {name: [[_plain(value) for value in row] for row in getattr(found, name)] for name in ARRAYS}
    return GroupShares(list(keys)[: len(found.topics)], found.level, list(found.sentences), **arrays)


def recorded_shares(views: Views, column: str) -> GroupShares | None:
    """Return the shares in the record of the model, if they belong to the groups of the column."""
    shares = views.shown.record.shares.get(column) if views.shown else None
    fits = shares is not None and len(shares.share) == len(views.project.groups[column].names) + 1
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
    names = [NONE if key == OUTSIDE else now[fitted.number(key)] for key in stored.keys]
    kinds = {"labels": np.int64, "drawn": np.int64}
    arrays: dict[str, Any] = {
        name: np.array(getattr(stored, name), dtype=kinds.get(name, np.float64)) for name in ARRAYS
    }
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
    """Return the shares of topics in the groups of a column; with intervals once they are estimated."""
    if column not in views.project.groups:
        raise NotFound(f"There is no column {column!r} with groups.")
    groups, fitted = views.project.groups[column], views.shown
    stored = recorded_shares(views, column)
    topics = [] if fitted is None else _topics(views, fitted, groups, stored)
    names = [visible(name, 60) for name in groups.names]
    names = [f"{name} ({g + 1})" if names.count(name) > 1 else name for g, name in enumerate(names)]
    by_key = {str(topic.key): topic for topic in topics}
    table: dict[str, list[Any]] = {
        "topic": [key for key in by_key for _ in names],
        "group": names * len(topics),
        "share": [value for topic in topics for value in topic.shares],
        "low": [value for topic in topics for value in topic.low],
        "high": [value for topic in topics for value in topic.high],
        "documents": groups.counts.tolist() * len(topics),
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
        estimated=stored is not None,
        notes=list(groups.notes) if stored is None else stored.notes,
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


def _topics(views: Views, fitted: CurrentModel, groups: Groups, stored: GroupShares | None) -> list[GroupTopic]:
    """Return known topics, free topics and none, with estimated shares where there are any."""
    found: list[tuple[Key, str, str, Array]] = []
    for key, k in fitted.column.items():
        topic = views.session.topics[key]
        if not topic.gone:
            found.append((key, topic.name, topic.colour, fitted.memberships[:, k]))
    for i, name in enumerate(fitted.result.names[fitted.n_known :]):
        found.append((fitted.key_of(fitted.n_known + i), name, "", fitted.free[:, i]))
    if fitted.open:
        found.append((OUTSIDE, "None of these", "", fitted.none))
    return [
        GroupTopic(key, name, colour, *_shares(key, groups, probability, stored))
        for key, name, colour, probability in found
    ]


def _shares(
    key: Key, groups: Groups, probability: Array, stored: GroupShares | None
) -> tuple[list[float], list[float | None], list[float | None]]:
    """Return shares and ends of their intervals by group; plain averages without an estimate."""
    if stored is not None and key in stored.keys:
        k = stored.keys.index(key)
        share, low, high = ([row[k] for row in values[1:]] for values in (stored.share, stored.low, stored.high))
        return [value or 0.0 for value in share], low, high
    inside = groups.codes >= 0
    totals = np.bincount(groups.codes[inside], weights=probability[inside], minlength=len(groups.names))
    none: list[float | None] = [None] * len(groups.names)
    return [round(float(value), 5) for value in totals / np.maximum(groups.counts, 1)], none, none
