"""The topics file: one row per topic, with its parent, description and keywords. People and models write it."""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from topicsteer.labels.codebook import Codebook, Topic
from topicsteer.labels.forest import cycle
from topicsteer.system.values import NONE, is_missing

# Columns that are read, each under its own name first. Names are compared without regard to capital letters.
COLUMNS = {
    "topic": ("topic", "name", "theme", "label"),
    "parent": ("parent",),
    "description": ("description", "definition"),
    "keywords": ("keywords", "words", "terms"),
    "banned": ("banned", "banned words"),
}
# A column for people to read: keywords that a model proposes.
PROPOSED = "proposed"
# Characters that separate words in a cell; the first one that occurs counts.
SEPARATORS = (";", "|", ",")
# First characters of cells that spreadsheets treat as formulas; exports put an apostrophe before them.
FORMULA = tuple("=+-@\t\r")


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
    notes = [f"The column {name!r} is not read." for name in columns if name not in used.values() and name != PROPOSED]
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
            topics[name] = _joined(topics.get(name, Topic(len(topics) + 1, name)), about, keywords, banned)
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


def topic_columns(codebook: Codebook, proposed: Mapping[str, Sequence[str]] | None = None) -> dict[str, list[str]]:
    """The columns of a topics file; words are separated by semicolons, or are a list if a word has one.

    There is a column for parents if topics have some. Free topics below others are left out, since nobody named them.

    Parameters
    ----------
    codebook : Codebook
    proposed : mapping of topic to words, optional
        Further keywords, in a column that is not read again.

    Examples
    --------
    >>> topic_columns(Codebook.of_names(["price"], keywords={"price": ["cheap", "cost"]}))
    {'topic': ['price'], 'description': [''], 'keywords': ['cheap; cost'], 'banned': ['']}
    """
    parents, topics = codebook.parent_names, [topic for topic in codebook if not topic.found]
    found = {"topic": [str(topic.name) for topic in topics]}
    if any(name in parents for name in found["topic"]):
        found["parent"] = [str(parents.get(name, "")) for name in found["topic"]]
    found |= {
        "description": [topic.description for topic in topics],
        "keywords": [_cell(topic.keywords) for topic in topics],
        "banned": [_cell(topic.banned) for topic in topics],
    }
    return found if proposed is None else found | {PROPOSED: [_cell(proposed.get(name, ())) for name in found["topic"]]}


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
    for field, names in COLUMNS.items():
        first = next((name for name in names if name in plain), None)
        if first is not None:
            found[field] = plain[first]
    if "topic" not in found and len(columns) == 1:
        found["topic"] = next(iter(columns))
    if not columns:
        raise ValueError(
            "it is empty: expected a table with a column 'topic', and a column 'keywords' if you have some."
        )
    if "topic" not in found:
        raise ValueError(f"there is no column 'topic', only {', '.join(map(repr, columns))}.")
    return found


def _joined(topic: Topic, about: str, keywords: Sequence[str], banned: Sequence[str]) -> Topic:
    """The topic with a further description and further words, each once."""
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
    text = " ".join(str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell).split())
    return text[1:] if text[:1] == "'" and text[1:].startswith(FORMULA) else text


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


def _cell(words: Sequence[str]) -> str:
    """Words as one cell."""
    return "; ".join(words) if not any(";" in word for word in words) else json.dumps(list(words), ensure_ascii=False)
