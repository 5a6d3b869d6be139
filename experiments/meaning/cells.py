"""Cells of the study: which documents are labelled, which topics are known, and how scores are measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import average_precision_score

from experiments.meaning.corpora import Corpus

# Cells with all topics known, then cells with half of the topics hidden.
CLOSED = ("names", "names+1", "names+5", "5", "10%")
HIDDEN = ("hidden10", "hidden5")
# The cell "described" has names with descriptions and keywords. New cells come last: seeds depend on the order.
CELLS = (*CLOSED, *HIDDEN, "described")
# Labelled documents per topic where they are counted, and the share of documents where they are drawn at random.
PER_TOPIC = {"names": 0, "described": 0, "names+1": 1, "names+5": 5, "5": 5, "hidden5": 5}
SHARE = 0.1


@dataclass(frozen=True, eq=False)
class Draw:
    """Labels of a cell.

    ``rows`` are the labelled documents, in order, and ``labels`` their labels (n_labelled, n_known) as bool. ``known``
    and ``hidden`` are columns of the corpus. ``names``: whether methods may read the names of the known topics, and
    ``described``: also their descriptions and keywords.
    """

    rows: np.ndarray
    labels: np.ndarray
    known: np.ndarray
    hidden: np.ndarray
    names: bool
    described: bool = False

    def unlabelled(self, corpus: Corpus) -> np.ndarray:
        """Rows that methods are judged on."""
        return np.setdiff1d(np.arange(len(corpus.texts)), self.rows)


def draw(corpus: Corpus, cell: str, seed: int) -> Draw:
    """Draw the labels of a cell; half hidden: only documents with a known topic are labelled."""
    rng = np.random.default_rng([seed, CELLS.index(cell)])
    order = rng.permutation(len(corpus.topics))
    n_hidden = len(order) // 2 if cell in HIDDEN else 0
    known, hidden = np.sort(order[n_hidden:]), np.sort(order[:n_hidden])
    Y = corpus.Y[:, known]
    rows = by_topic(Y, PER_TOPIC[cell], rng) if cell in PER_TOPIC else by_share(Y, SHARE, rng)
    described = cell == "described"
    return Draw(rows, Y[rows], known, hidden, names=described or cell.startswith("names"), described=described)


def cells_of(corpus: Corpus) -> tuple[str, ...]:
    """Cells of a corpus; topics without descriptions leave one out."""
    return tuple(cell for cell in CELLS if cell != "described" or any(corpus.descriptions))


def by_topic(Y: np.ndarray, per_topic: int, rng: np.random.Generator) -> np.ndarray:
    """Some documents of each topic, as people label one after another."""
    drawn: set[int] = set()
    for column in Y.T:
        own = np.flatnonzero(column)
        drawn.update(rng.choice(own, min(per_topic, len(own)), replace=False).tolist())
    return np.array(sorted(drawn), dtype=np.int64)


def by_share(Y: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """A random share of the documents with a topic, and one more document of each topic that it lacks."""
    pool = rng.permutation(np.flatnonzero(Y.any(axis=1)))
    rows = list(pool[: round(share * len(pool))])
    for column in Y.T:
        if not column[rows].any():
            rows.append(rng.choice(np.flatnonzero(column)))
    return np.array(sorted(rows), dtype=np.int64)


def macro_ap(corpus: Corpus, drawn: Draw, scores: np.ndarray) -> float:
    """Mean over known topics of the average precision on unlabelled documents; scores (n_documents, n_known)."""
    rows = drawn.unlabelled(corpus)
    truth = corpus.Y[np.ix_(rows, drawn.known)]
    pairs = zip(truth.T, scores[rows].T, strict=True)
    return float(np.mean([average_precision_score(t, s) for t, s in pairs if t.any()]))


def hidden_ap(corpus: Corpus, drawn: Draw, scores: np.ndarray) -> float:
    """Mean over hidden topics of the average precision of its column, matched one to one; 0 without a column.

    Scores (n_documents, n_free).
    """
    rows = drawn.unlabelled(corpus)
    truth = corpus.Y[np.ix_(rows, drawn.hidden)]
    each = np.array([[average_precision_score(t, s) for s in scores[rows].T] for t in truth.T if t.any()])
    if not each.size:
        return 0.0
    topics, columns = linear_sum_assignment(-each)
    return float(each[topics, columns].sum() / len(each))


def accuracy(corpus: Corpus, drawn: Draw, scores: np.ndarray) -> float:
    """Share of unlabelled documents with a known topic whose best column is one of their topics."""
    rows = drawn.unlabelled(corpus)
    truth = corpus.Y[np.ix_(rows, drawn.known)]
    right = truth[np.arange(len(rows)), scores[rows].argmax(axis=1)]
    return float(right[truth.any(axis=1)].mean())


def true_none(corpus: Corpus, drawn: Draw) -> float:
    """True share of unlabelled documents without a known topic."""
    return float((~corpus.Y[np.ix_(drawn.unlabelled(corpus), drawn.known)].any(axis=1)).mean())


def leak(corpus: Corpus, drawn: Draw, decided: np.ndarray) -> float | None:
    """Share of unlabelled documents without a known topic that get one; None if all have one.

    Decisions (n_documents, n_known) are bool.
    """
    rows = drawn.unlabelled(corpus)
    outside = ~corpus.Y[np.ix_(rows, drawn.known)].any(axis=1)
    return float(decided[rows][outside].any(axis=1).mean()) if outside.any() else None


def recall(corpus: Corpus, drawn: Draw, decided: np.ndarray) -> float:
    """Mean over known topics of the share of their unlabelled documents that get them."""
    rows = drawn.unlabelled(corpus)
    truth = corpus.Y[np.ix_(rows, drawn.known)]
    occurs = truth.any(axis=0)
    return float(((truth & decided[rows]).sum(axis=0)[occurs] / truth.sum(axis=0)[occurs]).mean())


def matched_accuracy(truth: np.ndarray, predicted: np.ndarray, n: int) -> float:
    """Share of documents whose predicted cluster is matched to their true one; clusters are matched one to one.

    Both are numbers from 0 to n − 1, one per document.
    """
    both = np.zeros((n, n), dtype=np.int64)
    np.add.at(both, (predicted, truth), 1)
    return float(both[linear_sum_assignment(-both)].sum() / len(truth))
