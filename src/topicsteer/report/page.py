"""The report: one HTML file that opens offline, made from finished numbers."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from topicsteer import __version__
from topicsteer.analysis.column_formats import Grid, grid
from topicsteer.analysis.evaluation import COLUMNS as SCORE_COLUMNS
from topicsteer.analysis.evaluation import Evaluation
from topicsteer.analysis.explain import merged
from topicsteer.analysis.survey_design import AT_RANDOM
from topicsteer.analysis.topics import COLUMNS, Topics
from topicsteer.report.breakdown import Breakdown, TopicLink, share_part
from topicsteer.report.map_page import MappedDocuments, map_page
from topicsteer.system.files import write_text
from topicsteer.system.templates import render

# Scripts and style sheets of a page with charts and a document map.
SCRIPTS = ("document_map.js", "save_svg.js", "report.js")
STYLES = ("report.css", "charts.css", "document_map.css")
# The parts of a script that only a module may have.
_MODULE = re.compile(r"^import .*;\n|^export ", re.MULTILINE)


def page(template: str, title: str, *, scripts: Sequence[str] = (), **values: Any) -> str:
    """Fill a template of the report that extends base.html.

    Parameters
    ----------
    template : str
        Name of the file.
    title : str
        Of the page.
    scripts : sequence of str
        Names of the files of its script, if it has one. Their imports come before them.
    **values
        Content of the template.

    Returns
    -------
    str
        A whole HTML document.
    """
    from markupsafe import Markup

    style = " ".join(" ".join(map(_resource, STYLES)).split())
    code = '"use strict";\n' + "".join(_MODULE.sub("", _resource(name)) for name in scripts) if scripts else ""
    permitted = f"style-src {_source_hash(style)}" + (f"; script-src {_source_hash(code)}" if code else "")
    return render(
        f"report/templates/{template}",
        title=title,
        version=__version__,
        policy=f"default-src 'none'; {permitted}; base-uri 'none'; form-action 'none'",
        style=Markup(style),  # noqa: S704 - a file of this package
        script=Markup(code),  # noqa: S704 - a file of this package
        **values,
    )


def _resource(name: str) -> str:
    return files("topicsteer.report").joinpath(name).read_text("utf-8")


def _source_hash(text: str) -> str:
    """Return the name of an inline style or script in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# First character, one after the last, strength from 0 to 1.
Span = tuple[int, int, float]


@dataclass(frozen=True)
class Excerpt:
    """Pieces of a text in order.

    Parameters
    ----------
    pieces : tuple of (str, int)
        Text, and how strongly it is marked: 0 (not at all) to 4.
    after : int
        Number of characters that were left out.
    """

    pieces: tuple[tuple[str, int], ...]
    after: int


