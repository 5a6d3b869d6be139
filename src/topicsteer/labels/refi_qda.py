"""Codebooks as REFI-QDA files (.qdc), which NVivo, ATLAS.ti, MAXQDA, QualCoder and Taguette exchange.

A codebook is XML: codes with a name, a colour and a description, and codes inside codes. It is read without a document
type, so without entities, and within limits of size, number and depth.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from topicsteer import __version__
from topicsteer.labels.codebook import Codebook, Topic
from topicsteer.labels.topics_file import TopicsFile
from topicsteer.system.values import NONE

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
    notes = [f"{n:,} codes without a name of their own are not used."] if (n := _nameless(reader.codes)) else []
    shared = Counter(code.name for code in used)
    names = {id(code): code.path if shared[code.name] > 1 else code.name for code in used}
    twice = [name for name, n in Counter(names.values()).items() if n > 1]
    notes += [f"The code {name!r} occurs several times: its descriptions are joined." for name in twice]
    topics: dict[str, Topic] = {}
    for code in used:
        name, about = names[id(code)], " ".join("".join(code.texts).split())
        old = topics.get(name, Topic(len(topics) + 1, name))
        both = " ".join(dict.fromkeys(part for part in (old.description, about) if part))
        topics[name] = Topic(old.key, name, description=both)
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


def _nameless(codes: list[_Code]) -> int:
    return sum(code.codable and code.name in ("", NONE) for code in codes)
