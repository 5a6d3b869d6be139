"""Accuracy on the test posts of 20 Newsgroups by date, with 1,000 labels, as other tools publish it.

`python -m experiments.peers.by_date` runs the draws, then writes BYDATE.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets._twenty_newsgroups import strip_newsgroup_footer, strip_newsgroup_header, strip_newsgroup_quoting
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from experiments.corpora import load_newsgroups
from experiments.shared.terminal import note, table
from topicsteer import TopicModel
from topicsteer.corpora import Documents, ReadError

# The page.
HERE = Path(__file__).parent
LABELS = 1_000
DRAWS = 3
# Accuracies in percent on the page of results of model2vec, with 1,000 labels: they are quoted, not measured here.
PUBLISHED = {"bge-base + logistic regression": 67.4, "SetFit": 61.3}
PAGE = """# 20 Newsgroups by date: accuracy with 1,000 labels

Made by `python -m experiments.peers.by_date`; do not edit.

{labels:,} random training posts have a label. The likeliest topic of each of the {tests:,} test posts is compared with
its group. Headers, footers and quotes are removed with scikit-learn's own rules. A post without any text left counts as
wrong. topicsteer also reads the training posts without labels, and no test post. Means of {draws} draws, with their
range:

{rows}

Rows without a range are quoted from the page of results of model2vec; they use pre-trained language models.
"""


def stripped() -> Documents:
    """All posts, stripped as scikit-learn does it; posts may be empty."""
    posts = load_newsgroups()
    texts = [strip_newsgroup_footer(strip_newsgroup_quoting(strip_newsgroup_header(text))) for text in posts.texts]
    return Documents(posts.ids, texts, posts.labels, {"split": posts.columns["split"]})


def topicsteer(train: list[str], labels: dict[int, str], test: list[str]) -> list[str]:
    """The likeliest known topic by `TopicModel` with its defaults; training posts without labels are read too."""
    full = [i for i, text in enumerate(train) if text.strip()]
    model = TopicModel(random_state=0).fit([train[i] for i in full], [labels.get(i) for i in full])
    names = [str(name) for name in model.codebook.names]
    found = model.memberships([text or " " for text in test])
    return [names[k] for k in np.column_stack([found[name] for name in names]).argmax(axis=1)]


def logistic_regression(train: list[str], labels: dict[int, str], test: list[str]) -> list[str]:
    """Logistic regression on sublinear tf-idf of the labelled posts, C = 10."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2)
    vectorizer.fit(train)
    learner = LogisticRegression(C=10, max_iter=1000)
    learner.fit(vectorizer.transform([train[i] for i in labels]), list(labels.values()))
    return list(learner.predict(vectorizer.transform(test)))


METHODS: dict[str, Callable[[list[str], dict[int, str], list[str]], list[str]]] = {
    "topicsteer": topicsteer,
    "tf-idf + logistic regression": logistic_regression,
}


def accuracy(posts: Documents, method: str, seed: int, n_labels: int = LABELS) -> float:
    """Accuracy of one draw of labels, over all test posts."""
    first = [i for i, split in enumerate(posts.columns["split"]) if split == "train"]
    test = [i for i, split in enumerate(posts.columns["split"]) if split == "test"]
    train = [posts.texts[i] for i in first]
    drawn = np.random.default_rng(seed).choice(len(first), n_labels, replace=False)
    labels = {int(k): posts.labels[first[k]][0] for k in drawn}
    found = METHODS[method](train, labels, [posts.texts[i] for i in test])
    right = [name == posts.labels[i][0] and bool(posts.texts[i].strip()) for name, i in zip(found, test, strict=True)]
    return float(np.mean(right))


def main(arguments: list[str] | None = None) -> int:
    """Run the draws and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.peers.by_date", description=__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--out", type=Path, default=HERE / "BYDATE.md")
    options = parser.parse_args(arguments)
    try:
        posts = stripped()
    except (ReadError, LookupError) as error:
        print(error, file=sys.stderr)
        return 1
    rows = []
    for name in METHODS:
        found = [100 * accuracy(posts, name, seed) for seed in range(options.draws)]
        note(f"{name}: {', '.join(f'{value:.1f}' for value in found)}")
        rows.append([name, f"{np.mean(found):.1f}", f"{min(found):.1f} to {max(found):.1f}"])
    rows += [[name, f"{value:.1f}", ""] for name, value in PUBLISHED.items()]
    rows.sort(key=lambda row: -float(row[1]))
    tests = posts.columns["split"].count("test")
    shown = table(["method", "accuracy in %", "range"], rows)
    options.out.write_text(PAGE.format(labels=LABELS, tests=tests, draws=options.draws, rows=shown), encoding="utf-8")
    print(f"Results: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
