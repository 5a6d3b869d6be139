"""Documents by group or date: columns of a table with few values, and dates as days, months or years."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST = 24  # groups of a column
FORMS = ("%d-%b-%Y %H:%M:%S.%f", "%d-%b-%Y", "%d.%m.%Y", "%d/%m/%Y", "%Y/%m/%d", "%a, %d %b %Y %H:%M:%S %z")


class Groups(NamedTuple):
    """The names of the groups, and for each document the number of its group, -1 if it has none."""

    names: list[str]
    code: NDArray[np.int64]


def group_columns(rows: Sequence[Mapping[str, object]]) -> dict[str, Groups]:
    """The columns of a table that make groups."""
    found = {name: _grouped([row.get(name) for row in rows]) for name in (rows[0] if rows else ())}
    return {name: groups for name, groups in found.items() if groups is not None}


def _grouped(values: Sequence[object]) -> Groups | None:
    """Groups of a column: its values if they are few, months or years if they are dates, else None."""
    labels = [None if value is None or value == "" else str(value) for value in values]
    filled = [label for label in labels if label is not None]
    if len(filled) < max(2, len(values) // 2):
        return None
    if len(set(filled)) > MOST:
        if not all(map(_date, filled[:50])):
            return None
        stamps = [_date(label) if label else None for label in labels]
        for length in (10, 7, 4):
            labels = [stamp and stamp[:length] for stamp in stamps]
            if len(set(filter(None, labels))) <= MOST:
                break
    names = sorted(set(filter(None, labels)))
    if not 2 <= len(names) <= MOST:
        return None
    place = {name: k for k, name in enumerate(names)}
    return Groups(names, np.array([place[label] if label else -1 for label in labels], dtype=np.int64))


def _date(text: str) -> str | None:
    """A date as 2026-01-31, if it is one; a year as it is."""
    text = text.strip()
    try:
        return datetime.fromisoformat(text).date().isoformat()
    except ValueError:
        pass
    for form in FORMS:
        try:
            return datetime.strptime(text, form).date().isoformat()
        except ValueError:
            continue
    return text if text.isdigit() and len(text) == 4 else None
