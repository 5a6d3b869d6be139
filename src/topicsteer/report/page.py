"""The report: one HTML file that opens offline, from finished numbers.

Nothing in it makes a request: style, script and pictures are inside, and its Content-Security-Policy permits only the
one style sheet and the one script, by their hashes. All text of the user is escaped.
"""

import base64
import hashlib
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topicsteer import __version__
from topicsteer.analysis.topics import Topics
from topicsteer.report.markup import (
    Span,
    Table,
    bar,
    cell,
    highlighted,
    kind,
    measured,
    passages,
    render_table,
    resource,
    words,
)
from topicsteer.report.scorecard import scorecard
from topicsteer.report.topic_layout import lay_out
from topicsteer.system.files import write_text
from topicsteer.system.safe_text import shown


@dataclass(frozen=True)
class Example:
    """A document to show for a topic.

    Parameters
    ----------
    id : hashable
        As the user has it.
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
    """Everything a report shows.

    Parameters
    ----------
    title : str
        Its heading.
    topics : Topics
        What the fit found.
    examples : mapping of int to sequence of Example
        Documents of topics, by the number of the topic.
    guidance : mapping of str to sequence
        A table, column -> values, one row a known topic; its name comes first. A column "took effect" of booleans is
        summed up in words.
    evaluation : mapping or None
        What `topicsteer.scorecard.scorecard` shows. None: not evaluated.
    settings : mapping of str to object
        What it takes to do the same again.
    history : sequence of float
        The objective at each iteration.

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
    guidance: Table
    evaluation: Mapping[str, Any] | None
    settings: Mapping[str, Any]
    history: Sequence[float]


def render(data: ReportData) -> str:
    """The report as HTML.

    Parameters
    ----------
    data : ReportData
        What to show.

    Returns
    -------
    str
        A whole HTML document.

    Examples
    --------
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.eye(2), np.eye(2), ["a", "b"], np.array([1]))
    >>> page = render(ReportData("Drinks", topics, {}, {}, None, {}, []))
    >>> page.startswith("<!doctype html>"), "<h1>Drinks</h1>" in page, "Not evaluated" in page
    (True, True, True)
    """
    style, script = resource("report.css"), resource("report.js")
    sections = {
        "map": ("Map", _map_section(data.topics)),
        "topics": ("Topics", _cards(data)),
        "guidance": ("Guidance", _guidance(data.guidance)),
        "evaluation": ("Evaluation", scorecard(data.evaluation)),
        "all": ("All topics", _all_topics(data.topics)),
        "settings": ("Settings", _settings(data.settings, data.history)),
    }
    links = "".join(f'<li><a href="#{key}">{name}</a></li>' for key, (name, _) in sections.items())
    main = "\n".join(
        f'<section id="{key}" aria-labelledby="{key}-title">\n<h2 id="{key}-title">{name}</h2>\n{body}\n</section>'
        for key, (name, body) in sections.items()
    )
    own = f"style-src {source_hash(style)}; script-src {source_hash(script)}"
    policy = f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="topicsteer {__version__}">
<title>{shown(data.title)}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the topics</a>
<header class="top">
<p class="over">Topic report</p>
<h1>{shown(data.title)}</h1>
{_numbers(data.topics)}
</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main id="main">
{main}
</main>
<footer><p>Made with topicsteer {__version__}. This file holds all it shows and needs no network.</p></footer>
<script>{script}</script>
</body>
</html>
"""


def write(data: ReportData, path: str | os.PathLike[str]) -> None:
    """Write the report; the file at `path` is the old one until the new one is whole.

    Parameters
    ----------
    data : ReportData
        What to show.
    path : path
        Where to. The folder must exist.

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


