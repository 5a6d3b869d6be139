"""Live memberships, after further random labels, against memberships of the last fit and of a new fit.

`python -m experiments.meaning.live` prints a table: average precision on documents that are never labelled, as the
difference from the last fit. It takes about ten minutes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict

import numpy as np

from experiments.meaning.corpora import from_documents, short
from experiments.shared.corpora import reuters, some_newsgroups
from topicsteer import TopicModel
from topicsteer.metrics import average_precision

# Labels per topic at the fit, and further labels.
LABELS, MORE = (1, 2, 5), (5, 20, 50)
# Documents of a corpus, and the fewest of a topic.
MOST, FEWEST = 3_000, 10
TITLES = ("20 Newsgroups", "Reuters", "banking77", "cap_nyt")


def corpus(title: str) -> tuple[list[str], list[str], np.ndarray]:
    """Texts, topics, and the topics of each text as an indicator."""
    if title in ("banking77", "cap_nyt"):
        found = short(title)
    else:
        found = from_documents(some_newsgroups() if title == "20 Newsgroups" else reuters(), title)
    labelled = np.flatnonzero(found.Y.any(axis=1))
    kept = np.sort(np.random.default_rng(0).permutation(labelled)[:MOST])
    large = np.flatnonzero(found.Y[kept].sum(axis=0) >= FEWEST)
    kept = kept[found.Y[np.ix_(kept, large)].any(axis=1)]
    return [found.texts[row] for row in kept], [found.topics[k] for k in large], found.Y[np.ix_(kept, large)]


def gains(
    texts: list[str], topics: list[str], Y: np.ndarray, per_topic: int, seed: int
) -> dict[int, tuple[float, float]]:
    """Average precision of live memberships, and of a new fit, minus that of the last fit, by number of labels."""
    order = np.random.default_rng([seed, per_topic]).permutation(len(Y))
    base = per_topic * Y.shape[1]
    test = order[base + MORE[-1] :]
    names = [[topics[k] for k in np.flatnonzero(own)] for own in Y]

    def fitted(n: int, after: TopicModel | None = None) -> TopicModel:
        seen = {int(row) for row in order[:n]}
        labels = [own if row in seen else [] for row, own in enumerate(names)]
        return TopicModel(0, topics=topics, world="closed").fit(texts, labels, after=after)

    def score(table: object) -> float:
        scores = np.column_stack([table[name].to_numpy() for name in topics])  # type: ignore[index]
        return average_precision(Y[test].astype(float), scores[test]).macro

    model = fitted(base)
    stale, found = score(model.memberships()), {}
    for more in MORE:
        live = model.labels.give({int(row): names[row] for row in order[base : base + more]})
        found[more] = score(live) - stale, score(fitted(base + more, model).memberships()) - stale
    return found


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.meaning.live", description=__doc__)
    parser.add_argument("--corpus", action="append", choices=TITLES)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| corpus | labels per topic | further labels | live | new fit |\n|---|---|---|---|---|")
    every: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for title in options.corpus or TITLES:
        texts, topics, Y = corpus(title)
        for per_topic in LABELS:
            for seed in range(options.seeds):
                for more, (live, new) in gains(texts, topics, Y, per_topic, seed).items():
                    every[more].append((live, new))
                    print(f"| {title} | {per_topic} | {more} | {live:+.4f} | {new:+.4f} |", flush=True)
    for more, pairs in every.items():
        live, new = np.mean(pairs, axis=0)
        print(f"| all, worst live {min(pair[0] for pair in pairs):+.4f} | | {more} | {live:+.4f} | {new:+.4f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
