"""The paper trail: sections of facts and tables, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from topicsteer.analysis.column_formats import Column, typed
from topicsteer.system.templates import visible

# Characters with a meaning in Markdown, at any place of a line.
MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&$!])")
# Greatest number of characters of a fact.
LONGEST = 2_000


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Parameters
    ----------
    title : str
        Its heading.
    facts : mapping of str to str
        Names and values.
    table : mapping of str to sequence
        Columns of a table; may be empty.
    columns : sequence of Column
        Kinds of its columns.
    notes : sequence of str
        Sentences.
    """

    title: str
    facts: Mapping[str, str] = field(default_factory=dict)
    table: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    columns: Sequence[Column] = ()
    notes: Sequence[str] = ()


def markdown(title: str, sections: Sequence[Section]) -> str:
    r"""The page as Markdown; names of topics are text, whatever characters they have.

    Examples
    --------
    >>> print(markdown("Methods of <a>", [Section("Labels", {"documents": "3"})]))
    # Methods of \<a\>
    <BLANKLINE>
    ## Labels
    <BLANKLINE>
    - documents: 3
    <BLANKLINE>
    """
    blocks = [f"# {escaped(title)}"]
    for section in sections:
        blocks.append(f"## {escaped(section.title)}")
        if section.facts:
            facts = (f"- {escaped(name)}: {escaped(value)}" for name, value in section.facts.items())
            blocks.append("\n".join(facts))
        if section.table:
            blocks.append(_table(section))
        blocks += map(escaped, section.notes)
    return "\n\n".join(blocks) + "\n"


def escaped(text: str) -> str:
    """Text as Markdown: one line, without hidden characters, and without markup of its own."""
    return MARKUP.sub(r"\\\1", " ".join(visible(text, LONGEST).split()))


def _table(section: Section) -> str:
    """Return a table of Markdown."""
    columns = typed(section.table, section.columns)
    head = [escaped(column.name) for column in columns]
    rule = ["---:" if column.numeric else "---" for column in columns]
    rows = zip(*(section.table[column.name] for column in columns), strict=True)
    cells = [[escaped(column.format(v)) for column, v in zip(columns, row, strict=True)] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *cells))
