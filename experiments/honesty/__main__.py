"""Compare each printed number with the truth in twelve states of labels; finished trials are kept."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.honesty import page
from experiments.honesty.corpora import KNOWN, world
from experiments.honesty.figures import figures
from experiments.honesty.states import STATES, adopt, fit
from experiments.shared.fingerprints import hash_of
from experiments.shared.internals import honest_sources
from experiments.shared.terminal import cores, note

# Folder of the committed page and results.
HERE = Path(__file__).parent
RESULTS = "honesty.jsonl"
SEEDS = 3


def main(arguments: list[str] | None = None) -> int:
    """Run missing trials, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.honesty", description=__doc__)
    parser.add_argument("--corpus", action="append", choices=list(KNOWN), help="default: all")
    parser.add_argument("--state", action="append", choices=list(STATES), help="default: all")
    parser.add_argument("--seed", type=int, action="append", help="default: 0, 1 and 2")
    parser.add_argument("--folder", type=Path, default=HERE, help="folder of the page and its results")
    parser.add_argument("--page", action="store_true", help="write the page of the finished trials only")
    options = parser.parse_args(arguments)
    if not options.page:
        run(options)
    text = page.text(read(options.folder), SEEDS * len(KNOWN) * len(STATES), code())
    (options.folder / "README.md").write_text(text, encoding="utf-8")
    return 0


@lru_cache
def code() -> str:
    """Fingerprint of the code that makes the figures."""
    return hash_of(honest_sources())


def read(folder: Path) -> list[dict[str, Any]]:
    """Finished trials of this code."""
    path = folder / RESULTS
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [row for row in map(json.loads, lines) if row["code"] == code()]


def run(options: argparse.Namespace) -> None:
    """Run the missing trials."""
    done = {key_of(row) for row in read(options.folder)}
    planned = [
        {"corpus": corpus, "state": state, "seed": seed}
        for seed in options.seed or range(SEEDS)
        for corpus in options.corpus or KNOWN
        for state in options.state or STATES
    ]
    missing = [row for row in planned if key_of(row) not in done]
    note(f"{len(planned) - len(missing):,} of {len(planned):,} trials are done; {cores()} cores")
    for row in missing:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names without a word in the corpus, and of few labels
            found = trial(**row)
        with (options.folder / RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, **found, "code": code()}) + "\n")


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What identifies a trial."""
    return row["corpus"], row["state"], row["seed"]


def trial(corpus: str, state: str, seed: int) -> dict[str, Any]:
    """All figures of a state."""
    began = time.perf_counter()
    here = world(corpus, seed)
    given = STATES[state](here, np.random.default_rng([seed, list(STATES).index(state)]))
    model = fit(here, given, seed)
    if given.adopts:
        here = adopt(here, model)
    found, bare = figures(here, given, model)
    return {
        "figures": [[rounded(value) for value in figure] for figure in found],
        "bare": bare,
        "seconds": round(time.perf_counter() - began, 1),
    }


def rounded(value: Any) -> Any:
    """Four digits are enough."""
    return value if value is None or isinstance(value, str) else round(float(value), 4)


if __name__ == "__main__":
    sys.exit(main())
