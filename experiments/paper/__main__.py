"""`make paper`: do the missing runs, then draw the figure and write the page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.paper import page
from experiments.paper.runs import Run, perform, plan
from experiments.shared import corpora
from experiments.shared.pool import carry_out, stopped
from experiments.shared.store import Store
from experiments.shared.terminal import RESULTS, cores, page_folder
from topicsteer.corpora import ReadError

# Folder of the committed page, figure and results.
HERE = Path(__file__).parent
# Corpora of the paper.
CORPORA = ["reuters", "pubmed"]


def main(arguments: list[str] | None = None) -> int:
    """Parse the options, do the runs and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.paper", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rates and repetitions, for a few minutes")
    parser.add_argument("--corpus", action="append", choices=[*CORPORA, "toy"], help="default: reuters, pubmed")
    parser.add_argument("--method", action="append", help="run only this; may be repeated")
    parser.add_argument("--processes", type=int, default=cores())
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results file")
    parser.add_argument("--page-only", action="store_true", help="write the page from the finished runs")
    options = parser.parse_args(arguments)
    store = Store(options.results / "paper.sqlite")
    planned = plan(options.corpus or CORPORA, options.quick)
    try:
        work(options, store, planned)
    except (ReadError, LookupError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return stopped(planned, store)
    finally:
        store.close()
    return 0


def work(options: argparse.Namespace, store: Store, planned: list[Run]) -> None:
    """Do the missing runs, then write the page."""
    folder = page_folder(HERE, options, part=bool(options.corpus))
    if folder == HERE:
        store.take(HERE / "paper.jsonl")
    if not options.page_only:
        corpora.load_all(list(dict.fromkeys(run.corpus for run in planned)))
        chosen = [run for run in planned if run.method in (options.method or [run.method])]
        carry_out(chosen, perform, store, options.processes, "paper")
    results = store.results(planned)
    if folder == HERE:
        store.dump(HERE / "paper.jsonl", {run.method: run.version for run in planned})
    print(f"Results: {page.write(folder, results, len(plan(options.corpus or CORPORA)))}")


if __name__ == "__main__":
    sys.exit(main())
