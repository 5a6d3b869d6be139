"""The command of a study of draws: run the missing trials, then write its page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from experiments.shared import corpora
from experiments.shared.pool import carry_out, stopped
from experiments.shared.store import Store
from experiments.shared.terminal import RESULTS, page_folder
from topicsteer.corpora import ReadError

# Corpora of the committed page.
CORPORA = [name for name in corpora.PREVALENCE if name != "toy"]
# Draws of the smaller version.
QUICK_DRAWS = 2


def run_study(
    here: Path,
    plan: Callable[[list[str]], list[Any]],
    perform: Callable[[Any], Any],
    write: Callable[[Path, dict[Any, Any]], Path],
    *,
    methods: Iterable[str],
    draws: int,
    study: str = "prevalence",
    arguments: list[str] | None = None,
) -> int:
    """Parse the options, run the trials and write the page; return the exit code.

    Parameters
    ----------
    here : Path
        Folder of the committed page and results; its name is the name of the study.
    plan, perform, write : callable
        The trials of some corpora; the result of a trial; the page in a folder, from results by trial.
    methods : iterable of str
        Methods of the trials.
    draws : int
        Number of draws by default.
    study : str
        The study with the same corpora; see `experiments.shared.corpora.STUDIES`.
    arguments : list of str, optional
        Default: the arguments of the command.
    """
    methods, sources = list(methods), list(corpora.STUDIES[study])
    real = [name for name in sources if name != "toy"]
    parser = argparse.ArgumentParser(prog=f"python -m experiments.{here.name}", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_DRAWS} draws")
    parser.add_argument("--corpus", action="append", choices=sources, help="default: all but toy")
    parser.add_argument("--method", action="append", choices=methods, help="run only this; may be repeated")
    parser.add_argument("--draws", type=int, default=draws, help="number of draws to run")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results file")
    parser.add_argument("--page-only", action="store_true", help="write the page from the finished trials")
    options = parser.parse_args(arguments)
    store = Store(options.results / f"{here.name}.sqlite")
    toy = "toy" in (options.corpus or [])
    planned, kept = plan(["toy"] if toy else real), here / f"{here.name}.jsonl"
    folder = page_folder(here, options, part=toy)
    try:
        if folder == here:
            store.take(kept)
        if not options.page_only:
            last = min(options.draws, QUICK_DRAWS) if options.quick else options.draws
            chosen = [
                trial
                for trial in planned
                if trial.seed < last
                and trial.method in (options.method or methods)
                and trial.corpus in (options.corpus or real)
            ]
            carry_out(chosen, perform, store, options.processes, "trials")
        if folder == here:
            store.dump(kept, {trial.method: trial.version for trial in planned})
        print(f"Results: {write(folder, store.results(planned))}")
    except (ReadError, LookupError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return stopped(planned, store)
    finally:
        store.close()
    return 0
