"""`make paper`: do the missing runs, then draw the figures and write the page."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from experiments.paper import convergence, page, stationarity
from experiments.paper.runs import Run, plan
from experiments.shared import corpora
from experiments.shared.pool import carry_out, stopped
from experiments.shared.store import Store
from experiments.shared.terminal import RESULTS, cores, note, page_folder
from topicsteer.corpora import ReadError

# Folder of the committed page and figures.
HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Parse the options, do the runs and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.paper", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rates and repetitions, for a few minutes")
    parser.add_argument("--corpus", action="append", choices=list(corpora.SOURCES), help="default: reuters, pubmed")
    parser.add_argument("--processes", type=int, default=cores())
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results file")
    parser.add_argument("--again", action="append", default=[], help="redo the finished runs of this method")
    parser.add_argument("--page-only", action="store_true", help="write the page from the finished runs")
    options = parser.parse_args(arguments)
    store = Store(options.results / "paper.sqlite")
    runs = {name: plan(name, options.quick) for name in options.corpus or ["reuters", "pubmed"]}
    try:
        work(options, store, runs)
    except (ReadError, LookupError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return stopped([run for some in runs.values() for run in some], store)
    finally:
        store.close()
    return 0


def work(options: argparse.Namespace, store: Store, runs: dict[str, list[Run]]) -> None:
    """Do the missing runs, then write the page."""
    names = list(runs)
    loaded = corpora.load_all(names)
    descents = stationarity.plan(available(names), options.quick)
    folder = page_folder(HERE, options, part=bool(options.corpus))
    if folder == HERE:
        store.take(HERE / "paper.jsonl")
    store.forget(run.key for some in runs.values() for run in some if run.method in options.again)
    if not options.page_only:
        for name in names:
            further = descents if name == names[-1] else []
            carry_out([*runs[name], *further], stationarity.perform_any, store, options.processes, name)
        key = page.convergence_key(names[0])
        if store.get(key) is None:
            note(f"{names[0]}: convergence of the solvers")
            store.add(key, convergence.measure(loaded[names[0]]), 0.0)
    if folder == HERE:
        store.dump(HERE / "paper.jsonl")
    shutil.rmtree(folder / "figures", ignore_errors=True)
    print(f"Results: {page.write(folder, store, runs, loaded, descents)}")


def available(names: list[str]) -> tuple[str, ...]:
    """Corpora of the long runs that are on this machine: three in the whole study, else the chosen ones."""
    found = []
    for name in stationarity.CORPORA if "reuters" in names else names:
        try:
            corpora.load_all([name], "peers")
        except ReadError:
            note(f"{name} is not on this machine: no long runs on it")
        else:
            found.append(name)
    return tuple(found)


if __name__ == "__main__":
    sys.exit(main())
