"""Run the missing trials of the study of unnamed topics, then write its page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.openworld import page, trials
from experiments.shared import corpora
from experiments.shared.pool import carry_out, stopped
from experiments.shared.store import Store
from experiments.shared.terminal import RESULTS, page_folder
from topicsteer.corpora import ReadError

# Folder of the committed page and results.
HERE = Path(__file__).parent
# Corpora of the committed page.
CORPORA = [name for name in corpora.OPENWORLD if name != "toy"]


def main(arguments: list[str] | None = None) -> int:
    """Parse the options, run the trials and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.openworld", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two corpora, half of the topics hidden, one seed")
    parser.add_argument("--corpus", action="append", choices=list(corpora.OPENWORLD), help="default: all but toy")
    parser.add_argument(
        "--method", action="append", choices=list(trials.METHODS), help="run only this; may be repeated"
    )
    parser.add_argument("--share", action="append", type=float, help="run only this share of hidden topics")
    parser.add_argument("--seeds", type=int, default=trials.SEEDS, help="number of seeds to run")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results file")
    parser.add_argument("--page-only", action="store_true", help="write the page from the finished trials")
    options = parser.parse_args(arguments)
    names = options.corpus or (trials.QUICK_CORPORA if options.quick else CORPORA)
    store = Store(options.results / "openworld.sqlite")
    planned = trials.plan(names, options.quick)
    try:
        work(options, store, names, planned)
    except (ReadError, LookupError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return stopped(planned, store)
    finally:
        store.close()
    return 0


def work(options: argparse.Namespace, store: Store, names: list[str], planned: list[trials.Trial]) -> None:
    """Run the missing trials, then write the page."""
    loaded = corpora.load_all(names, "openworld")
    folder = page_folder(HERE, options, part=bool(options.corpus))
    if folder == HERE:
        store.take(HERE / "openworld.jsonl")
    if not options.page_only:
        chosen = [
            trial
            for trial in planned
            if trial.method in (options.method or trials.METHODS)
            and trial.share in (options.share or (0.0, *trials.SHARES))
            and trial.seed < options.seeds
        ]
        carry_out(chosen, trials.perform, store, options.processes, "trials")
    if folder == HERE:
        store.dump(HERE / "openworld.jsonl", {trial.method: trial.version for trial in planned})
    print(f"Results: {page.write(folder, store, planned, loaded)}")


if __name__ == "__main__":
    sys.exit(main())
