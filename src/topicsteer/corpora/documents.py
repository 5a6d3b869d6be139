"""Documents, the result of every reader; the options of readers, and their report of guesses and bad rows."""

from __future__ import annotations

import itertools
import json
import mmap
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from topicsteer.system.types import JSON
from topicsteer.system.values import NONE, fold, plain_id

_encode = json.JSONEncoder(ensure_ascii=False).encode


class DiskSequence(Sequence[Any]):
    """A sequence in two files: the values as lines of JSON, and the end of each line.

    Each value is read on access and not kept in memory.

    Parameters
    ----------
    path : path without ending
        The path given to `DiskSequenceWriter`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with DiskSequenceWriter(Path(folder) / "labels") as writer:
    ...         writer.extend([["tea"], [], ["coffee", "milk"]])
    ...     sequence = DiskSequence(Path(folder) / "labels")
    ...     sequence[2], sequence[-1:], len(sequence)
    (['coffee', 'milk'], [['coffee', 'milk']], 3)
    """

    def __init__(self, path: Path) -> None:
        self._lines, ends = _files(path)
        empty = ends.stat().st_size == 0  # An empty file cannot be mapped.
        self._ends: NDArray[np.int64] = np.empty(0, np.int64) if empty else np.memmap(ends, np.int64, "r")
        size = self._lines.stat().st_size
        if size != (0 if empty else self._ends[-1]):
            raise ValueError(f"{self._lines} is damaged: it has {size} bytes, not {0 if empty else self._ends[-1]}.")
        with self._lines.open("rb") as file:
            self._data: bytes | mmap.mmap = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[Any]:
        with self._lines.open("rb") as file:
            yield from map(json.loads, file)

    def __getitem__(self, place: int | slice) -> Any:
        row = range(len(self))[place]
        if isinstance(row, range):
            return [self[one] for one in row]
        return json.loads(self._data[self._ends[row - 1] if row else 0 : self._ends[row]])


class DiskSequenceWriter(ExitStack):
    """Writes a `DiskSequence`.

    Parameters
    ----------
    path : path without ending
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        for file in _files(path):
            # Delete the old files instead of truncating them: an open sequence still reads them.
            file.unlink(missing_ok=True)
        self._lines, self._ends = (self.enter_context(file.open("wb")) for file in _files(path))
        self._end = 0

    def extend(self, values: Iterable[object]) -> None:
        """Append values that JSON can represent."""
        lines = [_encode(value).encode() + b"\n" for value in values]
        ends = self._end + np.cumsum([len(line) for line in lines], dtype=np.int64)
        self._lines.write(b"".join(lines))
        self._ends.write(ends.tobytes())
        self._end = int(ends[-1]) if lines else self._end


def _files(path: Path) -> tuple[Path, Path]:
    return Path(f"{os.fspath(path)}.jsonl"), Path(f"{os.fspath(path)}.ends")


# One column, or several.
Names: TypeAlias = str | Sequence[str]


class ReadKeywords(TypedDict, total=False):
    """The options of `ReadOptions` as keyword arguments of `read_table` and `read_labels`."""

    text: Names | None
    labels: Names | Literal[False] | None
    id: str | Literal[False] | None
    forbidden: str | Literal[False] | None
    separator: str | None
    encoding: str | None
    delimiter: str | None
    label_file: str | Path | None
    label_options: Mapping[str, str] | None
    sheet: str | None
    like: ReadOptions | None


@dataclass(frozen=True)
class ReadOptions:
    """Options of a reader, described in `read_table`; the reader chooses where an option is None.

    Parameters
    ----------
    text, labels, id, forbidden : str, optional
        Names of the columns. Several text columns are joined. Labels may be in several columns of 0 and 1. ``False``
        for labels, id or forbidden: no column holds them.
        ``labels="folders"`` takes the names of the folders as labels of their files.
    separator, encoding, delimiter, sheet : str, optional
        Separator of labels in a cell, encoding of the file, delimiter of its fields, and sheet of a workbook.
    label_file : path, optional
        A second file with labels, in addition to the table.
    label_options : mapping of str to str, optional
        Options of the label file: labels, id, forbidden, separator, encoding, delimiter, sheet. Default: guessed.
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
    label_options: Mapping[str, str] | None = None
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


# Options for a source with guessed columns.
DEFAULT = ReadOptions()
# Options that describe a source, and that a model remembers.
REMEMBERED = ("text", "labels", "id", "forbidden", "separator", "encoding", "delimiter", "sheet")


