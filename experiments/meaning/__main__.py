"""Prepare the corpora, run the rivals or the package in all cells, and write the table."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.meaning import results
from experiments.meaning.cells import CELLS, Draw, accuracy, cells_of, draw, hidden_ap, macro_ap
from experiments.meaning.corpora import NAMES, SOURCES, Corpus, folder, load
from experiments.meaning.vectors import EMBEDDINGS, make_all

SEEDS = 3


def main(arguments: list[str] | None = None) -> int:
    """Parse the options and run a command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.meaning", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in COMMANDS.items():
        command = commands.add_parser(name, help=run.__doc__)
        command.add_argument("--corpus", action="append", choices=list(SOURCES), help="default: all")
        command.add_argument("--cell", action="append", choices=CELLS, help="default: all")
        command.add_argument("--embedding", action="append", choices=EMBEDDINGS, help="default: all")
        command.add_argument("--seed", action="append", type=int, help="default: 0, 1 and 2")
        command.add_argument("--out", type=Path, help="file of results")
    options = parser.parse_args(arguments)
    COMMANDS[options.command](options)
    return 0


def cells(options: argparse.Namespace) -> Iterator[tuple[Corpus, str, str, int, Draw]]:
    """All cells that the options name, one seed and one corpus after the other."""
    for seed in options.seed or range(SEEDS):
        for name in options.corpus or NAMES:
            corpus = load(name)
            for embedding in options.embedding or EMBEDDINGS:
                for cell in options.cell or CELLS:
                    if cell in cells_of(corpus):
                        yield corpus, cell, embedding, seed, draw(corpus, cell, seed)


def prepare(options: argparse.Namespace) -> None:
    """Prepare corpora and vectors."""
    for name in options.corpus or SOURCES:
        for embedding in EMBEDDINGS[1:]:
            make_all(load(name), embedding)


def run_rivals(options: argparse.Namespace) -> None:
    """Run the missing rivals."""
    from experiments.meaning import rivals

    path = options.out or folder() / "rivals.jsonl"
    for corpus, cell, embedding, seed, drawn in cells(options):
        key = {"corpus": corpus.name, "cell": cell, "embedding": embedding, "seed": seed}
        methods = rivals.methods(drawn, embedding)
        for run in results.missing(path, ({**key, "method": method} for method in methods)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few iterations are intended
                began = time.perf_counter()
                scores = methods[run["method"]](rivals.task(corpus, drawn, embedding, seed))
                seconds = time.perf_counter() - began
            found: dict[str, Any] = {"known": None, "hidden": None}
            if run["method"] in rivals.CLUSTERS:
                found["hidden"] = hidden_ap(corpus, drawn, scores)
            else:
                found |= {"known": macro_ap(corpus, drawn, scores), "accuracy": accuracy(corpus, drawn, scores)}
            results.append(path, run | found | {"seconds": seconds})


COMMANDS = {"prepare": prepare, "rivals": run_rivals}


if __name__ == "__main__":
    sys.exit(main())
