"""Options of the readers: columns, encoding, label file and bad rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from topicsteer.corpora.read_report import OnError
from topicsteer.system.types import JSON

# One column, or several.
Names: TypeAlias = str | Sequence[str]


@dataclass(frozen=True)
class ReadOptions:
    """Options of a reader, described in `read_table`; the reader chooses where an option is None.

    Parameters
    ----------
    text, labels, id, forbidden : str, optional
        Names of the columns. Several text columns are joined. Labels may be in several columns of 0 and 1. ``False``
        for labels, id or forbidden: no column holds them. With a label file, labels and forbidden name its columns.
        ``labels="folders"`` takes the names of the folders as labels of their files.
    separator, encoding, delimiter, sheet : str, optional
        Separator of labels in a cell, encoding of the file, delimiter of its fields, and sheet of a workbook.
    label_file : path, optional
        A second file with the labels.
    on_error : {"skip", "raise"}, default="skip"
        Leave bad rows out, or raise an error.
    like : ReadOptions, optional
        Columns of an earlier source, such as the training documents of a model. They are chosen where an option is
        None and the source has them.

    Examples
    --------
    >>> ReadOptions(text="body").labels is None
    True
    >>> ReadOptions(text=["title", "body"]).text
    ('title', 'body')
    """

    text: Names | None = None
    labels: Names | Literal[False] | None = None
    id: str | Literal[False] | None = None
    forbidden: str | Literal[False] | None = None
    separator: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    label_file: str | Path | None = None
    on_error: OnError = "skip"
    sheet: str | None = None
    like: ReadOptions | None = None

    def __post_init__(self) -> None:
        for name in ("text", "labels"):
            given = getattr(self, name)
            if given is not None and given is not False and not isinstance(given, str):
                names = tuple(given)
                object.__setattr__(self, name, names[0] if len(names) == 1 else names or None)
        if self.like is not None:
            for name in ("separator", "encoding", "delimiter", "sheet"):
                if getattr(self, name) is None:
                    object.__setattr__(self, name, getattr(self.like, name))

    def given(self) -> dict[str, Any]:
        """The options by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_json(self) -> dict[str, JSON]:
        """The options that describe a source, without values of None."""
        found = {name: value for name, value in self.given().items() if name in REMEMBERED and value is not None}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ReadOptions:
        """The options from the values of :meth:`to_json`."""
        return cls(**{name: value for name, value in found.items() if name in REMEMBERED})

    def after(self, found: Mapping[str, Any]) -> ReadOptions:
        """These options, with the columns of an earlier source from :meth:`to_json` where they are None."""
        return replace(self, like=self.from_json(found)) if found else self


# Options that describe a source, and that a model remembers.
REMEMBERED = ("text", "labels", "id", "forbidden", "separator", "encoding", "delimiter", "sheet")


def without_labels(options: ReadOptions | None) -> ReadOptions | None:
    """The options of a table whose labels come from another file."""
    return None if options is None else replace(options, labels=None, forbidden=None)