def without_labels(options: ReadOptions | None) -> ReadOptions | None:
    """The options of a table whose labels come from another file."""
    return None if options is None else replace(options, labels=None, forbidden=None)


# Number of problems in a printed report, each with the first of its rows.
SHOWN_ROWS = 20
# Number of rows with the same problem that are named.
SHOWN_PLACES = 5


class ReadError(ValueError):
    """A file or table could not be read as documents; the message names the problem, its place and a remedy.

    Examples
    --------
    >>> issubclass(ReadError, ValueError)
    True
    """


class EmptyTable(ReadError):
    """A table with a header, or an empty .jsonl file: it has no rows, neither good nor bad ones.

    Parameters
    ----------
    message : str
    columns : sequence of str
        Names of the columns.
    id : str, optional
        The column of ids, by its name.

    Examples
    --------
    >>> EmptyTable("a.csv: the table is empty", ["id", "text"], "id").columns
    ('id', 'text')
    """

    def __init__(self, message: str, columns: Sequence[str] = (), id: str | None = None) -> None:
        super().__init__(message)
        self.columns, self.id = tuple(columns), id


class UnclearLabels(ReadError):
    """A table with several columns that may hold labels; ``choices`` are their names.

    Examples
    --------
    >>> UnclearLabels("which column?", ["theme", "city"]).choices
    ['theme', 'city']
    """

    def __init__(self, message: str, choices: list[str]) -> None:
        super().__init__(message)
        self.choices = choices


@dataclass(frozen=True)
class BadRow:
    """A row that could not be used.

    Parameters
    ----------
    place : str
        ``"line 7"`` of a text file, ``"row 7"`` of a table without lines (both counted from 1), or the name of a file
        in a folder.
    problem : str
        The reason.

    Examples
    --------
    >>> print(BadRow("line 7", "empty text"))
    line 7: empty text
    """

    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


@dataclass(frozen=True)
class ReadReport:
    """Guesses of a reader, and the rows that it left out.

    Parameters
    ----------
    source : str
        The file or kind of table that was read.
    guesses : tuple of str
        One phrase per guess, such as ``"text is column 'body'"``.
    bad_rows : tuple of BadRow
        The rows that were left out, in the order of the source.
    left_out : tuple of int
        Numbers of the rows of the table that were left out, from 0.
    treatment : str
        The fate of the bad rows: "kept" if they are documents too, such as an empty text for `predict`.

    Examples
    --------
    >>> print(ReadReport("a.csv", ("text is column 'body'",), (BadRow("line 7", "empty text"),)))
    a.csv: text is column 'body'
    a.csv: 1 bad row, left out
      line 7: empty text
    """

    source: str = ""
    guesses: tuple[str, ...] = ()
    bad_rows: tuple[BadRow, ...] = ()
    left_out: tuple[int, ...] = ()
    treatment: str = "left out"

    def __str__(self) -> str:
        count = len(self.bad_rows)
        lines = [f"{self.source}: {guess}" for guess in self.guesses]
        lines += [f"{self.source}: {count:,} bad row{'s' * (count > 1)}, {self.treatment}"] if count else []
        places: dict[str, list[str]] = {}
        for row in self.bad_rows:
            places.setdefault(row.problem, []).append(row.place)
        lines += [f"  {_joined(own)}: {problem}" for problem, own in list(places.items())[:SHOWN_ROWS]]
        rest = sum(map(len, list(places.values())[SHOWN_ROWS:]))
        return "\n".join([*lines, f"  and {rest:,} more"] if rest else lines)


