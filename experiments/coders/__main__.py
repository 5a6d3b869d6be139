"""Run the missing draws of the study of language models, then write its page."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from experiments.coders import page, trials
from experiments.shared.fingerprints import hash_of
from experiments.shared.internals import honest_sources
from experiments.shared.terminal import note

# Folder of the committed page and results.
HERE = Path(__file__).parent
RESULTS = "coders.jsonl"
DRAWS = 100


def main(arguments: list[str] | None = None) -> int:
    """Run missing draws, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.coders", description=__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--folder", type=Path, default=HERE, help="folder of the page and its results")
    options = parser.parse_args(arguments)
    code = hash_of(honest_sources())
    done = read(options.folder, code)
    planned = [(sizes, draw) for draw in range(options.draws) for sizes in trials.SIZES]
    missing = [key for key in planned if key not in {(row["sizes"], row["draw"]) for row in done}]
    note(f"{len(planned) - len(missing):,} of {len(planned):,} draws are done")
    for sizes, draw in missing:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row = {"sizes": sizes, "draw": draw, "found": trials.perform(sizes, draw), "code": code}
        done.append(row)
        with (options.folder / RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    (options.folder / "README.md").write_text(page.text(done, DRAWS, code), encoding="utf-8")
    return 0


def read(folder: Path, code: str) -> list[dict[str, Any]]:
    """Finished draws of this code."""
    path = folder / RESULTS
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [row for row in map(json.loads, lines) if row["code"] == code]


if __name__ == "__main__":
    sys.exit(main())
