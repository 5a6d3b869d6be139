"""The maps of a page: the document map in a short form, and the layout of the topic map."""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from topicsteer.analysis.map_layout import DocumentMap, filling, sample_note
from topicsteer.analysis.table_columns import Column, Grid, grid
from topicsteer.analysis.topics import Topics
from topicsteer.system.templates import revealed, visible
from topicsteer.system.types import Array

# The greatest coordinate of a point in the short form.
UNITS = 65_535
# Bytes of all ids and of all texts on a page; with 100,000 points, the whole page stays under 15 MB.
ID_BYTES, TEXT_BYTES = 2_000_000, 9_000_000
# Characters of an id and of a text, tried in turn until all of them have room.
ID_LENGTHS = (60, 30, 15, 8)
TEXT_LENGTHS = (*(int(400 * 0.85**k) for k in range(20)), 0)
# Characters of a text in an exported table.
BEGINNING = 300


@dataclass(frozen=True, eq=False)
class MappedDocuments:
    """A document map with the ids and texts of its points.

    Parameters
    ----------
    map : DocumentMap
        The points.
    ids : sequence (n_points,)
        Ids of the documents.
    texts : sequence of str (n_points,), optional
        Default: the map has no texts.
    """

    map: DocumentMap
    ids: Sequence[Hashable]
    texts: Sequence[str] | None = None


def map_page(mapped: MappedDocuments) -> dict[str, Any]:
    """Return the section "Document map" of a report: JSON for the script, notes, and the same numbers as a table."""
    from markupsafe import Markup

    found = mapped.map
    ids, _ = fitting([str(key) for key in mapped.ids], ID_BYTES, ID_LENGTHS)
    texts, length = fitting(mapped.texts or [], TEXT_BYTES, TEXT_LENGTHS)
    cut = any(len(text) > length for text in mapped.texts or ())
    topics = [{"name": visible(name, 80), "kind": kind(found, k)} for k, name in enumerate(found.names)]
    points = short_form(found) | {"topics": topics, "open": bool(texts)}
    return {
        "points": Markup(script_json(points)),  # noqa: S704 - has no "<"
        "texts": Markup(script_json({"ids": ids, "texts": texts})),  # noqa: S704 - has no "<"
        "number": len(found),
        "by_words": found.layout.how != "topics",
        "sample": sample_note(found.layout),
        "length": length if cut else 0,
        "labelled": bool(found.labelled.any()),
        "table": _table(found),
    }


def map_table(mapped: MappedDocuments) -> dict[str, Any]:
    """Return the map as columns for other tools: the y axis points upwards, and both axes have the same unit."""
    found = mapped.map
    table: dict[str, Any] = {
        "id": list(mapped.ids),
        "x": found.layout.places[:, 0].astype(np.float64) * found.layout.aspect,
        "y": 1 - found.layout.places[:, 1].astype(np.float64),
        "topic": [found.names[k] for k in found.topic],
        "kind": [kind(found, k) for k in found.topic],
        "membership": found.membership.astype(np.float64),
        "labelled": found.labelled,
    }
    if mapped.texts is not None:
        table["text"] = [" ".join(text[: 2 * BEGINNING].split())[:BEGINNING] for text in mapped.texts]
    return table


def kind(found: DocumentMap, topic: int) -> str:
    """Return whether a topic of the map is known or free, or stands for none of the known ones."""
    if topic == len(found.names) - 1:
        return "none"
    return "known" if topic < found.n_known else "free"


def short_form(found: DocumentMap) -> dict[str, Any]:
    """Return the points as text: little-endian numbers in base 64.

    Examples
    --------
    >>> from topicsteer.analysis.map_layout import Layout
    >>> layout = Layout(np.arange(1), np.array([[0.0, 1.0]], dtype=np.float32), 1.0, "topics", 1)
    >>> found = DocumentMap(layout, ("tea", "(none)"), 1, np.array([1]), np.array([1.0]), np.array([True]))
    >>> short_form(found)
    {'aspect': 1.0, 'x': 'AAA=', 'y': '//8=', 'topic': 'AQA=', 'membership': '/w==', 'labelled': 'AQ=='}
    """
    return {
        "aspect": round(found.layout.aspect, 3),
        "x": packed(found.layout.places[:, 0] * UNITS, "<u2"),
        "y": packed(found.layout.places[:, 1] * UNITS, "<u2"),
        "topic": packed(found.topic, "<u2"),
        "membership": packed(255 * np.clip(found.membership, 0, 1), "u1"),
        "labelled": packed(found.labelled, "u1"),
    }


