"""Halve and double each constant of the guide, and write the page; finished trials are kept."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from experiments.constants import page, trials
from experiments.shared.fingerprints import hash_of
from experiments.shared.internals import guide_sources
from experiments.shared.terminal import cores, note

# Folder of the committed page and results.
HERE = Path(__file__).parent
RESULTS = "constants.jsonl"


def main(arguments: list[str] | None = None) -> int:
    """Run missing trials for some minutes, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.constants", description=__doc__)
    parser.add_argument("--minutes", type=float, default=600, help="stop after this time")
    parser.add_argument("--seed", type=int, action="append", help="default: 0")
    parser.add_argument("--constant", action="append", help="default: all")
    parser.add_argument("--folder", type=Path, default=HERE, help="folder of the page and its results")
    parser.add_argument("--page", action="store_true", help="write the page of the finished trials only")
    options = parser.parse_args(arguments)
    code = hash_of(guide_sources())
    if not options.page:
        run(options, code)
    text = page.text(read(options.folder, code), len(trials.plan([0])), code)
    (options.folder / "README.md").write_text(text, encoding="utf-8")
    return 0


def read(folder: Path, code: str) -> list[dict[str, Any]]:
    """Finished trials of this code of the guide."""
    path = folder / RESULTS
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [row for row in map(json.loads, lines) if row["code"] == code]


def run(options: argparse.Namespace, code: str) -> None:
    """Run the missing trials of some constants; trials of other code leave the file."""
    end = time.monotonic() + 60 * options.minutes
    path = options.folder / RESULTS
    done = read(options.folder, code)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in done), encoding="utf-8")
    finished = {trials.key_of(row) for row in done}
    planned = [
        row
        for row in trials.plan(options.seed or [0])
        if not options.constant or row["constant"] in ("", *options.constant)
    ]
    missing = [row for row in planned if trials.key_of(row) not in finished]
    note(f"{len(planned) - len(missing):,} of {len(planned):,} trials are done; {cores()} cores")
    with path.open("a", encoding="utf-8") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names without a word in the corpus
        for row in missing:
            if time.monotonic() > end:
                note("the time is over; run it again to continue")
                return
            file.write(json.dumps({**row, **trials.perform(row), "code": code}) + "\n")
            file.flush()


if __name__ == "__main__":
    sys.exit(main())
