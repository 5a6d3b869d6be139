"""Prepare the corpora, run the rivals or the installed package in all cells, print the table, and write the page."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.meaning import intents, package, page, published, results, rivals, table
from experiments.meaning.cells import (
    CELLS,
    Draw,
    accuracy,
    cells_of,
    draw,
    hidden_ap,
    leak,
    macro_ap,
    recall,
    true_none,
)
from experiments.meaning.corpora import NAMES, SOURCES, Corpus, folder, load
from experiments.meaning.package import VARIANTS, Found
from experiments.meaning.vectors import EMBEDDINGS, make_all

SEEDS = 3


def main(arguments: list[str] | None = None) -> int:
    """Parse the options and run a command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.meaning", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in COMMANDS.items():
        command = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        known_cells = list(intents.KNOWN) if name == "intents" else CELLS
        command.add_argument("--corpus", action="append", choices=list(SOURCES), help="default: all")
        command.add_argument("--cell", action="append", choices=known_cells, help="default: all")
        command.add_argument("--embedding", action="append", choices=EMBEDDINGS, help="default: all")
        command.add_argument("--seed", action="append", type=int, help="default: 0, 1 and 2")
        command.add_argument("--out", type=Path, help="file of results; default: one per command")
    commands.choices["ours"].add_argument("--variant", action="append", choices=list(VARIANTS), help="default: ''")
    commands.choices["rivals"].add_argument("--method", action="append", help="name of a rival; default: all")
    commands.choices["intents"].add_argument(
        "--method", action="append", choices=list(intents.METHODS), help="default: ours"
    )
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
    path = options.out or folder() / "rivals.jsonl"
    for corpus, cell, embedding, seed, drawn in cells(options):
        key = {"corpus": corpus.name, "cell": cell, "embedding": embedding, "seed": seed}
        methods = rivals.methods(drawn, embedding) | published.methods(drawn, embedding)
        methods = {name: run for name, run in methods.items() if name in (options.method or methods)}
        for run in results.missing(path, ({**key, "method": method} for method in methods)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few iterations are intended
                began = time.perf_counter()
                scores = methods[run["method"]](rivals.task(corpus, drawn, embedding, seed))
                seconds = time.perf_counter() - began
            results.append(path, run | judge_rival(corpus, drawn, run["method"], scores) | {"seconds": seconds})


def judge_rival(corpus: Corpus, drawn: Draw, method: str, scores: Any) -> dict[str, Any]:
    """Measures of known topics, of hidden ones, or of both for a published method."""
    known, free = (None, scores) if method in rivals.CLUSTERS else (scores, None)
    if method in published.PUBLISHED:
        known, free = scores
    found: dict[str, Any] = {"known": None, "hidden": None}
    if known is not None:
        found |= {"known": macro_ap(corpus, drawn, known), "accuracy": accuracy(corpus, drawn, known)}
    if free is not None and len(drawn.hidden):
        found["hidden"] = hidden_ap(corpus, drawn, free)
    return found


def run_ours(options: argparse.Namespace) -> None:
    """Run the installed package in the missing cells; variants ask for other numbers of free topics."""
    path = options.out or folder() / "ours.jsonl"
    for corpus, cell, embedding, seed, drawn in cells(options):
        for name in options.variant or [""]:
            variant, method = VARIANTS[name], f"ours {name}".strip()
            run = {"corpus": corpus.name, "cell": cell, "embedding": embedding, "seed": seed, "method": method}
            if cell in variant.cells and results.missing(path, [run]):
                free = variant.free(len(drawn.hidden))
                found = package.fit_ours(corpus, drawn, embedding, seed, free, world=variant.world)
                results.append(path, run | judge(corpus, drawn, found) | {"code": results.code()})


def judge(corpus: Corpus, drawn: Draw, found: Found) -> dict[str, Any]:
    """All measures of a fit."""
    rows = drawn.unlabelled(corpus)
    return {
        "known": macro_ap(corpus, drawn, found.known),
        "hidden": hidden_ap(corpus, drawn, found.free) if len(drawn.hidden) else None,
        "accuracy": accuracy(corpus, drawn, found.known),
        "leak": leak(corpus, drawn, found.decided),
        "recall": recall(corpus, drawn, found.decided),
        "none": float(found.none[rows].mean()),
        "true_none": true_none(corpus, drawn),
        "free": found.free.shape[1],
        "seconds": found.seconds,
    }


def run_intents(options: argparse.Namespace) -> None:
    """Measure open intents on all of banking77 as the field does."""
    path = options.out or folder() / "intents.jsonl"
    for seed in options.seed or range(SEEDS):
        for embedding in options.embedding or EMBEDDINGS:
            for cell in options.cell or intents.KNOWN:
                for method in options.method or ["ours"]:
                    key = {"corpus": intents.CORPUS, "cell": cell, "embedding": embedding, "seed": seed}
                    run = key | {"method": method}
                    if results.missing(path, [run]):
                        own = {"code": results.code()} if method == "ours" else {}
                        results.append(path, run | intents.measure(method, cell, embedding, seed) | own)


def print_table(options: argparse.Namespace) -> None:
    """Print 0.2.0, the best rivals and the installed package in all cells, and the misses of the goals."""
    for line in table.lines(table.read(page.RESULTS, *own_files(options))):
        print(line)


def write_page(options: argparse.Namespace) -> None:
    """Write the runs to the committed results, the page, and the tables of the documentation."""
    found = results.read(page.RESULTS) + page.best_rivals(folder() / "rivals.jsonl", range(SEEDS))
    page.write_results(found + [run for path in own_files(options) for run in results.read(path)])
    runs = table.read(page.RESULTS)
    page.PAGE.write_text(page.text(runs, results.code()), encoding="utf-8")
    page.write_excerpts(runs)


def own_files(options: argparse.Namespace) -> tuple[Path, Path]:
    """Files with runs of the package."""
    return options.out or folder() / "ours.jsonl", folder() / "intents.jsonl"


COMMANDS = {
    "prepare": prepare,
    "rivals": run_rivals,
    "ours": run_ours,
    "intents": run_intents,
    "table": print_table,
    "page": write_page,
}


if __name__ == "__main__":
    sys.exit(main())
