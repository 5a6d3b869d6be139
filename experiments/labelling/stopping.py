"""The stopping rule against the measured gain from half as many labels more.

`python -m experiments.labelling.stopping` does the missing runs, then writes STOPPING.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from experiments.labelling import study
from experiments.shared import corpora
from experiments.shared.internals import label_curve, stopping_advice
from experiments.shared.scoring import precision_on
from experiments.shared.terminal import dated, table
from topicsteer.corpora import Documents

# Folder of the page and of its results.
HERE = Path(__file__).parent
# Documents of each corpus; half of them are never labelled.
DOCUMENTS = 4_000
# Numbers of random labels.
LABELS = (200, 800)
SEEDS = 2
# The page.
PAGE = """# When to stop, against the measured gain

Made by `python -m experiments.labelling.stopping`; do not edit.

{documents:,} random documents of each corpus are used, and half of them are never labelled. *Gain* is the mean of macro
and micro average precision on that half with half as many labels more, minus the same now. *Expected* is the estimate
of `stopping_advice` from the present labels alone, with its standard error.

{rows}
"""


def largest_topics(n: int) -> Documents:
    """Reuters stories with one of the largest topics."""
    documents = corpora.reuters()
    sizes = Counter(topic for labels in documents.labels for topic in labels)
    largest = {topic for topic, _ in sizes.most_common(n)}
    labels = [[topic for topic in own if topic in largest] for own in documents.labels]
    kept = Documents(list(documents.ids), list(documents.texts), labels)
    return kept.select(i for i, own in enumerate(labels) if own)


# Corpora by title.
SOURCES = {
    "Reuters, five largest topics": lambda: largest_topics(5),
    "Reuters, ten largest topics": lambda: largest_topics(10),
    "20 Newsgroups without headers": corpora.newsgroups_without_headers,
}


def judge(corpus: study.Corpus, labels: int, seed: int) -> dict[str, float | bool]:
    """The advice from some labels, and the measured gain from half as many more."""
    order = np.random.default_rng(seed).permutation(len(corpus.truth))
    held, pool = np.split(order, [len(order) // 2])
    given = corpus.supervision(pool[:labels])
    found = [
        corpus.guide(some).probabilities(corpus.X, 1) for some in (given, corpus.supervision(pool[: 3 * labels // 2]))
    ]
    now, later = (precision_on(held, corpus.truth, P) for P in found)
    curve = label_curve(given, lambda left, hidden: corpus.guide(left).probabilities(corpus.X[hidden], 1), seed)
    advice = stopping_advice(given.counts, curve, labels)
    gain = float(np.mean([later[average] - now[average] for average in now]))
    return {"gain": gain, "expected": curve.gain, "error": curve.error, "stop": advice.stop, "macro": now["macro"]}


def text(done: dict[str, Any]) -> str:
    """The page."""
    rows = []
    for title in SOURCES:
        for labels in LABELS:
            for seed in range(SEEDS):
                if run := done.get(f"{title} {labels} {seed}"):
                    expected = f"{run['expected']:.4f} ± {run['error']:.4f}"
                    stop = "stop" if run["stop"] else "label more"
                    rows.append([title, labels, seed, f"{run['macro']:.3f}", f"{run['gain']:+.4f}", expected, stop])
    head = ["corpus", "labels", "seed", "macro AP", "gain", "expected", "advice"]
    return dated(PAGE.format(documents=DOCUMENTS, rows=table(head, rows)), old=study.is_old(done))


def main(arguments: list[str] | None = None) -> int:
    """Do the missing runs, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.labelling.stopping", description=__doc__)
    parser.add_argument("--folder", type=Path, default=HERE, help="folder of the page and its results")
    options = parser.parse_args(arguments)
    path = options.folder / "stopping.json"
    done = study.finished(path)
    for title, load in SOURCES.items():
        corpus = None
        for labels in LABELS:
            for seed in range(SEEDS):
                key = f"{title} {labels} {seed}"
                if key not in done:
                    corpus = corpus or study.Corpus(title, lambda load=load: corpora.some(load(), DOCUMENTS))
                    done[key] = judge(corpus, labels, seed)
                    path.write_text(json.dumps(done, indent=0, sort_keys=True) + "\n")
                    print(key, done[key], file=sys.stderr, flush=True)
    (options.folder / "STOPPING.md").write_text(text(done))
    return 0


if __name__ == "__main__":
    sys.exit(main())
