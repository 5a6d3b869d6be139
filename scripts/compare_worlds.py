"""Compare the quality of two versions in closed and open worlds: `python scripts/compare_worlds.py OLD NEW`.

OLD and NEW are checkouts of the repository. Both get the same texts and labels: 10 % of the documents with a known
topic, three draws, with all topics known and with half of them hidden (see `experiments/openworld`). The script prints
the means of all measures on unlabelled documents. It uses only public names that both versions have.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

# Corpora, shares of hidden topics, and draws of labels.
CORPORA, SHARES, DRAWS = ("newsgroups-6000", "reuters-100", "pubmed-8000"), (0.0, 0.5), 3


def write_worlds(folder):
    """Write texts, labels and truth of each world."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from experiments.openworld.ours import texts
    from experiments.openworld.worlds import draw
    from experiments.shared.corpora import load

    for name in CORPORA:
        corpus = load(name, "openworld")
        truth = [[corpus.topics[k] for k in row.indices] for row in corpus.truth.tocsr()]
        for share in SHARES:
            for seed in range(DRAWS):
                world = draw(corpus, share, "10 %", seed)
                found = {
                    "texts": texts(name),
                    "labels": world.lists(),
                    "known": world.names,
                    "hidden": [corpus.topics[k] for k in world.hidden],
                    "truth": truth,
                    "unlabelled": world.unlabelled.tolist(),
                }
                (folder / f"{name}, {share:.0%} hidden, {seed}.json").write_text(json.dumps(found))


def columns(table, names, rows):
    """Return columns of a table, for some rows."""
    return np.column_stack([np.asarray(table[name]) for name in names])[rows]


def measure(world):
    """Fit, and return the measures on unlabelled documents."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics import average_precision_score

    from topicsteer import TopicModel

    known, hidden, rows = world["known"], world["hidden"], np.array(world["unlabelled"])
    options = {"free_topics": len(hidden)} if hidden else {}
    model = TopicModel(**options, topics=known, random_state=0, threads=1).fit(world["texts"], world["labels"])
    table = model.memberships()
    Y, hidden_Y = (np.array([[n in world["truth"][i] for n in names] for i in rows]) for names in (known, hidden))
    M, occurring = columns(table, known, rows), np.flatnonzero(Y.any(axis=0))
    predicted = model.predict([world["texts"][i] for i in rows])
    P = np.array([[name in own for name in known] for own in predicted])
    found = {
        "known AP": np.mean([average_precision_score(Y[:, k], M[:, k]) for k in occurring]),
        "recall": np.mean([P[Y[:, k], k].mean() for k in occurring]),
    }
    if hidden:
        free = [name for name in table.columns[1:] if name not in (*known, "(none)")]
        source = table if free else model.document_topics  # 0.1.0 has no memberships of free topics
        F = columns(source, free or [name for name in source.columns[1:] if name not in known], rows)
        H = hidden_Y[:, hidden_Y.any(axis=0)]
        scores = np.array([[average_precision_score(h, f) for f in F.T] for h in H.T])
        found["hidden AP"] = scores[linear_sum_assignment(-scores)].sum() / len(scores)
        found["leak"] = P[~Y.any(axis=1)].any(axis=1).mean()
    return {name: float(value) for name, value in found.items()}


def main(arguments):
    """Write the worlds, run both versions, and print the means."""
    if arguments[0] == "--work":
        warnings.simplefilter("ignore")
        for path in sorted(Path(arguments[1]).glob("*.json")):
            print(json.dumps([path.stem.rsplit(", ", 1)[0], measure(json.loads(path.read_text()))]), flush=True)
        return
    found = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as folder:
        write_worlds(Path(folder))
        for version in arguments:
            environment = os.environ | {"PYTHONPATH": str(Path(version).resolve() / "src")}
            command = [sys.executable, __file__, "--work", folder]
            lines = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
            for world, measures in map(json.loads, lines.splitlines()):
                for name, value in measures.items():
                    found[world, name][version].append(value)
    for (world, name), versions in found.items():
        print(f"{world}, {name}: " + ", ".join(f"{version} {np.mean(own):.3f}" for version, own in versions.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
