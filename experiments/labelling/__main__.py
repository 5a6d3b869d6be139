"""Measure suggestions and the audit, then write the page.

It takes about half an hour on one thread; --corpus and --seeds make it shorter.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from experiments.labelling.page import TITLES, write
from experiments.labelling.study import Corpus, finished, flipped, learn
from experiments.shared.terminal import RESULTS

# Folder of the committed page and figure.
HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Do the missing runs, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.labelling", description=__doc__)
    parser.add_argument("--corpus", action="append", choices=list(TITLES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=HERE, help="folder of the page")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results file")
    options = parser.parse_args(arguments)
    path = options.results / "labelling.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = finished(path)
    for name in options.corpus or TITLES:
        corpus = None
        jobs: dict[str, Any] = {}
        for seed in range(options.seeds):
            jobs |= {f"learn {name} {where} {seed}": (learn, seed, where == "test") for where in ("left", "test")}
            jobs |= {f"flipped {name} {share} {seed}": (flipped, seed, share) for share in (0.05, 0.2)}
        for key, (task, *rest) in jobs.items():
            if key not in done:
                corpus = corpus or Corpus(name)
                done[key] = task(corpus, *rest)
                path.write_text(json.dumps(done))
                print(key, file=sys.stderr, flush=True)
    print(f"Results: {write(options.folder, done)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
