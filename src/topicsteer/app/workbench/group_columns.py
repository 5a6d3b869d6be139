"""Columns of a project that can be groups: few values, or dates."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from topicsteer.analysis.groups import Groups
from topicsteer.system.values import is_missing

# Greatest number of groups of a column that is no date.
MOST = 24


def group_columns(rows: Sequence[Mapping[str, object]]) -> dict[str, Groups]:
    """Return the columns with few values or with dates, as groups."""
    found = {name: _groups(name, [row.get(name) for row in rows]) for name in (rows[0] if rows else ())}
    return {name: groups for name, groups in found.items() if groups is not None}


def _groups(name: str, values: Sequence[object]) -> Groups | None:
    """Return groups by value or by period; None if most values are missing, or if there are too many or one."""
    filled = [value for value in values if not is_missing(value)]
    if len(filled) < max(2, len(values) // 2) or len(set(map(str, filled))) < 2:
        return None
    with suppress(ValueError):  # too many values
        groups = Groups.of(values, name)
        known = len(groups.starts) if groups.period else len(set(map(str, filled)))
        return groups if known > 1 and (groups.period is not None or known <= MOST) else None
    return None


def stored_groups(path: Path) -> dict[str, Groups]:
    """Return the groups of a project, even while it is open elsewhere."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.execute("PRAGMA query_only = ON")
        extras = connection.execute("SELECT extra FROM documents ORDER BY row")
        return group_columns([json.loads(extra) for (extra,) in extras])
