"""Compare the time of `prevalence` with a pass over the documents on disk.

    python benchmarks/shares.py                       200,000 documents;
    python benchmarks/shares.py --documents 1000000   as many as you like.

Documents are Reuters stories with a tenth of their words left out at random, another tenth each time. 1,000 of them
keep their labels. A pass reads the texts from disk and writes their TF-IDF rows in blocks. Times are processor seconds
of one thread, which other programs on the machine hardly lengthen. The corpus is in the folder TOPICSTEER_DATA.
"""

import argparse
import csv
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from corpora import load_reuters

from topicsteer import TopicModel
from topicsteer.model.spool import spool

# Documents that keep their labels.
LABELLED = 1_000
# Share of words that a document keeps.
KEPT = 0.9
# Memory limit of the fit in bytes: documents stay on disk.
MEMORY = 300_000_000


def write(path, n):
    """Write n documents with labels and a group each."""
    rng, stories = np.random.default_rng(0), load_reuters()
    stories = stories.select(i for i, labels in enumerate(stories.labels) if labels)
    labelled = set(rng.permutation(n)[:LABELLED].tolist())
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text", "label", "region"])
        for i, story in enumerate(rng.choice(len(stories), n)):
            words = np.array(stories.texts[story].split())
            text = " ".join(words[rng.random(len(words)) < KEPT])
            label = "|".join(stories.labels[story]) if i in labelled else ""
            rows.writerow([f"d{i}", text, label, ["north", "south"][i % 2]])


def timed(name, function):
    """Call a function, print its processor seconds, and return both."""
    began = time.process_time()
    found = function()
    seconds = time.process_time() - began
    print(f"{name}: {seconds:.1f} s", flush=True)
    return found, seconds


def measure(n):
    """Print the seconds of a pass, of the shares, and of the shares of groups."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        path = Path(folder) / "stories.csv"
        write(path, n)
        model, _ = timed(f"{n:,} documents: fit", lambda: TopicModel(0, threads=1).fit(str(path), memory=MEMORY))
        _, once = timed("one pass", lambda: spool(path, Path(folder) / "spool"))
        _, shares = timed("prevalence", model.findings.prevalence)
        print(f"prevalence takes {shares / once:.1f} passes", flush=True)
        timed("prevalence by region, with the same guides", lambda: model.findings.shares("region"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=200_000)
    measure(parser.parse_args().documents)
