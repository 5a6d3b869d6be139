"""Kills while a project is made: ``python -m tests.fuzz.projects --rounds 500``.

Each round starts a process that makes a project from a table with labels, and kills it at a random moment. Afterwards
there is no project, or one with all documents and all labels. The next attempt must make a whole one.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents

FORK = multiprocessing.get_context("fork")
N = 400
DOCUMENTS = Documents(list(range(N)), [f"text {i}" for i in range(N)], [[f"topic {i % 7}"] for i in range(N)])


def state_of(path: Path) -> str:
    """The project as the next start finds it."""
    if not path.exists():
        return "none"
    with closing(Project.open(path)) as project:
        labels = LabelSession(project).training().labels
        whole = len(project) == N and labels == dict(enumerate(map(list, DOCUMENTS.labels)))
    return "whole" if whole else f"failed: {len(labels)} of {N} labels"


def begin(path: Path) -> multiprocessing.process.BaseProcess:
    process = FORK.Process(target=Workbench.make, args=(path, DOCUMENTS))
    process.start()
    return process


def play(folder: Path, number: int, seconds: float) -> Counter[str]:
    path = folder / f"{number}.steer"
    process = begin(path)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    events = Counter([state_of(path)])
    if not path.exists():
        Workbench.make(path, DOCUMENTS)
        events[f"then {state_of(path)}"] += 1
    return events


def run(rounds: int, seed: int = 0) -> Counter[str]:
    rng, total = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        Workbench.make(Path(place) / "first.steer", DOCUMENTS)  # imports and compiles
        start = time.perf_counter()
        begin(Path(place) / "second.steer").join()
        usual = time.perf_counter() - start
        for number in range(rounds):
            total += play(Path(place), number, rng.uniform(0, 1.5 * usual))
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    total = run(given.rounds, given.seed)
    for event, count in total.most_common():
        print(f"{count:7,} {event}")
    return any("failed" in event for event in total)


if __name__ == "__main__":
    sys.exit(main())
