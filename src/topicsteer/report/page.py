"""The report: one HTML file that opens offline, made from finished numbers."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from topicsteer.analysis import effects
from topicsteer.analysis.belief import corrected
from topicsteer.analysis.columns import Column
from topicsteer.analysis.evaluate import Evaluation
from topicsteer.analysis.topics import COLUMNS, Topics
from topicsteer.report.breakdown import Breakdown, SharePart, TopicLink, share_part
from topicsteer.report.document_map import MapPage, MappedDocuments, map_page
from topicsteer.report.excerpt import Span, excerpt
from topicsteer.report.grid import Grid, grid
from topicsteer.report.scorecard import Scorecard, scorecard
from topicsteer.report.shell import SCRIPTS, page
from topicsteer.report.topic_layout import Label, lay_out
from topicsteer.report.tree import TopicCard, TreeNode, tree_of
from topicsteer.system.files import write_text
from topicsteer.system.values import NONE

# Sections by their id, which is also the name of their template.
SECTIONS = {
    "documents": "Document map",
    "map": "Topic map",
    "tree": "Topic tree",
    "topics": "Topics",
    "shares": "Shares",
    "guidance": "Guidance",
    "evaluation": "Evaluation",
    "all": "All topics",
    "settings": "Settings",
}


@dataclass(frozen=True)
class Example:
    """A document to show for a topic.

    Parameters
    ----------
    id : hashable
        The user's id of it.
    text : str
        The whole document; the report cuts it.
    spans : tuple of (start, end, strength)
        Characters of the words that put the document into the topic, with a strength from 0 to 1.

    Examples
    --------
    >>> Example("a", "rain at noon", ((0, 4, 1.0),)).id
    'a'
    """

    id: Hashable
    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class ReportData:
    """The content of a report.

    Parameters
    ----------
    title : str
        Its heading.
    topics : Topics
        The topics of a fit.
    examples : mapping of int to sequence of Example
        Documents of topics, by the number of the topic.
    guidance : mapping of str to sequence
        The table of `topicsteer.analysis.effects.label_effects`, one row per known topic.
    evaluation : Evaluation or None
        None: not evaluated.
    settings : mapping of str to object
        Everything that a repetition needs.
    history : sequence of float
        The objective at each iteration.
    belief : str
        A sentence about documents that have none of the known topics.
    groups : sequence of int
        Number of groups of documents that make up each free topic; empty if free topics have none.
    codebook : mapping of str to sequence
        Known topics with descriptions and keywords, one row per topic; for the workbook.
    shares : sequence of Breakdown
        Shares of topics in the corpus, in groups and over time. Default: the report has no such section.
    documents : MappedDocuments, optional
        The document map. Default: the report has none.
    labelled : int, default=0
        Number of labelled documents, including documents with none of the topics.

    Examples
    --------
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.eye(2), np.eye(2), ["a", "b"], np.array([1]))
    >>> data = ReportData("Drinks", topics, {0: [Example("a", "a leaf")]}, {"topic": ["tea"], "took effect": [True]},
    ...                   None, {"seed": 0}, [3.0, 1.0])
    >>> len(data.topics)
    2
    """

    title: str
    topics: Topics
    examples: Mapping[int, Sequence[Example]]
    guidance: Mapping[str, Sequence[Any]]
    evaluation: Evaluation | None
    settings: Mapping[str, Any]
    history: Sequence[float]
    belief: str = ""
    groups: Sequence[int] = ()
    codebook: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    shares: Sequence[Breakdown] = ()
    documents: MappedDocuments | None = None
    labelled: int = 0


def render(data: ReportData) -> str:
    """The report as a whole HTML document.

    Parameters
    ----------
    data : ReportData
        What to show.

    Returns
    -------
    str

    Examples
    --------
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.eye(2), np.eye(2), ["a", "b"], np.array([1]))
    >>> text = render(ReportData("Drinks", topics, {}, {}, None, {}, []))
    >>> text.startswith("<!doctype html>"), "<h1>Drinks</h1>" in text, "Not evaluated" in text
    (True, True, True)
    """
    topics = _topics(data)
    known = data.topics.n_known
    absent = {"documents"} if data.documents is None else set()
    absent |= set() if data.shares else {"shares"}
    absent |= {"tree"} if data.topics.forest is None else set()
    links = {card.name: TopicLink(card.key, card.origin) for card in topics}
    none, measured = (corrected(data.shares[0].table) if data.shares else None) or (data.topics.none_share, "")
    content = ReportPage(
        sections={key: name for key, name in SECTIONS.items() if key not in absent},
        numbers={
            "documents": len(data.topics.W),
            "terms": data.topics.H.shape[1],
            "known topics": known,
            "free topics": len(topics) - known,
            "labelled documents": data.labelled,
        },
        known_share=1 - none if known else 0.0,
        open=data.topics.open,
        belief=f"{data.belief} {measured}".strip(),
        maps=[_map(data.topics, topics, "wide", 1040, 560), _map(data.topics, topics, "narrow", 360, 430)],
        document_map=None if data.documents is None else map_page(data.documents),
        tree=tree_of(data.topics, topics),
        topics=topics,
        shares=[share_part(found, k, links) for k, found in enumerate(data.shares)],
        guidance=grid("guidance-table", "Effect of the labels on each known topic", data.guidance, effects.COLUMNS),
        without_effect=_without_effect(data.guidance),
        evaluation=None if data.evaluation is None else scorecard(data.evaluation),
        all_topics=_all_topics(data.topics, topics),
        settings={str(name).replace("_", " "): value for name, value in data.settings.items()},
        objective=_objective(data.history),
    )
    return page("report.html", data.title, scripts=SCRIPTS, page=content)


def write(data: ReportData, path: str | os.PathLike[str]) -> None:
    """Write the report; an old file at `path` stays until the new one is complete.

    Parameters
    ----------
    data : ReportData
        What to show.
    path : path
        The file to write. Its folder must exist.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.eye(2), np.eye(2), ["a", "b"], np.array([1]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(ReportData("Drinks", topics, {}, {}, None, {}, []), Path(folder) / "report.html")
    ...     [file.name for file in Path(folder).iterdir()]
    ['report.html']
    """
    write_text(path, render(data))


# --- content of the template ---


@dataclass(frozen=True)
class Mark:
    """The circle of a topic on the map, with the size of its number and its label, if there is room for one."""

    topic: TopicCard
    x: float
    y: float
    radius: float
    font: float
    label: Label | None


@dataclass(frozen=True)
class Map:
    """A map; the style sheet shows the size that fits the window."""

    size: str
    width: int
    height: int
    marks: list[Mark]


@dataclass(frozen=True)
class Objective:
    """The objective at each iteration, as a line in a field of 600 by 80, and its first and last value."""

    points: list[tuple[float, float]]
    first: str
    last: str
    table: Grid


@dataclass(frozen=True)
class ReportPage:
    """Everything that the template of the report shows."""

    sections: Mapping[str, str]
    numbers: Mapping[str, int]
    known_share: float
    open: bool
    belief: str
    maps: list[Map]
    document_map: MapPage | None
    tree: list[TreeNode]
    topics: list[TopicCard]
    shares: list[SharePart]
    guidance: Grid
    without_effect: list[tuple[Any, str]]
    evaluation: Scorecard | None
    all_topics: Grid
    settings: Mapping[str, Any]
    objective: Objective | None


def _without_effect(guidance: Mapping[str, Sequence[Any]]) -> list[tuple[Any, str]]:
    """Topics whose labels did not take effect, each with the reason."""
    names, took = next(iter(guidance.values()), ()), guidance.get("took effect", ())
    reasons = guidance.get("reason", [""] * len(names))
    return [(name, reason) for name, ok, reason in zip(names, took, reasons, strict=True) if not ok]


def _topics(data: ReportData) -> list[TopicCard]:
    topics = data.topics
    mains = main_topics(topics)
    return [
        TopicCard(
            k + 1,
            name,
            "known" if topics.known(k) and k not in topics.found else "free",
            float(topics.share[k]),
            mains[k],
            int(topics.labelled[k]) if topics.known(k) else None,
            data.groups[k - topics.n_known] if data.groups and not topics.known(k) else 0,
            topics.term_strengths(k, 8),
            [(example.id, excerpt(example.text, example.spans)) for example in data.examples.get(k, ())],
        )
        for k, name in enumerate(topics.names)
    ]


def _map(topics: Topics, cards: Sequence[TopicCard], size: str, width: int, height: int) -> Map:
    """The map in one size, large circles first."""
    drawn = lay_out(topics, width, height, longest=30 if size == "wide" else 20)
    marks = []
    for k in np.argsort(-drawn.radii, kind="stable"):
        (x, y), radius = drawn.centres[k], float(drawn.radii[k])
        font = min(11, 1.9 * radius / len(str(k + 1)), 1.2 * radius)
        marks.append(Mark(cards[k], float(x), float(y), radius, font, drawn.labels[k]))
    return Map(size, width, height, marks)


def _all_topics(topics: Topics, cards: Sequence[TopicCard]) -> Grid:
    """All topics as a table to sort and to search."""
    own = topics.table()
    table: dict[str, list[Any]] = {
        "number": [card.number for card in cards],
        "topic": [card.name for card in cards],
        **{name: own[name] for name in ("level", "parent") if name in own},
        "kind": [card.origin for card in cards],
        "share": [card.share for card in cards],
        "main topic of": [card.main for card in cards],
        "labelled": [card.labelled for card in cards],
        "terms": own["terms"],
    }
    if topics.open:
        none = {"topic": NONE, "kind": "none", "share": topics.none_share, "labelled": topics.outsiders}
        for name, column in table.items():
            column.append(none.get(name))
    largest = max(*table["share"], 1e-30)
    return grid(
        "topic-table",
        "All topics",
        table,
        (*COLUMNS, Column("main topic of", "count")),
        bars={"share": [share / largest for share in table["share"]]},
        links={"topic": [card.key for card in cards] + [""] * topics.open},
    )


def _objective(history: Sequence[float]) -> Objective | None:
    """None if there are fewer than two finite values."""
    finite = [float(value) for value in history if math.isfinite(value)]
    if len(finite) < 2:
        return None
    high = max(finite)
    height = max(high - min(finite), 1e-30)
    points = [(600 * i / (len(finite) - 1), 4 + 72 * (high - v) / height) for i, v in enumerate(finite)]
    values: dict[str, list[Any]] = {"iteration": list(range(len(finite))), "objective": finite}
    table = grid("objective-table", "Objective by iteration", values)
    return Objective(points, f"{finite[0]:,.6g}", f"{finite[-1]:,.6g}", table)


def main_topics(topics: Topics) -> list[int]:
    """For each topic, the number of documents in which it is the largest part."""
    some = topics.proportions[topics.proportions.any(axis=1)]
    return [int(n) for n in np.bincount(some.argmax(axis=1), minlength=len(topics))]