def packed(numbers: Array | np.ndarray[Any, Any], dtype: str) -> str:
    """Numbers, rounded, in base 64."""
    return base64.b64encode(np.rint(np.asarray(numbers, dtype=np.float64)).astype(dtype).tobytes()).decode()


def fitting(texts: Sequence[str], budget: int, lengths: Sequence[int]) -> tuple[list[str], int]:
    """Return texts on one line, cut to the greatest length with which all of them fit into a number of bytes.

    Examples
    --------
    >>> fitting(["a short text", "a text that is longer"], 30, (20, 8, 4))
    (['a short…', 'a text…'], 8)
    """
    lines = [" ".join(text[: 8 * lengths[0]].split()) for text in texts]
    for length in lengths:
        cut = [visible(line, length) if length else "" for line in lines]
        if sum(len(script_json(text).encode()) + 1 for text in cut) <= budget or length == lengths[-1]:
            break
    return cut if any(cut) else [], length


def script_json(value: object) -> str:
    """JSON that may stand in a script element of HTML: it contains no "<"."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _table(found: DocumentMap) -> Grid:
    """Return the map as a table: points and labelled points of each likeliest topic."""
    size = len(found.names)
    documents = np.bincount(found.topic, minlength=size)
    labelled = np.bincount(found.topic[found.labelled], minlength=size)
    shown = [k for k in range(size) if documents[k] or k < size - 1]
    table: dict[str, list[Any]] = {
        "likeliest topic": [revealed(found.names[k]) for k in shown],
        "kind": [kind(found, k) for k in shown],
        "documents": documents[shown].tolist(),
        "labelled": labelled[shown].tolist(),
    }
    columns = (Column("kind", "origin"), Column("documents", "count"), Column("labelled", "count"))
    links = [f"topic-{k + 1}" if k < size - 1 else "" for k in shown]
    title = "Documents on the map by likeliest topic"
    return grid("document-map-table", title, table, columns, links={"likeliest topic": links})


@dataclass(frozen=True)
class Label:
    """A name on the map: the place of its start, middle or end at half its height, and a line if it stands off."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"]
    line: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class TopicMap:
    """Centres (x, y) of the circles with y downwards, their radii, and their names; None for a name without room."""

    centres: Array
    radii: Array
    labels: tuple[Label | None, ...]


def lay_out(topics: Topics, width: float, height: float, *, font: float = 12, longest: int = 30) -> TopicMap:
    """Place circles without overlaps and names that cover nothing.

    Parameters
    ----------
    topics : Topics
        Positions, shares and names of these topics are used.
    width, height : float
        Size of the picture, in the unit of `font`.
    font : float
        Height of the letters.
    longest : int
        Greatest number of characters of a name; a longer one ends in ….

    Examples
    --------
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.eye(2), np.eye(2), ["a", "b"], np.array([1]))
    >>> drawn = lay_out(topics, 300, 200)
    >>> [label.text for label in drawn.labels]
    ['tea', 'free']
    """
    share = np.maximum(topics.share, 0)
    least = min(0.8 * font, 0.35 * np.sqrt(width * height / len(topics)))
    area = 0.12 * width * height / (np.pi * max(float((share / max(share.max(), 1e-30)).sum()), 1))
    most = max(min(2.4 * font, float(np.sqrt(area))), least)
    radii = np.maximum(most * np.sqrt(share / max(share.max(), 1e-30)), least)
    low = np.array([min(0.14 * width, 6 * font), 0.0]) + most + font / 2
    high = np.array([width, height]) - low
    unit = filling(topics.positions)
    unit[:, 1] = 1 - unit[:, 1]
    centres = _push_apart(low + unit * (high - low), radii, low, high, gap=font / 3)
    return TopicMap(centres, radii, tuple(_place(topics, centres, radii, width, height, font, longest)))


def _push_apart(centres: Array, radii: Array, low: Array, high: Array, gap: float) -> Array:
    """Move overlapping circles apart, each of a pair by half of the overlap."""
    # An invisibly small spiral separates circles on one spot, the same way each time.
    turn = 2.4 * np.arange(len(centres))
    centres = centres + 1e-3 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    for _ in range(300):
        between = centres[:, None] - centres[None]
        distance = np.linalg.norm(between, axis=2) + np.eye(len(centres)) * 1e9
        overlap = radii[:, None] + radii[None] + gap - distance
        if (overlap <= 0.01).all():
            break
        push = np.maximum(overlap, 0) / (2 * distance)
        centres = np.clip(centres + (push[:, :, None] * between).sum(axis=1), low, high)
    return np.asarray(centres)


