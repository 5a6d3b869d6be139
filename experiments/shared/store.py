"""Finished runs in SQLite, each written at once: a killed program loses only the runs under way."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar


class Run(Protocol):
    """Anything with a configuration."""

    @property
    def key(self) -> str:
        """The configuration as text."""


R = TypeVar("R", bound=Run)


class Store:
    """Finished runs by their configuration."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, timeout=60)
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, result TEXT NOT NULL, seconds REAL NOT NULL)"
        )

    def add(self, key: str, result: Any, seconds: float) -> None:
        """Write a finished run."""
        with self._connection:
            row = (key, json.dumps(result, sort_keys=True), seconds)
            self._connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", row)

    def get(self, key: str) -> Any:
        """Result of a run, None if it is not done."""
        row = self._connection.execute("SELECT result FROM runs WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def missing(self, runs: Iterable[R]) -> list[R]:
        """Runs that are not done, in their order."""
        done = {key for (key,) in self._connection.execute("SELECT key FROM runs")}
        return [run for run in runs if run.key not in done]

    def results(self, runs: Iterable[R]) -> dict[R, Any]:
        """Results of the runs that are done."""
        rows = dict(self._connection.execute("SELECT key, result FROM runs").fetchall())
        return {run: json.loads(rows[run.key]) for run in runs if run.key in rows}

    def dump(self, path: Path, versions: Mapping[str, str] | None = None) -> None:
        """Write all runs as lines of JSON, ordered by configuration; runs of other versions of methods are left out."""
        rows = self._connection.execute("SELECT key, result, seconds FROM runs ORDER BY key")
        runs = [[json.loads(key), json.loads(result), round(seconds, 1)] for key, result, seconds in rows]
        lines = [json.dumps(run) for run in runs if not _is_stale(run[0], versions or {})]
        path.write_text("".join(f"{line}\n" for line in lines))

    def take(self, path: Path) -> None:
        """Read the runs that :meth:`dump` wrote; runs already in the store stay."""
        lines = path.read_text().splitlines() if path.exists() else []
        rows = [(json.dumps(a, sort_keys=True), json.dumps(b, sort_keys=True), c) for a, b, c in map(json.loads, lines)]
        with self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _is_stale(key: Mapping[str, Any], versions: Mapping[str, str]) -> bool:
    """Whether a configuration is of another version of its method."""
    return key.get("method") in versions and key.get("version", key.get("code")) != versions[key["method"]]
