"""Finished runs as lines of JSON: appended at once, and never run twice.

Runs of the package carry a fingerprint of the code of the guide. Runs of other code are not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.shared.fingerprints import hash_of
from experiments.shared.internals import guide_sources

# What identifies a run.
KEY = ("corpus", "cell", "embedding", "seed", "method")


def key_of(run: dict[str, Any]) -> tuple[Any, ...]:
    """What identifies a run."""
    return tuple(run[part] for part in KEY)


@lru_cache
def code() -> str:
    """Fingerprint of the guide."""
    return hash_of(guide_sources())


def read(path: Path) -> list[dict[str, Any]]:
    """Finished runs of the present code; of two with the same key, the later one."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    runs = [run for run in map(json.loads, lines) if run.get("code", code()) == code()]
    return list({key_of(run): run for run in runs}.values())


def append(path: Path, run: dict[str, Any]) -> None:
    """Write a finished run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({name: rounded(value) for name, value in run.items()}) + "\n")


def rounded(value: Any) -> Any:
    """Four digits are enough."""
    return round(value, 4) if isinstance(value, float) else value


def missing(path: Path, planned: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Planned runs that are not finished."""
    done = {key_of(run) for run in read(path)}
    return [run for run in planned if key_of(run) not in done]