def _place(
    topics: Topics, centres: Array, radii: Array, width: float, height: float, font: float, longest: int
) -> Sequence[Label | None]:
    """Return names next to their circles, largest circle first; None for a name without room."""
    taken = np.empty((0, 4))  # boxes of the names so far: left, top, right, bottom
    labels: list[Label | None] = [None] * len(topics)
    for k in np.argsort(-radii, kind="stable"):
        text = visible(" ".join(topics.names[k].split()), longest)
        length = text_width(text, font)
        for x, y in _places(centres[k], radii[k], length, font):
            box = np.array([x - 2, y - 0.6 * font, x + length + 2, y + 0.6 * font])
            if (box[:2] < 0).any() or box[2] > width or box[3] > height or _covers(box, centres, radii, taken):
                continue
            line = _line(box, centres[k], radii[k])
            if line is not None and _crosses(line, np.delete(centres, k, 0), np.delete(radii, k), taken):
                continue
            taken = np.vstack([taken, box])
            labels[k] = _label(box, centres[k, 0], text, line)
            break
    return labels


def _label(box: Array, middle: float, text: str, line: tuple[float, float, float, float] | None) -> Label:
    """Return a name anchored at its end nearest to the circle, since its true width is unknown."""
    left, right, y = float(box[0]) + 2, float(box[2]) - 2, float(box[1] + box[3]) / 2
    if left >= middle:
        return Label(left, y, text, "start", line)
    if right <= middle:
        return Label(right, y, text, "end", line)
    return Label((left + right) / 2, y, text, "middle", line)


def _covers(box: Array, centres: Array, radii: Array, taken: Array) -> bool:
    """Return whether a box lies on a circle or on a name."""
    nearest = np.clip(centres, box[:2], box[2:])
    if (np.linalg.norm(nearest - centres, axis=1) < radii + 1).any():
        return True
    return bool(((taken[:, :2] < box[2:]) & (taken[:, 2:] > box[:2])).all(axis=1).any())


def _line(box: Array, centre: Array, radius: float) -> tuple[float, float, float, float] | None:
    """Return the line from a circle to the box of its name; None if they are next to each other."""
    end = np.clip(centre, box[:2], box[2:])
    distance = float(np.linalg.norm(end - centre))
    if distance < radius + 0.5 * (box[3] - box[1]):
        return None
    begin = centre + (end - centre) * radius / distance
    return float(begin[0]), float(begin[1]), float(end[0]), float(end[1])


def _crosses(line: tuple[float, float, float, float], centres: Array, radii: Array, taken: Array) -> bool:
    """Return whether a line runs over a circle or a name."""
    steps = np.linspace(0, 1, 25)[:, None]
    points = np.array(line[:2]) * (1 - steps) + np.array(line[2:]) * steps
    over = np.linalg.norm(points[:, None] - centres[None], axis=2) < radii + 1
    inside = (points[:, None] > taken[None, :, :2]) & (points[:, None] < taken[None, :, 2:])
    return bool(over.any() or inside.all(axis=2).any())


def _places(centre: Array, radius: float, length: float, font: float) -> Iterator[tuple[float, float]]:
    """Yield places for a name, best first: left or right of its circle, above or below, farther off."""
    x, y = centre
    near, far = radius + 0.4 * font, radius + 0.75 * font
    aside = 0.75 * radius + 0.3 * font
    yield x + near, y
    yield x - near - length, y
    for level in (y + far, y - far):
        yield x - length / 2, level
    for level in (y + aside, y - aside):
        yield x + aside, level
        yield x - aside - length, level
    for distance in radius + font * np.array([2.0, 3.5, 5.0]):
        for turn in np.arange(16) * np.pi / 8:
            right, down = np.cos(turn), np.sin(turn)
            yield x + distance * right - length * (1 - right) / 2, y + distance * down


def text_width(text: str, font: float) -> float:
    """Approximate width of a text, in the unit of the letter height.

    Examples
    --------
    >>> text_width("tea", 10) < text_width("東京駅", 10)
    True
    """
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return font * (0.56 * (len(text) - wide) + 1.05 * wide)