def excerpt(text: str, spans: Iterable[Span], limit: int = 700) -> Excerpt:
    """Mark some words of a document; a long document is cut to its beginning.

    Parameters
    ----------
    text : str
        The document.
    spans : iterable of (start, end, strength)
        Characters to mark, with a strength from 0 to 1. A span that leaves the text is ignored.
        Overlapping ones are merged.
    limit : int
        Number of characters. A text that is at most a fifth longer is not cut.

    Examples
    --------
    >>> excerpt("Rain & wind at noon", [(0, 4, 1.0), (7, 11, 0.3)]).pieces
    (('Rain', 4), (' & ', 0), ('wind', 2), (' at noon', 0))
    >>> excerpt("word " * 100, [], limit=9)
    Excerpt(pieces=(('word word', 0),), after=491)
    """
    some = ((start, stop, strength, 0) for start, stop, strength in spans if strength > 0)
    marks = [mark[:3] for mark in merged(some, len(text))]
    end = len(text)
    if end > 1.2 * limit:  # a note on a hidden line is worse than the line
        blank = text.rfind(" ", limit - limit // 10, limit)
        end = blank if blank >= 0 else limit
    pieces, at = [], 0
    for start, stop, strength in marks:
        if stop <= end:
            pieces += [(text[at:start], 0), (text[start:stop], min(max(int(strength * 4) + 1, 1), 4))]
            at = stop
    pieces.append((text[at:end], 0))
    return Excerpt(tuple(piece for piece in pieces if piece[0]), len(text) - end)


@dataclass(frozen=True)
class TopicCard:
    """A topic with its numbers, most distinctive terms and documents."""

    number: int
    name: str
    origin: str
    labelled: int | None
    terms: list[tuple[str, float]]
    examples: list[tuple[Hashable, Excerpt]]

    @property
    def key(self) -> str:
        """Id of its card."""
        return f"topic-{self.number}"


# Sections by their id, which is also the name of their template.
SECTIONS = {
    "shares": "Shares",
    "topics": "Topics",
    "documents": "Document map",
    "evaluation": "Evaluation",
    "all": "All topics",
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
    evaluation : Evaluation, optional
        Default: not evaluated.
    belief : str
        A sentence about documents that have none of the known topics.
    shares : sequence of Breakdown
        Shares of topics in the corpus, in groups and over time. Default: the report has no such section.
    documents : MappedDocuments, optional
        The document map. Default: the report has none.
    labelled : int, default=0
        Number of labelled documents, including documents with none of the topics.
    offered : sequence of str
        Further columns that look like groups or dates.
    notes : sequence of str
        Sentences on the fit, at the top.

    Examples
    --------
    >>> import numpy as np
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.eye(2), np.eye(2), ["a", "b"], np.array([1]))
    >>> data = ReportData("Drinks", topics, {0: [Example("a", "a leaf")]})
    >>> len(data.topics)
    2
    """

    title: str
    topics: Topics
    examples: Mapping[int, Sequence[Example]]
    evaluation: Evaluation | None = None
    belief: str = ""
    shares: Sequence[Breakdown] = ()
    documents: MappedDocuments | None = None
    labelled: int = 0
    offered: Sequence[str] = ()
    notes: Sequence[str] = ()


def render_report(data: ReportData) -> str:
    """Return the report as a whole HTML document.

    Parameters
    ----------
    data : ReportData
        What to show.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.eye(2), np.eye(2), ["a", "b"], np.array([1]))
    >>> text = render_report(ReportData("Drinks", topics, {}))
    >>> text.startswith("<!doctype html>"), "<h1>Drinks</h1>" in text, "Not evaluated" in text
    (True, True, True)
    """
    topics = _topics(data)
    known = data.topics.n_known
    absent = {"documents"} if data.documents is None else set()
    unknown = "" if data.shares or AT_RANDOM in data.belief else f"No share is known: {AT_RANDOM}."
    links = {card.name: TopicLink(card.key, card.origin) for card in topics}
    content = dict[str, Any](
        sections={key: name for key, name in SECTIONS.items() if key not in absent},
        numbers={
            "documents": len(data.topics.W),
            "terms": data.topics.H.shape[1],
            "known topics": known,
            "free topics": len(topics) - known,
            "labelled documents": data.labelled,
        },
        notes=[
            *data.notes,
            *(note for note in (data.belief, unknown) if note and not (data.shares and data.topics.open)),
        ],
        offered=data.offered,
        document_map=None if data.documents is None else map_page(data.documents),
        topics=topics,
        shares=[share_part(found, k, links) for k, found in enumerate(data.shares)],
        findings=() if data.evaluation is None else data.evaluation.findings,
        evaluation=None if data.evaluation is None else scorecard(data.evaluation),
        all_topics=_all_topics(data.topics, topics),
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
    >>> import numpy as np
    >>> topics = Topics(("tea", "free"), 1, np.array(["cup", "leaf"]), np.eye(2), np.eye(2), ["a", "b"], np.array([1]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(ReportData("Drinks", topics, {}), Path(folder) / "report.html")
    ...     [file.name for file in Path(folder).iterdir()]
    ['report.html']
    """
    write_text(path, render_report(data))


# --- content of the template ---


def _topics(data: ReportData) -> list[TopicCard]:
    """Return the cards of the topics, the largest first: by shares, or by mean memberships if they are not known."""
    topics = data.topics
    size = dict(zip(topics.names, topics.mean_memberships.tolist(), strict=True))
    for found in data.shares[:1]:
        size |= {topic: share.share for topic in found.topics for share in found.shares(topic).values()}
    return [
        TopicCard(
            k + 1,
            name,
            topics.kind(k),
            int(topics.labelled[k]) if topics.known(k) else None,
            topics.term_strengths(k, 8),
            [(example.id, excerpt(example.text, example.spans)) for example in data.examples.get(k, ())],
        )
        for k, name in sorted(enumerate(topics.names), key=lambda topic: -size[topic[1]])
    ]


def _all_topics(topics: Topics, cards: Sequence[TopicCard]) -> Grid:
    """Return all topics as a table to sort and to search."""
    table = topics.table(none=True)
    del table["mean membership"]  # people would read it as a share
    keys = [card.key for card in sorted(cards, key=lambda card: card.number)]
    links = {"topic": keys + [""] * topics.open}
    return grid("topic-table", "All topics", table, COLUMNS, links=links)


def scorecard(evaluation: Evaluation) -> Grid | None:
    """Arrange an evaluation as a table; None if nothing could be judged."""
    if not evaluation.judged:
        return None
    return grid("evaluation-topics", "Hidden labels of each topic", evaluation.shown(), SCORE_COLUMNS)
