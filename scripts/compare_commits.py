"""Compare the results of two versions: `python scripts/compare_commits.py OLD NEW [CORPUS ...]`.

OLD and NEW are checkouts of the repository. Each runs in processes of its own, on the built-in corpus, Reuters and 20
Newsgroups, or on the corpora named. All numbers are compared bit for bit. Texts are compared after dates, seconds,
versions and folders of the run are removed. The script prints every difference, and exits with 1 if there is one.

A value that only one version has is printed as "only old" or "only new", and is no difference: a renamed column, for
example. A kind that fails on one side is a difference.

Options
-------
--only KIND,KIND    Compare these kinds alone: flat, large, tree, open, names, embeddings, edits, predict, prevalence,
                    topics, evaluate, report, session, tree-session.
--plant             Test the script itself: NEW gets a small change in each kind, and each change must be noticed.
--all               Print values that are the same, too.

The corpora but the built-in one are read from the folder TOPICSTEER_DATA. `compare_worker.py` computes the values of
one side, `compare_session.py` drives the workbench, and `compare_values.py` reads files and finds differences.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from compare_values import Values, compare, difference
from compare_worker import KINDS

CORPORA = ("built-in", "reuters", "newsgroups")


def run(checkout, corpus, kinds, path, planted=False):
    """Compute the values of one checkout in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(checkout).resolve() / "src"), "PYTHONHASHSEED": "0"}
    order = json.dumps([str(Path(checkout).resolve()), corpus, kinds, str(path), planted])
    worker = Path(__file__).with_name("compare_worker.py")
    subprocess.run([sys.executable, str(worker), order], check=True, env=environment)
    return Values.load(path)


def compare_sides(corpus, old, new, every):
    """Print the differences of two runs, and count the verdicts."""
    counts = Counter()
    for key, size, verdict in compare(old, new):
        failed = key.endswith("/FAILED")
        kind = "failed" if failed else " ".join(verdict.split()[:2]).rstrip(":") if verdict else "same"
        kind = "different" if kind.startswith("DIFFERENT") else kind
        counts[kind] += 1
        if verdict or every or failed:
            print(f"{corpus:10} {key}  [{size}]  {verdict or 'same'}", flush=True)
        if failed:
            for side, own in (("old", old), ("new", new)):
                print(*(f"    {side}: {line}" for line in own.lines.get(key, [])), sep="\n")
    return counts


def test_plants(corpus, kinds, old, new):
    """Print whether the planted change of each kind, export and value is noticed; return the number of misses."""
    found, missed = {}, 0
    for key, _, verdict in compare(old, new):
        # Each model, each file of a command and each export counts by itself.
        name = "/".join(re.split(r"[:.\[]", part)[0] for part in key.split("/")[:2])
        found[name] = found.get(name, False) or verdict.startswith("DIFFERENT")
    for kind in kinds:
        own = {name: noticed for name, noticed in found.items() if name.startswith(f"{kind}/")}
        # The pages of a session need not all show the change.
        due = [name for name in own if not kind.endswith("session") or "/export " in name]
        lost = [name for name in due if not own[name]]
        failed = f"{kind}/FAILED" in own
        print(f"{corpus:10} {kind}: {'FAILED' if failed else 'NOT NOTICED' if lost or not due else 'noticed'}", *lost)
        for side in (old, new):
            print(*(f"    {line}" for line in side.lines.get(f"{kind}/FAILED", [])), sep="\n", end="\n" * failed)
        missed += failed or bool(lost) or not due
    values = {**old.arrays, **old.lines}
    for key, value in values.items():
        if len(value) and not difference(value, flipped(value)):
            missed += 1
            print(f"{corpus:10} {key}: a change of one bit is NOT NOTICED")
    print(f"{corpus:10} one bit or letter in each of {len(values):,} values: checked")
    return missed


def flipped(value):
    """Return a value with one other bit, or one more letter."""
    if isinstance(value, list):
        return [*value[:-1], value[-1] + "x"]
    changed = np.frombuffer(value.tobytes(), dtype=np.uint8).copy()
    if changed.size:
        changed[-value.dtype.itemsize] ^= 1
    return np.frombuffer(changed.tobytes(), dtype=value.dtype).reshape(value.shape)


def main():
    """Run both checkouts on some corpora, compare their results, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=", ".join(CORPORA))
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, separated by commas")
    parser.add_argument("--plant", action="store_true", help="test the script itself")
    parser.add_argument("--all", action="store_true", help="print values that are the same, too")
    given = parser.parse_args()
    kinds = given.only.split(",")
    if unknown := {*kinds} - {*KINDS} | {*given.corpora} - {*CORPORA}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    for checkout in (given.old, given.new):
        if not (Path(checkout) / "src" / "topicsteer").is_dir():  # else both would be the installed version
            parser.error(f"{checkout} is not a checkout: pass a folder, such as one made by `git worktree add`.")
    total, missed = Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        for corpus in given.corpora or (CORPORA[:1] if given.plant else CORPORA):
            old = run(given.old, corpus, kinds, Path(folder) / "old")
            new = run(given.new, corpus, kinds, Path(folder) / "new", planted=given.plant)
            if given.plant:
                missed += test_plants(corpus, kinds, old, new)
            else:
                total += compare_sides(corpus, old, new, given.all)
    if given.plant:
        print(f"{missed} planted changes were not noticed." if missed else "Every planted change was noticed.")
        return 1 if missed else 0
    print(", ".join(f"{number:,} {kind}" for kind, number in total.most_common()))
    bad = total["different"] + total["failed"]
    print(f"{bad:,} values differ." if bad else "All values that both versions have are the same, bit for bit.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
