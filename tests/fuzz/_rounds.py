"""Seeded rounds in a process of their own: a crash costs one round, and is counted.

A fuzzer has a function ``attack(round, folder)`` that returns None, or a sentence about what went wrong. ``main`` runs
``python -m tests.fuzz.NAME --rounds N`` and prints the number of rounds by outcome.
"""

import argparse
import faulthandler
import json
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Seconds after which a round counts as hanging.
LIMIT = 60


def rounds(attack, first, last, folder):
    """Run rounds in this process; yield each round and its problem, None if there is none."""

    def hangs(*_):
        raise TimeoutError(f"no answer within {LIMIT} s")

    before = signal.signal(signal.SIGALRM, hangs)
    try:
        for number in range(first, last):
            signal.alarm(LIMIT)
            try:
                problem = attack(number, folder)
            except BaseException:
                problem = traceback.format_exc()
            signal.alarm(0)
            yield number, problem
    finally:
        signal.signal(signal.SIGALRM, before)


def isolated(module, first, last):
    """Run rounds in a child process, started again after each signal."""
    while first < last:
        command = [sys.executable, "-m", module, "--child", str(first), str(last)]
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True) as child,
        ):
            for line in child.stdout:
                number, problem = json.loads(line)
                yield number, problem
                first = number + 1
            if child.wait():
                errors.seek(0)
                yield first, f"the process ended with code {child.returncode}: {errors.read()[-3000:]}"
                first += 1


def main(module, attack, many):
    """The command line of a fuzzer; the exit code is 1 if a round went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=many)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        faulthandler.enable()
        with tempfile.TemporaryDirectory() as folder:
            for outcome in rounds(attack, *given.child, Path(folder)):
                print(json.dumps(outcome), flush=True)
        return
    counts, began = Counter(), time.monotonic()
    for number, problem in isolated(module, given.first, given.first + given.rounds):
        counts["wrong" if problem else "fine"] += 1
        if problem:
            print(f"--- round {number}\n{problem.strip()}", flush=True)
    seconds = time.monotonic() - began
    print(f"{module}: {given.rounds:,} rounds, {counts['wrong']:,} wrong, {seconds:.0f} s")
    sys.exit(1 if counts["wrong"] else 0)
