"""The document map of a page in a short form."""

from __future__ import annotations

import base64
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topicsteer.analysis.column_formats import Column, Grid, grid
from topicsteer.analysis.map_layout import DocumentMap, sample_note
from topicsteer.system.templates import revealed, visible
from topicsteer.system.types import Array

# The greatest coordinate of a point in the short form.
UNITS = 65_535
# Bytes of all ids and of all texts on a page; with 100,000 points, the whole page stays under 15 MB.
ID_BYTES, TEXT_BYTES = 2_000_000, 9_000_000
# Characters of an id and of a text, tried in turn until all of them have room.
ID_LENGTHS = (60, 30, 15, 8)
TEXT_LENGTHS = (*(int(400 * 0.85**k) for k in range(20)), 0)


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
        "sample": sample_note(found.layout),
        "length": length if cut else 0,
        "labelled": bool(found.labelled.any()),
        "table": _table(found),
    }


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
    >>> layout = Layout(np.arange(1), np.array([[0.0, 1.0]], dtype=np.float32), 1.0, 1)
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
        "documents": [int(documents[k]) if k < size - 1 else None for k in shown],  # the last would be a share of none
        "labelled": labelled[shown].tolist(),
    }
    columns = (Column("kind", "origin"), Column("documents", "count"), Column("labelled", "count"))
    links = [f"topic-{k + 1}" if k < size - 1 else "" for k in shown]
    title = "Documents on the map by likeliest topic"
    return grid("document-map-table", title, table, columns, links={"likeliest topic": links})
