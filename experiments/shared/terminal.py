"""Messages, tables and defaults of the command lines."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from rich.console import Console

# Finished runs, prepared corpora and embeddings. Git ignores the folder.
RESULTS = Path(__file__).parents[1] / "results"
# Messages go to standard error.
console = Console(stderr=True)


def page_folder(here: Path, options: argparse.Namespace, *, part: bool) -> Path:
    """Folder of the page: ``here`` for the whole study, else one below the results, which git ignores.

    ``part``: some corpora of the study are left out.
    """
    if options.results == RESULTS and not options.quick and not part:
        return here
    return Path(options.results) / f"{'quick' if options.quick else 'page'}-{here.name}"


def note(message: str) -> None:
    """Print a message on standard error."""
    console.print(message, highlight=False, soft_wrap=True)


def cores() -> int:
    """Cores that this process may use, or fewer if OMP_NUM_THREADS limits them."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(count, int(limit)) if limit.isdigit() and int(limit) > 0 else count


def table(head: list[str], rows: list[list[Any]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(value) for value in line) + " |" for line in lines)