def _joined(places: list[str]) -> str:
    """Places with the same problem in a few words.

    Examples
    --------
    >>> _joined(["line 7"]), _joined(["line 7", "line 9"]), _joined([f"row {i}" for i in range(8)])
    ('line 7', 'lines 7, 9', 'rows 0, 1, 2, 3, 4 and 3 more')
    """
    if len(places) == 1:
        return places[0]
    units = {place.rpartition(" ")[0] for place in places}
    shown = places[:SHOWN_PLACES]
    if units in ({"line"}, {"row"}):
        shown = [place.rpartition(" ")[2] for place in shown]
        shown[0] = f"{units.pop()}s {shown[0]}"
    more = len(places) - SHOWN_PLACES
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Documents:
    """Texts with their ids, labels and further columns, row by row.

    Parameters
    ----------
    ids : sequence of str or int
        One per document. Whole floats become integers, and other values become text.
    texts : sequence of str
        The documents.
    labels : sequence of sequences of str, optional
        The topics of each document. An empty list marks an unlabelled document, and ``["(none)"]`` a document that has
        none of the topics. Default: all unlabelled.
    columns : mapping of str to sequence, optional
        All other columns of the source.
    forbidden : sequence of sequences of str, optional
        The topics that a document does *not* have. Default: none.
    report : ReadReport, optional
        Guesses and bad rows of the reader.
    numbered : bool, default=False
        Whether the ids are row numbers, because the source has no ids.
    reading : ReadOptions, optional
        The columns that were read.

    Examples
    --------
    >>> documents = Documents(["a", "b"], ["rain at noon", "shares fell"], [["weather"], []])
    >>> documents
    <Documents: 2 documents, 1 labelled, 1 topic>
    >>> documents.topic_names
    ['weather']
    >>> documents.select([1]).ids
    ['b']
    """

    ids: Sequence[Hashable]
    texts: Sequence[str]
    labels: Sequence[Sequence[str]] = ()
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    forbidden: Sequence[Sequence[str]] = ()
    report: ReadReport = field(default_factory=ReadReport, compare=False)
    numbered: bool = False
    reading: ReadOptions | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        lazy = isinstance(self.ids, range | DiskSequence)  # with plain ids
        if not lazy and any(type(key) not in (str, int) for key in self.ids):
            object.__setattr__(self, "ids", [plain_id(key) for key in self.ids])
        for name in ("labels", "forbidden"):
            if not getattr(self, name):
                object.__setattr__(self, name, [()] * len(self.texts))
        named = {"ids": self.ids, "labels": self.labels, "forbidden": self.forbidden}
        named |= {f"column {name!r}": values for name, values in self.columns.items()}
        for name, values in named.items():
            if len(values) != len(self.texts):
                raise ValueError(
                    f"{name} has {len(values):,} entries and there are {len(self.texts):,} texts: "
                    "pass one entry per document"
                )

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        labelled, topics = sum(map(bool, self.labels)), len(self.topic_names)
        counts = [(len(self), "document"), (topics, "topic")]
        documents, names = (f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts)
        columns = f", columns {', '.join(self.columns)}" if self.columns else ""
        return f"<Documents: {documents}, {labelled:,} labelled, {names}{columns}>"

    @property
    def topic_names(self) -> list[str]:
        """The distinct labels, permitted or forbidden, sorted."""
        names = {name for rows in (self.labels, self.forbidden) for row in rows for name in row}
        return sorted(names - {NONE})

    def select(self, rows: Iterable[int]) -> Documents:
        """Return the documents of some rows, in the given order."""
        rows = [int(row) for row in rows]

        def take(values: Sequence[T]) -> list[T]:
            return [values[row] for row in rows]

        return replace(
            self,
            ids=take(self.ids),
            texts=take(self.texts),
            labels=take(self.labels),
            columns={name: take(values) for name, values in self.columns.items()},
            forbidden=take(self.forbidden),
        )

    def renamed(self, names: Mapping[str, str]) -> Documents:
        """Return the documents with other names of labels; ``names`` has them by their folded spelling."""
        shared: dict[tuple[str, ...], list[str]] = {}
        for row in itertools.chain(self.labels, self.forbidden):
            if (written := tuple(row)) not in shared:
                shared[written] = list(dict.fromkeys(names.get(fold(name), name) for name in written))
        has, lacks = ([shared[tuple(row)] for row in rows] for rows in (self.labels, self.forbidden))
        return replace(self, labels=has, forbidden=lacks)

    def numbered_on(self, taken: Sequence[Hashable]) -> Documents:
        """Return the documents with new ids, from the first unused number on; "7" is a used number too."""
        numbers = (int(text) for text in map(str, taken) if text.isascii() and text.isdecimal() and len(text) < 19)
        first = 1 + max(numbers, default=len(taken) - 1)
        return replace(self, ids=[first + i for i in range(len(self))])

    def hide_labels(self, share: float, seed: int = 0) -> Documents:
        """Remove the labels of a random share of the documents, for example to test predictions."""
        shown = np.random.default_rng(seed).random(len(self)) >= share
        labels = [list(names) if keep else [] for names, keep in zip(self.labels, shown, strict=True)]
        return replace(self, labels=labels)