def source_hash(text: str) -> str:
    """What a Content-Security-Policy calls an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _numbers(topics: Topics) -> str:
    """The main numbers, and how much of the documents known and free topics take."""
    free = len(topics) - topics.n_known
    numbers = {
        "documents": len(topics.W),
        "terms": topics.H.shape[1],
        "known topics": topics.n_known,
        "free topics": free,
        "labels": int(np.sum(topics.labelled)),
    }
    items = "".join(f"<div><dt>{name}</dt><dd>{number:,}</dd></div>" for name, number in numbers.items())
    known, rest = (float(part.sum()) for part in np.split(topics.share, [topics.n_known]))
    others = f", {kind(False)} topics <b>{rest:.0%}</b>" if free else ""
    return (
        f'<dl class="numbers">{items}</dl>\n'
        '<svg class="split" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="free" width="100" height="1"/><rect class="known" width="{100 * known:.2f}" height="1"/></svg>'
        f'<p class="legend">{kind(True)} topics make up <b>{known:.0%}</b> of the documents{others}.</p>'
    )


def _map_section(topics: Topics) -> str:
    """The map in two sizes, of which the style sheet shows the one that fits."""
    wide, narrow = _map(topics, 1040, 560), _map(topics, 360, 430)
    return f'{passages()["map"]}<div class="plate wide">{wide}</div>\n<div class="plate narrow">{narrow}</div>'


def _map(topics: Topics, width: int, height: int) -> str:
    """The map as SVG: each circle is a link to its topic."""
    drawn = lay_out(topics, width, height, longest=30 if width > 500 else 20)
    marks = []
    for k in np.argsort(-drawn.radii, kind="stable"):
        (x, y), r, label = drawn.centres[k], drawn.radii[k], drawn.labels[k]
        name = ""
        if label:
            at = f'x="{label.x:.1f}" y="{label.y:.1f}" text-anchor="{label.anchor}"'
            name = f'<text class="name" {at}>{shown(label.text)}</text>'
            if label.line:
                name += '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(*label.line)
        size = min(11, 1.9 * r / len(str(k + 1)), 1.2 * r)
        marks.append(
            f'<a class="{"known" if topics.known(k) else "free"}" href="#topic-{k + 1}">'
            f"<title>{k + 1}. {shown(topics.names[k])}: {topics.share[k]:.1%}</title>"
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"/>'
            f'<text class="number" x="{x:.1f}" y="{y:.1f}" font-size="{size:.1f}">{k + 1}</text>{name}</a>'
        )
    head = f'<svg class="map" viewBox="0 0 {width} {height}" role="group" aria-label="Map of {len(topics)} topics">'
    return head + "\n".join(marks) + "</svg>"


def _cards(data: ReportData) -> str:
    """One card a topic: terms with bars, share, documents."""
    topics = data.topics
    mains = _main_topics(topics)
    cards = []
    for k, name in enumerate(topics.names):
        known = topics.known(k)
        facts = [f"<b>{topics.share[k]:.1%}</b> share", f"main topic of {mains[k]:,}"]
        if known:
            facts.append(f"{int(topics.labelled[k]):,} labelled")
        terms = "".join(
            f"<li><span>{shown(term, 60)}</span>{bar(strength)}</li>" for term, strength in topics.term_strengths(k, 8)
        )
        cards.append(
            f'<article class="card {"known" if known else "free"}" id="topic-{k + 1}" tabindex="-1">'
            f'<h3><span class="number">{k + 1}</span> <bdi>{shown(name)}</bdi> {kind(known)}</h3>'
            f'<p class="facts">{" · ".join(facts)}</p>'
            + (f'<ol class="terms">{terms}</ol>' if terms else '<p class="empty">No term belongs to this topic.</p>')
            + _examples(data.examples.get(k, ()), name)
            + "</article>"
        )
    search = _search("cards", "Find a topic by name, term or document")
    return f'{passages()["cards"]}{search}<div class="cards" id="cards">{"".join(cards)}</div>'


def _examples(examples: Sequence[Example], topic: str) -> str:
    """Documents of a topic, folded away."""
    if not examples:
        return ""
    items = "".join(
        f'<li><p class="id"><bdi>{shown(example.id, 120)}</bdi></p>'
        f'<p class="text" dir="auto">{highlighted(example.text, example.spans)}</p></li>'
        for example in examples
    )
    unseen = f'<span class="unseen"> of {shown(topic)}</span>'
    return f"<details><summary>{_count(len(examples), 'document')}{unseen}</summary><ul>{items}</ul></details>"


def _guidance(table: Table) -> str:
    """What became of the labels."""
    names = next(iter(table.values()), ())
    if not names:
        return '<p class="note">There were no labels: all topics are free.</p>'
    took, known = table["took effect"], len(names)
    idle = [f"<b><bdi>{shown(name)}</bdi></b>" for name, effect in zip(names, took, strict=True) if not effect]
    lead = f'<p class="note good">Your labels took effect in all {known:,} known topics.</p>'
    if idle:
        some = ", ".join(idle[:8]) + (f" and {len(idle) - 8:,} more" if len(idle) > 8 else "")
        lead = (
            f'<p class="note bad">Your labels took effect in {known - len(idle):,} of {known:,} known topics. '
            f"They did not in {some}: label more of their documents, or look whether their labels are right.</p>"
        )
    says = passages()["columns"]
    meanings = "".join(f"<dt>{column}</dt><dd>{says[column]}</dd>" for column in table if column in says)
    shown_table = render_table(table, "guidance-table", "What became of the labels of each known topic")
    return f'{lead}{shown_table}<dl class="meanings">{meanings}</dl>'


def _all_topics(topics: Topics) -> str:
    """All topics as a table to sort and to search."""
    table, largest = topics.table(), max(topics.share.max(), 1e-30)
    columns: Table = {
        "number": range(1, len(topics) + 1),
        **{name: table[name] for name in ("topic", "kind", "share")},
        "main topic of": _main_topics(topics),
        "labelled": [*topics.labelled.tolist(), *[None] * (len(topics) - topics.n_known)],
        "terms": table["terms"],
    }
    ready = {
        "topic": [f'<a href="#topic-{k + 1}">{cell(name)}</a>' for k, name in enumerate(topics.names)],
        "kind": [kind(topics.known(k)) for k in range(len(topics))],
        "share": [measured(share / largest, cell(share, percent=True)) for share in table["share"]],
    }
    return _search("topic-table", "Find in this table") + render_table(
        columns, "topic-table", "All topics", ready=ready
    )


def _settings(settings: Mapping[str, Any], history: Sequence[float]) -> str:
    """What it takes to do the same again, and how the fit went."""
    rows = "".join(
        f'<div><dt>{shown(words(name))}</dt><dd><code dir="auto">{shown(value, 2000)}</code></dd></div>'
        for name, value in settings.items()
    )
    parts = [f'<dl class="settings">{rows}</dl>'] if rows else []
    finite = [float(value) for value in history if math.isfinite(value)]
    if len(finite) > 1:
        low, high = min(finite), max(finite)
        height = max(high - low, 1e-30)
        points = " ".join(
            f"{600 * i / (len(finite) - 1):.1f},{4 + 72 * (high - v) / height:.1f}" for i, v in enumerate(finite)
        )
        parts.append(
            '<figure class="spark"><svg viewBox="0 0 600 80" preserveAspectRatio="none" role="img" '
            f'aria-label="Objective by iteration, falling from {finite[0]:,.6g} to {finite[-1]:,.6g}">'
            f'<polyline points="{points}"/></svg><figcaption>Objective by iteration: from {finite[0]:,.6g} to '
            f"<b>{finite[-1]:,.6g}</b> in {_count(len(finite) - 1, 'step')}.</figcaption></figure>"
        )
    return "\n".join(parts) or '<p class="note">No settings were given.</p>'


def _main_topics(topics: Topics) -> list[int]:
    """For each topic the number of documents of which it is the largest."""
    some = topics.proportions[topics.proportions.any(axis=1)]
    return [int(n) for n in np.bincount(some.argmax(axis=1), minlength=len(topics))]


def _search(target: str, label: str) -> str:
    """A field that the script shows and listens to."""
    return (
        f'<p class="search" hidden><label for="{target}-search">{label}</label>'
        f'<input type="search" id="{target}-search" data-filter="{target}" autocomplete="off">'
        f'<output for="{target}-search" aria-live="polite"></output></p>'
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
