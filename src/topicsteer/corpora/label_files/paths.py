"""Labels that are paths through a tree of topics: one column per level, or the taxonomy of Label Studio."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any

from topicsteer.corpora.cells import JSON_LIST, split_labels
from topicsteer.corpora.readers.table_file import Table
from topicsteer.system.safe_text import unguarded
from topicsteer.system.values import NO_LABEL, is_missing

# A column of the workbench's exports: the separator of the levels in names that are paths.
PATH_SEPARATOR = "path_separator"
# Separators of paths; the first one that no name contains is used.
SEPARATORS = ("/", " > ", " | ", "::", " → ", "//", "\\", "¦")
_LEVEL = re.compile(r"level (\d{1,3})")


def level_columns(names: Iterable[str]) -> list[str]:
    """The columns "level 1", "level 2" and so on of a table, in order.

    Examples
    --------
    >>> level_columns(["id", "Level 2", "level 1", "level 4"])
    ['level 1', 'Level 2']
    """
    found = {int(match[1]): name for name in names if (match := _LEVEL.fullmatch(name.strip().lower()))}
    return list(takewhile(bool, (found.get(level, "") for level in range(1, len(found) + 1))))


def path_of_row(table: Table, columns: Sequence[str], row: int) -> tuple[str, ...]:
    """The path in the level columns of a row; empty without one.

    Raises
    ------
    ValueError
        If a level is empty above one that is not, or a cell has several names.
    """
    path: list[str] = []
    for level, name in enumerate(columns, start=1):
        cell = table.columns[name][row]
        if cell is None or (isinstance(cell, str) and cell.strip() in NO_LABEL):
            continue
        cell = unguarded(cell) if table.guarded and isinstance(cell, str) else cell
        found = split_labels(cell, JSON_LIST if isinstance(cell, str) and cell.startswith("[") else None)
        if len(found) > 1:
            raise ValueError(f"{name!r} has several names: write one row per label")
        if found and level > len(path) + 1:
            raise ValueError(f"{name!r} has the name {found[0]!r}, but {columns[len(path)]!r} above it is empty")
        path += found
    return tuple(path)


def taxonomy_paths(value: Any) -> list[tuple[str, ...]]:
    """The paths of a value of Label Studio's Taxonomy.

    Examples
    --------
    >>> taxonomy_paths({"taxonomy": [["sport", "golf"], ["arts"]]})
    [('sport', 'golf'), ('arts',)]
    """
    paths = value.get("taxonomy") if isinstance(value, dict) else None
    if not isinstance(paths, list):
        raise ValueError("expected a taxonomy: a list of paths")
    return [tuple(split_labels(path, None)) for path in paths if isinstance(path, list) and path]


def taxonomy_cell(cell: object) -> list[tuple[str, ...]] | None:
    """The paths in a label cell of Label Studio's JSON-MIN or CSV export of a Taxonomy; None for any other cell.

    Examples
    --------
    >>> taxonomy_cell([{"taxonomy": [["sport", "golf"]]}])
    [('sport', 'golf')]
    >>> taxonomy_cell('[{"taxonomy":[["arts"]]}]'), taxonomy_cell(["arts"])
    ([('arts',)], None)
    """
    if isinstance(cell, str) and cell.startswith("[{"):
        with suppress(ValueError, RecursionError):
            cell = json.loads(cell)
    if not isinstance(cell, list) or not cell or not all(isinstance(one, dict) and "taxonomy" in one for one in cell):
        return None
    return [path for one in cell for path in taxonomy_paths(one)]


def stated_separator(table: Table) -> str | None:
    """The separator that a file states in its column ``path_separator``."""
    cells = (cell for cell in table.columns.get(PATH_SEPARATOR, ()) if not is_missing(cell) and str(cell).strip())
    return next(map(str, cells), None)


def path_hint(names: Iterable[str]) -> str:
    """A sentence if a name looks like a path below another name; separators of paths are never guessed.

    Examples
    --------
    >>> path_hint(["sport", "sport/golf"])
    "The label 'sport/golf' looks like a path below 'sport': --path-separator / makes a tree of such labels."
    >>> path_hint(["AC/DC", "jazz"])
    ''
    """
    known = set(names)
    for name in sorted(known):
        for separator in SEPARATORS:
            if (above := name.rpartition(separator)[0]) in known:
                option = f"--path-separator {shlex.quote(separator)}"
                return f"The label {name!r} looks like a path below {above!r}: {option} makes a tree of such labels."
    return ""


def free_separator(names: Iterable[str], wanted: str | None = None) -> str:
    """The first separator that no name contains.

    Examples
    --------
    >>> free_separator(["AC/DC", "jazz"])
    ' > '
    """
    names = list(names)
    for one in (*filter(None, [wanted]), *SEPARATORS):
        if not any(one.strip() in name for name in names):
            return one
    raise ValueError(f"names of topics contain all separators of paths: {' '.join(SEPARATORS)}. Rename some topics.")
