"""Labels for a fitted model: further labels at once, documents to label next, and doubtful labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.documents_to_label import (
    FIRST_AT_RANDOM,
    WAYS,
    Suggestion,
    at_random,
    audit,
    by_doubt,
    least_sure,
    suggest,
)
from topicsteer.guidance.apply import FREE_THRESHOLD, merged_classes
from topicsteer.labels.supervision import CHOSEN, PROBABILITY
from topicsteer.model.predictor import frame
from topicsteer.nmf.protocols import Rows
from topicsteer.report.table_files import columns
from topicsteer.system.files import one_at_a_time
from topicsteer.system.values import NONE

if TYPE_CHECKING:
    from topicsteer.analysis.documents_to_label import Doubt
    from topicsteer.model.live import LiveGuide
    from topicsteer.model.pipeline import Corpus
    from topicsteer.model.predictor import Frame
    from topicsteer.model.state import FittedState
    from topicsteer.model.topic_model import TopicModel


def training_corpus(model: TopicModel) -> Corpus:
    """The training documents of a model, to learn from them again."""
    from topicsteer.model.pipeline import Corpus

    X = model._training_rows()
    E = model._training_embeddings()
    encode = None if E is None else model._encoder
    origin = model.state_.label_origin
    return Corpus(X, model.state_.supervision, model.codebook, model.vectorizer_, E, encode, origin=origin)


class LabelHelp:
    """Help with the labels of a fitted `TopicModel`, as ``model.labels``.

    Parameters
    ----------
    model : TopicModel
    """

    def __init__(self, model: TopicModel) -> None:
        self._model = model

    def suggest(
        self,
        n: int = 20,
        *,
        topic: Hashable | None = None,
        how: str = "useful",
    ) -> Frame:
        """Choose unlabelled documents to label next, best first; label some, fit again, and repeat.

        Parameters
        ----------
        n : int, default=20
            Number of documents; near duplicates are skipped.
        topic : str, optional
            A topic: the least sure documents among those given it. "free 3" is the third free topic.
        how : {"useful", "random", "shares"}, default="useful"
            "useful": labels from which the model learns most. "random".
            "shares": for shares of topics; at random first, then by doubt with known probability.

        Returns
        -------
        table
            The id, the text, an empty column ``label`` to fill in, the guess of the model, the reason, and two columns
            for :meth:`prevalence`: ``chosen`` and ``probability``. The filled table is a label file.
        """
        if how not in WAYS:
            raise ValueError(f"how is {how!r}: expected one of {', '.join(map(repr, WAYS))}.")
        if topic is not None and how != "useful":
            raise ValueError(f"choose either the topic {topic!r} or how={how!r}: a topic has its own order.")
        k = None if topic is None else self._model._number(topic)
        state, texts, X = self.state, self._model._texts(), self._model._training_rows()
        # Shares are of all documents, also of those without terms.
        filled = (X.sizes > 0) | (how in ("shares", "random"))
        rows = np.flatnonzero(filled & ~state.supervision.labelled)
        if how == "shares" and self._starts_at_random():
            how = "random"
        chosen = self._choose(X, rows, n, k, how)
        return self._model._table(
            {
                "id": [state.ids[c.row] for c in chosen],
                "text": [texts[c.row] for c in chosen],
                "label": [""] * len(chosen),
                "guess": ["; ".join(state.names[k] for k in c.topics) for c in chosen],
                "why": [c.why for c in chosen],
                CHOSEN: [self._chosen_by(how)] * len(chosen),
                PROBABILITY: [c.probability for c in chosen],
            }
        )

    @one_at_a_time
    def give(self, labels: Mapping[Hashable, Any]) -> Frame:
        """Give further labels, and return the memberships of all training documents at once, without a fit.

        The labels count until the next :meth:`fit` or :meth:`update`, which need them again: see
        `topicsteer.model.live`. Suggestions follow them.

        Parameters
        ----------
        labels : dict
            Known topics by the id of a document, in any form of a fit. None removes the label of a document.

        Returns
        -------
        table
            As that of :meth:`memberships`.

        Examples
        --------
        >>> from topicsteer import TopicModel
        >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "iced coffee", "iced tea"]
        >>> model = TopicModel(free_topics=0, embeddings=None).fit(texts, ["tea", "coffee", None, None, None])
        >>> model.labels.give({3: "coffee"})["coffee"][3]
        1.0
        """
        from topicsteer.labels.forms import extend, label_counts, refuse_new_topics
        from topicsteer.model.live import live_guide

        model, state = self._model, self.state
        row_of = {str(key): row for row, key in enumerate(state.ids)}
        if unknown := [key for key in labels if str(key) not in row_of]:
            raise ValueError(f"the model has no document with the id {unknown[0]!r}.")
        topics, given = list(state.supervision.topics), list(labels.values())
        lineage = model._settings().lineage(model.codebook).spelled(label_counts(given))
        found = extend(topics, given, len(given), complete=model.complete, lineage=lineage)
        refuse_new_topics(topics, found, list(labels))
        rows = np.array([row_of[str(key)] for key in labels], dtype=np.int64)
        pattern = state.pattern.copy()
        pattern[rows[found.pattern == 0]] = 0
        now = replace(state.supervision, pattern=pattern).relabel(rows, found.patterns[found.pattern], len(pattern))
        model._live = self.live or live_guide(model)
        state = model._live.label(now)
        names, values = (*state.names, NONE), state.topics.all_memberships()
        return frame(columns(state.ids, names, values), model._frames == "pandas", model._index)

    @property
    def live(self) -> LiveGuide | None:
        """The live guide of the last fit, once labels were given."""
        live: LiveGuide | None = vars(self._model).get("_live")
        return live if live is not None and live.fit is self._model.state_ else None

    @property
    def state(self) -> FittedState:
        """The fitted state under all labels so far."""
        return self._model.state_ if self.live is None else self.live.now

    def _choose(self, X: Rows, rows: NDArray[np.intp], n: int, k: int | None, how: str) -> list[Suggestion]:
        """Choose n of the rows: for the topic k, or in one of the ways."""
        state, seed, belongs = self.state, self._model.random_state, self.state.known_memberships
        if k is not None and not state.topics.known(k):
            return least_sure(state.judged.values, FREE_THRESHOLD, k, state.names[k], rows)[:n]
        if k is not None:
            return least_sure(belongs, float(state.thresholds[k]), k, state.names[k], rows)[:n]
        if how == "random":
            return at_random(rows, n, seed)
        if how == "shares":
            rng = np.random.default_rng([seed, int(state.supervision.labelled.sum())])
            return by_doubt(belongs, rows, n, rng, state.topics.forest)
        predictor = self._model.predictor_
        more = state.supervision.labelled & ~self._model.state_.supervision.labelled
        Z = predictor.positions(X.take(more))
        return suggest(
            lambda rows: predictor.positions(X.take(rows)),
            belongs,
            state.supervision,
            predictor.seen + Z.T @ Z,
            n,
            rows=rows,
            seed=seed,
        )

    def _starts_at_random(self) -> bool:
        """Whether documents for shares are drawn at random: a draw by doubt needs some labels drawn by chance."""
        return bool(self._model.state_.label_origin.by_chance.sum() < FIRST_AT_RANDOM)

    def _chosen_by(self, how: str) -> str:
        """How documents were chosen, for the column of a table of labels; rounds are numbered."""
        name = {"shares": "doubt", "random": "random"}.get(how, "suggested")
        last = self._model.state_.label_origin.rounds
        return f"{name} {last + 1}" if last else name

    def surest(self, topic: Hashable, n: int = 10) -> Frame:
        """Table of the unlabelled documents that most surely have a topic: id, membership, start of the text."""
        belongs = np.array(self.state.judged.values[:, self._model._number(topic)])
        belongs[self.state.supervision.labelled] = -1
        rows = [int(i) for i in np.argsort(-belongs, kind="stable")[:n] if belongs[i] > 0]
        return self._model._documents_table(rows, {"membership": [float(belongs[i]) for i in rows]})

    def audit(self, n: int | None = None) -> Frame:
        """Labels that look wrong or missing, most doubtful first; each document is predicted without its own labels.

        Parameters
        ----------
        n : int, optional
            Number of rows. Default: all labels, and all labels that seem to be missing.

        Returns
        -------
        table
            The id, the topic, the label ("permitted", "forbidden", "unknown"), the probability and the reason.
        """
        doubts = self.doubts(n)
        columns = {
            "topic": [self._model.state_.names[d.topic] for d in doubts],
            "given": [d.given for d in doubts],
            "probability": [d.probability for d in doubts],
            "why": [d.why for d in doubts],
        }
        return self._model._documents_table([d.row for d in doubts], columns)

    def doubts(self, n: int | None = None) -> list[Doubt]:
        """The rows of :meth:`audit` as records, with numbers of documents and topics."""
        state, guide = self._model.state_, self._model.guide_
        if guide is None:
            raise ValueError("an audit needs labels: label some documents, and fit again.")
        left_out = guide.left_out_probabilities()
        found = state.codebook.forest.raised(merged_classes(left_out, state.groups, guide.n_known))
        return audit(found, guide.rows, state.supervision)[:n]
