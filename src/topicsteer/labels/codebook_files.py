"""Codebooks in files: tables of topics, and REFI-QDA files (.qdc) of NVivo, ATLAS.ti, MAXQDA and others."""

from __future__ import annotations

import difflib
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from topicsteer import __version__
from topicsteer.labels.codebook import Codebook, Topic
from topicsteer.labels.forest import cycle
from topicsteer.system.templates import unguarded
from topicsteer.system.values import NONE, is_missing

NAMESPACE = "urn:QDA-XML:codebook:1.0"
# Limits: bytes of a file, codes, and levels of codes.
LARGEST, MOST_CODES, DEEPEST = 8 << 20, 20_000, 50
# Codes of the same codebook keep their identity from export to export.
_IDENTITY = uuid.UUID("6f0c1f6e-5f0b-4c58-9a55-3a8f3c1d7d21")
# Characters that XML cannot hold.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class _Code:
    name: str
    codable: bool
    above: _Code | None
    texts: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The names of the code and of the codes around it."""
        return self.name if self.above is None else f"{self.above.path} / {self.name}"


class _Reader:
    """Collects the codes of a codebook while expat parses it."""

    def __init__(self) -> None:
        self.codes: list[_Code] = []
        self._open: list[_Code] = []
        self._depth, self._describing = 0, False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        self._depth += 1
        if self._depth == 1 and tag != "CodeBook":
            raise ValueError(f"it begins with <{tag[:40]}>, but a REFI-QDA codebook begins with <CodeBook>")
        if self._depth > DEEPEST:
            raise ValueError(f"codes have more than {DEEPEST} levels")
        if tag == "Code":
            if len(self.codes) == MOST_CODES:
                raise ValueError(f"it has more than {MOST_CODES:,} codes")
            name = " ".join(attributes.get("name", "").split())
            codable = attributes.get("isCodable", "true").strip().lower() not in ("false", "0")
            self.codes.append(_Code(name, codable, self._open[-1] if self._open else None))
            self._open.append(self.codes[-1])
        self._describing = tag == "Description"

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._describing = False
        if tag.rpartition(" ")[2] == "Code":
            self._open.pop()

    def text(self, text: str) -> None:
        if self._describing and self._open:
            self._open[-1].texts.append(text)

    @staticmethod
    def refuse(*_: object) -> None:
        raise ValueError("it has a document type, which a codebook never needs: export it again")


def parse_codebook(data: bytes) -> TopicsFile:
    """Read the topics of a REFI-QDA codebook.

    A code that only groups others is no topic. Equal names on different levels are joined with the names above them.

    Parameters
    ----------
    data : bytes
        The content of a .qdc file.

    Returns
    -------
    TopicsFile

    Raises
    ------
    ValueError
        If it is no codebook, or exceeds a limit.

    Examples
    --------
    >>> code = b'<Code name="tea"><Description>hot</Description></Code>'
    >>> found = parse_codebook(b"<CodeBook><Codes>" + code + b"</Codes></CodeBook>")
    >>> [(topic.name, topic.description) for topic in found.codebook]
    [('tea', 'hot')]
    """
    if len(data) > LARGEST:
        raise ValueError(f"it has {len(data):,} bytes; codebooks of up to {LARGEST >> 20} MB are read")
    reader, parser = _Reader(), expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = reader.text, reader.refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ValueError(f"it is no XML file ({error})") from None
    except LookupError as error:  # of the declaration of the file
        raise ValueError(f"it has an {error}; export it as UTF-8") from None
    used = [code for code in reader.codes if code.codable and code.name and code.name != NONE]
    notes = []
    if nameless := sum(code.codable and code.name in ("", NONE) for code in reader.codes):
        notes.append(f"{nameless:,} codes without a name of their own are not used.")
    shared = Counter(code.name for code in used)
    names = {id(code): code.path if shared[code.name] > 1 else code.name for code in used}
    twice = [name for name, n in Counter(names.values()).items() if n > 1]
    notes += [f"The code {name!r} occurs several times: its descriptions are joined." for name in twice]
    topics: dict[str, Topic] = {}
    for code in used:
        name, about = names[id(code)], " ".join("".join(code.texts).split())
        topics[name] = joined_topic(topics.get(name, Topic(len(topics) + 1, name)), about)
    if not topics:
        raise ValueError("no code in it can be a topic: export a codebook with codes")
    if inside := sum(code.above is not None for code in used):
        notes.append(f"{inside:,} codes lie inside others. They become topics on one level.")
    return TopicsFile(Codebook(tuple(topics.values())), tuple(notes))


def write_codebook(codebook: Codebook, colours: Mapping[int, str] | None = None) -> str:
    """Write topics as a REFI-QDA codebook; keywords are a line of the description.

    Parameters
    ----------
    codebook : Codebook
        The topics.
    colours : mapping of int to str, optional
        Colours by key, such as "#3b7dd8".

    Examples
    --------
    >>> print(write_codebook(Codebook.of_names(["tea & milk"])).splitlines()[3].split(" guid")[0])
    <Code name="tea &amp; milk" isCodable="true"
    """
    lines = ['<?xml version="1.0" encoding="utf-8"?>']
    lines += [f'<CodeBook xmlns="{NAMESPACE}" origin={_attribute(f"topicsteer {__version__}")}>', "<Codes>"]
    for topic in codebook:
        guid = str(uuid.uuid5(_IDENTITY, f"{topic.key} {_NOT_XML.sub('', str(topic.name))}")).upper()
        colour = f' color="{colours[topic.key]}"' if colours and colours.get(topic.key) else ""
        words = f"Keywords: {', '.join(topic.keywords)}" if topic.keywords else ""
        about = escape(_NOT_XML.sub("", "\n".join(part for part in (topic.description, words) if part)))
        described = f"<Description>{about}</Description>" if about else ""
        name = _attribute(str(topic.name))
        lines.append(f'<Code name={name} isCodable="true" guid="{guid}"{colour}>{described}</Code>')
    return "\n".join([*lines, "</Codes>", "</CodeBook>", ""])


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("", text))


# Columns that are read, each under its own name first. Names are compared without regard to capital letters.
COLUMNS = {
    "topic": ("topic", "name", "theme", "label"),
    "parent": ("parent",),
    "description": ("description", "definition"),
    "keywords": ("keywords", "words", "terms"),
    "banned": ("banned", "banned words"),
}
# Characters that separate words in a cell; the first one that occurs counts.
SEPARATORS = (";", "|", ",")


@dataclass(frozen=True)
class TopicsFile:
    """Topics of a file, and one sentence per row or word that may be a mistake.

    Parameters
    ----------
    codebook : Codebook
    notes : tuple of str
    """

    codebook: Codebook
    notes: tuple[str, ...] = ()


def parse_topics(columns: Mapping[str, Sequence[object]], places: Sequence[str]) -> TopicsFile:
    """Topics from the columns of a table: topic, and optionally parent, description, keywords and banned.

    Rows with the same topic are joined. Words in a cell are separated by ``;``, ``|`` or ``,``, or are a list. No word
    is dropped: whatever cannot be used is quoted in a note.

    Parameters
    ----------
    columns : mapping of str to sequence
        Cells by column.
    places : sequence of str
        The place of each row in the file, such as "line 2".

    Raises
    ------
    ValueError
        If no column has topics, or no row has one. If a parent is not a topic of the file, a topic has two parents, or
        topics are below each other.

    Examples
    --------
    >>> found = parse_topics({"topic": ["price", "delivery"], "keywords": ["cheap; cost", "late; cost"]}, ["1", "2"])
    >>> [topic.keywords for topic in found.codebook]
    [('cheap', 'cost'), ('late', 'cost')]
    >>> print(*found.notes)
    The keyword 'cost' belongs to two topics: 'price' and 'delivery'. It does not separate them.
    """
    used = _used_columns(columns)
    topics: dict[str, Topic] = {}
    parents: dict[str, tuple[str, str]] = {}  # name of the parent, and place of the row
    notes = [f"The column {name!r} is not read." for name in columns if name not in used.values()]
    for row, place in enumerate(places):
        cells = {field: columns[name][row] for field, name in used.items()}
        name, about = _text(cells["topic"]), _text(cells.get("description"))
        keywords, banned = (_words(cells.get(field)) for field in ("keywords", "banned"))
        if not name:
            rest = "; ".join(part for part in (about, *keywords, *banned) if part)
            notes.append(f"{place} has no topic" + (f", so this is not used: {rest}." if rest else " and is empty."))
        elif name == NONE:
            notes.append(f"{place} has the name {NONE!r}, which marks documents without a topic. It is not used.")
        else:
            if name in topics:
                notes.append(f"{place} names the topic {name!r} again: its words are added to the earlier ones.")
            topics[name] = joined_topic(topics.get(name, Topic(len(topics) + 1, name)), about, keywords, banned)
            if parent := _text(cells.get("parent")):
                before, first = parents.setdefault(name, (parent, place))
                if before != parent:
                    raise ValueError(
                        f"{name!r} has two parents, {before!r} ({first}) and {parent!r} ({place}): keep one of them."
                    )
    if not topics:
        raise ValueError(
            f"no row has a topic: write one row per topic. {' '.join(notes) or 'There are no rows below the header.'}"
        )
    _check_parents(parents, list(topics))
    book = Codebook(tuple(topics.values())).with_parents({name: parent for name, (parent, _) in parents.items()})
    return TopicsFile(book, (*notes, *_shared_words(topics.values())))


def _check_parents(parents: Mapping[str, tuple[str, str]], names: Sequence[str]) -> None:
    """Raise ValueError, with the place in the file, for a parent that is no topic, and for a cycle."""
    for name, (parent, place) in parents.items():
        if parent not in names:
            near = difflib.get_close_matches(parent, names, n=1)
            advice = f"Did you mean {near[0]!r}?" if near else "Add a row for it."
            raise ValueError(f"{place} puts {name!r} under {parent!r}, which is not a topic of this file. {advice}")
    ring = cycle([names.index(parents[name][0]) if name in parents else -1 for name in names])
    if ring:
        links = ", ".join(f"{names[k]!r} is under {parents[names[k]][0]!r} ({parents[names[k]][1]})" for k in ring)
        raise ValueError(f"topics are below themselves: {links}. Remove one of these parents.")


def _used_columns(columns: Mapping[str, Sequence[object]]) -> dict[str, str]:
    """The column of the table for each field; a table of one column has topics."""
    found: dict[str, str] = {}
    plain = {name.strip().casefold(): name for name in reversed(list(columns))}
    for part, names in COLUMNS.items():
        first = next((name for name in names if name in plain), None)
        if first is not None:
            found[part] = plain[first]
    if "topic" not in found and len(columns) == 1:
        found["topic"] = next(iter(columns))
    if not columns:
        raise ValueError(
            "it is empty: expected a table with a column 'topic', and a column 'keywords' if you have some."
        )
    if "topic" not in found:
        raise ValueError(f"there is no column 'topic', only {', '.join(map(repr, columns))}.")
    return found


def joined_topic(topic: Topic, about: str, keywords: Sequence[str] = (), banned: Sequence[str] = ()) -> Topic:
    """Return the topic with a further description and further words, each once."""
    return replace(
        topic,
        description=" ".join(dict.fromkeys(part for part in (topic.description, about) if part)),
        keywords=tuple(dict.fromkeys((*topic.keywords, *keywords))),
        banned=tuple(dict.fromkeys((*topic.banned, *banned))),
    )


def _shared_words(topics: Iterable[Topic]) -> list[str]:
    """Notes on keywords that several topics have."""
    owners: dict[str, list[str]] = {}
    for topic in topics:
        for word in dict.fromkeys(word.casefold() for word in topic.keywords):
            owners.setdefault(word, []).append(repr(topic.name))
    many = {2: "two", 3: "three"}
    return [
        f"The keyword {word!r} belongs to {many.get(len(names), len(names))} topics: {', '.join(names[:-1])} and "
        f"{names[-1]}. It does not separate them."
        for word, names in owners.items()
        if len(names) > 1
    ]


def _text(cell: object) -> str:
    """The text of a cell on one line, "" for a missing one."""
    if is_missing(cell):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return unguarded(" ".join(str(cell).split()))


def _words(cell: object) -> list[str]:
    """The words of a cell: a list, or a text with separators."""
    if isinstance(cell, str) and cell.strip().startswith("["):
        with suppress(ValueError):
            cell = json.loads(cell)
    if not isinstance(cell, str) and isinstance(cell, Iterable):
        parts: Iterable[object] = cell
    else:
        text = _text(cell)
        separator = next((mark for mark in SEPARATORS if mark in text), None)
        parts = text.split(separator) if separator else [text]
    return [word for word in dict.fromkeys(map(_text, parts)) if word]
