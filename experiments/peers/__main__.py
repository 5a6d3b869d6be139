"""`make peers`: run the missing trials of the comparison with other systems, then write the page and its figure."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from experiments.peers import page, trials
from experiments.shared import corpora
from experiments.shared.pool import carry_out, stopped
from experiments.shared.store import Store
from experiments.shared.terminal import RESULTS, page_folder
from topicsteer.corpora import ReadError

# Folder of the committed page, figure and results.
HERE = Path(__file__).parent
# Corpora of the committed page.
CORPORA = [name for name in corpora.PEERS if name != "toy"]


def main(arguments: list[str] | None = None) -> int:
    """Parse the options, run the trials and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Reuters, three budgets, one seed")
    parser.add_argument("--corpus", action="append", choices=list(corpora.PEERS), help="default: all but toy")
    parser.add_argument(
        "--method", action="append", choices=list(trials.METHODS), help="run only this; may be repeated"
    )
    parser.add_argument(
        "--budget", action="append", choices=list(trials.BUDGETS), help="run only this; may be repeated"
    )
    parser.add_argument("--seeds", type=int, default=trials.SEEDS, help="number of seeds to run")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results file")
    parser.add_argument(
        "--stored", action="store_true", help="keep the committed trials of earlier versions of a method on the page"
    )
    parser.add_argument("--page-only", action="store_true", help="write the page from the finished trials")
    options = parser.parse_args(arguments)
    names = options.corpus or (["reuters"] if options.quick else CORPORA)
    store = Store(options.results / "peers.sqlite")
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
    loaded = corpora.load_all(names, "peers")
    folder = page_folder(HERE, options, part=bool(options.corpus))
    if folder == HERE:
        store.take(HERE / "peers.jsonl")
    if not options.page_only:
        chosen = [
            trial
            for trial in planned
            if trial.method in (options.method or trials.METHODS)
            and trial.budget in (options.budget or trials.BUDGETS)
            and trial.seed < options.seeds
        ]
        carry_out(chosen, trials.perform, store, options.processes, "trials")
    if options.stored:
        kept = stored(store)
        done = {place(trial) for trial in kept}
        planned = [*kept, *(trial for trial in planned if place(trial) not in done)]
    if folder == HERE:
        store.dump(HERE / "peers.jsonl")
    print(f"Results: {page.write(folder, store, planned, loaded)}")


def place(trial: trials.Trial) -> tuple[str, str, str, int]:
    """The trial without the version of its method."""
    return trial.corpus, trial.method, trial.budget, trial.seed


def stored(store: Store) -> list[trials.Trial]:
    """All stored trials; of several versions of a method, the present one."""
    found: dict[tuple[str, str, str, int], trials.Trial] = {}
    for key in store.done():
        trial = trials.Trial(**json.loads(key))
        present = trial.method in trials.METHODS and trial.version == trials.fingerprint(trial.method)
        if present or (trial.method in trials.METHODS and place(trial) not in found):
            found[place(trial)] = trial
    return list(found.values())


if __name__ == "__main__":
    sys.exit(main())
