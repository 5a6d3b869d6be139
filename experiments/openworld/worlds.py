"""Draw the hidden topics of a corpus and the labels of its known topics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.shared.corpora import Corpus
from experiments.shared.internals import Supervision, supervise

# Every form of labels: complete lists, one yes per drawing, and lists that may lack topics.
FORMS = ("complete", "yes-only", "incomplete")
# Chance that an incomplete list has a topic for which the document was not drawn.
LISTED = 0.5


@dataclass(frozen=True, eq=False)
class World:
    """A corpus with hidden topics and labels of some documents.

    ``known`` and ``hidden`` are column numbers of the corpus. ``rows`` are the labelled documents. ``given`` has their
    labels (n_labelled, n_known) as 1, 0 and NaN (unknown). ``declared``: our method is informed that topics are hidden.
    """

    corpus: Corpus
    known: np.ndarray
    hidden: np.ndarray
    rows: np.ndarray
    given: np.ndarray
    form: str = "complete"
    declared: bool = False

    @property
    def n(self) -> int:
        """Number of documents."""
        return int(self.corpus.X.shape[0])

    @property
    def names(self) -> list[str]:
        """Names of the known topics."""
        return [self.corpus.topics[k] for k in self.known]

    @property
    def unlabelled(self) -> np.ndarray:
        """Rows that the methods are judged on."""
        return np.setdiff1d(np.arange(self.n), self.rows)

    @property
    def Y(self) -> np.ndarray:
        """Labels as 1 and 0 (n_labelled, n_known); unknown counts as 0, as usual in practice."""
        return (self.given == 1).astype(float)

    def truth(self, topics: np.ndarray) -> np.ndarray:
        """True labels of the unlabelled documents (n_unlabelled, n_topics) as bool."""
        return self.corpus.truth[self.unlabelled][:, topics].toarray() > 0

    def indicator(self) -> np.ndarray:
        """Labels of all documents (n_documents, n_known) as 1, 0 and NaN (unknown)."""
        states = np.full((self.n, len(self.known)), np.nan)
        states[self.rows] = self.given
        return states

    @property
    def supervision(self) -> Supervision:
        """The labels as a supervision of the known topics."""
        return supervise(self.indicator(), self.n, topics=self.names)

    def lists(self) -> list[list[str]]:
        """One list of topic names per document, empty for unlabelled ones."""
        found: list[list[str]] = [[] for _ in range(self.n)]
        for i, own in zip(self.rows, self.Y, strict=True):
            found[i] = [self.names[k] for k in np.flatnonzero(own)]
        return found


def draw(corpus: Corpus, share: float, budget: str, seed: int, form: str = "complete") -> World:
    """Hide a share of the topics, then label documents with a known topic.

    "k3": three documents per known topic. "10 %": that share of the documents with a known topic.
    """
    rng = np.random.default_rng([seed, round(100 * share)])
    known, hidden = split(len(corpus.topics), share, rng)
    Y = corpus.truth[:, known].toarray() > 0
    drawn = draw_by_topic(Y, int(budget[1:]), rng) if budget.startswith("k") else draw_by_share(Y, budget, rng)
    rows = np.flatnonzero(drawn.any(axis=1))
    given = Y[rows].astype(float)
    if form != "complete":
        listed = drawn[rows]
        if form == "incomplete":
            listed = listed | (Y[rows] & (rng.random(listed.shape) < LISTED))
        given = np.where(listed, 1.0, np.nan)
    declared = bool(share) and budget.startswith("k")  # so few labels do not show that topics are hidden
    return World(corpus, known, hidden, rows, given, form, declared)


def split(n_topics: int, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Known and hidden topics; at least two are known and, if any share is hidden, at least one is."""
    n_hidden = min(max(round(share * n_topics), 1), n_topics - 2) if share else 0
    order = rng.permutation(n_topics)
    return np.sort(order[n_hidden:]), np.sort(order[:n_hidden])


def draw_by_topic(Y: np.ndarray, per_topic: int, rng: np.random.Generator) -> np.ndarray:
    """Pairs of document and topic (bool, like Y): some documents of each topic, as people label one after another."""
    drawn = np.zeros_like(Y)
    for k, column in enumerate(Y.T):
        own = np.flatnonzero(column)
        drawn[rng.choice(own, min(per_topic, len(own)), replace=False), k] = True
    return drawn


def draw_by_share(Y: np.ndarray, budget: str, rng: np.random.Generator) -> np.ndarray:
    """All topics of a random share of the documents with a known topic."""
    own = rng.permutation(np.flatnonzero(Y.any(axis=1)))
    rows = own[: max(round(float(budget.removesuffix(" %")) / 100 * len(own)), 2)]
    drawn = np.zeros_like(Y)
    drawn[rows] = Y[rows]
    return drawn
